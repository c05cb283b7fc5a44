// SPDX-License-Identifier: Apache-2.0
/*
 * Seeds, fact sets, and the step from an address to the objects it may lie in.
 */
#include "types/around.h"
#include "types/facts.h"
#include "types/tls.h"

#include <string.h>

#include "core/mem.h"

/* ---- sets */

static void insert(struct facts *facts, struct clue_set *set, const struct clue *fact)
{
	if (set->count == set->room) {
		uint8_t room = set->room ? (uint8_t)(set->room * 2) : 2;
		struct clue *grown;

		if (room > FACTS_MAX)
			room = FACTS_MAX;
		grown = arena_array(facts->arena, room, sizeof(*grown));
		if (set->count)
			memcpy(grown, set->data, set->count * sizeof(*grown));
		set->data = grown;
		set->room = room;
	}
	set->data[set->count++] = *fact;
}

static void note_change(struct facts *facts, struct clue_set *set)
{
	set->stamp = (uint8_t)facts->round;
	facts->has_changed = true;
}

/* Two offsets a whole number of elements apart show that the type is stepped through;
 * not so when the size is one that any index is a multiple of. */
static void note_step(struct facts *facts, const struct clue *old,
		      const struct clue *fact)
{
	const struct dtype *type = dtype_get(facts->recover->types, fact->type);
	bool is_power = !(type->bytes & (type->bytes - 1));

	if (old->offset == fact->offset || type->bytes <= 8 ||
	    !dtype_is_aggregate(facts->recover->types, fact->type))
		return;
	if ((fact->origin == ORIGIN_DWARF && old->origin == ORIGIN_DWARF) ||
	    (facts->is_merging && !is_power))
		unit_add_step(facts->unit, fact->type);
}

void facts_add(struct facts *facts, uint32_t node, const struct clue *new_fact)
{
	struct dtypes *types = facts->recover->types;
	struct clue fact = *new_fact;
	struct clue_set *set = &facts->sets[node];
	const struct dtype *type;
	struct clue *found = NULL;
	unsigned same = 0;

	if (node < 2 || node == FLOW_NONE || fact.offset != flow_bounded(fact.offset))
		return;
	fact.type = unit_own(facts->recover, facts->unit, dtype_whole(types, fact.type));
	if (dtype_get(types, fact.type)->kind == DTYPE_ARRAY) {
		int64_t before = fact.offset;

		dtype_normal(types, &fact.type, &fact.offset);
		if (before < 0)
			fact.offset = before;
	}
	type = dtype_get(types, fact.type);
	if (type->kind == DTYPE_VOID || type->kind == DTYPE_INCOMPLETE ||
	    (!type->bytes && type->kind != DTYPE_FUNCTION))
		return;
	for (uint8_t i = 0; i < set->count && !found; i++) {
		struct clue *old = &set->data[i];

		if (old->type != fact.type)
			continue;
		if (old->offset == fact.offset ||
		    (type->bytes &&
		     (fact.offset - old->offset) % (int64_t)type->bytes == 0)) {
			note_step(facts, old, &fact);
			found = old;
		}
		same++;
	}
	if (!found) {
		if (same >= FACTS_MAX_SAME || set->count >= FACTS_MAX)
			return;
		insert(facts, set, &fact);
		note_change(facts, set);
		return;
	}
	if (fact.origin < found->origin || (fact.is_direct && !found->is_direct))
		note_change(facts, set);
	if (fact.origin < found->origin)
		found->origin = fact.origin;
	found->is_direct |= fact.is_direct;
}

/* ---- candidates */

static void offer(struct candidates *list, uint32_t type, int64_t offset, uint8_t origin,
		  bool is_indexed)
{
	if (list->count < CANDIDATES_MAX)
		list->data[list->count++] =
			(struct candidate){ .type = type,
					    .offset = offset,
					    .origin = origin,
					    .is_indexed = is_indexed,
					    .is_direct = origin <= ORIGIN_PARAM };
}

static void offer_normal(struct facts *facts, struct candidates *list, uint32_t type,
			 int64_t offset, uint8_t origin, bool is_indexed)
{
	dtype_normal(facts->recover->types, &type, &offset);
	offer(list, type, offset, origin, is_indexed);
}

/* The constant part of the index, in bytes. */
static int64_t facts_bias(const struct facts *facts, const struct flow_access *access)
{
	return flow_bounded(
		flow_times(flow_constant(facts->flow, access->index), access->scale));
}

