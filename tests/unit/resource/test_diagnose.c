// SPDX-License-Identifier: Apache-2.0
/* Each test plays a story whose culprit and victims are known beforehand. */
#include "resource/diagnose.h"

#include "stream.h"

enum { THING = 7, OTHER = 8, PIN = 9 };
enum { CULPRIT = 201, WRITER = 202, VICTIM = 210, VICTIMS = 4 };

static void mode(struct stream *stream, uint32_t verb, uint32_t tid, uint8_t how)
{
	struct event event = resource_event(stream, verb, THING, tid, 1);

	event.resource.mode = how;
	ledger_feed(stream->ledger, &event);
}

static void who_waits_without_end_finds_who_holds(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();

	(void)state;
	declare(&stream, THING, RESOURCE_LOCK);
	tell(&stream, ABI_ACQUIRE, THING, CULPRIT, 1);
	pass(&stream, SECOND_NS);
	for (uint32_t i = 0; i < VICTIMS; i++)
		tell(&stream, ABI_WAIT_BEGIN, THING, VICTIM + i, 1);
	pass(&stream, 6 * SECOND_NS);
	look(&stream);
	assert_int_equal(stream.count, 1);
	assert_int_equal(stream.found[0].class, FAULT_CONTENTION);
	assert_int_equal(stream.found[0].culprits[0].tid, CULPRIT);
	assert_int_equal(stream.found[0].culprit_count, 1);
	assert_int_equal(stream.found[0].victim_count, VICTIMS);
	assert_in_range(stream.found[0].victims[0].lost_ms, 4900, 5100);
}

static void blame_passes_through_who_waits_himself(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();

	(void)state;
	declare(&stream, THING, RESOURCE_LOCK);
	mode(&stream, ABI_ACQUIRE, CULPRIT, ABI_SHARED);
	pass(&stream, SECOND_NS);
	mode(&stream, ABI_WAIT_BEGIN, WRITER, ABI_EXCLUSIVE);
	pass(&stream, 100 * MS);
	for (uint32_t i = 0; i < VICTIMS; i++)
		mode(&stream, ABI_WAIT_BEGIN, VICTIM + i, ABI_SHARED);
	pass(&stream, 6 * SECOND_NS);
	look(&stream);
	assert_int_equal(stream.count, 1);
	assert_int_equal(stream.found[0].culprits[0].tid, CULPRIT);
	assert_true(stream.found[0].chain_count > 0);
}

static void who_is_named_by_the_wait_is_believed(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();

	(void)state;
	declare(&stream, THING, RESOURCE_LOCK);
	for (uint32_t i = 0; i < VICTIMS; i++) {
		struct event event =
			resource_event(&stream, ABI_WAIT_BEGIN, THING, VICTIM + i, 1);

		event.resource.amount = CULPRIT;
		ledger_feed(stream.ledger, &event);
	}
	pass(&stream, 6 * SECOND_NS);
	look(&stream);
	assert_int_equal(stream.count, 1);
	assert_int_equal(stream.found[0].culprits[0].pid, CULPRIT);
	assert_false(stream.found[0].is_inferred);
}

/* Everybody holds as long as everybody waits. */
static void equals_that_saturate_a_lock_are_no_finding(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();
	uint32_t owner = 0;

	(void)state;
	declare(&stream, THING, RESOURCE_LOCK);
	tell(&stream, ABI_ACQUIRE, THING, VICTIM, 1);
	for (uint32_t i = 1; i < VICTIMS; i++)
		tell(&stream, ABI_WAIT_BEGIN, THING, VICTIM + i, 1);
	for (int turn = 0; turn < 800; turn++) {
		uint32_t next = (owner + 1) % VICTIMS;

		pass(&stream, 10 * MS);
		tell(&stream, ABI_RELEASE, THING, VICTIM + owner, 1);
		tell(&stream, ABI_WAIT_BEGIN, THING, VICTIM + owner, 1);
		tell(&stream, ABI_WAIT_END, THING, VICTIM + next, 1);
		tell(&stream, ABI_ACQUIRE, THING, VICTIM + next, 1);
		owner = next;
	}
	look(&stream);
	assert_int_equal(stream.count, 0);
}

static void short_waits_are_no_finding(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();

	(void)state;
	declare(&stream, THING, RESOURCE_LOCK);
	for (int turn = 0; turn < 80; turn++) {
		tell(&stream, ABI_ACQUIRE, THING, CULPRIT, 1);
		tell(&stream, ABI_WAIT_BEGIN, THING, VICTIM, 1);
		pass(&stream, 5 * MS);
		tell(&stream, ABI_RELEASE, THING, CULPRIT, 1);
		tell(&stream, ABI_WAIT_END, THING, VICTIM, 1);
		pass(&stream, 95 * MS);
	}
	look(&stream);
	assert_int_equal(stream.count, 0);
}

