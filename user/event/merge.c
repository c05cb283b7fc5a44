// SPDX-License-Identifier: Apache-2.0
/*
 * A binary heap by (time, arrival). A record that comes too late is delivered and
 * counted rather than dropped: a late exit or mapping still mends the model of the
 * address spaces.
 */
#include "event/merge.h"

#include <stdbool.h>
#include <string.h>

#include "bpf/abi.h"
#include "core/mem.h"
#include "core/vec.h"

struct waiting {
	uint64_t time_ns, arrival;
	void *data;
	size_t bytes;
};

struct merge {
	struct merge_config config;
	merge_fn deliver;
	void *ctx;
	VEC(struct waiting) heap;
	uint64_t arrivals, newest_ns; /* newest delivered */
	struct merge_stats stats;
};

struct merge *merge_new(const struct merge_config *config, merge_fn deliver, void *ctx)
{
	struct merge *merge = mem_alloc(sizeof(*merge));

	merge->config = *config;
	merge->deliver = deliver;
	merge->ctx = ctx;
	return merge;
}

void merge_free(struct merge *merge)
{
	if (!merge)
		return;
	vec_each(&merge->heap, item)
		free(item->data);
	vec_fini(&merge->heap);
	free(merge);
}

static bool is_before(const struct waiting *a, const struct waiting *b)
{
	if (a->time_ns != b->time_ns)
		return a->time_ns < b->time_ns;
	return a->arrival < b->arrival;
}

static void swap(struct waiting *a, struct waiting *b)
{
	struct waiting old = *a;

	*a = *b;
	*b = old;
}

static void sift_up(struct waiting *heap, size_t at)
{
	while (at && is_before(&heap[at], &heap[(at - 1) / 2])) {
		swap(&heap[at], &heap[(at - 1) / 2]);
		at = (at - 1) / 2;
	}
}

static void sift_down(struct waiting *heap, size_t count)
{
	size_t at = 0;

	for (;;) {
		size_t child = 2 * at + 1;

		if (child >= count)
			return;
		if (child + 1 < count && is_before(&heap[child + 1], &heap[child]))
			child++;
		if (!is_before(&heap[child], &heap[at]))
			return;
		swap(&heap[child], &heap[at]);
		at = child;
	}
}

static void hand_over(struct merge *merge, const struct waiting *item)
{
	if (item->time_ns < merge->newest_ns)
		merge->stats.late++;
	else
		merge->newest_ns = item->time_ns;
	merge->stats.delivered++;
	merge->deliver(merge->ctx, item->data, item->bytes);
}

static void pop(struct merge *merge)
{
	struct waiting item = merge->heap.data[0];

	merge->heap.data[0] = merge->heap.data[--merge->heap.count];
	sift_down(merge->heap.data, merge->heap.count);
	merge->stats.waiting_bytes -= item.bytes;
	hand_over(merge, &item);
	free(item.data);
}

static bool is_over(const struct merge *merge)
{
	const struct merge_config *config = &merge->config;

	if (config->max_records && merge->heap.count > config->max_records)
		return true;
	return config->max_bytes && merge->stats.waiting_bytes > config->max_bytes;
}

void merge_put(struct merge *merge, const void *data, size_t bytes)
{
	struct waiting item = { .arrival = merge->arrivals++, .bytes = bytes };

	if (bytes < sizeof(struct abi_head)) {
		merge->stats.delivered++;
		merge->deliver(merge->ctx, data, bytes);
		return;
	}
	memcpy(&item.time_ns, (const char *)data + offsetof(struct abi_head, time_ns),
	       sizeof(item.time_ns));
	if (item.time_ns < merge->newest_ns) {
		/* Waiting longer would not make it any less late. */
		item.data = (void *)data;
		hand_over(merge, &item);
		return;
	}
	item.data = mem_copy(data, bytes);
	vec_push(&merge->heap, item);
	merge->stats.waiting_bytes += bytes;
	sift_up(merge->heap.data, merge->heap.count - 1);
	while (is_over(merge)) {
		merge->stats.forced++;
		pop(merge);
	}
}

void merge_run(struct merge *merge, uint64_t now_ns)
{
	if (now_ns < merge->config.window_ns)
		return;
	while (merge->heap.count &&
	       merge->heap.data[0].time_ns <= now_ns - merge->config.window_ns)
		pop(merge);
}

void merge_flush(struct merge *merge)
{
	while (merge->heap.count)
		pop(merge);
}

void merge_stats(const struct merge *merge, struct merge_stats *ret_stats)
{
	*ret_stats = merge->stats;
	ret_stats->waiting = merge->heap.count;
}
