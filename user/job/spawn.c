// SPDX-License-Identifier: Apache-2.0
/*
 * The child keeps one socket (as descriptor 3) and standard error, nothing else: no
 * environment, no signal mask, no descriptor of its parent. The rest of the sandbox
 * is the worker's own first act.
 */
#include "job/job.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "job/cache.h"

#define WORKER_FALLBACK "/usr/libexec/assay/assay-worker"

static const struct {
	const char *name;
	struct job_limits limits;
} classes[] = {
	[JOB_RESOLVE] = { "resolve", { 1ull << 30, 10, 60 } },
	[JOB_ANALYZE] = { "analyze", { 4ull << 30, 1800, 6 * 3600 } },
	[JOB_FETCH] = { "fetch", { 1ull << 30, 120, 900 } },
};

struct job_limits job_limits(enum job_class class)
{
	return classes[class].limits;
}

const char *job_class_name(enum job_class class)
{
	return classes[class].name;
}

char *job_worker_program(void)
{
	return file_beside("assay-worker", WORKER_FALLBACK);
}

static void child(const char *path, char *const *argv, int fd)
{
	static char *const environment[] = { "LANG=C.UTF-8", NULL };
	int null_fd = open("/dev/null", O_RDWR);
	sigset_t none;

	sigemptyset(&none);
	sigprocmask(SIG_SETMASK, &none, NULL);
	for (int i = 1; i < NSIG; i++)
		signal(i, SIG_DFL);
	/* The socket is 3 or above: 0 to 2 are open in any sane parent, and if not, the
	 * two dup2() below could overwrite it. */
	if (fd < 3)
		fd = fcntl(fd, F_DUPFD, 3);
	dup2(null_fd, STDIN_FILENO);
	dup2(null_fd, STDOUT_FILENO);
	if (fd == 3)
		fcntl(fd, F_SETFD, 0);
	else
		dup2(fd, 3);
	close_range(4, ~0U, 0);
	execve(path, argv, environment);
	_exit(127);
}

struct err *job_spawn_fd(enum job_class class, const struct job_options *options,
			 int *ret_fd, pid_t *ret_pid)
{
	const struct job_options defaults = { 0 };
	struct job_limits limits = job_limits(class);
	CLEANUP(free) char *found = NULL;
	char memory[32], cpu[32];
	int pair[2];

	options = options ? options : &defaults;
	if (options->memory_bytes)
		limits.memory_bytes = options->memory_bytes;
	if (options->cpu_seconds)
		limits.cpu_seconds = options->cpu_seconds;
	const char *path = options->worker_path;

	if (!path || !*path)
		path = found = job_worker_program();
	if (access(path, X_OK))
		return err_errno(errno, "worker program %s", path);
	snprintf(memory, sizeof(memory), "%llu", (unsigned long long)limits.memory_bytes);
	snprintf(cpu, sizeof(cpu), "%u", limits.cpu_seconds);
	char *argv[] = { "assay-worker",
			 "--class",
			 (char *)job_class_name(class),
			 "--fd",
			 "3",
			 "--memory",
			 memory,
			 "--cpu",
			 cpu,
			 NULL };

	if (socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, pair))
		return err_errno(errno, "socketpair");
	pid_t pid = fork();

	if (pid == 0)
		child(path, argv, pair[1]);
	close(pair[1]);
	if (pid < 0) {
		struct err *err = err_errno(errno, "fork");

		close(pair[0]);
		return err;
	}
	*ret_fd = pair[0];
	if (ret_pid)
		*ret_pid = pid;
	return NULL;
}
