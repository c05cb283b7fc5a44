// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/socket.h>

#include "core/cleanup.h"
#include "core/file.h"
#include "core/mem.h"

/* One scratch folder for the whole program; *state is its path. */
static int make_folder(void **state)
{
	char *path = mem_strdup("/tmp/test_file.XXXXXX");

	*state = path;
	return mkdtemp(path) ? 0 : -1;
}

static int drop_folder(void **state)
{
	CLEANUP(free) char *command = mem_printf("rm -rf '%s'", (char *)*state);
	int status = system(command);

	free(*state);
	return status;
}

static void assert_code(struct err *err, enum err_code code)
{
	assert_non_null(err);
	assert_int_equal(err->code, code);
	err_free(err);
}

static void what_was_replaced_is_read_back(void **state)
{
	CLEANUP(free) char *path = mem_printf("%s/a", (char *)*state);
	CLEANUP(free) char *text = NULL;
	struct stat info;
	size_t bytes;

	assert_null(file_replace(path, "one", 3, 0644));
	assert_null(file_replace(path, "two\0three", 9, 0640));
	assert_null(file_read(path, 100, &text, &bytes));
	assert_int_equal(bytes, 9);
	assert_memory_equal(text, "two\0three", 10);
	assert_int_equal(stat(path, &info), 0);
	assert_int_equal(info.st_mode & 07777, 0640);
}

static void a_failed_replacement_leaves_nothing_behind(void **state)
{
	CLEANUP(free) char *folder = mem_printf("%s/b", (char *)*state);
	CLEANUP(free) char *inside = mem_printf("%s/b/c", (char *)*state);
	CLEANUP(free) char *listing = mem_printf("ls -A '%s'/b.* 2>&1", (char *)*state);

	assert_null(file_mkdirs(inside));
	/* A folder that is not empty cannot be renamed over. */
	assert_code(file_replace(folder, "x", 1, 0644), ERR_IO);

	CLEANUP(free) char *text = NULL;
	FILE *pipe = popen(listing, "r");

	assert_null(file_read_fd(fileno(pipe), 4096, &text, NULL));
	pclose(pipe);
	assert_non_null(strstr(text, "No such file"));
}

static void the_limit_is_the_largest_size_allowed(void **state)
{
	CLEANUP(free) char *path = mem_printf("%s/limit", (char *)*state);
	CLEANUP(free) char *text = NULL;
	char *untouched = (char *)*state;

	assert_null(file_replace(path, "12345", 5, 0600));
	assert_null(file_read(path, 5, &text, NULL));
	assert_string_equal(text, "12345");
	assert_code(file_read(path, 4, &untouched, NULL), ERR_LIMIT);
	assert_ptr_equal(untouched, *state);
}

static void an_endless_file_stops_at_the_limit(void **state)
{
	char *text = NULL;

	(void)state;
	assert_code(file_read("/dev/zero", 1 << 20, &text, NULL), ERR_LIMIT);
	assert_null(text);
}

static void a_missing_file_is_not_found_and_named(void **state)
{
	char *text = NULL;
	struct err *err = file_read("/nonexistent/x", 10, &text, NULL);

	(void)state;
	assert_non_null(strstr(err->text, "/nonexistent/x"));
	assert_code(err, ERR_NOT_FOUND);
}

static void folders_are_made_above_and_twice(void **state)
{
	CLEANUP(free) char *path = mem_printf("%s/d/e/f", (char *)*state);
	struct stat info;

	assert_null(file_mkdirs(path));
	assert_null(file_mkdirs(path));
	assert_int_equal(stat(path, &info), 0);
	assert_true(S_ISDIR(info.st_mode));
	assert_int_equal(info.st_mode & 0777 & ~0750, 0);
}

