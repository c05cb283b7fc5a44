// SPDX-License-Identifier: Apache-2.0
#include "unit/daemon/stage.h"

#include "daemon/explain.h"

#define PID 5
#define S   1000000000ull

struct rig {
	struct stage *stage;
	struct modules *modules;
	struct explain *explain;
	uint64_t now_ns;
};

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
	rig->now_ns = 100 * S;
	rig->modules =
		modules_new(&(struct modules_config){ .opener = &rig->stage->opener,
						      .jobs = &rig->stage->jobs,
						      .sink = &rig->stage->sink,
						      .feed = stage_feed,
						      .ctx = rig->stage });
	rig->explain = explain_new(&(struct explain_config){ .jobs = &rig->stage->jobs,
							     .modules = rig->modules,
							     .sink = &rig->stage->sink });
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

	explain_free(rig->explain);
	modules_free(rig->modules);
	stage_free(rig->stage);
	free(rig);
	return 0;
}

static void sampled(struct rig *rig, uint64_t va, uint32_t source)
{
	explain_note(rig->explain,
		     &(struct fact){ .kind = FACT_ACCESS,
				     .access = { .module_id = stage_module_id(1),
						 .va = va,
						 .source = source } });
}

static void pump(struct rig *rig)
{
	rig->now_ns += 10 * S;
	explain_pump(rig->explain, rig->now_ns);
}

static struct job_symbol symbol_of(uint64_t va)
{
	return (struct job_symbol){ .va = va,
				    .function_va = 0x1400,
				    .function_bytes = 0x100,
				    .function = "f",
				    .function_file = "f.c",
				    .file = "f.h",
				    .function_line = 3,
				    .line = 7 };
}

static void answer_symbols(struct rig *rig, const struct job_symbol *symbols,
			   size_t count)
{
	const struct job_reply reply = { .kind = JOB_SYMBOLS,
					 .symbols = { symbols, count } };

	stage_answer(rig->stage, &reply);
}

static void answer_site(struct rig *rig, uint64_t va, bool skid)
{
	const struct fact_type type = { 70, "struct s", 16 };
	const struct fact_field field = { 70, 8, 8, "next" };
	const struct fact_answer answer = {
		.module_id = 12345, /* whatever it says, it was asked about one */
		.type_id = 70,
		.skid = skid,
		.answer = { .va = va,
			    .insn_va = va - 4,
			    .verdict = VERDICT_DWARF,
			    .type = "struct s",
			    .path = "next",
			    .confidence = 0.9 }
	};
	const struct job_reply reply = { .kind = JOB_SITES,
					 .sites = { .answers = { &type, 1, &field, 1,
								 &answer, 1 } } };

	stage_answer(rig->stage, &reply);
}

static size_t count_of(const struct rig *rig, enum fact_kind kind)
{
	size_t count = 0;

	vec_each(&rig->stage->facts, kept)
		count += kept->fact.kind == kind;
	return count;
}

static const struct fact *last_of(const struct rig *rig, enum fact_kind kind)
{
	const struct fact *found = NULL;

	vec_each(&rig->stage->facts, kept)
		if (kept->fact.kind == kind)
			found = &kept->fact;
	assert_non_null(found);
	return found;
}

/* The module is opened once per class before the first batch. */
static void expect_open(struct rig *rig)
{
	assert_int_equal(stage_request(rig->stage).kind, MESSAGE_OPEN);
}

static void a_sampled_address_is_explained_once(void **state)
{
	struct rig *rig = *state;
	const struct job_symbol symbol = symbol_of(0x1404);

	sampled(rig, 0x1404, ABI_SOURCE_CLOCK);
	sampled(rig, 0x1404, ABI_SOURCE_CLOCK);
	assert_false(explain_idle(rig->explain));
	pump(rig);
	expect_open(rig);
	answer_symbols(rig, &symbol, 1);
	expect_open(rig);
	answer_site(rig, 0x1404, true);
	assert_true(explain_idle(rig->explain));
	assert_int_equal(count_of(rig, FACT_FUNCTION), 1);
	assert_int_equal(last_of(rig, FACT_SITE)->site.line, 7);
	assert_int_equal(last_of(rig, FACT_FUNCTION)->function.line, 3);
	assert_int_equal(count_of(rig, FACT_TYPE), 1);
	assert_int_equal(count_of(rig, FACT_FIELD), 1);
	assert_int_equal(last_of(rig, FACT_ANSWER)->answer.module_id, stage_module_id(1));
	assert_true(last_of(rig, FACT_ANSWER)->answer.skid);
	/* Again: nothing. From an exact source: only the answer differs. */
	sampled(rig, 0x1404, ABI_SOURCE_CLOCK);
	assert_true(explain_idle(rig->explain));
	sampled(rig, 0x1404, ABI_SOURCE_IBS);
	pump(rig);
	answer_site(rig, 0x1404, false);
	assert_false(last_of(rig, FACT_ANSWER)->answer.skid);
	assert_true(explain_idle(rig->explain));
	assert_true(stage_is_quiet(rig->stage));
}

