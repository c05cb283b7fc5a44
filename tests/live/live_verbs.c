// SPDX-License-Identifier: Apache-2.0
/* The verbs beside begin and end of requests, in a program whose every step is known. */
#include "live_bpf_rig.h"

#include "core/map.h"
#include "probe/attach.h"
#include "probe/slots.h"

#define KEY                                                            \
	{                                                              \
		.value = {.base = ABI_BASE_REG, .reg = 5, .width = 8 } \
	}
#define REQUESTS 100

struct point {
	const char *function;
	struct abi_probe plan;
};

static const struct point points[] = {
	{ "request_begin", { .spec_id = 1, .verb = ABI_REQUEST_BEGIN, .key = KEY } },
	{ "request_end", { .spec_id = 1, .verb = ABI_REQUEST_END, .key = KEY } },
	{ "client_begin", { .spec_id = 1, .verb = ABI_CLIENT_BEGIN, .key = KEY } },
	{ "client_end", { .spec_id = 1, .verb = ABI_CLIENT_END, .key = KEY } },
	{ "wait_begin",
	  { .spec_id = 1, .verb = ABI_WAIT_BEGIN, .key = KEY, .resource_id = 9 } },
	{ "wait_end",
	  { .spec_id = 1, .verb = ABI_WAIT_END, .key = KEY, .resource_id = 9 } },
	{ "batch_add", { .spec_id = 1, .verb = ABI_BATCH_ADD, .key = KEY } },
	{ "batch_begin", { .spec_id = 1, .verb = ABI_BATCH_BEGIN, .key = KEY } },
	{ "batch_end", { .spec_id = 1, .verb = ABI_BATCH_END, .key = KEY } },
	{ "used", { .spec_id = 1, .verb = ABI_USE, .resource_id = 8, .amount = KEY } },
	{ "serve",
	  { .spec_id = 1,
	    .pair = 1,
	    .flags = ABI_PROBE_PAIRED,
	    .verb = ABI_CONN_OWN,
	    .key = KEY } },
	{ "serve",
	  { .spec_id = 1,
	    .pair = 1,
	    .flags = ABI_PROBE_PAIRED | ABI_PROBE_RETURN,
	    .verb = ABI_CONN_RELEASE,
	    .sp_delta = -8 } },
};
#define POINTS (sizeof(points) / sizeof(*points))

static struct rig rig;
static struct map *numbers; /* span_id of a request -> its true number */

static void attach_half(const struct fixture *fixture, struct slots *slots,
			bool is_return, struct attachment **ret_attachment)
{
	CLEANUP(close) int fd = open_exe(fixture->pid);
	struct attach_point at[POINTS];
	struct attach_request request = { .file_fd = fd,
					  .is_return = is_return,
					  .points = at };

	for (size_t i = 0; i < POINTS; i++) {
		struct attach_point *point = &at[request.count];

		if (!(points[i].plan.flags & ABI_PROBE_RETURN) == is_return)
			continue;
		*point = (struct attach_point){ .offset = offset_of(fixture,
								    points[i].function) };
		assert_ok(slots_put(slots, &points[i].plan, &point->slot));
		request.count++;
	}
	assert_ok(attach_open(rig.loader, &request, ret_attachment));
}

static int run_once(void **state)
{
	static const struct probe_config quiet = { .no_access = true, .no_ticks = true };
	struct attachment *entries, *returns;
	struct fixture fixture;
	struct slots *slots;

	(void)state;
	fixture_start_with(&fixture, "probe_verbs", "100", NULL);
	rig_open(&rig, &quiet);
	assert_ok(slots_open(loader_fds(rig.loader), &slots));
	attach_half(&fixture, slots, true, &returns);
	attach_half(&fixture, slots, false, &entries);
	rig_target(&rig, fixture.pid);
	fixture_run(&fixture);
	rig_finish(&rig);
	attach_close(entries);
	attach_close(returns);
	slots_free(slots);
	fixture_end(&fixture);
	numbers = map_new(sizeof(uint64_t), sizeof(uint64_t));
	vec_each(&rig.events, event)
		if (event->head.kind == ABI_SPAN &&
		    event->span.verb == ABI_REQUEST_BEGIN) {
			uint64_t *number = map_put(numbers, &event->span.span_id, NULL);

			*number = event->span.key;
		}
	return 0;
}

