// SPDX-License-Identifier: Apache-2.0
/*
 * Puts go to a batch in memory; a flush writes the batch and the time of the flush in
 * one transaction. A flush that fails leaves the batch as it was. So at any moment the
 * file holds every fact up to flush_at_ns and nothing of what came later, and what a
 * crash costs is known when the file is opened again: the time after that mark, at most
 * one interval, at the rate of the last interval.
 *
 * When the disk stays full the batch grows up to pending_bytes. First the samples are
 * dropped (from three quarters on) and counted; what names them (modules, functions,
 * answers) is kept longer, because it is put once only.
 */
#include "store/writer.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "core/file.h"
#include "core/map.h"
#include "core/mem.h"
#include "store/apply.h"
#include "store/batch.h"
#include "store/sql.h"

#define WRITER_MAX_DROP_ROWS 4096
#define WRITER_MAX_OPEN_RUNS 1024
#define BUCKET_NS	     1000000000ull

/* What was dropped, until a flush writes it as a loss. Plain bytes: a map's key. */
struct drop_key {
	uint64_t run_id, bucket_ns, kind;
};

struct writer {
	struct sink sink; /* first: see writer_sink() */
	struct db *db;
	struct writer_config config;
	struct apply *apply;
	struct batch *batch;
	struct script mark;	/* sets one value of meta */
	struct map *drops;	/* drop_key -> records */
	uint64_t run_id;	/* last one that was opened */
	uint64_t flushed_at_ns; /* clock_ns() */
	uint64_t access, ticks; /* samples in the batch */
	uint32_t access_kind, tick_kind, task_kind, module_kind; /* enum abi_kind */
	struct err *put_err; /* of a flush from inside a put */
	struct writer_stats stats;
};

/* This folder does not see bpf/abi.h; its numbers have names. */
static uint32_t kind_of(const char *name)
{
	uint32_t kind = 0;

	while (strcmp(loss_kind_name(kind), name)) {
		if (!strcmp(loss_kind_name(kind), "unknown"))
			return 0;
		kind++;
	}
	return kind;
}

/* How a fact that is dropped is counted. */
struct drop {
	uint64_t run_id, bucket_ns, records;
	uint32_t kind;
};

static struct drop drop_of(const struct writer *writer, const struct fact *fact)
{
	struct drop drop = { writer->run_id, 0, 1, writer->module_kind };

	switch (fact->kind) {
	case FACT_ACCESS:
		return (struct drop){ fact->access.run_id, fact->access.bucket_ns,
				      fact->access.samples, writer->access_kind };
	case FACT_TICK:
		return (struct drop){ fact->tick.run_id, fact->tick.bucket_ns,
				      fact->tick.samples, writer->tick_kind };
	case FACT_LOSS: /* lost all the same, and now for nobody knows why */
		return (struct drop){ fact->loss.run_id, fact->loss.bucket_ns,
				      fact->loss.lost, fact->loss.kind };
	case FACT_RUN:
	case FACT_PROCESS:
		drop.kind = writer->task_kind;
		break;
	default:
		break;
	}
	drop.bucket_ns = realtime_ns() / BUCKET_NS * BUCKET_NS;
	return drop;
}

static void count_drop(struct writer *writer, const struct fact *fact)
{
	struct drop drop = drop_of(writer, fact);
	struct drop_key key = { drop.run_id, drop.bucket_ns, drop.kind };

	writer->stats.dropped++;
	/* A disk that is full for long: rather a wrong bucket than no end of buckets. */
	if (map_count(writer->drops) >= WRITER_MAX_DROP_ROWS)
		key.bucket_ns = 0;
	*(uint64_t *)map_put(writer->drops, &key, NULL) += drop.records;
}

static bool is_sample(const struct fact *fact)
{
	return fact->kind == FACT_ACCESS || fact->kind == FACT_TICK ||
	       fact->kind == FACT_STACK;
}

static void put(struct sink *sink, const struct fact *fact)
{
	struct writer *writer = (struct writer *)sink;
	size_t limit = writer->config.pending_bytes;

	writer->stats.facts++;
	if (fact->kind == FACT_RUN && !fact->run.end_ns)
		writer->run_id = fact->run.run_id;
	if (batch_bytes(writer->batch) >= limit / 2 && !writer->stats.full &&
	    !writer->put_err)
		writer->put_err = writer_flush(writer);
	if (batch_bytes(writer->batch) >= (is_sample(fact) ? limit / 4 * 3 : limit)) {
		count_drop(writer, fact);
		return;
	}
	batch_add(writer->batch, fact);
	if (fact->kind == FACT_ACCESS)
		writer->access += fact->access.samples;
	else if (fact->kind == FACT_TICK)
		writer->ticks += fact->tick.samples;
}

