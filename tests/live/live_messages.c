// SPDX-License-Identifier: Apache-2.0
/*
 * Requests joined to who asked for them, by the bytes between the processes. Truth is in
 * the requests' keys: the client sends its own number along, which only the test reads.
 */
#include "live_bpf_rig.h"

#include "core/map.h"
#include "cost/join.h"
#include "probe/attach.h"
#include "probe/slots.h"

#define ROUNDS "60"
#define REG_ARG                                                        \
	{                                                              \
		.value = {.base = ABI_BASE_REG, .reg = 5, .width = 8 } \
	}
#define BACK (1ull << 63)

static const struct probe_config quiet = { .no_access = true,
					   .no_ticks = true,
					   .ring_bytes = 64 << 20 };
static const char *const functions[] = { "request_begin", "request_end" };
static const struct abi_probe plans[] = {
	{ .spec_id = 9,
	  .verb = ABI_REQUEST_BEGIN,
	  .key = REG_ARG,
	  .name = { .value = { .base = ABI_BASE_REG, .reg = 4, .width = 8 },
		    .kind = ABI_FETCH_CSTR } },
	{ .spec_id = 9, .verb = ABI_REQUEST_END, .key = REG_ARG },
};

struct truth {
	bool is_back;
	uint64_t number; /* of the front's request; 0: asked for by nobody */
};

struct outcome {
	uint64_t right, none, wrong, nobodys;
};

/* span_id -> struct truth, from the keys. */
static struct map *read_truth(const struct rig *rig)
{
	struct map *truths = map_new(sizeof(uint64_t), sizeof(struct truth));

	vec_each(&rig->events, event) {
		uint64_t key = event->span.key;
		struct truth truth = { key & BACK, key };

		if (event->head.kind != ABI_SPAN || event->span.verb != ABI_REQUEST_BEGIN)
			continue;
		if (truth.is_back)
			truth.number = (key & ~BACK) >> 24;
		*(struct truth *)map_put(truths, &event->span.span_id, NULL) = truth;
	}
	return truths;
}

static struct message message_of(const struct event *event)
{
	const struct abi_message *from = &event->message;

	return (struct message){ .source = from->source,
				 .target = from->target,
				 .begin = from->begin,
				 .end = from->end,
				 .realm = from->family == ABI_UNIX };
}

static void judge(const struct truth *parent, const struct truth *child,
		  struct outcome *outcome)
{
	if (!child->number)
		parent ? outcome->wrong++ : outcome->nobodys++;
	else if (!parent)
		outcome->none++;
	else if (parent->is_back || parent->number != child->number)
		outcome->wrong++;
	else
		outcome->right++;
}

static struct outcome join_all(const struct rig *rig, struct map *truths)
{
	CLEANUP(join_free) struct join *join = join_new(0);
	CLEANUP(map_free) struct map *parents = map_new(sizeof(uint64_t), 8);
	struct outcome outcome = { 0 };
	const void *key;
	size_t pos = 0;

	vec_each(&rig->events, event)
		if (event->head.kind == ABI_MESSAGE && event->message.side == ABI_SENT) {
			struct message message = message_of(event);

			join_sent(join, &message, event->message.span_id);
		}
	vec_each(&rig->events, event)
		if (event->head.kind == ABI_MESSAGE &&
		    event->message.side == ABI_RECEIVED) {
			struct message message = message_of(event);

			*(uint64_t *)map_put(parents, &event->message.span_id, NULL) =
				join_sender(join, &message);
		}
	for (struct truth *child; (child = map_next(truths, &pos, &key));) {
		uint64_t *parent = map_find(parents, key);

		if (child->is_back)
			judge(parent && *parent ? map_find(truths, parent) : NULL, child,
			      &outcome);
	}
	return outcome;
}

static void run(struct rig *rig, struct fixture *fixture)
{
	struct attach_point at[2] = { 0 };
	CLEANUP(slots_free) struct slots *slots = NULL;
	CLEANUP(attach_close) struct attachment *attachment = NULL;
	CLEANUP(close) int fd = open_exe(fixture->pid);
	struct attach_request request = { .file_fd = fd, .points = at, .count = 2 };

	assert_ok(slots_open(loader_fds(rig->loader), &slots));
	for (size_t i = 0; i < 2; i++) {
		at[i].offset = offset_of(fixture, functions[i]);
		assert_ok(slots_put(slots, &plans[i], &at[i].slot));
	}
	assert_ok(attach_open(rig->loader, &request, &attachment));
	rig_target(rig, fixture->pid);
	fixture_run(fixture);
	rig_finish(rig);
}

static void requests_are_joined_to_who_sent_their_bytes(void **state)
{
	struct rig rig;
	struct fixture fixture;

	(void)state;
	fixture_start_with(&fixture, "messages", ROUNDS, NULL);
	rig_open(&rig, &quiet);
	run(&rig, &fixture);
	CLEANUP(map_free) struct map *truths = read_truth(&rig);
	struct outcome outcome = join_all(&rig, truths);
	uint64_t own = fixture_number(&fixture, "own "),
		 all = fixture_number(&fixture, "all ");

	print_message("joined: %lu right, %lu none, %lu wrong; %lu of %lu nobody's\n",
		      outcome.right, outcome.none, outcome.wrong, outcome.nobodys,
		      all - own);
	assert_int_equal(outcome.wrong, 0);
	assert_int_equal(outcome.nobodys, all - own);
	assert_true(outcome.right + outcome.none <= own);
	assert_true(outcome.right * 100 >= own * 99);
	fixture_end(&fixture);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(requests_are_joined_to_who_sent_their_bytes),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