int64_t facts_unbias(struct facts *facts, uint32_t type, int64_t offset,
		     const struct flow_access *access)
{
	struct dtypes *types = facts->recover->types;
	uint64_t bytes = dtype_get(types, type)->bytes, step;
	int64_t bias;

	if (access->index.node == FLOW_NONE || !dtype_is_aggregate(types, type) || !bytes)
		return offset;
	step = flow_multiple(facts->flow, access->index) * access->scale;
	if (unit_steps(facts->unit, type) && !(step % bytes))
		return offset;
	if (dtype_in_array(types, type, offset))
		return offset;
	bias = facts_bias(facts, access);
	if (bias && dtype_in_array(types, type, offset + bias))
		return offset + bias;
	/* An index that runs through something smaller: through an array inside. */
	if (step && step < bytes && step >= access->width)
		dtype_array_near(types, type, &offset, step);
	return offset;
}

#define LOWEST_ADDRESS 0x1000

static void offer_global(struct facts *facts, const struct flow_access *access,
			 int64_t base, struct candidates *list)
{
	bool is_indexed = access->index.node != FLOW_NONE;
	uint64_t va = (uint64_t)base + (uint64_t)access->disp, offset;
	const struct dwarf_global *global = NULL;

	if (va <= LOWEST_ADDRESS)
		return;
	global = dwarf_global_at(facts->recover->dwarf, va, &offset);
	if (global) {
		offer_normal(facts, list, global->type,
			     facts_unbias(facts, global->type, (int64_t)offset, access),
			     ORIGIN_PARAM, is_indexed);
		return;
	}
	/* the displacement may have led out of it, with an index that leads back in */
	if (base <= LOWEST_ADDRESS || !is_indexed)
		return;
	global = dwarf_global_at(facts->recover->dwarf, (uint64_t)base, &offset);
	if (global)
		offer_normal(facts, list, global->type,
			     flow_plus((int64_t)offset, flow_bounded(access->disp)),
			     ORIGIN_PARAM, true);
}

struct seed_point facts_point(const struct facts *facts, uint32_t insn)
{
	return (struct seed_point){ facts->code->insns.data[insn].va,
				    facts->frames[insn].offset, facts->frames[insn].reg };
}

static void offer_frame(struct facts *facts, const struct flow_access *access,
			int64_t base, struct candidates *list)
{
	struct dtypes *types = facts->recover->types;
	bool is_indexed = access->index.node != FLOW_NONE;
	int64_t offset = base + access->disp, into;
	struct seed_point point = facts_point(facts, access->insn);
	const struct dwarf_var *object =
		seed_object(&facts->seed, types, &point, offset, &into);

	if (!object && is_indexed) {
		int64_t bias = facts_bias(facts, access);

		if (bias)
			object = seed_object(&facts->seed, types, &point, offset + bias,
					     &into);
	}
	if (object) {
		if (!seed_is_part(types, object))
			offer_normal(facts, list, object->type, into, ORIGIN_DWARF,
				     is_indexed);
		return;
	}
	vec_each(&facts->frame_objects, passed)
		if (dtype_is_aggregate(types, passed->type) && offset >= passed->offset &&
		    offset - passed->offset <
			    (int64_t)dtype_get(types, passed->type)->bytes)
			offer(list, passed->type, offset - passed->offset, ORIGIN_ARG,
			      is_indexed);
}

static void offer_facts(struct facts *facts, const struct flow_access *access,
			struct flow_ref ref, bool is_index, struct candidates *list)
{
	const struct clue_set *set = &facts->sets[ref.node];

	if (is_index && facts->flow->nodes.data[ref.node].is_int)
		return;
	for (uint8_t i = 0; i < set->count; i++) {
		int64_t offset = set->data[i].offset + ref.delta + access->disp;

		if (!is_index)
			offset = facts_unbias(facts, set->data[i].type, offset, access);
		offer(list, set->data[i].type, offset, set->data[i].origin,
		      access->index.node != FLOW_NONE);
		if (list->count)
			list->data[list->count - 1].is_direct |= set->data[i].is_direct;
	}
}

/* A per-CPU variable's address is a small number, here the displacement; registers
 * index into it. */
static void offer_per_cpu(struct facts *facts, const struct flow_access *access,
			  struct candidates *list)
{
	bool is_plain = access->base.node == FLOW_NONE && access->index.node == FLOW_NONE;
	uint64_t va = (uint64_t)access->disp, offset;
	const struct dwarf_global *global;

