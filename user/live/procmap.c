// SPDX-License-Identifier: Apache-2.0
/*
 * A sorted array; a new range is merged with the few it touches into a small list of
 * pieces that replaces them. Neighbours that continue each other are joined, so that a
 * JIT which makes its code executable page by page stays small.
 */
#include "live/procmap.h"

#include <string.h>

#include "core/mem.h"
#include "core/vec.h"

struct procmap {
	size_t refs;
	uint64_t epoch;
	VEC(struct range) ranges;
};

struct pieces {
	VEC(struct range) list;
};

struct procmap *procmap_new(void)
{
	struct procmap *map = mem_alloc(sizeof(*map));

	map->refs = 1;
	return map;
}

struct procmap *procmap_ref(struct procmap *map)
{
	map->refs++;
	return map;
}

void procmap_unref(struct procmap *map)
{
	if (!map || --map->refs)
		return;
	vec_fini(&map->ranges);
	free(map);
}

static struct procmap *make_private(struct procmap **map)
{
	struct procmap *old = *map;

	if (old->refs == 1)
		return old;
	struct procmap *copy = procmap_new();

	vec_reserve(&copy->ranges, old->ranges.count);
	if (old->ranges.count)
		memcpy(copy->ranges.data, old->ranges.data,
		       old->ranges.count * sizeof(struct range));
	copy->ranges.count = old->ranges.count;
	old->refs--;
	*map = copy;
	return copy;
}

/* Index of the first range that ends after @ip. */
static size_t lower_bound(const struct procmap *map, uint64_t ip)
{
	size_t low = 0, high = map->ranges.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (map->ranges.data[middle].end > ip)
			high = middle;
		else
			low = middle + 1;
	}
	return low;
}

static bool continues(const struct range *a, const struct range *b)
{
	return a->end == b->start && a->key == b->key &&
	       (!a->key || a->pgoff + (a->end - a->start) == b->pgoff);
}

/* Append [start, end) of @from. */
static void add_piece(struct pieces *pieces, const struct range *from, uint64_t start,
		      uint64_t end)
{
	struct range piece = *from;
	struct range *last =
		pieces->list.count ? &pieces->list.data[pieces->list.count - 1] : NULL;

	if (start >= end)
		return;
	piece.start = start;
	piece.end = end;
	piece.pgoff = from->pgoff + (start - from->start);
	if (!last || !continues(last, &piece)) {
		vec_push(&pieces->list, piece);
		return;
	}
	last->end = end;
	if (piece.time_ns > last->time_ns)
		last->time_ns = piece.time_ns;
}

/* What becomes of @old ranges, sorted, when @range is mapped over them. */
static void cut(struct pieces *pieces, const struct range *old, size_t count,
		const struct range *range)
{
	uint64_t at = range->start;

	for (size_t i = 0; i < count; i++) {
		const struct range *o = &old[i];

		if (o->end <= range->start) {
			add_piece(pieces, o, o->start, o->end);
		} else if (o->start >= range->end) {
			add_piece(pieces, range, at, range->end);
			at = range->end;
			add_piece(pieces, o, o->start, o->end);
		} else if (o->time_ns > range->time_ns) {
			if (o->start > at)
				add_piece(pieces, range, at, o->start);
			add_piece(pieces, o, o->start, o->end);
			at = o->end < range->end ? o->end : range->end;
		} else {
			if (o->start < range->start)
				add_piece(pieces, o, o->start, range->start);
			if (o->end > range->end) {
				add_piece(pieces, range, at, range->end);
				at = range->end;
				add_piece(pieces, o, range->end, o->end);
			}
		}
	}
	add_piece(pieces, range, at, range->end);
}

/* Put @pieces in place of @count ranges from @first. */
static void splice(struct procmap *map, size_t first, size_t count,
		   const struct pieces *pieces)
{
	size_t grown = map->ranges.count - count + pieces->list.count;
	size_t tail = map->ranges.count - first - count;

	vec_reserve(&map->ranges, grown);
	if (tail)
		memmove(map->ranges.data + first + pieces->list.count,
			map->ranges.data + first + count, tail * sizeof(struct range));
	if (pieces->list.count)
		memcpy(map->ranges.data + first, pieces->list.data,
		       pieces->list.count * sizeof(struct range));
	map->ranges.count = grown;
}

bool procmap_add(struct procmap **map, const struct range *range, size_t limit)
{
	if (range->start >= range->end)
		return true;
	/* One neighbour on each side takes part, for joining. */
	const struct procmap *old = *map;
	size_t first = lower_bound(old, range->start);
	size_t last = first;

	while (last < old->ranges.count && old->ranges.data[last].start < range->end)
		last++;
	if (first > 0)
		first--;
	if (last < old->ranges.count)
		last++;
	struct pieces pieces = { 0 };

	cut(&pieces, old->ranges.data + first, last - first, range);
	bool fits = old->ranges.count - (last - first) + pieces.list.count <= limit;

	if (fits)
		splice(make_private(map), first, last - first, &pieces);
	vec_fini(&pieces.list);
	return fits;
}

bool procmap_under(struct procmap **map, const struct procmap *older, size_t limit)
{
	bool fits = true;

	for (size_t i = 0; i < older->ranges.count; i++)
		fits &= procmap_add(map, &older->ranges.data[i], limit);
	return fits;
}

void procmap_forget(struct procmap **map, uint64_t time_ns)
{
	struct procmap *own = make_private(map);
	size_t kept = 0;

	for (size_t i = 0; i < own->ranges.count; i++)
		if (own->ranges.data[i].time_ns >= time_ns)
			own->ranges.data[kept++] = own->ranges.data[i];
	own->ranges.count = kept;
}

const struct range *procmap_find(const struct procmap *map, uint64_t ip)
{
	size_t i = lower_bound(map, ip);

	if (i == map->ranges.count || map->ranges.data[i].start > ip)
		return NULL;
	return &map->ranges.data[i];
}

const struct range *procmap_ranges(const struct procmap *map, size_t *ret_count)
{
	*ret_count = map->ranges.count;
	return map->ranges.data;
}

bool procmap_visit(struct procmap *map, uint64_t epoch)
{
	if (map->epoch == epoch)
		return false;
	map->epoch = epoch;
	return true;
}
