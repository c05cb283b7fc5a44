// SPDX-License-Identifier: Apache-2.0
/*
 * Lists of types are made when the unit is first asked; containers only when a rule
 * needs them, which most functions never do.
 */
#include "types/unit.h"

#include <string.h>

#include "core/intern.h"
#include "core/mem.h"

#define MAX_INNER	(1u << 20) /* containments listed of one unit */
#define MAX_INNER_DEPTH 6
#define AGREEMENT	9 /* of ten votes */

/* Map keys must have no padding. */
struct place_key {
	int64_t offset;
	uint32_t type, pointee;
};

struct unit *unit_new(uint32_t number)
{
	struct unit *unit = mem_alloc(sizeof(*unit));

	unit->number = number;
	unit->visible = map_new(sizeof(uint32_t), 1);
	unit->by_name = map_new(sizeof(uint64_t), sizeof(uint32_t));
	unit->stepped = map_new(sizeof(uint32_t), 1);
	unit->votes = map_new(sizeof(struct place_key), sizeof(uint32_t));
	unit->learnt = map_new(sizeof(struct place_key), sizeof(uint32_t));
	return unit;
}

void unit_free(struct unit *unit)
{
	if (!unit)
		return;
	map_free(unit->visible);
	map_free(unit->by_name);
	map_free(unit->stepped);
	map_free(unit->votes);
	map_free(unit->learnt);
	vec_fini(&unit->flex);
	vec_fini(&unit->inner);
	free(unit);
}

struct load {
	struct recover *recover;
	struct unit *unit;
};

static void see(void *ctx, uint32_t type)
{
	struct load *load = ctx;
	struct dtypes *types = load->recover->types;
	const struct dtype *shape = dtype_get(types, type);
	bool is_new;

	if (shape->kind == DTYPE_ARRAY && shape->count != 1) {
		uint32_t element = dtype_whole(types, dtype_target(types, type));

		unit_add_step(load->unit, element);
		return;
	}
	if (!dtype_is_aggregate(types, type))
		return;
	map_put(load->unit->visible, &type, &is_new);
	if (is_new && shape->name) {
		uint64_t hash = hash_text(shape->name, 0);

		*(uint32_t *)map_put(load->unit->by_name, &hash, NULL) = type;
	}
	if (!is_new || shape->kind != DTYPE_STRUCT || !shape->member_count)
		return;

	uint32_t last = shape->member_count - 1;
	uint32_t inner = dtype_member_type(types, type, last);
	const struct dtype *array = dtype_get(types, inner);

	if (array->kind == DTYPE_ARRAY && array->count <= 1)
		vec_push(&load->unit->flex,
			 ((struct unit_flex){
				 dtype_whole(types, dtype_target(types, inner)), type,
				 shape->members[last].offset }));
}

void unit_load(struct recover *recover, struct unit *unit)
{
	struct load load = { recover, unit };

	if (unit->has_types)
		return;
	unit->has_types = true;
	dwarf_unit_types(recover->dwarf, unit->number, see, &load);
}

uint32_t unit_own(struct recover *recover, struct unit *unit, uint32_t type)
{
	const struct dtype *shape = dtype_get(recover->types, type);
	const uint32_t *own;
	uint64_t hash;

	if ((!dtype_is_aggregate(recover->types, type) &&
	     shape->kind != DTYPE_INCOMPLETE) ||
	    !shape->name || !unit->has_types || unit_sees(unit, type))
		return type;
	hash = hash_text(shape->name, 0);
	own = map_find(unit->by_name, &hash);
	return own ? *own : type;
}

bool unit_sees(const struct unit *unit, uint32_t type)
{
	return map_find(unit->visible, &type) != NULL;
}

bool unit_steps(const struct unit *unit, uint32_t type)
{
	return map_find(unit->stepped, &type) != NULL;
}

void unit_add_step(struct unit *unit, uint32_t type)
{
	if (type && !unit->is_frozen)
		map_put(unit->stepped, &type, NULL);
}

