// SPDX-License-Identifier: Apache-2.0
/* Which kinds of requests are told apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/mem.h"
#include "live/method.h"

#define LIMIT 4

/* What was put: the last name, and how many. */
struct puts {
	struct sink sink; /* first */
	char last[64];
	size_t count;
};

static void keep(struct sink *sink, const struct fact *fact)
{
	struct puts *puts = (struct puts *)sink;

	snprintf(puts->last, sizeof(puts->last), "%s", fact->method.name);
	puts->count++;
}

static uint64_t learn(struct methods *methods, const char *framework, const char *name)
{
	struct abi_span span = { .name_id =
					 (uint64_t)name[0] << 8 | (uint64_t)framework[0],
				 .name_bytes = (uint16_t)strlen(name) };

	methods_learn(methods, &span, name, framework);
	return methods_kind(methods, span.name_id);
}

static void names_beyond_the_limit_are_one_kind_per_framework(void **state)
{
	struct puts puts = { .sink = { keep } };
	CLEANUP(methods_free)
	struct methods *methods = methods_new(&puts.sink, false, LIMIT);
	uint64_t a = learn(methods, "redis", "a"), f;

	(void)state;
	assert_true(a != learn(methods, "redis", "b"));
	learn(methods, "redis", "c");
	learn(methods, "redis", "d");
	f = learn(methods, "redis", "f");
	assert_string_equal(puts.last, "(other)");
	assert_true(f != a);
	assert_true(f == learn(methods, "redis", "e"));
	assert_true(learn(methods, "redis", "a") == a);
	assert_true(learn(methods, "nginx", "f") != f);
	assert_string_equal(puts.last, "f");
}

static void the_dearest_stay_and_the_cheapest_make_room(void **state)
{
	static const char *const names[] = { "a", "b", "c", "d" };
	struct puts puts = { .sink = { keep } };
	CLEANUP(methods_free)
	struct methods *methods = methods_new(&puts.sink, false, LIMIT);
	uint64_t kinds[LIMIT];

	(void)state;
	for (uint64_t i = 0; i < LIMIT; i++) {
		kinds[i] = learn(methods, "redis", names[i]);
		methods_charge(methods, kinds[i], i == 2 ? 10 : 1000 + i);
	}
	uint64_t other = learn(methods, "redis", "x");

	methods_turn(methods);
	assert_true(methods_kind(methods, (uint64_t)'c' << 8 | 'r') == other);
	assert_true(learn(methods, "redis", "x") != other);
	assert_string_equal(puts.last, "x");
	assert_true(learn(methods, "redis", "a") == kinds[0]);
	assert_true(learn(methods, "redis", "d") == kinds[3]);
	assert_true(learn(methods, "redis", "c") == other);
}

static void of_a_hashed_name_no_letter_is_put(void **state)
{
	struct puts puts = { .sink = { keep } };
	CLEANUP(methods_free) struct methods *methods = methods_new(&puts.sink, true, 0);

	(void)state;
	learn(methods, "redis", "secret");
	assert_int_equal(puts.count, 1);
	assert_int_equal(puts.last[0], '#');
	assert_int_equal(strspn(puts.last + 1, "0123456789abcdef"), 16);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_beyond_the_limit_are_one_kind_per_framework),
		cmocka_unit_test(the_dearest_stay_and_the_cheapest_make_room),
		cmocka_unit_test(of_a_hashed_name_no_letter_is_put),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
