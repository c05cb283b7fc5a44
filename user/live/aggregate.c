// SPDX-License-Identifier: Apache-2.0
/*
 * Open cells live in two hash maps. A flush collects the ended ones, sorts them, so that
 * equal input gives equal output and the store inserts in key order, and puts them. A
 * sample that was mapped late opens its cell again; the store adds both rows.
 */
#include "live/aggregate.h"

#include <string.h>

#include "core/map.h"
#include "event/memsrc.h"
#include "live/losses.h"

struct access_key {
	uint64_t bucket_ns, process_id, module_id, va, method_id, source;
};

struct access_cell {
	uint64_t samples, period, loads, stores, weight_samples, weight_cycles;
	uint64_t levels[MEMSRC_REMOTE + 1];
	uint64_t tlb_miss, hitm;
};

struct tick_key {
	uint64_t bucket_ns, process_id, stack_id, method_id;
};

struct tick_cell {
	uint64_t samples, cpu_ns;
};

struct aggregate {
	const struct live_config *config;
	struct sink *sink;
	size_t limit;
	struct map *accesses, *ticks;
	struct map *stacks; /* ids that were put */
};

struct aggregate *aggregate_new(const struct live_config *config, struct sink *sink,
				size_t limit)
{
	struct aggregate *aggregate = mem_alloc(sizeof(*aggregate));

	aggregate->config = config;
	aggregate->sink = sink;
	aggregate->limit = limit;
	aggregate->accesses =
		map_new(sizeof(struct access_key), sizeof(struct access_cell));
	aggregate->ticks = map_new(sizeof(struct tick_key), sizeof(struct tick_cell));
	aggregate->stacks = map_new(sizeof(uint64_t), 1);
	return aggregate;
}

void aggregate_free(struct aggregate *aggregate)
{
	if (!aggregate)
		return;
	map_free(aggregate->accesses);
	map_free(aggregate->ticks);
	map_free(aggregate->stacks);
	free(aggregate);
}

size_t aggregate_count(const struct aggregate *aggregate)
{
	return map_count(aggregate->accesses) + map_count(aggregate->ticks);
}

/* The cell of @key; NULL when a new one would exceed the limit. */
static void *cell_at(struct aggregate *aggregate, struct map *map, const void *key)
{
	void *cell = map_find(map, key);

	if (cell || aggregate_count(aggregate) >= aggregate->limit)
		return cell;
	return map_put(map, key, NULL);
}

static void add_source(struct access_cell *cell, const struct sample *sample)
{
	struct memsrc src = { 0 };

	if (sample->flags & ABI_ACCESS_WEIGHT) {
		src = memsrc_decode(sample->data_src);
		if (sample->weight) {
			cell->weight_samples++;
			cell->weight_cycles += sample->weight;
		}
	}
	cell->loads += src.load || sample->source == ABI_SOURCE_PEBS_LOAD;
	cell->stores += src.store || sample->source == ABI_SOURCE_PEBS_STORE;
	cell->levels[src.level]++;
	cell->tlb_miss += src.tlb_miss;
	cell->hitm += src.hitm;
}

bool aggregate_access(struct aggregate *aggregate, const struct sample *sample,
		      uint64_t module_id, uint64_t va)
{
	struct access_key key = {
		.bucket_ns = bucket_of(aggregate->config, sample->time_ns),
		.process_id = sample->process_id,
		.module_id = module_id,
		.va = va,
		.method_id = sample->method_id,
		.source = sample->source,
	};
	struct access_cell *cell = cell_at(aggregate, aggregate->accesses, &key);

	if (!cell)
		return false;
	cell->samples++;
	cell->period += sample->period;
	add_source(cell, sample);
	return true;
}

static void put_stack(struct aggregate *aggregate, const struct fact_stack *stack)
{
	bool is_new;

	if (map_count(aggregate->stacks) >= AGGREGATE_MAX_STACKS)
		map_clear(aggregate->stacks);
	map_put(aggregate->stacks, &stack->stack_id, &is_new);
	if (is_new)
		sink_put(aggregate->sink,
			 &(struct fact){ .kind = FACT_STACK, .stack = *stack });
}

