// SPDX-License-Identifier: Apache-2.0
/*
 * Two ways: a daemon that runs is asked to watch one more target, and its database is
 * read; otherwise, or when the database is named, assayd is started for this once.
 */
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "cli/control.h"
#include "cli/number.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "cli/stop.h"
#include "cli/target.h"
#include "core/file.h"
#include "core/mem.h"

#define ATTACH_MAX_HZ 10000
#define FLUSH_MS      60000
#define TYPES_WAIT_NS 10000000000ull
#define CHILDREN_MAX  65536

static const struct option_spec options[] = {
	{ "for", 0, OPTION_DURATION, "TIME", "how long (10s, 500ms, 5m); until Ctrl-C", 0,
	  0 },
	{ "rate", 0, OPTION_NUMBER, "HZ", "samples per second and CPU; 49", 1,
	  ATTACH_MAX_HZ },
	{ "record", 0, OPTION_FILE, "FILE", "also write the raw events, for assay replay",
	  0, 0 },
	{ "background", 0, OPTION_FLAG, NULL, "return once sampling is live", 0, 0 },
	{ "pidfile", 0, OPTION_FILE, "FILE",
	  "where assay stop finds the agent; $ASSAY_PIDFILE, else /run/assay-attach.pid",
	  0, 0 },
	{ 0 },
};

/* A sampling that a running daemon does for us. */
struct lease {
	struct control *control;
	char *target, *db;
	uint64_t run_id, unexplained;
};

static struct err *take_lease(void *ctx, const struct command_args *args)
{
	struct lease *lease = ctx;
	const char *db = command_arg(args, "db");

	if (!db)
		return err_new(ERR_FORMAT, "the daemon does not name its database");
	free(lease->db);
	lease->db = mem_strdup(db);
	return command_number(args, "run", &lease->run_id);
}

static struct err *ask_attach(struct lease *lease, uint64_t for_ns)
{
	CLEANUP(str_fini) struct str line = { 0 };

	command_begin(&line, COMMAND_ATTACH);
	command_add(&line, "target", lease->target);
	if (for_ns)
		command_add_number(&line, "for_ns", for_ns);
	command_end(&line);
	return control_ask(lease->control, line.data, FLUSH_MS, take_lease, lease);
}

static struct err *ask_plain(struct lease *lease, enum command_verb verb,
			     const char *target, control_reply_fn each)
{
	CLEANUP(str_fini) struct str line = { 0 };

	command_begin(&line, verb);
	if (target)
		command_add(&line, "target", target);
	command_end(&line);
	return control_ask(lease->control, line.data, FLUSH_MS, each, lease);
}

static struct err *take_queue(void *ctx, const struct command_args *args)
{
	struct lease *lease = ctx;
	uint64_t pending, running;

	TRY(command_number(args, "pending", &pending));
	TRY(command_number(args, "running", &running));
	lease->unexplained = pending + running;
	return NULL;
}

static void nap(void)
{
	struct timespec step = { .tv_nsec = 200000000 };

	nanosleep(&step, NULL);
}

/* The types of the last samples are found a little later; wait, but not for ever. */
static struct err *wait_types(const struct cli *cli, struct lease *lease)
{
	uint64_t end_ns = clock_ns() + TYPES_WAIT_NS;
	struct progress progress;
	struct err *err;

	progress_begin(&progress, "finding the types", cli->quiet);
	do {
		nap();
		progress_show(&progress, 0, 0, NULL);
		err = ask_plain(lease, COMMAND_TYPES_QUEUE, NULL, take_queue);
	} while (!err && lease->unexplained && !stop_flag && clock_ns() < end_ns);
	progress_end(&progress);
	if (!err && lease->unexplained)
		cli_note(cli,
			 "%llu addresses still wait for their types: see 'assay types' "
			 "later",
			 (unsigned long long)lease->unexplained);
	return err;
}

static struct err *end_lease(const struct cli *cli, struct lease *lease)
{
	struct err *err = ask_plain(lease, COMMAND_DETACH, lease->target, NULL);

	if (err && err->code == ERR_NOT_FOUND) { /* its time was over before ours */
		err_free(err);
		err = NULL;
	}
	TRY(err);
	TRY(wait_types(cli, lease));
	return ask_plain(lease, COMMAND_FLUSH, NULL, NULL);
}

static void sleep_for(const struct cli *cli, const char *what, uint64_t for_ns)
{
	struct progress progress;
	uint64_t start_ns = clock_ns(), ns = 0;

	stop_catch();
	progress_begin(&progress, what, cli->quiet);
	while (!stop_flag && (!for_ns || ns < for_ns)) {
		nap();
		ns = clock_ns() - start_ns;
		progress_show(&progress, ns / 1000000000u,
			      (for_ns + 999999999u) / 1000000000u, "s");
	}
	progress_end(&progress);
}

/*
 * The daemon may watch more than our target, so the report is narrowed: to the process,
 * or, if it has children, to those that are called as it is. @ret_comm: allocated.
 */
