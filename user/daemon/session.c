// SPDX-License-Identifier: Apache-2.0
/*
 * ring -> merge -> (recorder, live) -> facts -> store, with explain listening to the
 * facts that pass. What live lacks comes back through the same door: snapshot and
 * modules make events, which are recorded and fed like those of the kernel.
 */
#include "daemon/session.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"
#include "daemon/bindings.h"
#include "daemon/diagnosis.h"
#include "daemon/hooks.h"
#include "daemon/lost.h"
#include "daemon/modules.h"
#include "daemon/probes.h"
#include "daemon/run.h"
#include "daemon/select.h"
#include "daemon/sleepers.h"
#include "daemon/snapshot.h"
#include "daemon/stacks.h"
#include "event/merge.h"
#include "event/stream.h"
#include "live/live.h"
#include "model/command.h"
#include "probe/ring.h"
#include "probe/sums.h"

struct attached {
	char *target;
	uint64_t until_ns; /* 0: until detached */
};

struct session {
	struct sink
		tap; /* live's and the others' sink: explain listens, the store writes */
	struct session_config config;
	struct opener opener;
	struct target target;
	uint64_t run_id;
	struct stream_meta meta;
	char *sources, *kept_folder;
	struct probe_fds fds;
	struct ring *ring;
	struct merge *merge;
	struct live *live;
	struct snapshot *snapshot;
	struct modules *modules;
	struct stacks *stacks;
	struct explain *explain;
	struct diagnosis *diagnosis;
	struct probes *probes;	   /* NULL: the kernel has none */
	struct bindings *bindings; /* likewise */
	struct sleepers *sleepers; /* likewise */
	struct hooks hooks;
	struct stream_writer *recorder;
	struct abi_count counts[ABI_KINDS]; /* at the last second */
	VEC(struct attached) attached;
	struct lost lost; /* in this run, as far as it was put */
	struct map *met;  /* ids of the modules that this run has identified */
	uint64_t end_ns;  /* realtime, when sampling stopped */
	bool quiet, ended;
};

/* A module was identified, or its debug information was found (its path stands there). */
static void note_module(struct session *session, const struct fact_module *module)
{
	if (map_count(session->met) < MODULES_MAX)
		map_put(session->met, &module->module_id, NULL);
	if (session->explain && module->debug && module->debug[0] == '/')
		explain_debug_found(session->explain, module->module_id);
}

static void tap_put(struct sink *sink, const struct fact *fact)
{
	struct session *session = (struct session *)sink;

	if (session->explain)
		explain_note(session->explain, fact);
	lost_note(&session->lost, fact);
	if (fact->kind == FACT_MODULE)
		note_module(session, &fact->module);
	if (session->bindings)
		bindings_note(session->bindings, fact);
	sink_put(session->config.store, fact);
}

/* Records on their way to live. */

static void record(struct session *session, const void *data, size_t bytes)
{
	if (!session->recorder)
		return;
	struct err *err = stream_write(session->recorder, data, bytes);

	if (!err)
		return;
	log_error("recording: %s, no more is recorded", err->text);
	err_free(err);
	stream_close(take(session->recorder));
}

/* Of the hits by which probes are calibrated, on ourselves. */
static bool is_calibration(const struct event *event)
{
	return event->head.kind == ABI_RESOURCE &&
	       event->resource.slot == ABI_CALIBRATE_SLOT;
}

static void deliver(void *ctx, const void *data, size_t bytes)
{
	struct session *session = ctx;
	struct event event;
	struct err *err = event_decode(data, bytes, &event);

	if (err) {
		live_loss(session->live, clock_ns(), ABI_NONE, LOSS_FORMAT, 1, 1);
		err_free(err);
		return;
	}
	if (is_calibration(&event))
		return;
	record(session, data, bytes);
	live_feed(session->live, &event);
}

