// SPDX-License-Identifier: Apache-2.0
/*
 * Who loses how much. A task's own time is that in which it serves requests; where
 * those are not known, all of it. Both ways are tried, the larger share counts: a thread
 * that idles between short requests loses nothing while it idles.
 */
#include "resource/view.h"

#define BUSY_LEAST    0.002 /* seconds in requests, to be a measure */
#define RATE_WAITS    20    /* that make a mean */
#define RATE_ON_S     0.3   /* watched, likewise */
#define METHOD_LEAST  5	    /* requests that make a mean */
#define METHOD_ENOUGH 20    /* no need to look further back */
#define BLOCK_LEAST   3	    /* acquisitions of somebody who is taken to be waiting */
#define STOP_RATE     2.0   /* acquisitions a second before it stopped */

void suspects_add(struct suspects *to, const struct suspect *one)
{
	size_t at = to->count;

	to->all++;
	to->total += one->value;
	if (to->count == VIEW_MAX && to->list[VIEW_MAX - 1].value >= one->value)
		return;
	if (to->count < VIEW_MAX)
		to->count++;
	else
		at--;
	for (; at > 0 && to->list[at - 1].value < one->value; at--)
		to->list[at] = to->list[at - 1];
	to->list[at] = *one;
}

static unsigned at_most(const struct ledger *ledger, unsigned buckets)
{
	return buckets < ledger->complete ? buckets : ledger->complete;
}

static double busy_of(const struct view *view, const struct task *task, unsigned buckets)
{
	double s = 0;

	for (unsigned i = 1; i <= buckets; i++)
		s += (double)task->busy_s[bucket_back(view->ledger, i)];
	return s;
}

/*
 * Requests and the resource may be watched at different times. Each mean is right all the
 * same, and so is what part of a second in requests is a wait.
 */
static double share_of_rates(const struct view *view, const struct cell *cell,
			     unsigned buckets)
{
	const struct ledger *ledger = view->ledger;
	double wait_s = 0, busy_s = busy_of(view, cell->task, buckets);
	double wait_on_s = 0, busy_on_s = 0;
	unsigned waits = 0;

	for (unsigned i = 1; i <= buckets; i++) {
		unsigned at = bucket_back(ledger, i);

		waits += cell->past[at].waits;
		wait_s += (double)cell->past[at].wait_s;
		wait_on_s += (double)cell->resource->on_s[at];
		busy_on_s += (double)ledger->requests_on_s[at];
	}
	if (waits < RATE_WAITS || busy_s < BUSY_LEAST || wait_on_s < RATE_ON_S ||
	    busy_on_s < RATE_ON_S)
		return 0;
	return wait_s / wait_on_s / (busy_s / busy_on_s);
}

static double share_of(const struct view *view, const struct cell *cell, double wait_s)
{
	unsigned buckets = at_most(view->ledger, DIAGNOSE_LONG);
	double busy_s = busy_of(view, cell->task, buckets), covered_s = 0;
	double share = wait_s / view->window;

	for (unsigned i = 1; i <= buckets; i++)
		covered_s += (double)cell->past[bucket_back(view->ledger, i)].covered_s;
	if (busy_s >= BUSY_LEAST && covered_s / busy_s > share)
		share = covered_s / busy_s;
	double rates = share_of_rates(view, cell, view->window);

	if (rates > share)
		share = rates;
	return share < 1 ? share : 1;
}

/* All of the window to the part of it in which the probes were on. */
static double scale_of(const struct view *view, const struct resource *resource)
{
	double on_s = 0;

	for (unsigned i = 1; i <= view->window; i++)
		on_s += (double)resource->on_s[bucket_back(view->ledger, i)];
	return on_s > 0 && on_s < view->window ? view->window / on_s : 1;
}

static void waiting_on(struct view *view, const struct resource *resource)
{
	struct cell **each;
	size_t pos = 0;

	double scale = scale_of(view, resource);

	while ((each = map_next(view->ledger->cells, &pos, NULL))) {
		const struct cell *cell = *each;
		struct suspect one = { .task = cell->task };

		if (cell->resource != resource)
			continue;
		for (unsigned i = 1; i <= view->window; i++) {
			const struct sums *sums =
				&cell->past[bucket_back(view->ledger, i)];

			one.value +=
				(double)sums->wait_s * scale + (double)sums->walked_s;
			one.count += sums->waits;
		}
		if (one.value <= 0)
			continue;
		/* What was seen in windows stands for more than there is time. */
		if (one.value > view->window)
			one.value = view->window;
		one.share = share_of(view, cell, one.value);
		suspects_add(&view->victims, &one);
	}
}

void victims_waiting(struct view *view)
{
	waiting_on(view, view->resource);
}

