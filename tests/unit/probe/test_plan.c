// SPDX-License-Identifier: Apache-2.0
/* The rules of probe/plan.h on replies made up for each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "probe/plan.h"

#define HEAD                                                                 \
	"spec: t\nvariants:\n  - name: v\n    match:\n      - path: '*/t'\n" \
	"    probes:\n"

static const struct resolve_site push = { 0x1000, 0x100, RESOLVE_PUSH, true, false,
					  false,  0 };
static const struct resolve_site stepped = { 0x1000, 0x100, RESOLVE_OTHER, false, false,
					     false,  0 };
static const struct resolve_site ret = { 0x1050, 0x150, RESOLVE_RETURN, false, true,
					 false,	 0 };
static const struct resolve_site check = { 0x1040, 0x140, RESOLVE_BRANCH, true, true,
					   true,   8 };

struct made {
	struct spec *spec;
	struct arena *arena;
	struct plan *plan;
};

static struct made make(const char *text, const struct resolve_reply *reply)
{
	struct made made = { .arena = arena_new() };
	struct resolve_request request;
	struct err *err = spec_parse("t.yaml", text, strlen(text), &made.spec);

	if (!err)
		err = plan_request(&made.spec->variants[0], made.arena, &request);
	if (!err)
		err = plan_build(made.spec, &made.spec->variants[0], &request, reply,
				 &made.plan);
	if (err)
		fail_msg("%s", err->text);
	return made;
}

static void made_fini(struct made *made)
{
	plan_free(made->plan);
	spec_free(made->spec);
	arena_free(made->arena);
}

static inline void cleanup_made_fini(struct made *made)
{
	made_fini(made);
}

/* One function with these sites; its first instruction is emulated. */
#define ONE(throws_, ...)                                                                \
	(&(struct resolve_reply){                                                        \
		.throws = throws_,                                                       \
		.targets =                                                               \
			&(struct resolve_target){                                        \
				.va = 0x1000,                                            \
				.off = 0x100,                                            \
				.bytes = 0x60,                                           \
				.is_emulated = true,                                     \
				.name = "f",                                             \
				.return_reason = "",                                     \
				.sites = (struct resolve_site[]){ __VA_ARGS__ },         \
				.site_count =                                            \
					sizeof((struct resolve_site[]){ __VA_ARGS__ }) / \
					sizeof(struct resolve_site),                     \
			},                                                               \
		.target_count = 1 })

#define PAIRED HEAD "      - {id: p, function: f, at: paired, verb: request, key: arg1}\n"

static void a_pair_is_an_entry_and_a_return_with_one_number(void **state)
{
	CLEANUP(made_fini) struct made made = make(PAIRED, ONE(true, push, check));
	const struct plan_point *points = made.plan->points;

	(void)state;
	assert_int_equal(made.plan->point_count, 2);
	assert_string_equal(made.plan->refusal, "");
	assert_int_equal(points[0].abi.verb, ABI_REQUEST_BEGIN);
	assert_int_equal(points[1].abi.verb, ABI_REQUEST_END);
	assert_int_equal(points[0].abi.flags, ABI_PROBE_PAIRED);
	assert_int_equal(points[1].abi.flags,
			 ABI_PROBE_PAIRED | ABI_PROBE_RETURN | ABI_PROBE_BY_FRAME);
	assert_int_equal(points[1].abi.sp_delta, 8);
	assert_int_not_equal(points[0].abi.pair, 0);
	assert_int_equal(points[0].abi.pair, points[1].abi.pair);
	assert_int_equal(points[0].abi.key.value.base, ABI_BASE_REG);
	/* The end takes the key that the begin has saved. */
	assert_int_equal(points[1].abi.key.value.base, ABI_BASE_NONE);
}

static void a_uretprobe_is_used_only_where_nothing_throws(void **state)
{
	CLEANUP(made_fini) struct made calm = make(PAIRED, ONE(false, push, ret));
	CLEANUP(made_fini) struct made throws = make(PAIRED, ONE(true, push, ret));

	(void)state;
	assert_int_equal(calm.plan->point_count, 2);
	assert_true(calm.plan->points[1].is_uretprobe);
	assert_int_equal(calm.plan->points[1].off, 0x100);
	assert_int_equal(calm.plan->points[1].abi.sp_delta, -8);
	assert_int_equal(throws.plan->point_count, 0);
	assert_non_null(strstr(throws.plan->probes[0].reason, "exception"));
	assert_non_null(strstr(throws.plan->refusal, "none of its probes"));
}

