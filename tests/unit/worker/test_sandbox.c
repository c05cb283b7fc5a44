// SPDX-License-Identifier: Apache-2.0
/* A child enters the sandbox and tries what a taken-over worker would try. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <fcntl.h>
#include <sched.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/ptrace.h>
#include <sys/resource.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "worker/sandbox.h"

#define MEMORY (512ull << 20)

/* Return: 0 when the attempt was refused as it should be, else a number for the test. */
typedef int (*attempt_fn)(void);

static int run(enum job_class class, attempt_fn attempt)
{
	pid_t pid = fork();
	int status;

	if (pid == 0) {
		struct err *err = sandbox_enter(class, MEMORY);

		_exit(err ? 99 : attempt());
	}
	assert_int_equal(waitpid(pid, &status, 0), pid);
	return WIFEXITED(status) ? WEXITSTATUS(status) : 100 + WTERMSIG(status);
}

static int refused(long result)
{
	return result == -1 && errno == EPERM ? 0 : 1;
}

static int try_open(void)
{
	return refused(syscall(SYS_open, "/etc/passwd", O_RDONLY)) |
	       refused(open("/etc/passwd", O_RDONLY)) << 1 |
	       refused(open("/tmp/assay-sandbox-test", O_CREAT | O_WRONLY, 0600)) << 2;
}

static int try_socket(void)
{
	return refused(socket(AF_INET, SOCK_STREAM, 0)) |
	       refused(socket(AF_UNIX, SOCK_STREAM, 0)) << 1;
}

static int try_processes(void)
{
	char *argv[] = { "true", NULL };

	return refused(syscall(SYS_fork)) | refused(execv("/bin/true", argv)) << 1 |
	       refused(kill(getppid(), 0)) << 2 |
	       refused(ptrace(PTRACE_ATTACH, 1, NULL, NULL)) << 3;
}

static int try_memory(void)
{
	void *page = mmap(NULL, 4096, PROT_READ | PROT_EXEC, MAP_PRIVATE | MAP_ANONYMOUS,
			  -1, 0);
	int got = refused(page == MAP_FAILED ? -1 : 0);

	page = mmap(NULL, 4096, PROT_READ | PROT_WRITE, MAP_PRIVATE | MAP_ANONYMOUS, -1,
		    0);
	if (page == MAP_FAILED)
		return 16;
	return got | refused(syscall(SYS_write, 1, "x", 1)) << 1;
}

static int try_limits(void)
{
	const struct rlimit more = { RLIM_INFINITY, RLIM_INFINITY };

	return refused(setrlimit(RLIMIT_AS, &more)) |
	       refused(setrlimit(RLIMIT_NOFILE, &more)) << 1;
}

static int read_what_it_was_given(void)
{
	char byte;

	return pread(10, &byte, 1, 0) == 1 && byte == 'x' ? 0 : 1;
}

static int use_too_much_cpu(void)
{
	sandbox_allow_cpu(1);
	for (volatile uint64_t i = 0; i < UINT64_MAX; i++)
		;
	return 0;
}

static int what_fetch_may(void)
{
	char *argv[] = { "true", NULL };
	int fd = socket(AF_INET, SOCK_STREAM, 0);

	return (fd < 0) | (getuid() == 0) << 1 | refused(execv("/bin/true", argv)) << 2 |
	       refused(ptrace(PTRACE_ATTACH, 1, NULL, NULL)) << 3 |
	       (open("/root/x", O_CREAT | O_WRONLY, 0600) >= 0) << 4;
}

static void nothing_can_be_opened(void **state)
{
	(void)state;
	assert_int_equal(run(JOB_RESOLVE, try_open), 0);
	assert_int_equal(run(JOB_ANALYZE, try_open), 0);
}

static void there_is_no_socket(void **state)
{
	(void)state;
	assert_int_equal(run(JOB_RESOLVE, try_socket), 0);
	assert_int_equal(run(JOB_ANALYZE, try_socket), 0);
}

static void no_process_is_started_or_touched(void **state)
{
	(void)state;
	assert_int_equal(run(JOB_RESOLVE, try_processes), 0);
}

static void memory_is_not_executable_and_output_is_only_for_errors(void **state)
{
	(void)state;
	assert_int_equal(run(JOB_RESOLVE, try_memory), 0);
}

static void limits_stay(void **state)
{
	(void)state;
	assert_int_equal(run(JOB_RESOLVE, try_limits), 0);
}

static void a_descriptor_that_was_passed_is_readable(void **state)
{
	int fd = memfd_create("given", 0);

	(void)state;
	assert_int_equal(write(fd, "x", 1), 1);
	assert_int_equal(dup2(fd, 10), 10);
	assert_int_equal(run(JOB_RESOLVE, read_what_it_was_given), 0);
	close(10);
	close(fd);
}

static void a_job_over_its_cpu_limit_ends_with_sigxcpu(void **state)
{
	(void)state;
	assert_int_equal(run(JOB_RESOLVE, use_too_much_cpu), 100 + SIGXCPU);
}

static void fetching_has_the_network_and_little_else(void **state)
{
	(void)state;
	if (getuid()) {
		print_message("skipped: needs root, to see that it is given up\n");
		skip();
	}
	assert_int_equal(run(JOB_FETCH, what_fetch_may), 0);
}

static void root_becomes_nobody_and_analysis_idle(void **state)
{
	int ready[2];
	char line[512];

	(void)state;
	if (getuid()) {
		print_message("skipped: needs root, to see that it is given up\n");
		skip();
	}
	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();

	if (pid == 0) {
		struct err *err = sandbox_enter(JOB_ANALYZE, MEMORY);

		close(ready[1]); /* the parent's read ends when both copies are gone */
		close(ready[0]);
		if (err)
			_exit(1);
		for (volatile uint64_t i = 0;; i++)
			;
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], line, 1), 0);
	close(ready[0]);
	snprintf(line, sizeof(line), "/proc/%d/status", pid);
	FILE *status = fopen(line, "re");
	int uids = 0, caps = 0, privs = 0;

	while (status && fgets(line, sizeof(line), status)) {
		uids += strncmp(line, "Uid:\t65534\t65534\t65534\t65534", 28) == 0;
		caps += strncmp(line, "CapEff:\t0000000000000000", 24) == 0;
		privs += strncmp(line, "NoNewPrivs:\t1", 13) == 0;
	}
	if (status)
		fclose(status);
	int policy = sched_getscheduler(pid);

	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	assert_int_equal(uids, 1);
	assert_int_equal(caps, 1);
	assert_int_equal(privs, 1);
	assert_int_equal(policy, SCHED_IDLE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(nothing_can_be_opened),
		cmocka_unit_test(there_is_no_socket),
		cmocka_unit_test(no_process_is_started_or_touched),
		cmocka_unit_test(memory_is_not_executable_and_output_is_only_for_errors),
		cmocka_unit_test(limits_stay),
		cmocka_unit_test(a_descriptor_that_was_passed_is_readable),
		cmocka_unit_test(a_job_over_its_cpu_limit_ends_with_sigxcpu),
		cmocka_unit_test(fetching_has_the_network_and_little_else),
		cmocka_unit_test(root_becomes_nobody_and_analysis_idle),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
