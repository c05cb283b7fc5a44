// SPDX-License-Identifier: Apache-2.0
#include "unit/live/feed.h"

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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_wait_for_a_module_that_is_identified_late),
		cmocka_unit_test(samples_of_a_module_never_identified_are_counted),
		cmocka_unit_test(an_unknown_process_is_asked_for_once_and_then_rarely),
		cmocka_unit_test(an_answer_within_the_question_is_taken),
		cmocka_unit_test(a_mapping_that_arrives_after_its_sample_is_used),
		cmocka_unit_test(over_the_limit_of_waiting_samples_are_counted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