static void feed(void *ctx, struct event *event)
{
	struct session *session = ctx;

	if (session->recorder) {
		CLEANUP(str_fini) struct str bytes = { 0 };

		event_encode(event, &bytes);
		record(session, bytes.data, bytes.length);
	}
	live_feed(session->live, event);
}

/* What live asks for. */

static void want_process(void *ctx, uint32_t pid, uint64_t start_ns)
{
	struct session *session = ctx;

	err_free(snapshot_process(session->snapshot, pid, start_ns, NULL));
}

static void want_module(void *ctx, const struct live_file *file)
{
	struct session *session = ctx;

	modules_want(session->modules, file);
}

static void unwind(void *ctx, const struct live_tick *tick)
{
	struct session *session = ctx;

	stacks_unwind(session->stacks, tick);
}

static const char *service_of(void *ctx, uint32_t pid, uint64_t cgroup_id)
{
	struct session *session = ctx;

	return snapshot_service(session->snapshot, pid, cgroup_id);
}

static void stack_loss(void *ctx, uint64_t time_ns, uint64_t lost)
{
	struct session *session = ctx;

	live_loss(session->live, time_ns, ABI_TICK, LOSS_UNWIND, lost, 0);
}

static void fp_ok(void *ctx, uint32_t pid, uint64_t start_ns)
{
	struct session *session = ctx;

	(void)start_ns;
	err_free(ring_set_fp_ok(session->ring, pid, true));
}

static void slept(void *ctx, const struct stacks_sleep *sleep)
{
	struct session *session = ctx;

	if (session->sleepers)
		sleepers_place(session->sleepers, sleep);
}

static bool is_eager(void *ctx, const char *path)
{
	struct session *session = ctx;

	return session->bindings && bindings_wants(session->bindings, path);
}

static void file_opened(void *ctx, uint64_t module_id, int fd)
{
	struct session *session = ctx;

	if (session->bindings)
		bindings_file(session->bindings, module_id, fd);
}

/* Is it the inode that has the probes? */
static void mapped_again(void *ctx, const struct live_file *file, uint64_t module_id)
{
	struct session *session = ctx;
	struct open_request request = { .what = OPEN_MAP_FILE,
					.pid = file->pid,
					.start_ns = file->start_ns,
					.start = file->addr,
					.end = file->addr + file->length };
	int fd;

	if (!session->bindings || !bindings_has(session->bindings, module_id))
		return;
	struct err *err = opener_open(&session->opener, &request, &fd);

	if (!err) {
		bindings_file(session->bindings, module_id, fd);
		close(fd);
	}
	err_free(err); /* it has gone already */
}

static const char *framework_of(void *ctx, uint32_t slot)
{
	struct session *session = ctx;

	return session->probes ? probes_framework(session->probes, slot) : "";
}

static void observe(void *ctx, const struct event *event)
{
	struct session *session = ctx;

	diagnosis_observe(session->diagnosis, event);
}

/* Opening. */

static bool wants_specs(const struct config *config)
{
	return config->specs && bindings_any();
}

static struct err *start_probes(struct session *session)
{
	const struct config *config = session->config.config;
	struct probe_config probe = {
		.access_hz = (uint32_t)config->rate_hz,
		.tick_hz = (uint32_t)config->tick_hz,
		.no_ticks = config->tick_hz == 0,
		.no_probes = !wants_specs(config),
		.no_walk = !config->walk_hz,
		.no_messages = !config->join,
		.ring_bytes = config->ring_bytes,
		.stack_bytes = (uint32_t)config->stack_bytes,
		.self_pids = { (uint32_t)getpid(), (uint32_t)getppid() },
		.self_count = 2,
	};

	TRY(sources_parse(config->sources, &probe.sources));
	TRY(broker_start(session->config.broker, &probe, &session->fds,
			 &session->sources));
	return ring_open(&session->fds, &session->ring);
}

static struct err *start_recorder(struct session *session)
{
	if (!session->config.record)
		return NULL;
	int fd = open(session->config.record, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC,
		      0640);

