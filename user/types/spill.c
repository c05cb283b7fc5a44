// SPDX-License-Identifier: Apache-2.0
/*
 * Three sources, best first: the variable that debug information places in the register
 * which is stored, or which a load just filled; the facts about the value, when it is a
 * pointer; what the value was made by: a load from a known field, a call, a parameter.
 * An access with none of them goes by the others to the same bytes, and by the variable
 * that is there elsewhere in the function, if these agree: a slot may serve several
 * values in turn.
 */
#include "types/spill.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

enum source {
	SOURCE_NONE,
	SOURCE_VARIABLE,
	SOURCE_NAMED,
	SOURCE_FACTS,
	SOURCE_ORIGIN,
	SOURCE_SLOT,
};

struct value {
	uint32_t type;
	bool is_pointer;
	uint8_t source;
};

/* One access to the frame. */
struct spill {
	struct decision *decision;
	const struct insn *insn;
	struct flow_ref ref; /* FLOW_NONE: not known */
	int64_t offset;	     /* from the CFA */
	uint32_t access, width;
	struct value value;
};

struct spills {
	VEC(struct spill) all; /* by va */
};

static const struct dtype *shape(const struct facts *facts, uint32_t type)
{
	return dtype_get(facts->recover->types, type);
}

/* A value of @type; false when it is an object or nothing. */
static bool value_of(struct facts *facts, uint32_t type, uint8_t source,
		     struct value *ret_value)
{
	struct dtypes *types = facts->recover->types;
	uint32_t whole = dtype_whole(types, type);

	switch (shape(facts, whole)->kind) {
	case DTYPE_POINTER:
		*ret_value =
			(struct value){ dtype_whole(types, dtype_target(types, whole)),
					true, source };
		return true;
	case DTYPE_BASE:
	case DTYPE_ENUM:
		*ret_value = (struct value){ whole, false, source };
		return true;
	default:
		return false;
	}
}

/* ---- variables */

/* The register that is stored or filled; INSN_REG_NONE when it is not a plain move. */
static uint8_t moved_register(const struct insn *insn, bool *ret_store)
{
	const struct insn_arg *to = &insn->args[0], *from = &insn->args[1];

	*ret_store = to->kind == INSN_MEM;
	if (insn->op != INSN_MOVE && insn->op != INSN_EXTEND)
		return INSN_REG_NONE;
	if (*ret_store)
		return from->kind == INSN_REG && from->reg < INSN_REGS && !from->is_high
			       ? from->reg
			       : INSN_REG_NONE;
	return to->kind == INSN_REG && to->reg < INSN_REGS ? to->reg : INSN_REG_NONE;
}

/* A piece of an object taken apart has the type of the field there. */
static bool value_of_variable(struct facts *facts, const struct dwarf_var *var,
			      uint32_t width, struct value *ret_value)
{
	struct dtypes *types = facts->recover->types;
	uint32_t type = dtype_whole(types, var->type);

	if (var->where != DWARF_IN_REGISTER)
		return false;
	if (dtype_is_aggregate(types, type)) {
		const struct dtype_leaves *leaves =
			dtype_leaves_at(types, type, var->piece_offset, width);

		return leaves->count == 1 &&
		       value_of(facts, leaves->types[0], SOURCE_VARIABLE, ret_value);
	}
	return value_of(facts, type, SOURCE_VARIABLE, ret_value) &&
	       shape(facts, type)->bytes == width;
}

static void ask_variables(struct facts *facts, struct spills *spills)
{
	struct seed seed;

	seed_init(&seed, facts->code);
	vec_each(&spills->all, spill) {
		bool is_store;
		uint8_t reg = moved_register(spill->insn, &is_store);

		if (reg == INSN_REG_NONE)
			continue;
		seed_advance(&seed,
			     spill->insn->va + (is_store ? 0 : spill->insn->bytes));
		/* inner scopes come last */
		for (size_t i = seed.live[reg].count; i-- && !spill->value.source;)
			if (!value_of_variable(facts, seed.live[reg].data[i],
					       spill->width, &spill->value))
				spill->value.source = SOURCE_NONE;
	}
	seed_fini(&seed);
}

/* ---- values */

static int by_node(const void *a, const void *b)
{
	const struct attached *x = a, *y = b;

	if (x->ref.node != y->ref.node)
		return x->ref.node < y->ref.node ? -1 : 1;
	if (x->ref.delta != y->ref.delta)
		return x->ref.delta < y->ref.delta ? -1 : 1;
	return x->type < y->type ? -1 : x->type > y->type;
}

