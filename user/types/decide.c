// SPDX-License-Identifier: Apache-2.0
/*
 * From candidates to one decision. What lies inside another candidate is dropped (the
 * outer object is the answer), the rest is ranked: inside the type before wrapped,
 * fitting the layout before not, stated by debug information before derived, exact
 * before inexact. Where unrelated types remain, the only struct that has them all at
 * the right places wins; otherwise the rank decides, with less confidence.
 */
#include "types/around.h"
#include "types/facts.h"
#include "types/spill.h"

#include <string.h>

#define ORIGIN_DIRECT (-1) /* the base register's own variable at this pc */
#define MAX_ITEMS     (CANDIDATES_MAX * 2)

struct item {
	uint64_t hash; /* of the type: ids depend on who was asked for first */
	uint32_t type;
	int64_t offset;
	int origin, order;
	enum dtype_fit fit;
	bool is_wrapped, is_struct,
		is_derived; /* is_derived: not from debug information */
};

struct items {
	struct item data[MAX_ITEMS];
	size_t count;
};

struct verdict_at {
	struct item item;
	bool is_found, is_conflict, is_common, is_header;
	uint8_t reason; /* verdict of an abstention */
};

static void put(struct facts *facts, struct items *items, struct item item,
		uint32_t width)
{
	for (size_t i = 0; i < items->count; i++) {
		struct item *old = &items->data[i];

		if (old->type != item.type || old->offset != item.offset)
			continue;
		if (item.origin < old->origin ||
		    (item.origin == old->origin && item.is_wrapped < old->is_wrapped)) {
			old->origin = item.origin;
			old->is_wrapped = item.is_wrapped;
			old->order = item.order;
		}
		return;
	}
	if (items->count == MAX_ITEMS)
		return;
	item.fit = dtype_leaves_at(facts->recover->types, item.type, item.offset, width)
			   ->fit;
	item.is_struct = dtype_is_aggregate(facts->recover->types, item.type);
	item.hash = dtype_get(facts->recover->types, item.type)->hash;
	items->data[items->count++] = item;
}

/* Variables that are in the base register here; inner scopes come last in the list. */
static void put_direct(struct facts *facts, uint32_t number, struct items *items)
{
	const struct flow_access *access = &facts->flow->accesses.data[number];
	size_t lo = 0, hi = facts->direct.count;
	int order = 0;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (facts->direct.data[middle].access <= number)
			lo = middle + 1;
		else
			hi = middle;
	}
	for (; lo > 0 && facts->direct.data[lo - 1].access == number; lo--, order++) {
		const struct direct *direct = &facts->direct.data[lo - 1];
		struct item item = { .type = direct->type,
				     .offset = facts_unbias(facts, direct->type,
							    direct->offset + access->disp,
							    access),
				     .origin = ORIGIN_DIRECT,
				     .order = order };

		if (facts_fix(facts, &item.type, &item.offset, &item.is_wrapped))
			put(facts, items, item, access->width);
	}
}

static void put_candidates(struct facts *facts, const struct flow_access *access,
			   const struct candidates *found, struct items *items)
{
	struct dtypes *types = facts->recover->types;
	bool has_scalar = false;

	for (size_t i = 0; i < found->count; i++)
		has_scalar |= dtype_get(types, found->data[i].type)->kind == DTYPE_BASE;
	for (size_t i = 0; i < found->count; i++) {
		const struct candidate *from = &found->data[i];
		struct item item = { .type = from->type,
				     .offset = from->offset,
				     .origin = from->origin,
				     .is_derived = !from->is_direct };

		if (!facts_fix(facts, &item.type, &item.offset, &item.is_wrapped))
			continue;
		if (item.is_wrapped && from->origin >= ORIGIN_ARG)
			continue;
		if (item.is_wrapped && from->origin == ORIGIN_SUM && from->offset < 0 &&
		    has_scalar)
			continue;
		put(facts, items, item, access->width);
	}
}

/* A pointer that lies whole elements off, where an object of the same size that it
 * would wrap is known to be: it steps, and is the answer that has both. */
