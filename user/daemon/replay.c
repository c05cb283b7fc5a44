// SPDX-License-Identifier: Apache-2.0
/*
 * The stream carries what the machine said then, MODULE records included, so live asks
 * for nothing. Explaining needs the files: each MODULE record makes us look for its path
 * here, and the build-id decides whether it is still the same file.
 */
#include "daemon/replay.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/mem.h"
#include "daemon/explain.h"
#include "daemon/hand.h"
#include "daemon/modules.h"
#include "daemon/run.h"
#include "daemon/stacks.h"
#include "event/stream.h"
#include "live/live.h"
#include "store/writer.h"

#define SETTLE_NS   120000000000ull /* how long to wait for the last answers */
#define PUMP_STACKS (STACKS_MAX_QUEUED / 2)
#define PAUSE_MS    2

struct replay {
	struct sink tap;
	const struct options *options;
	struct opener opener;
	struct job_source jobs;
	struct job_client *clients[JOB_FETCH + 1];
	struct stream_meta meta;
	struct stream_reader *reader;
	struct db *db;
	struct writer *writer;
	struct live *live;
	struct modules *modules;
	struct stacks *stacks;
	struct explain *explain;
	uint64_t run_id, last_ns;
};

static void tap_put(struct sink *sink, const struct fact *fact)
{
	struct replay *replay = (struct replay *)sink;

	explain_note(replay->explain, fact);
	sink_put(writer_sink(replay->writer), fact);
}

/* Only files of this host, as we ourselves may read them. */
static struct err *open_here(void *ctx, const struct open_request *request, int *ret_fd)
{
	struct open_request here = *request;

	(void)ctx;
	if (request->what != OPEN_ROOT_PATH && request->what != OPEN_DEBUG_PATH)
		return err_new(ERR_NOT_FOUND, "not there any more");
	here.pid = request->what == OPEN_ROOT_PATH ? (uint32_t)getpid() : 0;
	here.start_ns = 0;
	return hand_open(&here, ret_fd);
}

static struct job_client *client_of(void *ctx, enum job_class class)
{
	struct replay *replay = ctx;
	const struct config *config = &replay->options->config;
	struct job_options options = { .worker_path =
					       *config->worker ? config->worker : NULL };
	struct job_client **client = &replay->clients[class];

	if (*client && !job_alive(*client)) {
		job_free(take(*client));
		modules_worker_died(replay->modules, class);
	}
	if (!*client && (class != JOB_FETCH || *config->debuginfod_urls))
		err_free(job_spawn(class, &options, client));
	return *client;
}

static void pump(struct replay *replay)
{
	for (int class = 0; class <= JOB_FETCH; class ++)
		if (replay->clients[class] && job_alive(replay->clients[class]))
			job_pump(replay->clients[class]);
	modules_pump(replay->modules);
	stacks_pump(replay->stacks);
	explain_pump(replay->explain, clock_ns());
	poll(NULL, 0, PAUSE_MS);
}

static bool modules_wait(struct replay *replay)
{
	struct modules_stats stats;

	modules_stats(replay->modules, &stats);
	return stats.waiting > 0;
}

static size_t stacks_wait(struct replay *replay)
{
	struct stacks_stats stats;

	stacks_stats(replay->stacks, &stats);
	return stats.queued + stats.flying;
}

static void unwind(void *ctx, const struct live_tick *tick)
{
	struct replay *replay = ctx;

	stacks_unwind(replay->stacks, tick);
}

static void stack_loss(void *ctx, uint64_t time_ns, uint64_t lost)
{
	struct replay *replay = ctx;

	live_loss(replay->live, time_ns, ABI_TICK, LOSS_UNWIND, lost, 0);
}

/* modules announces what it identified; the stream has said so already. */
static void drop_event(void *ctx, struct event *event)
{
	(void)ctx;
	(void)event;
}

static void find_file(struct replay *replay, const struct event *event)
{
	const struct abi_module *module = &event->module;
	struct live_file file = { .key = module->module_id, .path = event->path };

	if (module->kind != ABI_MODULE_FILE || !module->build_id_bytes)
		return;
	file.build_id.size = (uint8_t)module->build_id_bytes;
	memcpy(file.build_id.bytes, module->build_id, module->build_id_bytes);
	modules_want(replay->modules, &file);
}

static struct err *feed_all(struct replay *replay)
{
	struct event event;
	bool end = false;