	if (fd < 0)
		return err_errno(errno, "create %s", session->config.record);
	return err_wrap(stream_create(fd, &session->meta, &session->recorder), "%s",
			session->config.record);
}

static void build_live(struct session *session)
{
	static const struct live_ops ops = { .want_process = want_process,
					     .want_module = want_module,
					     .unwind = unwind,
					     .service = service_of,
					     .eager = is_eager,
					     .mapped = mapped_again,
					     .framework = framework_of,
					     .observe = observe };
	struct live_config config = {
		.run_id = session->run_id,
		.boot_id = hash_text(session->meta.boot_id, 0),
		.realtime_offset_ns = session->meta.realtime_offset_ns,
		.hash_names = session->config.config->hash_names,
		.names = session->config.config->names,
		.spans_wanted = session->config.config->spans_hz,
	};
	struct merge_config merge = { .window_ns = SESSION_WINDOW_NS,
				      .max_records = SESSION_MAX_WAITING,
				      .max_bytes = SESSION_MAX_BYTES };

	struct diagnosis_config diagnosis = { session->run_id,
					      session->meta.realtime_offset_ns,
					      session->config.store };

	session->diagnosis = diagnosis_new(&diagnosis);
	session->live = live_new(&config, &session->tap, &ops, session);
	session->merge = merge_new(&merge, deliver, session);
}

static void build_explainers(struct session *session)
{
	const struct job_source *jobs = workers_source(session->config.workers);
	CLEANUP(free) char *cgroups = snapshot_cgroup_root();
	struct snapshot_config snapshot = { .opener = &session->opener,
					    .feed = feed,
					    .ctx = session,
					    .cgroup_root = cgroups };
	struct modules_config modules = {
		.opener = &session->opener,
		.jobs = jobs,
		.sink = &session->tap,
		.feed = feed,
		.opened = file_opened,
		.ctx = session,
		.debuginfod_urls = session->config.config->debuginfod_urls,
		.kept_bytes = session->config.config->cache_bytes,
	};

	session->kept_folder = modules_kept_folder(session->config.config);
	modules.kept_folder = session->kept_folder;
	session->snapshot = snapshot_new(&snapshot);
	session->modules = modules_new(&modules);

	struct stacks_config stacks = { .jobs = jobs,
					.modules = session->modules,
					.sink = &session->tap,
					.run_id = session->run_id,
					.loss = stack_loss,
					.fp_ok = fp_ok,
					.slept = slept,
					.ctx = session };
	struct explain_config explain = { .jobs = jobs,
					  .modules = session->modules,
					  .sink = session->config.store };

	session->stacks = stacks_new(&stacks);
	if (session->config.explain)
		session->explain = explain_new(&explain);
}

/* Without them all the rest works. */
static void build_probes(struct session *session)
{
	const struct config *config = session->config.config;
	struct probes_config probes = { .broker = session->config.broker,
					.fds = &session->fds,
					.budget = (double)config->budget_ppm / 1e6,
					.key = hash_text(config->fleet_key, 0),
					.sink = session->config.store,
					.run_id = session->run_id,
					.no_streams = !config->join,
					.diagnosis = session->diagnosis };

	if (!wants_specs(session->config.config))
		return;
	struct err *err = probes_new(&probes, &session->probes);

	if (err) {
		log_warn("%s, no application is probed", err->text);
		err_free(err);
		return;
	}
	struct bindings_config bindings = {
		.jobs = workers_source(session->config.workers),
		.modules = session->modules,
		.probes = session->probes,
	};

	session->bindings = bindings_new(&bindings);
}

static void build_sleepers(struct session *session)
{
	struct sleepers_config config = { .broker = session->config.broker,
					  .hz = (uint32_t)session->config.config->walk_hz,
					  .probes = session->probes,
					  .diagnosis = session->diagnosis };

	session->sleepers = config.hz ? sleepers_new(&config) : NULL;
}

