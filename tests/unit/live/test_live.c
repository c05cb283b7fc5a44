// SPDX-License-Identifier: Apache-2.0
#include "unit/live/feed.h"

#define PID    10
#define START  (50 * S)
#define LIB    0x7f0000000000ull
#define EXE    0x555555554000ull
#define KERNEL 0xffffffff9a000000ull

/* One executable segment as linkers make them: file 0x1000 at va 0x1000. */
static const struct abi_segment plain = { 0x1000, 0x1000, 0x8000 };

/* A process with one identified program at EXE. */
static uint64_t a_program(struct machine *machine)
{
	task(machine, ABI_TASK_SEEN, PID, START, "prog");
	uint64_t key = map_file(machine, PID, START, EXE, 0x8000, 0x1000, "/bin/prog", 5);

	module_is(machine, key, 100, "/bin/prog", plain);
	return key;
}

static void a_sample_is_charged_to_module_and_va(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	sample(machine, PID, START, EXE + 0x234);
	sample(machine, PID, START, EXE + 0x234);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1234), 2);
	const struct kept *row = process_row(machine, PID, START);

	assert_non_null(row);
	assert_string_equal(row->path, "/bin/prog");
	assert_int_equal(row->fact.process.exe_module_id, 100);
}

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

static void a_library_opened_during_the_run_is_found(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	pass(machine, S);
	uint64_t key = map_file(machine, PID, START, LIB, 0x8000, 0x1000, "/lib/x.so", 8);

	sample(machine, PID, START, LIB + 0x10);
	assert_int_equal(machine->modules.count, 1);
	assert_int_equal(machine->modules.data[0].key, key);
	assert_int_equal(machine->modules.data[0].addr, LIB);
	module_is(machine, key, 200, "/lib/x.so", plain);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 200, 0x1010), 1);
}

static void a_fork_without_exec_runs_in_its_parents_image(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	fork_of(machine, PID, START, 11, 60 * S);
	sample(machine, 11, 60 * S, EXE + 4);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, 11, 60 * S, 100, 0x1004), 1);
	assert_int_equal(machine->processes.count, 0);
	assert_int_equal(process_row(machine, 11, 60 * S)->fact.process.parent_id,
			 process_id_of(BOOT, PID, START));
}

static void after_exec_the_old_image_is_gone(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	machine->now_ns += S;
	/* The kernel reports the new image's mappings before the exec itself. */
	uint64_t key = map_file(machine, PID, START, EXE + 0x100000, 0x8000, 0x1000,
				"/bin/b", 9);

	task(machine, ABI_TASK_EXEC, PID, START, "b");
	module_is(machine, key, 300, "/bin/b", plain);
	sample(machine, PID, START, EXE + 0x100010);
	sample(machine, PID, START, EXE + 0x10);
	pass(machine, S);
	pass(machine, 4 * S);
	assert_int_equal(samples_at(machine, PID, START, 300, 0x1010), 1);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1010), 0);
	assert_int_equal(lost(machine, ABI_ACCESS, LOSS_NO_MAPPING), 1);
	assert_string_equal(process_row(machine, PID, START)->path, "/bin/b");
}

static void a_pid_that_comes_back_is_another_process(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	task(machine, ABI_TASK_EXIT, PID, START, "prog");
	task(machine, ABI_TASK_SEEN, PID, 99 * S, "next");
	uint64_t key =
		map_file(machine, PID, 99 * S, EXE, 0x8000, 0x1000, "/bin/next", 6);

	module_is(machine, key, 400, "/bin/next", plain);
	sample(machine, PID, 99 * S, EXE + 1);
	sample(machine, PID, START, EXE + 1); /* late, of the first */
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, 99 * S, 400, 0x1001), 1);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1001), 1);
	assert_true(process_row(machine, PID, START)->fact.process.end_ns > 0);
	assert_int_equal(process_row(machine, PID, 99 * S)->fact.process.end_ns, 0);
}

static void perf_side_band_without_start_time_names_the_present_process(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	/* First of all records; the sample tells who it was. */
	uint64_t key = map_file(machine, PID, 0, EXE, 0x8000, 0x1000, "/bin/prog", 5);

	module_is(machine, key, 100, "/bin/prog", plain);
	sample(machine, PID, START, EXE + 8);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1008), 1);
}

static void a_mapping_over_another_hides_it(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	uint64_t key =
		map_file(machine, PID, START, EXE + 0x1000, 0x1000, 0x1000, "/y.so", 7);

	module_is(machine, key, 500, "/y.so", plain);
	sample(machine, PID, START, EXE + 0x0fff);
	sample(machine, PID, START, EXE + 0x1000);
	sample(machine, PID, START, EXE + 0x2000);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1fff), 1);
	assert_int_equal(samples_at(machine, PID, START, 500, 0x1000), 1);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x3000), 1);
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