static void frames_of_stacks_get_names_but_no_types(void **state)
{
	struct rig *rig = *state;
	const struct fact_frame frames[] = { { 0, 0x99 },
					     { stage_module_id(1), 0x1404 } };
	const struct job_symbol symbol = symbol_of(0x1404);

	explain_note(rig->explain,
		     &(struct fact){ .kind = FACT_STACK,
				     .stack = { .frames = frames, .count = 2 } });
	pump(rig);
	expect_open(rig);
	answer_symbols(rig, &symbol, 1);
	assert_true(explain_idle(rig->explain));
	assert_int_equal(count_of(rig, FACT_SITE), 1);
}

static void many_addresses_travel_in_batches(void **state)
{
	struct rig *rig = *state;
	struct job_symbol symbols[EXPLAIN_BATCH];
	struct explain_stats stats;

	for (uint64_t i = 0; i < EXPLAIN_BATCH + 10; i++)
		explain_want(rig->explain, stage_module_id(1), i, false, false);
	pump(rig);
	expect_open(rig);
	for (uint64_t i = 0; i < EXPLAIN_BATCH; i++)
		symbols[i] = symbol_of(i);
	answer_symbols(rig, symbols, EXPLAIN_BATCH);
	answer_symbols(rig, symbols, 10);
	explain_stats(rig->explain, &stats);
	assert_int_equal(stats.sites, EXPLAIN_BATCH + 10);
	assert_int_equal(count_of(rig, FACT_FUNCTION), 1);
}

static void what_the_store_knows_is_not_asked(void **state)
{
	struct rig *rig = *state;

	explain_known(rig->explain, stage_module_id(1), 0x1404, true);
	sampled(rig, 0x1404, ABI_SOURCE_CLOCK);
	assert_true(explain_idle(rig->explain));
}

/* Let the worker die over the first batch of types of this module. */
static void die_over_types(struct rig *rig)
{
	pump(rig);
	stage_kill(rig->stage);
	stage_hire(rig->stage);
	modules_worker_died(rig->modules, JOB_RESOLVE);
	modules_worker_died(rig->modules, JOB_ANALYZE);
}

static void a_module_that_kills_two_workers_is_left_alone(void **state)
{
	struct rig *rig = *state;
	const struct job_symbol symbol = symbol_of(0x1404);
	struct explain_stats stats;

	sampled(rig, 0x1404, ABI_SOURCE_CLOCK);
	pump(rig);
	expect_open(rig);
	answer_symbols(rig, &symbol, 1);
	die_over_types(rig);
	explain_stats(rig->explain, &stats);
	assert_int_equal(stats.poisoned, 0);
	assert_int_equal(stats.waiting, 1);
	die_over_types(rig);
	explain_stats(rig->explain, &stats);
	assert_int_equal(stats.poisoned, 1);
	assert_true(explain_idle(rig->explain));
	assert_int_equal(last_of(rig, FACT_ANSWER)->answer.answer.verdict, VERDICT_LIMIT);
	/* Names still come; types are not asked for again. */
	sampled(rig, 0x1408, ABI_SOURCE_CLOCK);
	explain_stats(rig->explain, &stats);
	assert_int_equal(stats.waiting, 1);
}

