// SPDX-License-Identifier: Apache-2.0
/*
 * A pid may have been given to another process since the pidfile was written: the pidfd
 * pins the process first, then its name is checked, then it gets the signal.
 */
#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/pidfd.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/progress.h"
#include "cli/session.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

#define PIDFILE_MAX 64
#define STOP_MS	    60000
#define STEP_MS	    250

static struct err *read_pidfile(const char *path, uint64_t *ret_pid)
{
	CLEANUP(free) char *text = NULL;
	struct err *err = file_read(path, PIDFILE_MAX, &text, NULL);

	if (err && err->errnum == ENOENT) {
		err_free(err);
		return err_new(ERR_NOT_FOUND, "%s: no such pidfile; nothing runs with it",
			       path);
	}
	TRY(err);
	text[strcspn(text, " \n")] = 0;
	if (!number_parse(text, ret_pid) || !*ret_pid || *ret_pid > INT32_MAX)
		return err_new(ERR_FORMAT, "%s: this is no pidfile", path);
	return NULL;
}

static struct err *check_name(uint64_t pid)
{
	CLEANUP(free) char *path = mem_printf("/proc/%llu/comm", (unsigned long long)pid);
	CLEANUP(free) char *comm = NULL;
	struct err *err = file_read(path, PIDFILE_MAX, &comm, NULL);

	if (err) {
		err_free(err);
		return err_new(ERR_NOT_FOUND, "process %llu has ended already",
			       (unsigned long long)pid);
	}
	comm[strcspn(comm, "\n")] = 0;
	if (!strcmp(comm, "assayd"))
		return NULL;
	CLEANUP(free) char *safe = text_safe(comm);

	return err_new(ERR_INVALID, "process %llu is '%s', not assayd: an old pidfile?",
		       (unsigned long long)pid, safe);
}

static struct err *wait_end(const struct cli *cli, int fd)
{
	struct pollfd poller = { .fd = fd, .events = POLLIN };
	struct progress progress;
	int ready = 0;

	progress_begin(&progress, "storing and finding the types", cli->quiet);
	for (int waited = 0; !ready && waited < STOP_MS; waited += STEP_MS) {
		ready = poll(&poller, 1, STEP_MS);
		progress_show(&progress, 0, 0, NULL);
	}
	progress_end(&progress);
	if (ready < 0)
		return err_errno(errno, "poll");
	return ready ? NULL
		     : err_new(ERR_LIMIT, "the agent did not end within %d s",
			       STOP_MS / 1000);
}

static struct err *run_stop(struct cli *cli)
{
	const char *given = cli_arg(cli, 0);
	CLEANUP(free) char *usual = given ? NULL : session_pidfile();
	const char *word = given ? given : usual;
	uint64_t pid;

	if (!number_parse(word, &pid))
		TRY(read_pidfile(word, &pid));
	if (!pid || pid > INT32_MAX)
		return err_new(ERR_INVALID, "'%s' is not a process id", word);

	CLEANUP(close) int fd = pidfd_open((pid_t)pid, 0);

	if (fd < 0 && errno == ESRCH)
		return err_new(ERR_NOT_FOUND, "process %llu has ended already",
			       (unsigned long long)pid);
	if (fd < 0)
		return err_errno(errno, "pidfd_open");
	TRY(check_name(pid));
	if (pidfd_send_signal(fd, SIGTERM, NULL, 0))
		return err_errno(errno, "signal process %llu", (unsigned long long)pid);
	TRY(wait_end(cli, fd));
	cli_note(cli, "stopped; 'assay types' shows what it saw");
	return NULL;
}

const struct cmd cmd_stop = {
	.name = "stop",
	.args = "[PIDFILE|PID]",
	.summary = "end an agent that attach --background started",
	.text = "Ask the agent to store everything and to end, and wait until it has. "
		"Without an argument it is the one whose pidfile is $ASSAY_PIDFILE, else "
		"/run/assay-attach.pid. Anything but an agent of assay is left alone.",
	.min_args = 0,
	.max_args = 1,
	.completes = COMPLETE_FILE,
	.examples = { { "the agent that attach --background started", "assay stop" },
		      { "another one, by its pidfile",
			"assay stop /run/assay-redis.pid" },
		      { "or by its process id", "assay stop 1234" } },
	.run = run_stop,
};
