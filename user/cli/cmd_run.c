// SPDX-License-Identifier: Apache-2.0
/*
 * The command is forked first and waits, before its exec, on a pipe until the agent
 * samples it; so nothing of it is missed and no ptrace is needed. A second pipe closes
 * by itself when the exec succeeds, or brings its errno.
 *
 * As a shell does, we leave Ctrl-C to the command (it is in our process group) and go on
 * living to report; other signals are passed on to it.
 */
#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/session.h"
#include "core/file.h"
#include "core/mem.h"

enum { STATUS_CANNOT_RUN = 126, STATUS_NOT_FOUND = 127, STATUS_SIGNAL = 128 };

static const struct option_spec options[] = {
	{ "rate", 0, OPTION_NUMBER, "HZ", "samples per second and CPU; 49", 1, 10000 },
	{ "record", 0, OPTION_FILE, "FILE", "also write the raw events, for assay replay",
	  0, 0 },
	{ "output", 'o', OPTION_FILE, "FILE", "the report; else standard error", 0, 0 },
	{ 0 },
};

struct job {
	pid_t pid;
	int pid_fd;
	int go_fd;	/* closed: go on; a byte: exec */
	int failure_fd; /* errno of a failed exec, or the end */
	int status;	/* as waitpid() gives it */
	bool ended;
	struct loop *loop;
	struct agent *agent;
};

/* In the child. The agent must not take us for itself: only exec follows. */
static void become_command(char **argv, int go_fd, int failure_fd)
{
	char byte;

	prctl(PR_SET_PDEATHSIG, SIGKILL); /* only until the exec, which must not happen */
	if (read(go_fd, &byte, 1) != 1)
		_exit(1);
	prctl(PR_SET_PDEATHSIG, 0);
	execvp(argv[0], argv);

	int errnum = errno;
	ssize_t put = write(failure_fd, &errnum, sizeof(errnum));

	(void)put;
	_exit(errnum == ENOENT ? STATUS_NOT_FOUND : STATUS_CANNOT_RUN);
}

static struct err *hold_command(char **argv, struct job *job)
{
	int go[2], failure[2];

	if (pipe2(go, O_CLOEXEC))
		return err_errno(errno, "pipe");
	job->go_fd = go[1];
	CLEANUP(close) int go_in = go[0];

	if (pipe2(failure, O_CLOEXEC))
		return err_errno(errno, "pipe");
	job->failure_fd = failure[0];
	CLEANUP(close) int failure_out = failure[1];

	fflush(NULL);
	job->pid = fork();
	if (job->pid < 0)
		return err_errno(errno, "fork");
	if (!job->pid) {
		close(go[1]); /* or the end of the pipe would never come */
		become_command(argv, go_in, failure_out);
	}
	job->pid_fd = pidfd_open(job->pid, 0);
	return job->pid_fd < 0 ? err_errno(errno, "pidfd_open") : NULL;
}

static void reap(struct job *job)
{
	if (job->pid > 0 && !job->ended && waitpid(job->pid, &job->status, 0) == job->pid)
		job->ended = true;
}

static struct err *let_go(struct job *job, const char *name)
{
	int errnum = 0;

	TRY(file_write_all(job->go_fd, "x", 1));
	if (read(job->failure_fd, &errnum, sizeof(errnum)) == sizeof(errnum))
		return err_errno(errnum, "%s", name);
	return NULL;
}

static struct err *on_command_end(void *ctx, int fd, uint32_t events)
{
	struct job *job = ctx;

	(void)events;
	loop_del_fd(job->loop, fd);
	reap(job);
	agent_end(job->agent);
	return NULL;
}

static struct err *pass_on(void *ctx, int signal)
{
	struct job *job = ctx;

	if (!job->ended && signal != SIGINT && signal != SIGQUIT)
		kill(job->pid, signal);
	return NULL;
}

/*
 * The loop ends with the agent. Should that die before the command, the command goes on
 * and is waited for: what it does matters more than our figures.
 */
static struct err *wait_both(struct job *job)
{
	static const int signals[] = { SIGINT,	SIGQUIT, SIGTERM, SIGHUP,
				       SIGUSR1, SIGUSR2, SIGCONT, SIGWINCH };
	CLEANUP(loop_free) struct loop *loop = NULL;