	if (access->base.node != FLOW_NONE)
		va += (uint64_t)access->base.delta;
	global = dwarf_global_at(facts->recover->dwarf, va, &offset);
	if (global)
		offer_normal(facts, list, global->type, (int64_t)offset, ORIGIN_PARAM,
			     !is_plain);
}

static void offer_tls(struct facts *facts, const struct flow_access *access,
		      struct candidates *list)
{
	const struct dwarf_global *global;
	uint64_t at, offset;

	if (access->segment == INSN_FS && access->base.node == 0)
		at = (uint64_t)access->base.delta + facts->recover->tls_bytes;
	else if (!tls_address(facts, access->base, access->segment == INSN_FS, &at))
		return;
	global =
		dwarf_tls_at(facts->recover->dwarf, at + (uint64_t)access->disp, &offset);
	if (global)
		offer_normal(facts, list, global->type, (int64_t)offset, ORIGIN_PARAM,
			     access->index.node != FLOW_NONE);
}

static void offer_segment(struct facts *facts, const struct flow_access *access,
			  struct candidates *list)
{
	struct recover *recover = facts->recover;
	const struct dwarf_global *global = NULL;
	uint64_t offset;

	/* In the kernel gs adds the distance to this CPU's copy: a per-CPU pointer is
	 * as good as one to the object itself. */
	if (access->segment == INSN_GS && access->base.node != FLOW_NONE &&
	    access->base.node > 1)
		offer_facts(facts, access, access->base, false, list);
	if (access->segment == INSN_GS && !list->count &&
	    (access->index.node != FLOW_NONE || access->base.node != 0)) {
		offer_per_cpu(facts, access, list);
		return;
	}
	if (access->segment == INSN_FS)
		offer_tls(facts, access, list);
	if (access->index.node != FLOW_NONE || list->count)
		return;
	if (access->segment == INSN_FS && access->base.node == FLOW_NONE)
		global = dwarf_tls_at(recover->dwarf,
				      (uint64_t)access->disp + recover->tls_bytes,
				      &offset);
	else if (access->segment == INSN_GS && access->base.node == 0)
		global = dwarf_global_at(
			recover->dwarf,
			(uint64_t)access->disp + (uint64_t)access->base.delta, &offset);
	if (global)
		offer_normal(facts, list, global->type, (int64_t)offset, ORIGIN_PARAM,
			     false);
}

/* A global's address that became the displacement: what looks like the base is an
 * index into it. */
static void offer_folded(struct facts *facts, const struct flow_access *access,
			 struct candidates *list)
{
	uint64_t va = (uint64_t)access->base.delta + (uint64_t)access->disp, offset;
	const struct dwarf_global *global = NULL;

	if (va > LOWEST_ADDRESS)
		global = dwarf_global_at(facts->recover->dwarf, va, &offset);
	if (global)
		offer_normal(facts, list, global->type, (int64_t)offset, ORIGIN_PARAM,
			     true);
}

void facts_candidates(struct facts *facts, const struct flow_access *access,
		      struct candidates *list)
{
	list->count = 0;
	if (access->segment != INSN_FLAT) {
		offer_segment(facts, access, list);
		return;
	}
	for (unsigned i = 0; i < 2; i++) {
		struct flow_ref ref = i ? access->index : access->base;

		if (ref.node == FLOW_NONE || (i && access->scale != 1))
			continue;
		if (ref.node == 0)
			offer_global(facts, access, ref.delta, list);
		else if (ref.node == 1)
			offer_frame(facts, access, ref.delta, list);
		else
			offer_facts(facts, access, ref, i == 1, list);
	}
	if (!list->count)
		offer_tls(facts, access, list);
	if (!list->count && access->base.node > 1)
		offer_folded(facts, access, list);
}

#define MAX_STEPS_BACK 64 /* elements before the pointer */

bool facts_fix(struct facts *facts, uint32_t *type, int64_t *offset, bool *ret_wrapped)
{
	struct dtypes *types = facts->recover->types;
	int64_t bytes;
	bool is_stepped;

	*ret_wrapped = false;
	if (!dtype_get(types, *type)->bytes)
		return false;
	dtype_normal(types, type, offset);
	if (dtype_covers(types, *type, *offset))
		return true;
	bytes = (int64_t)dtype_get(types, *type)->bytes;
	if (!bytes)
		return false;
	is_stepped = unit_steps(facts->unit, *type);
	if (*offset >= bytes && !is_stepped)
		return false;
	if (*offset < 0 && dtype_is_aggregate(types, *type) &&
	    -*offset > bytes * (is_stepped ? MAX_STEPS_BACK : 1))
		return false;
	*offset = (*offset % bytes + bytes) % bytes;
	*ret_wrapped = true;
	return true;
}