bool aggregate_tick(struct aggregate *aggregate, const struct abi_tick *tick,
		    uint64_t process_id, struct fact_stack *stack)
{
	stack->stack_id = stack_id_of(stack->frames, stack->count, stack->kernel_count);
	struct tick_key key = {
		.bucket_ns = bucket_of(aggregate->config, tick->head.time_ns),
		.process_id = process_id,
		.stack_id = stack->stack_id,
		.method_id = tick->head.method_id,
	};
	struct tick_cell *cell = cell_at(aggregate, aggregate->ticks, &key);

	if (!cell)
		return false;
	cell->samples++;
	cell->cpu_ns += tick->period_ns;
	put_stack(aggregate, stack);
	return true;
}

static void put_access(struct aggregate *aggregate, const void *key_bytes,
		       const void *cell_bytes)
{
	const struct access_key *key = key_bytes;
	const struct access_cell *cell = cell_bytes;
	struct fact fact = {
		.kind = FACT_ACCESS,
		.access = {
			.run_id = aggregate->config->run_id,
			.bucket_ns = key->bucket_ns,
			.process_id = key->process_id,
			.module_id = key->module_id,
			.va = key->va,
			.method_id = key->method_id,
			.source = (uint32_t)key->source,
			.samples = cell->samples,
			.period = cell->period,
			.loads = cell->loads,
			.stores = cell->stores,
			.weight_samples = cell->weight_samples,
			.weight_cycles = cell->weight_cycles,
			.l1 = cell->levels[MEMSRC_L1],
			.l2 = cell->levels[MEMSRC_L2],
			.l3 = cell->levels[MEMSRC_L3],
			.dram = cell->levels[MEMSRC_DRAM],
			.remote = cell->levels[MEMSRC_REMOTE],
			.tlb_miss = cell->tlb_miss,
			.hitm = cell->hitm,
		},
	};

	sink_put(aggregate->sink, &fact);
}

static void put_tick(struct aggregate *aggregate, const void *key_bytes,
		     const void *cell_bytes)
{
	const struct tick_key *key = key_bytes;
	const struct tick_cell *cell = cell_bytes;
	struct fact fact = {
		.kind = FACT_TICK,
		.tick = { .run_id = aggregate->config->run_id,
			  .bucket_ns = key->bucket_ns,
			  .process_id = key->process_id,
			  .stack_id = key->stack_id,
			  .method_id = key->method_id,
			  .samples = cell->samples,
			  .cpu_ns = cell->cpu_ns },
	};

	sink_put(aggregate->sink, &fact);
}

static int compare_words(const uint64_t *a, const uint64_t *b, size_t count)
{
	for (size_t i = 0; i < count; i++)
		if (a[i] != b[i])
			return a[i] < b[i] ? -1 : 1;
	return 0;
}

static int by_access_key(const void *a, const void *b)
{
	return compare_words(a, b, sizeof(struct access_key) / sizeof(uint64_t));
}

static int by_tick_key(const void *a, const void *b)
{
	return compare_words(a, b, sizeof(struct tick_key) / sizeof(uint64_t));
}

static bool is_before(const void *key, void *value, void *ctx)
{
	(void)value;
	return *(const uint64_t *)key < *(uint64_t *)ctx;
}

/* One of the two tables; keys begin with the bucket. */
struct table {
	struct map *map;
	size_t key_bytes;
	int (*compare)(const void *a, const void *b);
	void (*put)(struct aggregate *aggregate, const void *key, const void *cell);
};

static void flush_table(struct aggregate *aggregate, const struct table *table,
			uint64_t before_ns)
{
	size_t pos = 0, count = 0;
	const void *key;
	unsigned char *keys = mem_array(map_count(table->map), table->key_bytes);

	while (map_next(table->map, &pos, &key))
		if (*(const uint64_t *)key < before_ns)
			memcpy(keys + count++ * table->key_bytes, key, table->key_bytes);
	qsort(keys, count, table->key_bytes, table->compare);
	for (size_t i = 0; i < count; i++) {
		key = keys + i * table->key_bytes;
		table->put(aggregate, key, map_find(table->map, key));
	}
	free(keys);
	map_del_if(table->map, is_before, &before_ns);
}

void aggregate_flush(struct aggregate *aggregate, uint64_t before_ns)
{
	const struct table tables[] = {
		{ aggregate->accesses, sizeof(struct access_key), by_access_key,
		  put_access },
		{ aggregate->ticks, sizeof(struct tick_key), by_tick_key, put_tick },
	};

	for (size_t i = 0; i < sizeof(tables) / sizeof(*tables); i++)
		flush_table(aggregate, &tables[i], before_ns);
}
