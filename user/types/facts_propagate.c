// SPDX-License-Identifier: Apache-2.0
/*
 * Rounds over all nodes until no fact changes. Facts are only ever added or made more
 * direct, a node keeps FACTS_MAX of them, so it ends; FACTS_MAX_ROUNDS bounds slow
 * cases. Only direct evidence flows back through a merge, otherwise the operands of a
 * phi would infect each other.
 */
#include "types/facts.h"
#include "types/passing.h"

static const struct dtype *shape(const struct facts *facts, uint32_t type)
{
	return dtype_get(facts->recover->types, type);
}

static bool is_recent(const struct facts *facts, struct flow_ref ref)
{
	if (ref.node == FLOW_NONE || ref.node < 2)
		return false;
	return facts->sets[ref.node].stamp + 1u >= facts->round;
}

static void add(struct facts *facts, uint32_t node, uint32_t type, int64_t offset,
		uint8_t origin, bool is_direct)
{
	facts_add(facts, node,
		  &(struct clue){ .type = type,
				  .offset = offset,
				  .origin = origin,
				  .is_direct = is_direct });
}

static void do_load(struct facts *facts, uint32_t number)
{
	const struct flow_node *node = &facts->flow->nodes.data[number];
	const struct flow_access *access = &facts->flow->accesses.data[node->link];
	struct candidates from;

	if (facts->round > 1 && !is_recent(facts, access->base) &&
	    !is_recent(facts, access->index) && access->base.node != 1)
		return;
	facts_best(facts, access, &from);
	for (size_t i = 0; i < from.count; i++)
		facts_load(facts, number, &from.data[i]);
}

static uint8_t worse(uint8_t a, uint8_t b)
{
	return a > b ? a : b;
}

/* A constant or a frame address that arrives at a merge. */
static void merge_place(struct facts *facts, uint32_t number, struct flow_ref ref)
{
	struct flow_access access = { .base = ref,
				      .index = { FLOW_NONE, 0 },
				      .insn = facts->flow->nodes.data[number].insn };
	struct candidates found;

	if (ref.node == 0 && !ref.delta)
		return;
	facts_candidates(facts, &access, &found);
	for (size_t i = 0; i < found.count; i++)
		add(facts, number, found.data[i].type, found.data[i].offset, ORIGIN_PHI,
		    false);
}

/* A pointer that a loop moves by exactly the size of what it points to, and only one
 * struct that it may point to: otherwise the stride may be another one's. */
static void note_stride(struct facts *facts, uint32_t number, int64_t stride)
{
	const struct clue_set *set = &facts->sets[number];
	const struct clue *only = NULL;

	for (uint8_t i = 0; i < set->count; i++) {
		if (!dtype_is_aggregate(facts->recover->types, set->data[i].type))
			continue;
		if (only)
			return;
		only = &set->data[i];
	}
	if (only && only->origin <= ORIGIN_PARAM && (stride > 8 || stride < -8) &&
	    shape(facts, only->type)->bytes == (uint64_t)(stride < 0 ? -stride : stride))
		unit_add_step(facts->unit, only->type);
}

static void do_phi(struct facts *facts, uint32_t number)
{
	const struct flow_node *node = &facts->flow->nodes.data[number];
	const struct flow_term *terms = &facts->flow->terms.data[node->term];
	bool is_own_recent = facts->sets[number].stamp + 1u >= facts->round;

	facts->is_merging = true;
	for (uint32_t i = 0; i < node->term_count; i++) {
		struct flow_ref ref = terms[i].ref;

		if (ref.node == number)
			note_stride(facts, number, ref.delta);
		if (ref.node == number || ref.node == FLOW_NONE)
			continue;
		if (ref.node < 2) {
			if (facts->round <= 1 || ref.node == 1)
				merge_place(facts, number, ref);
			continue;
		}
		if (facts->round > 1 && !is_recent(facts, ref) && !is_own_recent)
			continue;
		for (uint8_t k = 0; k < facts->sets[ref.node].count; k++) {
			struct clue clue = facts->sets[ref.node].data[k];

			add(facts, number, clue.type, clue.offset + ref.delta,
			    worse(ORIGIN_PHI, clue.origin), false);
		}
	}
	facts->is_merging = false;
	for (uint32_t i = 0; i < node->term_count; i++) {
		struct flow_ref ref = terms[i].ref;

		if (ref.node == number || ref.node < 2 || ref.node == FLOW_NONE)
			continue;
		for (uint8_t k = 0; k < facts->sets[number].count; k++) {
			struct clue clue = facts->sets[number].data[k];

			if (clue.is_direct)
				add(facts, ref.node, clue.type, clue.offset - ref.delta,
				    ORIGIN_BACK, true);
		}
	}
}

