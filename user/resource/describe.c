// SPDX-License-Identifier: Apache-2.0
#include "resource/describe.h"

#include <stdarg.h>
#include <stdio.h>
#include <string.h>

#define EDGES_SHOWN 3

__attribute__((format(printf, 3, 4))) static void say(char (*list)[DIAGNOSE_TEXT],
						      size_t *count, const char *fmt, ...)
{
	va_list ap;

	if (*count == DIAGNOSE_TEXTS)
		return;
	va_start(ap, fmt);
	vsnprintf(list[(*count)++], DIAGNOSE_TEXT, fmt, ap);
	va_end(ap);
}

static void copy(char *to, size_t room, const char *from)
{
	snprintf(to, room, "%s", from);
}

/* How people call a task. */
static void label_of(const struct task *task, char *to)
{
	const char *does = task->text;

	if (task->key)
		snprintf(to, DIAGNOSE_TEXT, "%s %.64s%s%llu%s%.128s",
			 resource_key_name(task->kind), task->name,
			 *task->name ? ":" : "", (unsigned long long)task->key,
			 *does ? ": " : "", does);
	else if (task->pid == task->tid)
		snprintf(to, DIAGNOSE_TEXT, "process %u%s%s", task->pid,
			 *does ? ": " : "", does);
	else
		snprintf(to, DIAGNOSE_TEXT, "thread %u%s%s", task->tid, *does ? ": " : "",
			 does);
}

static void fill_party(const struct view *view, const struct suspect *one,
		       struct party *ret_party)
{
	ret_party->share = one->share;
	ret_party->count = one->count;
	ret_party->lost_ms = (uint64_t)(one->value * 1000);
	if (!one->task) {
		copy(ret_party->label, DIAGNOSE_TEXT,
		     one->method ? one->method->text : "requests that nobody serves");
		if (one->method)
			copy(ret_party->request, sizeof(ret_party->request),
			     one->method->text);
		ret_party->pid = view->resource->app;
		return;
	}
	label_of(one->task, ret_party->label);
	copy(ret_party->request, sizeof(ret_party->request), one->task->text);
	copy(ret_party->name, sizeof(ret_party->name), one->task->name);
	ret_party->pid = one->task->pid;
	ret_party->tid = one->task->tid;
	ret_party->key = one->task->key;
	ret_party->kind = one->task->kind;
}

/* The object that was waited for most, else the one that holds most. */
static const struct object *main_object(const struct view *view)
{
	const struct object *best = NULL;
	double most = 0;
	struct object **each;
	size_t pos = 0;

	while ((each = map_next(view->ledger->objects, &pos, NULL))) {
		const struct object *object = *each;
		double weight = (double)object->wait_s[0] + (double)object->wait_s[1];

		if (object->resource != view->resource)
			continue;
		weight = weight * 1e12 + object->balance;
		if (best && weight <= most)
			continue;
		best = object;
		most = weight;
	}
	return best;
}

static void tell_object(const struct view *view, struct finding *finding)
{
	const struct object *object = main_object(view);

	if (object && *object->name)
		copy(finding->object, sizeof(finding->object), object->name);
	else if (object && object->id)
		snprintf(finding->object, sizeof(finding->object), "0x%llx",
			 (unsigned long long)object->id);
}

/* Hops that mattered in the last bucket. */
static void tell_chain(const struct view *view, struct finding *finding)
{
	const struct edge *edge;
	const void *key;
	size_t pos = 0, shown = 0;

	while (shown < EDGES_SHOWN &&
	       (edge = map_next(view->ledger->edges, &pos, &key))) {
		const struct edge_key *who = key;
		char waiter[DIAGNOSE_TEXT], blocker[DIAGNOSE_TEXT];

		if (edge->resource != view->resource || who->waiter->app != finding->app)
			continue;
		label_of(who->waiter, waiter);
		label_of(who->blocker, blocker);
		say(finding->chain, &finding->chain_count,
		    "%.90s waits for %s, which %.90s %s", waiter,
		    edge->resource->info.title, blocker,
		    edge->is_inferred ? "seems to hold (its transaction is the oldest)"
				      : "has");
		finding->is_inferred |= edge->is_inferred;
		shown++;
	}
}

