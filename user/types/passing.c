// SPDX-License-Identifier: Apache-2.0
/*
 * Each eight bytes of a small struct have a class: integer when anything in them is,
 * else floating point. Only integer ones take argument registers; a struct that does not
 * find room for all of its parts goes to memory, and later arguments may still find some.
 */
#include "types/passing.h"

#include <string.h>

#define EIGHT	  8
#define MAX_PARTS 2

enum part {
	PART_EMPTY,
	PART_FLOAT,
	PART_INTEGER,
	PART_MEMORY,
};

struct parts {
	enum part data[MAX_PARTS];
	uint32_t pointee[MAX_PARTS]; /* of a part that is one pointer */
	bool is_pointer[MAX_PARTS];
};

static void put_leaf(const struct dtypes *types, struct parts *parts, uint32_t type,
		     uint64_t offset)
{
	const struct dtype *shape = dtype_get(types, type);
	uint64_t last = shape->bytes ? offset + shape->bytes - 1 : offset;
	enum part part = shape->is_float ? PART_FLOAT : PART_INTEGER;

	if (last >= MAX_PARTS * EIGHT ||
	    (shape->bytes && offset % shape->bytes &&
	     (offset % EIGHT + shape->bytes > EIGHT)) ||
	    (shape->is_float && shape->bytes > EIGHT)) {
		parts->data[0] = PART_MEMORY;
		return;
	}
	for (uint64_t i = offset / EIGHT; i <= last / EIGHT; i++)
		if (part > parts->data[i])
			parts->data[i] = part;
	parts->is_pointer[offset / EIGHT] = shape->kind == DTYPE_POINTER;
}

static void put_parts(struct dtypes *types, struct parts *parts, uint32_t type,
		      uint64_t offset, unsigned depth)
{
	const struct dtype *shape = dtype_get(types, type);

	if (depth > DTYPE_MAX_DEPTH || offset >= MAX_PARTS * EIGHT) {
		parts->data[0] = PART_MEMORY;
	} else if (shape->kind == DTYPE_ARRAY) {
		uint32_t element = dtype_whole(types, dtype_target(types, type));
		uint64_t bytes = dtype_get(types, element)->bytes;

		for (uint64_t i = 0; bytes && i < shape->count && i * bytes < 16; i++)
			put_parts(types, parts, element, offset + i * bytes, depth + 1);
	} else if (dtype_is_aggregate(types, type)) {
		for (uint32_t i = 0; i < shape->member_count; i++)
			put_parts(types, parts,
				  dtype_whole(types, dtype_member_type(types, type, i)),
				  offset + shape->members[i].offset, depth + 1);
	} else {
		put_leaf(types, parts, type, offset);
	}
}

/* The only pointee at @offset of the object; 0 for several. */
static uint32_t pointee_at(struct dtypes *types, uint32_t type, int64_t offset)
{
	uint32_t found = 0;

	if (dtype_get(types, type)->kind == DTYPE_POINTER)
		return dtype_target(types, type);

	const struct dtype_leaves *leaves = dtype_leaves_at(types, type, offset, EIGHT);

	for (uint32_t i = 0; i < leaves->count; i++) {
		if (dtype_get(types, leaves->types[i])->kind != DTYPE_POINTER || found)
			return 0;
		found = leaves->types[i];
	}
	return found ? dtype_target(types, found) : 0;
}

static bool is_split(const struct dtypes *types, uint32_t type)
{
	return dtype_is_aggregate(types, type) ||
	       dtype_get(types, type)->kind == DTYPE_ARRAY;
}

/* Return false when the object travels in memory. */
static bool split(struct dtypes *types, uint32_t type, struct parts *ret_parts)
{
	uint64_t bytes = dtype_get(types, type)->bytes;

	memset(ret_parts, 0, sizeof(*ret_parts));
	if (bytes > MAX_PARTS * EIGHT)
		return false;
	if (bytes)
		put_parts(types, ret_parts, type, 0, 0);
	for (unsigned i = 0; i < MAX_PARTS; i++)
		if (ret_parts->is_pointer[i])
			ret_parts->pointee[i] = pointee_at(types, type, i * EIGHT);
	return ret_parts->data[0] != PART_MEMORY;
}

static void place(struct passing *passing, const struct parts *parts, uint32_t count)
{
	uint32_t need = 0;

	for (unsigned i = 0; i < MAX_PARTS; i++)
		need += parts->data[i] == PART_INTEGER;
	if (passing->used + need > count)
		return;
	for (unsigned i = 0; i < MAX_PARTS; i++) {
		if (parts->data[i] != PART_INTEGER)
			continue;
		passing->pointee[passing->used] = parts->pointee[i];
		passing->is_pointer[passing->used] = parts->is_pointer[i];
		passing->used++;
	}
}

void passing_of(struct dtypes *types, uint32_t function, uint32_t count,
		struct passing *ret_passing)
{
	const struct dtype *shape = dtype_get(types, function);
	struct passing passing = { 0 };
	struct parts parts;
	uint32_t result;

	*ret_passing = passing;
	if (shape->kind != DTYPE_FUNCTION)
		return;
	if (count > FLOW_MAX_ARGS)
		count = FLOW_MAX_ARGS;
	result = dtype_whole(types, dtype_target(types, function));
	if (!split(types, result, &parts) && is_split(types, result) && count) {
		passing.result = result;
		passing.pointee[0] = result;
		passing.is_pointer[0] = true;
		passing.used = 1;
	} else if (parts.data[0] == PART_INTEGER && parts.is_pointer[0]) {
		passing.result = parts.pointee[0];
	} else if (parts.data[0] == PART_FLOAT && parts.is_pointer[1]) {
		passing.result = parts.pointee[1];
	}
	for (uint32_t i = 0; i < shape->member_count; i++)
		if (split(types, dtype_whole(types, shape->params[i]), &parts))
			place(&passing, &parts, count);
	*ret_passing = passing;
}
