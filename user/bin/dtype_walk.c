// SPDX-License-Identifier: Apache-2.0
/*
 * Walks through a type's layout: the path at an offset, what lies inside what, arrays
 * inside. Bounded by DTYPE_MAX_DEPTH and DTYPE_MAX_STEPS.
 */
#include "bin/dtype_impl.h"

#include <string.h>

/* The member to name at @offset: the best fit; none when several are as good. */
struct choice {
	uint32_t index, equals;
	int rank;
};

static int member_rank(struct dtypes *types, uint32_t id, uint32_t i, uint64_t offset,
		       uint32_t bytes)
{
	const struct dtype_member *member = &dtype_at(types, id)->members[i];
	uint64_t into = offset - member->offset;

	if (member->bits) {
		/* exact when nothing but this field lies in the access */
		bool is_all = !into && !(member->bit % 8) && member->bits == bytes * 8;

		return is_all ? DTYPE_EXACT : DTYPE_STARTS;
	}
	return dtype_leaves_at(types, dtype_member_type(types, id, i), (int64_t)into,
			       bytes)
		->fit;
}

static struct choice choose_member(struct dtypes *types, uint32_t id, uint64_t offset,
				   uint32_t bytes)
{
	const struct dtype *type = dtype_at(types, id);
	struct choice choice = { .rank = -1 };

	for (uint32_t i = 0; i < type->member_count && i < DTYPE_MAX_STEPS; i++) {
		const struct dtype_member *member = &type->members[i];
		bool is_bit_field = member->bits && member->offset < offset + bytes;

		if (member->offset > offset && !is_bit_field) {
			if (type->kind == DTYPE_STRUCT)
				break;
			continue;
		}
		if (member->offset <= offset &&
		    offset - member->offset >= dtype_member_room(types, id, i))
			continue;

		int rank = member->offset > offset
				   ? DTYPE_WITHIN
				   : member_rank(types, id, i, offset, bytes);

		if (rank > choice.rank)
			choice = (struct choice){ .index = i, .equals = 1, .rank = rank };
		else if (rank == choice.rank && type->kind == DTYPE_UNION)
			choice.equals++;
	}
	return choice;
}

static void add_name(struct str *path, const char *name)
{
	if (path->length)
		str_add_char(path, '.');
	str_add(path, name);
}

void dtype_path(struct dtypes *types, uint32_t id, uint64_t offset, uint32_t bytes,
		struct str *path, struct dtype_place *ret_place)
{
	struct dtype_place place = { .bytes = dtype_at(types, id)->bytes };
	uint64_t rest = offset;

	for (unsigned depth = 0; depth < DTYPE_MAX_DEPTH; depth++) {
		const struct dtype *type = dtype_at(types, id);

		if (type->kind == DTYPE_ARRAY) {
			uint64_t each = dtype_element_bytes(types, id);

			if (!each)
				break;
			str_add(path, "[]");
			place.offset += rest / each * each;
			rest %= each;
			id = dtype_whole(types, dtype_target(types, id));
			place.bytes = each;
			continue;
		}
		if (type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION)
			break;

		struct choice choice = choose_member(types, id, rest, bytes);

		if (choice.rank < 0)
			break;
		if (choice.equals > 1) {
			place.is_ambiguous = true;
			break;
		}

		const struct dtype_member *member = &type->members[choice.index];

		if (member->name)
			add_name(path, member->name);
		place.offset += member->offset;
		rest = rest > member->offset ? rest - member->offset : 0;
		id = dtype_member_type(types, id, choice.index);
		place.bytes = dtype_at(types, id)->bytes;
		place.is_known = true;
		if (member->bits) {
			place.bytes = (member->bit + member->bits + 7u) / 8;
			break;
		}
	}
	*ret_place = place;
}

void dtype_normal(struct dtypes *types, uint32_t *id, int64_t *offset)
{
	*id = dtype_whole(types, *id);
	for (unsigned depth = 0;
	     depth < DTYPE_MAX_DEPTH && dtype_at(types, *id)->kind == DTYPE_ARRAY;
	     depth++) {
		int64_t each = (int64_t)dtype_element_bytes(types, *id);

		if (!each)
			return;
		*offset = (*offset % each + each) % each;
		*id = dtype_whole(types, dtype_target(types, *id));
	}
}

bool dtype_covers(struct dtypes *types, uint32_t id, int64_t offset)
{
	const struct dtype *type = dtype_at(types, id);

	if (offset < 0)
		return false;
	if ((uint64_t)offset < type->bytes)
		return true;
	if (type->kind != DTYPE_STRUCT || !type->member_count)
		return false;

	/* nested: a struct whose last member ends in a flexible array */
	uint32_t last = type->member_count - 1;
	const struct dtype *inner = dtype_at(types, dtype_member_type(types, id, last));

	return inner->kind == DTYPE_ARRAY && inner->count <= 1;
}

