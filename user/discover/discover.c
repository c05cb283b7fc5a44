// SPDX-License-Identifier: Apache-2.0
/*
 * Names propose, code disposes: every function with a telling name becomes a candidate of
 * the resource that its name leaves when the verb is gone; resources are then known by
 * what can be done to them, and each candidate is weighed by name, company and code.
 */
#include "discover/discover.h"

#include <inttypes.h>
#include <math.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/str.h"
#include "discover/graph.h"
#include "discover/verify.h"
#include "discover/words.h"

#define STEM_BYTES   96
#define MAX_CALLERS  16 /* of a release, that are looked at */
#define STEP_EVERY   256
#define LOCK_LIKE    .6 /* a verb as strong as this may have to wait */
#define USED_TOO_OFT .2

/* Weights in log odds, for what is said beside the name. */
#define W_NOUN	     .6
#define W_NO_NOUN    (-.8)
#define W_PAIR	     .8
#define W_NO_PAIR    (-.9)
#define W_VERIFIED   .8
#define W_DENIED     (-2.2)
#define W_USED_AFTER (-1.2)
#define W_LEFT_ALONE .4
#define W_ALONE_WAIT (-.3) /* one need not hold what one waits for */

#define DENIED_MOST .4 /* confidence, whatever the name promises */

/* What the code may say of a function whose name says something else. */
#define ALSO_WAIT    .4
#define ALSO_ACQUIRE .3

struct group {
	unsigned count[CANDIDATE_EVENTS];
};

struct stem {
	char text[STEM_BYTES];
};

struct item {
	uint32_t function;
	enum candidate_event event;
	double strength;
	struct stem stem;
	bool has_noun;
};

struct run {
	const struct discover_files *files;
	const struct discover_ops *ops;
	void *ctx;
	struct graph graph;
	struct arena *arena;
	struct verify *verify;
	VEC(struct item) items;
	struct map *groups; /* struct stem -> struct group */
	struct map *events; /* function -> its event, of those with a verb */
	VEC(struct event_candidate) found;
};

/* Names. */

static bool is_ours(const struct graph_function *function)
{
	const char *name = function->symbol->name;

	return !function->symbol->is_plt && *name && strncmp(name, "_GLOBAL__", 9) != 0 &&
	       strncmp(name, "_ZNSt", 5) != 0 && strncmp(name, "_ZSt", 4) != 0 &&
	       strncmp(name, "_ZNKSt", 6) != 0;
}

static void add_item(struct run *run, uint32_t index)
{
	const struct graph_function *function = &run->graph.functions.data[index];
	struct item item = { .function = index };
	struct words words;
	struct words_verb verb;

	if (!is_ours(function))
		return;
	words_cut(function->name, &words);
	if (!words_verb(&words, &verb))
		return;
	item.event = verb.event;
	item.strength = verb.strength;
	words_stem(&words, &verb, item.stem.text, sizeof(item.stem.text));
	for (size_t i = 0; i < words.count; i++)
		item.has_noun |=
			words_is_noun(words.word[i]) && (i != verb.at || words.scope);
	*(uint8_t *)map_put(run->events, &index, NULL) = (uint8_t)verb.event;
	if (!*item.stem.text)
		return;
	struct group *group = map_put(run->groups, &item.stem, NULL);

	group->count[item.event]++;
	vec_push(&run->items, item);
}

static bool has_pair(const struct group *group)
{
	return group && group->count[CANDIDATE_ACQUIRE] &&
	       group->count[CANDIDATE_RELEASE];
}

/* "lw-lock-var" belongs to "lw-lock", if that can be acquired and released. */
static void find_company(struct run *run, struct item *item)
{
	struct stem shorter = item->stem;
	char *cut;

	if (has_pair(map_find(run->groups, &item->stem)))
		return;
	while ((cut = strrchr(shorter.text, '-'))) {
		memset(cut, 0, sizeof(shorter.text) - (size_t)(cut - shorter.text));
		if (!has_pair(map_find(run->groups, &shorter)))
			continue;
		struct group *group = map_find(run->groups, &shorter);

		group->count[item->event]++;
		item->stem = shorter;
		return;
	}
}

/* Code. */