static void cheap_returns_are_preferred_to_a_uretprobe(void **state)
{
	CLEANUP(made_fini) struct made made = make(PAIRED, ONE(false, push, check));

	(void)state;
	assert_false(made.plan->points[1].is_uretprobe);
	assert_int_equal(made.plan->points[1].cost, PLAN_EMULATED);
}

static void who_never_throws_may_have_a_uretprobe(void **state)
{
	CLEANUP(made_fini)
	struct made made = make(HEAD "      - {id: p, function: f, at: paired, verb: "
				     "request, fails_by: never}\n",
				ONE(true, push, ret));

	(void)state;
	assert_true(made.plan->points[1].is_uretprobe);
}

static void single_stepping_is_for_the_cold_and_for_windows(void **state)
{
	static const struct {
		const char *heat;
		size_t points;
		bool in_windows;
	} cases[] = { { "cold", 1, false },
		      { "warm", 0, false },
		      { "hot", 0, false },
		      { "windows", 1, true } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		char text[512];

		snprintf(text, sizeof(text),
			 HEAD "      - {id: p, function: f, verb: request.begin, "
			      "temperature: %s}\n",
			 cases[i].heat);
		CLEANUP(made_fini) struct made made = make(text, ONE(false, stepped));

		assert_int_equal(made.plan->point_count, cases[i].points);
		if (!cases[i].points) {
			assert_non_null(
				strstr(made.plan->probes[0].reason, "single-stepped"));
			continue;
		}
		assert_int_equal(made.plan->points[0].cost, PLAN_STEPPED);
		assert_int_equal(made.plan->points[0].in_windows, cases[i].in_windows);
	}
}

static void stepped_returns_are_used_where_it_throws_and_is_cold(void **state)
{
	CLEANUP(made_fini)
	struct made made = make(HEAD "      - {id: p, function: f, at: paired, verb: "
				     "request, temperature: cold}\n",
				ONE(true, push, ret, check));

	(void)state;
	assert_int_equal(made.plan->point_count, 3);
	assert_false(made.plan->points[1].is_uretprobe);
	assert_int_equal(made.plan->points[1].cost, PLAN_STEPPED);
}

static void half_a_pair_is_not_placed(void **state)
{
	CLEANUP(made_fini)
	struct made made =
		make(HEAD "      - {id: p, function: f, at: paired, verb: request}\n"
			  "      - {id: q, function: f, verb: request.begin}\n",
		     ONE(true, push, ret));

	(void)state;
	assert_int_equal(made.plan->probes[0].point_count, 0);
	assert_int_equal(made.plan->point_count, 0);
}

static void a_spare_probe_comes_in_when_the_other_is_missing(void **state)
{
	static const char text[] =
		HEAD "      - {id: p, function: f, verb: request.begin, missing: next}\n"
		     "      - {id: q, function: g, verb: request.begin, instead_of: p}\n";
	const struct resolve_target targets[] = {
		{ .probe = 0,
		  .name = "f",
		  .return_reason = "",
		  .sites = &push,
		  .site_count = 1 },
		{ .probe = 1,
		  .name = "g",
		  .return_reason = "",
		  .sites = &push,
		  .site_count = 1 },
	};
	const struct resolve_failure failure = { 0, "there is no function f" };
	CLEANUP(made_fini)
	struct made both = make(
		text, &(struct resolve_reply){ .targets = targets, .target_count = 2 });
	CLEANUP(made_fini)
	struct made one = make(text, &(struct resolve_reply){ .targets = targets + 1,
							      .target_count = 1,
							      .failures = &failure,
							      .failure_count = 1 });
	CLEANUP(made_fini)
	struct made none = make(text, &(struct resolve_reply){ .failures = &failure,
							       .failure_count = 1 });

	(void)state;
	assert_int_equal(both.plan->point_count, 1);
	assert_true(both.plan->probes[1].is_spare);
	assert_int_equal(one.plan->point_count, 1);
	assert_string_equal(one.plan->points[0].function, "g");
	assert_string_equal(one.plan->refusal, "");
	assert_non_null(strstr(none.plan->refusal, "it needs the probe p: there is no"));
}

