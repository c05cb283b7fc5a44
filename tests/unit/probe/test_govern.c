// SPDX-License-Identifier: Apache-2.0
/* Made-up rates over made-up time; truth is the budget. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "probe/govern.h"

#define STEP_NS	  100000000ull
#define SECOND_NS 1000000000ull
#define START_NS  1700000000000000000ull

struct machine {
	struct govern *govern;
	uint64_t now_ns;
	double rates[64]; /* share of one CPU while attached */
	double spent[64]; /* cost in ns */
	uint64_t on_ns[64];
	double worst_step; /* of a step: cost as a share of one CPU */
	int count;
};

static void machine_open(struct machine *machine, const struct govern_config *config)
{
	memset(machine, 0, sizeof(*machine));
	machine->govern = govern_new(config);
	machine->now_ns = START_NS;
}

static void machine_add(struct machine *machine, double rate)
{
	assert_int_equal(govern_add(machine->govern, 0), machine->count);
	machine->rates[machine->count++] = rate;
}

/* One CPU is busy all the time. */
static void machine_step(struct machine *machine)
{
	double cost = 0;

	for (int i = 0; i < machine->count; i++) {
		struct govern_unit unit = govern_unit(machine->govern, i);
		uint64_t on_ns = unit.pulse_ns ? unit.pulse_ns : STEP_NS;

		if (!unit.is_wanted)
			continue;
		double cost_ns = machine->rates[i] * (double)on_ns;

		assert_true(on_ns <= STEP_NS);
		govern_measure(machine->govern, i, (uint64_t)cost_ns, on_ns, on_ns);
		if (unit.pulse_ns)
			govern_pulsed(machine->govern, i);
		machine->spent[i] += cost_ns;
		machine->on_ns[i] += on_ns;
		cost += cost_ns / (double)STEP_NS;
	}
	if (cost > machine->worst_step)
		machine->worst_step = cost;
	machine->now_ns += STEP_NS;
	govern_step(machine->govern, machine->now_ns);
}

static void machine_run(struct machine *machine, uint64_t seconds)
{
	memset(machine->spent, 0, sizeof(machine->spent));
	memset(machine->on_ns, 0, sizeof(machine->on_ns));
	machine->worst_step = 0;
	for (uint64_t i = 0; i < seconds * 10; i++)
		machine_step(machine);
}

static double spent(const struct machine *machine, uint64_t seconds)
{
	double sum = 0;

	for (int i = 0; i < machine->count; i++)
		sum += machine->spent[i];
	return sum / (double)(seconds * SECOND_NS);
}

static enum govern_state state_of(const struct machine *machine, int unit)
{
	return govern_unit(machine->govern, unit).state;
}

static void cheap_probes_stay_on(void **state)
{
	struct machine machine;

	(void)state;
	machine_open(&machine, &(struct govern_config){ 0 });
	for (int i = 0; i < 8; i++)
		machine_add(&machine, 0.001);
	machine_run(&machine, 60);
	for (int i = 0; i < 8; i++) {
		assert_int_equal(state_of(&machine, i), GOVERN_ON);
		assert_int_equal(machine.on_ns[i], 60 * SECOND_NS);
	}
	govern_free(machine.govern);
}

static void over_the_budget_the_dearest_go_to_windows_and_the_sum_fits(void **state)
{
	struct machine machine;

	(void)state;
	machine_open(&machine, &(struct govern_config){ .key = 42 });
	for (int i = 0; i < 5; i++)
		machine_add(&machine, 0.001);
	machine_add(&machine, 0.03);
	machine_add(&machine, 0.05);
	machine_add(&machine, 0.04);
	machine_run(&machine, 10);
	machine_run(&machine, 4000);
	for (int i = 0; i < 5; i++)
		assert_int_equal(state_of(&machine, i), GOVERN_ON);
	for (int i = 5; i < 8; i++)
		assert_int_equal(state_of(&machine, i), GOVERN_WINDOWED);
	assert_true(spent(&machine, 4000) <= 0.0105);
	assert_true(spent(&machine, 4000) >= 0.006); /* nor is the budget wasted */
	assert_true(machine.worst_step <= 0.105);
	govern_free(machine.govern);
}

static void a_weight_is_the_inverse_of_the_time_covered(void **state)
{
	struct machine machine;

	(void)state;
	machine_open(&machine, &(struct govern_config){ .key = 7 });
	for (int i = 0; i < 6; i++)
		machine_add(&machine, 0.03 + 0.005 * i);
	machine_run(&machine, 10);
	machine_run(&machine, 40000);
	for (int i = 0; i < 6; i++) {
		double duty = (double)machine.on_ns[i] / (40000.0 * SECOND_NS);
		struct govern_unit unit = govern_unit(machine.govern, i);

		assert_int_equal(unit.state, GOVERN_WINDOWED);
		assert_true(duty * unit.weight > 0.9 && duty * unit.weight < 1.1);
	}
	govern_free(machine.govern);
}

static void a_probe_that_turns_hot_is_off_within_a_second(void **state)
{
	struct machine machine;
	int steps = 0;

	(void)state;
	machine_open(&machine, &(struct govern_config){ 0 });
	machine_add(&machine, 0);
	machine_add(&machine, 0.001);
	machine_run(&machine, 10);
	machine.rates[0] = 0.6; /* 200,000 hits/s of 3 us */
	while (govern_unit(machine.govern, 0).is_wanted) {
		machine_step(&machine);
		assert_true(++steps <= 5);
	}
	assert_int_equal(state_of(&machine, 0), GOVERN_CUT);
	assert_int_equal(govern_unit(machine.govern, 0).became_hot_ns, machine.now_ns);
	assert_int_equal(state_of(&machine, 1), GOVERN_ON);
	/* While it stays hot, trying it again may not cost the budget either. */
	machine_run(&machine, 2000);
	assert_true(spent(&machine, 2000) < 0.01);
	assert_true(machine.worst_step <= 0.6 * 0.21); /* the shortest window */
	/* And once it is calm it comes back, though not in vain pauses longer than these. */
	machine.rates[0] = 0;
	machine_run(&machine, 3000);
	assert_int_equal(state_of(&machine, 0), GOVERN_ON);
	govern_free(machine.govern);
}

