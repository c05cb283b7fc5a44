// SPDX-License-Identifier: Apache-2.0
/*
 * Truth is arithmetic by hand for small trees, and for the errors a population that is
 * known in full, of which samples are drawn again and again.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "cost/profile.h"

struct row {
	uint64_t id, parent;
	const char *service, *name;
	uint64_t cpu_ns;
	double weight;
};

static void add(struct profile *profile, const struct row *row)
{
	struct profile_span span = { .span_id = row->id,
				     .parent_id = row->parent,
				     .service = row->service,
				     .name = row->name,
				     .kind = PROFILE_SERVED,
				     .duration_ns = 2 * row->cpu_ns,
				     .cpu_ns = row->cpu_ns,
				     .weight = row->weight };

	assert_true(profile_add(profile, &span));
}

static struct profile *profile_of(const struct row *rows)
{
	struct profile *profile = profile_new();

	for (; rows->id; rows++)
		add(profile, rows);
	profile_finish(profile);
	return profile;
}

static const struct profile_row *method(const struct profile *profile, const char *name)
{
	size_t count;
	const struct profile_row *rows = profile_methods(profile, &count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(rows[i].name, name))
			return &rows[i];
	fail_msg("no method %s", name);
	return NULL;
}

static bool near(double a, double b)
{
	return fabs(a - b) <= 1e-9 * (1 + fabs(b));
}

/* Two traces of buy, one of look; children come before their parents. */
static const struct row shop[] = {
	{ 3, 2, "redis", "get", 10, 1 },    { 2, 1, "cart", "add", 100, 1 },
	{ 4, 2, "redis", "get", 30, 1 },    { 1, 0, "front", "buy", 1000, 4 },
	{ 11, 0, "front", "buy", 2000, 4 }, { 21, 0, "front", "look", 500, 4 },
	{ 22, 21, "redis", "get", 20, 1 },  { 0 },
};

static void cost_flows_up_to_the_root(void **state)
{
	CLEANUP(profile_free) struct profile *profile = profile_of(shop);
	const struct profile_row *buy = method(profile, "buy"),
				 *get = method(profile, "get");

	(void)state;
	assert_int_equal(buy->sampled, 2);
	assert_true(near(buy->calls.value, 8));
	assert_true(near(buy->self_ns.value, 1500));
	assert_true(near(buy->transitive_ns.value, (1140 + 2000) / 2.0));
	assert_true(buy->is_root);
	/* The weight is the trace's, whatever a span says. */
	assert_true(near(get->calls.value, 12));
	assert_true(near(get->self_ns.value, 20));
	assert_false(get->is_root);
	/* Var of calls: w (w - 1) n^2 = 4 * 3 * (2^2 + 1^2). */
	assert_true(near(get->calls.error, sqrt(60)));
	assert_int_equal(profile_stats(profile).roots, 3);
}

static void paths_are_merged_by_structure(void **state)
{
	CLEANUP(profile_free) struct profile *profile = profile_of(shop);
	size_t count;
	const struct profile_row *paths = profile_paths(profile, &count);
	static const char *const names[] = { "buy", "add", "get", "look", "get" };
	static const size_t parents[] = { SIZE_MAX, 0, 1, SIZE_MAX, 3 };
	static const double calls[] = { 8, 4, 8, 4, 4 };

	(void)state;
	assert_int_equal(count, 5);
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(paths[i].name, names[i]);
		assert_int_equal(paths[i].parent, parents[i]);
		assert_true(near(paths[i].calls.value, calls[i]));
	}
}

static void roots_pay_for_what_they_ask_for(void **state)
{
	CLEANUP(profile_free) struct profile *profile = profile_of(shop);
	size_t count, edges, methods;
	const struct profile_payer *payers = profile_payers(profile, &count);
	const struct profile_row *rows = profile_methods(profile, &methods);
	double by_buy = 0, by_look = 0;

	(void)state;
	for (size_t i = 0; i < count; i++) {
		if (strcmp(rows[payers[i].method].name, "get"))
			continue;
		if (!strcmp(rows[payers[i].root].name, "buy"))
			by_buy = payers[i].cpu_ns;
		else
			by_look = payers[i].cpu_ns;
	}
	assert_true(near(by_buy, 160));
	assert_true(near(by_look, 80));
	const struct profile_edge *edge = profile_edges(profile, &edges);

	assert_int_equal(edges, 3);
	for (size_t i = 0; i < edges; i++)
		if (!strcmp(rows[edge[i].parent].name, "add"))
			assert_true(near(edge[i].calls.value, 8));
}