static void kernel_addresses_lose_their_slide(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	const uint64_t linked = 0xffffffff81000000ull, kmod = 0xffffffffc0400000ull;

	(void)state;
	a_program(machine);
	kernel_is(machine, 900, KERNEL, 0x1000000, linked, ABI_MODULE_KERNEL);
	kernel_is(machine, 901, kmod, 0x4000, 0, ABI_MODULE_KMOD);
	sample(machine, PID, START, KERNEL + 0x10);
	sample(machine, PID, START, kmod + 0x20);
	sample(machine, PID, START, KERNEL - 1);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 900, linked + 0x10), 1);
	assert_int_equal(samples_at(machine, PID, START, 901, 0x20), 1);
	assert_int_equal(lost(machine, ABI_ACCESS, LOSS_NO_MAPPING), 1);
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
	map_file(machine, 4321, START, LIB, 0x8000, 0x1000, "/app/libapp.so", 3);
	sample(machine, 4321, START, LIB);
	assert_int_equal(machine->modules.count, 1);
	assert_int_equal(machine->modules.data[0].pid, 4321);
	assert_int_equal(machine->modules.data[0].start_ns, START);
	assert_int_equal(machine->modules.data[0].length, 0x8000);
	assert_string_equal(machine->modules.data[0].path, "/app/libapp.so");
}

static void samples_wait_for_a_module_that_is_identified_late(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	task(machine, ABI_TASK_SEEN, PID, START, "slow");
	uint64_t key = map_file(machine, PID, START, EXE, 0x8000, 0x1000, "/slow", 5);

	sample(machine, PID, START, EXE);
	pass(machine, 3 * S);
	sample(machine, PID, START, EXE);
	pass(machine, S);
	assert_int_equal(machine->modules.count, 1);
	module_is(machine, key, 800, "/slow", plain);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 800, 0x1000), 2);
	assert_int_equal(lost(machine, ABI_ACCESS, LOSS_NO_MODULE), 0);
}

static void samples_of_a_module_never_identified_are_counted(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	uint64_t seen = 0;

	(void)state;
	task(machine, ABI_TASK_SEEN, PID, START, "gone");
	map_file(machine, PID, START, EXE, 0x8000, 0x1000, "/gone", 5);
	for (int i = 0; i < 3; i++)
		sample(machine, PID, START, EXE);
	for (int i = 0; i < 8; i++)
		pass(machine, S);
	assert_int_equal(lost(machine, ABI_ACCESS, LOSS_NO_MODULE), 3);
	vec_each(&machine->facts, kept)
		if (kept->fact.kind == FACT_LOSS)
			seen += kept->fact.loss.seen;
	assert_int_equal(seen, 3);
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

static void an_unknown_process_is_asked_for_once_and_then_rarely(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	for (int i = 0; i < 100; i++)
		sample(machine, PID, START, EXE);
	assert_int_equal(machine->processes.count, 1);
	assert_int_equal(machine->processes.data[0].pid, PID);
	assert_int_equal(machine->processes.data[0].start_ns, START);
	for (int i = 0; i < 100; i++) {
		sample(machine, PID, START, EXE);
		pass(machine, S);
	}
	assert_in_range(machine->processes.count, 3, 6);
	for (int i = 0; i < 4; i++)
		pass(machine, S);
	assert_int_equal(lost(machine, ABI_ACCESS, LOSS_NO_PROCESS), 200);
}

static void answer_late_fork(struct machine *machine)
{
	machine->answer = NULL;
	task(machine, ABI_TASK_SEEN, PID, START, "found");
	map_file(machine, PID, START, EXE, 0x8000, 0x1000, "/found", 5);
}

static void an_answer_within_the_question_is_taken(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	machine->answer = answer_late_fork;
	sample(machine, PID, START, EXE + 0x20);
	assert_int_equal(machine->modules.count, 1);
	module_is(machine, machine->modules.data[0].key, 100, "/found", plain);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1020), 1);
	assert_string_equal(process_row(machine, PID, START)->fact.process.comm, "found");
}

static void a_mapping_that_arrives_after_its_sample_is_used(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	sample(machine, PID, START, LIB + 4);
	uint64_t key = map_file(machine, PID, START, LIB, 0x8000, 0x1000, "/l.so", 9);

	module_is(machine, key, 200, "/l.so", plain);
	pass(machine, S);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 200, 0x1004), 1);
}