static void what_always_costs_more_than_a_burst_still_has_its_windows(void **state)
{
	struct machine machine;

	(void)state;
	machine_open(&machine, &(struct govern_config){ .key = 5 });
	machine_add(&machine, 0.15);
	machine_run(&machine, 1);
	assert_int_equal(state_of(&machine, 0), GOVERN_WINDOWED);
	assert_true(govern_unit(machine.govern, 0).became_hot_ns);
	machine_run(&machine, 4000);
	assert_int_equal(state_of(&machine, 0), GOVERN_WINDOWED);
	assert_true(spent(&machine, 4000) > 0.002 && spent(&machine, 4000) < 0.0105);
	/* But shorter ones. */
	assert_true(machine.worst_step <= 0.105);
	double duty = (double)machine.on_ns[0] / (4000.0 * SECOND_NS);

	assert_true(duty * govern_unit(machine.govern, 0).weight > 0.9);
	assert_true(duty * govern_unit(machine.govern, 0).weight < 1.1);
	govern_free(machine.govern);
}

static void a_rate_at_the_edge_does_not_flap(void **state)
{
	struct machine machine;
	int changes = 0;

	(void)state;
	machine_open(&machine, &(struct govern_config){ 0 });
	machine_add(&machine, 0.004);
	machine_add(&machine, 0.0061);
	machine_run(&machine, 5);
	enum govern_state was = state_of(&machine, 1);

	for (int second = 0; second < 300; second++) {
		machine.rates[1] = second % 2 ? 0.0055 : 0.0065;
		machine_run(&machine, 1);
		changes += state_of(&machine, 1) != was;
		was = state_of(&machine, 1);
	}
	assert_true(changes <= 1);
	govern_free(machine.govern);
}

static void two_hosts_with_one_key_have_the_same_windows(void **state)
{
	struct machine one, two;
	uint64_t together = 0, alone = 0;

	(void)state;
	machine_open(&one, &(struct govern_config){ .key = 99 });
	machine_open(&two, &(struct govern_config){ .key = 99 });
	machine_add(&one, 0.05);
	machine_add(&two, 0.05);
	machine_add(&two, 0.0001);
	machine_run(&one, 10);
	machine_run(&two, 10);
	for (int i = 0; i < 20000; i++) {
		machine_step(&one);
		machine_step(&two);
		bool a = govern_unit(one.govern, 0).is_wanted;
		bool b = govern_unit(two.govern, 0).is_wanted;

		together += a && b;
		alone += a != b;
	}
	assert_true(together > 100);
	assert_true(alone <= together / 20); /* their duties differ a little */
	govern_free(one.govern);
	govern_free(two.govern);
}

static void hooks_that_cannot_be_switched_use_up_the_budget(void **state)
{
	struct machine machine;

	(void)state;
	machine_open(&machine, &(struct govern_config){ 0 });
	govern_fixed(machine.govern, 0.007, 100000000);
	machine_add(&machine, 0.004);
	machine_run(&machine, 10);
	assert_int_equal(state_of(&machine, 0), GOVERN_WINDOWED);
	govern_free(machine.govern);
}

static void what_costs_next_to_nothing_stays_on_whatever_the_rest_costs(void **state)
{
	struct machine machine;

	(void)state;
	machine_open(&machine, &(struct govern_config){ 0 });
	govern_fixed(machine.govern, 0.02, 100000000);
	machine_add(&machine, 0.00005);
	machine_add(&machine, 0.004);
	machine_run(&machine, 10);
	assert_int_equal(state_of(&machine, 0), GOVERN_ON);
	assert_int_equal(state_of(&machine, 1), GOVERN_WINDOWED);
	govern_free(machine.govern);
}

static void without_windows_the_dear_ones_are_off(void **state)
{
	struct machine machine;

	(void)state;
	machine_open(&machine, &(struct govern_config){ .no_windows = true });
	machine_add(&machine, 0.05);
	machine_add(&machine, 0.002);
	machine_run(&machine, 10);
	machine_run(&machine, 100);
	assert_int_equal(machine.on_ns[0], 0);
	assert_int_equal(machine.on_ns[1], 100 * SECOND_NS);
	govern_free(machine.govern);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(cheap_probes_stay_on),
		cmocka_unit_test(
			over_the_budget_the_dearest_go_to_windows_and_the_sum_fits),
		cmocka_unit_test(a_weight_is_the_inverse_of_the_time_covered),
		cmocka_unit_test(a_probe_that_turns_hot_is_off_within_a_second),
		cmocka_unit_test(
			what_always_costs_more_than_a_burst_still_has_its_windows),
		cmocka_unit_test(a_rate_at_the_edge_does_not_flap),
		cmocka_unit_test(two_hosts_with_one_key_have_the_same_windows),
		cmocka_unit_test(hooks_that_cannot_be_switched_use_up_the_budget),
		cmocka_unit_test(
			what_costs_next_to_nothing_stays_on_whatever_the_rest_costs),
		cmocka_unit_test(without_windows_the_dear_ones_are_off),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