static void whole_buffers_cross_a_socket_in_pieces(void **state)
{
	enum { BYTES = 1 << 20 };
	CLEANUP(free) unsigned char *sent = mem_alloc(BYTES), *got = mem_alloc(BYTES);
	int pair[2];

	(void)state;
	for (size_t i = 0; i < BYTES; i++)
		sent[i] = (unsigned char)(i * 7 + i / 256);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM, 0, pair), 0);

	pid_t child = fork();

	if (!child)
		_exit(file_write_all(pair[1], sent, BYTES) != NULL);
	close(pair[1]);
	assert_null(file_read_exact(pair[0], got, BYTES));
	assert_memory_equal(got, sent, BYTES);
	assert_code(file_read_exact(pair[0], got, 1), ERR_CLOSED);
	close(pair[0]);
}

static void a_program_beside_us_is_preferred(void **state)
{
	char self[4096];
	ssize_t length = readlink("/proc/self/exe", self, sizeof(self) - 1);

	(void)state;
	assert_true(length > 0);
	self[length] = 0;

	CLEANUP(free) char *found = file_beside(strrchr(self, '/') + 1, "/other");
	CLEANUP(free) char *absent = file_beside("no-such-program", "/other");

	assert_string_equal(found, self);
	assert_string_equal(absent, "/other");
}

static void numbers_are_whole_or_nothing(void **state)
{
	static const char *const bad[] = { "",	 "-1", "+1",
					   " 1", "1 ", "1x",
					   "0x", "x1", "18446744073709551616",
					   "1.5" };
	uint64_t value = 42;

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_false(number_parse(bad[i], &value));
	assert_int_equal(value, 42);
	assert_true(number_parse("18446744073709551615", &value) && value == UINT64_MAX);
	assert_true(number_parse("0x1fF", &value) && value == 0x1ff);
	assert_true(number_parse("010", &value) && value == 10);
}

static void durations_have_units_and_seconds_without(void **state)
{
	static const struct {
		const char *text;
		uint64_t ns;
	} good[] = {
		{ "10", 10000000000 },
		{ "10s", 10000000000 },
		{ "500ms", 500000000 },
		{ "5m", 300000000000 },
		{ "2h", 7200000000000 },
		{ "1d", 86400000000000 },
		{ "3us", 3000 },
		{ "7ns", 7 },
		{ "0", 0 },
	};
	static const char *const bad[] = { "", "s", "-1s", "1 s", "1.5s", "10sec", "5M" };
	uint64_t ns = 1;

	(void)state;
	for (size_t i = 0; i < sizeof(good) / sizeof(*good); i++) {
		assert_null(duration_parse(good[i].text, &ns));
		assert_true(ns == good[i].ns);
	}
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_code(duration_parse(bad[i], &ns), ERR_INVALID);
	assert_code(duration_parse("18446744073709551615d", &ns), ERR_LIMIT);
}

static void sizes_are_powers_of_two(void **state)
{
	uint64_t bytes = 1;

	(void)state;
	assert_null(size_parse("4096", &bytes));
	assert_int_equal(bytes, 4096);
	assert_null(size_parse("64K", &bytes));
	assert_int_equal(bytes, 65536);
	assert_null(size_parse("1G", &bytes));
	assert_int_equal(bytes, 1073741824);
	assert_code(size_parse("1k", &bytes), ERR_INVALID);
	assert_code(size_parse("99999999T", &bytes), ERR_LIMIT);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_replaced_is_read_back),
		cmocka_unit_test(a_failed_replacement_leaves_nothing_behind),
		cmocka_unit_test(the_limit_is_the_largest_size_allowed),
		cmocka_unit_test(an_endless_file_stops_at_the_limit),
		cmocka_unit_test(a_missing_file_is_not_found_and_named),
		cmocka_unit_test(folders_are_made_above_and_twice),
		cmocka_unit_test(whole_buffers_cross_a_socket_in_pieces),
		cmocka_unit_test(a_program_beside_us_is_preferred),
		cmocka_unit_test(numbers_are_whole_or_nothing),
		cmocka_unit_test(durations_have_units_and_seconds_without),
		cmocka_unit_test(sizes_are_powers_of_two),
	};

	return cmocka_run_group_tests(tests, make_folder, drop_folder);
}
