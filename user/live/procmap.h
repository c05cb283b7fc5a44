/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_PROCMAP_H
#define LIVE_PROCMAP_H

/*
 * One address space: the executable mappings, sorted, never overlapping. A new mapping
 * replaces what it covers, as mmap(MAP_FIXED) does. A fork shares the map until one of
 * the two changes it.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

struct range {
	uint64_t start, end;
	uint64_t pgoff;	  /* of @start */
	uint64_t key;	  /* live_key(); 0: no file */
	uint64_t time_ns; /* when it was mapped */
};

struct procmap;

struct procmap *procmap_new(void);
struct procmap *procmap_ref(struct procmap *map);
void procmap_unref(struct procmap *map); /* NULL is fine */

/**
 * procmap_add() - map @range into *@map, which becomes a private copy when shared.
 * Parts covered by a younger mapping stay as they are: records may arrive out of order.
 * Return false, with nothing changed, when @limit ranges would be exceeded.
 */
bool procmap_add(struct procmap **map, const struct range *range, size_t limit);

/* procmap_under() - add what *@map lacks from @older, by the same rule. */
bool procmap_under(struct procmap **map, const struct procmap *older, size_t limit);

/* procmap_forget() - drop what was mapped before @time_ns. */
void procmap_forget(struct procmap **map, uint64_t time_ns);

/* procmap_find() - borrowed until the map changes; NULL when nothing covers @ip. */
const struct range *procmap_find(const struct procmap *map, uint64_t ip);

/* procmap_ranges() - all of them; borrowed likewise. */
const struct range *procmap_ranges(const struct procmap *map, size_t *ret_count);

/* procmap_visit() - false when this map was already visited in round @epoch (> 0). */
bool procmap_visit(struct procmap *map, uint64_t epoch);

#endif