static void sort_named(struct facts *facts)
{
	vec_each(&facts->named, named)
		named->ref = flow_settle(facts->flow, named->ref);
	if (facts->named.count)
		qsort(facts->named.data, facts->named.count, sizeof(*facts->named.data),
		      by_node);
}

/* The one type of the variables that ever have this value. */
static bool named_value(struct facts *facts, struct flow_ref ref, struct value *ret_value)
{
	size_t lo = 0, hi = facts->named.count;
	uint32_t type = 0;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;
		const struct flow_ref *at = &facts->named.data[middle].ref;

		if (at->node < ref.node ||
		    (at->node == ref.node && at->delta < ref.delta))
			lo = middle + 1;
		else
			hi = middle;
	}
	for (; lo < facts->named.count && facts->named.data[lo].ref.node == ref.node &&
	       facts->named.data[lo].ref.delta == ref.delta;
	     lo++) {
		if (type && facts->named.data[lo].type != type)
			return false;
		type = facts->named.data[lo].type;
	}
	return type && value_of(facts, type, SOURCE_NAMED, ret_value);
}

static bool known_pointer(struct facts *facts, struct flow_ref ref,
			  struct value *ret_value)
{
	const struct clue_set *set = &facts->sets[ref.node];
	const struct clue *best = NULL;

	for (uint8_t i = 0; i < set->count; i++) {
		const struct clue *clue = &set->data[i];

		if (clue->origin >= ORIGIN_COMPARE)
			continue;
		if (best && best->origin == clue->origin && best->type != clue->type)
			return false;
		if (!best || clue->origin < best->origin)
			best = clue;
	}
	if (!best)
		return false;
	*ret_value = (struct value){ best->type, true, SOURCE_FACTS };
	return true;
}

/* The access of an instruction that loads one value. */
static const struct flow_access *loaded_by(const struct facts *facts, uint32_t insn)
{
	const struct flow *flow = facts->flow;
	uint8_t op = facts->code->insns.data[insn].op;
	size_t lo = 0, hi = flow->accesses.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (flow->accesses.data[middle].insn < insn)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (lo == flow->accesses.count || flow->accesses.data[lo].insn != insn ||
	    (op != INSN_MOVE && op != INSN_EXTEND))
		return NULL;
	return &flow->accesses.data[lo];
}

static bool loaded_value(struct facts *facts, uint32_t insn, struct value *ret_value)
{
	const struct flow_access *access = loaded_by(facts, insn);
	struct candidates from;

	if (!access || access->access != ACCESS_LOAD)
		return false;
	facts_best(facts, access, &from);
	if (!from.count)
		return false;

	const struct candidate *best = &from.data[0];

	if (!dtype_is_aggregate(facts->recover->types, best->type))
		return shape(facts, best->type)->bytes == access->width &&
		       value_of(facts, best->type, SOURCE_ORIGIN, ret_value);

	const struct dtype_leaves *leaves = dtype_leaves_at(
		facts->recover->types, best->type, best->offset, access->width);

	return leaves->fit == DTYPE_EXACT && leaves->count == 1 &&
	       value_of(facts, leaves->types[0], SOURCE_ORIGIN, ret_value);
}

static bool parameter_value(struct facts *facts, uint8_t reg, struct value *ret_value)
{
	const struct insn_abi *abi = insn_abi(facts->recover->decoder);
	const struct dtype *function = shape(facts, facts->proto.type);

	/* by position only where every one before takes one register */
	for (uint8_t i = 0; i < abi->arg_count && i < function->member_count; i++) {
		const struct dtype *param = shape(
			facts, dtype_whole(facts->recover->types, function->params[i]));

		if (param->is_float || param->kind == DTYPE_STRUCT ||
		    param->kind == DTYPE_UNION)
			return false;
		if (abi->args[i] == reg)
			return value_of(facts, function->params[i], SOURCE_ORIGIN,
					ret_value);
	}
	return false;
}

#define MAX_TERMS_DEPTH 4

static bool made_by(struct facts *facts, struct flow_ref ref, unsigned depth,
		    struct value *ret_value);

