// SPDX-License-Identifier: Apache-2.0
/*
 * Lookups are made in a table of types of its own, which no unit has filled, and kept for
 * the module. Hashes of types contain what pointers lead to, up to the first struct.
 */
#include "types/mark_far.h"

#include <string.h>

#include "core/intern.h"
#include "core/mem.h"

struct found {
	uint64_t hash;
	uint32_t first, count; /* types */
};

struct mark_far {
	struct recover *recover;
	struct map *places, *tls, *names; /* -> struct found */
	struct map *deep;		  /* DIE address -> hash */
	struct dwarf_reach types;
};

struct mark_far *mark_far_new(struct recover *recover)
{
	struct mark_far *far = mem_alloc(sizeof(*far));

	far->recover = recover;
	far->places = map_new(sizeof(uint64_t), sizeof(struct found));
	far->tls = map_new(sizeof(uint64_t), sizeof(struct found));
	far->names = map_new(sizeof(uint64_t), sizeof(struct found));
	far->deep = map_new(sizeof(uint64_t), sizeof(uint64_t));
	return far;
}

void mark_far_free(struct mark_far *far)
{
	if (!far)
		return;
	map_free(far->places);
	map_free(far->tls);
	map_free(far->names);
	map_free(far->deep);
	vec_fini(&far->types);
	free(far);
}

void mark_far_set_fini(struct mark_far_set *set)
{
	map_free(set->met);
	set->met = NULL;
	vec_fini(&set->types);
}

void mark_far_begin(struct mark_far *far, struct mark_far_set *set)
{
	module_leave(far->recover);
	if (!set->met)
		set->met = map_new(sizeof(uint64_t), 1);
	map_clear(set->met);
	vec_clear(&set->types);
}

static uint64_t add_type(struct mark_far *far, uint32_t type, uint64_t hash)
{
	struct dtypes *types = far->recover->types;
	uint64_t words[] = { dtype_get(types, type)->hash,
			     dtype_get(types, dtype_whole(types, type))->hash };

	return hash_bytes(words, sizeof(words), hash);
}

static uint64_t add_proto(struct mark_far *far, const struct dwarf_proto *proto,
			  uint64_t hash)
{
	uint64_t words[] = { proto->is_noreturn,
			     dtype_get(far->recover->types, proto->type)->is_variadic };

	hash = hash_text(proto->name, hash_bytes(words, sizeof(words), hash));
	return add_type(far, proto->type, hash);
}

static uint64_t find_callee(struct mark_far *far, uint64_t va, uint64_t hash)
{
	struct recover *recover = far->recover;
	const struct elf_function *symbol = elf_function_at(recover->symbols, va);
	const struct dwarf_function *function = dwarf_function_by_va(recover->dwarf, va);
	struct dwarf_proto proto;
	char name[256];

	if (symbol && symbol->va == va)
		hash = hash_text(symbol->name, hash);
	if (function) {
		proto = dwarf_proto(recover->dwarf, function);
		dwarf_reach_function(recover->dwarf, function, &far->types);
		return add_proto(far, &proto, hash);
	}
	if (!symbol || symbol->va != va)
		return hash;

	size_t length = strcspn(symbol->name, "@");

	if (!length || length >= sizeof(name))
		return hash;
	memcpy(name, symbol->name, length);
	name[length] = '\0';
	if (!dwarf_proto_named(recover->dwarf, name, &proto))
		return hash;
	dwarf_reach_named(recover->dwarf, name, &far->types);
	return add_proto(far, &proto, hash);
}

static uint64_t add_global(struct mark_far *far, const struct dwarf_global *global,
			   uint64_t offset, uint64_t hash)
{
	if (!global)
		return hash;
	dwarf_reach_global(far->recover->dwarf, global, &far->types);
	return add_type(far, global->type, hash_bytes(&offset, sizeof(offset), hash));
}

static uint64_t look_at(struct mark_far *far, uint64_t va)
{
	struct recover *recover = far->recover;
	uint64_t hash = 1, offset = 0;
	const struct dwarf_global *global = dwarf_global_at(recover->dwarf, va, &offset);
	bool is_code = elf_is_code(recover->main, va);
	uint64_t words[] = { is_code, module_is_writable(recover, va) };

	hash = add_global(far, global, offset, hash_bytes(words, sizeof(words), hash));
	return is_code ? find_callee(far, va, hash) : hash;
}

static uint64_t look_for(struct mark_far *far, uint64_t name)
{
	struct dtype_ref ref;

	if (!dwarf_definition(far->recover->dwarf, name, &ref))
		return 1;
	dwarf_reach_type(far->recover->dwarf, &ref, &far->types);
	return add_type(far, dwarf_type_by_ref(far->recover->dwarf, &ref), 2);
}

static uint64_t look_at_tls(struct mark_far *far, uint64_t at)
{
	uint64_t offset = 0;
	const struct dwarf_global *global =
		dwarf_tls_at(far->recover->dwarf, at, &offset);

	return add_global(far, global, offset, 1);
}

static uint64_t ask(struct mark_far *far, struct mark_far_set *set, struct map *known,
		    uint64_t key, uint64_t (*look)(struct mark_far *far, uint64_t key))
{
	bool is_new;
	struct found *slot = map_put(known, &key, &is_new);

	if (is_new) {
		struct found found = { .first = (uint32_t)far->types.count };

		found.hash = look(far, key);
		found.count = (uint32_t)far->types.count - found.first;
		*slot = found;
	}
	for (uint32_t i = 0; i < slot->count; i++) {
		const struct dwarf_reached *type = &far->types.data[slot->first + i];
		uint64_t die = (uint64_t)(uintptr_t)type->ref.die;

		map_put(set->met, &die, &is_new);
		if (is_new)
			vec_push(&set->types, *type);
	}
	return slot->hash;
}

uint64_t mark_far_at(struct mark_far *far, struct mark_far_set *set, uint64_t va)
{
	return ask(far, set, far->places, va, look_at);
}

uint64_t mark_far_tls(struct mark_far *far, struct mark_far_set *set, uint64_t offset)
{
	return ask(far, set, far->tls, offset, look_at_tls);
}

uint64_t mark_far_name(struct mark_far *far, struct mark_far_set *set, uint64_t name)
{
	return ask(far, set, far->names, name, look_for);
}

static uint64_t deep_hash(struct mark_far *far, const struct dtype_ref *ref)
{
	uint64_t die = (uint64_t)(uintptr_t)ref->die;
	bool is_new;
	uint64_t *slot = map_put(far->deep, &die, &is_new);

	if (is_new)
		*slot = dwarf_type_digest(far->recover->dwarf, ref);
	return *slot;
}

static int by_number(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	return *x < *y ? -1 : *x > *y;
}

bool mark_far_end(struct mark_far *far, const struct mark_far_set *set,
		  const uint64_t *shapes, size_t count, uint64_t hash, uint64_t *ret_hash)
{
	vec_each(&set->types, type) {
		bool is_own = count && bsearch(&type->shape, shapes, count,
					       sizeof(*shapes), by_number);
		uint64_t words[] = { type->shape, 1 };

		if (!is_own)
			words[1] = deep_hash(far, &type->ref);
		if (!words[1])
			return false;
		hash = hash_bytes(words, sizeof(words), hash);
	}
	*ret_hash = hash;
	return true;
}
