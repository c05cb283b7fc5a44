// SPDX-License-Identifier: Apache-2.0
/*
 * Per module two lists of addresses that wait: for names and lines (resolve worker), for
 * types (analyze worker). A pump turns them into batches while few enough are in
 * flight. What was asked is remembered as a hash, so a module's round number in it is
 * enough to ask everything again. A batch over which the worker died is repeated once;
 * the second death puts the module on the list of those that are left alone.
 */
#include "daemon/explain.h"

#include <string.h>

#include "bpf/abi.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"
#include "daemon/flight.h"
#include "store/sql.h"

enum topic { NAMES, TYPES, TOPICS };

#define HASH_SEED     9
#define FUNCTION_SEED 10
#define MAX_FORGOTTEN 3

struct subject {
	uint64_t module_id;
	uint64_t round;
	uint64_t retry_ns[TOPICS];
	unsigned deaths[TOPICS];
	unsigned forgotten[TOPICS]; /* times in a row that the worker did not have it */
	VEC(struct job_site) waiting[TOPICS];
};

struct batch {
	struct flight flight;
	uint64_t module_id;
	enum topic topic;
	size_t count;
	struct job_site sites[EXPLAIN_BATCH];
};

struct explain {
	struct explain_config config;
	struct map *subjects; /* module id -> struct subject * */
	struct map *asked;    /* hash -> nothing */
	struct flights flights;
	size_t flying[TOPICS];
	uint64_t now_ns;
	struct explain_stats stats;
};

static const enum job_class classes[TOPICS] = {
	[NAMES] = JOB_RESOLVE, [TYPES] = JOB_ANALYZE
};

struct explain *explain_new(const struct explain_config *config)
{
	struct explain *explain = mem_alloc(sizeof(*explain));

	explain->config = *config;
	explain->subjects = map_new(sizeof(uint64_t), sizeof(struct subject *));
	explain->asked = map_new(sizeof(uint64_t), 1);
	return explain;
}

void explain_free(struct explain *explain)
{
	size_t pos = 0;
	struct subject **slot;

	if (!explain)
		return;
	flights_cut(&explain->flights);
	while ((slot = map_next(explain->subjects, &pos, NULL))) {
		for (int topic = 0; topic < TOPICS; topic++)
			vec_fini(&(*slot)->waiting[topic]);
		free(*slot);
	}
	map_free(explain->subjects);
	map_free(explain->asked);
	free(explain);
}

static struct subject *subject_of(struct explain *explain, uint64_t module_id)
{
	struct subject **slot = map_find(explain->subjects, &module_id);

	if (slot)
		return *slot;
	if (map_count(explain->subjects) >= EXPLAIN_MAX_MODULES)
		return NULL;
	struct subject *subject = mem_alloc(sizeof(*subject));

	subject->module_id = module_id;
	*(struct subject **)map_put(explain->subjects, &module_id, NULL) = subject;
	return subject;
}

/* True the first time. */
static bool remember(struct explain *explain, const uint64_t *words, size_t count,
		     uint64_t seed)
{
	uint64_t hash = hash_bytes(words, count * sizeof(*words), seed);
	bool is_new;

	if (map_count(explain->asked) >= EXPLAIN_MAX_ASKED)
		map_clear(explain->asked);
	map_put(explain->asked, &hash, &is_new);
	return is_new;
}

static bool remember_site(struct explain *explain, const struct subject *subject,
			  const struct job_site *site, enum topic topic)
{
	/* A name does not depend on the skid rule. */
	uint64_t words[5] = { subject->module_id, subject->round, site->va,
			      topic == TYPES && site->skid, topic };

	return remember(explain, words, 5, HASH_SEED);
}

static bool is_poisoned(const struct subject *subject, enum topic topic)
{
	return subject->deaths[topic] >= EXPLAIN_POISON;
}

static void want(struct explain *explain, struct subject *subject,
		 const struct job_site *site, enum topic topic)
{
	if (is_poisoned(subject, topic))
		return;
	if (explain->stats.waiting >= EXPLAIN_MAX_WAITING) {
		explain->stats.dropped++;
		return;
	}
	if (!remember_site(explain, subject, site, topic))
		return;
	vec_push(&subject->waiting[topic], *site);
	explain->stats.waiting++;
}

void explain_want(struct explain *explain, uint64_t module_id, uint64_t va, bool skid,
		  bool answer)
{
	struct subject *subject = module_id ? subject_of(explain, module_id) : NULL;
	struct job_site site = { .va = va, .skid = skid };

	if (!subject)
		return;
	want(explain, subject, &site, NAMES);
	if (answer && !explain->config.no_types)
		want(explain, subject, &site, TYPES);
}

