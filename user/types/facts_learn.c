// SPDX-License-Identifier: Apache-2.0
/*
 * What a loaded pointer points to. For a field of one pointer type that is plain; a
 * void pointer says nothing, and a union of pointers says too much. There the unit's
 * own code tells: whoever loads the field and uses the value as a known type votes for
 * it, and so does whoever stores one. Candidates must be visible in the unit and must
 * fit everything that is accessed through the value.
 */
#include "types/facts.h"

#include <string.h>

struct choice {
	uint32_t data[DTYPE_MAX_LEAVES];
	uint32_t count;
};

static void include(struct choice *choice, uint32_t type)
{
	for (uint32_t i = 0; i < choice->count; i++)
		if (choice->data[i] == type)
			return;
	if (choice->count < DTYPE_MAX_LEAVES)
		choice->data[choice->count++] = type;
}

static bool includes(const struct choice *choice, uint32_t type)
{
	for (uint32_t i = 0; i < choice->count; i++)
		if (choice->data[i] == type)
			return true;
	return false;
}

static void add(struct facts *facts, uint32_t node, uint32_t type, uint8_t origin)
{
	facts_add(facts, node, &(struct clue){ .type = type, .origin = origin });
}

/* The pointees at a place: all of them, and those that are objects. */
static void pointees(struct facts *facts, const struct dtype_leaves *leaves,
		     struct choice *all, struct choice *objects)
{
	struct dtypes *types = facts->recover->types;

	for (uint32_t i = 0; i < leaves->count; i++) {
		uint32_t pointee;
		const struct dtype *shape;

		if (dtype_get(types, leaves->types[i])->kind != DTYPE_POINTER)
			continue;
		pointee = dtype_whole(types, dtype_target(types, leaves->types[i]));
		shape = dtype_get(types, pointee);
		include(all, pointee);
		if (shape->kind != DTYPE_VOID && shape->kind != DTYPE_FUNCTION &&
		    shape->bytes)
			include(objects, pointee);
	}
}

static struct unit_place key_of(struct facts *facts, uint32_t type, int64_t offset,
				bool is_union)
{
	dtype_innermost(facts->recover->types, is_union, &type, &offset);
	return (struct unit_place){ type, offset };
}

/* Keep those that the unit can see and whose layout agrees with the accesses. */
static struct choice plausible(struct facts *facts, uint32_t node,
			       const struct choice *from)
{
	struct dtypes *types = facts->recover->types;
	struct choice kept = { .count = 0 };

	for (uint32_t i = 0; i < from->count; i++) {
		uint32_t type = from->data[i];
		bool is_seen = unit_sees(facts->unit, type) ||
			       !dtype_get(types, type)->name ||
			       !dtype_is_aggregate(types, type);

		if (is_seen && (!dtype_is_aggregate(types, type) ||
				facts_fits(facts, node, type, DTYPE_STARTS)))
			include(&kept, type);
	}
	return kept;
}

/* Where some have a field of just that width at every access, drop the others. */
static void keep_exact(struct facts *facts, uint32_t node, struct choice *choice)
{
	struct choice exact = { .count = 0 };

	for (uint32_t i = 0; i < choice->count; i++)
		if (dtype_is_aggregate(facts->recover->types, choice->data[i]) &&
		    facts_fits(facts, node, choice->data[i], DTYPE_EXACT))
			include(&exact, choice->data[i]);
	if (exact.count)
		*choice = exact;
}

/* @learnt itself, or the only one of several that begins with it. */
static uint32_t reconcile(struct facts *facts, uint32_t learnt, const struct choice *kept)
{
	uint32_t found = 0;

	if (!learnt || includes(kept, learnt))
		return learnt;
	for (uint32_t i = 0; i < kept->count; i++) {
		if (!dtype_contains(facts->recover->types, kept->data[i], 0, learnt, 0))
			continue;
		if (found)
			return 0;
		found = kept->data[i];
	}
	return found;
}

