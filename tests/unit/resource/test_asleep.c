// SPDX-License-Identifier: Apache-2.0
/* What the walk over threads tells the ledger: it lasts as long as they sleep. */
#include "resource/asleep.h"

#include "resource/ledger_impl.h"
#include "unit/resource/stream.h"

#define LOCK   5000
#define RESULT 5001

struct night {
	struct stream stream;
	struct asleep *asleep;
};

static struct night night_new(void)
{
	struct night night = { .stream = stream_new() };

	night.asleep = asleep_new(night.stream.ledger);
	declare(&night.stream, LOCK, RESOURCE_LOCK);
	declare(&night.stream, RESULT, RESOURCE_LOCK);
	declare(&night.stream, ABI_GENERIC_LOCK, RESOURCE_LOCK);
	return night;
}

static void cleanup_night_fini(struct night *night)
{
	asleep_free(night->asleep);
	cleanup_stream_fini(&night->stream);
}

static void sleeps(struct night *night, uint32_t tid, uint32_t op, uint32_t owner)
{
	struct event event = { .path = "", .name = "" };

	event.sleep.head = (struct abi_head){
		.kind = ABI_SLEEP, .time_ns = night->stream.now_ns, .pid = PID, .tid = tid
	};
	event.sleep.since_ns = night->stream.now_ns;
	event.sleep.op = op;
	event.sleep.owner = owner;
	event.sleep.flags = owner ? ABI_SLEEP_LOCK : 0;
	event.sleep.object = owner ? 0x7000 : 0;
	asleep_feed(night->asleep, &event);
}

static void is_in(struct night *night, uint32_t tid, uint64_t resource_id, bool is_hold)
{
	struct asleep_place place = { .pid = PID,
				      .tid = tid,
				      .time_ns = night->stream.now_ns,
				      .acts = { { .resource_id = resource_id,
						  .slot = ABI_NO_SLOT,
						  .mode = ABI_EXCLUSIVE,
						  .is_hold = is_hold } },
				      .count = 1 };

	asleep_place(night->asleep, &place);
}

static void pass_by(struct night *night, uint64_t ns)
{
	for (uint64_t end_ns = night->stream.now_ns + ns;
	     night->stream.now_ns < end_ns;) {
		asleep_walk(night->asleep, night->stream.now_ns);
		pass(&night->stream, 200 * MS);
	}
}

static struct resource *thing(const struct night *night, uint64_t id)
{
	return resource_find(night->stream.ledger, id, PID);
}

static double waited_s(const struct night *night, uint64_t id)
{
	const struct resource *resource = thing(night, id);
	double s = 0;

	for (unsigned i = 0; resource && i < LEDGER_BUCKETS; i++)
		s += (double)(resource->past[i].wait_s + resource->past[i].walked_s);
	return s;
}

static void who_slept_before_the_probes_came_is_found(void **state)
{
	CLEANUP(night_fini) struct night night = night_new();

	(void)state;
	sleeps(&night, 1, ABI_SLEEP_BEGIN, 0);
	is_in(&night, 1, LOCK, true);
	sleeps(&night, 2, ABI_SLEEP_BEGIN, 0);
	is_in(&night, 2, LOCK, false);
	pass_by(&night, 6 * SECOND_NS);
	look(&night.stream);
	assert_int_equal(night.stream.count, 1);
	assert_int_equal(night.stream.found[0].culprits[0].tid, 1);
	assert_int_equal(night.stream.found[0].victims[0].tid, 2);
}

static void a_sleeper_that_wakes_waits_no_more(void **state)
{
	CLEANUP(night_fini) struct night night = night_new();

	(void)state;
	sleeps(&night, 2, ABI_SLEEP_BEGIN, 0);
	is_in(&night, 2, LOCK, false);
	pass_by(&night, 2 * SECOND_NS);
	sleeps(&night, 2, ABI_SLEEP_END, 0);
	pass_by(&night, 4 * SECOND_NS);
	assert_true(waited_s(&night, LOCK) > 1.9 && waited_s(&night, LOCK) < 2.1);
	is_in(&night, 2, LOCK, false);
	pass_by(&night, 2 * SECOND_NS);
	assert_true(waited_s(&night, LOCK) < 2.1);
}

static void probes_that_go_off_end_no_sleep(void **state)
{
	CLEANUP(night_fini) struct night night = night_new();

	(void)state;
	ledger_switch(night.stream.ledger, LOCK, true, night.stream.now_ns);
	sleeps(&night, 2, ABI_SLEEP_BEGIN, 0);
	is_in(&night, 2, LOCK, false);
	pass_by(&night, 1 * SECOND_NS);
	ledger_switch(night.stream.ledger, LOCK, false, night.stream.now_ns);
	pass_by(&night, 2 * SECOND_NS);
	assert_true(waited_s(&night, LOCK) > 2.9);
}

