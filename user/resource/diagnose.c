// SPDX-License-Identifier: Apache-2.0
/*
 * The rules, in order: the first that holds for a resource is its finding. A finding
 * whose waits are due to another resource that has one as well is part of that one.
 */
#include "resource/diagnose.h"

#include <stdio.h>
#include <string.h>

#include "resource/describe.h"
#include "resource/view.h"

#define FAIR	  2.0 /* times its fair share: a culprit */
#define FAIR_TOP  0.9 /* ... of two, one has to have nearly all */
#define BIT(kind) (1u << RESOURCE_##kind)

struct rule {
	enum fault_class class;
	unsigned kinds;
	void (*victims)(struct view *view);
	void (*culprits)(struct view *view);
	bool (*premise)(struct view *view);
	bool is_single; /* one culprit is enough, there is no fair share of it */
};

static const struct rule rules[] = {
	{ FAULT_STATE, BIT(SLOTS), victims_stopped, culprits_outlasting, trend_stale,
	  true },
	{ FAULT_LEAK, BIT(POOL) | BIT(BUFFER) | BIT(OTHER), victims_refused,
	  culprits_owning, trend_hoards, false },
	{ FAULT_LEAK, BIT(POOL) | BIT(BUFFER) | BIT(OTHER), victims_waiting,
	  culprits_owning, trend_hoards, false },
	{ FAULT_LEAK, BIT(POOL), victims_fed, culprits_owning, trend_keeps, false },
	{ FAULT_PROVISION, BIT(CACHE), victims_waiting, culprits_crowding, trend_crowds,
	  false },
	{ FAULT_PROVISION, BIT(CACHE), victims_slowed, culprits_crowding, trend_crowds,
	  false },
	{ FAULT_GROWTH, BIT(LOG), victims_slowed, culprits_pinning, trend_pinned, true },
	{ FAULT_GROWTH, BIT(BUFFER), victims_fed, culprits_owning, trend_owned, false },
	{ FAULT_GROWTH, BIT(BUFFER) | BIT(OTHER), victims_slowed, culprits_owning,
	  trend_owned, false },
	{ FAULT_CONTENTION, BIT(LOOP), victims_blocked, culprits_holding, trend_any,
	  false },
	{ FAULT_CONTENTION, BIT(LOCK) | BIT(OTHER), victims_waiting, culprits_blamed,
	  trend_lasts, false },
	{ FAULT_PROVISION, BIT(POOL) | BIT(SLOTS), victims_waiting, culprits_holding,
	  trend_full, false },
	{ FAULT_PROVISION, BIT(POOL), victims_stopped, culprits_holding, trend_exhausted,
	  false },
	{ FAULT_PROVISION, BIT(POOL) | BIT(SLOTS), victims_refused, culprits_holding,
	  trend_lasts, false },
	{ FAULT_POLICY, BIT(CACHE), victims_waiting, culprits_acquiring, trend_scans,
	  false },
	{ FAULT_PROVISION, BIT(CACHE), victims_waiting, culprits_acquiring, trend_lasts,
	  false },
};

#define RULES	       (sizeof(rules) / sizeof(rules[0]))
#define MAX_FINDINGS   32
#define WATCHED_ENOUGH 0.5 /* seconds, to judge by */

static bool is_listed(const struct suspects *list, const struct task *task)
{
	for (size_t i = 0; i < list->count; i++)
		if (list->list[i].task && list->list[i].task == task)
			return true;
	return false;
}

static void remove_at(struct suspects *list, size_t at)
{
	list->count--;
	memmove(&list->list[at], &list->list[at + 1],
		(list->count - at) * sizeof(list->list[0]));
}

/* How many take part in it, those of a while ago included. */
static double participants(const struct view *view)
{
	double made = 0;
	size_t present = view->culprits.all;

	for (size_t i = 0; i < view->victims.count; i++)
		present += !is_listed(&view->culprits, view->victims.list[i].task);
	for (unsigned i = 1; i <= view->ledger->complete; i++)
		made += view->resource->made[bucket_back(view->ledger, i)];
	return made > (double)present ? made : (double)present;
}

/* Those well above their fair share are culprits, the others are not. */
static bool keep_culprits(struct view *view, bool is_single)
{
	double fair = FAIR / participants(view);

	if (fair > FAIR_TOP || is_single)
		fair = is_single ? 0 : FAIR_TOP;
	while (view->culprits.count &&
	       view->culprits.list[view->culprits.count - 1].share < fair)
		view->culprits.count--;
	return view->culprits.count > 0;
}

/* Who causes it is no victim of it. */
static bool keep_victims(struct view *view)
{
	struct suspects *victims = &view->victims;

	for (size_t i = victims->count; i-- > 0;)
		if (victims->list[i].share <= DIAGNOSE_LOSS ||
		    is_listed(&view->culprits, victims->list[i].task))
			remove_at(victims, i);
	return victims->count > 0;
}

static bool holds(const struct rule *rule, struct view *view)
{
	view->victims = view->culprits = (struct suspects){ 0 };
	view->since_ns = 0;
	if (!(rule->kinds & 1u << view->resource->info.kind))
		return false;
	rule->victims(view);
	if (!view->victims.count || view->victims.list[0].value <= 0)
		return false;
	rule->culprits(view);
	return view->culprits.count && rule->premise(view) &&
	       keep_culprits(view, rule->is_single) && keep_victims(view);
}

