// SPDX-License-Identifier: Apache-2.0
/*
 * Timers drive everything: every 200 ms the rings are drained, every 600 ms facts are
 * flushed and workers asked, every second the store is rolled up and the watchdog fed. Nothing blocks
 * but one round trip to the broker at a time and one SQLite transaction a second.
 */
#include "daemon/daemon.h"

#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <systemd/sd-daemon.h>
#include <unistd.h>

#include "core/file.h"
#include "core/log.h"
#include "core/loop.h"
#include "core/mem.h"
#include "daemon/commands.h"
#include "daemon/control.h"
#include "daemon/daemon_impl.h"
#include "store/jobs.h"

#define SECOND_NS      1000000000ull
#define RETAIN_EVERY_S 5
#define RETAIN_NS      100000000ull /* of each five seconds */
#define LOG_AGAIN_NS   60000000000ull
#define CATCH_UP_NS    10000000000ull	/* after the start: the modules are known then */
#define CATCH_UP_EACH  3600000000000ull /* and how often afterwards */
#define CATCH_UP_ROOM  512

/* Log an error of the running daemon: the first of its kind, then once a minute. */
static void complain(struct daemon *daemon, const char *what, struct err *err)
{
	uint64_t now_ns = clock_ns();

	if (!err)
		return;
	if (now_ns - daemon->complained_ns > LOG_AGAIN_NS || !daemon->complained_ns) {
		log_error("%s: %s", what, err->text);
		daemon->complained_ns = now_ns;
	}
	err_free(err);
}

static struct err *ring_ready(void *ctx, int fd, uint32_t events)
{
	struct daemon *daemon = ctx;

	(void)fd;
	(void)events;
	complain(daemon, "reading samples", session_drain(daemon->session));
	return NULL;
}

struct err *daemon_open_session(struct daemon *daemon)
{
	struct session_config config = {
		.config = &daemon->options->config,
		.broker = daemon->broker,
		.workers = daemon->workers,
		.store = writer_sink(daemon->writer),
		.record = daemon->options->record,
		.explain = true,
	};

	TRY(session_open(&config, &daemon->session));
	TRY(loop_add_fd(daemon->loop, session_ring_fd(daemon->session), EPOLLIN,
			ring_ready, daemon));
	return NULL;
}

static void close_session(struct daemon *daemon)
{
	if (!daemon->session)
		return;
	loop_del_fd(daemon->loop, session_ring_fd(daemon->session));
	session_free(take(daemon->session));
}

static void worker_died(void *ctx, enum job_class class)
{
	static const char *const names[] = { "resolve", "analyze", "fetch" };
	struct daemon *daemon = ctx;

	log_warn("worker %s ended, its jobs are tried again", names[class]);
	if (daemon->session)
		session_worker_died(daemon->session, class);
}

/* The store. */

static struct err *open_store(struct daemon *daemon)
{
	const struct config *config = &daemon->options->config;
	struct writer_config writer = { .analyser_version = EXPLAIN_ANALYSER };
	struct retain_config retain = {
		.keep_ns = { config->keep_1s_ns, config->keep_10s_ns, config->keep_1m_ns,
			     config->keep_1h_ns },
		.quota_bytes = config->quota_bytes,
	};

	TRY(db_open(config->db, DB_WRITE, &daemon->db));
	TRY(writer_new(daemon->db, &writer, &daemon->writer));
	return retain_new(daemon->db, &retain, &daemon->retain);
}

/* A disk without room keeps the facts waiting; make some and try again at once. */
static void store_flush(struct daemon *daemon)
{
	struct err *err = writer_flush(daemon->writer);

	if (err && err->code == ERR_LIMIT) {
		complain(daemon, "store", err);
		err = retain_make_room(daemon->retain, realtime_ns());
		if (!err)
			err = writer_flush(daemon->writer);
	}
	complain(daemon, "store", err);
}

/* Timers. */

static struct err *on_drain(void *ctx, uint64_t expirations)
{
	struct daemon *daemon = ctx;

	(void)expirations;
	if (daemon->session)
		complain(daemon, "reading samples", session_drain(daemon->session));
	return NULL;
}

static struct err *on_flush(void *ctx, uint64_t expirations)
{
	struct daemon *daemon = ctx;

	(void)expirations;
	if (daemon->session)
		complain(daemon, "session", session_flush(daemon->session));
	store_flush(daemon);
	return NULL;
}

/* What earlier runs sampled and could not explain, a batch per second. */
static struct err *catch_up(struct daemon *daemon)
{
	struct jobs_site sites[CATCH_UP_ROOM];
	size_t count = 0;
	bool done = false;