static void late_samples_of_an_exited_process_still_map(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	struct live_stats stats;

	(void)state;
	a_program(machine);
	struct event late = sample_event(machine, PID, START, EXE);

	task(machine, ABI_TASK_EXIT, PID, START, "prog");
	pass(machine, 2 * S);
	live_feed(machine->live, &late);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1000), 1);
	for (int i = 0; i < 10; i++)
		pass(machine, S);
	live_stats(machine->live, &stats);
	assert_int_equal(stats.processes, 0);
}

static void threads_outlive_their_leader(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	task(machine, ABI_TASK_EXIT, PID, START, "prog");
	for (int i = 0; i < 20; i++) {
		struct event event = sample_event(machine, PID, START, EXE);

		event.head.tid = 99;
		live_feed(machine->live, &event);
		pass(machine, S);
	}
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1000), 20);
	struct event last = task_event(machine, ABI_TASK_EXIT, PID, START, "thread");

	last.head.tid = 99;
	live_feed(machine->live, &last);
	for (int i = 0; i < 10; i++)
		pass(machine, S);
	assert_int_equal(process_row(machine, PID, START)->fact.process.end_ns,
			 last.head.time_ns);
}

static void a_thread_that_executes_keeps_the_process(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	/* The kernel ends the old leader first; the thread then takes its pid. */
	task(machine, ABI_TASK_EXIT, PID, START, "prog");
	uint64_t key = map_file(machine, PID, START, LIB, 0x8000, 0x1000, "/bin/c", 9);

	task(machine, ABI_TASK_EXEC, PID, START, "c");
	module_is(machine, key, 300, "/bin/c", plain);
	for (int i = 0; i < 20; i++)
		pass(machine, S);
	sample(machine, PID, START, LIB);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 300, 0x1000), 1);
	assert_int_equal(process_row(machine, PID, START)->fact.process.end_ns, 0);
}

static void a_full_table_of_mappings_loses_with_a_count(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	enum { MORE = 7 };

	(void)state;
	a_program(machine);
	/* The program's own is one of them. No two are adjacent. */
	for (uint64_t i = 1; i < LIVE_MAX_MAPPINGS + MORE; i++)
		map_file(machine, PID, START, LIB + i * 0x2000, 0x1000, 0, "", 0);
	pass(machine, 2 * S);
	assert_int_equal(lost(machine, ABI_MMAP, LOSS_LIMIT), MORE);
}

static void over_the_limit_of_waiting_samples_are_counted(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	enum { MORE = 5 };

	(void)state;
	task(machine, ABI_TASK_SEEN, PID, START, "slow");
	uint64_t key = map_file(machine, PID, START, EXE, 0x8000, 0x1000, "/slow", 5);
	struct event event = sample_event(machine, PID, START, EXE);

	for (int i = 0; i < LIVE_MAX_WAITING + MORE; i++)
		live_feed(machine->live, &event);
	module_is(machine, key, 800, "/slow", plain);
	pass(machine, 2 * S);
	assert_int_equal(samples_at(machine, PID, START, 800, 0x1000), LIVE_MAX_WAITING);
	assert_int_equal(lost(machine, ABI_ACCESS, LOSS_LIMIT), MORE);
}

static void over_the_limit_of_cells_samples_are_counted(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	const struct abi_segment large = { 0x1000, 0x1000, 0x1000000 };
	enum { MORE = 3 };

	(void)state;
	task(machine, ABI_TASK_SEEN, PID, START, "wide");
	uint64_t key = map_file(machine, PID, START, EXE, 0x1000000, 0x1000, "/w", 5);

	module_is(machine, key, 800, "/w", large);
	struct event event = sample_event(machine, PID, START, EXE);

	for (uint64_t i = 0; i < LIVE_MAX_AGGREGATES + MORE; i++) {
		event.access.ip = EXE + i;
		live_feed(machine->live, &event);
	}
	pass(machine, 2 * S);
	assert_int_equal(lost(machine, ABI_ACCESS, LOSS_LIMIT), MORE);
	assert_int_equal(samples_at(machine, PID, START, 800, 0x1000), 1);
}

static void buckets_are_put_when_they_have_ended(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	machine->now_ns = 200 * S + 900 * MS;
	sample(machine, PID, START, EXE);
	pass(machine, 50 * MS);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1000), 0);
	machine->now_ns = 201 * S;
	pass(machine, 0);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1000), 1);
	vec_each(&machine->facts, kept)
		if (kept->fact.kind == FACT_ACCESS)
			assert_int_equal(kept->fact.access.bucket_ns, 200 * S);
	/* The end of a run leaves nothing behind. */
	sample(machine, PID, START, EXE);
	live_flush(machine->live, UINT64_MAX);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1000), 2);
}

