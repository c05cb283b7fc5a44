// SPDX-License-Identifier: Apache-2.0
/*
 * Paired probes: the entry of a function and its return, which may not be wanted, and may
 * never come. Truth is what the program counted itself.
 */
#include "live_bpf_rig.h"

#include "probe/attach.h"
#include "probe/slots.h"
#include "probe/sums.h"

#define REG(n)                                                           \
	{                                                                \
		.value = {.base = ABI_BASE_REG, .reg = (n), .width = 8 } \
	}
#define ARG0	 REG(5)
#define ARG1	 REG(4)
#define RESULT	 REG(0)
#define AT_ENTRY ABI_PROBE_PAIRED
#define AT_END	 (ABI_PROBE_PAIRED | ABI_PROBE_RETURN)

struct point {
	const char *function;
	struct abi_probe plan;
};

static const struct point points[] = {
	{ "handle",
	  { .spec_id = 1,
	    .pair = 1,
	    .flags = AT_ENTRY,
	    .verb = ABI_REQUEST_BEGIN,
	    .key = ARG0,
	    .when[0] = { .value = { .base = ABI_BASE_REG, .reg = 4, .width = 4 },
			 .op = ABI_OP_NE } } },
	{ "handle",
	  { .spec_id = 1,
	    .pair = 1,
	    .flags = AT_END,
	    .verb = ABI_REQUEST_END,
	    .sp_delta = -8 } },
	{ "try_take",
	  { .spec_id = 1,
	    .pair = 2,
	    .flags = AT_ENTRY | ABI_PROBE_SAVE,
	    .verb = ABI_ACQUIRE,
	    .object = ARG0,
	    .amount = ARG1 } },
	{ "try_take",
	  { .spec_id = 1,
	    .pair = 2,
	    .flags = AT_END,
	    .verb = ABI_ACQUIRE,
	    .sp_delta = -8,
	    .resource_id = 5,
	    .when[0] = { .value = { .base = ABI_BASE_REG, .width = 8 },
			 .op = ABI_OP_EQ,
			 .operand = 1 } } },
	{ "used",
	  { .spec_id = 1,
	    .flags = ABI_PROBE_SUM,
	    .verb = ABI_USE,
	    .resource_id = 6,
	    .amount = ARG0 } },
};
#define POINTS (sizeof(points) / sizeof(*points))

struct calls {
	struct rig rig;
	struct fixture fixture;
	struct slots *slots;
	struct attachment *links[2]; /* entries, returns */
	uint32_t slot[POINTS];
};

static void attach_half(struct calls *calls, bool is_return)
{
	CLEANUP(close) int fd = open_exe(calls->fixture.pid);
	struct attach_point at[POINTS];
	struct attach_request request = { .file_fd = fd,
					  .is_return = is_return,
					  .points = at };

	for (size_t i = 0; i < POINTS; i++)
		if (!(points[i].plan.flags & ABI_PROBE_RETURN) == !is_return)
			at[request.count++] = (struct attach_point){
				.offset = offset_of(&calls->fixture, points[i].function),
				.slot = calls->slot[i]
			};
	assert_ok(attach_open(calls->rig.loader, &request, &calls->links[is_return]));
}

static void calls_open(struct calls *calls, const char *count, const char *spin_turns)
{
	static const struct probe_config quiet = { .no_access = true,
						   .no_ticks = true,
						   .ring_bytes = 64 << 20 };

	fixture_start_with(&calls->fixture, "probe_calls", count, spin_turns);
	rig_open(&calls->rig, &quiet);
	assert_ok(slots_open(loader_fds(calls->rig.loader), &calls->slots));
	for (size_t i = 0; i < POINTS; i++)
		assert_ok(slots_put(calls->slots, &points[i].plan, &calls->slot[i]));
	attach_half(calls, true);
	attach_half(calls, false);
}

static void calls_run(struct calls *calls)
{
	rig_target(&calls->rig, calls->fixture.pid);
	fixture_run(&calls->fixture);
	rig_finish(&calls->rig);
}

static void calls_close(struct calls *calls)
{
	attach_close(calls->links[0]);
	attach_close(calls->links[1]);
	slots_free(calls->slots);
	fixture_end(&calls->fixture);
	rig_close(&calls->rig);
}

static uint64_t said(const struct calls *calls, const char *word)
{
	CLEANUP(free) char *text = mem_printf("%s ", word);

	return fixture_number(&calls->fixture, text);
}

static uint64_t spans(const struct calls *calls, uint16_t verb, uint16_t flags)
{
	uint64_t count = 0;

	vec_each(&calls->rig.events, event)
		count += event->head.kind == ABI_SPAN && event->span.verb == verb &&
			 (event->span.flags & flags) == flags;
	return count;
}