/* Victims take, give back, and are refused once the hoarder has it all. */
static void who_never_gives_back_has_a_leak(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();
	uint64_t object = 1000;

	(void)state;
	declare(&stream, THING, RESOURCE_POOL);
	for (int turn = 0; turn < 40; turn++) {
		for (uint32_t i = 0; i < VICTIMS; i++, object++) {
			tell(&stream, ABI_ACQUIRE, THING, VICTIM + i, object);
			tell(&stream, ABI_RELEASE, THING, VICTIM + i, object);
		}
		tell(&stream, ABI_ACQUIRE, THING, CULPRIT, object++);
		pass(&stream, 100 * MS);
	}
	look(&stream);
	assert_int_equal(stream.count, 0);
	for (int turn = 0; turn < 60; turn++) {
		for (uint32_t i = 0; i < VICTIMS; i++)
			tell(&stream, ABI_REFUSE, THING, VICTIM + i, 0);
		pass(&stream, 100 * MS);
	}
	look(&stream);
	assert_int_equal(stream.count, 1);
	assert_int_equal(stream.found[0].class, FAULT_LEAK);
	assert_int_equal(stream.found[0].culprits[0].tid, CULPRIT);
	assert_int_equal(stream.found[0].victim_count, VICTIMS);
}

static void serve(struct stream *stream, uint64_t key, uint64_t us)
{
	struct event event = resource_event(stream, ABI_USE, THING, PID, 1);

	event.resource.key = key;
	event.resource.amount = us;
	ledger_feed(stream->ledger, &event);
}

static void one_long_command_stops_all_clients_of_a_loop(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();
	struct resource_info info = { .resource_id = THING,
				      .spec = "test",
				      .name = "loop",
				      .title = "loop",
				      .unit = "us",
				      .advice = "",
				      .kind = RESOURCE_LOOP,
				      .key = KEY_CLIENT };

	(void)state;
	ledger_declare(stream.ledger, &info);
	for (int turn = 0; turn < 30; turn++) {
		for (uint64_t client = 1; client <= VICTIMS; client++)
			serve(&stream, client, 100);
		pass(&stream, 200 * MS);
	}
	look(&stream);
	assert_int_equal(stream.count, 0);
	for (int turn = 0; turn < 30; turn++) {
		for (uint64_t client = 1; client <= VICTIMS; client++)
			serve(&stream, client, 100);
		pass(&stream, 200 * MS);
		serve(&stream, 9, 150000);
	}
	look(&stream);
	assert_int_equal(stream.count, 1);
	assert_int_equal(stream.found[0].culprits[0].key, 9);
	assert_int_equal(stream.found[0].victim_count, VICTIMS);
}

static void request(struct stream *stream, uint32_t tid, uint64_t ns)
{
	struct event event = { .path = "", .name = "SELECT" };

	event.span.head = (struct abi_head){
		.kind = ABI_SPAN, .time_ns = stream->now_ns, .pid = PID, .tid = tid
	};
	event.span.verb = ABI_REQUEST_BEGIN;
	event.span.name_id = 55;
	event.span.name_bytes = 6;
	ledger_feed(stream->ledger, &event);
	event.span.begin_ns = stream->now_ns;
	stream->now_ns += ns;
	event.span.head.time_ns = stream->now_ns;
	event.span.verb = ABI_REQUEST_END;
	ledger_feed(stream->ledger, &event);
}

/* Versions are made and removed; with @pin_at, they are only made from that turn on. */
static void write_and_scan(struct stream *stream, int turns, bool is_pinned)
{
	for (int turn = 0; turn < turns; turn++) {
		for (int i = 0; i < 10; i++) {
			tell(stream, ABI_ACQUIRE, THING, WRITER, 1);
			if (!is_pinned)
				tell(stream, ABI_RELEASE, THING, WRITER, 1);
		}
		request(stream, VICTIM, (is_pinned ? 5 + (uint64_t)turn / 4 : 4) * MS);
		pass(stream, 95 * MS);
	}
}

static void an_old_transaction_keeps_a_log_growing(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();
	struct resource_info info = { .resource_id = THING,
				      .spec = "test",
				      .name = "log",
				      .title = "log",
				      .unit = "rows",
				      .advice = "",
				      .kind = RESOURCE_LOG,
				      .pinned_by = PIN };

	(void)state;
	ledger_declare(stream.ledger, &info);
	declare(&stream, PIN, RESOURCE_PIN);
	write_and_scan(&stream, 60, false);
	look(&stream);
	assert_int_equal(stream.count, 0);
	tell(&stream, ABI_ACQUIRE, PIN, CULPRIT, 1);
	write_and_scan(&stream, 80, true);
	look(&stream);
	assert_int_equal(stream.count, 1);
	assert_int_equal(stream.found[0].class, FAULT_GROWTH);
	assert_int_equal(stream.found[0].culprits[0].tid, CULPRIT);
	assert_string_equal(stream.found[0].victims[0].request, "SELECT");
	tell(&stream, ABI_RELEASE, PIN, CULPRIT, 1);
	pass(&stream, 2 * SECOND_NS);
	look(&stream);
	assert_int_equal(stream.count, 0);
}

