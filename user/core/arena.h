/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_ARENA_H
#define CORE_ARENA_H

/* Memory that is freed all at once: one arena per analysed module, per batch. */

#include <stddef.h>

#include "core/cleanup.h"

struct arena;

struct arena *arena_new(void);
void arena_free(struct arena *arena); /* NULL is fine */
CLEANUP_DEFINE(arena_free, struct arena *)

/* arena_reset() - forget every block but keep the first chunk for the next round. */
void arena_reset(struct arena *arena);

/* arena_alloc() - zeroed and aligned to 16; aborts when memory runs out. */
void *arena_alloc(struct arena *arena, size_t bytes);
void *arena_array(struct arena *arena, size_t count, size_t size);
char *arena_strdup(struct arena *arena, const char *text);
char *arena_strndup(struct arena *arena, const char *text, size_t length);
char *arena_printf(struct arena *arena, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* arena_bytes() - memory held, for limits and reports. */
size_t arena_bytes(const struct arena *arena);

#endif