/* The row itself is impossible; without it the rest of the transaction is sound. */
static bool is_bad_fact(int code)
{
	code &= 0xff;
	return code == SQLITE_CONSTRAINT || code == SQLITE_MISMATCH ||
	       code == SQLITE_TOOBIG || code == SQLITE_RANGE;
}

static struct err *write_facts(struct writer *writer, uint64_t *ret_bad)
{
	struct apply_context context = { writer->run_id, realtime_ns(),
					 writer->config.analyser_version };

	for (size_t i = 0; i < batch_count(writer->batch); i++) {
		const struct fact *fact = batch_at(writer->batch, i);
		int code = apply_fact(writer->apply, &context, fact);

		if (is_bad_fact(code))
			++*ret_bad;
		else
			TRY(sql_err(writer->db, code));
	}
	return NULL;
}

static struct err *write_drops(struct writer *writer)
{
	const struct drop_key *key;
	const void *raw;
	size_t pos = 0;
	uint64_t *records;

	while ((records = map_next(writer->drops, &pos, &raw))) {
		key = raw;
		struct fact_loss loss = { .run_id = key->run_id,
					  .bucket_ns = key->bucket_ns,
					  .kind = (uint32_t)key->kind,
					  .reason = LOSS_STORE,
					  .lost = *records };

		TRY(sql_err(writer->db, apply_loss(writer->apply, &loss, 0)));
	}
	return NULL;
}

static struct err *mark(struct writer *writer, const char *key, uint64_t value)
{
	script_bind(&writer->mark, "tl", key, value);
	return script_run(&writer->mark, NULL);
}

static struct err *write_mark(struct writer *writer)
{
	TRY(mark(writer, "flush_at_ns", realtime_ns()));
	TRY(mark(writer, "flush_access", writer->access));
	return mark(writer, "flush_ticks", writer->ticks);
}

static struct err *write_all(struct writer *writer, uint64_t *ret_bad)
{
	TRY(sql_begin(writer->db));
	struct err *err = write_facts(writer, ret_bad);

	if (!err)
		err = write_drops(writer);
	if (!err)
		err = write_mark(writer);
	return sql_end(writer->db, err);
}

struct err *writer_flush(struct writer *writer)
{
	uint64_t begin_ns = clock_ns(), bad = 0;
	struct err *err = write_all(writer, &bad);
	uint64_t took_ns = clock_ns() - begin_ns;

	writer->flushed_at_ns = begin_ns;
	if (took_ns > writer->stats.flush_max_ns)
		writer->stats.flush_max_ns = took_ns;
	if (err) {
		writer->stats.failed_flushes++;
		writer->stats.full = err->code == ERR_LIMIT;
		return err;
	}
	writer->stats.flushes++;
	writer->stats.full = false;
	writer->stats.written += batch_count(writer->batch) - bad;
	writer->stats.dropped += bad;
	batch_clear(writer->batch);
	map_clear(writer->drops);
	writer->access = writer->ticks = 0;
	return NULL;
}

struct err *writer_tick(struct writer *writer, uint64_t now_ns)
{
	if (writer->put_err)
		return take(writer->put_err);
	if (now_ns < writer->flushed_at_ns + writer->config.flush_ns)
		return NULL;
	return writer_flush(writer);
}

/* What the last run of this file lost when it crashed. */
struct crash {
	int64_t flush_at_ns, access, ticks;
	uint64_t lost_ns;
};

static struct err *crash_read(struct db *db, uint64_t now_ns, struct crash *ret_crash)
{
	int64_t interval_ns;

	TRY(meta_get(db, "flush_at_ns", 0, &ret_crash->flush_at_ns));
	TRY(meta_get(db, "flush_access", 0, &ret_crash->access));
	TRY(meta_get(db, "flush_ticks", 0, &ret_crash->ticks));
	TRY(meta_get(db, "flush_ns", WRITER_FLUSH_NS, &interval_ns));
	uint64_t since_ns = now_ns - (uint64_t)ret_crash->flush_at_ns;