static void say(struct run *run, struct event_candidate *candidate, const char *fmt, ...)
	__attribute__((format(printf, 3, 4)));

static void say(struct run *run, struct event_candidate *candidate, const char *fmt, ...)
{
	char room[512];
	va_list args;

	if (candidate->evidence_count == CANDIDATE_MAX_EVIDENCE)
		return;
	va_start(args, fmt);
	vsnprintf(room, sizeof(room), fmt, args);
	va_end(args);
	candidate->evidence[candidate->evidence_count++] = arena_strdup(run->arena, room);
}

static const char *name_of(const struct run *run, uint32_t function)
{
	return function == GRAPH_NONE || !*run->graph.functions.data[function].name
		       ? "a function without a name"
		       : run->graph.functions.data[function].name;
}

static int lowest(uint32_t bits)
{
	bits &= (1u << VERIFY_ARGS) - 1;
	return bits ? __builtin_ctz(bits) : CANDIDATE_NO_OBJECT;
}

static const char *behind(uint32_t bits)
{
	static const char *const names[] = { "arg1", "arg2", "arg3",	"arg4",
					     "arg5", "arg6", "a global" };

	return bits ? names[__builtin_ctz(bits)] : "nothing";
}

/* Calls of @function to one that is called like such an event. */
static uint32_t call_like(const struct run *run, uint32_t function,
			  enum candidate_event event)
{
	const struct graph_function *from = &run->graph.functions.data[function];

	for (uint32_t i = 0; i < from->call_count; i++) {
		uint32_t to = run->graph.calls.data[from->first_call + i];
		const char *name = run->graph.functions.data[to].symbol->name;
		const uint8_t *known = map_find(run->events, &to);

		if ((known && *known == event) ||
		    (event == CANDIDATE_RELEASE && graph_is_free(name)) ||
		    (event == CANDIDATE_ACQUIRE && graph_is_alloc(name)))
			return to;
	}
	return GRAPH_NONE;
}

static void say_slow(struct run *run, struct event_candidate *candidate,
		     const struct verify_facts *facts)
{
	CLEANUP(str_fini) struct str way = { 0 };
	uint32_t at = facts->slow_call;

	for (unsigned i = 0; at != GRAPH_NONE && i <= GRAPH_MAX_REACH; i++) {
		str_printf(&way, "%s%s", i ? " > " : "", name_of(run, at));
		at = run->graph.functions.data[at].next;
	}
	say(run, candidate, "%s at +0x%" PRIx64 ": %s",
	    facts->has_slow_path ? "can block, on a path that others pass by,"
				 : "blocks on every path",
	    facts->slow_va - candidate->va, str_text(&way));
}

static void check_wait(struct run *run, const struct verify_facts *facts,
		       struct event_candidate *candidate)
{
	candidate->is_verified = facts->has_slow_path;
	candidate->object = lowest(facts->reads | facts->writes);
	if (facts->slow_call != GRAPH_NONE)
		say_slow(run, candidate, facts);
	else
		say(run, candidate, "nothing that it calls is known to block");
}

static bool gives_new(const struct run *run, const struct verify_facts *facts)
{
	if (!facts->gives_call || facts->given_by == GRAPH_NONE)
		return false;
	const uint8_t *event = map_find(run->events, &facts->given_by);

	return (event && *event == CANDIDATE_ACQUIRE) ||
	       graph_is_alloc(run->graph.functions.data[facts->given_by].symbol->name);
}

static void check_acquire(struct run *run, const struct verify_facts *facts,
			  struct event_candidate *candidate, uint32_t function)
{
	uint32_t other = call_like(run, function, CANDIDATE_ACQUIRE);
	bool hands_on = other != GRAPH_NONE && (facts->passed || facts->gives_call);
	uint32_t kept = facts->counts | facts->links | facts->writes;

