// SPDX-License-Identifier: Apache-2.0
#include "unit/live/feed.h"

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

static size_t rows_of_bucket(const struct machine *machine, uint64_t bucket_ns)
{
	size_t count = 0;

	vec_each(&machine->facts, kept)
		count += kept->fact.kind == FACT_ACCESS &&
			 kept->fact.access.bucket_ns == bucket_ns;
	return count;
}

static void a_bucket_is_put_in_parts_that_add_up(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	a_program(machine);
	machine->now_ns = 200 * S + 900 * MS;
	sample(machine, PID, START, EXE);
	pass(machine, 50 * MS);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1000), 1);
	sample(machine, PID, START, EXE);
	machine->now_ns = 201 * S;
	sample(machine, PID, START, EXE);
	pass(machine, 10 * MS);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1000), 3);
	assert_int_equal(rows_of_bucket(machine, 200 * S), 2);
	assert_int_equal(rows_of_bucket(machine, 201 * S), 1);
	/* What was put is not put again, and the end of a run leaves nothing behind. */
	pass(machine, 10 * MS);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1000), 3);
	sample(machine, PID, START, EXE);
	live_flush(machine->live, UINT64_MAX);
	assert_int_equal(samples_at(machine, PID, START, 100, 0x1000), 4);
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

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(over_the_limit_of_cells_samples_are_counted),
		cmocka_unit_test(a_bucket_is_put_in_parts_that_add_up),
		cmocka_unit_test(losses_from_outside_are_passed_on),
		cmocka_unit_test(latency_and_source_are_added_up),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
