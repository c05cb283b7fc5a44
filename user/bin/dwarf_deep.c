// SPDX-License-Identifier: Apache-2.0
/*
 * A type and all that can be reached from it, hashed in the order of a walk in depth;
 * what was met before is its number in that order, so that circles end.
 */
#include "bin/dwarf_impl.h"

#include <stdio.h>

#include "core/intern.h"

#define MAX_DEEP 65536 /* DIEs of one walk */

struct deep {
	struct dwarf_file *file;
	struct map *met; /* DIE address -> number */
	VEC(Dwarf_Die) todo;
	VEC(uint64_t) out;
};

static void put(struct deep *deep, uint64_t value)
{
	vec_push(&deep->out, value);
}

/* By number; a DIE not met before waits for its turn. */
static void refer(struct deep *deep, Dwarf_Die *die)
{
	uint64_t key = (uint64_t)(uintptr_t)die->addr;
	bool is_new;
	uint32_t *number = map_put(deep->met, &key, &is_new);

	if (is_new) {
		*number = (uint32_t)map_count(deep->met);
		vec_push(&deep->todo, *die);
	}
	put(deep, *number);
}

static void refer_attribute(struct deep *deep, Dwarf_Die *die, unsigned name)
{
	Dwarf_Attribute attr;
	Dwarf_Die target;

	if (dwarf_attr(die, name, &attr) && dwarf_formref_die(&attr, &target))
		refer(deep, &target);
	else
		put(deep, 0);
}

static void put_name(struct deep *deep, const char *name)
{
	put(deep, name ? hash_text(name, 0) : 1);
}

static bool definition_of(struct dwarf_file *file, Dwarf_Die *die, Dwarf_Die *ret_die)
{
	const struct definition *found;
	const char *name = dwarf_name(die);
	int tag = dwarf_tag(die);
	uint64_t hash;
	char full[512];

	if (!name || (size_t)snprintf(full, sizeof(full), "%s %s",
				      tag == DW_TAG_union_type	 ? "union"
				      : tag == DW_TAG_class_type ? "class"
								 : "struct",
				      name) >= sizeof(full))
		return false;
	hash = hash_text(full, 0);
	found = map_find(file->definitions, &hash);
	if (!found || found->is_ambiguous)
		return false;
	*ret_die = dwarf_die_of(&found->ref);
	return true;
}

static void refer_definition(struct deep *deep, Dwarf_Die *die)
{
	Dwarf_Die definition;

	if (definition_of(deep->file, die, &definition))
		refer(deep, &definition);
}

static void put_die(struct deep *deep, Dwarf_Die *die)
{
	static const unsigned numbers[] = {
		DW_AT_byte_size,   DW_AT_encoding,   DW_AT_data_member_location,
		DW_AT_bit_size,	   DW_AT_bit_offset, DW_AT_data_bit_offset,
		DW_AT_upper_bound, DW_AT_count,	     DW_AT_decl_line,
		DW_AT_external,
	};
	int tag = dwarf_tag(die);
	const char *name = dwarf_name(die);

	put(deep, (uint64_t)tag);
	put_name(deep, name);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		put(deep, dwarf_number(die, numbers[i], UINT64_MAX));
	refer_attribute(deep, die, DW_AT_type);
	refer_attribute(deep, die, DW_AT_signature);
	if (dwarf_hasattr(die, DW_AT_declaration)) {
		put(deep, 2);
		refer_definition(deep, die);
	}
}

static void put_tree(struct deep *deep, Dwarf_Die *die)
{
	Dwarf_Die child;

	put_die(deep, die);
	if (!dwarf_name(die)) /* its file is part of the name that it is given */
		put_name(deep, dwarf_decl_file(die));
	if (dwarf_tag(die) == DW_TAG_enumeration_type || dwarf_child(die, &child))
		return;
	do {
		int tag = dwarf_tag(&child);

		if (tag == DW_TAG_member || tag == DW_TAG_inheritance ||
		    tag == DW_TAG_subrange_type || tag == DW_TAG_formal_parameter ||
		    tag == DW_TAG_unspecified_parameters)
			put_die(deep, &child);
	} while (deep->out.count < MAX_DEEP * 16 && dwarf_next(&child));
}

