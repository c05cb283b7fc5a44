// SPDX-License-Identifier: Apache-2.0
/*
 * The stream carries what the machine said then, MODULE records included, so live asks
 * for nothing. Explaining needs the files: each MODULE record makes us look for its path
 * here, and the build-id decides whether it is still the same file.
 *
 * An imported stream has no MODULE records of files: live asks for them as in a live run,
 * and a file that is not here becomes a module all the same, told by its build-id or path,
 * so that its samples are counted.
 */
#include "daemon/replay.h"

#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/map.h"
#include "core/mem.h"
#include "daemon/explain.h"
#include "daemon/hand.h"
#include "daemon/modules.h"
#include "daemon/run.h"
#include "daemon/stacks.h"
#include "event/stream.h"
#include "live/live.h"
#include "store/writer.h"

#define SETTLE_NS    120000000000ull /* how long to wait for the last answers */
#define PUMP_STACKS  (STACKS_MAX_QUEUED / 2)
#define PAUSE_MS     2
#define MISSING_SEED 11 /* ids of files without a build-id that are not here */

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
	uint64_t run_id, last_ns, now_ns;
	struct map *missing; /* key of a mapped file -> struct missing */
};

static void tap_put(struct sink *sink, const struct fact *fact)
{
	struct replay *replay = (struct replay *)sink;

	explain_note(replay->explain, fact);
	sink_put(writer_sink(replay->writer), fact);
}

/* A symbolic link in the folder is followed as the machine of the recording had it. */
static struct err *open_in(const char *folder, const char *path, int *ret_fd)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK,
				.resolve = RESOLVE_IN_ROOT };
	CLEANUP(close) int root = open(folder, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (root < 0)
		return err_errno(errno, "open %s", folder);
	*ret_fd = (int)syscall(SYS_openat2, root, path, &how, sizeof(how));
	return *ret_fd < 0 ? err_errno(errno, "open %s in %s", path, folder) : NULL;
}

/* Only files of this host, as we ourselves may read them. */
static struct err *open_here(void *ctx, const struct open_request *request, int *ret_fd)
{
	struct replay *replay = ctx;
	struct open_request here = *request;
	const char *symfs = replay->options->symfs;

	/* Names of the running kernel serve a recording of the same one. */
	if (request->what == OPEN_KALLSYMS || request->what == OPEN_KERNEL_NOTES ||
	    request->what == OPEN_MODULES || request->what == OPEN_KMOD_NOTES)
		return hand_open(&here, ret_fd);
	if (symfs && request->what == OPEN_ROOT_PATH)
		return open_in(symfs, request->path, ret_fd);
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

/* Files that are not here. */

struct missing {
	struct build_id build_id;
	char *path;
	enum module_kind kind; /* 0: no file at all, "//anon" */
};

static void missing_free(struct map *all)
{
	struct missing *missing;
	size_t pos = 0;

	while ((missing = map_next(all, &pos, NULL)))
		free(missing->path);
	map_free(all);
}

static enum module_kind kind_of_path(const char *path)
{
	if (!strcmp(path, "[vdso]"))
		return MODULE_VDSO;
	return path[0] == '/' && path[1] != '/' ? MODULE_FILE : 0;
}

static void missing_note(struct replay *replay, const struct live_file *file)
{
	bool is_new;
	struct missing *missing = map_put(replay->missing, &file->key, &is_new);

	if (is_new)
		*missing = (struct missing){ file->build_id, mem_strdup(file->path),
					     kind_of_path(file->path) };
}

/* As a module whose addresses are file offsets: nothing more is known of it. */
static void missing_feed(struct replay *replay, uint64_t key)
{
	const struct missing *missing = map_find(replay->missing, &key);
	struct event event = { .path = missing ? missing->path : "" };
	struct fact fact = { .kind = FACT_MODULE };

	event.module = (struct abi_module){
		.head = { .kind = ABI_MODULE, .time_ns = replay->now_ns },
		.key = key,
		.kind = missing && missing->kind == MODULE_VDSO ? ABI_MODULE_VDSO
								: ABI_MODULE_FILE,
		.path_bytes = (uint32_t)strlen(event.path) + 1,
	};
	if (missing && missing->kind) {
		uint64_t id = module_id_of(&missing->build_id);

		event.module.module_id = id ? id : hash_text(missing->path, MISSING_SEED);
		event.module.build_id_bytes = missing->build_id.size;
		memcpy(event.module.build_id, missing->build_id.bytes, BUILD_ID_MAX);
		event.module.segment_count = 1;
		event.segments[0].file_bytes = INT64_MAX;
		fact.module = (struct fact_module){ .module_id = event.module.module_id,
						    .build_id = missing->build_id,
						    .kind = missing->kind,
						    .path = missing->path,
						    .debug = "" };
		sink_put(&replay->tap, &fact);
	}
	live_feed(replay->live, &event);
}

/* modules announces what it identified; most streams have said so already. */
static void on_module(void *ctx, struct event *event)
{
	struct replay *replay = ctx;
	const struct abi_module *module = &event->module;

	if (!replay->meta.is_imported || module->kind == ABI_MODULE_KERNEL ||
	    module->kind == ABI_MODULE_KMOD)
		return;
	event->head.time_ns = replay->now_ns;
	if (module->module_id)
		live_feed(replay->live, event);
	else
		missing_feed(replay, module->key);
}

static void want_module(void *ctx, const struct live_file *file)
{
	struct replay *replay = ctx;

	missing_note(replay, file);
	modules_want(replay->modules, file);
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
		replay->now_ns = event.head.time_ns;
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
	static const struct live_ops recorded = { .unwind = unwind };
	static const struct live_ops imported = { .unwind = unwind,
						  .want_module = want_module };
	struct live_config live = { .run_id = replay->run_id,
				    .boot_id = hash_text(replay->meta.boot_id, 0),
				    .realtime_offset_ns = replay->meta.realtime_offset_ns,
				    .hash_names = replay->options->config.hash_names,
				    .names = replay->options->config.names,
				    .spans_wanted = replay->options->config.spans_hz };
	struct modules_config modules = {
		.opener = &replay->opener,
		.jobs = &replay->jobs,
		.sink = writer_sink(replay->writer),
		.feed = on_module,
		.ctx = replay,
		.debuginfod_urls = replay->options->config.debuginfod_urls,
	};

	replay->live = live_new(&live, &replay->tap,
				replay->meta.is_imported ? &imported : &recorded, replay);
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

	/* Only to know their names; the stream says where they were. */
	err_free(modules_kernel(replay->modules));
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
	missing_free(replay->missing);
	return err;
}

struct err *replay_run(const struct options *options)
{
	struct replay replay = { .tap = { .put = tap_put },
				 .options = options,
				 .opener = { .open = open_here } };

	replay.opener.ctx = &replay;
	replay.missing = map_new(sizeof(uint64_t), sizeof(struct missing));
	replay.jobs = (struct job_source){ .client = client_of, .ctx = &replay };
	struct err *err = run(&replay);
	struct err *close_err = close_all(&replay);

	if (!err)
		return close_err;
	err_free(close_err);
	return err;
}