static uint32_t filter_of(const struct session *session)
{
	return session->target.kind == TARGET_ALL ? ABI_FILTER_ALL
						  : ABI_FILTER_PIDS | ABI_FILTER_CGROUP;
}

static struct err *begin(struct session *session)
{
	TRY(target_parse(session->config.config->target, &session->target));
	TRY(start_probes(session));
	run_describe(&session->meta, session->config.config->target, session->sources);
	session->run_id =
		hash_bytes(&session->meta, sizeof(session->meta), (uint64_t)getpid());
	TRY(start_recorder(session));
	build_live(session);
	build_explainers(session);
	build_probes(session);
	build_sleepers(session);
	run_put(session->config.store, session->run_id, &session->meta, 0);

	struct err *err = modules_kernel(session->modules);

	if (err)
		log_warn("kernel symbols: %s, kernel code stays unnamed", err->text);
	err_free(err);
	/* Records of what starts meanwhile wait in the ring until the snapshot is fed. */
	TRY(ring_set_filter(session->ring, filter_of(session)));
	return select_add(session->ring, session->snapshot, &session->target);
}

struct err *session_open(const struct session_config *config,
			 struct session **ret_session)
{
	struct session *session = mem_alloc(sizeof(*session));

	session->tap.put = tap_put;
	session->met = map_new(sizeof(uint64_t), 1);
	session->config = *config;
	session->opener = broker_opener(config->broker);
	struct err *err = begin(session);

	if (err) {
		session_free(session);
		return err;
	}
	*ret_session = session;
	return NULL;
}

void session_free(struct session *session)
{
	if (!session)
		return;
	if (session->live)
		session_end(session);
	explain_free(session->explain);
	session->explain = NULL;
	stacks_free(session->stacks);
	bindings_free(session->bindings);
	session->bindings = NULL;
	sleepers_free(take(session->sleepers));
	probes_free(session->probes);
	session->probes = NULL;
	modules_free(session->modules);
	free(session->kept_folder);
	snapshot_free(session->snapshot);
	merge_free(session->merge);
	live_free(session->live);
	diagnosis_free(session->diagnosis);
	stream_close(session->recorder);
	ring_free(session->ring);
	probe_fds_close(&session->fds);
	if (!session->quiet)
		err_free(broker_stop(session->config.broker));
	vec_each(&session->attached, attachment)
		free(attachment->target);
	vec_fini(&session->attached);
	map_free(session->met);
	target_fini(&session->target);
	free(session->sources);
	free(session);
}

uint64_t session_run_id(const struct session *session)
{
	return session->run_id;
}

int session_ring_fd(const struct session *session)
{
	return ring_fd(session->ring);
}

/* Running. */

static void into_merge(void *ctx, const void *data, size_t bytes)
{
	struct session *session = ctx;

	merge_put(session->merge, data, bytes);
}

static void step_probes(struct session *session)
{
	const struct config *config = session->config.config;
	struct abi_count counts[ABI_KINDS];

	if (!session->probes)
		return;
	ring_counts(session->ring, counts);
	struct hooks_step step =
		hooks_step(&session->hooks, counts, config->tick_hz, config->rate_hz);

	probes_step(session->probes, &step);
}

struct err *session_drain(struct session *session)
{
	bool more = true;

	if (session->quiet)
		return NULL;
	if (session->sleepers)
		sleepers_step(session->sleepers);
	/* The time is read first: what is emitted later cannot be older than it. */
	uint64_t now_ns = clock_ns();

	for (int round = 0; more && round < 8; round++)
		TRY(ring_drain(session->ring, into_merge, session, &more));
	merge_run(session->merge, now_ns);
	step_probes(session);
	if (session->bindings)
		bindings_pump(session->bindings);
	if (session->probes || session->sleepers)
		diagnosis_step(session->diagnosis, now_ns);
	stacks_pump(session->stacks);
	workers_pump(session->config.workers);
	return NULL;
}