/* The probe knows better: the walk adds nothing to it, nor takes it away. */
static void what_a_probe_told_is_counted_once(void **state)
{
	CLEANUP(night_fini) struct night night = night_new();

	(void)state;
	tell(&night.stream, ABI_WAIT_BEGIN, LOCK, 2, 0x10);
	sleeps(&night, 2, ABI_SLEEP_BEGIN, 0);
	is_in(&night, 2, LOCK, false);
	pass_by(&night, 2 * SECOND_NS);
	assert_true(waited_s(&night, LOCK) < 2.1);
	sleeps(&night, 2, ABI_SLEEP_END, 0);
	pass_by(&night, 1 * SECOND_NS);
	assert_true(waited_s(&night, LOCK) > 2.9 && waited_s(&night, LOCK) < 3.1);
}

static void a_mutex_names_its_owner_by_itself(void **state)
{
	CLEANUP(night_fini) struct night night = night_new();

	(void)state;
	for (int i = 0; i < 60; i++) {
		sleeps(&night, 2, ABI_SLEEP_BEGIN, 9);
		pass_by(&night, 100 * MS);
		sleeps(&night, 2, ABI_SLEEP_END, 9);
	}
	look(&night.stream);
	assert_int_equal(night.stream.count, 1);
	assert_int_equal(night.stream.found[0].culprits[0].tid, 9);
	assert_int_equal(night.stream.found[0].culprits[0].pid, PID);
}

/* The lock is how the resource is made. */
static void the_resource_is_told_and_not_its_mutex(void **state)
{
	CLEANUP(night_fini) struct night night = night_new();

	(void)state;
	sleeps(&night, 1, ABI_SLEEP_BEGIN, 0);
	is_in(&night, 1, LOCK, true);
	sleeps(&night, 2, ABI_SLEEP_BEGIN, 1);
	is_in(&night, 2, LOCK, false);
	pass_by(&night, 6 * SECOND_NS);
	look(&night.stream);
	assert_int_equal(night.stream.count, 1);
	assert_int_equal(night.stream.found[0].resource->resource_id, LOCK);
}

/* Others had it briefly when it was looked at last; one is asleep in it now. */
static void who_is_seen_with_it_is_to_blame_and_not_who_may_have_it(void **state)
{
	CLEANUP(night_fini) struct night night = night_new();

	(void)state;
	ledger_switch(night.stream.ledger, LOCK, true, night.stream.now_ns);
	for (uint32_t tid = 10; tid < 14; tid++)
		tell(&night.stream, ABI_ACQUIRE, LOCK, tid, 0x10);
	ledger_switch(night.stream.ledger, LOCK, false, night.stream.now_ns + MS);
	pass(&night.stream, 10 * MS);
	sleeps(&night, 1, ABI_SLEEP_BEGIN, 0);
	is_in(&night, 1, LOCK, true);
	sleeps(&night, 2, ABI_SLEEP_BEGIN, 0);
	is_in(&night, 2, LOCK, false);
	pass_by(&night, 6 * SECOND_NS);
	look(&night.stream);
	assert_int_equal(night.stream.count, 1);
	assert_int_equal(night.stream.found[0].culprits[0].tid, 1);
	assert_true(night.stream.found[0].culprits[0].share > 0.99);
}

static void threads_of_a_process_that_ends_are_forgotten(void **state)
{
	CLEANUP(night_fini) struct night night = night_new();
	struct event event = { .path = "", .name = "" };

	(void)state;
	sleeps(&night, 2, ABI_SLEEP_BEGIN, 0);
	is_in(&night, 2, LOCK, false);
	pass_by(&night, 1 * SECOND_NS);
	event.task.head = (struct abi_head){
		.kind = ABI_TASK, .time_ns = night.stream.now_ns, .pid = PID, .tid = PID
	};
	event.task.op = ABI_TASK_EXIT;
	asleep_feed(night.asleep, &event);
	pass_by(&night, 3 * SECOND_NS);
	assert_true(waited_s(&night, LOCK) < 1.1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_slept_before_the_probes_came_is_found),
		cmocka_unit_test(a_sleeper_that_wakes_waits_no_more),
		cmocka_unit_test(probes_that_go_off_end_no_sleep),
		cmocka_unit_test(what_a_probe_told_is_counted_once),
		cmocka_unit_test(a_mutex_names_its_owner_by_itself),
		cmocka_unit_test(the_resource_is_told_and_not_its_mutex),
		cmocka_unit_test(who_is_seen_with_it_is_to_blame_and_not_who_may_have_it),
		cmocka_unit_test(threads_of_a_process_that_ends_are_forgotten),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
