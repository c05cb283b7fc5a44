// SPDX-License-Identifier: Apache-2.0
/*
 * The scopes of one function, flattened: every variable of the function, its lexical
 * blocks and its inlined calls, with each place it lives at and the code range that
 * this holds for. Static locals become globals when a walk comes across them.
 */
#include "bin/dwarf_impl.h"

#include <string.h>

struct scope_walk {
	struct dwarf_file *file;
	struct dwarf_scopes *scopes;
	struct dwarf_place frame; /* base for DW_OP_fbreg */
	bool has_frame;
	uint32_t dies;
};

struct scope {
	const struct dwarf_range *ranges;
	uint32_t count;
	unsigned depth;
};

struct ranges {
	struct dwarf_range *data;
	size_t count, room;
};

static void add_var(struct scope_walk *walk, const struct dwarf_var *var,
		    const struct dwarf_place *place, const struct dwarf_range *range)
{
	if (walk->scopes->vars.count >= DWARF_MAX_VARS || range->lo >= range->hi)
		return;

	struct dwarf_var *added = vec_add(&walk->scopes->vars);

	*added = *var;
	added->lo = range->lo;
	added->hi = range->hi;
	added->where = place->where;
	added->reg = place->reg;
	added->offset = place->offset;
	added->piece_offset = place->piece_offset;
	added->piece_bytes = place->piece_bytes;
}

static void add_places(struct scope_walk *walk, const struct scope *scope,
		       const struct dwarf_var *var, const struct dwarf_place *places,
		       size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (uint32_t r = 0; r < scope->count; r++)
			add_var(walk, var, &places[i], &scope->ranges[r]);
}

static void add_static(struct dwarf_file *file, Dwarf_Die *die,
		       const struct dwarf_var *var, const struct dwarf_place *place)
{
	struct known_global known = { .global = { .va = (uint64_t)place->offset,
						  .name = var->name },
				      .ref = { .die = die->addr, .unit = die->cu } };
	bool is_tls = place->where == DWARF_IN_TLS;
	struct known_globals *statics = is_tls ? &file->tls_statics : &file->statics;
	uint64_t offset;

	if (statics->count >= DWARF_MAX_GLOBALS || (!is_tls && !known.global.va))
		return;
	if (is_tls ? dwarf_tls_at(file, known.global.va, &offset)
		   : dwarf_global_at(file, known.global.va, &offset))
		return;
	vec_push(statics, known);
	statics->is_sorted = false;
}

static void add_variable(struct scope_walk *walk, Dwarf_Die *die,
			 const struct scope *scope)
{
	struct dwarf_place places[DWARF_MAX_PIECES];
	const struct dwarf_place *frame = walk->has_frame ? &walk->frame : NULL;
	struct dwarf_var var = { .depth = (uint8_t)scope->depth,
				 .is_param = dwarf_tag(die) == DW_TAG_formal_parameter };
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t count;
	Dwarf_Addr base, lo, hi;

	if (!dwarf_attr_integrate(die, DW_AT_location, &attr))
		return;
	var.type = dtype_whole(walk->file->types, dwarf_type_of(walk->file, die));
	var.name = dwarf_any_name(die);

	unsigned form = dwarf_whatform(&attr);

	if (form == DW_FORM_exprloc || form == DW_FORM_block1 || form == DW_FORM_block2 ||
	    form == DW_FORM_block4 || form == DW_FORM_block) {
		if (dwarf_getlocation(&attr, &ops, &count))
			return;
		count = dwarf_places(&attr, ops, count, frame, places);
		if (count == 1 && (places[0].where == DWARF_AT_ADDRESS ||
				   places[0].where == DWARF_IN_TLS))
			add_static(walk->file, die, &var, &places[0]);
		else
			add_places(walk, scope, &var, places, count);
		return;
	}

	ptrdiff_t at = 0;
	uint32_t entries = 0;

	while ((at = dwarf_getlocations(&attr, at, &base, &lo, &hi, &ops, &count)) > 0 &&
	       ++entries < DWARF_MAX_RANGES) {
		struct dwarf_range range = { lo, hi };
		size_t found = dwarf_places(&attr, ops, count, frame, places);

		for (size_t i = 0; i < found; i++)
			add_var(walk, &var, &places[i], &range);
	}
}

