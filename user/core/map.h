/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_MAP_H
#define CORE_MAP_H

/*
 * A hash map from a fixed-size key (any plain bytes; zero the padding) to a
 * fixed-size value kept in place. Open addressing, linear probing, XXH3.
 *
 *	struct map *map = map_new(sizeof(uint64_t), sizeof(struct module));
 *	struct module *module = map_put(map, &id, &is_new);   // zeroed when new
 *
 * Pointers to values are valid until the next map_put() or map_del().
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/cleanup.h"

struct map;

struct map *map_new(size_t key_bytes, size_t value_bytes);
void map_free(struct map *map); /* NULL is fine */
CLEANUP_DEFINE(map_free, struct map *)

void *map_find(const struct map *map, const void *key);		/* NULL when absent */
void *map_put(struct map *map, const void *key, bool *ret_new); /* @ret_new may be NULL */
bool map_del(struct map *map, const void *key);
void map_clear(struct map *map);
size_t map_count(const struct map *map);

/**
 * map_next() - walk in no particular order.
 * @pos: 0 to begin; opaque afterwards.
 * Return: the next value, NULL at the end. @ret_key borrows the key; may be NULL.
 * The map must not be changed during the walk, but map_del_if() removes while walking.
 */
void *map_next(const struct map *map, size_t *pos, const void **ret_key);

/* map_del_if() - remove every entry for which @test says so. Return: how many. */
size_t map_del_if(struct map *map, bool (*test)(const void *key, void *value, void *ctx),
		  void *ctx);

#endif
