// SPDX-License-Identifier: Apache-2.0
/*
 * The end of a bucket: gauges are noted, the next bucket begins empty.
 *
 * What a pin holds back: the growth of a log since its oldest pin began. Where releases
 * cannot be seen (a purge without symbols) that is still right, because nothing younger
 * than the oldest snapshot can be given up; without a pin nothing counts as grown.
 */
#include "resource/ledger_impl.h"

#define BASE_DRIFT    1.002 /* per bucket: what once was fast may have changed for good */
#define BASE_LEAST    5	    /* requests that make a mean */
#define WATCHED_LEAST 0.03  /* seconds, to know a rate */

static void find_pins(struct ledger *ledger)
{
	struct resource **resource;
	const struct hold *hold;
	const void *key;
	size_t pos = 0;

	while ((resource = map_next(ledger->resources, &pos, NULL)))
		if ((*resource)->info.kind == RESOURCE_PIN)
			(*resource)->pinner = NULL;
	pos = 0;
	while ((hold = map_next(ledger->holds, &pos, &key))) {
		const struct hold_key *held = key;
		struct resource *pin = held->resource;

		if (pin->info.kind != RESOURCE_PIN ||
		    (pin->pinner && pin->pinned_ns <= hold->since_ns))
			continue;
		pin->pinner = held->task;
		pin->pinned_ns = hold->since_ns;
	}
}

/* The balance at @time_ns, as far back as it is kept. */
static double balance_at(const struct ledger *ledger, const struct resource *resource,
			 uint64_t time_ns)
{
	uint64_t end_ns = ledger->bucket_ns + LEDGER_BUCKET_NS;
	uint64_t back = time_ns < end_ns ? (end_ns - time_ns) / LEDGER_BUCKET_NS : 0;

	if (!ledger->complete)
		return 0;
	if (!back)
		back = 1;
	if (back > ledger->complete)
		back = ledger->complete;
	return resource->balances[bucket_back(ledger, (unsigned)back)];
}

static void note_pinned(const struct ledger *ledger, struct resource *resource)
{
	const struct resource *pin =
		resource_find(ledger, resource->info.pinned_by, resource->app);
	float *now = &resource->pinned[ledger->at];

	*now = 0;
	if (!pin || !pin->pinner) {
		resource->pinner = NULL;
		return;
	}
	if (resource->pinner != pin->pinner || resource->pinned_ns != pin->pinned_ns) {
		resource->pinner = pin->pinner;
		resource->pinned_ns = pin->pinned_ns;
		resource->pin_base = balance_at(ledger, resource, pin->pinned_ns);
	}
	if (resource->balance > resource->pin_base)
		*now = (float)(resource->balance - resource->pin_base);
}

static float on_time(const struct ledger *ledger, uint64_t resource_id)
{
	const struct coverage *coverage = coverage_of(ledger, resource_id);
	uint64_t end_ns = ledger->bucket_ns + LEDGER_BUCKET_NS;

	if (!coverage)
		return 1;
	uint64_t from_ns =
		coverage->on_ns > ledger->bucket_ns ? coverage->on_ns : ledger->bucket_ns;
	uint64_t to_ns =
		coverage->off_ns && coverage->off_ns < end_ns ? coverage->off_ns : end_ns;

	if (!coverage->on_ns || to_ns <= from_ns)
		return 0;
	return (float)((double)(to_ns - from_ns) / 1e9);
}

/* Where it was not watched it is taken to grow as it did when it was. */
static void note_growth(const struct ledger *ledger, struct resource *resource)
{
	double on_s = (double)resource->on_s[ledger->at];

	if (on_s >= WATCHED_LEAST)
		resource->rate = resource->grown / on_s;
	resource->balance += resource->grown + resource->rate * (1 - on_s);
	resource->grown = 0;
}

static void close_resources(struct ledger *ledger, unsigned next)
{
	struct resource **each;
	size_t pos = 0;

	ledger->requests_on_s[ledger->at] = on_time(ledger, 0);
	while ((each = map_next(ledger->resources, &pos, NULL))) {
		struct resource *resource = *each;

		resource->on_s[ledger->at] = on_time(ledger, resource->info.resource_id);
		if (resource->info.kind == RESOURCE_LOG)
			note_growth(ledger, resource);
		resource->balances[ledger->at] = (float)resource->balance;
		if (resource->info.pinned_by)
			note_pinned(ledger, resource);
		resource->past[next] = (struct sums){ 0 };
		resource->through[next] = 0;
		resource->made[next] = 0;
	}
}

static void close_cells(struct ledger *ledger, unsigned next)
{
	struct cell **cell;
	struct task **task;
	size_t pos = 0;

	while ((cell = map_next(ledger->cells, &pos, NULL))) {
		(*cell)->balances[ledger->at] = (float)(*cell)->balance;
		(*cell)->past[next] = (struct sums){ 0 };
	}
	pos = 0;
	while ((task = map_next(ledger->tasks, &pos, NULL)))
		(*task)->busy_s[next] = 0;
}

static void close_objects(struct ledger *ledger)
{
	struct object **object;
	size_t pos = 0;

	while ((object = map_next(ledger->objects, &pos, NULL))) {
		(*object)->wait_s[1] = (*object)->wait_s[0];
		(*object)->wait_s[0] = 0;
	}
}

static bool edge_is_over(const void *key, void *value, void *ctx)
{
	struct edge *edge = value;

	(void)key;
	(void)ctx;
	edge->wait_s[1] = edge->wait_s[0];
	edge->wait_s[0] = 0;
	return edge->wait_s[1] <= 0;
}

static void close_methods(struct ledger *ledger, unsigned next)
{
	struct method **each;
	size_t pos = 0;

	while ((each = map_next(ledger->methods, &pos, NULL))) {
		struct method *method = *each;
		uint32_t count = method->count[ledger->at];

		method->base_s *= (float)BASE_DRIFT;
		if (count >= BASE_LEAST) {
			float mean = method->total_s[ledger->at] / (float)count;

			if (method->base_s <= 0 || mean < method->base_s)
				method->base_s = mean;
		}
		method->count[next] = 0;
		method->total_s[next] = 0;
	}
}

void bucket_close(struct ledger *ledger)
{
	unsigned next = (ledger->at + 1) % LEDGER_BUCKETS;

	find_pins(ledger);
	close_resources(ledger, next);
	close_cells(ledger, next);
	close_objects(ledger);
	close_methods(ledger, next);
	map_del_if(ledger->edges, edge_is_over, NULL);
	ledger->at = next;
	if (ledger->unput < LEDGER_BUCKETS - 1)
		ledger->unput++;
	if (ledger->complete < LEDGER_BUCKETS - 1)
		ledger->complete++;
	table_sweep(ledger);
}
