// SPDX-License-Identifier: Apache-2.0
/* A list of chunks, newest first; a block larger than a chunk gets one of its own. */
#include "core/arena.h"

#include <stdarg.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>

#include "core/mem.h"

#define ARENA_CHUNK_BYTES (64 * 1024)
#define ARENA_ALIGN	  16

struct chunk {
	struct chunk *next;
	size_t used, size;
	_Alignas(ARENA_ALIGN) unsigned char data[];
};

struct arena {
	struct chunk *chunks;
	size_t bytes;
};

struct arena *arena_new(void)
{
	return mem_alloc(sizeof(struct arena));
}

void arena_free(struct arena *arena)
{
	if (!arena)
		return;
	for (struct chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		free(chunk);
	}
	free(arena);
}

void arena_reset(struct arena *arena)
{
	struct chunk *keep = NULL;

	for (struct chunk *chunk = arena->chunks, *next; chunk; chunk = next) {
		next = chunk->next;
		if (!next && chunk->size == ARENA_CHUNK_BYTES)
			keep = chunk;
		else
			free(chunk);
	}
	if (keep) {
		memset(keep->data, 0, keep->used);
		keep->used = 0;
	}
	arena->chunks = keep;
	arena->bytes = keep ? keep->size : 0;
}

static struct chunk *chunk_new(struct arena *arena, size_t size)
{
	struct chunk *chunk = mem_alloc(sizeof(*chunk) + size);

	chunk->size = size;
	arena->bytes += size;
	return chunk;
}

void *arena_alloc(struct arena *arena, size_t bytes)
{
	bytes = (bytes + ARENA_ALIGN - 1) & ~(size_t)(ARENA_ALIGN - 1);

	struct chunk *top = arena->chunks;

	if (bytes > ARENA_CHUNK_BYTES / 4) {
		/* Behind the top chunk, whose free rest stays usable. */
		struct chunk *big = chunk_new(arena, bytes);

		big->used = bytes;
		if (top) {
			big->next = top->next;
			top->next = big;
		} else {
			arena->chunks = big;
		}
		return big->data;
	}
	if (!top || top->size - top->used < bytes) {
		struct chunk *chunk = chunk_new(arena, ARENA_CHUNK_BYTES);

		chunk->next = top;
		arena->chunks = top = chunk;
	}
	void *block = top->data + top->used;

	top->used += bytes;
	return block;
}

void *arena_array(struct arena *arena, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		bytes = SIZE_MAX - 2 * ARENA_ALIGN;
	return arena_alloc(arena, bytes);
}

char *arena_strndup(struct arena *arena, const char *text, size_t length)
{
	char *copy = arena_alloc(arena, length + 1);

	memcpy(copy, text, length);
	return copy;
}

char *arena_strdup(struct arena *arena, const char *text)
{
	return text ? arena_strndup(arena, text, strlen(text)) : NULL;
}

char *arena_printf(struct arena *arena, const char *fmt, ...)
{
	va_list ap, again;

	va_start(ap, fmt);
	va_copy(again, ap);
	int length = vsnprintf(NULL, 0, fmt, ap);
	va_end(ap);
	char *text = arena_alloc(arena, (size_t)length + 1);

	vsnprintf(text, (size_t)length + 1, fmt, again);
	va_end(again);
	return text;
}

size_t arena_bytes(const struct arena *arena)
{
	return arena->bytes;
}