static void a_lost_parent_makes_a_root_and_a_circle_is_left_out(void **state)
{
	static const struct row rows[] = {
		{ 1, 99, "a", "orphan", 10, 1 },
		{ 2, 3, "a", "x", 10, 1 },
		{ 3, 2, "a", "x", 10, 1 },
		{ 4, 4, "a", "self", 10, 1 },
		{ 0 },
	};
	CLEANUP(profile_free) struct profile *profile = profile_of(rows);
	struct profile_stats stats = profile_stats(profile);

	(void)state;
	assert_true(method(profile, "orphan")->is_root);
	assert_int_equal(stats.roots, 1);
	assert_int_equal(stats.lost_parents, 1);
	assert_int_equal(stats.loops, 3);
}

static void recursion_is_not_counted_twice_in_the_sum(void **state)
{
	static const struct row rows[] = {
		{ 1, 0, "a", "f", 10, 1 },
		{ 2, 1, "a", "f", 5, 1 },
		{ 0 },
	};
	CLEANUP(profile_free) struct profile *profile = profile_of(rows);

	(void)state;
	assert_true(near(method(profile, "f")->transitive_sum, 15));
	assert_true(near(method(profile, "f")->cpu_ns, 15));
}

static void a_very_deep_trace_does_no_harm(void **state)
{
	CLEANUP(profile_free) struct profile *profile = profile_new();
	size_t count;

	(void)state;
	for (uint64_t i = 1; i <= 50000; i++) {
		struct row row = { i, i - 1, "a", "f", 1, 1 };

		add(profile, &row);
	}
	profile_finish(profile);
	profile_paths(profile, &count);
	assert_int_equal(count, PROFILE_MAX_DEPTH);
	assert_true(near(method(profile, "f")->transitive_sum, 50000));
}

/* Requests with 0 to 5 children of skewed cost, each kept with probability 1 / 10. */
#define POPULATION 4000
#define DRAWS	   400

static double skewed(void)
{
	return -1000 * log((rand() + 1.0) / (RAND_MAX + 2.0));
}

struct truth {
	double self[POPULATION][6];
	int children[POPULATION];
	double cost, calls; /* mean transitive cost of a root; number of children */
};

static void fill(struct truth *truth)
{
	double sum = 0;

	truth->calls = 0;
	for (int i = 0; i < POPULATION; i++) {
		truth->children[i] = rand() % 6;
		truth->calls += truth->children[i];
		for (int c = 0; c <= truth->children[i]; c++) {
			truth->self[i][c] = floor(skewed());
			sum += truth->self[i][c];
		}
	}
	truth->cost = sum / POPULATION;
}

static struct profile *draw(const struct truth *truth)
{
	struct profile *profile = profile_new();

	for (int i = 0; i < POPULATION; i++) {
		if (rand() % 10)
			continue;
		for (int c = 0; c <= truth->children[i]; c++) {
			uint64_t root = (uint64_t)i * 8 + 1;
			struct row row = { root + (uint64_t)c,
					   c ? root : 0,
					   "s",
					   c ? "child" : "root",
					   (uint64_t)truth->self[i][c],
					   10 };

			add(profile, &row);
		}
	}
	profile_finish(profile);
	return profile;
}

/* 95 % intervals: of 400, all but 20 +- 9 (two standard deviations) should cover. */
static void errors_are_as_large_as_they_say(void **state)
{
	static struct truth truth;
	int cost = 0, calls = 0;
	double bias = 0;

	(void)state;
	srand(12345);
	fill(&truth);
	for (int i = 0; i < DRAWS; i++) {
		CLEANUP(profile_free) struct profile *profile = draw(&truth);
		struct estimate mean = method(profile, "root")->transitive_ns,
				count = method(profile, "child")->calls;

		cost += fabs(mean.value - truth.cost) <= 1.96 * mean.error;
		calls += fabs(count.value - truth.calls) <= 1.96 * count.error;
		bias += (mean.value - truth.cost) / mean.error;
	}
	print_message("covered: cost %.1f%%, calls %.1f%%, mean error %.2f se\n",
		      cost * 100.0 / DRAWS, calls * 100.0 / DRAWS, bias / DRAWS);
	assert_in_range(cost, DRAWS * 92 / 100, DRAWS * 98 / 100);
	assert_in_range(calls, DRAWS * 92 / 100, DRAWS * 98 / 100);
	assert_true(fabs(bias / DRAWS) < 0.2);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(cost_flows_up_to_the_root),
		cmocka_unit_test(paths_are_merged_by_structure),
		cmocka_unit_test(roots_pay_for_what_they_ask_for),
		cmocka_unit_test(a_lost_parent_makes_a_root_and_a_circle_is_left_out),
		cmocka_unit_test(recursion_is_not_counted_twice_in_the_sum),
		cmocka_unit_test(a_very_deep_trace_does_no_harm),
		cmocka_unit_test(errors_are_as_large_as_they_say),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