static bool contains(struct dtype_walk *walk, uint32_t id, int64_t offset,
		     const struct dtype_leaf_key *want, unsigned depth)
{
	struct dtypes *types = walk->types;
	const struct dtype *type = dtype_at(types, id);

	if (depth > DTYPE_MAX_DEPTH || ++walk->steps > DTYPE_MAX_STEPS || offset < 0)
		return false;
	if (id == want->id && offset == want->offset)
		return true;
	if (type->kind == DTYPE_ARRAY) {
		int64_t each = (int64_t)dtype_element_bytes(types, id);

		return each && contains(walk, dtype_whole(types, dtype_target(types, id)),
					offset % each, want, depth + 1);
	}
	if (type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION)
		return false;
	for (uint32_t i = 0; i < type->member_count; i++) {
		const struct dtype_member *member = &type->members[i];

		if (++walk->steps > DTYPE_MAX_STEPS)
			return false;
		if ((int64_t)member->offset > offset) {
			if (type->kind == DTYPE_STRUCT)
				return false;
			continue;
		}
		if (member->bits || (uint64_t)(offset - member->offset) >=
					    dtype_member_room(types, id, i))
			continue;
		if (contains(walk, dtype_member_type(types, id, i),
			     offset - member->offset, want, depth + 1))
			return true;
	}
	return false;
}

bool dtype_contains(struct dtypes *types, uint32_t outer, int64_t offset, uint32_t inner,
		    int64_t inner_offset)
{
	struct dtype_walk walk = { .types = types };
	struct dtype_leaf_key want = { .id = inner, .offset = inner_offset };

	return contains(&walk, outer, offset, &want, 0);
}

struct each {
	struct dtypes *types;
	struct str path;
	size_t left;
	dtype_leaf_fn each;
	void *ctx;
};

static void each_leaf(struct each *each, uint32_t id, uint64_t offset, unsigned depth)
{
	struct dtypes *types = each->types;
	const struct dtype *type = dtype_at(types, id);

	if ((type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION) ||
	    depth >= DTYPE_MAX_DEPTH)
		return;
	for (uint32_t i = 0; i < type->member_count && each->left; i++) {
		const struct dtype_member *member = &type->members[i];
		uint32_t inner = dtype_member_type(types, id, i);
		size_t length = each->path.length;
		uint64_t bytes = member->bits ? dtype_member_room(types, id, i)
					      : dtype_at(types, inner)->bytes;

		if (member->name)
			add_name(&each->path, member->name);
		if (!member->bits && dtype_is_aggregate(types, inner)) {
			each_leaf(each, inner, offset + member->offset, depth + 1);
		} else {
			if (member->bits)
				str_printf(&each->path, ":%u@%u", member->bits,
					   member->bit);
			else if (dtype_at(types, inner)->kind == DTYPE_ARRAY)
				str_add(&each->path, "[]");
			each->each(each->ctx, str_text(&each->path),
				   offset + member->offset, bytes);
			each->left--;
		}
		if (each->path.data) {
			each->path.length = length;
			each->path.data[length] = '\0';
		}
	}
}

void dtype_each_leaf(struct dtypes *types, uint32_t id, size_t limit, dtype_leaf_fn each,
		     void *ctx)
{
	struct each walk = { .types = types, .left = limit, .each = each, .ctx = ctx };

	each_leaf(&walk, id, 0, 0);
	str_fini(&walk.path);
}

static bool in_array(struct dtype_walk *walk, uint32_t id, int64_t offset, unsigned depth)
{
	struct dtypes *types = walk->types;
	const struct dtype *type = dtype_at(types, id);

	if (depth > DTYPE_MAX_DEPTH || offset < 0)
		return false;
	if (type->kind == DTYPE_ARRAY)
		return true;
	if (type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION)
		return false;
	for (uint32_t i = 0; i < type->member_count; i++) {
		const struct dtype_member *member = &type->members[i];

		if (++walk->steps > DTYPE_MAX_STEPS)
			return false;
		if ((int64_t)member->offset > offset || member->bits ||
		    (uint64_t)(offset - member->offset) >=
			    dtype_member_room(types, id, i))
			continue;
		if (in_array(walk, dtype_member_type(types, id, i),
			     offset - member->offset, depth + 1))
			return true;
	}
	return false;
}

bool dtype_in_array(struct dtypes *types, uint32_t id, int64_t offset)
{
	struct dtype_walk walk = { .types = types };

	return in_array(&walk, id, offset, 0);
}

#define MAX_ELEMENTS_OFF 64

struct near {
	struct dtype_walk walk;
	int64_t offset, found;
	uint64_t step, distance; /* distance: of what was found */
};

static void try_array(struct near *near, uint32_t array, int64_t start)
{
	int64_t each = (int64_t)dtype_element_bytes(near->walk.types, array);
	uint64_t count = dtype_at(near->walk.types, array)->count;

	if (each <= 0 || near->step % (uint64_t)each || (each == 1 && near->step != 1) ||
	    !count || count > DTYPE_MAX_STEPS)
		return;

	int64_t end = start + each * (int64_t)count;
	uint64_t away = near->offset < start  ? (uint64_t)(start - near->offset)
			: near->offset >= end ? (uint64_t)(near->offset - end + each)
					      : 0;

	if (away > (uint64_t)each * MAX_ELEMENTS_OFF || away >= near->distance)
		return;
	near->distance = away;
	near->found = start + ((near->offset - start) % each + each) % each;
}

