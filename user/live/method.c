// SPDX-License-Identifier: Apache-2.0
/*
 * Raw ids to kinds, in two generations: SQL texts may be millions, but only those of open
 * requests are asked for. A name that is normal already keeps its id, which is the same
 * on every host.
 *
 * Each framework has so many kinds and not more: when they are full, the cheaper quarter
 * of them makes room every half minute for names that come later.
 */
#include "live/method.h"

#include <stdlib.h>
#include <string.h>

#include "core/intern.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"
#include "cost/normal.h"

struct kind {
	uint64_t framework; /* hash of its name */
	uint64_t cost_ns;
};

/* What a raw id is; its kind counts only while that is admitted. */
struct raw {
	uint64_t kind, framework;
};

struct methods {
	struct sink *sink;
	struct map *young, *old; /* raw id -> struct raw */
	struct map *kinds;	 /* that were put -> struct kind */
	struct map *counts;	 /* framework -> uint64_t: how many of them */
	size_t limit;
	bool hash_names;
};

struct methods *methods_new(struct sink *sink, bool hash_names, size_t limit)
{
	struct methods *methods = mem_alloc(sizeof(*methods));

	methods->sink = sink;
	methods->hash_names = hash_names;
	methods->limit = limit ?: METHOD_NAMES;
	methods->young = map_new(sizeof(uint64_t), sizeof(struct raw));
	methods->old = map_new(sizeof(uint64_t), sizeof(struct raw));
	methods->kinds = map_new(sizeof(uint64_t), sizeof(struct kind));
	methods->counts = map_new(sizeof(uint64_t), sizeof(uint64_t));
	return methods;
}

void methods_free(struct methods *methods)
{
	if (!methods)
		return;
	map_free(methods->young);
	map_free(methods->old);
	map_free(methods->kinds);
	map_free(methods->counts);
	free(methods);
}

static uint64_t other_kind(uint64_t framework)
{
	return hash_text("(other)", framework);
}

static void put_method(struct methods *methods, uint64_t method_id, const char *framework,
		       const char *name)
{
	struct fact fact = { .kind = FACT_METHOD };

	fact.method = (struct fact_method){ method_id, framework, name };
	sink_put(methods->sink, &fact);
}

static void remember(struct methods *methods, uint64_t raw_id, const struct raw *raw)
{
	if (map_count(methods->young) >= METHOD_MAX_RAW / 2) {
		struct map *old = methods->old;

		methods->old = methods->young;
		methods->young = old;
		map_clear(old);
	}
	*(struct raw *)map_put(methods->young, &raw_id, NULL) = *raw;
}

/* Where there are too many, the rest is one kind, until some turn out cheap. */
static void admit(struct methods *methods, const struct raw *raw, const char *framework,
		  const char *name)
{
	if (map_find(methods->kinds, &raw->kind))
		return;
	uint64_t *count = map_put(methods->counts, &raw->framework, NULL);

	if (*count >= methods->limit || map_count(methods->kinds) >= METHOD_MAX_KINDS) {
		put_method(methods, other_kind(raw->framework), framework, "(other)");
		return;
	}
	++*count;
	((struct kind *)map_put(methods->kinds, &raw->kind, NULL))->framework =
		raw->framework;
	if (name)
		put_method(methods, raw->kind, framework, name);
}

void methods_charge(struct methods *methods, uint64_t kind_id, uint64_t cost_ns)
{
	struct kind *kind = map_find(methods->kinds, &kind_id);

	if (kind)
		kind->cost_ns += cost_ns;
}

static int by_cost(const void *a, const void *b)
{
	uint64_t left = *(const uint64_t *)a, right = *(const uint64_t *)b;

	return left < right ? 1 : left > right ? -1 : 0;
}

struct cut {
	uint64_t framework, below_ns;
	uint64_t *count;
};

static bool is_cheap(const void *key, void *value, void *ctx)
{
	struct kind *kind = value;
	struct cut *cut = ctx;

	(void)key;
	if (kind->framework != cut->framework)
		return false;
	if (kind->cost_ns < cut->below_ns) {
		--*cut->count;
		return true;
	}
	kind->cost_ns /= 2; /* what was long ago counts less */
	return false;
}

/* The cheaper quarter makes room. */
static void make_room(struct methods *methods, uint64_t framework, uint64_t *count)
{
	VEC(uint64_t) costs = { 0 };
	struct cut cut = { framework, 0, count };
	const void *key;
	size_t pos = 0;

	for (struct kind *kind; (kind = map_next(methods->kinds, &pos, &key));)
		if (kind->framework == framework)
			vec_push(&costs, kind->cost_ns);
	qsort(costs.data, costs.count, sizeof(*costs.data), by_cost);
	if (costs.count)
		cut.below_ns = costs.data[costs.count * 3 / 4] + 1;
	map_del_if(methods->kinds, is_cheap, &cut);
	vec_fini(&costs);
}

void methods_turn(struct methods *methods)
{
	const void *key;
	size_t pos = 0;

	for (uint64_t *count; (count = map_next(methods->counts, &pos, &key));)
		if (*count >= methods->limit)
			make_room(methods, *(const uint64_t *)key, count);
}

static const struct raw *raw_of(const struct methods *methods, uint64_t raw_id)
{
	const struct raw *raw = map_find(methods->young, &raw_id);

	return raw ?: map_find(methods->old, &raw_id);
}

void methods_learn(struct methods *methods, const struct abi_span *span, const char *name,
		   const char *framework)
{
	char normal[NORMAL_MAX_BYTES];
	unsigned flags = 0;
	struct raw raw = { span->name_id, hash_text(framework, 4) };
	const struct raw *known = map_find(methods->young, &raw.kind);

	if (!raw.kind || (known && map_find(methods->kinds, &known->kind)))
		return;
	if (!span->name_bytes) {
		remember(methods, span->name_id, &raw);
		admit(methods, &raw, framework, NULL);
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
		raw.kind = hash_text(normal, raw.framework);
	remember(methods, span->name_id, &raw);
	admit(methods, &raw, framework, normal);
}

uint64_t methods_kind(const struct methods *methods, uint64_t raw_id)
{
	const struct raw *raw = raw_id ? raw_of(methods, raw_id) : NULL;

	if (!raw)
		return raw_id ? other_kind(0) : 0;
	return map_find(methods->kinds, &raw->kind) ? raw->kind
						    : other_kind(raw->framework);
}