static void put_stepped(struct facts *facts, const struct flow_access *access,
			const struct candidates *found, struct items *items)
{
	struct dtypes *types = facts->recover->types;
	size_t count = items->count;

	for (size_t i = 0; i < found->count; i++) {
		const struct candidate *from = &found->data[i];
		int64_t bytes = (int64_t)dtype_get(types, from->type)->bytes;
		struct item item = { .type = from->type,
				     .origin = from->origin,
				     .is_derived = !from->is_direct };

		if (!dtype_is_aggregate(types, from->type) || !bytes ||
		    from->origin > ORIGIN_PHI ||
		    dtype_covers(types, from->type, from->offset))
			continue;
		item.offset = (from->offset % bytes + bytes) % bytes;
		for (size_t k = 0; k < count; k++) {
			const struct item *inner = &items->data[k];

			if (!inner->is_wrapped && inner->type != item.type &&
			    dtype_get(types, inner->type)->bytes == (uint64_t)bytes &&
			    dtype_contains(types, item.type, item.offset, inner->type,
					   inner->offset)) {
				put(facts, items, item, access->width);
				break;
			}
		}
	}
}

static bool has_inside(struct facts *facts, const struct item *outer,
		       const struct item *inner)
{
	return (outer->type != inner->type || outer->offset != inner->offset) &&
	       dtype_contains(facts->recover->types, outer->type, outer->offset,
			      inner->type, inner->offset);
}

