// SPDX-License-Identifier: Apache-2.0
/*
 * The child gets its own process group, so that a Ctrl-C at the terminal reaches only
 * us and we can ask it, once, to flush and end. Should we die first, the kernel sends it
 * SIGTERM (not in the background). In the background its messages go to a memory file:
 * a pipe would kill it with SIGPIPE once we are gone.
 */
#include "cli/agent.h"

#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <sys/pidfd.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/table.h"
#include "core/file.h"
#include "core/str.h"
#include "core/vec.h"

#define AGENT_FALLBACK	"/usr/sbin/assayd"
#define AGENT_MAX_TEXT	(64 * 1024) /* of messages held back */
#define AGENT_MAX_READY 128
#define AGENT_READY_FD	3 /* in the child */

struct agent {
	pid_t pid;
	int pid_fd, message_fd, ready_fd;
	bool background, quiet, ended;
	int status, ends;
	uint64_t run_id;
	struct str text;    /* messages not passed on yet */
	char *last_message; /* for the error */
	struct loop *loop;
};

struct words {
	char **data;
	size_t count, room; /* for vec.h */
};

static void add_word(struct words *words, const char *option, const char *value)
{
	if (!value)
		return;
	vec_push(words, mem_strdup(option));
	vec_push(words, mem_strdup(value));
}

static void build_argv(const struct agent_config *config, const char *program,
		       struct words *words)
{
	CLEANUP(free)
	char *length = config->for_ns
			       ? mem_printf("%lluns", (unsigned long long)config->for_ns)
			       : NULL;
	CLEANUP(free)
	char *rate = config->rate_hz
			     ? mem_printf("%llu", (unsigned long long)config->rate_hz)
			     : NULL;

	vec_push(words, mem_strdup(program));
	vec_push(words, mem_strdup("--oneshot"));
	add_word(words, "--target", config->target);
	add_word(words, "--replay", config->replay);
	add_word(words, "--symfs", config->symfs);
	add_word(words, "--for", length);
	add_word(words, "--db", config->db);
	add_word(words, "--record", config->record);
	add_word(words, "--rate", rate);
	add_word(words, "--pidfile", config->pidfile);
	add_word(words, "--ready-fd", "3");
	vec_push(words, NULL);
}

/* In the child; only async-signal-safe calls. @fds: ready, messages. */
static void become_agent(char **argv, const int fds[2], bool background, pid_t parent)
{
	int null_fd = open("/dev/null", O_RDWR);
	sigset_t none;

	if (background)
		setsid();
	else
		setpgid(0, 0);
	if (!background && (prctl(PR_SET_PDEATHSIG, SIGTERM) || getppid() != parent))
		_exit(1);
	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	signal(SIGINT, SIG_DFL);
	if (null_fd < 0 || dup2(null_fd, STDIN_FILENO) < 0 ||
	    dup2(null_fd, STDOUT_FILENO) < 0 || dup2(fds[1], STDERR_FILENO) < 0 ||
	    dup2(fds[0], AGENT_READY_FD) < 0)
		_exit(1);
	execv(argv[0], argv);
	_exit(127);
}

static struct err *open_messages(bool background, int ret_fds[2])
{
	if (!background)
		return pipe2(ret_fds, O_CLOEXEC) ? err_errno(errno, "pipe") : NULL;
	ret_fds[0] = memfd_create("assayd-messages", MFD_CLOEXEC);
	if (ret_fds[0] < 0)
		return err_errno(errno, "memfd_create");
	ret_fds[1] = fcntl(ret_fds[0], F_DUPFD_CLOEXEC, 10);
	return ret_fds[1] < 0 ? err_errno(errno, "dup") : NULL;
}

/* Above 9, so that dup2() in the child cannot overwrite a source. */
static struct err *raise_fd(int *fd)
{
	int high = fcntl(*fd, F_DUPFD_CLOEXEC, 10);

	if (high < 0)
		return err_errno(errno, "dup");
	close(*fd);
	*fd = high;
	return NULL;
}