/* An attempt in vain is a request for nothing: so much of the time is lost. */
static void refused_by(struct view *view, const struct resource *resource)
{
	struct cell **each;
	size_t pos = 0;

	while ((each = map_next(view->ledger->cells, &pos, NULL))) {
		const struct cell *cell = *each;
		struct suspect one = { .task = cell->task };
		double tries = 0;

		if (cell->resource != resource)
			continue;
		for (unsigned i = 1; i <= view->window; i++) {
			const struct sums *sums =
				&cell->past[bucket_back(view->ledger, i)];

			one.count += sums->refusals;
			tries += sums->refusals + sums->acquires + sums->uses;
		}
		if (!one.count)
			continue;
		one.share = (double)one.count / tries;
		one.value = one.share * view->window;
		suspects_add(&view->victims, &one);
	}
}

void victims_refused(struct view *view)
{
	refused_by(view, view->resource);
}

/* Kinds of requests that take longer than they did when all was well. */
void victims_slowed(struct view *view)
{
	unsigned buckets = at_most(view->ledger, DIAGNOSE_LONG);
	struct method **each;
	size_t pos = 0;

	while ((each = map_next(view->ledger->methods, &pos, NULL))) {
		const struct method *method = *each;
		struct suspect one = { .method = method };
		double total_s = 0;

		if (method->app != view->resource->app || method->base_s <= 0)
			continue;
		for (unsigned i = 1; i <= buckets && one.count < METHOD_ENOUGH; i++) {
			unsigned at = bucket_back(view->ledger, i);

			total_s += (double)method->total_s[at];
			one.count += method->count[at];
		}
		one.value = total_s - (double)method->base_s * (double)one.count;
		if (one.count < METHOD_LEAST || one.value <= 0)
			continue;
		one.share = one.value / total_s;
		suspects_add(&view->victims, &one);
	}
}

static double hold_of(const struct view *view, const struct cell *cell)
{
	double s = 0;

	for (unsigned i = 1; i <= view->window; i++)
		s += (double)cell->past[bucket_back(view->ledger, i)].hold_s;
	return s;
}

static const struct cell *top_holder(const struct view *view, double *ret_hold_s)
{
	const struct cell *top = NULL;
	struct cell **each;
	size_t pos = 0;

	*ret_hold_s = 0;
	while ((each = map_next(view->ledger->cells, &pos, NULL))) {
		double hold_s =
			(*each)->resource == view->resource ? hold_of(view, *each) : 0;

		if (hold_s <= *ret_hold_s)
			continue;
		*ret_hold_s = hold_s;
		top = *each;
	}
	return top;
}

static uint32_t served_in(const struct cell *cell, unsigned at)
{
	return cell->past[at].acquires + cell->past[at].uses;
}

/* Whoever is served by the same loop stands still while one is served for long. */
void victims_blocked(struct view *view)
{
	double hold_s;
	const struct cell *top = top_holder(view, &hold_s);
	const struct resource *fed = resource_find(
		view->ledger, view->resource->info.feeds, view->resource->app);
	const struct resource *served = fed ? fed : view->resource;
	struct cell **each;
	size_t pos = 0;

	while (top && (each = map_next(view->ledger->cells, &pos, NULL))) {
		struct suspect one = { .task = (*each)->task };

		if ((*each)->task == top->task || (*each)->resource != served)
			continue;
		for (unsigned i = 1; i <= view->ledger->complete; i++)
			one.count += served_in(*each, bucket_back(view->ledger, i));
		if (one.count < BLOCK_LEAST)
			continue;
		one.value = hold_s;
		one.share = hold_s / view->window;
		suspects_add(&view->victims, &one);
	}
}

/* Work of a pool that has come to a stand although nobody ended it. */
static bool has_stopped(const struct view *view, const struct resource *pool,
			struct suspect *ret_loss)
{
	double before = 0, recent = 0;
	unsigned older = view->ledger->complete - view->window;

	for (unsigned i = 1; i <= view->ledger->complete; i++) {
		double acquires = pool->past[bucket_back(view->ledger, i)].acquires;

		if (i < view->window)
			recent += acquires;
		else if (i > view->window)
			before += acquires;
	}
	if (!older || before / older < STOP_RATE || recent > 0)
		return false;
	ret_loss->value = view->window;
	ret_loss->share = 1;
	ret_loss->count = (uint64_t)(before / older * view->window);
	return true;
}

void victims_stopped(struct view *view)
{
	struct resource **pool;
	size_t pos = 0;

	if (view->ledger->complete <= view->window)
		return;
	while ((pool = map_next(view->ledger->resources, &pos, NULL))) {
		struct suspect one = { 0 };

		if ((*pool)->app == view->resource->app &&
		    (*pool)->info.kind == RESOURCE_POOL && has_stopped(view, *pool, &one))
			suspects_add(&view->victims, &one);
	}
}

/* Those who lose by what the growth of this resource takes from another one. */
void victims_fed(struct view *view)
{
	const struct resource *fed = resource_find(
		view->ledger, view->resource->info.feeds, view->resource->app);

	if (!fed)
		return;
	waiting_on(view, fed);
	refused_by(view, fed);
}
