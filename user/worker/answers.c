// SPDX-License-Identifier: Apache-2.0
/*
 * An answer's strings live until the analyser is asked again, so they are interned
 * first; the layout of a type is asked for once per job, lives as
 * long as the analyser, and is repeated in every reply that names the type.
 */
#include "worker/answers.h"

#include <string.h>
#include <sys/resource.h>

#include "core/intern.h"
#include "core/map.h"
#include "core/vec.h"
#include "worker/sandbox.h"

struct layout {
	struct fact_type type;
	const struct fact_field *fields;
	size_t field_count, bytes; /* bytes: of its names, roughly */
	uint32_t reply;		   /* the last one that carried it */
};

struct batch {
	const struct answers_job *job;
	struct recover *recover;
	struct intern *names; /* of types and fields; they repeat */
	struct map *layouts;  /* hash of name and size -> struct layout */
	VEC(struct fact_answer) answers;
	VEC(struct fact_type) types;
	VEC(struct fact_field) fields;
	size_t bytes;
	uint32_t reply, done, total;
	uint64_t begun_ns, sent_ns; /* CPU */
	struct job_stats stats;
	struct err *err;
};

uint64_t answers_type_id(const struct fact_type *type, const struct fact_field *fields,
			 size_t count)
{
	uint64_t id =
		hash_bytes(&type->bytes, sizeof(type->bytes), hash_text(type->name, 2));

	for (size_t i = 0; i < count; i++) {
		uint64_t place[2] = { fields[i].offset, fields[i].bytes };

		id = hash_bytes(place, sizeof(place), hash_text(fields[i].path, id));
	}
	return id;
}

static void batch_init(struct batch *batch, const struct answers_job *job,
		       struct recover *recover)
{
	*batch = (struct batch){ .job = job, .recover = recover, .reply = 1 };
	batch->names = intern_new();
	batch->layouts = map_new(sizeof(uint64_t), sizeof(struct layout));
	batch->begun_ns = batch->sent_ns = sandbox_cpu_ns();
}

static void batch_fini(struct batch *batch)
{
	vec_fini(&batch->answers);
	vec_fini(&batch->types);
	vec_fini(&batch->fields);
	map_free(batch->layouts);
	intern_free(batch->names);
}

static void finish_stats(struct batch *batch)
{
	struct rusage usage;

	batch->stats.functions = batch->total;
	if (batch->recover)
		recover_units(batch->recover, &batch->stats.units,
			      &batch->stats.kept_units);
	batch->stats.cpu_ns = sandbox_cpu_ns() - batch->begun_ns;
	if (getrusage(RUSAGE_SELF, &usage) == 0)
		batch->stats.peak_bytes = (uint64_t)usage.ru_maxrss * 1024;
}

static void send_reply(struct batch *batch, const struct job_reply *reply)
{
	CLEANUP(str_fini) struct str payload = { 0 };

	message_put_reply(&payload, reply);
	struct channel_message message = { .kind = (uint16_t)reply->kind,
					   .more = reply->more,
					   .job = batch->job->job,
					   .payload = payload.data,
					   .bytes = payload.length,
					   .fds = { -1, -1, -1, -1 } };

	batch->err = channel_put(batch->job->channel, &message);
	if (!batch->err)
		batch->err = channel_flush(batch->job->channel, true);
}

static void batch_send(struct batch *batch, bool more)
{
	struct job_reply reply = { .kind = batch->job->kind, .more = more };

	if (batch->err)
		return;
	if (!more)
		finish_stats(batch);
	reply.sites.answers = (struct job_answers){
		.types = batch->types.data,
		.type_count = batch->types.count,
		.fields = batch->fields.data,
		.field_count = batch->fields.count,
		.answers = batch->answers.data,
		.answer_count = batch->answers.count,
	};
	reply.sites.done = batch->done;
	reply.sites.total = batch->total;
	reply.sites.stats = batch->stats;
	send_reply(batch, &reply);
	vec_clear(&batch->answers);
	vec_clear(&batch->types);
	vec_clear(&batch->fields);
	batch->bytes = 0;
	batch->reply++;
	batch->sent_ns = sandbox_cpu_ns();
}

/* What is to be kept goes in replies of its own, before the last one. */
static void send_kept(struct batch *batch, bool is_whole)
{
	while (!batch->err) {
		struct job_reply reply = { .kind = batch->job->kind, .more = true };
		CLEANUP(str_fini) struct str kept = { 0 };

		if (!recover_kept(batch->recover, is_whole, ANSWERS_KEPT_BYTES, &kept))
			return;
		is_whole = false;
		reply.sites.done = batch->done;
		reply.sites.total = batch->total;
		reply.sites.kept = kept.data;
		reply.sites.kept_bytes = kept.length;
		send_reply(batch, &reply);
	}
}

static struct layout *find_layout(struct batch *batch, const struct answer *answer)
{
	uint64_t key = hash_bytes(&answer->type_bytes, sizeof(answer->type_bytes),
				  hash_text(answer->type, 0));
	bool is_new;
	struct layout *layout = map_put(batch->layouts, &key, &is_new);

