// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/vec.h"

struct range {
	uint64_t lo, hi;
};

static void elements_stay_in_their_order_while_it_grows(void **state)
{
	VEC(struct range) ranges = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 10000; i++)
		vec_push(&ranges, ((struct range){ i, i + 1 }));
	assert_int_equal(ranges.count, 10000);
	assert_true(ranges.room >= ranges.count);

	uint64_t expected = 0;

	vec_each(&ranges, range) {
		assert_int_equal(range->lo, expected);
		assert_int_equal(range->hi, expected + 1);
		expected++;
	}
	assert_int_equal(expected, 10000);
	vec_fini(&ranges);
	assert_null(ranges.data);
	assert_int_equal(ranges.count + ranges.room, 0);
}

static void an_empty_one_has_nothing_to_walk(void **state)
{
	VEC(int) numbers = { 0 };

	(void)state;
	vec_each(&numbers, number)
		fail_msg("walked to %d", *number);
	vec_fini(&numbers);
}

static void a_cleared_one_keeps_its_room(void **state)
{
	VEC(int) numbers = { 0 };

	(void)state;
	vec_reserve(&numbers, 100);
	assert_true(numbers.room >= 100);
	vec_push(&numbers, 1);
	vec_push(&numbers, 2);

	size_t room = numbers.room;

	vec_clear(&numbers);
	assert_int_equal(numbers.count, 0);
	assert_int_equal(numbers.room, room);
	vec_push(&numbers, 3);
	assert_int_equal(numbers.data[0], 3);
	vec_fini(&numbers);
}

static void add_gives_the_place_of_the_last_element(void **state)
{
	VEC(struct range) ranges = { 0 };

	(void)state;
	for (uint64_t i = 0; i < 50; i++) {
		struct range *range = vec_add(&ranges);

		*range = (struct range){ i, 0 };
		assert_ptr_equal(range, &ranges.data[ranges.count - 1]);
	}
	assert_int_equal(ranges.data[17].lo, 17);
	vec_fini(&ranges);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(elements_stay_in_their_order_while_it_grows),
		cmocka_unit_test(an_empty_one_has_nothing_to_walk),
		cmocka_unit_test(a_cleared_one_keeps_its_room),
		cmocka_unit_test(add_gives_the_place_of_the_last_element),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