	if (now_ns < (uint64_t)ret_crash->flush_at_ns)
		since_ns = 0; /* the clock was set back */
	ret_crash->lost_ns =
		since_ns < (uint64_t)interval_ns ? since_ns : (uint64_t)interval_ns;
	return NULL;
}

static struct err *crash_count(struct writer *writer, const struct crash *crash,
			       uint64_t run_id)
{
	struct fact_loss loss = {
		.run_id = run_id,
		.bucket_ns = (uint64_t)crash->flush_at_ns / BUCKET_NS * BUCKET_NS,
		.kind = writer->access_kind,
		.reason = LOSS_CRASH,
		.lost = (uint64_t)crash->access,
	};

	TRY(sql_err(writer->db, apply_loss(writer->apply, &loss, crash->lost_ns)));
	loss.kind = writer->tick_kind;
	loss.lost = (uint64_t)crash->ticks;
	return sql_err(writer->db, apply_loss(writer->apply, &loss, crash->lost_ns));
}

/* Runs that nobody closed end with the last flush; after a crash they also lack the
 * time behind it. */
static struct err *end_runs(struct writer *writer, uint64_t now_ns)
{
	CLEANUP(script_close) struct script open = { 0 }, end = { 0 };
	CLEANUP(free) int64_t *runs = mem_array(WRITER_MAX_OPEN_RUNS, sizeof(*runs));
	struct crash crash;
	int64_t clean;
	size_t count;

	TRY(meta_get(writer->db, "clean", 1, &clean));
	TRY(crash_read(writer->db, now_ns, &crash));
	TRY(script_open(writer->db, "open_runs", &open));
	TRY(script_rows(&open, runs, 1, WRITER_MAX_OPEN_RUNS, &count));
	for (size_t i = 0; i < count && !clean; i++)
		TRY(crash_count(writer, &crash, (uint64_t)runs[i]));
	TRY(script_open(writer->db, "end_runs", &end));
	script_set(&end, ":end_at_ns", crash.flush_at_ns);
	return script_run(&end, NULL);
}

static struct err *start(struct writer *writer)
{
	struct db *db = writer->db;

	TRY(end_runs(writer, realtime_ns()));
	TRY(meta_set(db, "clean", 0));
	TRY(meta_set(db, "flush_ns", (int64_t)writer->config.flush_ns));
	TRY(meta_set(db, "analyser_version", writer->config.analyser_version));
	return write_mark(writer);
}

struct err *writer_new(struct db *db, const struct writer_config *config,
		       struct writer **ret_writer)
{
	CLEANUP(writer_free) struct writer *writer = mem_alloc(sizeof(*writer));

	TRY(script_open(db, "meta_set", &writer->mark));
	writer->sink.put = put;
	writer->db = db;
	writer->config = *config;
	if (!writer->config.flush_ns)
		writer->config.flush_ns = WRITER_FLUSH_NS;
	if (!writer->config.pending_bytes)
		writer->config.pending_bytes = WRITER_PENDING_BYTES;
	writer->access_kind = kind_of("access");
	writer->tick_kind = kind_of("tick");
	writer->task_kind = kind_of("task");
	writer->module_kind = kind_of("module");
	writer->batch = batch_new();
	writer->drops = map_new(sizeof(struct drop_key), sizeof(uint64_t));
	writer->flushed_at_ns = clock_ns();
	TRY(apply_new(db, &writer->apply));
	TRY(sql_begin(db));
	TRY(sql_end(db, start(writer)));
	*ret_writer = take(writer);
	return NULL;
}

void writer_free(struct writer *writer)
{
	if (!writer)
		return;
	err_free(writer->put_err);
	script_close(&writer->mark);
	apply_free(writer->apply);
	batch_free(writer->batch);
	map_free(writer->drops);
	free(writer);
}

struct err *writer_close(struct writer *writer)
{
	int64_t ignored;

	TRY(writer_flush(writer));
	TRY(meta_set(writer->db, "clean", 1));
	/* A reader in the middle of a report keeps the log; the mark is safe in it. */
	err_free(sql_pragma(writer->db, "wal_checkpoint(TRUNCATE)", &ignored));
	return NULL;
}

struct sink *writer_sink(struct writer *writer)
{
	return &writer->sink;
}

void writer_stats(const struct writer *writer, struct writer_stats *ret_stats)
{
	*ret_stats = writer->stats;
	ret_stats->pending_facts = batch_count(writer->batch);
	ret_stats->pending_bytes = batch_bytes(writer->batch);
}
