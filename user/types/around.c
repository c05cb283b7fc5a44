// SPDX-License-Identifier: Apache-2.0
/*
 * Structs around structs. Candidates come from the unit's containments; those that do
 * not fit the access, and those inside another candidate, fall out; only a single one
 * that is left is an answer.
 */
#include "types/around.h"

/* Everything that may lie around @place, itself included. */
static void list_around(struct facts *facts, struct unit_place place,
			struct around *places)
{
	size_t count;
	const struct unit_inner *inner =
		unit_containers(facts->recover, facts->unit, place.type, &count);

	vec_push(places, place);
	for (size_t i = 0; i < count; i++)
		vec_push(places, ((struct unit_place){ inner[i].outer,
						       place.offset + inner[i].offset }));
}

static bool has_place(const struct around *places, const struct unit_place *place)
{
	vec_each(places, known)
		if (known->type == place->type && known->offset == place->offset)
			return true;
	return false;
}

/* Drop what fits badly and what lies inside another one. Return: the only one left. */
static bool only_outer(struct facts *facts, struct around *places, uint32_t width,
		       enum dtype_fit fit, struct unit_place *ret_place)
{
	struct dtypes *types = facts->recover->types;
	size_t kept = 0, left = 0;

	for (size_t i = 0; i < places->count; i++) {
		const struct unit_place *p = &places->data[i];

		if (dtype_covers(types, p->type, p->offset) &&
		    dtype_leaves_at(types, p->type, p->offset, width)->fit >= fit)
			places->data[kept++] = *p;
	}
	for (size_t i = 0; i < kept; i++) {
		const struct unit_place *p = &places->data[i];
		bool is_inner = false;

		for (size_t k = 0; k < kept && !is_inner; k++) {
			const struct unit_place *q = &places->data[k];

			is_inner = (p->type != q->type || p->offset != q->offset) &&
				   dtype_contains(types, q->type, q->offset, p->type,
						  p->offset);
		}
		if (!is_inner) {
			*ret_place = *p;
			left++;
		}
	}
	return left == 1;
}

bool around_common(struct facts *facts, const struct around *seen, uint32_t width,
		   struct unit_place *ret_place)
{
	struct around common = { 0 };
	bool is_found;

	list_around(facts, seen->data[0], &common);
	for (size_t i = 1; i < seen->count; i++) {
		struct around other = { 0 };
		size_t kept = 0;

		list_around(facts, seen->data[i], &other);
		for (size_t k = 0; k < common.count; k++)
			if (has_place(&other, &common.data[k]))
				common.data[kept++] = common.data[k];
		common.count = kept;
		vec_fini(&other);
	}
	is_found = only_outer(facts, &common, width, DTYPE_STARTS, ret_place);
	vec_fini(&common);
	return is_found;
}

void around_note(struct around *places, uint32_t type, int64_t offset)
{
	struct unit_place place = { type, offset };

	if (!has_place(places, &place))
		vec_push(places, place);
}

bool around_beyond(struct facts *facts, const struct candidates *found, uint32_t width,
		   struct unit_place *ret_place)
{
	struct dtypes *types = facts->recover->types;
	struct around fits = { 0 };
	bool is_found;

	for (size_t i = 0; i < found->count; i++) {
		const struct candidate *c = &found->data[i];
		size_t count;
		const struct unit_inner *inner;

		if (!dtype_is_aggregate(types, c->type) || c->origin > ORIGIN_STORE ||
		    unit_steps(facts->unit, c->type) ||
		    c->offset < (int64_t)dtype_get(types, c->type)->bytes)
			continue;
		inner = unit_containers(facts->recover, facts->unit, c->type, &count);
		for (size_t k = 0; k < count; k++)
			around_note(&fits, inner[k].outer, c->offset + inner[k].offset);
	}
	is_found = only_outer(facts, &fits, width, DTYPE_EXACT, ret_place);
	vec_fini(&fits);
	return is_found;
}
