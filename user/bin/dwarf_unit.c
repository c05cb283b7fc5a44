// SPDX-License-Identifier: Apache-2.0
/*
 * The types that a unit describes, imports, or has in other units: the link-time optimiser
 * puts code into units of its own, whose functions refer to the ones that were compiled.
 */
#include "bin/dwarf_impl.h"

#define MAX_ORIGINS 4096 /* other units that one refers to */

struct type_walk {
	struct dwarf_file *file;
	dwarf_type_fn each;
	void *ctx;
	VEC(Dwarf_Die) origins; /* top DIEs of such units */
	const void *last;	/* the one met last */
	struct map *met;
	unsigned depth;
};

static void note_origin(struct type_walk *walk, Dwarf_Die *function)
{
	Dwarf_Attribute attr;
	Dwarf_Die origin, top;
	bool is_new;

	if (!dwarf_attr(function, DW_AT_abstract_origin, &attr) ||
	    !dwarf_formref_die(&attr, &origin) || origin.cu == function->cu ||
	    origin.cu == walk->last || walk->origins.count >= MAX_ORIGINS)
		return;
	walk->last = origin.cu;
	map_put(walk->met, &walk->last, &is_new);
	if (is_new && dwarf_cu_die(origin.cu, &top, NULL, NULL, NULL, NULL, NULL, NULL))
		vec_push(&walk->origins, top);
}

static void each_type(struct type_walk *walk, Dwarf_Die *parent, bool is_own)
{
	Dwarf_Die die, other;
	Dwarf_Attribute attr;

	if (walk->depth > DWARF_MAX_CHAIN || dwarf_child(parent, &die))
		return;
	walk->depth++;
	do {
		switch (dwarf_tag(&die)) {
		case DW_TAG_structure_type:
		case DW_TAG_union_type:
		case DW_TAG_class_type:
		case DW_TAG_typedef:
		case DW_TAG_array_type:
			walk->each(walk->ctx, dwarf_type_at(walk->file, &die));
			break;
		case DW_TAG_namespace:
			each_type(walk, &die, is_own);
			break;
		case DW_TAG_subprogram:
			if (is_own)
				note_origin(walk, &die);
			break;
		case DW_TAG_imported_unit:
			if (dwarf_attr(&die, DW_AT_import, &attr) &&
			    dwarf_formref_die(&attr, &other))
				each_type(walk, &other, false);
			break;
		}
	} while (dwarf_next(&die));
	walk->depth--;
}

void dwarf_unit_types(struct dwarf_file *file, uint32_t unit, dwarf_type_fn each,
		      void *ctx)
{
	struct type_walk walk = { .file = file, .each = each, .ctx = ctx };

	if (!unit || unit >= file->units.count)
		return;

	Dwarf_Die top = dwarf_die_of(&file->units.data[unit]);

	walk.met = map_new(sizeof(const void *), 1);
	each_type(&walk, &top, true);
	vec_each(&walk.origins, origin)
		each_type(&walk, origin, false);
	vec_fini(&walk.origins);
	map_free(walk.met);
}
