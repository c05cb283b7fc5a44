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
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/pack.h"
#include "job/cache.h"
#include "job/kept.h"

#define ROOM (1ull << 30)

struct rig {
	char *folder;
	int module_fd;
};

static int set_up(void **state)
{
	struct rig *rig = mem_alloc(sizeof(*rig));

	rig->folder = mem_strdup("/tmp/test-kept-XXXXXX");
	rig->module_fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	*state = rig;
	return mkdtemp(rig->folder) ? 0 : -1;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	cache_evict(rig->folder, 0);
	rmdir(rig->folder);
	close(rig->module_fd);
	free(rig->folder);
	free(rig);
	return 0;
}

static void put_in(struct kept *kept, uint64_t version, uint64_t exact, const char *text)
{
	CLEANUP(str_fini) struct str pack = { 0 };
	struct job_reply reply = { .kind = JOB_SITES, .more = true };

	pack_begin(&pack, version);
	pack_put(&pack, exact, exact + 1000, text, strlen(text));
	reply.sites.kept = pack.data;
	reply.sites.kept_bytes = pack.length;
	kept_take(kept, &reply);
}

static size_t count_kept(const struct rig *rig, const char *path)
{
	CLEANUP(kept_free)
	struct kept *kept = kept_open(rig->folder, path, rig->module_fd);
	CLEANUP(free) char *bytes = NULL;
	struct pack pack;
	size_t size = 0, count;

	if (kept_fd(kept) < 0)
		return 0;
	assert_null(file_pread(kept_fd(kept), PACK_MAX_BYTES, &bytes, &size));
	assert_true(pack_read(bytes, size, &pack));
	count = pack.items.count;
	pack_fini(&pack);
	return count;
}

static void save_one(const struct rig *rig, const char *path, uint64_t version,
		     uint64_t exact)
{
	CLEANUP(kept_free)
	struct kept *kept = kept_open(rig->folder, path, rig->module_fd);

	put_in(kept, version, exact, "something");
	assert_null(kept_save(kept, ROOM));
}

static void what_is_saved_is_there_the_next_time(void **state)
{
	struct rig *rig = *state;
	CLEANUP(kept_free)
	struct kept *kept = kept_open(rig->folder, "/a", rig->module_fd);

	assert_int_equal(kept_fd(kept), -1);
	put_in(kept, 7, 1, "one");
	put_in(kept, 7, 2, "two");
	assert_int_equal(count_kept(rig, "/a"), 0);
	assert_null(kept_save(kept, ROOM));
	assert_int_equal(count_kept(rig, "/a"), 2);
	assert_int_equal(count_kept(rig, "/b"), 0);
}

static void two_at_a_time_lose_nothing_that_was_saved(void **state)
{
	struct rig *rig = *state;
	CLEANUP(kept_free)
	struct kept *one = kept_open(rig->folder, "/a", rig->module_fd);
	CLEANUP(kept_free)
	struct kept *two = kept_open(rig->folder, "/a", rig->module_fd);

	put_in(one, 7, 1, "one");
	put_in(two, 7, 2, "two");
	assert_null(kept_save(one, ROOM));
	assert_null(kept_save(two, ROOM));
	assert_int_equal(count_kept(rig, "/a"), 2);
}

static void another_analyser_starts_anew(void **state)
{
	struct rig *rig = *state;

	save_one(rig, "/a", 7, 1);
	save_one(rig, "/a", 7, 2);
	assert_int_equal(count_kept(rig, "/a"), 2);
	save_one(rig, "/a", 8, 3);
	assert_int_equal(count_kept(rig, "/a"), 1);
}

static void what_others_may_write_is_not_used(void **state)
{
	struct rig *rig = *state;
	CLEANUP(free)
	char *command = mem_printf("chmod go+w %s/*" KEPT_SUFFIX, rig->folder);

	save_one(rig, "/a", 7, 1);
	assert_int_equal(system(command), 0);
	assert_int_equal(count_kept(rig, "/a"), 0);
}

static void what_is_no_pack_is_not_taken(void **state)
{
	struct rig *rig = *state;
	CLEANUP(kept_free)
	struct kept *kept = kept_open(rig->folder, "/a", rig->module_fd);
	struct job_reply reply = { .kind = JOB_SITES };

	reply.sites.kept = "sixteen bytes and a few more";
	reply.sites.kept_bytes = 28;
	kept_take(kept, &reply);
	reply.sites.kept_bytes = 3;
	kept_take(kept, &reply);
	assert_null(kept_save(kept, ROOM));
	assert_int_equal(count_kept(rig, "/a"), 0);
}

static void the_folder_stays_below_its_limit(void **state)
{
	struct rig *rig = *state;
	char path[] = "/0";

	for (; path[1] < '9'; path[1]++) {
		CLEANUP(kept_free)
		struct kept *kept = kept_open(rig->folder, path, rig->module_fd);

		put_in(kept, 7, 1, "something");
		assert_null(kept_save(kept, 300));
	}
	path[1] = '8';
	assert_int_equal(count_kept(rig, "/0"), 0);
	assert_int_equal(count_kept(rig, path), 1);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_is_saved_is_there_the_next_time),
		TEST(two_at_a_time_lose_nothing_that_was_saved),
		TEST(another_analyser_starts_anew),
		TEST(what_others_may_write_is_not_used),
		TEST(what_is_no_pack_is_not_taken),
		TEST(the_folder_stays_below_its_limit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