/* The function type behind an indirect call's target. */
static uint32_t target_type(const struct facts *facts, const struct flow_call *call)
{
	const struct clue_set *set;

	if (call->target.node == FLOW_NONE || call->target.node < 2)
		return 0;
	set = &facts->sets[call->target.node];
	for (uint8_t i = 0; i < set->count; i++)
		if (shape(facts, set->data[i].type)->kind == DTYPE_FUNCTION)
			return set->data[i].type;
	return 0;
}

static uint32_t call_type(struct facts *facts, const struct flow_call *call)
{
	struct dwarf_proto proto;

	if (facts_callee(facts->recover, &facts->code->insns.data[call->insn], &proto))
		return proto.type;
	return target_type(facts, call);
}

static void do_call(struct facts *facts, uint32_t number)
{
	const struct flow_node *node = &facts->flow->nodes.data[number];
	uint32_t type = call_type(facts, &facts->flow->calls.data[node->link]);
	struct passing passing;

	if (!type)
		return;
	passing_of(facts->recover->types, type, FLOW_MAX_ARGS, &passing);
	if (passing.result)
		add(facts, number, passing.result, 0, ORIGIN_PARAM, false);
}

#define LARGEST_STEP (1u << 19) /* beyond it a common divisor means nothing */

/* May a pointer to @type move by multiples of @step and still point to one? */
static bool may_step(struct facts *facts, uint32_t type, uint64_t step)
{
	struct dtypes *types = facts->recover->types;
	uint64_t bytes = shape(facts, type)->bytes;
	size_t count;
	const uint32_t *steps;

	if (!bytes || !dtype_is_aggregate(types, type) || !(step % bytes))
		return true;
	steps = dtype_array_steps(types, type, &count);
	for (size_t i = 0; i < count; i++)
		if (!(step % steps[i]))
			return true;
	return false;
}

/* The variable part counts as 0; a constant part of the index may be the offset of the
 * array that it indexes. */
static int64_t indexed_offset(struct facts *facts, const struct candidate *from,
			      int64_t constant)
{
	struct dtypes *types = facts->recover->types;

	if (constant && dtype_is_aggregate(types, from->type) &&
	    !dtype_in_array(types, from->type, from->offset) &&
	    dtype_in_array(types, from->type, from->offset + constant))
		return from->offset + constant;
	return from->offset;
}

static void sum_one(struct facts *facts, uint32_t number, const struct candidate *from,
		    uint64_t step, int64_t constant)
{
	uint64_t bytes = shape(facts, from->type)->bytes;

	if (bytes > 8 && (bytes & (bytes - 1)) && step && step < LARGEST_STEP &&
	    !(step % bytes) && dtype_is_aggregate(facts->recover->types, from->type))
		unit_add_step(facts->unit, from->type);
	if (!may_step(facts, from->type, step))
		return;
	add(facts, number, from->type, indexed_offset(facts, from, constant),
	    worse(from->origin, ORIGIN_SUM), false);
}