	if (!is_new)
		return layout;
	layout->type.name = answer->type; /* interned */
	layout->type.bytes = answer->type_bytes;
	struct fact_type found;

	if (recover_type(batch->recover, answer, &found, &layout->fields,
			 &layout->field_count)) {
		layout->type.bytes = found.bytes;
		if (layout->field_count > ANSWERS_MAX_FIELDS)
			layout->field_count = ANSWERS_MAX_FIELDS;
	} else {
		layout->fields = NULL;
		layout->field_count = 0;
	}
	layout->type.type_id =
		answers_type_id(&layout->type, layout->fields, layout->field_count);
	layout->bytes = strlen(layout->type.name) + 32;
	for (size_t i = 0; i < layout->field_count; i++)
		layout->bytes += strlen(layout->fields[i].path) + 32;
	return layout;
}

static void add_layout(struct batch *batch, struct layout *layout)
{
	if (layout->reply == batch->reply)
		return;
	/* What would not fit goes with the next reply, with the answer that names it. */
	if (batch->answers.count && batch->bytes + layout->bytes > ANSWERS_REPLY_BYTES)
		batch_send(batch, true);
	layout->reply = batch->reply;
	batch->bytes += layout->bytes;
	vec_push(&batch->types, layout->type);
	for (size_t i = 0; i < layout->field_count; i++) {
		struct fact_field field = layout->fields[i];

		field.type_id = layout->type.type_id;
		vec_push(&batch->fields, field);
	}
}

static void add_answer(struct batch *batch, const struct answer *given, bool skid)
{
	struct fact_answer fact = { .module_id = batch->job->module_id,
				    .skid = skid,
				    .answer = *given };
	size_t bytes = strlen(given->type) + strlen(given->path) + 100;

	if (batch->answers.count >= ANSWERS_PER_REPLY ||
	    batch->bytes + bytes > ANSWERS_REPLY_BYTES)
		batch_send(batch, true);
	/* Strings first: asking for the layout ends their life. */
	fact.answer.type =
		intern_text(batch->names, intern_id(batch->names, given->type));
	fact.answer.path =
		intern_text(batch->names, intern_id(batch->names, given->path));
	if (verdict_is_claim(given->verdict) && *fact.answer.type) {
		struct layout *layout = find_layout(batch, &fact.answer);

		add_layout(batch, layout);
		fact.type_id = layout->type.type_id;
	}
	batch->bytes += bytes;
	if ((unsigned)given->verdict < VERDICTS)
		batch->stats.by_verdict[given->verdict]++;
	if ((unsigned)given->verdict < VERDICTS && given->is_frame)
		batch->stats.by_verdict_stack[given->verdict]++;
	batch->stats.claims += verdict_is_claim(given->verdict);
	batch->stats.memory_instructions++;
	vec_push(&batch->answers, fact);
}

static bool each_answer(void *ctx, const struct answer *answer)
{
	struct batch *batch = ctx;

	add_answer(batch, answer, false);
	return !batch->err;
}

static void each_progress(void *ctx, size_t done, size_t total)
{
	struct batch *batch = ctx;

	batch->done = done < UINT32_MAX ? (uint32_t)done : UINT32_MAX;
	batch->total = total < UINT32_MAX ? (uint32_t)total : UINT32_MAX;
	if (sandbox_cpu_ns() - batch->sent_ns > ANSWERS_PROGRESS_NS)
		batch_send(batch, true);
}

struct err *answers_module(const struct answers_job *job, struct recover *recover,
			   uint32_t index, uint32_t count)
{
	struct batch batch;

	batch_init(&batch, job, recover);
	struct err *err =
		recover_share(recover, index, count, each_answer, each_progress, &batch);

	if (!err) {
		batch.done = batch.total;
		send_kept(&batch, true);
		batch_send(&batch, false);
	}
	batch_fini(&batch);
	if (!batch.err)
		return err;
	err_free(err);
	return batch.err;
}

struct err *answers_sites(const struct answers_job *job, struct recover *recover,
			  const struct message_sites *sites)
{
	struct batch batch;

	batch_init(&batch, job, recover);
	batch.total = (uint32_t)sites->count;
	for (size_t i = 0; i < sites->count && !batch.err; i++) {
		struct answer answer = { .verdict = VERDICT_NO_DEBUG,
					 .type = "",
					 .path = "" };

		answer.insn_va = sites->sites[i].va;
		if (recover)
			recover_at(recover, sites->sites[i].va, sites->sites[i].skid,
				   &answer);
		/* What was asked is what the answer is filed under. */
		answer.va = sites->sites[i].va;
		add_answer(&batch, &answer, sites->sites[i].skid);
		batch.done++;
	}
	if (recover)
		send_kept(&batch, false);
	batch_send(&batch, false);
	batch_fini(&batch);
	return batch.err;
}
