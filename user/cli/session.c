// SPDX-License-Identifier: Apache-2.0
#include "cli/session.h"

#include <inttypes.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/number.h"
#include "cli/progress.h"
#include "core/file.h"
#include "core/mem.h"
#include "probe/machine.h"

#define PIDFILE_MAX 64

char *session_pidfile(void)
{
	const char *named = getenv("ASSAY_PIDFILE"), *folder = getenv("XDG_RUNTIME_DIR");

	if (named && *named)
		return session_path(named);
	return mem_printf("%s/assay-attach.pid",
			  geteuid() && folder && *folder ? folder : "/run");
}

bool session_is_running(const char *pidfile)
{
	CLEANUP(free) char *text = NULL;
	CLEANUP(free) char *comm = NULL;
	uint64_t pid = 0;

	err_free(file_read(pidfile, PIDFILE_MAX, &text, NULL));
	if (!text)
		return false;
	text[strcspn(text, " \n")] = 0;
	if (!number_parse(text, &pid))
		return false;
	CLEANUP(free) char *path = mem_printf("/proc/%" PRIu64 "/comm", pid);

	err_free(file_read(path, PIDFILE_MAX, &comm, NULL));
	return comm && !strcmp(comm, "assayd\n");
}

char *session_path(const char *path)
{
	CLEANUP(free) char *folder = getcwd(NULL, 0);

	if (path[0] == '/' || !folder)
		return mem_strdup(path);
	return mem_printf("%s/%s", folder, path);
}

/* Whatever fails first without privileges: what is missing is the better answer. */
static struct err *with_reason(struct err *err)
{
	struct err *reason = err ? machine_require() : NULL;

	if (!reason)
		return err;
	err_free(err);
	return reason;
}

struct err *session_db(const struct cli *cli, char **ret_path)
{
	CLEANUP(free) char *path = session_path(report_db_path(cli));

	if (!strcmp(path, DB_DEFAULT_PATH)) {
		CLEANUP(free) char *folder = mem_strdup(path);

		*strrchr(folder, '/') = 0;
		TRY(with_reason(file_mkdirs(folder)));
	}
	*ret_path = take(path);
	return NULL;
}

struct err *session_start(const struct agent_config *config, struct agent **ret_agent)
{
	struct err *err = agent_start(config, ret_agent);

	return config->replay ? err : with_reason(err);
}

struct wait {
	const struct cli *cli;
	struct agent *agent;
	struct progress progress;
	uint64_t start_ns, for_ns;
	bool ending;
};

static struct err *on_second(void *ctx, uint64_t expirations)
{
	struct wait *wait = ctx;
	uint64_t ns = clock_ns() - wait->start_ns;

	(void)expirations;
	if (!wait->ending && wait->for_ns && ns > wait->for_ns) {
		progress_end(&wait->progress);
		progress_begin(&wait->progress, "finding the types", wait->cli->quiet);
		wait->ending = true;
	}
	if (wait->ending)
		progress_show(&wait->progress, 0, 0, NULL);
	else
		progress_show(&wait->progress, ns / 1000000000u,
			      (wait->for_ns + 999999999u) / 1000000000u, "s");
	return NULL;
}

static struct err *on_stop(void *ctx, int signal)
{
	struct wait *wait = ctx;

	(void)signal;
	if (!wait->ending) {
		progress_end(&wait->progress);
		progress_begin(&wait->progress, "ending", wait->cli->quiet);
		cli_note(wait->cli, "ending: storing what was seen");
		wait->ending = true;
	}
	agent_end(wait->agent);
	return NULL;
}

struct err *session_wait(const struct cli *cli, struct agent *agent, const char *what,
			 uint64_t for_ns)
{
	static const int signals[] = { SIGINT, SIGTERM, SIGHUP };
	CLEANUP(loop_free) struct loop *loop = NULL;
	struct wait wait = {
		.cli = cli, .agent = agent, .start_ns = clock_ns(), .for_ns = for_ns
	};
	int timer;

	TRY(loop_new(&loop));
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		TRY(loop_add_signal(loop, signals[i], on_stop, &wait));
	TRY(loop_add_timer(loop, 250000000u, on_second, &wait, &timer));
	progress_begin(&wait.progress, what, cli->quiet);
	TRY(agent_watch(agent, loop));
	struct err *err = loop_run(loop);

	loop_del_timer(loop, timer);
	progress_end(&wait.progress);
	return err ? err : agent_result(agent);
}

struct err *session_report(struct cli *cli, const char *db_path, uint64_t run_id)
{
	struct report_scope scope = { .run_id = run_id };

	return report_types(&cli->out, db_path, &scope);
}