static void add_call(struct scope_walk *walk, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die callee;
	Dwarf_Addr va;

	if (!dwarf_attr(die, DW_AT_call_return_pc, &attr) &&
	    !dwarf_attr(die, DW_AT_low_pc, &attr))
		return;
	if (dwarf_formaddr(&attr, &va))
		return;
	if (!dwarf_attr(die, DW_AT_call_origin, &attr) &&
	    !dwarf_attr(die, DW_AT_abstract_origin, &attr))
		return;
	if (!dwarf_formref_die(&attr, &callee))
		return;
	vec_push(&walk->scopes->calls,
		 ((struct dwarf_call){ va, dwarf_proto_of(walk->file, &callee) }));
}

/* The code of an inner scope, or its parent's when it does not say. */
static struct scope inner_scope(Dwarf_Die *die, const struct scope *outer,
				struct ranges *room)
{
	struct scope inner = { .depth = outer->depth + 1 };
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	while (room->count < DWARF_MAX_RANGES &&
	       (at = dwarf_ranges(die, at, &base, &lo, &hi)) > 0)
		if (lo < hi)
			vec_push(room, ((struct dwarf_range){ lo, hi }));
	inner.ranges = room->count ? room->data : outer->ranges;
	inner.count = room->count ? (uint32_t)room->count : outer->count;
	return inner;
}

static void walk_scope(struct scope_walk *walk, Dwarf_Die *parent,
		       const struct scope *scope)
{
	Dwarf_Die die;

	if (scope->depth >= DWARF_MAX_SCOPES || dwarf_child(parent, &die))
		return;
	do {
		if (++walk->dies > DWARF_MAX_DIES)
			return;
		switch (dwarf_tag(&die)) {
		case DW_TAG_variable:
		case DW_TAG_formal_parameter:
			add_variable(walk, &die, scope);
			break;
		case DW_TAG_lexical_block:
		case DW_TAG_inlined_subroutine: {
			struct ranges room = { 0 };
			struct scope inner = inner_scope(&die, scope, &room);

			walk_scope(walk, &die, &inner);
			vec_fini(&room);
			break;
		}
		case DW_TAG_call_site:
		case DW_TAG_GNU_call_site:
			add_call(walk, &die);
			break;
		}
	} while (dwarf_next(&die));
}

static void find_frame(struct scope_walk *walk, Dwarf_Die *die)
{
	struct dwarf_place places[DWARF_MAX_PIECES];
	Dwarf_Attribute attr;
	Dwarf_Op *ops;
	size_t count;

	if (!dwarf_attr_integrate(die, DW_AT_frame_base, &attr) ||
	    dwarf_getlocation(&attr, &ops, &count) ||
	    dwarf_places(&attr, ops, count, NULL, places) != 1)
		return;
	walk->frame = places[0];
	if (walk->frame.where == DWARF_IN_REGISTER)
		walk->frame.where = DWARF_AT_REGISTER;
	walk->has_frame = true;
}

static int by_return_va(const void *a, const void *b)
{
	const struct dwarf_call *x = a, *y = b;

	return x->return_va < y->return_va ? -1 : x->return_va > y->return_va;
}

void dwarf_scopes(struct dwarf_file *file, const struct dwarf_function *function,
		  struct dwarf_scopes *scopes)
{
	struct scope_walk walk = { .file = file, .scopes = scopes };
	struct scope scope = { .ranges = function->ranges,
			       .count = function->range_count };
	Dwarf_Die die = dwarf_die_of(&function->ref);

	find_frame(&walk, &die);
	walk_scope(&walk, &die, &scope);
	if (scopes->calls.count)
		qsort(scopes->calls.data, scopes->calls.count,
		      sizeof(*scopes->calls.data), by_return_va);
}

void dwarf_scopes_fini(struct dwarf_scopes *scopes)
{
	vec_fini(&scopes->vars);
	vec_fini(&scopes->calls);
}
