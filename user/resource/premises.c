// SPDX-License-Identifier: Apache-2.0
/*
 * What must be so before a rule applies: that it lasts, that a pool is full, that
 * somebody keeps what he takes, that a log or a buffer grows and does not level off.
 */
#include <string.h>

#include "resource/trend.h"
#include "resource/view.h"

#define LASTS	      3	   /* buckets after which a state is settled */
#define LASTS_SHARE   0.59 /* of the watched time, in which there is loss */
#define LOSS_PER_S    0.05 /* seconds of waiting in a second, all tasks together */
#define WATCHED_LEAST 0.03 /* seconds of a bucket */
#define PIECES_LEAST  20   /* that somebody keeps, or that a log has grown by */
#define BYTES_LEAST   (1024 * 1024)
#define MUCH	      8	  /* times the least, kept without giving anything back */
#define GIVEN_BACK    0.1 /* share that who hoards gives back, at most */
#define PIN_AGE_NS    3000000000ull
#define SCAN_FRESH    0.3 /* share of things taken that nobody had before */
#define STALE_SHARE   0.8 /* of the places */
#define GROWTH_WINDOW 8

bool trend_any(struct view *view)
{
	(void)view;
	return true;
}

static bool has_loss(const struct resource *resource, unsigned at)
{
	const struct sums *sums = &resource->past[at];
	double on_s = (double)resource->on_s[at];

	if (sums->refusals)
		return true;
	if ((double)sums->walked_s >= LOSS_PER_S)
		return true;
	return on_s > 0 && (double)sums->wait_s >= LOSS_PER_S * (on_s < 1 ? on_s : 1);
}

/* What the walk saw needs no probe: all of the time counts. */
static double seen_for(const struct resource *resource, unsigned at)
{
	if ((double)resource->past[at].walked_s >= LOSS_PER_S)
		return 1;
	if (resource->past[at].refusals && (double)resource->on_s[at] < WATCHED_LEAST)
		return WATCHED_LEAST;
	return (double)resource->on_s[at];
}

/* Time with loss, back from now, is since when. */
bool trend_lasts(struct view *view)
{
	const struct ledger *ledger = view->ledger;
	double with_s = 0, watched_s = 0;
	unsigned with = 0, watched = 0, back = 1;

	for (unsigned i = 1; i <= view->window; i++) {
		unsigned at = bucket_back(ledger, i);

		bool is_lost = has_loss(view->resource, at);
		double on_s = seen_for(view->resource, at);

		if (on_s < WATCHED_LEAST)
			continue;
		with += is_lost;
		watched++;
		with_s += is_lost ? on_s : 0;
		watched_s += on_s;
	}
	for (; back <= ledger->complete; back++) {
		unsigned at = bucket_back(ledger, back);

		if (seen_for(view->resource, at) >= WATCHED_LEAST &&
		    !has_loss(view->resource, at))
			break;
	}
	view->since_ns = ledger->bucket_ns - (back - 1) * LEDGER_BUCKET_NS;
	return with >= (watched < 2 ? 1 : 2) && with_s >= LASTS_SHARE * watched_s;
}

bool trend_full(struct view *view)
{
	const struct resource *resource = view->resource;
	uint64_t capacity = resource->info.capacity ?: resource->holders_max;

	return trend_lasts(view) && capacity > 1 && resource->holders_now >= capacity;
}

/* The first culprit has so much that a cache for all cannot hold it. */
bool trend_crowds(struct view *view)
{
	view->since_ns = view->ledger->bucket_ns - view->window * LEDGER_BUCKET_NS;
	return view->culprits.list[0].value >= PIECES_LEAST;
}

/* Everything is taken, and nobody has given anything back for a while. */
bool trend_exhausted(struct view *view)
{
	const struct resource *resource = view->resource;
	uint64_t capacity = resource->info.capacity ?: resource->holders_max;
	uint32_t given = 0;

	for (unsigned i = 1; i < view->window; i++)
		given += resource->past[bucket_back(view->ledger, i)].releases;
	view->since_ns = view->ledger->bucket_ns - view->window * LEDGER_BUCKET_NS;
	return !given && capacity > 1 && resource->holders_now >= capacity;
}

static double least_of(const struct resource *resource)
{
	return *resource->info.unit && resource->info.unit[0] == 'b' ? BYTES_LEAST
								     : PIECES_LEAST;
}