static void sum_side(struct facts *facts, uint32_t number, struct flow_ref ref,
		     uint64_t step, int64_t constant)
{
	struct flow_access access = { .base = ref,
				      .index = { FLOW_NONE, 0 },
				      .insn = facts->flow->nodes.data[number].insn };
	struct candidates found;

	if (ref.node == FLOW_NONE ||
	    (ref.node > 1 && facts->flow->nodes.data[ref.node].is_int) ||
	    (ref.node == 0 && !ref.delta))
		return;
	facts_candidates(facts, &access, &found);
	for (size_t i = 0; i < found.count; i++) {
		if (ref.node == 1)
			add(facts, number, found.data[i].type, found.data[i].offset,
			    ORIGIN_SUM, false);
		else
			sum_one(facts, number, &found.data[i], step, constant);
	}
}

static uint64_t step_of(const struct flow *flow, const struct flow_term *term)
{
	uint64_t multiple = flow_multiple(flow, term->ref);
	uint64_t factor = (uint64_t)(term->factor < 0 ? -term->factor : term->factor);

	return (multiple ? multiple : 1u << 20) * factor;
}

static void do_sum(struct facts *facts, uint32_t number)
{
	struct flow *flow = facts->flow;
	const struct flow_node *node = &flow->nodes.data[number];
	struct flow_term x = flow->terms.data[node->term];
	struct flow_term y = flow->terms.data[node->term + 1];
	uint64_t step_x = step_of(flow, &x), step_y = step_of(flow, &y);
	const struct flow_term *pointer = NULL;
	uint64_t step = 0;

	sum_side(facts, number, x.ref, step_y,
		 y.ref.node
			 ? flow_bounded(flow_times(flow_constant(flow, y.ref), y.factor))
			 : 0);
	if (y.factor == 1)
		sum_side(facts, number, y.ref, step_x, 0);
	if (y.factor != 1 || (y.ref.node > 1 && flow->nodes.data[y.ref.node].is_int) ||
	    step_y > 1) {
		pointer = &x;
		step = step_y;
	} else if ((x.ref.node > 1 && flow->nodes.data[x.ref.node].is_int) ||
		   step_x > 1) {
		pointer = &y;
		step = step_x;
	}
	if (!pointer || pointer->ref.node < 2 || pointer->ref.node == FLOW_NONE ||
	    flow->nodes.data[pointer->ref.node].is_int)
		return;
	for (uint8_t i = 0; i < facts->sets[number].count; i++) {
		struct clue clue = facts->sets[number].data[i];
		uint64_t bytes = shape(facts, clue.type)->bytes;

		if (clue.is_direct && bytes && !(step % bytes))
			add(facts, pointer->ref.node, clue.type,
			    clue.offset - pointer->ref.delta, ORIGIN_BACK, true);
	}
}

static void do_difference(struct facts *facts, uint32_t number)
{
	const struct flow_node *node = &facts->flow->nodes.data[number];
	struct flow_term x = facts->flow->terms.data[node->term];
	struct flow_term y = facts->flow->terms.data[node->term + 1];
	uint64_t step;

	if (x.ref.node < 2 || x.ref.node == FLOW_NONE ||
	    facts->flow->nodes.data[x.ref.node].is_int)
		return;
	/* the difference of two pointers is a number */
	if (y.ref.node > 1 && y.ref.node != FLOW_NONE && facts->sets[y.ref.node].count &&
	    !facts->flow->nodes.data[y.ref.node].is_int)
		return;
	step = step_of(facts->flow, &(struct flow_term){ y.ref, 1 });
	for (uint8_t i = 0; i < facts->sets[x.ref.node].count; i++) {
		struct clue clue = facts->sets[x.ref.node].data[i];
		uint64_t bytes = shape(facts, clue.type)->bytes;

		if (dtype_is_aggregate(facts->recover->types, clue.type) && bytes &&
		    step % bytes)
			continue;
		add(facts, number, clue.type, clue.offset + x.ref.delta,
		    worse(clue.origin, ORIGIN_SUM), false);
	}
}

/* ---- backwards: later uses */

static void note_frame_object(struct facts *facts, int64_t offset, uint32_t type)
{
	type = dtype_whole(facts->recover->types, type);
	vec_each(&facts->frame_objects, known)
		if (known->offset == offset && known->type == type)
			return;
	vec_push(&facts->frame_objects, ((struct frame_object){ offset, type }));
	facts->has_changed = true;
}

