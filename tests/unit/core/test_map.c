// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "core/map.h"

#define MANY 20000

static void every_key_put_is_found_until_deleted(void **state)
{
	CLEANUP(map_free) struct map *map = map_new(sizeof(uint64_t), sizeof(uint64_t));

	(void)state;
	for (uint64_t i = 0; i < MANY; i++)
		*(uint64_t *)map_put(map, &i, NULL) = i * 3;
	for (uint64_t i = 0; i < MANY; i += 2)
		assert_true(map_del(map, &i));
	assert_int_equal(map_count(map), MANY / 2);
	for (uint64_t i = 0; i < MANY; i++) {
		uint64_t *value = map_find(map, &i);

		if (i % 2)
			assert_int_equal(*value, i * 3);
		else
			assert_null(value);
	}
}

static bool is_multiple_of_three(const void *key, void *value, void *ctx)
{
	(void)value;
	(void)ctx;
	return *(const uint64_t *)key % 3 == 0;
}

static void del_if_removes_exactly_what_the_test_names(void **state)
{
	CLEANUP(map_free) struct map *map = map_new(sizeof(uint64_t), 1);

	(void)state;
	for (uint64_t i = 0; i < 999; i++)
		map_put(map, &i, NULL);
	assert_int_equal(map_del_if(map, is_multiple_of_three, NULL), 333);

	size_t pos = 0, seen = 0;
	const void *key;

	while (map_next(map, &pos, &key)) {
		assert_true(*(const uint64_t *)key % 3 != 0);
		seen++;
	}
	assert_int_equal(seen, 666);
}

static void a_value_is_zero_when_new_and_kept_when_not(void **state)
{
	CLEANUP(map_free) struct map *map = map_new(1, sizeof(int));
	bool is_new;

	(void)state;
	int *value = map_put(map, "a", &is_new);

	assert_true(is_new);
	assert_int_equal(*value, 0);
	*value = 7;
	assert_int_equal(*(int *)map_put(map, "a", &is_new), 7);
	assert_false(is_new);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_key_put_is_found_until_deleted),
		cmocka_unit_test(del_if_removes_exactly_what_the_test_names),
		cmocka_unit_test(a_value_is_zero_when_new_and_kept_when_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
