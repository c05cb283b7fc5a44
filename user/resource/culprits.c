// SPDX-License-Identifier: Apache-2.0
/*
 * Who causes it: by waits that are blamed on a task, by time or amount it holds, by what
 * it takes, by what it keeps from shrinking. Shares are of the sum over all tasks.
 */
#include "resource/view.h"

typedef double (*measure_fn)(const struct view *view, const struct cell *cell);

static void gather(struct view *view, const struct resource *resource, measure_fn measure)
{
	struct suspects *to = &view->culprits;
	struct cell **each;
	size_t pos = 0;

	while ((each = map_next(view->ledger->cells, &pos, NULL))) {
		struct suspect one = { .task = (*each)->task };

		if ((*each)->resource != resource)
			continue;
		one.value = measure(view, *each);
		if (one.value > 0)
			suspects_add(to, &one);
	}
	for (size_t i = 0; i < to->count; i++)
		to->list[i].share = to->list[i].value / to->total;
}

static double blame(const struct view *view, const struct cell *cell)
{
	double s = 0;

	for (unsigned i = 1; i <= view->window; i++)
		s += (double)cell->past[bucket_back(view->ledger, i)].blame_s;
	return s;
}

static double held(const struct view *view, const struct cell *cell)
{
	double s = 0;

	for (unsigned i = 1; i <= view->window; i++)
		s += (double)cell->past[bucket_back(view->ledger, i)].hold_s;
	return s;
}

static double owned(const struct view *view, const struct cell *cell)
{
	(void)view;
	return cell->balance;
}

/* Who fetches most into a cache drives the others' things out. */
static double taken(const struct view *view, const struct cell *cell)
{
	double count = 0;

	for (unsigned i = 1; i <= view->window; i++) {
		const struct sums *sums = &cell->past[bucket_back(view->ledger, i)];

		count += sums->acquires ? sums->acquires : sums->waits;
	}
	return count;
}

void culprits_blamed(struct view *view)
{
	gather(view, view->resource, blame);
}

void culprits_holding(struct view *view)
{
	gather(view, view->resource, held);
}

void culprits_owning(struct view *view)
{
	gather(view, view->resource, owned);
}

void culprits_acquiring(struct view *view)
{
	gather(view, view->resource, taken);
}

/* Who has most of what fills this one. */
void culprits_crowding(struct view *view)
{
	struct resource **each;
	size_t pos = 0;

	while ((each = map_next(view->ledger->resources, &pos, NULL)))
		if ((*each)->app == view->resource->app &&
		    (*each)->info.feeds == view->resource->info.resource_id)
			gather(view, *each, owned);
}

void culprits_pinning(struct view *view)
{
	struct suspect one = { .task = view->resource->pinner, .value = 1, .share = 1 };

	if (one.task)
		suspects_add(&view->culprits, &one);
}

/* Places are kept by processes that cannot end: what runs longest in them? */
void culprits_outlasting(struct view *view)
{
	const struct hold *hold;
	struct suspects *to = &view->culprits;
	const void *key;
	size_t pos = 0;

	while ((hold = map_next(view->ledger->holds, &pos, &key))) {
		const struct hold_key *on = key;
		struct suspect one = { .task = on->task };

		if (on->resource->app != view->resource->app ||
		    on->resource->info.resource_id != view->resource->info.pinned_by)
			continue;
		one.value = (double)(view->ledger->now_ns - hold->since_ns) / 1e9;
		suspects_add(to, &one);
	}
	for (size_t i = 0; i < to->count; i++)
		to->list[i].share = to->list[i].value / to->total;
}
