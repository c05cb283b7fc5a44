// SPDX-License-Identifier: Apache-2.0
/*
 * One pass over the top level of all units indexes functions, globals, prototypes and
 * the definitions of structs; no scope is entered. Siblings must lie ahead in the file,
 * so that damaged links cannot make a walk go round; counts and depths are limited.
 */
#include "bin/dwarf_impl.h"

#include <stdio.h>
#include <string.h>

#include "core/intern.h"
#include "core/mem.h"

static struct err *dwarf_open_failed(const char *what)
{
	return err_new(ERR_FORMAT, "%s: %s", what, dwarf_errmsg(-1));
}

static bool is_in_code(const struct dwarf_file *file, uint64_t lo, uint64_t hi)
{
	return lo && hi > lo && elf_is_code(file->code, lo);
}

/* The DIE's code ranges, into the arena. */
static uint32_t ranges_of(struct dwarf_file *file, Dwarf_Die *die,
			  const struct dwarf_range **ret_ranges)
{
	VEC(struct dwarf_range) ranges = { 0 };
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	while (ranges.count < DWARF_MAX_RANGES &&
	       (at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0)
		if (is_in_code(file, lo, hi))
			vec_push(&ranges, ((struct dwarf_range){ lo, hi }));

	uint32_t count = (uint32_t)ranges.count;

	if (count) {
		struct dwarf_range *kept = arena_array(file->arena, count, sizeof(*kept));

		memcpy(kept, ranges.data, count * sizeof(*kept));
		*ret_ranges = kept;
	}
	vec_fini(&ranges);
	return count;
}

static struct dtype_ref ref_of(const Dwarf_Die *die)
{
	return (struct dtype_ref){ .die = die->addr, .unit = die->cu };
}

static void index_function(struct dwarf_file *file, Dwarf_Die *die, uint32_t unit)
{
	struct dwarf_function function = { .unit = unit, .ref = ref_of(die) };

	if (dwarf_hasattr(die, DW_AT_low_pc) || dwarf_hasattr(die, DW_AT_ranges))
		function.range_count = ranges_of(file, die, &function.ranges);

	const char *name = dwarf_any_name(die);

	if (*name) {
		uint64_t hash = hash_text(name, 0);
		bool is_new;
		struct dtype_ref *slot = map_put(file->protos, &hash, &is_new);

		if (is_new || function.range_count)
			*slot = function.ref;
	}
	if (!function.range_count || file->functions.count >= DWARF_MAX_FUNCTIONS)
		return;
	function.name = name;
	function.va = function.ranges[0].lo;
	vec_push(&file->functions, function);
}

static void add_global(struct dwarf_file *file, Dwarf_Die *die,
		       const struct dwarf_place *place)
{
	struct known_global known = { .global = { .va = (uint64_t)place->offset },
				      .ref = ref_of(die) };

	if (file->globals.count + file->tls.count >= DWARF_MAX_GLOBALS)
		return;
	if (place->where == DWARF_AT_ADDRESS && !known.global.va)
		return;
	known.global.name = dwarf_any_name(die);
	if (place->where == DWARF_IN_TLS)
		vec_push(&file->tls, known);
	else if (place->where == DWARF_AT_ADDRESS)
		vec_push(&file->globals, known);
}

static void index_variable(struct dwarf_file *file, Dwarf_Die *die)
{
	struct dwarf_place places[DWARF_MAX_PIECES];
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t count;

	if (!dwarf_attr(die, DW_AT_location, &attr) ||
	    dwarf_getlocation(&attr, &ops, &count))
		return;
	if (dwarf_places(&attr, ops, count, NULL, places) == 1 && !places[0].piece_bytes)
		add_global(file, die, &places[0]);
}

/* Static variables of a function that is inlined stand in its abstract instance only. */
static void index_statics(struct dwarf_file *file, Dwarf_Die *parent, unsigned depth)
{
	Dwarf_Die die;

	if (depth > DWARF_MAX_SCOPES || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (++file->dies > DWARF_MAX_TOP_DIES)
			return;
		if (tag == DW_TAG_variable)
			index_variable(file, &die);
		else if (tag == DW_TAG_lexical_block)
			index_statics(file, &die, depth + 1);
	} while (dwarf_next(&die));
}

static void index_struct(struct dwarf_file *file, Dwarf_Die *die, int tag)
{
	const char *name = dwarf_name(die);

	if (!name || dwarf_hasattr(die, DW_AT_declaration))
		return;

	const char *keyword = tag == DW_TAG_union_type	 ? "union "
			      : tag == DW_TAG_class_type ? "class "
							 : "struct ";
	char full[512];

	if ((size_t)snprintf(full, sizeof(full), "%s%s", keyword, name) >= sizeof(full))
		return;

	uint64_t hash = hash_text(full, 0);
	uint64_t bytes = dwarf_number(die, DW_AT_byte_size, 0);
	bool is_new;
	struct definition *found = map_put(file->definitions, &hash, &is_new);

	if (is_new)
		*found = (struct definition){ .ref = ref_of(die), .bytes = bytes };
	else
		found->is_ambiguous |= found->bytes != bytes;
}

static void index_children(struct dwarf_file *file, Dwarf_Die *parent, uint32_t unit,
			   unsigned depth)
{
	Dwarf_Die die;

	if (depth > DWARF_MAX_SCOPES || dwarf_child(parent, &die))
		return;
	do {
		int tag = dwarf_tag(&die);

		if (++file->dies > DWARF_MAX_TOP_DIES)
			return;
		switch (tag) {
		case DW_TAG_subprogram:
			index_function(file, &die, unit);
			if (dwarf_hasattr(&die, DW_AT_inline))
				index_statics(file, &die, depth);
			break;
		case DW_TAG_variable:
			index_variable(file, &die);
			break;
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_class_type:
			index_struct(file, &die, tag);
			break;
		case DW_TAG_namespace:
		case DW_TAG_module:
			index_children(file, &die, unit, depth + 1);
			break;
		}
	} while (dwarf_next(&die));
}

static void index_assembly(struct dwarf_file *file, Dwarf_Die *top)
{
	const struct dwarf_range *ranges = NULL;
	uint32_t count = ranges_of(file, top, &ranges);

	for (uint32_t i = 0; i < count; i++)
		vec_push(&file->assembly, ranges[i]);
}

static void index_units(struct dwarf_file *file, Dwarf *dwarf)
{
	Dwarf_CU *unit = NULL;
	uint8_t kind;
	Dwarf_Half version;
	Dwarf_Die top, inner;

	while (file->units.count < DWARF_MAX_UNITS &&
	       dwarf_get_units(dwarf, unit, &unit, &version, &kind, &top, &inner) == 0) {
		if (dwarf_tag(&top) <= 0)
			continue;
		vec_push(&file->units, ref_of(&top));
		if (dwarf_srclang(&top) == DW_LANG_Mips_Assembler)
			index_assembly(file, &top);
		index_children(file, &top, (uint32_t)file->units.count - 1, 0);
	}
}

static int by_va(const void *a, const void *b)
{
	const struct dwarf_function *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

static int by_lo(const void *a, const void *b)
{
	const struct range_owner *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static int by_begin(const void *a, const void *b)
{
	const struct dwarf_range *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

bool dwarf_is_assembly(const struct dwarf_file *file, uint64_t va)
{
	size_t lo = 0, hi = file->assembly.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (file->assembly.data[middle].lo <= va)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo && va < file->assembly.data[lo - 1].hi;
}

static void sort_functions(struct dwarf_file *file)
{
	size_t kept = 0;
	struct dwarf_function *all = file->functions.data;

	if (!file->functions.count)
		return;
	qsort(all, file->functions.count, sizeof(*all), by_va);
	for (size_t i = 0; i < file->functions.count; i++)
		if (!kept || all[kept - 1].va != all[i].va)
			all[kept++] = all[i];
	file->functions.count = kept;
	for (size_t i = 0; i < kept; i++)
		for (uint32_t r = 0; r < all[i].range_count; r++)
			vec_push(&file->owners,
				 ((struct range_owner){ all[i].ranges[r].lo,
							all[i].ranges[r].hi,
							(uint32_t)i }));
	qsort(file->owners.data, file->owners.count, sizeof(*file->owners.data), by_lo);
}

static void sort_globals(struct dwarf_file *file, struct known_globals *globals);

static struct err *open_dwarf(const struct elf_file *file, Dwarf **ret_dwarf)
{
	TRY(elf_check_debug(file));
	*ret_dwarf = dwarf_begin_elf((Elf *)elf_handle(file), DWARF_C_READ, NULL);
	return *ret_dwarf ? NULL : dwarf_open_failed("debug information");
}

struct err *dwarf_open(const struct elf_file *main, const struct elf_file *debug,
		       const struct elf_file *alt, struct dwarf_file **ret_file)
{
	CLEANUP(dwarf_close) struct dwarf_file *file = mem_alloc(sizeof(*file));

	file->code = main;
	if (debug && !elf_has_dwarf(debug))
		debug = NULL;
	if (!debug && !elf_has_dwarf(main))
		return err_new(ERR_NOT_FOUND, "no debug information");
	file->holder = debug ? debug : main;
	TRY(open_dwarf(file->holder, &file->dwarf));
	/* libdw would otherwise look for the dwz file itself, all over the disk. */
	if (alt && elf_has_dwarf(alt))
		TRY(err_wrap(open_dwarf(alt, &file->alt), "dwz file"));
	if (file->alt)
		dwarf_setalt(file->dwarf, file->alt);
	file->arena = arena_new();
	file->types = dtypes_new(dwarf_type_fetch, file);
	file->type_of_die = map_new(sizeof(uint64_t), sizeof(uint32_t));
	file->definitions = map_new(sizeof(uint64_t), sizeof(struct definition));
	file->protos = map_new(sizeof(uint64_t), sizeof(struct dtype_ref));
	vec_push(&file->units, (struct dtype_ref){ 0 });
	if (file->alt)
		index_units(file, file->alt);
	index_units(file, file->dwarf);
	if (file->assembly.count)
		qsort(file->assembly.data, file->assembly.count,
		      sizeof(*file->assembly.data), by_begin);
	sort_functions(file);
	file->generation = 1;
	sort_globals(file, &file->globals);
	sort_globals(file, &file->tls);
	*ret_file = take(file);
	return NULL;
}

void dwarf_close(struct dwarf_file *file)
{
	if (!file)
		return;
	vec_fini(&file->functions);
	vec_fini(&file->owners);
	vec_fini(&file->assembly);
	vec_fini(&file->units);
	vec_fini(&file->globals);
	vec_fini(&file->tls);
	vec_fini(&file->statics);
	vec_fini(&file->tls_statics);
	map_free(file->type_of_die);
	map_free(file->definitions);
	map_free(file->protos);
	dtypes_free(file->types);
	arena_free(file->arena);
	if (file->dwarf)
		dwarf_end(file->dwarf);
	if (file->alt)
		dwarf_end(file->alt);
	free(file);
}

struct dtypes *dwarf_types(struct dwarf_file *file)
{
	return file->types;
}

const struct dwarf_function *dwarf_functions(const struct dwarf_file *file,
					     size_t *ret_count)
{
	*ret_count = file->functions.count;
	return file->functions.data;
}

const struct dwarf_function *dwarf_function_by_va(const struct dwarf_file *file,
						  uint64_t va)
{
	const struct dwarf_function key = { .va = va };

	if (!file->functions.count)
		return NULL;
	return bsearch(&key, file->functions.data, file->functions.count, sizeof(key),
		       by_va);
}

const struct dwarf_function *dwarf_function_at(const struct dwarf_file *file, uint64_t va)
{
	size_t lo = 0, hi = file->owners.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (file->owners.data[middle].lo <= va)
			lo = middle + 1;
		else
			hi = middle;
	}
	/* ranges rarely overlap; look at a few before the nearest */
	for (size_t i = lo, tries = 0; i > 0 && tries < 4; i--, tries++)
		if (va < file->owners.data[i - 1].hi)
			return &file->functions.data[file->owners.data[i - 1].function];
	return NULL;
}

struct dwarf_proto dwarf_proto(struct dwarf_file *file,
			       const struct dwarf_function *function)
{
	Dwarf_Die die = dwarf_die_of(&function->ref);

	return dwarf_proto_of(file, &die);
}

bool dwarf_proto_named(struct dwarf_file *file, const char *name,
		       struct dwarf_proto *ret_proto)
{
	uint64_t hash = hash_text(name, 0);
	const struct dtype_ref *ref = map_find(file->protos, &hash);

	if (!ref)
		return false;

	Dwarf_Die die = dwarf_die_of(ref);

	*ret_proto = dwarf_proto_of(file, &die);
	return true;
}

static int by_global_va(const void *a, const void *b)
{
	const struct known_global *x = a, *y = b;

	return x->global.va < y->global.va ? -1 : x->global.va > y->global.va;
}

static void type_global(struct dwarf_file *file, struct known_global *known)
{
	Dwarf_Die die = dwarf_die_of(&known->ref);

	if (known->generation == file->generation)
		return;
	known->global.type = dtype_whole(file->types, dwarf_type_of(file, &die));
	known->generation = file->generation;
}

/* Declared in one unit with less than another knows: the larger type is the variable. */
static void sort_globals(struct dwarf_file *file, struct known_globals *globals)
{
	struct known_global *all = globals->data;
	size_t kept = 0;

	globals->is_sorted = true;
	if (globals->count)
		qsort(all, globals->count, sizeof(*all), by_global_va);
	for (size_t i = 0; i < globals->count; i++) {
		type_global(file, &all[i]);
		all[i].bytes = dtype_get(file->types, all[i].global.type)->bytes;
		if (!kept || all[kept - 1].global.va != all[i].global.va)
			all[kept++] = all[i];
		else if (all[i].bytes > all[kept - 1].bytes)
			all[kept - 1] = all[i];
	}
	globals->count = kept;
}

static const struct dwarf_global *covering(struct dwarf_file *file,
					   struct known_globals *globals, uint64_t va,
					   uint64_t *ret_offset)
{
	size_t lo = 0, hi;

	if (!globals->is_sorted)
		sort_globals(file, globals);
	for (hi = globals->count; lo < hi;) {
		size_t middle = lo + (hi - lo) / 2;

		if (globals->data[middle].global.va <= va)
			lo = middle + 1;
		else
			hi = middle;
	}
	for (size_t i = lo, tries = 0; i > 0 && tries < 2; i--, tries++) {
		struct known_global *known = &globals->data[i - 1];

		if (va - known->global.va >= known->bytes)
			continue;
		type_global(file, known);
		*ret_offset = va - known->global.va;
		return &known->global;
	}
	return NULL;
}

void dwarf_listen(struct dwarf_file *file, struct dwarf_asked *asked)
{
	file->asked = asked;
}

void dwarf_note(struct dwarf_file *file, uint64_t va)
{
	struct dwarf_asked *asked = file ? file->asked : NULL;
	uint64_t *recent;

	if (!asked)
		return;
	recent = &asked->recent[va * 0x9e3779b97f4a7c15ull >> 56];
	if (*recent == va)
		return;
	*recent = va;
	vec_push(&asked->vas, va);
}

const struct dwarf_global *dwarf_global_at(struct dwarf_file *file, uint64_t va,
					   uint64_t *ret_offset)
{
	const struct dwarf_global *global =
		covering(file, &file->globals, va, ret_offset);

	dwarf_note(file, va);
	return global ? global : covering(file, &file->statics, va, ret_offset);
}

const struct dwarf_global *dwarf_tls_at(struct dwarf_file *file, uint64_t offset,
					uint64_t *ret_offset)
{
	const struct dwarf_global *global =
		covering(file, &file->tls, offset, ret_offset);

	if (file->asked)
		vec_push(&file->asked->tls, offset);
	return global ? global : covering(file, &file->tls_statics, offset, ret_offset);
}

uint64_t dwarf_static_bytes(struct dwarf_file *file, uint64_t va)
{
	uint64_t offset;

	covering(file, &file->statics, va, &offset); /* sorts */
	vec_each(&file->statics, known)
		if (known->global.va == va)
			return known->bytes;
	return 0;
}

uint32_t dwarf_type_by_ref(struct dwarf_file *file, const struct dtype_ref *ref)
{
	return dtype_whole(file->types, dwarf_type_fetch(file, ref));
}

const void *dwarf_unit_of(const struct dwarf_file *file, uint32_t unit)
{
	return unit < file->units.count ? file->units.data[unit].unit : NULL;
}

bool dwarf_definition(struct dwarf_file *file, uint64_t name_hash,
		      struct dtype_ref *ret_ref)
{
	const struct definition *found = map_find(file->definitions, &name_hash);

	if (!found || found->is_ambiguous)
		return false;
	*ret_ref = found->ref;
	return true;
}

struct dtypes *dwarf_enter(struct dwarf_file *file)
{
	dtypes_free(file->types);
	file->types = dtypes_new(dwarf_type_fetch, file);
	map_clear(file->type_of_die);
	vec_clear(&file->statics);
	vec_clear(&file->tls_statics);
	file->generation++;
	return file->types;
}
