// SPDX-License-Identifier: Apache-2.0
/*
 * Raw ids to kinds, in two generations: SQL texts may be millions, but only those of open
 * requests are asked for. A name that is normal already keeps its id, which is the same
 * on every host.
 */
#include "live/method.h"

#include <string.h>

#include "core/intern.h"
#include "core/map.h"
#include "core/mem.h"
#include "cost/normal.h"

struct methods {
	struct sink *sink;
	struct map *young, *old; /* raw id -> kind */
	struct map *kinds;	 /* that were put */
	bool hash_names;
};

struct methods *methods_new(struct sink *sink, bool hash_names)
{
	struct methods *methods = mem_alloc(sizeof(*methods));

	methods->sink = sink;
	methods->hash_names = hash_names;
	methods->young = map_new(sizeof(uint64_t), sizeof(uint64_t));
	methods->old = map_new(sizeof(uint64_t), sizeof(uint64_t));
	methods->kinds = map_new(sizeof(uint64_t), 1);
	return methods;
}

void methods_free(struct methods *methods)
{
	if (!methods)
		return;
	map_free(methods->young);
	map_free(methods->old);
	map_free(methods->kinds);
	free(methods);
}

static uint64_t other_kind(void)
{
	return hash_text("(other)", 0);
}

static void put_method(struct methods *methods, uint64_t method_id, const char *framework,
		       const char *name)
{
	struct fact fact = { .kind = FACT_METHOD };

	fact.method = (struct fact_method){ method_id, framework, name };
	sink_put(methods->sink, &fact);
}

static void remember(struct methods *methods, uint64_t raw_id, uint64_t kind)
{
	if (map_count(methods->young) >= METHOD_MAX_RAW / 2) {
		struct map *old = methods->old;

		methods->old = methods->young;
		methods->young = old;
		map_clear(old);
	}
	*(uint64_t *)map_put(methods->young, &raw_id, NULL) = kind;
}

static uint64_t admit(struct methods *methods, uint64_t kind, const char *framework,
		      const char *name)
{
	if (map_find(methods->kinds, &kind))
		return kind;
	if (map_count(methods->kinds) >= METHOD_MAX_KINDS) {
		put_method(methods, other_kind(), "", "(other)");
		return other_kind();
	}
	map_put(methods->kinds, &kind, NULL);
	if (name)
		put_method(methods, kind, framework, name);
	return kind;
}

void methods_learn(struct methods *methods, const struct abi_span *span, const char *name,
		   const char *framework)
{
	char normal[NORMAL_MAX_BYTES];
	unsigned flags = 0;
	uint64_t kind = span->name_id;

	if (!kind || map_find(methods->young, &kind))
		return;
	if (!span->name_bytes) {
		remember(methods, kind, admit(methods, kind, framework, NULL));
		return;
	}
	if (!strcmp(framework, "postgresql"))
		flags |= NORMAL_QUOTED_NAMES;
	if (span->name_bytes == ABI_NAME_MAX)
		flags |= NORMAL_CUT;
	if (methods->hash_names)
		flags |= NORMAL_HASH;
	normal_name(name, span->name_bytes, flags, normal);
	if (strlen(normal) != span->name_bytes || memcmp(normal, name, span->name_bytes))
		kind = hash_text(normal, hash_text(framework, 4));
	remember(methods, span->name_id, admit(methods, kind, framework, normal));
}

uint64_t methods_kind(const struct methods *methods, uint64_t raw_id)
{
	uint64_t *kind = raw_id ? map_find(methods->young, &raw_id) : NULL;

	if (!kind && raw_id)
		kind = map_find(methods->old, &raw_id);
	return kind ? *kind : raw_id ? other_kind() : 0;
}