static void who_visits_everything_spoils_a_cache(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();
	uint64_t object = 1000;

	(void)state;
	declare(&stream, THING, RESOURCE_CACHE);
	for (int turn = 0; turn < 300; turn++) {
		for (int i = 0; i < 8; i++) {
			tell(&stream, ABI_WAIT_BEGIN, THING, CULPRIT, ++object);
			stream.now_ns += MS;
			tell(&stream, ABI_WAIT_END, THING, CULPRIT, object);
		}
		for (uint32_t i = 0; i < 2; i++) {
			tell(&stream, ABI_WAIT_BEGIN, THING, VICTIM + i, 1 + i);
			stream.now_ns += 8 * MS;
			tell(&stream, ABI_WAIT_END, THING, VICTIM + i, 1 + i);
		}
		pass(&stream, MS);
	}
	look(&stream);
	assert_int_equal(stream.count, 1);
	assert_int_equal(stream.found[0].class, FAULT_POLICY);
	assert_int_equal(stream.found[0].culprits[0].tid, CULPRIT);
}

/* Half a second of one, half a second of the other, as windows are: the waits are most of
 * the requests' time, but little of all time. */
static void requests_and_waits_may_be_watched_in_turns(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();
	uint64_t object = 1000;

	(void)state;
	declare(&stream, THING, RESOURCE_CACHE);
	for (int turn = 0; turn < 500; turn++) {
		bool is_resource = stream.now_ns / (500 * MS) % 2;

		ledger_switch(stream.ledger, THING, is_resource, stream.now_ns);
		ledger_switch(stream.ledger, 0, !is_resource, stream.now_ns);
		for (int i = 0; is_resource && i < 20; i++) {
			tell(&stream, ABI_WAIT_BEGIN, THING, CULPRIT, ++object);
			stream.now_ns += MS / 2;
			tell(&stream, ABI_WAIT_END, THING, CULPRIT, object);
		}
		if (is_resource) {
			tell(&stream, ABI_WAIT_BEGIN, THING, VICTIM, 1);
			stream.now_ns += 2 * MS;
			tell(&stream, ABI_WAIT_END, THING, VICTIM, 1);
			stream.now_ns += MS;
		} else {
			stream.now_ns += 10 * MS;
			request(&stream, VICTIM, 3 * MS);
		}
		pass(&stream, 20 * MS);
	}
	look(&stream);
	assert_int_equal(stream.count, 1);
	assert_int_equal(stream.found[0].class, FAULT_POLICY);
	assert_int_equal(stream.found[0].culprits[0].tid, CULPRIT);
	assert_int_equal(stream.found[0].victims[0].tid, VICTIM);
}

static void a_pool_that_is_kept_by_few_stops_the_others(void **state)
{
	CLEANUP(stream_fini) struct stream stream = stream_new();
	uint32_t tid = 1000;

	(void)state;
	declare(&stream, THING, RESOURCE_POOL);
	for (int turn = 0; turn < 400; turn++, tid++) {
		tell(&stream, ABI_ACQUIRE, THING, tid, turn % 4);
		pass(&stream, 10 * MS);
		tell(&stream, ABI_RELEASE, THING, tid, turn % 4);
	}
	for (uint32_t i = 0; i < 4; i++)
		tell(&stream, ABI_ACQUIRE, THING, CULPRIT + i, i);
	pass(&stream, 7 * SECOND_NS);
	look(&stream);
	assert_int_equal(stream.count, 1);
	assert_int_equal(stream.found[0].class, FAULT_PROVISION);
	assert_int_equal(stream.found[0].culprit_count, 4);
	assert_in_range(stream.found[0].culprits[0].tid, CULPRIT, CULPRIT + 3);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(who_waits_without_end_finds_who_holds),
		cmocka_unit_test(blame_passes_through_who_waits_himself),
		cmocka_unit_test(who_is_named_by_the_wait_is_believed),
		cmocka_unit_test(equals_that_saturate_a_lock_are_no_finding),
		cmocka_unit_test(short_waits_are_no_finding),
		cmocka_unit_test(who_never_gives_back_has_a_leak),
		cmocka_unit_test(one_long_command_stops_all_clients_of_a_loop),
		cmocka_unit_test(an_old_transaction_keeps_a_log_growing),
		cmocka_unit_test(who_visits_everything_spoils_a_cache),
		cmocka_unit_test(requests_and_waits_may_be_watched_in_turns),
		cmocka_unit_test(a_pool_that_is_kept_by_few_stops_the_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