static const struct cell *owner(const struct view *view)
{
	return view->culprits.count ? cell_find(view->ledger, view->resource,
						view->culprits.list[0].task)
				    : NULL;
}

bool trend_hoards(struct view *view)
{
	return trend_lasts(view) && trend_keeps(view);
}

/* The first culprit takes and gives next to nothing back. */
bool trend_keeps(struct view *view)
{
	const struct cell *cell = owner(view);

	return cell && cell->balance >= least_of(view->resource) &&
	       cell->released <= GIVEN_BACK * cell->acquired;
}

static size_t recent(const struct view *view, const float *ring, float *ret_values)
{
	unsigned count = view->ledger->complete < GROWTH_WINDOW ? view->ledger->complete
								: GROWTH_WINDOW;

	for (unsigned i = 0; i < count; i++)
		ret_values[i] = ring[bucket_back(view->ledger, count - i)];
	return count;
}

/* The last ones that were watched, oldest first. */
static size_t series(const struct view *view, const float *ring, float *ret_values)
{
	size_t count = 0;

	for (unsigned i = view->ledger->complete; i > 0; i--) {
		unsigned at = bucket_back(view->ledger, i);

		if ((double)view->resource->on_s[at] < WATCHED_LEAST)
			continue;
		if (count == GROWTH_WINDOW)
			memmove(ret_values, ret_values + 1,
				--count * sizeof(*ret_values));
		ret_values[count++] = ring[at];
	}
	return count;
}

bool trend_pinned(struct view *view)
{
	const struct resource *resource = view->resource;
	const struct ledger *ledger = view->ledger;
	uint64_t age = (ledger->now_ns - resource->pinned_ns) / LEDGER_BUCKET_NS;
	float values[GROWTH_WINDOW];
	size_t count = recent(view, resource->pinned, values);
	size_t skip = 0;

	if (!resource->pinner || ledger->now_ns < resource->pinned_ns + PIN_AGE_NS)
		return false;
	if (age < count)
		skip = count - age;
	view->since_ns = resource->pinned_ns;
	if (count - skip < 3 || values[count - 1] < (float)least_of(resource))
		return false;
	for (size_t i = skip + 1; i < count; i++)
		if (values[i] < values[i - 1])
			return false;
	return values[count - 1] > values[skip];
}

bool trend_owned(struct view *view)
{
	const struct cell *cell = owner(view);
	float values[GROWTH_WINDOW];
	size_t count = cell ? series(view, cell->balances, values) : 0;

	if (!cell || cell->balance < least_of(view->resource))
		return false;
	size_t from = count > TREND_LEAST ? count - TREND_LEAST : 0;
	size_t change = trend_change(values, count);

	view->since_ns = view->ledger->bucket_ns - (count - change) * LEDGER_BUCKET_NS;
	if (cell->released <= GIVEN_BACK * cell->acquired &&
	    cell->balance >= MUCH * least_of(view->resource))
		return true;
	return trend_grows(values + from, count - from, (float)least_of(view->resource));
}

/* The first culprit takes things that nobody used lately, one after the other. */
bool trend_scans(struct view *view)
{
	const struct cell *cell = owner(view);
	double taken = 0, fresh = 0;

	if (!cell || !trend_lasts(view))
		return false;
	for (unsigned i = 1; i <= view->ledger->complete; i++) {
		const struct sums *sums = &cell->past[bucket_back(view->ledger, i)];

		taken += sums->acquires ? sums->acquires : sums->waits;
		fresh += sums->fresh;
	}
	return taken > 0 && fresh >= SCAN_FRESH * taken;
}

bool trend_stale(struct view *view)
{
	uint64_t settled_ns = view->ledger->now_ns - LASTS * LEDGER_BUCKET_NS;
	struct object **object;
	size_t all = 0, stale = 0, pos = 0;

	if (!view->resource->info.has_stale)
		return false;
	while ((object = map_next(view->ledger->objects, &pos, NULL))) {
		if ((*object)->resource != view->resource || !(*object)->level_ns)
			continue;
		if (!(*object)->level)
			continue; /* free: dead or never used */
		all++;
		if ((*object)->level != view->resource->info.stale ||
		    (*object)->level_ns > settled_ns)
			continue;
		stale++;
		if (!view->since_ns || (*object)->level_ns < view->since_ns)
			view->since_ns = (*object)->level_ns;
	}
	return all && (double)stale >= STALE_SHARE * (double)all;
}