	if (!daemon->jobs && clock_ns() < daemon->catch_up_ns)
		return NULL;
	if (!daemon->jobs)
		TRY(jobs_new(daemon->db, EXPLAIN_ANALYSER, &daemon->jobs));
	TRY(jobs_step(daemon->jobs, sites, CATCH_UP_ROOM, &count, &done));
	for (size_t i = 0; i < count; i++)
		session_want(daemon->session, sites[i].module_id, sites[i].va,
			     sites[i].skid, sites[i].want_answer);
	if (done) {
		jobs_free(take(daemon->jobs));
		daemon->catch_up_ns = clock_ns() + CATCH_UP_EACH;
	}
	return NULL;
}

static void check_end(struct daemon *daemon)
{
	uint64_t now_ns = clock_ns();

	if (!daemon->options->oneshot || daemon->ending)
		return;
	if ((daemon->end_ns && now_ns >= daemon->end_ns) ||
	    !session_target_alive(daemon->session))
		daemon_end(daemon);
}

static struct err *on_second(void *ctx, uint64_t expirations)
{
	struct daemon *daemon = ctx;

	(void)expirations;
	if (daemon->session) {
		complain(daemon, "store", catch_up(daemon));
		check_end(daemon);
	}
	if (++daemon->seconds % RETAIN_EVERY_S == 0)
		complain(daemon, "store",
			 retain_step(daemon->retain, realtime_ns(), RETAIN_NS, NULL));
	sd_notify(0, "WATCHDOG=1");
	return NULL;
}

/* Finer than a second, so that `--for 1500ms` means it and answers end the wait. */
static struct err *on_settle(void *ctx, uint64_t expirations)
{
	struct daemon *daemon = ctx;

	(void)expirations;
	if (!daemon->ending) {
		if (daemon->end_ns && clock_ns() >= daemon->end_ns)
			daemon_end(daemon);
		return NULL;
	}
	if (!daemon->session || session_settled(daemon->session) ||
	    clock_ns() >= daemon->give_up_ns)
		loop_stop(daemon->loop);
	else
		complain(daemon, "session", session_flush(daemon->session));
	return NULL;
}

/* Signals. */

void daemon_end(struct daemon *daemon)
{
	if (daemon->ending) {
		loop_stop(daemon->loop);
		return;
	}
	daemon->ending = true;
	daemon->give_up_ns = clock_ns() + DAEMON_EXPLAIN_NS;
	sd_notify(0, "STOPPING=1");
	if (daemon->session)
		complain(daemon, "session", session_quiet(daemon->session));
	if (!daemon->options->oneshot || !daemon->session)
		loop_stop(daemon->loop);
}

static struct err *on_term(void *ctx, int signal)
{
	(void)signal;
	daemon_end(ctx);
	return NULL;
}

static struct err *on_hup(void *ctx, int signal)
{
	(void)signal;
	err_free(daemon_reload(ctx));
	return NULL;
}

static struct err *on_broker(void *ctx, int fd, uint32_t events)
{
	struct daemon *daemon = ctx;
	char byte;

	(void)events;
	if (read(fd, &byte, 1) != 1) {
		log_error("the broker is gone, flushing and ending");
		loop_del_fd(daemon->loop, fd);
		daemon->ending = true;
		loop_stop(daemon->loop);
		return NULL;
	}
	return byte == BROKER_HUP ? on_hup(daemon, SIGHUP) : on_term(daemon, SIGTERM);
}

/* Settings that a session is made of: when one changes, the next session has it. */
static bool needs_session(const struct config *old, const struct config *new)
{
	return strcmp(old->target, new->target) || strcmp(old->sources, new->sources) ||
	       old->specs != new->specs || old->join != new->join ||
	       old->hash_names != new->hash_names || old->spans_hz != new->spans_hz ||
	       old->names != new->names || old->walk_hz != new->walk_hz ||
	       old->rate_hz != new->rate_hz || old->tick_hz != new->tick_hz ||
	       old->ring_bytes != new->ring_bytes ||
	       old->stack_bytes != new->stack_bytes ||
	       old->budget_ppm != new->budget_ppm ||
	       strcmp(old->fleet_key, new->fleet_key) ||
	       strcmp(old->debuginfod_urls, new->debuginfod_urls);
}

static void warn_fixed(const struct config *old, const struct config *new)
{
	if (strcmp(old->db, new->db) || strcmp(old->socket, new->socket) ||
	    strcmp(old->user, new->user) || strcmp(old->worker, new->worker))
		log_warn("db, socket, user and worker change at the next start only");
}

static struct err *apply_settings(struct daemon *daemon, struct options *fresh)
{
	struct config old = daemon->options->config;
	bool renew = needs_session(&old, &fresh->config);

