// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/cleanup.h"
#include "event/event.h"

/* Records are laid out by hand here: offsets are those of the comments in bpf/abi.h. */
static unsigned char bytes[8192];

static void put(size_t at, uint64_t value, size_t size)
{
	memcpy(bytes + at, &value, size);
}

static void begin(uint16_t kind, uint32_t size)
{
	memset(bytes, 0, sizeof(bytes));
	put(0, kind, 2);
	put(4, size, 4);
	put(8, 1234, 8); /* time */
	put(16, 42, 4);	 /* pid */
}

static bool decodes(size_t size, struct event *ret_event)
{
	struct err *err = event_decode(bytes, size, ret_event);

	if (!err)
		return true;
	assert_int_equal(err->code, ERR_FORMAT);
	err_free(err);
	return false;
}

static void begin_mmap(const char *path)
{
	size_t path_bytes = strlen(path) + 1;

	begin(ABI_MMAP, (uint32_t)(120 + path_bytes));
	put(48, 0x7f0000001000, 8);
	put(56, 0x2000, 8);
	put(92, 20, 2); /* build-id */
	put(94, path_bytes, 2);
	memset(bytes + 96, 0xab, 20);
	memcpy(bytes + 120, path, path_bytes);
}

static void a_mapping_has_its_path_and_build_id(void **state)
{
	struct event event;

	(void)state;
	begin_mmap("/usr/bin/true");
	assert_true(decodes(120 + 14, &event));
	assert_int_equal(event.head.time_ns, 1234);
	assert_int_equal(event.head.pid, 42);
	assert_int_equal(event.mmap.addr, 0x7f0000001000);
	assert_int_equal(event.mmap.build_id_bytes, 20);
	assert_int_equal(event.mmap.build_id[19], 0xab);
	assert_string_equal(event.path, "/usr/bin/true");
}

static void a_record_must_have_exactly_the_size_it_claims(void **state)
{
	struct event event;

	(void)state;
	begin(ABI_ACCESS, 232);
	put(88, ABI_SOURCE_CLOCK, 4);
	assert_true(decodes(232, &event));
	assert_false(decodes(231, &event));
	assert_false(decodes(233, &event));
	put(4, 240, 4);
	assert_false(decodes(240, &event));
	assert_false(decodes(0, &event));
	assert_false(decodes(47, &event));
}

static void counts_that_contradict_the_size_are_refused(void **state)
{
	static const struct {
		size_t at, size;
		uint64_t value;
	} lies[] = {
		{ 94, 2, 13 },	       /* path one byte shorter than the tail */
		{ 94, 2, 15 },	       /* and longer */
		{ 94, 2, 0 },	       /* no path at all */
		{ 94, 2, 65535 },      /* beyond the limit */
		{ 92, 2, 21 },	       /* build-id beyond its array */
		{ 56, 8, UINT64_MAX }, /* mapping that wraps around */
		{ 120 + 13, 1, 'x' },  /* path without an end */
		{ 120 + 3, 1, 0 },     /* path with two */
		{ 2, 2, 512 },	       /* CPU beyond ABI_MAX_CPUS */
	};
	struct event event;

	(void)state;
	for (size_t i = 0; i < sizeof(lies) / sizeof(lies[0]); i++) {
		begin_mmap("/usr/bin/true");
		assert_true(decodes(134, &event));
		put(lies[i].at, lies[i].value, lies[i].size);
		assert_false(decodes(134, &event));
	}
}

static void kinds_that_do_not_exist_yet_are_refused(void **state)
{
	static const uint16_t kinds[] = { ABI_NONE, ABI_SPAN, ABI_RESOURCE, ABI_KINDS,
					  65535 };
	struct event event;

	(void)state;
	for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++) {
		begin(kinds[i], 232);
		assert_false(decodes(232, &event));
	}
}

static void a_tick_carries_its_stack(void **state)
{
	struct event event;

	(void)state;
	begin(ABI_TICK, 1232 + 5);
	put(64, 5, 4); /* stack_bytes */
	memcpy(bytes + 1232, "stack", 5);
	assert_true(decodes(1237, &event));
	assert_memory_equal(event.stack, "stack", 5);
	put(60, 65, 2); /* kernel_depth */
	assert_false(decodes(1237, &event));
	put(60, 64, 2);
	assert_true(decodes(1237, &event));
	put(64, ABI_STACK_COPY_MAX + 1, 4);
	assert_false(decodes(1237, &event));
}

static void a_task_needs_a_known_operation_and_an_ended_comm(void **state)
{
	struct event event;

	(void)state;
	begin(ABI_TASK, 96);
	assert_false(decodes(96, &event));
	put(48, ABI_TASK_EXIT, 4);
	assert_true(decodes(96, &event));
	memset(bytes + 80, 'x', 16);
	assert_false(decodes(96, &event));
}

static void what_is_encoded_decodes_to_the_same(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };
	struct event in = {
		.module = {
			.head = { .kind = ABI_MODULE, .time_ns = 7 },
			.module_id = 0x1122334455667788,
			.kind = ABI_MODULE_FILE,
			.segment_count = 2,
			.build_id_bytes = 3,
			.build_id = { 1, 2, 3 },
		},
		.path = "/lib/x.so",
		.segments = { { 0x1000, 0x401000, 0x200 }, { 0x3000, 0x404000, 0x10 } },
	};
	struct event back;

	(void)state;
	event_encode(&in, &out);
	assert_int_equal(out.length, 120 + 2 * 24 + 10);
	assert_null(event_decode(out.data, out.length, &back));
	assert_int_equal(back.module.module_id, in.module.module_id);
	assert_int_equal(back.segments[1].va, 0x404000);
	assert_string_equal(back.path, "/lib/x.so");
}

static void a_path_too_long_for_any_file_is_cut(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };
	static char path[6000];
	struct event in = { .mmap = { .head = { .kind = ABI_MMAP } }, .path = path };
	struct event back;

	(void)state;
	memset(path, 'p', sizeof(path) - 1);
	event_encode(&in, &out);
	assert_null(event_decode(out.data, out.length, &back));
	assert_int_equal(strlen(back.path), ABI_PATH_MAX - 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapping_has_its_path_and_build_id),
		cmocka_unit_test(a_record_must_have_exactly_the_size_it_claims),
		cmocka_unit_test(counts_that_contradict_the_size_are_refused),
		cmocka_unit_test(kinds_that_do_not_exist_yet_are_refused),
		cmocka_unit_test(a_tick_carries_its_stack),
		cmocka_unit_test(a_task_needs_a_known_operation_and_an_ended_comm),
		cmocka_unit_test(what_is_encoded_decodes_to_the_same),
		cmocka_unit_test(a_path_too_long_for_any_file_is_cut),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
