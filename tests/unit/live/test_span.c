// SPDX-License-Identifier: Apache-2.0
#include "unit/live/feed.h"

#define GET	   0x11ull
#define SERVER_PID 42

/* A record of a made-up request; the time goes on by 1 ms. */
static struct event span_event(struct machine *machine, enum abi_verb verb,
			       uint64_t span_id)
{
	struct event event = { .path = "", .name = "" };

	event.span.head = head_of(machine, ABI_SPAN, SERVER_PID, S);
	event.span.verb = (uint16_t)verb;
	event.span.span_id = span_id;
	event.span.name_id = GET;
	event.span.weight_milli = ABI_WEIGHT_ONE;
	return event;
}

static void begin(struct machine *machine, uint64_t span_id, const char *name)
{
	struct event event = span_event(machine, ABI_REQUEST_BEGIN, span_id);

	event.name = name;
	event.span.name_bytes = (uint16_t)strlen(name);
	live_feed(machine->live, &event);
}

/* It began @took_ns ago. */
static void end(struct machine *machine, uint64_t span_id, uint64_t took_ns,
		uint64_t cpu_ns, uint16_t flags)
{
	struct event event = span_event(machine, ABI_REQUEST_END, span_id);

	event.span.begin_ns = event.span.head.time_ns - took_ns;
	event.span.cpu_ns = cpu_ns;
	event.span.flags = flags;
	live_feed(machine->live, &event);
}

static void flush(struct machine *machine)
{
	live_flush(machine->live, machine->now_ns + 20 * S);
}

static size_t count_of(const struct machine *machine, enum fact_kind kind)
{
	size_t count = 0;

	vec_each(&machine->facts, kept)
		count += kept->fact.kind == kind;
	return count;
}

static const struct fact *first_of(const struct machine *machine, enum fact_kind kind)
{
	vec_each(&machine->facts, kept)
		if (kept->fact.kind == kind)
			return &kept->fact;
	fail_msg("no fact of kind %d", kind);
	return NULL;
}

static uint64_t lost_for(const struct machine *machine, enum loss_reason reason)
{
	uint64_t sum = 0;

	vec_each(&machine->facts, kept)
		if (kept->fact.kind == FACT_LOSS && kept->fact.loss.reason == reason)
			sum += kept->fact.loss.lost;
	return sum;
}

static void requests_add_up_and_are_kept_one_by_one(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	for (uint64_t id = 1; id <= 3; id++) {
		begin(machine, id, "GET");
		end(machine, id, id * 10 * MS, id * MS, ABI_HIT_CLOSED);
	}
	flush(machine);
	const struct fact_request *request = &first_of(machine, FACT_REQUEST)->request;

	assert_int_equal(count_of(machine, FACT_METHOD), 1);
	assert_int_equal(count_of(machine, FACT_REQUEST), 1);
	assert_int_equal(request->requests, 3);
	assert_int_equal(request->duration_ns, 60 * MS);
	assert_int_equal(request->max_duration_ns, 30 * MS);
	assert_int_equal(request->cpu_ns, 6 * MS);
	assert_int_equal(request->method_id, GET);
	assert_int_equal(request->kind, REQUEST_SERVED);
	assert_int_equal(count_of(machine, FACT_SPAN), 3);
	assert_true(first_of(machine, FACT_SPAN)->span.weight == 1);
}

static void work_after_the_response_is_charged_when_it_ends(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	begin(machine, 7, "GET");
	end(machine, 7, 10 * MS, 2 * MS, 0);
	live_flush(machine->live, machine->now_ns + 2 * S);
	assert_int_equal(count_of(machine, FACT_SPAN), 0);

	struct event closed = span_event(machine, ABI_TASK_DONE, 7);

	closed.span.cpu_ns = 9 * MS;
	closed.span.flags = ABI_HIT_CLOSED;
	live_feed(machine->live, &closed);
	flush(machine);
	assert_int_equal(first_of(machine, FACT_SPAN)->span.cpu_ns, 9 * MS);
	assert_int_equal(first_of(machine, FACT_SPAN)->span.duration_ns, 10 * MS);
	assert_int_equal(first_of(machine, FACT_REQUEST)->request.requests, 1);
}

static void work_that_never_ends_does_not_hold_a_request_back(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	begin(machine, 7, "GET");
	end(machine, 7, 10 * MS, 2 * MS, 0);
	flush(machine);
	assert_int_equal(first_of(machine, FACT_SPAN)->span.cpu_ns, 2 * MS);
	assert_int_equal(first_of(machine, FACT_REQUEST)->request.requests, 1);
}

static void what_is_missing_is_counted(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	end(machine, 1, 0, 0, ABI_HIT_NO_BEGIN);
	begin(machine, 2, "GET");
	end(machine, 2, MS, MS, ABI_HIT_CLOSED | ABI_HIT_LEFT);
	struct event unread = span_event(machine, ABI_REQUEST_BEGIN, 3);

	unread.span.flags = ABI_HIT_NO_NAME | ABI_HIT_UNTRACKED;
	live_feed(machine->live, &unread);
	flush(machine);
	assert_int_equal(lost_for(machine, LOSS_NO_BEGIN), 1);
	assert_int_equal(lost_for(machine, LOSS_NO_END), 1);
	assert_int_equal(lost_for(machine, LOSS_UNREAD), 1);
	assert_int_equal(lost_for(machine, LOSS_CONTEXT), 1);
	assert_int_equal(first_of(machine, FACT_REQUEST)->request.unfinished, 1);
	assert_int_equal(first_of(machine, FACT_REQUEST)->request.requests, 1);
}