	if (facts->gives_call)
		say(run, candidate, "returns what %s gave it",
		    name_of(run, facts->given_by));
	else if (facts->gives_load)
		say(run, candidate, "returns what it found in memory");
	if (facts->counts)
		say(run, candidate, "changes a word behind %s in place",
		    behind(facts->counts));
	if (facts->links)
		say(run, candidate, "stores a pointer behind %s", behind(facts->links));
	if (hands_on)
		say(run, candidate, "goes on to %s", name_of(run, other));
	candidate->is_verified = facts->gives_call || facts->gives_load ||
				 facts->counts || facts->links || hands_on;
	candidate->object = lowest(facts->counts);
	/* Without a prototype, what is left in the register of the result may be no
	 * result. */
	if (candidate->object == CANDIDATE_NO_OBJECT && gives_new(run, facts))
		candidate->object = CANDIDATE_RESULT;
	if (candidate->object == CANDIDATE_NO_OBJECT)
		candidate->object = lowest(kept);
	if (candidate->object == CANDIDATE_NO_OBJECT &&
	    (facts->gives_call || facts->gives_load))
		candidate->object = CANDIDATE_RESULT;
	if (candidate->object == CANDIDATE_NO_OBJECT)
		candidate->object = lowest(facts->passed);
	if (!candidate->is_verified)
		say(run, candidate, "what it got goes nowhere");
}

static void check_use(struct run *run, const struct verify_facts *facts,
		      struct event_candidate *candidate)
{
	uint32_t touched = facts->reads | facts->writes;

	candidate->is_verified = touched & ((1u << VERIFY_ARGS) - 1);
	candidate->object = lowest(touched);
	say(run, candidate, "accesses memory behind %s", behind(touched));
}

/* Return log odds. */
static double check_callers(struct run *run, struct event_candidate *candidate,
			    uint32_t function)
{
	const struct graph_function *of = &run->graph.functions.data[function];
	struct verify_sites sites = { 0, 0 };

	if (candidate->object < 0)
		return 0;
	for (uint32_t i = 0; i < of->caller_count && i < MAX_CALLERS; i++)
		verify_used_after(run->verify,
				  run->graph.callers.data[of->first_caller + i], function,
				  (unsigned)candidate->object, &sites);
	if (!sites.sites)
		return 0;
	say(run, candidate, "arg%d is accessed right behind %u of %u calls",
	    candidate->object + 1, sites.used, sites.sites);
	return sites.used > USED_TOO_OFT * sites.sites ? W_USED_AFTER : W_LEFT_ALONE;
}

static void check_release(struct run *run, const struct verify_facts *facts,
			  struct event_candidate *candidate, uint32_t function)
{
	uint32_t other = call_like(run, function, CANDIDATE_RELEASE);
	uint32_t changed = facts->counts | facts->writes | facts->links;

	if (changed)
		say(run, candidate, "changes memory behind %s", behind(changed));
	if (other != GRAPH_NONE)
		say(run, candidate, "goes on to %s", name_of(run, other));
	candidate->is_verified = changed || other != GRAPH_NONE;
	candidate->object = lowest(changed ? changed : facts->passed);
	if (candidate->object == CANDIDATE_NO_OBJECT)
		candidate->object = lowest(facts->passed | facts->reads);
	if (!candidate->is_verified)
		say(run, candidate, "nothing changes by it");
}

/* Weighing. */

static double odds(double p)
{
	return log(p / (1 - p));
}

static void say_company(struct run *run, const struct item *item,
			const struct group *group, struct event_candidate *candidate)
{
	if (has_pair(group))
		say(run, candidate, "%s is acquired by %u and released by %u functions",
		    item->stem.text, group->count[CANDIDATE_ACQUIRE],
		    group->count[CANDIDATE_RELEASE]);
	else
		say(run, candidate, "nothing else acquires and releases %s",
		    item->stem.text);
}