static void losses_from_outside_are_passed_on(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	struct event event = { .path = "" };

	(void)state;
	event.loss.head = head_of(machine, ABI_LOSS, 0, 0);
	event.loss.kind = ABI_TICK;
	event.loss.reason = LOSS_RING;
	event.loss.lost = 3;
	event.loss.seen = 40;
	live_feed(machine->live, &event);
	live_loss(machine->live, machine->now_ns, ABI_TICK, LOSS_RING, 4, 60);
	event.loss.reason = 999; /* nonsense is not passed on */
	live_feed(machine->live, &event);
	pass(machine, 2 * S);
	assert_int_equal(lost(machine, ABI_TICK, LOSS_RING), 7);
	assert_int_equal(machine->facts.count, 1);
	assert_int_equal(machine->facts.data[0].fact.loss.seen, 100);
}

static void latency_and_source_are_added_up(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	struct event event = sample_event(machine, PID, START, EXE);

	event.access.source = ABI_SOURCE_PEBS_LOAD;
	event.access.flags = ABI_ACCESS_WEIGHT;
	event.access.weight = 300;
	/* A load from L3 where another core had modified the line; TLB walk. */
	event.access.data_src = 0x02 | 0x10ull << 19 | 0x04ull << 26 | 0x03ull << 33;
	live_feed(machine->live, &event);
	event.access.weight = 100;
	live_feed(machine->live, &event);
	pass(machine, 2 * S);
	vec_each(&machine->facts, kept) {
		const struct fact_access *access = &kept->fact.access;

		if (kept->fact.kind != FACT_ACCESS)
			continue;
		assert_int_equal(access->weight_samples, 2);
		assert_int_equal(access->weight_cycles, 400);
		assert_int_equal(access->loads, 2);
		assert_int_equal(access->stores, 0);
		assert_int_equal(access->l3, 2);
		assert_int_equal(access->hitm, 2);
		assert_int_equal(access->tlb_miss, 2);
		assert_int_equal(access->period, 2000);
	}
}

static struct event tick_event(struct machine *machine, uint64_t ip)
{
	struct event event = { .path = "" };

	event.tick.head = head_of(machine, ABI_TICK, PID, START);
	event.tick.period_ns = 10 * MS;
	event.tick.flags = ABI_TICK_USER;
	event.tick.regs[16] = ip;
	return event;
}

static void without_an_unwinder_a_tick_keeps_kernel_frames_and_leaf(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	const struct kept *stack = NULL;
	uint64_t cpu_ns = 0;

	(void)state;
	a_program(machine);
	kernel_is(machine, 900, KERNEL, 0x1000, 0x5000, ABI_MODULE_KERNEL);
	struct event event = tick_event(machine, EXE + 0x30);

	event.tick.flags |= ABI_TICK_KERNEL;
	event.tick.kernel_depth = 2;
	event.tick.kernel_ips[0] = KERNEL + 1;
	event.tick.kernel_ips[1] = KERNEL + 2;
	live_feed(machine->live, &event);
	live_feed(machine->live, &event);
	pass(machine, 2 * S);
	vec_each(&machine->facts, kept) {
		if (kept->fact.kind == FACT_STACK) {
			assert_null(stack);
			stack = kept;
		}
		if (kept->fact.kind == FACT_TICK)
			cpu_ns += kept->fact.tick.cpu_ns;
	}
	assert_non_null(stack);
	assert_int_equal(cpu_ns, 20 * MS);
	assert_int_equal(stack->fact.stack.count, 3);
	assert_int_equal(stack->fact.stack.kernel_count, 2);
	assert_int_equal(stack->frames[0].va, 0x5001);
	assert_int_equal(stack->frames[2].module_id, 100);
	assert_int_equal(stack->frames[2].va, 0x1030);
	assert_false(stack->fact.stack.complete);
}

static void a_tick_waits_until_every_file_is_identified(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(true);

	(void)state;
	a_program(machine);
	uint64_t key = map_file(machine, PID, START, LIB, 0x8000, 0x1000, "/l.so", 9);
	struct event event = tick_event(machine, EXE);

	live_feed(machine->live, &event);
	assert_int_equal(machine->unwinds, 0);
	assert_int_equal(machine->modules.count, 1);
	module_is(machine, key, 200, "/l.so", plain);
	pass(machine, S);
	assert_int_equal(machine->unwinds, 1);
	assert_int_equal(machine->ranges.count, 2);
	assert_int_equal(machine->ranges.data[0].module_id, 100);
	assert_int_equal(EXE - machine->ranges.data[0].bias, 0x1000);
	assert_int_equal(LIB + 5 - machine->ranges.data[1].bias, 0x1005);
	/* One that is never identified holds nothing up for ever. */
	map_file(machine, PID, START, LIB + 0x100000, 0x8000, 0, "/never.so", 10);
	event = tick_event(machine, EXE);
	live_feed(machine->live, &event);
	for (int i = 0; i < 7; i++)
		pass(machine, S);
	assert_int_equal(machine->unwinds, 2);
	assert_int_equal(machine->ranges.data[2].module_id, 0);
}

