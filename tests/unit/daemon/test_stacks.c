// SPDX-License-Identifier: Apache-2.0
#include "unit/daemon/stage.h"

#include "daemon/stacks.h"

#define PID 5

struct rig {
	struct stage *stage;
	struct modules *modules;
	struct stacks *stacks;
	uint64_t lost;
	uint32_t fp_ok_pid;
	int fp_ok_calls;
};

static void count_loss(void *ctx, uint64_t time_ns, uint64_t lost)
{
	struct rig *rig = ctx;

	assert_int_equal(time_ns, 1234);
	rig->lost += lost;
}

static void note_fp_ok(void *ctx, uint32_t pid, uint64_t start_ns)
{
	struct rig *rig = ctx;

	(void)start_ns;
	rig->fp_ok_pid = pid;
	rig->fp_ok_calls++;
}

static int set_up(void **state)
{
	struct rig *rig = mem_alloc(sizeof(*rig));
	struct live_file file = { .key = 1,
				  .pid = PID,
				  .addr = 0x1000,
				  .length = 0x1000,
				  .inode = 1,
				  .path = "/bin/x" };
	struct job_reply identity = stage_identity(1, true);

	rig->stage = stage_new();
	rig->modules =
		modules_new(&(struct modules_config){ .opener = &rig->stage->opener,
						      .jobs = &rig->stage->jobs,
						      .sink = &rig->stage->sink,
						      .feed = stage_feed,
						      .ctx = rig->stage });
	rig->stacks = stacks_new(&(struct stacks_config){ .jobs = &rig->stage->jobs,
							  .modules = rig->modules,
							  .sink = &rig->stage->sink,
							  .run_id = 1,
							  .loss = count_loss,
							  .fp_ok = note_fp_ok,
							  .ctx = rig });
	stage_serve(rig->stage, OPEN_MAP_FILE, PID, "1000-2000", "x");
	modules_want(rig->modules, &file);
	stage_answer(rig->stage, &identity);
	vec_clear(&rig->stage->facts);
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	stacks_free(rig->stacks);
	modules_free(rig->modules);
	stage_free(rig->stage);
	free(rig);
	return 0;
}

/* A tick at 0x1500 with @stack_bytes of stack and the frame-pointer walk @walk. */
static void tick(struct rig *rig, uint32_t stack_bytes, const uint64_t *walk,
		 uint16_t depth)
{
	static const unsigned char stack[ABI_STACK_COPY_MAX];
	const struct live_range range = { 0x1000, 0x2000, 0, stage_module_id(1) };
	const struct fact_frame kernel = { 99, 0xf00 };
	struct event event = { .path = "", .stack = stack };

	event.tick.head = (struct abi_head){
		.kind = ABI_TICK, .time_ns = 1234, .pid = PID, .start_ns = 7
	};
	event.tick.period_ns = 10;
	event.tick.stack_bytes = stack_bytes;
	event.tick.regs[16] = 0x1500;
	event.tick.user_depth = depth;
	if (depth)
		memcpy(event.tick.user_ips, walk, depth * sizeof(*walk));
	stacks_unwind(rig->stacks, &(struct live_tick){ .event = &event,
							.process_id = 55,
							.bucket_ns = 3000000000,
							.ranges = &range,
							.range_count = 1,
							.kernel_frames = &kernel,
							.kernel_count = 1 });
	stacks_pump(rig->stacks);
}

/* Callers are told by the address of the call. */
static void unwound(struct rig *rig, bool complete)
{
	const struct fact_frame frames[] = { { stage_module_id(1), 0x1500 },
					     { stage_module_id(1), 0x15ff },
					     { stage_module_id(1), 0x16ff } };
	const struct job_reply reply = {
		.kind = JOB_UNWIND,
		.unwound = { .frames = frames, .count = 3, .complete = complete }
	};

	stage_answer(rig->stage, &reply);
}

static size_t count_of(const struct rig *rig, enum fact_kind kind)
{
	size_t count = 0;

	vec_each(&rig->stage->facts, kept)
		count += kept->fact.kind == kind;
	return count;
}

static const struct kept *first_of(const struct rig *rig, enum fact_kind kind)
{
	vec_each(&rig->stage->facts, kept)
		if (kept->fact.kind == kind)
			return kept;
	fail();
	return NULL;
}

static void a_stack_is_put_once_and_its_ticks_are_added_up(void **state)
{
	struct rig *rig = *state;

	tick(rig, 64, NULL, 0);
	tick(rig, 64, NULL, 0);
	assert_int_equal(stage_request(rig->stage).kind, MESSAGE_OPEN);
	unwound(rig, true);
	unwound(rig, true);
	assert_int_equal(count_of(rig, FACT_STACK), 1);
	assert_int_equal(count_of(rig, FACT_TICK), 0);
	stacks_flush(rig->stacks);
	assert_int_equal(count_of(rig, FACT_TICK), 1);
	const struct kept *stack = first_of(rig, FACT_STACK);
	const struct fact_tick *ticks = &first_of(rig, FACT_TICK)->fact.tick;

	assert_int_equal(stack->fact.stack.count, 4);
	assert_int_equal(stack->fact.stack.kernel_count, 1);
	assert_true(stack->fact.stack.complete);
	assert_int_equal(stack->frames[0].module_id, 99);
	assert_int_equal(stack->frames[1].va, 0x1500);
	assert_int_equal(ticks->samples, 2);
	assert_int_equal(ticks->cpu_ns, 20);
	assert_int_equal(ticks->stack_id, stack->fact.stack.stack_id);
	assert_int_equal(rig->lost, 0);
}