static void narrow_scope(const char *target, struct report_scope *scope, char **ret_comm)
{
	unsigned pid;

	if (sscanf(target, "pid:%u", &pid) != 1)
		return;
	CLEANUP(free) char *path = mem_printf("/proc/%u/task/%u/children", pid, pid);
	CLEANUP(free) char *comm_path = mem_printf("/proc/%u/comm", pid);
	CLEANUP(free) char *children = NULL;
	struct err *err = file_read(path, CHILDREN_MAX, &children, NULL);

	if (!err && *children)
		err = file_read(comm_path, CHILDREN_MAX, ret_comm, NULL);
	err_free(err);
	if (*ret_comm)
		(*ret_comm)[strcspn(*ret_comm, "\n")] = 0;
	else
		scope->pid = pid;
	scope->process = *ret_comm;
}

static struct err *attach_daemon(struct cli *cli, struct lease *lease, const char *label)
{
	uint64_t for_ns = option_number(&cli->options, "for", 0);

	if (option_given(&cli->options, "rate"))
		return cli_usage(cli, "the running daemon's rate is a setting of "
				      "its own; name a --db to sample apart");
	struct report_scope scope = { .since_ns = realtime_ns() };
	CLEANUP(free) char *comm = NULL;

	narrow_scope(lease->target, &scope, &comm);
	TRY(ask_attach(lease, for_ns));
	if (option_given(&cli->options, "background")) {
		cli_note(cli, "the daemon samples %s", label);
		return NULL;
	}
	CLEANUP(free) char *what = mem_printf("sampling %s", label);

	sleep_for(cli, what, for_ns);
	TRY(end_lease(cli, lease));
	scope.run_id = lease->run_id;
	return report_types(&cli->out, lease->db, &scope);
}

static struct err *attach_alone(struct cli *cli, const char *target, const char *label)
{
	const struct options *opts = &cli->options;
	const char *record = option_text(opts, "record", NULL);
	const char *pidfile = option_text(opts, "pidfile", NULL);
	CLEANUP(free) char *record_path = record ? session_path(record) : NULL;
	bool background = option_given(opts, "background");
	CLEANUP(free)
	char *pidfile_path = pidfile	  ? session_path(pidfile)
			     : background ? session_pidfile()
					  : NULL;
	CLEANUP(free) char *db = NULL;
	CLEANUP(agent_free) struct agent *agent = NULL;

	TRY(session_db(cli, &db));
	if (background && session_is_running(pidfile_path))
		return err_new(ERR_BUSY,
			       "the agent of %s still samples: end it with 'assay "
			       "stop%s%s', or name another --pidfile",
			       pidfile_path, pidfile ? " " : "", pidfile ? pidfile : "");
	struct agent_config config = {
		.target = target,
		.db = db,
		.record = record_path,
		.pidfile = pidfile_path,
		.for_ns = option_number(opts, "for", 0),
		.rate_hz = option_number(opts, "rate", 0),
		.background = background,
		.quiet = cli->quiet,
	};

	TRY(session_start(&config, &agent));
	if (config.background) {
		cli_note(cli, "sampling %s; end it with: assay stop%s%s", label,
			 pidfile ? " " : "", pidfile ? pidfile : "");
		return NULL;
	}
	CLEANUP(free) char *what = mem_printf("sampling %s", label);

	if (!config.for_ns)
		cli_note(cli, "%s; Ctrl-C ends it", what);
	TRY(session_wait(cli, agent, what, config.for_ns));
	return session_report(cli, db, agent_run_id(agent));
}

static struct err *run_attach(struct cli *cli)
{
	const struct options *opts = &cli->options;
	CLEANUP(free) char *target = NULL;
	CLEANUP(free) char *label = NULL;
	bool apart = option_given(opts, "db") || option_given(opts, "record") ||
		     option_given(opts, "pidfile");

	TRY(target_find("/proc", cli_arg(cli, 0), &target, &label));
	if (!apart) {
		struct control *control = NULL;
		const char *path = control_path(option_text(opts, "socket", NULL));
		struct err *err = control_open(path, &control);

		if (!err) {
			struct lease lease = { .control = control, .target = target };

			err = attach_daemon(cli, &lease, label);
			control_close(control);
			free(lease.db);
			return err;
		}
		if (err->code != ERR_NOT_FOUND)
			return err;
		err_free(err);
	}
	return attach_alone(cli, target, label);
}

const struct cmd cmd_attach = {
	.name = "attach",
	.args = "PID|NAME",
	.summary = "sample a running program and show its types",
	.text = "Sample the memory accesses and the CPU time of a process and of its "
		"children, find out which struct fields they touch, store all that and "
		"print the top of it.\n\n"
		"NAME is the name of the command or of the program's file. If several "
		"unrelated processes have it, they are listed. Also: all (the whole "
		"system), cgroup:PATH, service:UNIT.\n\n"
		"A running daemon is asked to do it. With --db, --record or --pidfile, or "
		"without a daemon, an agent is started for this once; that needs root.",
	.groups = CMD_DB | CMD_OUTPUT | CMD_SOCKET,
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.completes = COMPLETE_PROCESS,
	.examples = { { "ten seconds of redis", "assay attach redis-server --for 10s" },
		      { "until Ctrl-C, into a file of its own",
			"assay attach 1234 --db /tmp/one.db" },
		      { "in the background, for a script",
			"assay attach nginx --background --db /tmp/a.db && sleep 30 && "
			"assay stop" },
		      { "for a program", "assay attach 1234 --for 5s --json" } },
	.run = run_attach,
};
