// SPDX-License-Identifier: Apache-2.0
/*
 * Slots are {used byte, key, value}. Deletion shifts the following run back, so there
 * are no tombstones and a lookup ends at the first free slot. Load stays under 3/4.
 */
#include "core/map.h"

#include <stdint.h>
#include <string.h>
#include <xxhash.h>

#include "core/mem.h"

#define MAP_MIN_SLOTS 16

struct map {
	size_t key_bytes, value_bytes, value_at, slot_bytes;
	size_t count, slots; /* slots is a power of two, 0 before the first put */
	unsigned char *used;
	unsigned char *data;
};

static size_t round_up(size_t bytes, size_t align)
{
	return (bytes + align - 1) & ~(align - 1);
}

struct map *map_new(size_t key_bytes, size_t value_bytes)
{
	struct map *map = mem_alloc(sizeof(*map));

	map->key_bytes = key_bytes;
	map->value_bytes = value_bytes;
	map->value_at = round_up(key_bytes, 8);
	map->slot_bytes = round_up(map->value_at + value_bytes, 8);
	return map;
}

void map_free(struct map *map)
{
	if (!map)
		return;
	free(map->used);
	free(map->data);
	free(map);
}

static unsigned char *slot_at(const struct map *map, size_t i)
{
	return map->data + i * map->slot_bytes;
}

static size_t home_of(const struct map *map, const void *key)
{
	return XXH3_64bits(key, map->key_bytes) & (map->slots - 1);
}

/* The slot that holds @key, or the free one where it belongs. */
static size_t seek(const struct map *map, const void *key)
{
	size_t i = home_of(map, key);

	while (map->used[i] && memcmp(slot_at(map, i), key, map->key_bytes))
		i = (i + 1) & (map->slots - 1);
	return i;
}

void *map_find(const struct map *map, const void *key)
{
	if (!map->slots)
		return NULL;
	size_t i = seek(map, key);

	return map->used[i] ? slot_at(map, i) + map->value_at : NULL;
}

static void grow(struct map *map)
{
	struct map old = *map;

	map->slots = old.slots ? old.slots * 2 : MAP_MIN_SLOTS;
	map->used = mem_array(map->slots, 1);
	map->data = mem_array(map->slots, map->slot_bytes);
	for (size_t i = 0; i < old.slots; i++) {
		if (!old.used[i])
			continue;
		size_t to = seek(map, slot_at(&old, i));

		map->used[to] = 1;
		memcpy(slot_at(map, to), slot_at(&old, i), map->slot_bytes);
	}
	free(old.used);
	free(old.data);
}

void *map_put(struct map *map, const void *key, bool *ret_new)
{
	if ((map->count + 1) * 4 > map->slots * 3)
		grow(map);
	size_t i = seek(map, key);
	bool is_new = !map->used[i];

	if (is_new) {
		map->used[i] = 1;
		memset(slot_at(map, i), 0, map->slot_bytes);
		memcpy(slot_at(map, i), key, map->key_bytes);
		map->count++;
	}
	if (ret_new)
		*ret_new = is_new;
	return slot_at(map, i) + map->value_at;
}

static void del_slot(struct map *map, size_t hole)
{
	size_t mask = map->slots - 1;

	for (size_t i = (hole + 1) & mask; map->used[i]; i = (i + 1) & mask) {
		size_t home = home_of(map, slot_at(map, i));

		/* Move back only what may live at the hole: its home is not in (hole, i]. */
		if (((i - home) & mask) < ((i - hole) & mask))
			continue;
		memcpy(slot_at(map, hole), slot_at(map, i), map->slot_bytes);
		hole = i;
	}
	map->used[hole] = 0;
	map->count--;
}

bool map_del(struct map *map, const void *key)
{
	if (!map->slots)
		return false;
	size_t i = seek(map, key);

	if (!map->used[i])
		return false;
	del_slot(map, i);
	return true;
}

void map_clear(struct map *map)
{
	if (map->slots)
		memset(map->used, 0, map->slots);
	map->count = 0;
}

size_t map_count(const struct map *map)
{
	return map->count;
}

void *map_next(const struct map *map, size_t *pos, const void **ret_key)
{
	for (size_t i = *pos; i < map->slots; i++) {
		if (!map->used[i])
			continue;
		*pos = i + 1;
		if (ret_key)
			*ret_key = slot_at(map, i);
		return slot_at(map, i) + map->value_at;
	}
	*pos = map->slots;
	return NULL;
}

size_t map_del_if(struct map *map, bool (*test)(const void *key, void *value, void *ctx),
		  void *ctx)
{
	unsigned char *dead = mem_array(map->slots, map->key_bytes);
	size_t count = 0;

	for (size_t i = 0; i < map->slots; i++)
		if (map->used[i] &&
		    test(slot_at(map, i), slot_at(map, i) + map->value_at, ctx))
			memcpy(dead + count++ * map->key_bytes, slot_at(map, i),
			       map->key_bytes);
	for (size_t i = 0; i < count; i++)
		map_del(map, dead + i * map->key_bytes);
	free(dead);
	return count;
}