static void only_what_is_wanted_begins_and_all_that_begins_ends(void **state)
{
	struct calls calls = { 0 };

	(void)state;
	calls_open(&calls, "300", "100");
	calls_run(&calls);
	uint64_t wanted = said(&calls, "plain") + said(&calls, "left");

	assert_int_equal(wanted, 201);
	assert_int_equal(spans(&calls, ABI_REQUEST_BEGIN, 0), wanted);
	assert_int_equal(spans(&calls, ABI_REQUEST_END, 0), wanted);
	assert_int_equal(spans(&calls, ABI_REQUEST_END, ABI_HIT_LEFT),
			 said(&calls, "left"));
	assert_int_equal(spans(&calls, ABI_REQUEST_END, ABI_HIT_NO_BEGIN), 0);
	/* The entry that was not wanted, and its return. */
	assert_int_equal(slots_count(calls.slots, calls.slot[0]).skipped,
			 said(&calls, "unwanted"));
	assert_int_equal(slots_count(calls.slots, calls.slot[1]).skipped,
			 said(&calls, "unwanted"));
	calls_close(&calls);
}

static void what_is_told_at_the_return_knows_the_arguments(void **state)
{
	struct calls calls = { 0 };
	uint64_t acquires = 0;

	(void)state;
	calls_open(&calls, "300", "100");
	calls_run(&calls);
	vec_each(&calls.rig.events, event) {
		const struct abi_resource *record = &event->resource;

		if (event->head.kind != ABI_RESOURCE || record->verb != ABI_ACQUIRE)
			continue;
		acquires++;
		assert_int_equal(record->resource_id, 5);
		assert_int_equal(record->object % 3, 0);
		assert_int_equal(record->amount, 2 * record->object);
		assert_int_equal(record->flags, 0);
	}
	assert_int_equal(acquires, said(&calls, "taken"));
	calls_close(&calls);
}

struct total {
	uint64_t records, amount, count;
};

static void add_record(void *ctx, const struct abi_resource *record)
{
	struct total *total = ctx;

	assert_int_equal(record->verb, ABI_USE);
	assert_int_equal(record->resource_id, 6);
	total->records++;
	total->amount += record->amount;
	total->count += record->count;
}

static void what_is_added_up_is_complete_and_taken_once(void **state)
{
	struct calls calls = { 0 };
	struct total total = { 0 }, again = { 0 };
	const struct probe_fds *fds;

	(void)state;
	calls_open(&calls, "5000", "10");
	fds = loader_fds(calls.rig.loader);
	rig_target(&calls.rig, calls.fixture.pid);
	assert_null(file_write_all(calls.fixture.in, "x", 1));
	/* Taken away while it counts: nothing may fall between. */
	while (slots_count(calls.slots, calls.slot[4]).hits < 5001) {
		assert_ok(sums_take(fds, 1, add_record, &total));
		usleep(500);
	}
	fixture_read(&calls.fixture, "done");
	assert_ok(sums_take(fds, 1, add_record, &total));
	assert_ok(sums_take(fds, 1, add_record, &total));
	assert_ok(sums_take(fds, 1, add_record, &again));
	assert_ok(sums_take(fds, 1, add_record, &again));
	rig_finish(&calls.rig);
	printf("# %lu uses in %lu records\n", total.count, total.records);
	assert_int_equal(total.count, said(&calls, "uses"));
	assert_int_equal(total.amount, said(&calls, "used"));
	assert_int_equal(again.records, 0);
	assert_true(total.records < total.count);
	calls_close(&calls);
}

static void others_leave_at_once_and_are_counted(void **state)
{
	struct calls calls = { 0 };

	(void)state;
	calls_open(&calls, "300", "100");
	rig_target(&calls.rig, getpid()); /* not the fixture */
	fixture_run(&calls.fixture);
	rig_finish(&calls.rig);
	assert_int_equal(calls.rig.received[ABI_SPAN], 0);
	assert_int_equal(slots_count(calls.slots, calls.slot[0]).hits, 301);
	assert_int_equal(slots_count(calls.slots, calls.slot[0]).foreign, 301);
	calls_close(&calls);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(only_what_is_wanted_begins_and_all_that_begins_ends),
		cmocka_unit_test(what_is_told_at_the_return_knows_the_arguments),
		cmocka_unit_test(what_is_added_up_is_complete_and_taken_once),
		cmocka_unit_test(others_leave_at_once_and_are_counted),
	};

	if (rig_skips("live_calls"))
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