struct found {
	struct finding finding;
	const struct resource *resource, *through; /* through: most waits are due to it */
	int rule;
	bool is_part, is_told, is_slow,
		is_stop; /* stop: its victims are requests that nobody serves */
};

static const struct resource *cause_of(const struct view *view)
{
	double ms = 0, wait_s = 0;

	for (unsigned i = 1; i <= view->window; i++) {
		unsigned at = bucket_back(view->ledger, i);

		ms += view->resource->through[at];
		wait_s += (double)view->resource->past[at].wait_s +
			  (double)view->resource->past[at].walked_s;
	}
	return ms > wait_s * 500 ? view->resource->through_what : NULL;
}

/* Further back where the probes were on in windows only. */
static void set_window(struct view *view)
{
	const struct ledger *ledger = view->ledger;

	while (view->window < ledger->complete && view->window < DIAGNOSE_LONG &&
	       (view->window < DIAGNOSE_WINDOW || view->watched_s < WATCHED_ENOUGH)) {
		view->window++;
		view->watched_s +=
			(double)view->resource->on_s[bucket_back(ledger, view->window)];
	}
}

static bool examine(const struct ledger *ledger, const struct resource *resource,
		    struct found *found)
{
	struct view view = { .ledger = ledger, .resource = resource };

	set_window(&view);
	for (size_t i = 0; i < RULES; i++) {
		if (!holds(&rules[i], &view))
			continue;
		*found = (struct found){ .resource = resource,
					 .through = cause_of(&view) };
		found->rule = (int)i;
		found->is_slow = rules[i].victims == victims_slowed;
		found->is_stop = rules[i].victims == victims_stopped;
		describe(&view, rules[i].class, &found->finding);
		return true;
	}
	return false;
}

/* One application stands still for one reason: places that are not free come first. */
static void merge_stops(struct found *found, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++)
			if (i != j && found[i].is_stop && found[j].is_stop &&
			    found[i].finding.app == found[j].finding.app &&
			    found[j].finding.class == FAULT_STATE &&
			    found[i].finding.class != FAULT_STATE)
				found[i].is_part = true;
}

static bool is_same_culprit(const struct found *a, const struct found *b)
{
	const struct party *one = &a->finding.culprits[0], *two = &b->finding.culprits[0];

	return a->finding.app == b->finding.app && one->pid == two->pid &&
	       one->tid == two->tid && one->key == two->key;
}

/*
 * Two explanations with one culprit: a guess yields to what is known, and of two for
 * the same slow requests the one whose rule comes first, being more special, stays.
 */
static void merge_guesses(struct found *found, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++) {
			if (i == j || !is_same_culprit(&found[i], &found[j]))
				continue;
			if ((found[i].finding.is_inferred &&
			     !found[j].finding.is_inferred) ||
			    (found[i].is_slow && found[j].rule < found[i].rule)) {
				found[i].is_part = true;
				describe_part(&found[j].finding, &found[i].finding);
			}
		}
}

static bool has_victim(const struct finding *finding, const struct party *party)
{
	for (size_t i = 0; i < finding->victim_count; i++)
		if (finding->victims[i].pid == party->pid &&
		    finding->victims[i].tid == party->tid)
			return true;
	return false;
}

/* A lock of libc is how some resource of the application is made: the latter says more. */
static void merge_generic(struct found *found, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++) {
			const struct finding *one = &found[i].finding;

			if (one->resource->resource_id >= ABI_GENERICS ||
			    found[j].finding.resource->resource_id < ABI_GENERICS ||
			    one->app != found[j].finding.app)
				continue;
			if (!is_same_culprit(&found[i], &found[j]) &&
			    !has_victim(&found[j].finding, &one->victims[0]))
				continue;
			found[i].is_part = true;
			describe_part(&found[j].finding, one);
		}
}

static void merge_parts(struct found *found, size_t count)
{
	for (size_t i = 0; i < count; i++)
		for (size_t j = 0; j < count; j++) {
			struct finding *whole = &found[j].finding;

			if (i == j || found[i].through != found[j].resource)
				continue;
			found[i].is_part = true;
			whole->score += found[i].finding.score;
			describe_part(whole, &found[i].finding);
		}
}

void diagnose(const struct ledger *ledger, diagnose_fn each, void *ctx)
{
	struct found *found = mem_array(MAX_FINDINGS, sizeof(*found));
	struct resource **resource;
	size_t count = 0, pos = 0;

	while (ledger->complete >= 3 && count < MAX_FINDINGS &&
	       (resource = map_next(ledger->resources, &pos, NULL)))
		count += examine(ledger, *resource, &found[count]);
	merge_parts(found, count);
	merge_stops(found, count);
	merge_guesses(found, count);
	merge_generic(found, count);
	for (;;) {
		struct found *best = NULL;

		for (size_t i = 0; i < count; i++)
			if (!found[i].is_part &&
			    (!best || found[i].finding.score > best->finding.score))
				best = &found[i];
		if (!best)
			break;
		each(ctx, &best->finding);
		best->is_part = true;
		best->is_told = true;
	}
	for (size_t i = 0; i < count; i++) {
		found[i].finding.is_part = true;
		if (!found[i].is_told)
			each(ctx, &found[i].finding);
	}
	free(found);
}
