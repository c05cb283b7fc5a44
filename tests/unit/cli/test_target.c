// SPDX-License-Identifier: Apache-2.0
/* A /proc made of files: what is found there, and what is said when it is not clear. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/target.h"
#include "core/file.h"
#include "core/mem.h"

struct fake {
	unsigned pid, tgid, parent;
	const char *comm, *state, *exe, *cmdline;
};

static const struct fake fakes[] = {
	{ 10, 10, 1, "redis-server", "S (sleeping)", "/usr/bin/redis-check-rdb",
	  "/usr/bin/redis-server *:6379" },
	{ 11, 10, 1, "bio_close_file", "S (sleeping)", "/usr/bin/redis-check-rdb",
	  "/usr/bin/redis-server *:6379" },
	{ 20, 20, 1, "nginx", "S (sleeping)", "/usr/sbin/nginx", "nginx: master" },
	{ 21, 21, 20, "nginx", "R (running)", "/usr/sbin/nginx", "nginx: worker" },
	{ 22, 22, 21, "nginx", "R (running)", "/usr/sbin/nginx", "nginx: worker" },
	{ 30, 30, 1, "python3", "S (sleeping)", "/usr/bin/python3.11", "python3 a.py" },
	{ 31, 31, 1, "python3", "S (sleeping)", "/usr/bin/python3.11",
	  "python3 \033[31mb.py" },
	{ 40, 40, 1, "gone", "Z (zombie)", NULL, "" },
	{ 50, 50, 2, "kswapd0", "S (sleeping)", NULL, "" },
	{ 60, 60, 1, "a-very-long-nam", "S (sleeping)", "/opt/x (deleted)", "x" },
};

static char proc[64];

static void write_file(unsigned pid, const char *name, const char *text, size_t bytes)
{
	char *path = mem_printf("%s/%u/%s", proc, pid, name);

	assert_null(file_replace(path, text, bytes, 0644));
	free(path);
}

static int make_proc(void **state)
{
	(void)state;
	strcpy(proc, "/tmp/assay-proc-XXXXXX");
	assert_non_null(mkdtemp(proc));
	for (size_t i = 0; i < sizeof(fakes) / sizeof(*fakes); i++) {
		const struct fake *fake = &fakes[i];
		char *folder = mem_printf("%s/%u", proc, fake->pid);
		char *exe = mem_printf("%s/exe", folder);
		char *status = mem_printf("Name:\t%s\nUmask:\t0022\nState:\t%s\n"
					  "Tgid:\t%u\nPid:\t%u\nPPid:\t%u\n",
					  fake->comm, fake->state, fake->tgid, fake->pid,
					  fake->parent);

		assert_int_equal(mkdir(folder, 0755), 0);
		write_file(fake->pid, "status", status, strlen(status));
		write_file(fake->pid, "cmdline", fake->cmdline,
			   *fake->cmdline ? strlen(fake->cmdline) + 1 : 0);
		if (fake->exe)
			assert_int_equal(symlink(fake->exe, exe), 0);
		free(folder);
		free(exe);
		free(status);
	}
	return 0;
}

static int remove_proc(void **state)
{
	char *command = mem_printf("rm -rf %s", proc);
	int status = system(command);

	(void)state;
	free(command);
	return status;
}

static void words_become_targets(void **state)
{
	static const struct {
		const char *word, *target, *label;
	} cases[] = {
		{ "10", "pid:10", "redis-server (pid 10)" },
		{ "pid:20", "pid:20", "nginx (pid 20)" },
		{ "redis-server", "pid:10", "redis-server (pid 10)" },
		{ "redis-check-rdb", "pid:10", "redis-server (pid 10)" },
		{ "nginx", "pid:20", "nginx (pid 20)" }, /* the root of the three */
		{ "a-very-long-name-indeed", "pid:60", "a-very-long-nam (pid 60)" },
		{ "x", "pid:60", "a-very-long-nam (pid 60)" },
		{ "all", "all", "the whole system" },
		{ "cgroup:/a/b", "cgroup:/a/b", "cgroup:/a/b" },
		{ "service:nginx", "service:nginx", "service:nginx" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *target = NULL, *label = NULL;

		assert_null(target_find(proc, cases[i].word, &target, &label));
		assert_string_equal(target, cases[i].target);
		assert_string_equal(label, cases[i].label);
		free(target);
		free(label);
	}
}

static void what_cannot_be_attached_says_why(void **state)
{
	static const struct {
		const char *word;
		enum err_code code;
		const char *part;
	} cases[] = {
		{ "99", ERR_NOT_FOUND, "no process has the pid 99" },
		{ "0", ERR_INVALID, "not a process id" },
		{ "99999999999", ERR_INVALID, "not a process id" },
		{ "pid:x", ERR_INVALID, "not a process id" },
		{ "nobody", ERR_NOT_FOUND, "no process is called 'nobody'" },
		{ "11", ERR_INVALID, "thread of process 10" },
		{ "40", ERR_NOT_FOUND, "has ended" },
		{ "gone", ERR_NOT_FOUND, "no process is called" },
		{ "50", ERR_INVALID, "kernel thread" },
		{ "python3", ERR_INVALID,
		  "2 processes are called python3, give a pid: 30 (python3 a.py), "
		  "31 (python3 ?[31mb.py)" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *target = NULL, *label = NULL;
		struct err *err = target_find(proc, cases[i].word, &target, &label);

		if (!err || err->code != cases[i].code ||
		    !strstr(err->text, cases[i].part))
			fail_msg("%s: %s", cases[i].word, err ? err->text : target);
		err_free(err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_become_targets),
		cmocka_unit_test(what_cannot_be_attached_says_why),
	};

	return cmocka_run_group_tests(tests, make_proc, remove_proc);
}