struct ranked {
	struct candidate candidate;
	int wrapped, misfit;
	uint64_t hash; /* of the type: ids depend on who was asked for first */
};

static int by_rank(const void *a, const void *b)
{
	const struct ranked *x = a, *y = b;

	if (x->wrapped != y->wrapped)
		return x->wrapped - y->wrapped;
	if (x->misfit != y->misfit)
		return x->misfit - y->misfit;
	if (x->candidate.origin != y->candidate.origin)
		return x->candidate.origin - y->candidate.origin;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->candidate.offset < y->candidate.offset
		       ? -1
		       : x->candidate.offset > y->candidate.offset;
}

static bool rank(struct facts *facts, const struct candidate *from, uint32_t width,
		 struct ranked *ret_ranked)
{
	struct dtypes *types = facts->recover->types;
	struct ranked ranked = { .candidate = *from };
	const struct dtype *type = dtype_get(types, from->type);
	bool is_wrapped = false;

	if (dtype_is_aggregate(types, from->type) || type->kind == DTYPE_ARRAY) {
		if (!facts_fix(facts, &ranked.candidate.type, &ranked.candidate.offset,
			       &is_wrapped) ||
		    (is_wrapped && from->origin >= ORIGIN_ARG))
			return false;
		ranked.misfit = dtype_leaves_at(types, ranked.candidate.type,
						ranked.candidate.offset, width)
					->fit < DTYPE_STARTS;
	} else if (type->bytes) {
		int64_t bytes = (int64_t)type->bytes;

		ranked.misfit = type->bytes != width;
		ranked.candidate.origin++;
		is_wrapped = from->offset < 0 || from->offset >= bytes;
		ranked.candidate.offset = (from->offset % bytes + bytes) % bytes;
	} else {
		return false;
	}
	ranked.wrapped = is_wrapped;
	ranked.hash = dtype_get(types, ranked.candidate.type)->hash;
	*ret_ranked = ranked;
	return true;
}

void facts_best(struct facts *facts, const struct flow_access *access,
		struct candidates *list)
{
	struct ranked ranked[CANDIDATES_MAX];
	struct unit_place outer;
	size_t count = 0;

	facts_candidates(facts, access, list);
	for (size_t i = 0; i < list->count; i++)
		count += rank(facts, &list->data[i], 8, &ranked[count]);
	if (!count && list->count && around_beyond(facts, list, 8, &outer)) {
		*list = (struct candidates){ .count = 1 };
		list->data[0] = (struct candidate){ .type = outer.type,
						    .offset = outer.offset,
						    .origin = ORIGIN_COMPARE };
		return;
	}
	list->count = 0;
	if (count > 1)
		qsort(ranked, count, sizeof(*ranked), by_rank);
	for (size_t i = 0; i < count; i++) {
		if (ranked[i].wrapped != ranked[0].wrapped ||
		    ranked[i].misfit != ranked[0].misfit)
			break;
		if (ranked[i].candidate.origin <= ranked[0].candidate.origin + 2)
			list->data[list->count++] = ranked[i].candidate;
	}
}

const struct touched *facts_touched(const struct facts *facts, uint32_t node,
				    size_t *ret_count)
{
	size_t lo = 0, hi = facts->touched.count, first;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (facts->touched.data[middle].node < node)
			lo = middle + 1;
		else
			hi = middle;
	}
	for (first = lo;
	     lo < facts->touched.count && facts->touched.data[lo].node == node;)
		lo++;
	*ret_count = lo - first;
	return *ret_count ? facts->touched.data + first : NULL;
}

bool facts_is_touched(const struct facts *facts, uint32_t node)
{
	size_t count;

	facts_touched(facts, node, &count);
	return count != 0;
}

bool facts_fits(struct facts *facts, uint32_t node, uint32_t type, enum dtype_fit fit)
{
	struct dtypes *types = facts->recover->types;
	size_t count;
	const struct touched *touched = facts_touched(facts, node, &count);

	for (size_t i = 0; i < count; i++)
		if (!dtype_covers(types, type, touched[i].offset) ||
		    dtype_leaves_at(types, type, touched[i].offset, touched[i].width)
				    ->fit < fit)
			return false;
	return true;
}