	TRY(loop_new(&loop));
	job->loop = loop;
	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		TRY(loop_add_signal(loop, signals[i], pass_on, job));
	TRY(loop_add_fd(loop, job->pid_fd, EPOLLIN, on_command_end, job));
	TRY(agent_watch(job->agent, loop));
	TRY(loop_run(loop));
	reap(job);
	return agent_result(job->agent);
}

/* End as the command did: its exit code, or its signal. */
static int end_like(int status)
{
	struct rlimit no_core = { 0 };

	if (WIFEXITED(status))
		return WEXITSTATUS(status);
	fflush(NULL);
	setrlimit(RLIMIT_CORE, &no_core); /* it has dumped its own */
	signal(WTERMSIG(status), SIG_DFL);
	raise(WTERMSIG(status));
	return STATUS_SIGNAL + WTERMSIG(status);
}

static struct err *open_report(struct cli *cli)
{
	const char *path = option_text(&cli->options, "output", NULL);
	FILE *file = path ? fopen(path, "we") : stderr;

	if (!file)
		return err_errno(errno, "%s", path);
	enum output_format format = cli->out.format;

	output_fini(&cli->out);
	output_init(&cli->out, file, format, cli->quiet);
	return NULL;
}

static struct err *sample_job(struct cli *cli, struct job *job, uint64_t *ret_run,
			      const char *db)
{
	const char *record = option_text(&cli->options, "record", NULL);
	CLEANUP(free) char *record_path = record ? session_path(record) : NULL;
	CLEANUP(free) char *target = mem_printf("pid:%d", job->pid);
	CLEANUP(agent_free) struct agent *agent = NULL;
	struct agent_config config = { .target = target,
				       .db = db,
				       .record = record_path,
				       .rate_hz = option_number(&cli->options, "rate", 0),
				       .quiet = cli->quiet };

	TRY(session_start(&config, &agent));
	job->agent = agent;
	*ret_run = agent_run_id(agent);
	struct err *err = let_go(job, cli_arg(cli, 0));

	if (err) {
		reap(job);
		cli->status = WIFEXITED(job->status) ? WEXITSTATUS(job->status)
						     : STATUS_CANNOT_RUN;
		return err;
	}
	return wait_both(job);
}

static struct err *run_run(struct cli *cli)
{
	CLEANUP(free) char *db = NULL;
	struct job job = { .pid_fd = -1, .go_fd = -1, .failure_fd = -1 };
	uint64_t run_id = 0;

	TRY(open_report(cli));
	TRY(session_db(cli, &db));
	struct err *err = hold_command(cli->options.args, &job);

	if (!err)
		err = sample_job(cli, &job, &run_id, db);
	cleanup_close(&job.go_fd); /* a command that still waits ends itself */
	cleanup_close(&job.failure_fd);
	cleanup_close(&job.pid_fd);
	reap(&job);
	if (!err)
		err = session_report(cli, db, run_id);
	if (!err)
		err = output_done(&cli->out);
	if (!err)
		cli->status = end_like(job.status);
	else if (job.ended && !cli->status && WIFEXITED(job.status))
		cli->status = WEXITSTATUS(job.status);
	return err;
}

const struct cmd cmd_run = {
	.name = "run",
	.args = "COMMAND [ARGUMENT]...",
	.summary = "start a command and sample it from its first instruction",
	.text = "Start COMMAND, sample it and its children until it ends, and print its top "
		"types on standard error, apart from the command's own output. The command "
		"does not start if sampling cannot. Its exit code, or the signal that "
		"killed it, becomes ours.",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.min_args = 1,
	.max_args = CMD_ANY,
	.in_order = true,
	.completes = COMPLETE_PROGRAM,
	.examples = { { "a benchmark, from start to end",
			"assay run -- sqlite3 big.db 'SELECT count(*) FROM t'" },
		      { "the report as JSON in a file",
			"assay run --json -o report.json -- make test" } },
	.exits = "those of COMMAND; 1 when it could not be sampled (it was not started "
		 "then), 2 wrong usage, 126 and 127 when it could not be started.",
	.run = run_run,
};