	warn_fixed(&old, &fresh->config);
	daemon->options->config = fresh->config;
	fresh->config = old; /* freed by the caller */
	log_set_level((enum log_level)log_level_parse(daemon->options->config.log_level));
	workers_allow_fetch(daemon->workers, *daemon->options->config.debuginfod_urls);
	retain_free(take(daemon->retain));

	const struct config *config = &daemon->options->config;
	struct retain_config retain = {
		.keep_ns = { config->keep_1s_ns, config->keep_10s_ns, config->keep_1m_ns,
			     config->keep_1h_ns },
		.quota_bytes = config->quota_bytes,
	};

	TRY(retain_new(daemon->db, &retain, &daemon->retain));
	if (!renew && daemon->session) {
		session_reset_debug(daemon->session);
		return NULL;
	}
	close_session(daemon);
	return daemon_open_session(daemon);
}

struct err *daemon_reload(struct daemon *daemon)
{
	struct options fresh;

	sd_notifyf(0, "RELOADING=1\nMONOTONIC_USEC=%llu",
		   (unsigned long long)(clock_ns() / 1000));
	struct err *err = options_parse(daemon->argc, daemon->argv, &fresh);

	if (!err) {
		err = apply_settings(daemon, &fresh);
		options_fini(&fresh);
	}
	if (err)
		log_error("reload: %s, %s", err->text,
			  daemon->session ? "going on with the old settings"
					  : "nothing is sampled until the next reload");
	else
		log_notice("settings read again");
	sd_notify(0, "READY=1");
	return err;
}

/* Life. */

static struct err *announce(struct daemon *daemon)
{
	const struct options *options = daemon->options;

	TRY(options_ready(options, session_run_id(daemon->session)));
	sd_notifyf(0, "READY=1\nSTATUS=Sampling %s", options->config.target);
	log_info("sampling %s into %s", options->config.target, options->config.db);
	return NULL;
}

static struct err *watch_all(struct daemon *daemon, const struct daemon_setup *setup)
{
	TRY(loop_add_signal(daemon->loop, SIGTERM, on_term, daemon));
	TRY(loop_add_signal(daemon->loop, SIGINT, on_term, daemon));
	TRY(loop_add_signal(daemon->loop, SIGHUP, on_hup, daemon));
	TRY(loop_add_fd(daemon->loop, setup->signal_fd, EPOLLIN, on_broker, daemon));
	TRY(loop_add_timer(daemon->loop, SESSION_DRAIN_NS, on_drain, daemon, NULL));
	TRY(loop_add_timer(daemon->loop, SESSION_FLUSH_NS, on_flush, daemon, NULL));
	TRY(loop_add_timer(daemon->loop, SECOND_NS, on_second, daemon, NULL));
	if (daemon->options->oneshot)
		TRY(loop_add_timer(daemon->loop, SECOND_NS / 5, on_settle, daemon, NULL));
	if (setup->control_fd >= 0)
		TRY(control_new(daemon->loop, setup->control_fd, commands_answer, daemon,
				&daemon->control));
	return NULL;
}

static struct err *run(struct daemon *daemon, const struct daemon_setup *setup)
{
	TRY(loop_new(&daemon->loop));
	TRY(open_store(daemon));
	daemon->broker = broker_connect(setup->rpc_fd);
	daemon->workers = workers_new(daemon->loop, daemon->broker, worker_died, daemon);
	workers_allow_fetch(daemon->workers, *daemon->options->config.debuginfod_urls);
	TRY(watch_all(daemon, setup));
	TRY(daemon_open_session(daemon));
	daemon->catch_up_ns = clock_ns() + CATCH_UP_NS;
	if (daemon->options->for_ns)
		daemon->end_ns = clock_ns() + daemon->options->for_ns;
	TRY(announce(daemon));
	return loop_run(daemon->loop);
}

static struct err *close_all(struct daemon *daemon)
{
	struct err *err = NULL;

	close_session(daemon);
	workers_free(daemon->workers);
	broker_free(daemon->broker);
	if (daemon->writer)
		err = writer_close(daemon->writer);
	control_free(daemon->control);
	retain_free(daemon->retain);
	jobs_free(daemon->jobs);
	writer_free(daemon->writer);
	db_close(daemon->db);
	loop_free(daemon->loop);
	return err;
}

struct err *daemon_run(const struct daemon_setup *setup)
{
	struct daemon daemon = { .options = setup->options,
				 .argc = setup->argc,
				 .argv = setup->argv,
				 .start_ns = clock_ns() };
	struct err *err = run(&daemon, setup);
	struct err *close_err = close_all(&daemon);

	if (err) {
		err_free(close_err);
		return err;
	}
	return err_wrap(close_err, "store");
}