	for (;;) {
		TRY(stream_next(replay->reader, &event, &end));
		if (end)
			return NULL;
		if (event.head.kind == ABI_MODULE)
			find_file(replay, &event);
		live_feed(replay->live, &event);
		if (event.head.time_ns > replay->last_ns + LIVE_BUCKET_NS) {
			live_flush(replay->live, event.head.time_ns);
			TRY(writer_flush(replay->writer));
			replay->last_ns = event.head.time_ns;
		}
		while (modules_wait(replay) || stacks_wait(replay) > PUMP_STACKS)
			pump(replay);
	}
}

static struct err *open_all(struct replay *replay)
{
	const struct config *config = &replay->options->config;
	struct writer_config writer = { .analyser_version = EXPLAIN_ANALYSER };
	FILE *file = fopen(replay->options->replay, "re");

	if (!file)
		return err_errno(errno, "open %s", replay->options->replay);
	TRY(err_wrap(stream_open(file, &replay->meta, &replay->reader), "%s",
		     replay->options->replay));
	TRY(db_open(config->db, DB_WRITE, &replay->db));
	TRY(writer_new(replay->db, &writer, &replay->writer));
	replay->run_id = hash_bytes(&replay->meta, sizeof(replay->meta), realtime_ns());
	return NULL;
}

static void build(struct replay *replay)
{
	static const struct live_ops ops = { .unwind = unwind };
	struct live_config live = { .run_id = replay->run_id,
				    .boot_id = hash_text(replay->meta.boot_id, 0),
				    .realtime_offset_ns =
					    replay->meta.realtime_offset_ns };
	struct modules_config modules = {
		.opener = &replay->opener,
		.jobs = &replay->jobs,
		.sink = writer_sink(replay->writer),
		.feed = drop_event,
		.debuginfod_urls = replay->options->config.debuginfod_urls,
	};

	replay->live = live_new(&live, &replay->tap, &ops, replay);
	replay->modules = modules_new(&modules);

	struct stacks_config stacks = { .jobs = &replay->jobs,
					.modules = replay->modules,
					.sink = &replay->tap,
					.run_id = replay->run_id,
					.loss = stack_loss,
					.ctx = replay };
	struct explain_config explain = { .jobs = &replay->jobs,
					  .modules = replay->modules,
					  .sink = writer_sink(replay->writer) };

	replay->stacks = stacks_new(&stacks);
	replay->explain = explain_new(&explain);
}

static struct err *run(struct replay *replay)
{
	TRY(open_all(replay));
	build(replay);
	run_put(writer_sink(replay->writer), replay->run_id, &replay->meta, 0);
	TRY(options_ready(replay->options, replay->run_id));
	struct err *err = feed_all(replay);
	uint64_t give_up_ns = clock_ns() + SETTLE_NS;

	live_flush(replay->live, UINT64_MAX);
	while (stacks_wait(replay) && clock_ns() < give_up_ns)
		pump(replay);
	stacks_drain(replay->stacks);
	stacks_flush(replay->stacks);
	live_flush(replay->live, UINT64_MAX);
	run_put(writer_sink(replay->writer), replay->run_id, &replay->meta,
		replay->last_ns + (uint64_t)replay->meta.realtime_offset_ns);
	while (!explain_idle(replay->explain) && clock_ns() < give_up_ns)
		pump(replay);
	if (err)
		return err_wrap(err, "%s", replay->options->replay);
	log_info("%llu records of %s replayed into %s",
		 (unsigned long long)stream_count(replay->reader),
		 replay->options->replay, replay->options->config.db);
	return NULL;
}

static struct err *close_all(struct replay *replay)
{
	explain_free(replay->explain);
	stacks_free(replay->stacks);
	modules_free(replay->modules);
	live_free(replay->live);
	for (int class = 0; class <= JOB_FETCH; class ++)
		job_free(replay->clients[class]);
	struct err *err = replay->writer ? writer_close(replay->writer) : NULL;

	writer_free(replay->writer);
	db_close(replay->db);
	stream_reader_free(replay->reader);
	return err;
}

struct err *replay_run(const struct options *options)
{
	struct replay replay = { .tap = { .put = tap_put },
				 .options = options,
				 .opener = { .open = open_here } };

	replay.jobs = (struct job_source){ .client = client_of, .ctx = &replay };
	struct err *err = run(&replay);
	struct err *close_err = close_all(&replay);

	if (!err)
		return close_err;
	err_free(close_err);
	return err;
}
