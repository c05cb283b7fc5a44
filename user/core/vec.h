/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_VEC_H
#define CORE_VEC_H

/*
 * A typed growing array, plain data:
 *
 *	VEC(struct range) ranges = { 0 };
 *	vec_push(&ranges, ((struct range){ lo, hi }));
 *	vec_each (&ranges, range)
 *		use(range->lo);
 *	vec_fini(&ranges);
 *
 * Pointers into it are valid until the next push.
 */

#include <stddef.h>
#include <stdlib.h>

#include "core/mem.h"

#define VEC(type)                   \
	struct {                    \
		type *data;         \
		size_t count, room; \
	}

static inline void *vec_grow_(void *data, size_t *room, size_t need, size_t size)
{
	if (need <= *room)
		return data;
	size_t grown = *room ? *room * 2 : 8;

	*room = grown < need ? need : grown;
	return mem_resize(data, *room, size);
}

#define vec_reserve(vec, need) \
	((vec)->data = vec_grow_((vec)->data, &(vec)->room, (need), sizeof(*(vec)->data)))

#define vec_push(vec, value) \
	(vec_reserve(vec, (vec)->count + 1), (vec)->data[(vec)->count++] = (value))

/* vec_add() - pointer to a new element, not zeroed. */
#define vec_add(vec) (vec_reserve(vec, (vec)->count + 1), &(vec)->data[(vec)->count++])

#define vec_each(vec, item)                                \
	for (__typeof__(*(vec)->data) *item = (vec)->data; \
	     item && item < (vec)->data + (vec)->count; item++)

#define vec_clear(vec) ((vec)->count = 0)

#define vec_fini(vec) \
	(free((vec)->data), (vec)->data = NULL, (vec)->count = (vec)->room = 0)

#endif