/* From the second bucket on, about 200 of 4000, each standing for about 20. */
static void a_flood_is_thinned_and_the_weights_make_up_for_it(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);
	double weight = 0, kept_weight = 0;
	size_t spans = 0;

	(void)state;
	for (uint64_t id = 1; id <= 8000; id++) {
		machine->now_ns = id <= 4000 ? 200 * S : 201 * S;
		begin(machine, id, "GET");
		end(machine, id, 1000, 1000, ABI_HIT_CLOSED);
	}
	flush(machine);
	vec_each(&machine->facts, kept) {
		const struct fact *fact = &kept->fact;

		if (fact->kind == FACT_REQUEST)
			weight += fact->request.weight;
		if (fact->kind == FACT_SPAN && fact->span.bucket_ns == 201 * S) {
			kept_weight += fact->span.weight;
			spans++;
		}
	}
	assert_true(weight == 8000);
	assert_in_range(spans, 140, 270);
	assert_true(kept_weight > 2800 && kept_weight < 5400);
}

static void resource(struct machine *machine, uint16_t flags)
{
	struct event event = { .path = "", .name = "" };

	event.resource.head = head_of(machine, ABI_RESOURCE, SERVER_PID, S);
	event.resource.verb = ABI_WAIT_END;
	event.resource.flags = flags;
	live_feed(machine->live, &event);
}

static void resources_are_shown_to_who_observes_and_their_gaps_counted(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	begin(machine, 1, "GET");
	resource(machine, 0);
	resource(machine, ABI_HIT_NO_BEGIN);
	resource(machine, ABI_HIT_NO_OBJECT | ABI_HIT_NO_AMOUNT);
	resource(machine, ABI_HIT_UNTRACKED);
	flush(machine);
	assert_int_equal(machine->observed[ABI_SPAN], 1);
	assert_int_equal(machine->observed[ABI_RESOURCE], 4);
	assert_int_equal(lost_for(machine, LOSS_NO_BEGIN), 1);
	assert_int_equal(lost_for(machine, LOSS_UNREAD), 1);
	assert_int_equal(lost_for(machine, LOSS_CONTEXT), 1);
}

static void message(struct machine *machine, enum abi_side side, uint64_t span_id,
		    uint64_t at)
{
	struct event event = { .path = "" };

	event.message.head = head_of(machine, ABI_MESSAGE, SERVER_PID, S);
	event.message.side = (uint8_t)side;
	event.message.family = ABI_TCP;
	event.message.span_id = span_id;
	event.message.source = 5;
	event.message.target = 6;
	event.message.begin = at;
	event.message.end = at + 10;
	live_feed(machine->live, &event);
}

static const struct fact_span *span_fact(const struct machine *machine, uint64_t span_id)
{
	vec_each(&machine->facts, kept)
		if (kept->fact.kind == FACT_SPAN && kept->fact.span.span_id == span_id)
			return &kept->fact.span;
	fail_msg("no span %lu", span_id);
	return NULL;
}

/* 1 asks 2, and 2 asks 3; that 1 sent becomes known when 2 is over already. */
static void a_trace_goes_through_processes(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	begin(machine, 1, "GET");
	begin(machine, 2, "GET");
	message(machine, ABI_RECEIVED, 2, 0);
	message(machine, ABI_SENT, 2, 100);
	begin(machine, 3, "GET");
	message(machine, ABI_RECEIVED, 3, 100);
	end(machine, 3, MS, MS, ABI_HIT_CLOSED);
	end(machine, 2, 2 * MS, MS, ABI_HIT_CLOSED);
	message(machine, ABI_SENT, 1, 0);
	end(machine, 1, 3 * MS, MS, ABI_HIT_CLOSED);
	begin(machine, 4, "GET");
	message(machine, ABI_RECEIVED, 4, 200);
	end(machine, 4, MS, MS, ABI_HIT_CLOSED);
	flush(machine);
	assert_int_equal(span_fact(machine, 1)->parent_id, 0);
	assert_int_equal(span_fact(machine, 2)->parent_id, 1);
	assert_int_equal(span_fact(machine, 3)->parent_id, 2);
	assert_int_equal(span_fact(machine, 4)->parent_id, 0);
	assert_int_equal(span_fact(machine, 2)->trace_id, 1);
	assert_int_equal(span_fact(machine, 4)->trace_id, 4);
}

static void only_normal_names_are_put(void **state)
{
	CLEANUP(machine_free) struct machine *machine = machine_new(false);

	(void)state;
	begin(machine, 1, "/user/123?secret=1");
	end(machine, 1, MS, MS, ABI_HIT_CLOSED);
	flush(machine);
	const struct fact *method = first_of(machine, FACT_METHOD);

	assert_int_equal(span_fact(machine, 1)->method_id, method->method.method_id);
	assert_true(method->method.method_id != GET);
	vec_each(&machine->facts, kept)
		if (kept->fact.kind == FACT_METHOD)
			assert_string_equal(kept->path, "/user/:id");
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_add_up_and_are_kept_one_by_one),
		cmocka_unit_test(work_after_the_response_is_charged_when_it_ends),
		cmocka_unit_test(work_that_never_ends_does_not_hold_a_request_back),
		cmocka_unit_test(what_is_missing_is_counted),
		cmocka_unit_test(a_flood_is_thinned_and_the_weights_make_up_for_it),
		cmocka_unit_test(
			resources_are_shown_to_who_observes_and_their_gaps_counted),
		cmocka_unit_test(a_trace_goes_through_processes),
		cmocka_unit_test(only_normal_names_are_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
