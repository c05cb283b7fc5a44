// SPDX-License-Identifier: Apache-2.0
#include <elf.h>
#include <fcntl.h>
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

#include "core/cleanup.h"
#include "core/mem.h"
#include "daemon/hand.h"

static struct err *ask(struct open_request request, int *ret_fd)
{
	*ret_fd = -1;
	return hand_open(&request, ret_fd);
}

static void our_own_program_is_handed_out_as_an_elf_file(void **state)
{
	char magic[SELFMAG];
	struct stat ours, theirs;
	int fd;

	(void)state;
	assert_null(
		ask((struct open_request){ .what = OPEN_EXE, .pid = (uint32_t)getpid() },
		    &fd));
	assert_int_equal(pread(fd, magic, SELFMAG, 0), SELFMAG);
	assert_memory_equal(magic, ELFMAG, SELFMAG);
	assert_int_equal(fstat(fd, &ours), 0);
	assert_int_equal(stat("/proc/self/exe", &theirs), 0);
	assert_int_equal(ours.st_ino, theirs.st_ino);
	close(fd);
}

/* What a daemon that was taken over might ask for. */
static void nothing_but_elf_files_and_named_entries_is_handed_out(void **state)
{
	uint32_t pid = (uint32_t)getpid();
	const struct open_request asked[] = {
		{ .what = OPEN_ROOT_PATH, .pid = pid, .path = "/etc/shadow" },
		{ .what = OPEN_ROOT_PATH, .pid = pid, .path = "/etc/../etc/passwd" },
		{ .what = OPEN_ROOT_PATH, .pid = pid, .path = "/proc/self/mem" },
		{ .what = OPEN_ROOT_PATH, .pid = pid, .path = "/dev/null" },
		{ .what = OPEN_ROOT_PATH, .pid = pid, .path = "bin/true" },
		{ .what = OPEN_ROOT_PATH, .pid = pid, .path = "" },
		{ .what = OPEN_ROOT_PATH, .pid = 0, .path = "/bin/true" },
		{ .what = OPEN_DEBUG_PATH, .path = "/etc/passwd" },
		{ .what = OPEN_DEBUG_PATH, .path = "/bin/true" },
		{ .what = OPEN_DEBUG_PATH, .path = "/usr/lib/debug/../../../bin/true" },
		{ .what = OPEN_KMOD_NOTES, .path = "../../../etc" },
		{ .what = OPEN_KMOD_NOTES, .path = "a/b" },
		{ .what = OPENS },
		{ .what = (enum open_what)0 },
		{ .what = (enum open_what) - 3 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(asked) / sizeof(*asked); i++) {
		int fd;
		struct err *err = ask(asked[i], &fd);

		if (!err)
			fail_msg("request %zu was answered", i);
		assert_int_equal(fd, -1);
		err_free(err);
	}
}

static void a_path_of_a_container_is_opened_below_its_root(void **state)
{
	int fd;

	(void)state;
	assert_null(ask((struct open_request){ .what = OPEN_ROOT_PATH,
					       .pid = (uint32_t)getpid(),
					       .path = "/usr/bin/env" },
			&fd));
	close(fd);
}

static void a_process_that_started_at_another_time_is_not_found(void **state)
{
	struct open_request request = { .what = OPEN_MAPS,
					.pid = (uint32_t)getpid(),
					.start_ns = 10000000 };
	int fd;
	struct err *err = ask(request, &fd);

	(void)state;
	assert_non_null(err);
	assert_int_equal(err->code, ERR_NOT_FOUND);
	err_free(err);
}

/* An independent reading of field 22 of our stat. */
static void a_process_with_the_right_start_time_is_handed_out(void **state)
{
	unsigned long long ticks = 0;
	int fd;
	FILE *file = fopen("/proc/self/stat", "r");

	(void)state;
	assert_non_null(file);
	assert_int_equal(fscanf(file,
				"%*d %*s %*c %*d %*d %*d %*d %*d %*u %*u %*u %*u %*u %*u "
				"%*u %*d %*d %*d %*d %*d %*d %llu",
				&ticks),
			 1);
	fclose(file);
	assert_null(ask((struct open_request){ .what = OPEN_MAPS,
					       .pid = (uint32_t)getpid(),
					       .start_ns = ticks * 10000000 },
			&fd));
	close(fd);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(our_own_program_is_handed_out_as_an_elf_file),
		cmocka_unit_test(nothing_but_elf_files_and_named_entries_is_handed_out),
		cmocka_unit_test(a_path_of_a_container_is_opened_below_its_root),
		cmocka_unit_test(a_process_that_started_at_another_time_is_not_found),
		cmocka_unit_test(a_process_with_the_right_start_time_is_handed_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