static struct err *spawn(struct agent *agent, char **argv)
{
	CLEANUP(close) int ready_out = -1;
	CLEANUP(close) int message_out = -1;
	int ready[2], messages[2] = { -1, -1 };

	if (pipe2(ready, O_CLOEXEC))
		return err_errno(errno, "pipe");
	agent->ready_fd = ready[0];
	ready_out = ready[1];
	struct err *err = open_messages(agent->background, messages);

	agent->message_fd = messages[0];
	message_out = messages[1];
	TRY(err);
	TRY(raise_fd(&ready_out));
	TRY(raise_fd(&message_out));
	fflush(NULL);

	pid_t self = getpid();

	agent->pid = fork();
	if (agent->pid < 0)
		return err_errno(errno, "fork");
	if (!agent->pid)
		become_agent(argv, (int[]){ ready_out, message_out }, agent->background,
			     self);
	agent->pid_fd = pidfd_open(agent->pid, 0);
	return agent->pid_fd < 0 ? err_errno(errno, "pidfd_open") : NULL;
}

/* "assayd: what happened" -> "what happened"; cleaned for the terminal. */
static char *message_of(const char *line, size_t length)
{
	CLEANUP(free) char *copy = mem_printf("%.*s", (int)length, line);
	const char *text = str_starts(copy, "assayd: ") ? copy + 8 : copy;

	return text_safe(text);
}

/* Remember the last whole line; pass all on when @print. */
static void take_messages(struct agent *agent, bool print)
{
	const char *line = str_text(&agent->text), *newline;

	while ((newline = strchr(line, '\n'))) {
		CLEANUP(free) char *message = message_of(line, (size_t)(newline - line));

		if (print && !agent->quiet)
			fprintf(stderr, "%s\n", message);
		free(agent->last_message);
		agent->last_message = take(message);
		line = newline + 1;
	}
	CLEANUP(free) char *rest = mem_strdup(line);

	str_clear(&agent->text);
	str_add(&agent->text, rest);
}

/* Return false at the end of the pipe. */
static bool read_messages(struct agent *agent)
{
	char chunk[4096];
	ssize_t got = agent->background
			      ? pread(agent->message_fd, chunk, sizeof(chunk) - 1, 0)
			      : read(agent->message_fd, chunk, sizeof(chunk) - 1);

	if (got < 0)
		return errno == EINTR || errno == EAGAIN;
	if (!got)
		return false;
	if (agent->text.length + (size_t)got > AGENT_MAX_TEXT)
		str_clear(&agent->text);
	chunk[got] = 0; /* a NUL in a message only shortens it */
	str_add(&agent->text, chunk);
	return true;
}

static void collect(struct agent *agent)
{
	if (!agent->ended && waitpid(agent->pid, &agent->status, 0) == agent->pid)
		agent->ended = true;
}

static struct err *start_failure(struct agent *agent)
{
	while (read_messages(agent) && !agent->background)
		;
	collect(agent);
	take_messages(agent, false);
	if (agent->last_message)
		return err_new(ERR_IO, "%s", agent->last_message);
	return agent_result(agent);
}

/* "ready RUN_ID\n". Messages are read meanwhile, lest a full pipe blocks the child. */
static struct err *wait_ready(struct agent *agent)
{
	char text[AGENT_MAX_READY];
	size_t filled = 0;

	while (!memchr(text, '\n', filled)) {
		struct pollfd polls[2] = {
			{ .fd = agent->ready_fd, .events = POLLIN },
			{ .fd = agent->background ? -1 : agent->message_fd,
			  .events = POLLIN },
		};

		if (poll(polls, 2, -1) < 0 && errno != EINTR)
			return err_errno(errno, "poll");
		if (polls[1].revents)
			read_messages(agent);
		if (!polls[0].revents)
			continue;
		ssize_t got = read(agent->ready_fd, text + filled, sizeof(text) - filled);

		if (got <= 0)
			return start_failure(agent);
		filled += (size_t)got;
		if (filled == sizeof(text))
			return err_new(ERR_FORMAT,
				       "assayd said too much on its ready-fd");
	}
	*(char *)memchr(text, '\n', filled) = 0;
	if (!str_starts(text, "ready") ||
	    (text[5] == ' ' && !number_parse(text + 6, &agent->run_id)))
		return err_new(ERR_FORMAT, "assayd said '%.40s' instead of being ready",
			       text);
	if (agent->background)
		read_messages(agent);
	take_messages(agent, true);
	return NULL;
}