static void a_death_over_another_job_is_not_held_against_a_module(void **state)
{
	struct rig *rig = *state;
	struct explain_stats stats;
	struct live_file other = { .key = 2,
				   .pid = PID,
				   .addr = 0x1000,
				   .length = 0x1000,
				   .inode = 1,
				   .path = "/bin/y" };

	for (int i = 0; i < 5; i++) {
		/* The identify job is first in the worker's queue. */
		modules_want(rig->modules, &other);
		sampled(rig, 0x1404, ABI_SOURCE_CLOCK);
		die_over_types(rig);
	}
	explain_stats(rig->explain, &stats);
	assert_int_equal(stats.poisoned, 0);
	assert_int_equal(stats.waiting, 2);
}

static void a_module_without_file_is_answered_with_the_reason(void **state)
{
	struct rig *rig = *state;
	const struct job_symbol symbol = symbol_of(0x1404);

	sampled(rig, 0x1404, ABI_SOURCE_CLOCK);
	pump(rig);
	expect_open(rig);
	answer_symbols(rig, &symbol, 1);
	expect_open(rig);
	stage_refuse(rig->stage, ERR_UNSUPPORTED);
	assert_true(explain_idle(rig->explain));
	assert_int_equal(last_of(rig, FACT_ANSWER)->answer.answer.verdict,
			 VERDICT_NO_DEBUG);
	assert_int_equal(last_of(rig, FACT_ANSWER)->answer.answer.va, 0x1404);
}

static void a_worker_that_forgets_a_module_is_told_again_but_not_for_ever(void **state)
{
	struct rig *rig = *state;
	int rounds = 0;

	explain_want(rig->explain, stage_module_id(1), 0x1404, false, false);
	while (!explain_idle(rig->explain) && rounds < 10) {
		pump(rig);
		expect_open(rig);
		stage_refuse(rig->stage, ERR_NOT_FOUND);
		rounds++;
	}
	assert_int_equal(rounds, 3);
}

static void new_debug_information_means_new_questions(void **state)
{
	struct rig *rig = *state;

	explain_known(rig->explain, stage_module_id(1), 0x1404, true);
	explain_debug_found(rig->explain, stage_module_id(1));
	sampled(rig, 0x1404, ABI_SOURCE_CLOCK);
	assert_false(explain_idle(rig->explain));
}

static void a_module_that_nobody_can_open_ends_the_wait(void **state)
{
	struct rig *rig = *state;
	struct explain_stats stats;

	explain_want(rig->explain, 4711, 0x1404, false, true);
	pump(rig);
	assert_true(explain_idle(rig->explain));
	explain_stats(rig->explain, &stats);
	assert_int_equal(stats.failed, 2);
}

static void waiting_is_bounded(void **state)
{
	struct rig *rig = *state;
	struct explain_stats stats;

	for (uint64_t i = 0; i < EXPLAIN_MAX_WAITING + 5; i++)
		explain_want(rig->explain, stage_module_id(1), i, false, false);
	explain_stats(rig->explain, &stats);
	assert_int_equal(stats.waiting, EXPLAIN_MAX_WAITING);
	assert_int_equal(stats.dropped, 5);
}

static void the_owner_may_go_before_the_answer(void **state)
{
	struct rig *rig = *state;
	const struct job_symbol symbol = symbol_of(0x1404);

	sampled(rig, 0x1404, ABI_SOURCE_CLOCK);
	pump(rig);
	explain_free(take(rig->explain));
	expect_open(rig);
	answer_symbols(rig, &symbol, 1);
	stage_kill(rig->stage);
	assert_int_equal(count_of(rig, FACT_SITE), 0);
}

#define UNIT(name) cmocka_unit_test_setup_teardown(name, set_up, tear_down)

int main(void)
{
	const struct CMUnitTest tests[] = {
		UNIT(a_sampled_address_is_explained_once),
		UNIT(frames_of_stacks_get_names_but_no_types),
		UNIT(many_addresses_travel_in_batches),
		UNIT(what_the_store_knows_is_not_asked),
		UNIT(a_module_that_kills_two_workers_is_left_alone),
		UNIT(a_death_over_another_job_is_not_held_against_a_module),
		UNIT(a_module_without_file_is_answered_with_the_reason),
		UNIT(a_worker_that_forgets_a_module_is_told_again_but_not_for_ever),
		UNIT(new_debug_information_means_new_questions),
		UNIT(a_module_that_nobody_can_open_ends_the_wait),
		UNIT(waiting_is_bounded),
		UNIT(the_owner_may_go_before_the_answer),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