/* Of arithmetic and merges: what all operands but constants are. */
static bool operands_value(struct facts *facts, const struct flow_node *node,
			   unsigned depth, struct value *ret_value)
{
	struct value only = { 0 };

	for (uint32_t i = 0; i < node->term_count; i++) {
		struct flow_ref ref = facts->flow->terms.data[node->term + i].ref;
		struct value value;

		if (ref.node == 0 || ref.node == FLOW_NONE)
			continue;
		if (depth >= MAX_TERMS_DEPTH || ref.node == 1 ||
		    !made_by(facts, ref, depth + 1, &value) ||
		    (value.is_pointer && node->kind != FLOW_PHI) ||
		    (only.source &&
		     (only.type != value.type || only.is_pointer != value.is_pointer)))
			return false;
		only = value;
	}
	*ret_value = only;
	return only.source != SOURCE_NONE;
}

static bool made_by(struct facts *facts, struct flow_ref ref, unsigned depth,
		    struct value *ret_value)
{
	const struct flow_node *node = &facts->flow->nodes.data[ref.node];
	struct dwarf_proto proto;

	if (named_value(facts, ref, ret_value))
		return true;
	switch (node->kind) {
	case FLOW_PHI:
	case FLOW_SUM:
	case FLOW_DIFF:
	case FLOW_LINEAR:
		return operands_value(facts, node, depth, ret_value);
	case FLOW_LOAD:
	case FLOW_UNKNOWN:
		return loaded_value(facts, node->insn, ret_value);
	case FLOW_CALL:
		return facts_callee(facts->recover, &facts->code->insns.data[node->insn],
				    &proto) &&
		       value_of(facts, dtype_target(facts->recover->types, proto.type),
				SOURCE_ORIGIN, ret_value);
	case FLOW_ENTRY:
		return parameter_value(facts, node->reg, ret_value);
	default:
		return false;
	}
}

/* The guard on its way from or to its place in the frame. */
static bool is_guard(const struct facts *facts, struct flow_ref ref)
{
	const struct flow_node *node;
	const struct flow_access *access;

	if (ref.node == FLOW_NONE || ref.delta)
		return false;
	node = &facts->flow->nodes.data[ref.node];
	if (node->kind != FLOW_LOAD)
		return false;
	access = &facts->flow->accesses.data[node->link];
	return access->segment != INSN_FLAT && access->disp == CANARY_DISP &&
	       access->base.node == FLOW_NONE && access->index.node == FLOW_NONE;
}

static void ask_values(struct facts *facts, struct spills *spills)
{
	vec_each(&spills->all, spill) {
		if (spill->value.source || spill->ref.node == FLOW_NONE ||
		    spill->ref.node < 2)
			continue;
		if (spill->width == 8 && known_pointer(facts, spill->ref, &spill->value))
			continue;
		if (!made_by(facts, spill->ref, 0, &spill->value) ||
		    (!spill->value.is_pointer &&
		     shape(facts, spill->value.type)->bytes != spill->width))
			spill->value.source = SOURCE_NONE;
	}
}

/* ---- slots */

static int by_place(const void *a, const void *b)
{
	const struct spill *x = *(struct spill *const *)a, *y = *(struct spill *const *)b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	if (x->width != y->width)
		return x->width < y->width ? -1 : 1;
	return x < y ? -1 : x > y;
}

static bool is_same_slot(const struct spill *a, const struct spill *b)
{
	return a->offset == b->offset && a->width == b->width;
}

/* What debug information places in the slot elsewhere in the function; false where that
 * is of several types. */
static bool slot_variable(struct facts *facts, const struct spill *slot,
			  struct value *ret_value)
{
	struct value only = { 0 };

	vec_each(&facts->seed.objects, item) {
		const struct dwarf_var *var = *item;
		struct value value;

		if (var->where != DWARF_AT_CFA || var->offset != slot->offset ||
		    var->piece_bytes ||
		    !value_of(facts, var->type, SOURCE_SLOT, &value) ||
		    shape(facts, dtype_whole(facts->recover->types, var->type))->bytes !=
			    slot->width)
			continue;
		if (only.source &&
		    (only.type != value.type || only.is_pointer != value.is_pointer))
			return false;
		only = value;
	}
	*ret_value = only;
	return true;
}

static void settle_slot(struct facts *facts, struct spill **slot, size_t count)
{
	struct value only;

	if (!slot_variable(facts, slot[0], &only))
		return;

	for (size_t i = 0; i < count; i++) {
		const struct value *value = &slot[i]->value;

		if (!value->source)
			continue;
		if (only.source &&
		    (only.type != value->type || only.is_pointer != value->is_pointer))
			return;
		only = *value;
	}
	only.source = only.source ? SOURCE_SLOT : SOURCE_NONE;
	for (size_t i = 0; i < count; i++)
		if (!slot[i]->value.source)
			slot[i]->value = only;
}