void explain_known(struct explain *explain, uint64_t module_id, uint64_t va, bool skid)
{
	struct subject *subject = module_id ? subject_of(explain, module_id) : NULL;
	struct job_site site = { .va = va, .skid = skid };

	if (!subject)
		return;
	remember_site(explain, subject, &site, NAMES);
	remember_site(explain, subject, &site, TYPES);
}

void explain_note(struct explain *explain, const struct fact *fact)
{
	if (fact->kind == FACT_ACCESS)
		explain_want(explain, fact->access.module_id, fact->access.va,
			     source_skids(fact->access.source), true);
	if (fact->kind == FACT_STACK)
		for (size_t i = 0; i < fact->stack.count; i++)
			explain_want(explain, fact->stack.frames[i].module_id,
				     fact->stack.frames[i].va, false, false);
}

void explain_debug_found(struct explain *explain, uint64_t module_id)
{
	struct subject **slot = map_find(explain->subjects, &module_id);

	if (slot)
		(*slot)->round++;
}

/* Answers. */

static void put_symbol(struct explain *explain, uint64_t module_id,
		       const struct job_symbol *symbol)
{
	uint64_t words[2] = { module_id, symbol->function_va };
	struct fact function = {
		.kind = FACT_FUNCTION,
		.function = { .module_id = module_id,
			      .va = symbol->function_va,
			      .bytes = symbol->function_bytes,
			      .name = symbol->function,
			      .file = symbol->function_file,
			      .line = symbol->function_line },
	};
	struct fact site = {
		.kind = FACT_SITE,
		.site = { .module_id = module_id,
			  .va = symbol->va,
			  .function_va = symbol->function_va,
			  .file = symbol->file,
			  .line = symbol->line },
	};

	if (*symbol->function && remember(explain, words, 2, FUNCTION_SEED))
		sink_put(explain->config.sink, &function);
	sink_put(explain->config.sink, &site);
	explain->stats.sites++;
}

static void put_answers(struct explain *explain, uint64_t module_id,
			const struct job_answers *answers)
{
	struct sink *sink = explain->config.sink;

	for (size_t i = 0; i < answers->type_count; i++)
		sink_put(sink,
			 &(struct fact){ .kind = FACT_TYPE, .type = answers->types[i] });
	for (size_t i = 0; i < answers->field_count; i++)
		sink_put(sink, &(struct fact){ .kind = FACT_FIELD,
					       .field = answers->fields[i] });
	for (size_t i = 0; i < answers->answer_count; i++) {
		struct fact fact = { .kind = FACT_ANSWER, .answer = answers->answers[i] };

		fact.answer.module_id = module_id;
		sink_put(sink, &fact);
	}
	explain->stats.answers += answers->answer_count;
}

/* The question has an answer all the same: why there is none. */
static void abstain(struct explain *explain, uint64_t module_id,
		    const struct job_site *site, enum verdict verdict)
{
	struct fact fact = {
		.kind = FACT_ANSWER,
		.answer = { .module_id = module_id,
			    .skid = site->skid,
			    .answer = { .va = site->va,
					.insn_va = site->va,
					.verdict = verdict,
					.type = "",
					.path = "" } },
	};

	sink_put(explain->config.sink, &fact);
}

static void fail_sites(struct explain *explain, const struct subject *subject,
		       enum topic topic, const struct job_site *sites, size_t count)
{
	enum verdict verdict =
		is_poisoned(subject, topic) ? VERDICT_LIMIT : VERDICT_NO_DEBUG;

	explain->stats.failed += count;
	for (size_t i = 0; topic == TYPES && i < count; i++)
		abstain(explain, subject->module_id, &sites[i], verdict);
}

/* Put the batch back to the front of the queue. */
static void put_back(struct explain *explain, struct subject *subject,
		     const struct batch *batch)
{
	for (size_t i = 0; i < batch->count; i++)
		vec_push(&subject->waiting[batch->topic], batch->sites[i]);
	explain->stats.waiting += batch->count;
	subject->retry_ns[batch->topic] = explain->now_ns + EXPLAIN_RETRY_NS;
}

static void drop_waiting(struct explain *explain, struct subject *subject,
			 enum topic topic)
{
	fail_sites(explain, subject, topic, subject->waiting[topic].data,
		   subject->waiting[topic].count);
	explain->stats.waiting -= subject->waiting[topic].count;
	vec_fini(&subject->waiting[topic]);
}

static bool is_death(const struct err *err)
{
	return err->code == ERR_CLOSED || err->code == ERR_LIMIT;
}

/* Whether the batch is worth another try. */
static bool may_repeat(struct explain *explain, struct subject *subject, enum topic topic,
		       const struct err *err)
{
	if (is_poisoned(subject, topic))
		return false;
	if (was_not_begun(err))
		return true;
	if (err->code == ERR_NOT_FOUND) {
		modules_forget(explain->config.modules, subject->module_id,
			       classes[topic]);
		return ++subject->forgotten[topic] < MAX_FORGOTTEN;
	}
	if (!is_death(err))
		return false;
	if (++subject->deaths[topic] < EXPLAIN_POISON)
		return true;
	explain->stats.poisoned++;
	drop_waiting(explain, subject, topic);
	return false;
}