static void absurd_records_are_counted_and_do_no_harm(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(true);
	struct event event = { .path = "" };

	(void)state;
	event.task.head = head_of(machine, ABI_TASK, PID, START);
	event.task.op = 77;
	live_feed(machine->live, &event);
	map_file(machine, PID, START, UINT64_MAX - 0x1000, 0x8000, 0, "/wraps", 3);
	map_file(machine, PID, START, LIB, 0, 0, "/empty", 3);
	event = (struct event){ .path = "" };
	event.module.head = head_of(machine, ABI_MODULE, 0, 0);
	event.module.kind = 55;
	live_feed(machine->live, &event);
	kernel_is(machine, 1, UINT64_MAX - 1, 100, 0, ABI_MODULE_KERNEL);
	event = (struct event){ .path = "" };
	event.head.kind = 4000;
	live_feed(machine->live, &event);
	fork_of(machine, PID, START, PID, START);
	event = tick_event(machine, EXE);
	event.tick.kernel_depth = 60000;
	live_feed(machine->live, &event);
	live_flush(machine->live, 0);
	live_flush(machine->live, UINT64_MAX);
	assert_int_equal(lost(machine, ABI_TASK, LOSS_FORMAT), 1);
	assert_int_equal(lost(machine, ABI_MMAP, LOSS_FORMAT), 2);
	assert_int_equal(lost(machine, ABI_MODULE, LOSS_FORMAT), 1);
	assert_int_equal(lost(machine, ABI_MODULE, LOSS_LIMIT), 1);
}

#define SENTENCES(X)                                                       \
	X(a_sample_is_charged_to_module_and_va)                            \
	X(a_program_that_is_not_pie_keeps_its_addresses)                   \
	X(va_and_file_offset_may_differ)                                   \
	X(a_library_opened_during_the_run_is_found)                        \
	X(a_fork_without_exec_runs_in_its_parents_image)                   \
	X(after_exec_the_old_image_is_gone)                                \
	X(a_pid_that_comes_back_is_another_process)                        \
	X(perf_side_band_without_start_time_names_the_present_process)     \
	X(a_mapping_over_another_hides_it)                                 \
	X(a_replaced_file_of_the_same_path_is_another_module)              \
	X(an_inode_number_that_comes_back_is_identified_again)             \
	X(kernel_addresses_lose_their_slide)                               \
	X(the_vdso_is_one_module_in_every_process)                         \
	X(generated_code_is_counted_as_anonymous)                          \
	X(a_path_of_a_container_is_asked_for_with_its_process)             \
	X(samples_wait_for_a_module_that_is_identified_late)               \
	X(samples_of_a_module_never_identified_are_counted)                \
	X(a_file_that_could_not_be_opened_is_tried_again_when_mapped_anew) \
	X(an_unknown_process_is_asked_for_once_and_then_rarely)            \
	X(an_answer_within_the_question_is_taken)                          \
	X(a_mapping_that_arrives_after_its_sample_is_used)                 \
	X(late_samples_of_an_exited_process_still_map)                     \
	X(threads_outlive_their_leader)                                    \
	X(a_thread_that_executes_keeps_the_process)                        \
	X(a_full_table_of_mappings_loses_with_a_count)                     \
	X(over_the_limit_of_waiting_samples_are_counted)                   \
	X(over_the_limit_of_cells_samples_are_counted)                     \
	X(buckets_are_put_when_they_have_ended)                            \
	X(losses_from_outside_are_passed_on)                               \
	X(latency_and_source_are_added_up)                                 \
	X(without_an_unwinder_a_tick_keeps_kernel_frames_and_leaf)         \
	X(a_tick_waits_until_every_file_is_identified)                     \
	X(absurd_records_are_counted_and_do_no_harm)

int main(void)
{
#define UNIT(name) cmocka_unit_test(name),
	const struct CMUnitTest tests[] = { SENTENCES(UNIT) };

	return cmocka_run_group_tests(tests, NULL, NULL);
}
