// SPDX-License-Identifier: Apache-2.0
/* Records laid out by hand as perf_event_open(2) describes them. */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/cleanup.h"
#include "event/event.h"
#include "model/fact.h"
#include "probe/sideband.h"

static unsigned char bytes[8192];

static void put(size_t at, uint64_t value, size_t size)
{
	memcpy(bytes + at, &value, size);
}

/* Return: the size. Fields: type 0, misc 4, size 6, pid 8, tid 12, addr 16, len 24,
 * pgoff 32, the file at 40, prot 64, flags 68, name 72, then pid, tid, time. */
static size_t mmap2(const char *path, uint16_t misc)
{
	size_t path_bytes = (strlen(path) + 8) / 8 * 8, size = 72 + path_bytes + 16;

	memset(bytes, 0, sizeof(bytes));
	put(0, PERF_RECORD_MMAP2, 4);
	put(4, misc, 2);
	put(6, size, 2);
	put(8, 100, 4);
	put(12, 101, 4);
	put(16, 0x400000, 8);
	put(24, 0x1000, 8);
	put(32, 0x2000, 8);
	memcpy(bytes + 72, path, strlen(path));
	put(size - 8, 555, 8);
	return size;
}

/* Returns the code of the error, 0 for none. */
static int convert(size_t size, struct str *out)
{
	struct err *err = sideband_convert(bytes, size, out);
	int code = err ? (int)err->code : 0;

	err_free(err);
	return code;
}

static void decode(const struct str *out, struct event *ret_event)
{
	assert_null(event_decode(out->data, out->length, ret_event));
}

static void a_mapping_with_an_inode_is_converted(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };
	struct event event;
	size_t size = mmap2("/usr/lib/libx.so", PERF_RECORD_MISC_USER);

	(void)state;
	put(40, 8, 4);
	put(44, 1, 4);
	put(48, 7777, 8);
	assert_int_equal(convert(size, &out), 0);
	decode(&out, &event);
	assert_int_equal(event.head.kind, ABI_MMAP);
	assert_int_equal(event.head.time_ns, 555);
	assert_int_equal(event.head.pid, 100);
	assert_int_equal(event.head.tid, 101);
	assert_int_equal(event.mmap.addr, 0x400000);
	assert_int_equal(event.mmap.length, 0x1000);
	assert_int_equal(event.mmap.pgoff, 0x2000);
	assert_int_equal(event.mmap.inode, 7777);
	assert_int_equal(event.mmap.dev_major, 8);
	assert_int_equal(event.mmap.dev_minor, 1);
	assert_int_equal(event.mmap.build_id_bytes, 0);
	assert_string_equal(event.path, "/usr/lib/libx.so");
}

/* Another's event may ask for build-ids: the mark is then in ours as well, the id is not. */
static void a_mark_of_a_build_id_is_ignored(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };
	struct event event;
	size_t size = mmap2("/usr/bin/x",
			    PERF_RECORD_MISC_USER | PERF_RECORD_MISC_MMAP_BUILD_ID);

	(void)state;
	put(48, 7777, 8);
	assert_int_equal(convert(size, &out), 0);
	decode(&out, &event);
	assert_int_equal(event.mmap.build_id_bytes, 0);
	assert_int_equal(event.mmap.inode, 7777);
}

static void an_unlinked_file_keeps_its_name_and_is_marked(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };
	struct event event;

	(void)state;
	assert_int_equal(
		convert(mmap2("/opt/app (deleted)", PERF_RECORD_MISC_USER), &out), 0);
	decode(&out, &event);
	assert_string_equal(event.path, "/opt/app");
	assert_int_equal(event.mmap.flags, ABI_MMAP_DELETED);
}

static void losses_become_losses_of_mappings(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };
	struct event event;

	(void)state;
	memset(bytes, 0, sizeof(bytes));
	put(0, PERF_RECORD_LOST, 4);
	put(6, 40, 2);
	put(16, 12, 8);
	put(32, 999, 8);
	assert_int_equal(convert(40, &out), 0);
	decode(&out, &event);
	assert_int_equal(event.loss.kind, ABI_MMAP);
	assert_int_equal(event.loss.reason, LOSS_SIDEBAND);
	assert_int_equal(event.loss.lost, 12);
	assert_int_equal(event.head.time_ns, 999);
}

static void what_we_did_not_ask_for_is_left_out(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };

	(void)state;
	assert_int_equal(convert(mmap2("/tmp/data", PERF_RECORD_MISC_USER |
							    PERF_RECORD_MISC_MMAP_DATA),
				 &out),
			 0);
	assert_int_equal(convert(mmap2("[kernel]", PERF_RECORD_MISC_KERNEL), &out), 0);
	put(0, PERF_RECORD_COMM, 4);
	put(6, 24, 2);
	assert_int_equal(convert(24, &out), 0);
	assert_int_equal(out.length, 0);
}

static void records_that_contradict_themselves_are_refused(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };
	size_t size = mmap2("/x", PERF_RECORD_MISC_USER);

	(void)state;
	assert_int_equal(convert(size - 1, &out), ERR_FORMAT);
	assert_int_equal(convert(4, &out), ERR_FORMAT);
	memset(bytes + 72, 'x', 8); /* a name without an end */
	assert_int_equal(convert(size, &out), ERR_FORMAT);
	put(6, 80, 2); /* no room for the trailer */
	assert_int_equal(convert(80, &out), ERR_FORMAT);
	assert_int_equal(out.length, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapping_with_an_inode_is_converted),
		cmocka_unit_test(a_mark_of_a_build_id_is_ignored),
		cmocka_unit_test(an_unlinked_file_keeps_its_name_and_is_marked),
		cmocka_unit_test(losses_become_losses_of_mappings),
		cmocka_unit_test(what_we_did_not_ask_for_is_left_out),
		cmocka_unit_test(records_that_contradict_themselves_are_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