static void use_args(struct facts *facts, const struct flow_call *call)
{
	uint32_t type = call_type(facts, call);
	struct passing passing;

	if (!type)
		return;
	passing_of(facts->recover->types, type, call->arg_count, &passing);
	for (uint32_t i = 0; i < passing.used; i++) {
		struct flow_ref ref = call->args[i];

		if (!passing.is_pointer[i])
			continue;
		if (ref.node == 1)
			note_frame_object(facts, ref.delta, passing.pointee[i]);
		else if (ref.node != FLOW_NONE)
			add(facts, ref.node, passing.pointee[i], -ref.delta, ORIGIN_ARG,
			    true);
	}
}

static void use_stores(struct facts *facts)
{
	struct dtypes *types = facts->recover->types;

	vec_each(&facts->flow->stores, store) {
		const struct flow_access *access =
			&facts->flow->accesses.data[store->access];
		struct candidates to;

		if (store->value.node < 2 || store->value.node == FLOW_NONE)
			continue;
		if (facts->round > 1 && !is_recent(facts, access->base) &&
		    !is_recent(facts, access->index) && access->base.node != 1)
			continue;
		facts_best(facts, access, &to);
		for (size_t i = 0; i < to.count; i++) {
			const struct dtype_leaves *leaves;

			if (to.data[i].origin >= ORIGIN_BACK)
				continue;
			leaves = dtype_leaves_at(types, to.data[i].type,
						 to.data[i].offset, 8);
			for (uint32_t k = 0; k < leaves->count; k++)
				if (shape(facts, leaves->types[k])->kind == DTYPE_POINTER)
					add(facts, store->value.node,
					    dtype_target(types, leaves->types[k]),
					    -store->value.delta, ORIGIN_STORE, true);
		}
	}
}

static void use_returns(struct facts *facts)
{
	struct dtypes *types = facts->recover->types;
	uint32_t result = facts->proto.type ? dtype_target(types, facts->proto.type) : 0;

	if (shape(facts, result)->kind != DTYPE_POINTER)
		return;
	vec_each(&facts->flow->returns, pair)
		if (pair->a.node != FLOW_NONE)
			add(facts, pair->a.node, dtype_target(types, result),
			    -pair->a.delta, ORIGIN_ARG, true);
}

static void use_compare(struct facts *facts, struct flow_ref known, struct flow_ref other)
{
	if (known.node < 2 || other.node < 2 || known.node == FLOW_NONE ||
	    other.node == FLOW_NONE || facts->sets[other.node].count)
		return;
	for (uint8_t i = 0; i < facts->sets[known.node].count; i++) {
		struct clue clue = facts->sets[known.node].data[i];

		add(facts, other.node, clue.type, clue.offset + known.delta - other.delta,
		    ORIGIN_COMPARE, true);
	}
}

static void one_round(struct facts *facts)
{
	const struct flow *flow = facts->flow;

	for (uint32_t i = 2; i < flow->nodes.count; i++) {
		const struct flow_node *node = &flow->nodes.data[i];

		switch (node->kind) {
		case FLOW_LOAD:
			do_load(facts, i);
			break;
		case FLOW_PHI:
			if (node->term_count)
				do_phi(facts, i);
			break;
		case FLOW_CALL:
			do_call(facts, i);
			break;
		case FLOW_SUM:
			do_sum(facts, i);
			break;
		case FLOW_DIFF:
			do_difference(facts, i);
			break;
		}
	}
	vec_each(&flow->calls, call)
		use_args(facts, call);
	use_stores(facts);
	use_returns(facts);
	vec_each(&flow->compares, pair) {
		use_compare(facts, pair->a, pair->b);
		use_compare(facts, pair->b, pair->a);
	}
}

void facts_propagate(struct facts *facts)
{
	for (facts->round = 1; facts->round <= FACTS_MAX_ROUNDS; facts->round++) {
		facts->has_changed = false;
		one_round(facts);
		if (!facts->has_changed)
			break;
	}
}