uint64_t dwarf_type_digest(struct dwarf_file *file, const struct dtype_ref *ref)
{
	struct deep deep = { .file = file };
	Dwarf_Die root = dwarf_die_of(ref);
	uint64_t hash;

	if (!ref->die)
		return 1;
	deep.met = map_new(sizeof(uint64_t), sizeof(uint32_t));
	refer(&deep, &root);
	while (deep.todo.count && map_count(deep.met) < MAX_DEEP) {
		Dwarf_Die die = deep.todo.data[--deep.todo.count];

		put_tree(&deep, &die);
	}
	hash = deep.todo.count ? 0
			       : hash_bytes(deep.out.data,
					    deep.out.count * sizeof(*deep.out.data), 0);
	map_free(deep.met);
	vec_fini(&deep.todo);
	vec_fini(&deep.out);
	return hash;
}

/* ---- not so deep */

static void reach(struct dwarf_file *file, Dwarf_Die *die, unsigned depth,
		  struct dwarf_reach *out);

static void reach_attribute(struct dwarf_file *file, Dwarf_Die *die, unsigned depth,
			    struct dwarf_reach *out)
{
	Dwarf_Attribute attr;
	Dwarf_Die target;

	if (dwarf_attr_integrate(die, DW_AT_type, &attr) &&
	    dwarf_formref_die(&attr, &target))
		reach(file, &target, depth + 1, out);
}

static void reach_params(struct dwarf_file *file, Dwarf_Die *die, unsigned depth,
			 struct dwarf_reach *out)
{
	Dwarf_Die child;
	unsigned count = 0;

	reach_attribute(file, die, depth, out);
	if (dwarf_child(die, &child))
		return;
	do {
		if (dwarf_tag(&child) == DW_TAG_formal_parameter)
			reach_attribute(file, &child, depth, out);
	} while (++count < DWARF_MAX_DIES && dwarf_next(&child));
}

static void reach(struct dwarf_file *file, Dwarf_Die *die, unsigned depth,
		  struct dwarf_reach *out)
{
	Dwarf_Attribute attr;
	Dwarf_Die other;

	if (depth > DWARF_MAX_CHAIN)
		return;
	switch (dwarf_tag(die)) {
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_class_type:
		if (dwarf_attr(die, DW_AT_signature, &attr) &&
		    dwarf_formref_die(&attr, &other))
			die = &other;
		else if (dwarf_hasattr(die, DW_AT_declaration) &&
			 definition_of(file, die, &other))
			die = &other;
		vec_push(out,
			 ((struct dwarf_reached){
				 dtype_get(file->types, dwarf_type_at(file, die))->hash,
				 { .die = die->addr, .unit = die->cu } }));
		break;
	case DW_TAG_subroutine_type:
		reach_params(file, die, depth, out);
		break;
	default:
		reach_attribute(file, die, depth, out);
	}
}

static void reach_proto(struct dwarf_file *file, const struct dtype_ref *ref,
			struct dwarf_reach *out)
{
	Dwarf_Die die = dwarf_proto_die(ref);

	reach_params(file, &die, 0, out);
}

void dwarf_reach_function(struct dwarf_file *file, const struct dwarf_function *function,
			  struct dwarf_reach *out)
{
	reach_proto(file, &function->ref, out);
}

void dwarf_reach_named(struct dwarf_file *file, const char *name, struct dwarf_reach *out)
{
	uint64_t hash = hash_text(name, 0);
	const struct dtype_ref *ref = map_find(file->protos, &hash);

	if (ref)
		reach_proto(file, ref, out);
}

void dwarf_reach_global(struct dwarf_file *file, const struct dwarf_global *global,
			struct dwarf_reach *out)
{
	/* It is the first member. */
	const struct known_global *known = (const struct known_global *)global;
	Dwarf_Die die = dwarf_die_of(&known->ref);

	reach_attribute(file, &die, 0, out);
}

void dwarf_reach_type(struct dwarf_file *file, const struct dtype_ref *ref,
		      struct dwarf_reach *out)
{
	Dwarf_Die die = dwarf_die_of(ref);

	reach(file, &die, 0, out);
}