static void find_near(struct near *near, uint32_t id, int64_t base, unsigned depth)
{
	struct dtypes *types = near->walk.types;
	const struct dtype *type = dtype_at(types, id);

	if (depth > DTYPE_MAX_DEPTH / 2 ||
	    (type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION))
		return;
	for (uint32_t i = 0; i < type->member_count; i++) {
		uint32_t inner = dtype_member_type(types, id, i);
		int64_t offset = base + (int64_t)type->members[i].offset;

		if (++near->walk.steps > DTYPE_MAX_STEPS)
			return;
		if (dtype_at(types, inner)->kind == DTYPE_ARRAY)
			try_array(near, inner, offset);
		else
			find_near(near, inner, offset, depth + 1);
	}
}

bool dtype_array_near(struct dtypes *types, uint32_t id, int64_t *offset, uint64_t step)
{
	struct near near = { .walk = { .types = types },
			     .offset = *offset,
			     .step = step,
			     .distance = UINT64_MAX };

	if (!step || *offset != (int64_t)(int32_t)*offset)
		return false;
	find_near(&near, id, 0, 0);
	if (near.distance == UINT64_MAX)
		return false;
	*offset = near.found;
	return true;
}

struct steps {
	uint32_t *data;
	size_t count, room;
};

#define MAX_ARRAY_STEPS 64

static void add_step(struct steps *steps, uint64_t bytes)
{
	if (!bytes || bytes > UINT32_MAX || steps->count >= MAX_ARRAY_STEPS)
		return;
	vec_each(steps, step)
		if (*step == bytes)
			return;
	vec_push(steps, (uint32_t)bytes);
}

static void find_steps(struct dtype_walk *walk, uint32_t id, unsigned depth,
		       struct steps *steps)
{
	struct dtypes *types = walk->types;
	const struct dtype *type = dtype_at(types, id);

	if (depth > DTYPE_MAX_DEPTH / 2 ||
	    (type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION))
		return;
	for (uint32_t i = 0; i < type->member_count; i++) {
		uint32_t inner = dtype_member_type(types, id, i);
		int64_t ignored = 0;

		if (++walk->steps > DTYPE_MAX_STEPS)
			return;
		if (dtype_at(types, inner)->kind == DTYPE_ARRAY)
			add_step(steps, dtype_element_bytes(types, inner));
		dtype_normal(types, &inner, &ignored);
		find_steps(walk, inner, depth + 1, steps);
	}
}

const uint32_t *dtype_array_steps(struct dtypes *types, uint32_t id, size_t *ret_count)
{
	struct dtype_steps *known = map_find(types->steps, &id);
	struct dtype_walk walk = { .types = types };
	struct steps steps = { 0 };

	if (!known) {
		find_steps(&walk, id, 0, &steps);

		uint32_t *kept =
			arena_array(types->arena, steps.count + 1, sizeof(*kept));

		if (steps.count)
			memcpy(kept, steps.data, steps.count * sizeof(*kept));
		known = map_put(types->steps, &id, NULL);
		*known = (struct dtype_steps){ kept, steps.count };
		vec_fini(&steps);
	}
	*ret_count = known->count;
	return known->data;
}

struct inner {
	uint32_t id;
	int64_t offset;
	uint64_t bytes;
	bool only_unions, is_found;
};

static void find_inner(struct dtype_walk *walk, uint32_t id, int64_t offset,
		       unsigned depth, struct inner *inner)
{
	struct dtypes *types = walk->types;
	const struct dtype *type;

	dtype_normal(types, &id, &offset);
	type = dtype_at(types, id);
	if (depth > DTYPE_MAX_DEPTH || !dtype_is_aggregate(types, id))
		return;
	if ((!inner->only_unions || type->kind == DTYPE_UNION) &&
	    (!inner->is_found || type->bytes < inner->bytes)) {
		inner->is_found = true;
		inner->id = id;
		inner->offset = offset;
		inner->bytes = type->bytes;
	}
	for (uint32_t i = 0; i < type->member_count; i++) {
		const struct dtype_member *member = &type->members[i];

		if (++walk->steps > DTYPE_MAX_STEPS)
			return;
		if ((int64_t)member->offset > offset || member->bits ||
		    (uint64_t)(offset - member->offset) >=
			    dtype_member_room(types, id, i))
			continue;
		find_inner(walk, dtype_member_type(types, id, i), offset - member->offset,
			   depth + 1, inner);
	}
}

void dtype_innermost(struct dtypes *types, bool only_unions, uint32_t *id,
		     int64_t *offset)
{
	struct dtype_walk walk = { .types = types };
	struct inner inner = { .only_unions = only_unions };

	find_inner(&walk, *id, *offset, 0, &inner);
	if (!inner.is_found && only_unions) {
		inner.only_unions = false;
		find_inner(&walk, *id, *offset, 0, &inner);
	}
	if (inner.is_found) {
		*id = inner.id;
		*offset = inner.offset;
	}
}