static bool load_unclear(struct facts *facts, uint32_t node, const struct candidate *from,
			 struct choice *objects)
{
	bool is_union = objects->count > 1;
	bool is_touched = facts_is_touched(facts, node);
	struct unit_place key = key_of(facts, from->type, from->offset, is_union);
	uint32_t learnt = unit_pointee(facts->unit, key);

	if (facts->round == 1)
		vec_push(&facts->asked, ((struct asked){ node, key }));
	if (is_union) {
		struct choice kept = plausible(facts, node, objects);

		if (is_touched)
			keep_exact(facts, node, &kept);
		learnt = reconcile(facts, learnt, &kept);
		if (!learnt && kept.count == 1 && is_touched)
			learnt = kept.data[0];
		if (kept.count)
			*objects = kept;
	} else if (learnt && is_touched &&
		   !facts_fits(facts, node, learnt, DTYPE_STARTS)) {
		learnt = 0;
	}
	if (learnt) {
		add(facts, node, learnt, ORIGIN_SUM);
		return true;
	}
	for (uint32_t i = 0; is_union && i < objects->count; i++)
		add(facts, node, objects->data[i], ORIGIN_COMPARE);
	return is_union;
}

void facts_load(struct facts *facts, uint32_t node, const struct candidate *from)
{
	const struct dtype_leaves *leaves =
		dtype_leaves_at(facts->recover->types, from->type, from->offset, 8);
	struct choice all = { .count = 0 }, objects = { .count = 0 };

	pointees(facts, leaves, &all, &objects);
	if (leaves->fit >= DTYPE_STARTS &&
	    (objects.count > 1 || (!objects.count && includes(&all, 0))) &&
	    load_unclear(facts, node, from, &objects))
		return;
	for (uint32_t i = 0; i < all.count; i++)
		add(facts, node, all.data[i],
		    leaves->count > 1 ? ORIGIN_SUM : ORIGIN_LOAD);
}

/* The one struct that a value at its very start is known to be; 0 when not one. */
static uint32_t only_struct(struct facts *facts, struct flow_ref ref, unsigned origins)
{
	const struct clue_set *set = &facts->sets[ref.node];
	uint32_t found = 0;

	for (uint8_t i = 0; i < set->count; i++) {
		const struct clue *clue = &set->data[i];

		if (clue->offset + ref.delta ||
		    !dtype_is_aggregate(facts->recover->types, clue->type) ||
		    !(origins >> clue->origin & 1))
			continue;
		if (found && found != clue->type)
			return 0;
		found = clue->type;
	}
	return found;
}

void facts_vote(struct facts *facts)
{
	const unsigned used = 1u << ORIGIN_DWARF | 1u << ORIGIN_PARAM | 1u << ORIGIN_ARG |
			      1u << ORIGIN_STORE;
	const unsigned stored =
		1u << ORIGIN_DWARF | 1u << ORIGIN_PARAM | 1u << ORIGIN_LOAD;

	vec_each(&facts->asked, asked) {
		uint32_t type =
			only_struct(facts, (struct flow_ref){ asked->node, 0 }, used);

		if (type)
			unit_vote(facts->unit, asked->place, type);
	}
	vec_each(&facts->flow->stores, store) {
		struct choice all = { .count = 0 }, objects = { .count = 0 };
		struct candidates to;
		const struct dtype_leaves *leaves;
		uint32_t type;

		if (store->value.node < 2 || store->value.node == FLOW_NONE ||
		    !facts->sets[store->value.node].count)
			continue;
		facts_best(facts, &facts->flow->accesses.data[store->access], &to);
		if (!to.count || to.data[0].origin > ORIGIN_PHI)
			continue;
		leaves = dtype_leaves_at(facts->recover->types, to.data[0].type,
					 to.data[0].offset, 8);
		pointees(facts, leaves, &all, &objects);
		if (leaves->fit < DTYPE_STARTS ||
		    !(all.count > 1 || (all.count == 1 && !all.data[0])))
			continue;
		type = only_struct(facts, store->value, stored);
		if (type)
			unit_vote(facts->unit,
				  key_of(facts, to.data[0].type, to.data[0].offset,
					 all.count > 1),
				  type);
	}
}