static void a_missing_need_refuses_the_variant(void **state)
{
	static const char text[] =
		"spec: t\nvariants:\n  - name: v\n    match:\n      - path: '*/t'\n"
		"    needs:\n      - function: g\n"
		"    probes:\n      - {id: p, function: f, verb: request.begin}\n";
	const struct resolve_target target = { .probe = 1,
					       .name = "f",
					       .return_reason = "",
					       .sites = &push,
					       .site_count = 1 };
	const struct resolve_failure failure = { 0, "there is no function g" };
	CLEANUP(made_fini)
	struct made made = make(text, &(struct resolve_reply){ .targets = &target,
							       .target_count = 1,
							       .failures = &failure,
							       .failure_count = 1 });

	(void)state;
	assert_string_equal(made.plan->refusal,
			    "it needs function g: there is no function g");
}

static void what_needs_the_result_is_read_at_the_return(void **state)
{
	CLEANUP(made_fini)
	struct made made = make(HEAD "      - {id: p, function: f, at: paired, verb: "
				     "cost.add, key: arg1, amount: ret, "
				     "when: ret == 0 && arg2 == 1}\n",
				ONE(false, push, check));
	const struct plan_point *points = made.plan->points;

	(void)state;
	assert_int_equal(points[0].abi.amount.value.base, ABI_BASE_NONE);
	assert_int_equal(points[0].abi.when[0].op, ABI_OP_NONE);
	assert_int_equal(points[0].abi.when[1].op, ABI_OP_EQ);
	assert_int_equal(points[1].abi.when[1].op, ABI_OP_NONE);
	assert_int_equal(points[1].abi.amount.value.base, ABI_BASE_REG);
	assert_int_equal(points[1].abi.amount.value.reg, 0);
	assert_int_equal(points[1].abi.when[0].op, ABI_OP_EQ);
}

static void one_moment_at_the_return_keeps_what_the_entry_knows(void **state)
{
	CLEANUP(made_fini)
	struct made made = make("spec: t\nvariants:\n  - name: v\n    match:\n"
				"      - path: '*/t'\n"
				"    resources:\n      - {name: till}\n"
				"    probes:\n      - {id: p, function: f, at: paired, "
				"verb: resource.acquire, resource: till, object: arg1, "
				"when: ret == 0}\n",
				ONE(false, push, check));
	const struct plan_point *points = made.plan->points;

	(void)state;
	assert_int_equal(made.plan->point_count, 2);
	assert_int_equal(points[0].abi.verb, ABI_ACQUIRE);
	assert_int_equal(points[0].abi.flags, ABI_PROBE_PAIRED | ABI_PROBE_SAVE);
	assert_int_equal(points[0].abi.object.value.base, ABI_BASE_REG);
	assert_int_equal(points[1].abi.verb, ABI_ACQUIRE);
	assert_false(points[1].abi.flags & ABI_PROBE_SAVE);
	assert_int_equal(points[1].abi.object.value.base, ABI_BASE_NONE);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_pair_is_an_entry_and_a_return_with_one_number),
		cmocka_unit_test(a_uretprobe_is_used_only_where_nothing_throws),
		cmocka_unit_test(cheap_returns_are_preferred_to_a_uretprobe),
		cmocka_unit_test(who_never_throws_may_have_a_uretprobe),
		cmocka_unit_test(single_stepping_is_for_the_cold_and_for_windows),
		cmocka_unit_test(stepped_returns_are_used_where_it_throws_and_is_cold),
		cmocka_unit_test(half_a_pair_is_not_placed),
		cmocka_unit_test(a_spare_probe_comes_in_when_the_other_is_missing),
		cmocka_unit_test(a_missing_need_refuses_the_variant),
		cmocka_unit_test(what_needs_the_result_is_read_at_the_return),
		cmocka_unit_test(one_moment_at_the_return_keeps_what_the_entry_knows),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
