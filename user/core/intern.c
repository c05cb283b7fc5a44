// SPDX-License-Identifier: Apache-2.0
/* Open addressing over ids; the texts live in an arena. */
#include "core/intern.h"

#include <string.h>
#include <xxhash.h>

#include "core/arena.h"
#include "core/vec.h"

struct intern {
	struct arena *arena;
	VEC(const char *) texts;
	uint32_t *slots; /* id, 0 is free */
	uint32_t slot_count;
};

struct intern *intern_new(void)
{
	struct intern *intern = mem_alloc(sizeof(*intern));

	intern->arena = arena_new();
	vec_push(&intern->texts, "");
	return intern;
}

void intern_free(struct intern *intern)
{
	if (!intern)
		return;
	arena_free(intern->arena);
	vec_fini(&intern->texts);
	free(intern->slots);
	free(intern);
}

static uint32_t seek(const struct intern *intern, const char *text)
{
	uint32_t mask = intern->slot_count - 1;
	uint32_t i = (uint32_t)hash_text(text, 0) & mask;

	while (intern->slots[i] && strcmp(intern->texts.data[intern->slots[i]], text))
		i = (i + 1) & mask;
	return i;
}

static void grow(struct intern *intern)
{
	free(intern->slots);
	intern->slot_count = intern->slot_count ? intern->slot_count * 2 : 64;
	intern->slots = mem_array(intern->slot_count, sizeof(*intern->slots));
	for (uint32_t id = 1; id < intern->texts.count; id++)
		intern->slots[seek(intern, intern->texts.data[id])] = id;
}

uint32_t intern_id(struct intern *intern, const char *text)
{
	if (!text || !*text)
		return 0;
	if (intern->texts.count * 2 >= intern->slot_count)
		grow(intern);
	uint32_t i = seek(intern, text);

	if (!intern->slots[i]) {
		intern->slots[i] = (uint32_t)intern->texts.count;
		vec_push(&intern->texts, arena_strdup(intern->arena, text));
	}
	return intern->slots[i];
}

const char *intern_text(const struct intern *intern, uint32_t id)
{
	return id < intern->texts.count ? intern->texts.data[id] : "";
}

uint32_t intern_count(const struct intern *intern)
{
	return (uint32_t)intern->texts.count;
}

uint64_t hash_bytes(const void *bytes, size_t length, uint64_t seed)
{
	uint64_t hash = XXH3_64bits_withSeed(bytes, length, seed);

	return hash ? hash : 1;
}

uint64_t hash_text(const char *text, uint64_t seed)
{
	return hash_bytes(text, strlen(text), seed);
}
