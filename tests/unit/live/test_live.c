// SPDX-License-Identifier: Apache-2.0
#include "unit/live/feed.h"

static struct event tick_event(struct machine *machine, uint64_t ip)
{
	struct event event = { .path = "" };

	event.tick.head = head_of(machine, ABI_TICK, PID, START);
	event.tick.period_ns = 10 * MS;
	event.tick.flags = ABI_TICK_USER;
	event.tick.regs[16] = ip;
	return event;
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_sample_is_charged_to_module_and_va),
		cmocka_unit_test(a_library_opened_during_the_run_is_found),
		cmocka_unit_test(a_fork_without_exec_runs_in_its_parents_image),
		cmocka_unit_test(after_exec_the_old_image_is_gone),
		cmocka_unit_test(a_pid_that_comes_back_is_another_process),
		cmocka_unit_test(
			perf_side_band_without_start_time_names_the_present_process),
		cmocka_unit_test(a_mapping_over_another_hides_it),
		cmocka_unit_test(kernel_addresses_lose_their_slide),
		cmocka_unit_test(late_samples_of_an_exited_process_still_map),
		cmocka_unit_test(threads_outlive_their_leader),
		cmocka_unit_test(a_thread_that_executes_keeps_the_process),
		cmocka_unit_test(a_full_table_of_mappings_loses_with_a_count),
		cmocka_unit_test(absurd_records_are_counted_and_do_no_harm),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