static void judge(struct run *run, const struct item *item,
		  const struct verify_facts *facts, enum candidate_event event,
		  double strength)
{
	const struct graph_function *function =
		&run->graph.functions.data[item->function];
	const struct group *group = map_find(run->groups, &item->stem);
	struct event_candidate candidate = {
		.event = event,
		.va = function->symbol->va,
		.bytes = function->symbol->bytes,
		.symbol = function->symbol->name,
		.function = function->name,
		.resource = arena_strdup(run->arena, item->stem.text),
		.object = CANDIDATE_NO_OBJECT,
	};
	double alone = event == CANDIDATE_WAIT ? W_ALONE_WAIT : W_NO_PAIR;
	double weight = odds(strength) + (item->has_noun ? W_NOUN : W_NO_NOUN) +
			(has_pair(group) ? W_PAIR : alone);

	say_company(run, item, group, &candidate);
	switch (event) {
	case CANDIDATE_WAIT:
		check_wait(run, facts, &candidate);
		break;
	case CANDIDATE_ACQUIRE:
		check_acquire(run, facts, &candidate, item->function);
		break;
	case CANDIDATE_USE:
		check_use(run, facts, &candidate);
		break;
	default:
		check_release(run, facts, &candidate, item->function);
		weight += check_callers(run, &candidate, item->function);
		break;
	}
	if (facts->is_known && candidate.is_verified)
		weight += W_VERIFIED;
	else if (facts->is_known)
		weight = fmin(weight + W_DENIED, odds(DENIED_MOST));
	candidate.confidence = 1 / (1 + exp(-weight));
	if (run->found.count < DISCOVER_MAX_CANDIDATES)
		vec_push(&run->found, candidate);
}

static void look_at(struct run *run, const struct item *item)
{
	struct verify_facts facts;

	verify_function(run->verify, item->function, &facts);
	judge(run, item, &facts, item->event, item->strength);
	if (item->event == CANDIDATE_RELEASE)
		return;
	/* To get it or to look at it may take a wait, and to look it up is to get it. */
	if (item->event != CANDIDATE_WAIT && facts.has_slow_path)
		judge(run, item, &facts, CANDIDATE_WAIT,
		      item->strength >= LOCK_LIKE ? item->strength : ALSO_WAIT);
	if (item->event == CANDIDATE_USE && (facts.gives_call || facts.gives_load))
		judge(run, item, &facts, CANDIDATE_ACQUIRE, ALSO_ACQUIRE);
}

static int by_confidence(const void *a, const void *b)
{
	const struct event_candidate *x = a, *y = b;

	if (x->confidence != y->confidence)
		return x->confidence > y->confidence ? -1 : 1;
	return x->va != y->va ? (x->va < y->va ? -1 : 1) : (int)x->event - (int)y->event;
}

static struct err *find_all(struct run *run)
{
	size_t functions = run->graph.functions.count;

	for (uint32_t i = 0; i < functions; i++)
		add_item(run, i);
	vec_each(&run->items, item)
		find_company(run, item);
	for (size_t i = 0; i < run->items.count; i++) {
		look_at(run, &run->items.data[i]);
		if (run->ops->progress && i % STEP_EVERY == 0)
			TRY(run->ops->progress(
				run->ctx, functions + functions * i / run->items.count,
				functions * 2));
	}
	return NULL;
}

static struct err *run_all(struct run *run, const struct elf_functions *symbols,
			   struct insn_decoder *decoder)
{
	TRY(graph_build(run->files, symbols, decoder, run->arena, run->ops, run->ctx,
			&run->graph));
	if (!run->graph.functions.count)
		return err_new(ERR_NOT_FOUND, "the file has no symbol of a function");
	run->verify = verify_new(run->files, &run->graph, decoder);
	struct err *err = find_all(run);

	verify_free(run->verify);
	TRY(err);
	if (run->found.count)
		qsort(run->found.data, run->found.count, sizeof(*run->found.data),
		      by_confidence);
	vec_each(&run->found, candidate)
		run->ops->candidate(run->ctx, candidate);
	size_t total = run->graph.functions.count * 2;

	return run->ops->progress ? run->ops->progress(run->ctx, total, total) : NULL;
}

struct err *discover_run(const struct discover_files *files,
			 const struct discover_ops *ops, void *ctx)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = NULL;
	CLEANUP(elf_functions_free) struct elf_functions *symbols = NULL;
	CLEANUP(arena_free) struct arena *arena = arena_new();
	struct run run = { .files = files, .ops = ops, .ctx = ctx, .arena = arena };

	TRY(insn_decoder_open(elf_machine(files->main), &decoder));
	TRY(elf_functions_new(files->main, files->debug, &symbols));
	run.groups = map_new(sizeof(struct stem), sizeof(struct group));
	run.events = map_new(sizeof(uint32_t), sizeof(uint8_t));
	struct err *err = run_all(&run, symbols, decoder);

	map_free(run.groups);
	map_free(run.events);
	vec_fini(&run.items);
	vec_fini(&run.found);
	graph_fini(&run.graph);
	return err;
}