static void count_losses(struct session *session, uint64_t now_ns)
{
	struct abi_count counts[ABI_KINDS];

	ring_counts(session->ring, counts);
	for (uint32_t kind = 0; kind < ABI_KINDS; kind++) {
		struct abi_count *old = &session->counts[kind];
		uint64_t seen = counts[kind].seen - old->seen;

		if (seen)
			live_loss(session->live, now_ns, kind, LOSS_RING,
				  counts[kind].dropped - old->dropped, seen);
		*old = counts[kind];
	}
}

static void sum_into_merge(void *ctx, const struct abi_resource *record)
{
	into_merge(ctx, record, sizeof(*record));
}

/* What was added up in the kernel since the last time. */
static void take_sums(struct session *session, uint64_t now_ns)
{
	if (!session->probes)
		return;
	struct err *err = sums_take(&session->fds, now_ns, sum_into_merge, session);

	if (err)
		log_warn("%s", err->text);
	err_free(err);
}

static void count_gaps(struct session *session, uint64_t now_ns)
{
	if (!session->probes)
		return;
	struct probes_gaps gaps = probes_gaps(session->probes);

	if (gaps.unread)
		live_loss(session->live, now_ns, ABI_SPAN, LOSS_UNREAD, gaps.unread, 0);
	if (gaps.untracked)
		live_loss(session->live, now_ns, ABI_SPAN, LOSS_CONTEXT, gaps.untracked,
			  0);
}

static void drop_expired(struct session *session, uint64_t now_ns)
{
	for (size_t i = session->attached.count; i-- > 0;) {
		struct attached *attachment = &session->attached.data[i];

		if (!attachment->until_ns || attachment->until_ns > now_ns)
			continue;
		CLEANUP(free) char *target = mem_strdup(attachment->target);

		err_free(session_detach(session, target));
	}
}

static void pump_workers(struct session *session)
{
	modules_pump(session->modules);
	stacks_pump(session->stacks);
	if (session->explain)
		explain_pump(session->explain, clock_ns());
	workers_pump(session->config.workers);
}

struct err *session_flush(struct session *session)
{
	uint64_t now_ns = clock_ns();

	if (!session->quiet) {
		take_sums(session, now_ns);
		count_losses(session, now_ns);
		count_gaps(session, now_ns);
		live_flush(session->live, now_ns);
		drop_expired(session, now_ns);
	}
	stacks_flush(session->stacks);
	pump_workers(session);
	return session->recorder ? stream_flush(session->recorder) : NULL;
}

struct err *session_attach(struct session *session, const char *target, uint64_t for_ns)
{
	struct target parsed;

	if (session->attached.count >= SESSION_MAX_ATTACHED)
		return err_new(ERR_LIMIT, "%d targets are attached already",
			       SESSION_MAX_ATTACHED);
	TRY(target_parse(target, &parsed));
	struct err *err = select_add(session->ring, session->snapshot, &parsed);

	target_fini(&parsed);
	if (err)
		return err;
	vec_push(&session->attached,
		 ((struct attached){ .target = mem_strdup(target),
				     .until_ns = for_ns ? clock_ns() + for_ns : 0 }));
	return NULL;
}

struct err *session_detach(struct session *session, const char *target)
{
	struct target parsed;

	for (size_t i = 0; i < session->attached.count; i++) {
		struct attached *attachment = &session->attached.data[i];

		if (strcmp(attachment->target, target))
			continue;
		TRY(target_parse(target, &parsed));
		struct err *err = select_del(session->ring, &parsed);

		target_fini(&parsed);
		free(attachment->target);
		*attachment = session->attached.data[--session->attached.count];
		return err;
	}
	return err_new(ERR_NOT_FOUND, "%s is not attached", target);
}

