// SPDX-License-Identifier: Apache-2.0
#include "resource/trend.h"

#include <setjmp.h>
#include <stdarg.h>
#include <stdint.h>

#include <cmocka.h>

#define COUNT(values) (sizeof(values) / sizeof((values)[0]))

static void what_rises_to_the_end_grows(void **state)
{
	static const float line[] = { 10, 20, 30, 41, 50, 61, 70, 80 };
	static const float wave[] = { 10, 30, 20, 45, 40, 60, 58, 80 };

	(void)state;
	assert_true(trend_grows(line, COUNT(line), 20));
	assert_false(trend_grows(wave, COUNT(wave), 20));
	assert_false(trend_grows(line, COUNT(line), 100));
	assert_false(trend_grows(line, 3, 5));
}

static void a_cache_that_fills_does_not_grow(void **state)
{
	static const float fills[] = { 10, 60, 85, 95, 98, 99, 99.5f, 99.8f };
	static const float full[] = { 100, 100, 100, 100, 100, 100 };

	(void)state;
	assert_false(trend_grows(fills, COUNT(fills), 20));
	assert_false(trend_grows(full, COUNT(full), 20));
}

static void a_step_is_found_where_it_is(void **state)
{
	static const float step[] = { 1, 2, 1, 2, 9, 8, 9 };
	static const float flat[] = { 3, 3, 3 };

	(void)state;
	assert_int_equal(trend_change(step, COUNT(step)), 4);
	assert_int_equal(trend_change(flat, COUNT(flat)), 0);
	assert_int_equal(trend_change(NULL, 0), 0);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_rises_to_the_end_grows),
		cmocka_unit_test(a_cache_that_fills_does_not_grow),
		cmocka_unit_test(a_step_is_found_where_it_is),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