static void ask_slots(struct facts *facts, struct spills *spills)
{
	size_t count = spills->all.count;
	struct spill **order = mem_array(count + 1, sizeof(*order));

	for (size_t i = 0; i < count; i++)
		order[i] = &spills->all.data[i];
	qsort(order, count, sizeof(*order), by_place);
	for (size_t first = 0, end; first < count; first = end) {
		for (end = first + 1;
		     end < count && is_same_slot(order[first], order[end]);)
			end++;
		settle_slot(facts, order + first, end - first);
	}
	free(order);
}

/* ---- all of a function */

static void collect(struct facts *facts, struct spills *spills)
{
	struct code *code = facts->code;
	const struct flow *flow = facts->flow;
	size_t next = 0;

	vec_each(&code->decisions, decision) {
		if (decision->verdict != VERDICT_STACK)
			continue;
		while (next < flow->accesses.count &&
		       code->insns.data[flow->accesses.data[next].insn].va < decision->va)
			next++;
		if (next == flow->accesses.count)
			break;

		const struct flow_access *access = &flow->accesses.data[next];
		const struct insn *insn = &code->insns.data[access->insn];

		if (insn->va == decision->va && access->base.node == 1 &&
		    access->index.node == FLOW_NONE)
			vec_push(&spills->all,
				 ((struct spill){ .decision = decision,
						  .insn = insn,
						  .ref = { FLOW_NONE, 0 },
						  .offset = access->base.delta +
							    access->disp,
						  .access = (uint32_t)next,
						  .width = access->width }));
	}
}

/* The three lists are in order of accesses or instructions, as the spills are. */
static void attach_values(const struct facts *facts, struct spills *spills)
{
	const struct flow *flow = facts->flow;
	size_t store = 0, narrow = 0, reload = 0;

	vec_each(&spills->all, spill) {
		while (store < flow->stores.count &&
		       flow->stores.data[store].access < spill->access)
			store++;
		while (narrow < flow->narrow.count &&
		       flow->narrow.data[narrow].access < spill->access)
			narrow++;
		while (reload < flow->reloads.count &&
		       facts->code->insns.data[flow->reloads.data[reload].insn].va <
			       spill->insn->va)
			reload++;
		if (store < flow->stores.count &&
		    flow->stores.data[store].access == spill->access)
			spill->ref = flow->stores.data[store].value;
		else if (narrow < flow->narrow.count &&
			 flow->narrow.data[narrow].access == spill->access)
			spill->ref = flow->narrow.data[narrow].value;
		else if (reload < flow->reloads.count &&
			 facts->code->insns.data[flow->reloads.data[reload].insn].va ==
				 spill->insn->va)
			spill->ref = flow->reloads.data[reload].value;
	}
}

void spill_decide(struct facts *facts)
{
	struct spills spills = { 0 };

	collect(facts, &spills);
	if (spills.all.count) {
		attach_values(facts, &spills);
		sort_named(facts);
		ask_variables(facts, &spills);
		ask_values(facts, &spills);
		ask_slots(facts, &spills);
	}
	vec_each(&spills.all, spill) {
		if (is_guard(facts, spill->ref)) {
			spill->decision->verdict = VERDICT_CANARY;
			continue;
		}
		if (!spill->value.source)
			continue;
		spill->decision->verdict = VERDICT_SPILL;
		spill->decision->type = spill->value.type;
		spill->decision->offset =
			spill->value.is_pointer ? SPILL_POINTER : SPILL_VALUE;
	}
	vec_fini(&spills.all);
}

#define MAX_STARS 4

bool spill_text(struct recover *recover, const struct decision *decision, struct str *out)
{
	struct dtypes *types = recover->types;
	uint32_t type = decision->type;
	unsigned stars = decision->offset == SPILL_POINTER;
	const char *name;

	while (dtype_get(types, type)->kind == DTYPE_POINTER && stars < MAX_STARS) {
		type = dtype_whole(types, dtype_target(types, type));
		stars++;
	}
	if (dtype_get(types, type)->kind == DTYPE_ARRAY)
		type = dtype_whole(types, dtype_target(types, type));
	name = dtype_get(types, type)->kind == DTYPE_VOID ? "void"
	       : dtype_get(types, type)->kind == DTYPE_FUNCTION
		       ? "function"
		       : dwarf_type_name(recover->dwarf, type, &recover->name);
	if (!*name)
		return false;
	str_add(out, name);
	if (stars)
		str_add_char(out, ' ');
	while (stars--)
		str_add_char(out, '*');
	return true;
}