/* PREFIX/bin/assay is we, then it is PREFIX/sbin/assayd. */
char *agent_program(void)
{
	char *beside = file_beside("assayd", NULL);
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	if (beside || length <= 0)
		return beside ? beside : mem_strdup(AGENT_FALLBACK);
	self[length] = 0;
	for (int parts = 0; parts < 2 && strrchr(self, '/'); parts++)
		*strrchr(self, '/') = 0;
	char *installed = mem_printf("%s/sbin/assayd", self);

	if (!access(installed, X_OK))
		return installed;
	free(installed);
	return mem_strdup(AGENT_FALLBACK);
}

struct err *agent_start(const struct agent_config *config, struct agent **ret_agent)
{
	CLEANUP(agent_free) struct agent *agent = mem_alloc(sizeof(*agent));
	CLEANUP(free) char *program = agent_program();
	struct words words = { 0 };

	agent->pid_fd = agent->message_fd = agent->ready_fd = -1;
	agent->background = config->background;
	agent->quiet = config->quiet;
	if (access(program, X_OK))
		return err_new(ERR_NOT_FOUND,
			       "%s is missing: the agent is not installed completely",
			       program);
	build_argv(config, program, &words);
	unsetenv("JOURNAL_STREAM"); /* its messages come to us, not to the journal */
	struct err *err = spawn(agent, words.data);

	vec_each(&words, word)
		free(*word);
	vec_fini(&words);
	TRY(err);
	TRY(wait_ready(agent));
	*ret_agent = take(agent);
	return NULL;
}

void agent_free(struct agent *agent)
{
	if (!agent)
		return;
	if (agent->pid > 0 && !agent->ended && !agent->background) {
		kill(agent->pid, SIGTERM);
		collect(agent);
	}
	cleanup_close(&agent->pid_fd);
	cleanup_close(&agent->message_fd);
	cleanup_close(&agent->ready_fd);
	str_fini(&agent->text);
	free(agent->last_message);
	free(agent);
}

uint64_t agent_run_id(const struct agent *agent)
{
	return agent->run_id;
}

int agent_pid(const struct agent *agent)
{
	return agent->pid;
}

static struct err *on_message(void *ctx, int fd, uint32_t events)
{
	struct agent *agent = ctx;

	(void)events;
	if (!read_messages(agent))
		loop_del_fd(agent->loop, fd);
	take_messages(agent, true);
	return NULL;
}

static struct err *on_end(void *ctx, int fd, uint32_t events)
{
	struct agent *agent = ctx;

	(void)events;
	loop_del_fd(agent->loop, fd);
	collect(agent);
	loop_stop(agent->loop);
	return NULL;
}

struct err *agent_watch(struct agent *agent, struct loop *loop)
{
	agent->loop = loop;
	fcntl(agent->message_fd, F_SETFL, O_NONBLOCK);
	TRY(loop_add_fd(loop, agent->message_fd, EPOLLIN, on_message, agent));
	return loop_add_fd(loop, agent->pid_fd, EPOLLIN, on_end, agent);
}

bool agent_ended(const struct agent *agent)
{
	return agent->ended;
}

void agent_end(struct agent *agent)
{
	if (!agent->ended)
		kill(agent->pid, ++agent->ends < 3 ? SIGTERM : SIGKILL);
}

struct err *agent_result(struct agent *agent)
{
	int status = agent->status;

	if (WIFSIGNALED(status))
		return err_new(ERR_IO, "assayd was killed by signal %d (%s)",
			       WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (!WEXITSTATUS(status))
		return NULL;
	if (agent->last_message)
		return err_new(ERR_IO, "%s", agent->last_message);
	return err_new(ERR_IO, "assayd ended with status %d", WEXITSTATUS(status));
}