void session_want(struct session *session, uint64_t module_id, uint64_t va, bool skid,
		  bool answer)
{
	if (session->explain && map_find(session->met, &module_id))
		explain_want(session->explain, module_id, va, skid, answer);
}

void session_reset_debug(struct session *session)
{
	modules_reset_debug(session->modules);
}

bool session_target_alive(const struct session *session)
{
	return session->target.kind != TARGET_PID ||
	       !kill((pid_t)session->target.pid, 0) || errno == EPERM;
}

void session_worker_died(struct session *session, enum job_class class)
{
	modules_worker_died(session->modules, class);
}

/* Ending. */

struct err *session_quiet(struct session *session)
{
	if (session->quiet)
		return NULL;
	TRY(ring_set_filter(session->ring, 0));
	take_sums(session, clock_ns());
	take_sums(session, clock_ns());
	bindings_free(take(session->bindings));
	sleepers_free(take(session->sleepers));
	probes_free(take(session->probes));
	TRY(broker_stop(session->config.broker));
	struct err *err = session_drain(session);

	merge_flush(session->merge);
	count_losses(session, clock_ns());
	session->quiet = true;
	session->end_ns = realtime_ns();
	live_flush(session->live, clock_ns() + 2 * LIVE_BUCKET_NS);
	pump_workers(session);
	stacks_flush(session->stacks);
	return err;
}

bool session_settled(const struct session *session)
{
	struct modules_stats modules;
	struct stacks_stats stacks;

	modules_stats(session->modules, &modules);
	stacks_stats(session->stacks, &stacks);
	return !modules.waiting && !stacks.queued && !stacks.flying &&
	       (!session->explain || explain_idle(session->explain));
}

void session_end(struct session *session)
{
	if (session->ended)
		return;
	session->ended = true;
	err_free(session_quiet(session));
	stacks_drain(session->stacks);
	stacks_flush(session->stacks);
	/* Losses counted while the last stacks were unwound. */
	live_flush(session->live, clock_ns() + 2 * LIVE_BUCKET_NS);
	run_put(session->config.store, session->run_id, &session->meta,
		session->end_ns ? session->end_ns : realtime_ns());
}

struct explain_stats session_explain_stats(const struct session *session)
{
	struct explain_stats stats = { 0 };

	if (session->explain)
		explain_stats(session->explain, &stats);
	return stats;
}

void session_status(struct session *session, struct str *reply)
{
	struct live_stats live;
	struct modules_stats modules;
	struct explain_stats explain = session_explain_stats(session);
	struct merge_stats merge;
	struct abi_count counts[ABI_KINDS];
	char run[24];

	live_stats(session->live, &live);
	modules_stats(session->modules, &modules);
	merge_stats(session->merge, &merge);
	snprintf(run, sizeof(run), "0x%016llx", (unsigned long long)session->run_id);
	reply_ok(reply);
	command_add(reply, "what", "run");
	command_add(reply, "run", run);
	command_add(reply, "target", session->meta.target);
	command_add(reply, "sources", session->meta.sources);
	command_add_number(reply, "processes", live.processes);
	command_add_number(reply, "modules", live.modules);
	command_add_number(reply, "events", live.events);
	command_add_number(reply, "access_samples", live.access_samples);
	command_add_number(reply, "access_unmapped", live.access_unmapped);
	command_add_number(reply, "reordered", merge.forced);
	command_add_number(reply, "late", merge.late);
	command_add_number(reply, "without_debug", modules.without_debug);
	command_add_number(reply, "answers", explain.answers);
	command_add_number(reply, "waiting", explain.waiting + explain.flying);
	command_end(reply);
	if (session->probes)
		probes_status(session->probes, reply);
	ring_counts(session->ring, counts);
	lost_status(&session->lost, counts, reply);
	vec_each(&session->attached, attachment) {
		reply_ok(reply);
		command_add(reply, "what", "attached");
		command_add(reply, "target", attachment->target);
		command_end(reply);
	}
}
