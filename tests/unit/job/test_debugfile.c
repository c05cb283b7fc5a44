// SPDX-License-Identifier: Apache-2.0
/* Truth: where gdb's manual says it looks, and the check value of CRC-32. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/file.h"
#include "job/debugfile.h"

static const struct build_id id = { .bytes = { 0xab, 0xcd, 0xef, 0x12 }, .size = 4 };
static const struct build_id dwz_id = { .bytes = { 0x11, 0x22, 0x33 }, .size = 3 };

static void expect(const struct debugfile_paths *paths, const char *const *want)
{
	size_t count = 0;

	for (; want[count]; count++) {
		assert_true(count < paths->count);
		assert_string_equal(paths->path[count], want[count]);
	}
	assert_int_equal(paths->count, count);
}

static void the_places_of_a_debug_file_best_first(void **state)
{
	static const char *const want[] = {
		"/usr/lib/debug/.build-id/ab/cdef12.debug",
		"/usr/bin/cdef12.debug",
		"/usr/bin/.debug/cdef12.debug",
		"/usr/lib/debug/usr/bin/cdef12.debug",
		"/usr/lib/debug/bin/cdef12.debug",
		NULL,
	};
	CLEANUP(debugfile_paths_fini) struct debugfile_paths paths;

	(void)state;
	debugfile_candidates(&(struct debugfile_query){ .path = "/usr/bin/redis-server",
							.id = &id,
							.debuglink = "cdef12.debug" },
			     &paths);
	expect(&paths, want);
}

static void a_container_s_own_files_come_before_the_host_s(void **state)
{
	static const char *const want[] = {
		"/proc/7/root/usr/lib/debug/.build-id/ab/cdef12.debug",
		"/proc/7/root/opt/x.debug",
		"/proc/7/root/opt/.debug/x.debug",
		"/proc/7/root/usr/lib/debug/opt/x.debug",
		"/proc/7/root/usr/lib/debug/usr/opt/x.debug",
		"/usr/lib/debug/.build-id/ab/cdef12.debug",
		NULL,
	};
	CLEANUP(debugfile_paths_fini) struct debugfile_paths paths;

	(void)state;
	debugfile_candidates(&(struct debugfile_query){ .root = "/proc/7/root",
							.path = "/opt/x",
							.id = &id,
							.debuglink = "x.debug" },
			     &paths);
	expect(&paths, want);
}

static void a_name_in_a_file_does_not_climb_out_of_the_root(void **state)
{
	static const char *const want[] = {
		"/proc/7/root/etc/shadow",
		"/proc/7/root/usr/lib/debug/.build-id/11/2233.debug",
		"/usr/lib/debug/.build-id/11/2233.debug",
		NULL,
	};
	static const char *const none[] = { NULL };
	CLEANUP(debugfile_paths_fini) struct debugfile_paths link = { 0 }, alt = { 0 };

	(void)state;
	debugfile_candidates(&(struct debugfile_query){ .path = "/opt/x",
							.debuglink = "../../etc/shadow" },
			     &link);
	expect(&link, none);
	debugfile_alt_candidates(
		&(struct debugfile_query){ .root = "/proc/7/root",
					   .path = "/opt/x",
					   .altlink = "../../../../../../etc/shadow",
					   .altlink_id = &dwz_id,
					   .debug_path = "/usr/lib/debug/x" },
		&alt);
	expect(&alt, want);
}

static void a_dwz_file_is_found_as_debian_links_it(void **state)
{
	static const char *const want[] = {
		"/usr/lib/debug/.dwz/x86_64-linux-gnu/redis-tools.debug",
		"/usr/lib/debug/.build-id/11/2233.debug",
		NULL,
	};
	CLEANUP(debugfile_paths_fini)
	struct debugfile_paths absolute = { 0 }, relative = { 0 };
	struct debugfile_query query = {
		.path = "/usr/bin/redis-server",
		.altlink = "/usr/lib/debug/.dwz/x86_64-linux-gnu/redis-tools.debug",
		.altlink_id = &dwz_id,
		.debug_path = "/usr/lib/debug/.build-id/ab/cdef12.debug",
	};

	(void)state;
	debugfile_alt_candidates(&query, &absolute);
	expect(&absolute, want);
	query.altlink = "../../.dwz/x86_64-linux-gnu/redis-tools.debug";
	debugfile_alt_candidates(&query, &relative);
	expect(&relative, want);
}

static void a_file_is_not_its_own_debug_file(void **state)
{
	CLEANUP(debugfile_paths_fini) struct debugfile_paths paths;

	(void)state;
	debugfile_candidates(
		&(struct debugfile_query){ .path = "/opt/x", .debuglink = "x" }, &paths);
	for (size_t i = 0; i < paths.count; i++)
		assert_string_not_equal(paths.path[i], "/opt/x");
	assert_true(paths.count > 0);
}

static void the_checksum_is_crc_32(void **state)
{
	CLEANUP(close) int fd = memfd_create("debug", MFD_CLOEXEC);

	(void)state;
	assert_int_equal(debugfile_crc(0, "123456789", 9), 0xcbf43926);
	assert_int_equal(debugfile_crc(debugfile_crc(0, "1234", 4), "56789", 5),
			 0xcbf43926);
	assert_null(file_write_all(fd, "123456789", 9));
	assert_null(debugfile_check_crc(fd, 0xcbf43926));
	struct err *err = debugfile_check_crc(fd, 0xcbf43927);

	assert_non_null(err);
	assert_int_equal(err->code, ERR_NOT_FOUND);
	err_free(err);
}

static void build_ids_match_only_when_all_of_them_is_equal(void **state)
{
	const struct build_id none = { 0 };
	struct build_id longer = id;

	(void)state;
	longer.size = 5;
	assert_true(debugfile_matches(&id, &id));
	assert_false(debugfile_matches(&id, &longer));
	assert_false(debugfile_matches(&id, &dwz_id));
	assert_false(debugfile_matches(&none, &none));
}

static void the_advice_names_the_build_id_and_the_package(void **state)
{
	CLEANUP(free) char *with = debugfile_advice("/usr/bin/x", &id, "xpkg");
	CLEANUP(free) char *without = debugfile_advice("/usr/bin/x", &id, NULL);
	CLEANUP(free) char *bare = debugfile_advice("/usr/bin/x", NULL, NULL);

	(void)state;
	assert_non_null(strstr(with, "abcdef12"));
	assert_non_null(strstr(with, "xpkg-dbgsym"));
	assert_non_null(strstr(without, "abcdef12"));
	assert_non_null(strstr(without, "-dbgsym"));
	assert_non_null(strstr(bare, "no build-id"));
	assert_null(strchr(with, '\n'));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_places_of_a_debug_file_best_first),
		cmocka_unit_test(a_container_s_own_files_come_before_the_host_s),
		cmocka_unit_test(a_name_in_a_file_does_not_climb_out_of_the_root),
		cmocka_unit_test(a_dwz_file_is_found_as_debian_links_it),
		cmocka_unit_test(a_file_is_not_its_own_debug_file),
		cmocka_unit_test(the_checksum_is_crc_32),
		cmocka_unit_test(build_ids_match_only_when_all_of_them_is_equal),
		cmocka_unit_test(the_advice_names_the_build_id_and_the_package),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