static void add_inner(struct recover *recover, struct unit *unit, uint32_t outer,
		      struct unit_place at, unsigned depth)
{
	struct dtypes *types = recover->types;
	const struct dtype *shape = dtype_get(types, at.type);

	if (depth > MAX_INNER_DEPTH)
		return;
	for (uint32_t i = 0; i < shape->member_count; i++) {
		uint32_t inner = dtype_member_type(types, at.type, i);
		int64_t offset = at.offset + shape->members[i].offset;

		if (shape->members[i].bits || !dtype_is_aggregate(types, inner) ||
		    !dtype_get(types, inner)->bytes || unit->inner.count >= MAX_INNER)
			continue;
		vec_push(&unit->inner, ((struct unit_inner){ inner, outer, offset }));
		add_inner(recover, unit, outer, (struct unit_place){ inner, offset },
			  depth + 1);
	}
}

static int by_inner(const void *a, const void *b)
{
	const struct unit_inner *x = a, *y = b;

	if (x->inner != y->inner)
		return x->inner < y->inner ? -1 : 1;
	if (x->outer != y->outer)
		return x->outer < y->outer ? -1 : 1;
	return x->offset < y->offset ? -1 : x->offset > y->offset;
}

const struct unit_inner *unit_containers(struct recover *recover, struct unit *unit,
					 uint32_t type, size_t *ret_count)
{
	size_t pos = 0, lo = 0, hi, first;
	const void *key;

	if (!unit->has_containers) {
		unit->has_containers = true;
		unit_load(recover, unit);
		while (map_next(unit->visible, &pos, &key)) {
			uint32_t outer;

			memcpy(&outer, key, sizeof(outer));
			add_inner(recover, unit, outer, (struct unit_place){ outer, 0 },
				  0);
		}
		if (unit->inner.count)
			qsort(unit->inner.data, unit->inner.count,
			      sizeof(*unit->inner.data), by_inner);
	}
	for (hi = unit->inner.count; lo < hi;) {
		size_t middle = lo + (hi - lo) / 2;

		if (unit->inner.data[middle].inner < type)
			lo = middle + 1;
		else
			hi = middle;
	}
	for (first = lo; lo < unit->inner.count && unit->inner.data[lo].inner == type;)
		lo++;
	*ret_count = lo - first;
	return *ret_count ? unit->inner.data + first : NULL;
}

void unit_vote(struct unit *unit, struct unit_place place, uint32_t pointee)
{
	struct place_key key = { place.offset, place.type, pointee };

	++*(uint32_t *)map_put(unit->votes, &key, NULL);
}

void unit_count_votes(struct unit *unit)
{
	unit->is_frozen = true;

	struct map *totals = map_new(sizeof(struct place_key), sizeof(uint32_t));
	const void *raw;
	const uint32_t *count;
	size_t pos = 0;

	while ((count = map_next(unit->votes, &pos, &raw))) {
		struct place_key key;

		memcpy(&key, raw, sizeof(key));
		key.pointee = 0;
		*(uint32_t *)map_put(totals, &key, NULL) += *count;
	}
	for (pos = 0; (count = map_next(unit->votes, &pos, &raw));) {
		struct place_key key;
		uint32_t pointee, total;

		memcpy(&key, raw, sizeof(key));
		pointee = key.pointee;
		key.pointee = 0;
		total = *(const uint32_t *)map_find(totals, &key);
		if ((uint64_t)*count * 10 >= (uint64_t)total * AGREEMENT)
			*(uint32_t *)map_put(unit->learnt, &key, NULL) = pointee;
	}
	map_free(totals);
}

uint32_t unit_pointee(const struct unit *unit, struct unit_place place)
{
	struct place_key key = { place.offset, place.type, 0 };
	const uint32_t *found = map_find(unit->learnt, &key);

	return found ? *found : 0;
}