static int forget(void **state)
{
	(void)state;
	map_free(numbers);
	rig_close(&rig);
	return 0;
}

static uint64_t number_of(uint64_t span_id)
{
	const uint64_t *number = map_find(numbers, &span_id);

	return number ? *number : 0;
}

#define each_span(item, wanted)                                                      \
	vec_each(&rig.events, event)                                                 \
		for (const struct abi_span *item = &event->span;                     \
		     item && event->head.kind == ABI_SPAN && item->verb == (wanted); \
		     item = NULL)

static void every_request_ends_once(void **state)
{
	size_t ends = 0;

	(void)state;
	assert_int_equal(map_count(numbers), REQUESTS);
	each_span(span, ABI_REQUEST_END)
	{
		assert_int_equal(number_of(span->span_id), span->key);
		assert_int_equal(span->flags & (ABI_HIT_LEFT | ABI_HIT_NO_BEGIN), 0);
		ends++;
	}
	assert_int_equal(ends, REQUESTS);
}

static void calls_to_elsewhere_belong_to_their_request(void **state)
{
	size_t ends = 0;

	(void)state;
	each_span(span, ABI_CLIENT_END)
	{
		assert_int_equal(number_of(span->parent_id) + 1000000, span->key);
		assert_true(span->begin_ns && span->begin_ns <= span->head.time_ns);
		ends++;
	}
	assert_int_equal(ends, REQUESTS);
}

static void a_wait_ends_with_when_it_began(void **state)
{
	uint64_t begins = 0, ends = 0, last_ns = 0;

	(void)state;
	vec_each(&rig.events, event) {
		const struct abi_resource *record = &event->resource;

		if (event->head.kind != ABI_RESOURCE || record->resource_id != 9)
			continue;
		if (record->verb == ABI_WAIT_BEGIN) {
			begins++;
			last_ns = record->head.time_ns;
			continue;
		}
		assert_int_equal(record->verb, ABI_WAIT_END);
		assert_in_range(record->begin_ns, last_ns - 1000000, last_ns + 1000000);
		assert_int_equal(number_of(record->head.request_id), begins);
		ends++;
	}
	assert_int_equal(begins, REQUESTS);
	assert_int_equal(ends, REQUESTS);
}

static void a_batch_knows_who_is_in_it(void **state)
{
	size_t batches = 0;

	(void)state;
	each_span(batch, ABI_BATCH_END)
	{
		uint64_t members = 0;

		vec_each(&rig.events, other) {
			const struct abi_span *add = &other->span;

			if (other->head.kind != ABI_SPAN || add->verb != ABI_BATCH_ADD ||
			    add->span_id != batch->span_id)
				continue;
			assert_int_equal(number_of(add->parent_id) / 5, batch->key);
			members++;
		}
		assert_int_equal(members, batch->key ? 5 : 4); /* there is no request 0 */
		batches++;
	}
	assert_int_equal(batches, REQUESTS / 5);
}

static void what_is_done_is_done_for_the_right_one(void **state)
{
	size_t right = 0, batch = 0;

	(void)state;
	vec_each(&rig.events, event) {
		const struct abi_resource *record = &event->resource;

		if (event->head.kind != ABI_RESOURCE || record->resource_id != 8)
			continue;
		if (record->amount == (uint64_t)-1) { /* for the batch, no request */
			assert_int_equal(number_of(record->head.request_id), 0);
			assert_true(record->head.request_id);
			batch++;
			continue;
		}
		assert_int_equal(number_of(record->head.request_id), record->amount);
		right++;
	}
	assert_int_equal(right, 2 * REQUESTS - 1);
	assert_int_equal(batch, REQUESTS / 5);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_request_ends_once),
		cmocka_unit_test(calls_to_elsewhere_belong_to_their_request),
		cmocka_unit_test(a_wait_ends_with_when_it_began),
		cmocka_unit_test(a_batch_knows_who_is_in_it),
		cmocka_unit_test(what_is_done_is_done_for_the_right_one),
	};

	if (rig_skips("live_verbs"))
		return 0;
	return cmocka_run_group_tests(tests, run_once, forget);
}