static void tell_evidence(const struct view *view, struct finding *finding)
{
	const struct resource *resource = view->resource;
	struct sums sum = { 0 };

	for (unsigned i = 1; i <= view->window; i++) {
		const struct sums *one = &resource->past[bucket_back(view->ledger, i)];

		sum.wait_s += one->wait_s + one->walked_s;
		sum.hold_s += one->hold_s;
		sum.acquires += one->acquires;
		sum.releases += one->releases;
		sum.refusals += one->refusals;
		sum.waits += one->waits;
	}
	if (sum.wait_s > 0)
		say(finding->evidence, &finding->evidence_count,
		    "waited for: %.1f s in the last %u s, by %zu", (double)sum.wait_s,
		    view->window, view->victims.count);
	if (sum.refusals)
		say(finding->evidence, &finding->evidence_count,
		    "refused: %u attempts in the last %u s", sum.refusals, view->window);
	if (sum.acquires)
		say(finding->evidence, &finding->evidence_count,
		    "acquired %u times, released %u times in the last %u s", sum.acquires,
		    sum.releases, view->window);
	if (resource->balance > 0)
		say(finding->evidence, &finding->evidence_count,
		    "held now: %.0f %s by %u", resource->balance,
		    *resource->info.unit ? resource->info.unit : "pieces",
		    resource->holders_now);
	if (resource->pinner)
		say(finding->evidence, &finding->evidence_count,
		    "grown by %.0f %s in the %.1f s since the oldest transaction began",
		    (double)resource->pinned[bucket_back(view->ledger, 1)],
		    *resource->info.unit ? resource->info.unit : "pieces",
		    (double)(view->ledger->now_ns - resource->pinned_ns) / 1e9);
}

/* What is lost, in seconds per second; more parties of the same weight change little. */
static double score_of(const struct view *view)
{
	double lost = 0;

	for (size_t i = 0; i < view->victims.count; i++)
		lost += view->victims.list[i].value * view->victims.list[i].share;
	return lost / view->window * view->culprits.list[0].share;
}

static double on_share(const struct view *view)
{
	double s = 0;

	for (unsigned i = 1; i <= view->ledger->complete; i++)
		s += (double)view->resource->on_s[bucket_back(view->ledger, i)];
	return view->ledger->complete ? s / view->ledger->complete : 0;
}

void describe(const struct view *view, enum fault_class class,
	      struct finding *ret_finding)
{
	struct finding *finding = ret_finding;
	const struct resource *resource = view->resource;

	*finding = (struct finding){
		.class = class,
		.score = score_of(view),
		.since_ns = view->since_ns
				    ?: view->ledger->bucket_ns -
					       view->window * LEDGER_BUCKET_NS,
		.app = resource->app,
		.resource = &resource->info,
		.function = *resource->wait_place ? resource->wait_place
						  : resource->hold_place,
		.coverage = on_share(view),
		.lost = view->ledger->lost,
	};
	for (size_t i = 0; i < view->culprits.count && i < DIAGNOSE_PARTIES; i++)
		fill_party(view, &view->culprits.list[i],
			   &finding->culprits[finding->culprit_count++]);
	for (size_t i = 0; i < view->victims.count && i < DIAGNOSE_PARTIES; i++)
		fill_party(view, &view->victims.list[i],
			   &finding->victims[finding->victim_count++]);
	/* A culprit loses nothing by it. */
	for (size_t i = 0; i < finding->culprit_count; i++)
		finding->culprits[i].lost_ms = 0;
	tell_object(view, finding);
	tell_chain(view, finding);
	tell_evidence(view, finding);
}

void describe_part(struct finding *whole, const struct finding *part)
{
	say(whole->chain, &whole->chain_count, "through it, others wait for %s",
	    part->resource->title);
	for (size_t i = 0; i < part->chain_count; i++)
		say(whole->chain, &whole->chain_count, "%s", part->chain[i]);
	for (size_t i = 0; i < part->victim_count; i++)
		if (whole->victim_count < DIAGNOSE_PARTIES)
			whole->victims[whole->victim_count++] = part->victims[i];
}
