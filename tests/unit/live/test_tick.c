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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(without_an_unwinder_a_tick_keeps_kernel_frames_and_leaf),
		cmocka_unit_test(a_tick_waits_until_every_file_is_identified),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