static void a_stack_without_its_root_is_kept_and_counted(void **state)
{
	struct rig *rig = *state;

	tick(rig, 64, NULL, 0);
	stage_request(rig->stage);
	unwound(rig, false);
	assert_false(first_of(rig, FACT_STACK)->fact.stack.complete);
	assert_int_equal(rig->lost, 1);
}

static void a_tick_that_nobody_can_unwind_keeps_its_leaf(void **state)
{
	struct rig *rig = *state;

	tick(rig, 0, NULL, 0);
	const struct kept *stack = first_of(rig, FACT_STACK);

	assert_int_equal(stack->fact.stack.count, 2);
	assert_int_equal(stack->frames[1].va, 0x1500);
	assert_int_equal(rig->lost, 1);
}

static void frame_pointers_are_trusted_after_many_equal_walks(void **state)
{
	const uint64_t right[] = { 0x1500, 0x1600, 0x1700 };
	const uint64_t wrong[] = { 0x1500, 0x1800, 0x1700 };
	struct rig *rig = *state;

	for (int i = 0; i < STACKS_FP_AGREE - 1; i++) {
		tick(rig, 64, right, 3);
		if (!i)
			stage_request(rig->stage);
		unwound(rig, true);
	}
	/* One that differs begins the count anew. */
	tick(rig, 64, wrong, 3);
	unwound(rig, true);
	for (int i = 0; i < STACKS_FP_AGREE - 1; i++) {
		tick(rig, 64, right, 3);
		unwound(rig, true);
	}
	assert_int_equal(rig->fp_ok_calls, 0);
	for (int i = 0; i < 3; i++) {
		tick(rig, 64, right, 3);
		unwound(rig, true);
	}
	assert_int_equal(rig->fp_ok_calls, 1);
	assert_int_equal(rig->fp_ok_pid, PID);
	/* From then on no copy comes, and the same stack has the same id. */
	size_t stacks = count_of(rig, FACT_STACK);

	tick(rig, 0, right, 3);
	assert_int_equal(count_of(rig, FACT_STACK), stacks);
	assert_int_equal(rig->lost, 0);
}

static void over_the_bound_ticks_keep_their_leaf(void **state)
{
	struct stacks_stats stats;
	struct rig *rig = *state;

	stage_kill(rig->stage);
	for (int i = 0; i < STACKS_MAX_QUEUED + 9; i++)
		tick(rig, 64, NULL, 0);
	stacks_stats(rig->stacks, &stats);
	assert_int_equal(stats.queued, STACKS_MAX_QUEUED);
	assert_int_equal(stats.dropped, 9);
	assert_int_equal(rig->lost, 9);
	stacks_drain(rig->stacks);
	stacks_stats(rig->stacks, &stats);
	assert_int_equal(stats.queued, 0);
	assert_int_equal(rig->lost, STACKS_MAX_QUEUED + 9);
	assert_int_equal(first_of(rig, FACT_TICK)->fact.tick.samples,
			 STACKS_MAX_QUEUED + 9);
}

static void bytes_are_bounded_too(void **state)
{
	struct stacks_stats stats;
	struct rig *rig = *state;

	stage_kill(rig->stage);
	for (int i = 0; i < STACKS_MAX_QUEUED; i++)
		tick(rig, ABI_STACK_COPY_MAX, NULL, 0);
	stacks_stats(rig->stacks, &stats);
	assert_true(stats.queued * ABI_STACK_COPY_MAX <= STACKS_MAX_BYTES);
	assert_int_equal(stats.queued + stats.dropped, STACKS_MAX_QUEUED);
}

static void only_the_stack_that_killed_the_worker_is_lost(void **state)
{
	struct rig *rig = *state;

	tick(rig, 64, NULL, 0);
	tick(rig, 64, NULL, 0);
	stage_kill(rig->stage);
	assert_int_equal(rig->lost, 1);
	stage_hire(rig->stage);
	modules_worker_died(rig->modules, JOB_RESOLVE);
	stacks_pump(rig->stacks);
	assert_int_equal(stage_request(rig->stage).kind, MESSAGE_OPEN);
	unwound(rig, true);
	assert_int_equal(rig->lost, 1);
	stacks_flush(rig->stacks);
	assert_int_equal(count_of(rig, FACT_STACK), 2);
}

static void a_forgotten_module_is_opened_again(void **state)
{
	struct rig *rig = *state;

	tick(rig, 64, NULL, 0);
	assert_int_equal(stage_request(rig->stage).kind, MESSAGE_OPEN);
	stage_refuse(rig->stage, ERR_NOT_FOUND);
	stacks_pump(rig->stacks);
	assert_int_equal(stage_request(rig->stage).kind, MESSAGE_OPEN);
	unwound(rig, true);
	assert_int_equal(rig->lost, 0);
	assert_true(first_of(rig, FACT_STACK)->fact.stack.complete);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_stack_is_put_once_and_its_ticks_are_added_up),
		UNIT(a_stack_without_its_root_is_kept_and_counted),
		UNIT(a_tick_that_nobody_can_unwind_keeps_its_leaf),
		UNIT(frame_pointers_are_trusted_after_many_equal_walks),
		UNIT(over_the_bound_ticks_keep_their_leaf),
		UNIT(bytes_are_bounded_too),
		UNIT(only_the_stack_that_killed_the_worker_is_lost),
		UNIT(a_forgotten_module_is_opened_again),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
