// SPDX-License-Identifier: Apache-2.0
#include "unit/live/feed.h"

static void a_program_that_is_not_pie_keeps_its_addresses(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	const struct abi_segment fixed = { 0x1000, 0x401000, 0x5000 };

	(void)state;
	task(machine, ABI_TASK_SEEN, PID, START, "old");
	uint64_t key = map_file(machine, PID, START, 0x401000, 0x5000, 0x1000, "/old", 6);

	module_is(machine, key, 7, "/old", fixed);
	sample(machine, PID, START, 0x401abc);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 7, 0x401abc), 1);
}

/* lld and gold put text at a va that differs from its file offset. */
static void va_and_file_offset_may_differ(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	const struct abi_segment lld = { 0x16d0, 0x26d0, 0x900 };

	(void)state;
	task(machine, ABI_TASK_SEEN, PID, START, "lld");
	uint64_t key = map_file(machine, PID, START, EXE, 0x1000, 0x1000, "/lld", 6);

	module_is(machine, key, 7, "/lld", lld);
	sample(machine, PID, START, EXE + 0x6d4);
	sample(machine, PID, START, EXE + 0x100); /* before the segment's bytes */
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 7, 0x26d4), 1);
	assert_int_equal(lost(machine, ABI_ACCESS, LOSS_NO_MAPPING), 1);
}

static void a_replaced_file_of_the_same_path_is_another_module(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	const char *path = "/lib/same.so";

	(void)state;
	task(machine, ABI_TASK_SEEN, PID, START, "old");
	task(machine, ABI_TASK_SEEN, 11, START, "new");
	uint64_t was = map_file(machine, PID, START, LIB, 0x8000, 0x1000,
				"/lib/same.so (deleted)", 20);
	uint64_t is = map_file(machine, 11, START, LIB, 0x8000, 0x1000, path, 21);

	assert_true(was != is);
	sample(machine, PID, START, LIB);
	sample(machine, 11, START, LIB);
	assert_int_equal(machine->modules.count, 2);
	assert_true(machine->modules.data[0].deleted);
	assert_string_equal(machine->modules.data[0].path, path);
	assert_false(machine->modules.data[1].deleted);
	module_is(machine, was, 600, path, plain);
	module_is(machine, is, 601, path, plain);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 600, 0x1000), 1);
	assert_int_equal(samples_at(machine, 11, START, 601, 0x1000), 1);
}

/* File systems give a freed inode number to the next file at once. */
static void an_inode_number_that_comes_back_is_identified_again(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	task(machine, ABI_TASK_EXIT, PID, START, "prog");
	for (int i = 0; i < 20; i++)
		pass(machine, S);
	task(machine, ABI_TASK_SEEN, 11, 120 * S, "prog");
	uint64_t key =
		map_file(machine, 11, 120 * S, EXE, 0x8000, 0x1000, "/bin/prog", 5);

	sample(machine, 11, 120 * S, EXE);
	assert_int_equal(machine->modules.count, 1);
	module_is(machine, key, 101, "/bin/prog", plain);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, 11, 120 * S, 101, 0x1000), 1);
	assert_int_equal(samples_at(machine, 0, 0, 100, 0x1000), 0);
}

static void the_vdso_is_one_module_in_every_process(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	const struct abi_segment whole = { 0, 0, 0x1800 };
	struct event event = { .path = "[vdso]" };

	(void)state;
	event.mmap = (struct abi_mmap){ .addr = LIB };
	module_is(machine, live_key(&event), 700, "[vdso]", whole);
	task(machine, ABI_TASK_SEEN, PID, START, "a");
	task(machine, ABI_TASK_SEEN, 11, START, "b");
	map_file(machine, PID, START, LIB, 0x2000, 0, "[vdso]", 0);
	map_file(machine, 11, START, LIB + 0x300000, 0x2000, 0, "[vdso]", 0);
	sample(machine, PID, START, LIB + 0x900);
	sample(machine, 11, START, LIB + 0x300900);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, 0, 0, 700, 0x900), 2);
	assert_int_equal(machine->modules.count, 0);
}

static void generated_code_is_counted_as_anonymous(void **state)
{
	static const char *const paths[] = { "//anon", "", "[heap]", "[anon:v8]" };
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	task(machine, ABI_TASK_SEEN, PID, START, "jit");
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		uint64_t addr = LIB + i * 0x10000;

		map_file(machine, PID, START, addr, 0x1000, 0, paths[i], 0);
		sample(machine, PID, START, addr + 8);
	}
	/* A memfd may be a program; it counts as generated code when it is none. */
	uint64_t key = map_file(machine, PID, START, LIB + 0x90000, 0x1000, 0,
				"/memfd:code (deleted)", 77);

	sample(machine, PID, START, LIB + 0x90010);
	module_is(machine, key, 0, "", plain);
	pass(machine, 2 * S);
	assert_int_equal(lost(machine, ABI_ACCESS, LOSS_ANONYMOUS), 5);
	assert_int_equal(machine->modules.count, 1);
}

static void a_path_of_a_container_is_asked_for_with_its_process(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	task(machine, ABI_TASK_SEEN, 4321, START, "app");
	map_file(machine, 4321, START, LIB, 0x8000, 0x1000, "/opt/libapp.so", 3);
	sample(machine, 4321, START, LIB);
	assert_int_equal(machine->modules.count, 1);
	assert_int_equal(machine->modules.data[0].pid, 4321);
	assert_int_equal(machine->modules.data[0].start_ns, START);
	assert_int_equal(machine->modules.data[0].length, 0x8000);
	assert_string_equal(machine->modules.data[0].path, "/opt/libapp.so");
}

static void a_file_that_could_not_be_opened_is_tried_again_when_mapped_anew(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	task(machine, ABI_TASK_SEEN, PID, START, "brief");
	uint64_t key = map_file(machine, PID, START, EXE, 0x8000, 0x1000, "/brief", 5);

	sample(machine, PID, START, EXE);
	module_is(machine, key, 0, "", plain);
	pass(machine, 2 * S);
	assert_int_equal(lost(machine, ABI_ACCESS, LOSS_NO_MODULE), 1);
	task(machine, ABI_TASK_SEEN, 11, START, "brief");
	map_file(machine, 11, START, EXE, 0x8000, 0x1000, "/brief", 5);
	sample(machine, 11, START, EXE);
	assert_int_equal(machine->modules.count, 2);
	assert_int_equal(machine->modules.data[1].pid, 11);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_program_that_is_not_pie_keeps_its_addresses),
		cmocka_unit_test(va_and_file_offset_may_differ),
		cmocka_unit_test(a_replaced_file_of_the_same_path_is_another_module),
		cmocka_unit_test(an_inode_number_that_comes_back_is_identified_again),
		cmocka_unit_test(the_vdso_is_one_module_in_every_process),
		cmocka_unit_test(generated_code_is_counted_as_anonymous),
		cmocka_unit_test(a_path_of_a_container_is_asked_for_with_its_process),
		cmocka_unit_test(
			a_file_that_could_not_be_opened_is_tried_again_when_mapped_anew),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