static void on_failure(struct explain *explain, struct batch *batch,
		       const struct err *err)
{
	struct subject *subject = subject_of(explain, batch->module_id);

	if (!subject)
		return;
	if (may_repeat(explain, subject, batch->topic, err))
		put_back(explain, subject, batch);
	else
		fail_sites(explain, subject, batch->topic, batch->sites, batch->count);
}

static void on_success(struct explain *explain, const struct batch *batch)
{
	struct subject *subject = subject_of(explain, batch->module_id);

	if (subject)
		subject->forgotten[batch->topic] = 0;
}

static void on_batch(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct batch *batch = ctx;
	struct explain *explain = batch->flight.owner;

	if (explain && reply && batch->topic == NAMES)
		for (size_t i = 0; i < reply->symbols.count; i++)
			put_symbol(explain, batch->module_id, &reply->symbols.data[i]);
	if (explain && reply && batch->topic == TYPES)
		put_answers(explain, batch->module_id, &reply->sites.answers);
	if (explain && reply && batch->topic == TYPES)
		modules_kept(explain->config.modules, batch->module_id, reply);
	if (reply && reply->more)
		return;
	if (explain) {
		flight_end(&explain->flights, &batch->flight);
		explain->flying[batch->topic]--;
		explain->stats.flying--;
		if (err)
			on_failure(explain, batch, err);
		else
			on_success(explain, batch);
	}
	err_free(err);
	free(batch);
}

/* Asking. */

static struct err *submit(struct job_client *client, struct batch *batch)
{
	uint64_t vas[EXPLAIN_BATCH];

	if (batch->topic == TYPES)
		return job_sites(client, batch->module_id, batch->sites, batch->count,
				 on_batch, batch);
	for (size_t i = 0; i < batch->count; i++)
		vas[i] = batch->sites[i].va;
	return job_symbols(client, batch->module_id, vas, batch->count, on_batch, batch);
}

/* False: nothing more can be sent now. */
static bool send_batch(struct explain *explain, struct subject *subject, enum topic topic,
		       struct job_client *client)
{
	__typeof__(subject->waiting[0]) *waiting = &subject->waiting[topic];
	struct batch *batch = mem_alloc(sizeof(*batch));

	batch->module_id = subject->module_id;
	batch->topic = topic;
	batch->count = waiting->count < EXPLAIN_BATCH ? waiting->count : EXPLAIN_BATCH;
	memcpy(batch->sites, waiting->data + waiting->count - batch->count,
	       batch->count * sizeof(struct job_site));
	struct err *err = submit(client, batch);

	if (err) {
		err_free(err);
		free(batch);
		return false;
	}
	flight_begin(&explain->flights, &batch->flight, explain);
	waiting->count -= batch->count;
	explain->stats.waiting -= batch->count;
	explain->flying[topic]++;
	explain->stats.flying++;
	return true;
}

/* The module is with the worker. A module that is gone takes its questions with it. */
static bool is_open(struct explain *explain, struct subject *subject, enum topic topic)
{
	struct err *err =
		modules_open(explain->config.modules, subject->module_id, classes[topic]);

	if (!err)
		return true;
	if (err->code == ERR_BUSY || err->code == ERR_LIMIT || err->code == ERR_CLOSED)
		subject->retry_ns[topic] = explain->now_ns + EXPLAIN_RETRY_NS / 4;
	else
		drop_waiting(explain, subject, topic);
	err_free(err);
	return false;
}

static void pump_topic(struct explain *explain, enum topic topic)
{
	struct job_client *client =
		job_source_client(explain->config.jobs, classes[topic]);
	struct subject **slot;
	size_t pos = 0;

	while (client && explain->flying[topic] < EXPLAIN_FLYING &&
	       (slot = map_next(explain->subjects, &pos, NULL))) {
		struct subject *subject = *slot;

		if (!subject->waiting[topic].count ||
		    subject->retry_ns[topic] > explain->now_ns ||
		    !is_open(explain, subject, topic))
			continue;
		while (subject->waiting[topic].count &&
		       explain->flying[topic] < EXPLAIN_FLYING)
			if (!send_batch(explain, subject, topic, client))
				return;
	}
}

void explain_pump(struct explain *explain, uint64_t now_ns)
{
	explain->now_ns = now_ns;
	pump_topic(explain, NAMES);
	pump_topic(explain, TYPES);
}

bool explain_idle(const struct explain *explain)
{
	return !explain->stats.waiting && !explain->stats.flying;
}

void explain_stats(const struct explain *explain, struct explain_stats *ret_stats)
{
	*ret_stats = explain->stats;
}