static int compare_items(const void *a, const void *b)
{
	const struct item *x = a, *y = b;
	int direct_x = x->origin < 0, direct_y = y->origin < 0;

	if (x->is_wrapped != y->is_wrapped)
		return x->is_wrapped - y->is_wrapped;
	if ((x->fit >= DTYPE_STARTS) != (y->fit >= DTYPE_STARTS))
		return (y->fit >= DTYPE_STARTS) - (x->fit >= DTYPE_STARTS);
	if (direct_x != direct_y)
		return direct_y - direct_x;
	if (x->fit != y->fit)
		return (int)y->fit - (int)x->fit;
	if (x->origin != y->origin)
		return x->origin - y->origin;
	if (x->is_derived != y->is_derived)
		return x->is_derived - y->is_derived;
	if (x->order != y->order)
		return x->order - y->order;
	if (x->hash != y->hash)
		return x->hash < y->hash ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

/* Return: the most direct of those dropped, by rank; false when none was. */
static bool drop_inner(struct facts *facts, struct items *items, struct item *ret_inner)
{
	struct items kept = { .count = 0 };
	bool has_dropped = false;

	for (size_t i = 0; i < items->count; i++) {
		bool is_inner = false;

		for (size_t k = 0; k < items->count && !is_inner; k++)
			is_inner = k != i && items->data[k].fit >= items->data[i].fit &&
				   has_inside(facts, &items->data[k], &items->data[i]);
		if (!is_inner) {
			kept.data[kept.count++] = items->data[i];
		} else if (!has_dropped ||
			   compare_items(&items->data[i], ret_inner) < 0) {
			*ret_inner = items->data[i];
			has_dropped = true;
		}
	}
	if (kept.count)
		*items = kept;
	return has_dropped;
}

/* The types that disagree, those out of their range included: together they may be
 * parts of one larger object. */
static bool unify(struct facts *facts, const struct flow_access *access,
		  const struct items *items, const struct candidates *found,
		  struct verdict_at *at)
{
	struct dtypes *types = facts->recover->types;
	bool is_conflict = items->count > 1;
	struct around seen = { 0 };
	struct unit_place place;
	bool is_found = false;

	for (size_t i = 0; i < items->count && (is_conflict || !i); i++)
		if (!is_conflict || (!items->data[i].is_wrapped &&
				     items->data[i].origin < ORIGIN_COMPARE))
			around_note(&seen, items->data[i].type, items->data[i].offset);
	for (size_t i = 0; i < found->count; i++) {
		const struct candidate *c = &found->data[i];

		if (dtype_is_aggregate(types, c->type) &&
		    c->offset >= (int64_t)dtype_get(types, c->type)->bytes &&
		    !unit_steps(facts->unit, c->type) &&
		    (is_conflict || c->origin <= ORIGIN_PHI))
			around_note(&seen, c->type, c->offset);
	}
	if (seen.count > 1)
		is_found = around_common(facts, &seen, access->width, &place);
	vec_fini(&seen);
	if (!is_found)
		return false;
	at->item.type = place.type;
	at->item.offset = place.offset;
	at->item.fit = DTYPE_EXACT;
	at->item.is_wrapped = false;
	at->is_common = at->is_conflict = at->is_found = true;
	return true;
}

/* ---- rules of last resort */

/* Everything before the pointer must lie on fields of the header. */
static bool header_fits(struct facts *facts, uint32_t node, const struct unit_flex *flex,
			int64_t shift)
{
	size_t count;
	const struct touched *touched = facts_touched(facts, node, &count);

	for (size_t i = 0; i < count; i++) {
		int64_t offset = touched[i].offset + shift;

		if (offset < 0 && flex->offset + offset >= 0 &&
		    dtype_leaves_at(facts->recover->types, flex->type,
				    flex->offset + offset, touched[i].width)
				    ->fit < DTYPE_STARTS)
			return false;
	}
	return true;
}

/* s[-1] of a char pointer: the header in front of a flexible array, if only one fits. */
static bool flexible_header(struct facts *facts, const struct flow_access *access,
			    const struct candidates *found, struct verdict_at *at)
{
	struct dtypes *types = facts->recover->types;
	struct around fits = { 0 };

	unit_load(facts->recover, facts->unit);
	for (size_t i = 0; i < found->count; i++) {
		const struct candidate *c = &found->data[i];
		const struct dtype *type = dtype_get(types, c->type);

		if (c->offset >= 0 || type->kind != DTYPE_BASE || type->bytes != 1)
			continue;
		vec_each(&facts->unit->flex, flex) {
			int64_t offset = flex->offset + c->offset;

			if (flex->element != c->type || offset < 0 ||
			    dtype_leaves_at(types, flex->type, offset, access->width)
					    ->fit < DTYPE_EXACT)
				continue;
			if (access->base.node > 1 && access->base.node != FLOW_NONE &&
			    !header_fits(facts, access->base.node, flex,
					 c->offset - access->base.delta - access->disp))
				continue;
			around_note(&fits, flex->type, offset);
		}
	}
	if (fits.count == 1) {
		at->item = (struct item){ .type = fits.data[0].type,
					  .offset = fits.data[0].offset,
					  .origin = ORIGIN_LAYOUT,
					  .fit = DTYPE_EXACT,
					  .is_struct = true };
		at->is_found = at->is_header = true;
	}
	vec_fini(&fits);
	return at->is_found;
}

static bool outer_object(struct facts *facts, const struct flow_access *access,
			 const struct candidates *found, struct verdict_at *at)
{
	struct unit_place place;

	if (!around_beyond(facts, found, access->width, &place))
		return false;
	at->item = (struct item){ .type = place.type,
				  .offset = place.offset,
				  .origin = ORIGIN_LAYOUT,
				  .fit = DTYPE_EXACT,
				  .is_struct = true };
	at->is_found = at->is_conflict = true;
	return true;
}

/* ---- the decision */

static void choose(struct facts *facts, const struct flow_access *access,
		   struct items *items, const struct candidates *found,
		   struct verdict_at *at)
{
	const struct item *best = items->data;
	struct item inner;
	bool has_inner = drop_inner(facts, items, &inner);

	if (items->count > 1)
		qsort(items->data, items->count, sizeof(*items->data), compare_items);
	at->item = *best;
	/* Objects that disagree, around a part that debug information names: the part. */
	if (items->count > 1 && has_inner && inner.origin <= ORIGIN_PARAM &&
	    inner.origin < best->origin && !inner.is_wrapped &&
	    inner.fit >= DTYPE_STARTS) {
		at->item = inner;
		at->is_found = true;
		return;
	}
	at->is_conflict = items->count > 1;
	if (best->origin == ORIGIN_COMPARE && items->count > 1 &&
	    (items->data[1].fit >= DTYPE_STARTS) == (best->fit >= DTYPE_STARTS)) {
		at->reason = VERDICT_CONFLICT;
		return;
	}
	if ((best->is_wrapped || best->fit < DTYPE_STARTS) &&
	    flexible_header(facts, access, found, at))
		return;
	if (access->base.node != FLOW_NONE && unify(facts, access, items, found, at))
		return;
	if (best->fit == DTYPE_OUTSIDE ||
	    (best->is_wrapped && best->fit < DTYPE_STARTS)) {
		at->reason = VERDICT_OUT_OF_RANGE;
		return;
	}
	at->is_found = true;
}

static uint8_t reason_without(struct facts *facts, const struct flow_access *access,
			      const struct candidates *found, const struct items *items)
{
	uint32_t base = access->base.node;

	if (access->segment != INSN_FLAT && access->disp == CANARY_DISP &&
	    access->base.node == FLOW_NONE && access->index.node == FLOW_NONE)
		return VERDICT_CANARY;
	if (items->count)
		return VERDICT_NOT_STRUCT;
	if (base == 1 || (base == 0 && facts->flow->nodes.data[0].kind == FLOW_FRAME))
		return found->count ? VERDICT_NOT_STRUCT : VERDICT_STACK;
	if (base == 0 && access->segment == INSN_FLAT && access->base.delta)
		return module_is_writable(facts->recover, (uint64_t)access->base.delta +
								  (uint64_t)access->disp)
			       ? VERDICT_NO_TYPE
			       : VERDICT_CONSTANT;
	return found->count ? VERDICT_OUT_OF_RANGE : VERDICT_NO_TYPE;
}

static void decide(struct facts *facts, uint32_t number, struct verdict_at *at)
{
	const struct flow_access *access = &facts->flow->accesses.data[number];
	const struct insn *insn = &facts->code->insns.data[access->insn];
	struct items items = { .count = 0 };
	struct candidates found;
	size_t kept = 0;
	uint8_t base = insn->mems[access->mem].base;

	memset(at, 0, sizeof(*at));
	facts_candidates(facts, access, &found);
	put_direct(facts, number, &items);
	put_candidates(facts, access, &found, &items);
	put_stepped(facts, access, &found, &items);
	at->reason = reason_without(facts, access, &found, &items);
	if (base == insn_abi(facts->recover->decoder)->stack && !items.count)
		at->reason = VERDICT_STACK;
	if (!items.count) {
		if (!flexible_header(facts, access, &found, at))
			outer_object(facts, access, &found, at);
		return;
	}
	for (size_t i = 0; i < items.count; i++)
		if (items.data[i].is_struct)
			items.data[kept++] = items.data[i];
	items.count = kept;
	if (kept)
		choose(facts, access, &items, &found, at);
	else
		flexible_header(facts, access, &found, at);
}

static uint8_t name_origin(const struct facts *facts, const struct flow_access *access,
			   const struct verdict_at *at)
{
	const struct flow_node *node;
	const uint32_t *block_of = facts->code->cfg->block_of;

	if (at->item.origin == ORIGIN_LAYOUT || at->is_header)
		return VERDICT_LAYOUT;
	if (access->base.node == FLOW_NONE || access->base.node == 0)
		return VERDICT_GLOBAL;
	if (at->item.origin == ORIGIN_DIRECT || access->base.node == 1)
		return VERDICT_DWARF;
	if (at->item.origin == ORIGIN_COMPARE)
		return VERDICT_LAYOUT;
	if (at->item.origin >= ORIGIN_ARG)
		return VERDICT_BACKWARD;
	node = &facts->flow->nodes.data[access->base.node];
	if (at->item.origin == ORIGIN_PARAM)
		return VERDICT_CALL;
	return node->kind != FLOW_PHI && node->kind != FLOW_ENTRY &&
			       block_of[node->insn] == block_of[access->insn]
		       ? VERDICT_LOCAL
		       : VERDICT_JOIN;
}

/*
 * Confidence is what was measured: the share of right answers (type and offset) among
 * all that were reached in the same way, over programs that compilers labelled; rounded,
 * and lowered where there were few. docs/confidence.md has the programs and the figures.
 */
static const struct {
	float alone, disputed; /* disputed: unrelated types remain and rank decides */
} measured[] = {
	[ORIGIN_DWARF] = { 0.998f, 0.985f }, [ORIGIN_PARAM] = { 0.93f, 0.90f },
	[ORIGIN_LOAD] = { 0.998f, 0.76f },   [ORIGIN_SUM] = { 0.98f, 0.90f },
	[ORIGIN_PHI] = { 0.998f, 0.91f },    [ORIGIN_ARG] = { 0.97f, 0.90f },
	[ORIGIN_STORE] = { 0.98f, 0.80f },   [ORIGIN_BACK] = { 0.95f, 0.85f },
	[ORIGIN_COMPARE] = { 0.95f, 0.85f }, [ORIGIN_LAYOUT] = { 0.97f, 0.97f },
};

/* Factors for what speaks against an answer that is otherwise direct or derived. */
#define WRAPPED_DIRECT 0.99f
#define WRAPPED	       0.95f
#define MISFIT_NAMED   0.98f /* of a variable */
#define MISFIT	       0.95f
#define COMMON_DIRECT  0.998f /* the only struct around parts that disagree */
#define COMMON_LOADED  0.99f
#define COMMON	       0.93f

/* A field starts there, but has another width than the access. */
static float width_factor(const struct item *item, bool is_disputed)
{
	if (item->is_wrapped)
		return 0.6f;
	if (item->origin <= ORIGIN_DWARF)
		return is_disputed ? 0.97f : 0.996f;
	if (!is_disputed && (item->origin <= ORIGIN_LOAD || item->origin == ORIGIN_PHI))
		return 0.985f;
	return 0.88f;
}

static float confidence_of(const struct verdict_at *at, bool is_global)
{
	bool is_disputed = at->is_conflict && !at->is_common;
	bool is_direct = is_global || at->item.origin == ORIGIN_DIRECT;
	float confidence;

	if (at->is_header)
		return 0.997f;
	if (is_direct)
		confidence = is_disputed && !is_global ? 0.995f : 0.999f;
	else
		confidence = is_disputed ? measured[at->item.origin].disputed
					 : measured[at->item.origin].alone;
	if (at->is_common)
		confidence *= is_direct			       ? COMMON_DIRECT
			      : at->item.origin <= ORIGIN_LOAD ? COMMON_LOADED
							       : COMMON;
	if (at->item.is_wrapped)
		confidence *= is_direct ? WRAPPED_DIRECT : WRAPPED;
	if (at->item.fit < DTYPE_STARTS)
		confidence *= is_direct || at->item.origin == ORIGIN_DWARF ? MISFIT_NAMED
									   : MISFIT;
	else if (at->item.fit == DTYPE_STARTS && !is_global)
		confidence *= width_factor(&at->item, is_disputed);
	return confidence;
}

void facts_decide(struct facts *facts)
{
	struct code *code = facts->code;
	const struct flow *flow = facts->flow;
	uint32_t next = 0;

	for (uint32_t i = 0; i < code->insns.count; i++) {
		const struct insn *insn = &code->insns.data[i];
		struct verdict_at at = { .reason = VERDICT_NO_TYPE };
		struct decision decision = {
			.va = insn->va,
			.width = insn->is_repeated ? 0 : insn->mems[0].width,
			.access = insn->mems[0].access,
		};

		if (!insn->is_counted)
			continue;
		for (; next < flow->accesses.count && flow->accesses.data[next].insn <= i;
		     next++) {
			if (flow->accesses.data[next].insn != i || at.is_found)
				continue;
			decide(facts, next, &at);
			decision.access = flow->accesses.data[next].access;
			decision.verdict =
				at.is_found ? name_origin(facts,
							  &flow->accesses.data[next], &at)
					    : at.reason;
		}
		if (at.is_found) {
			decision.type = at.item.type;
			decision.offset = at.item.offset;
			decision.confidence =
				confidence_of(&at, decision.verdict == VERDICT_GLOBAL);
		}
		vec_push(&code->decisions, decision);
	}
	spill_decide(facts);
}
