// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "live/procmap.h"

#define LIMIT 1000

static void add(struct procmap **map, uint64_t start, uint64_t end, uint64_t key,
		uint64_t time_ns)
{
	struct range range = { start, end, 0, key, time_ns };

	assert_true(procmap_add(map, &range, LIMIT));
}

static uint64_t key_at(const struct procmap *map, uint64_t ip)
{
	const struct range *range = procmap_find(map, ip);

	return range ? range->key : 0;
}

static size_t count_of(const struct procmap *map)
{
	size_t count;

	procmap_ranges(map, &count);
	return count;
}

static void a_new_mapping_cuts_what_it_covers(void **state)
{
	struct procmap *map = procmap_new();

	(void)state;
	add(&map, 0x1000, 0x9000, 1, 1);
	add(&map, 0x3000, 0x5000, 2, 2);
	assert_int_equal(key_at(map, 0x2fff), 1);
	assert_int_equal(key_at(map, 0x3000), 2);
	assert_int_equal(key_at(map, 0x4fff), 2);
	assert_int_equal(key_at(map, 0x5000), 1);
	assert_int_equal(procmap_find(map, 0x5000)->pgoff, 0x4000);
	assert_null(procmap_find(map, 0x9000));
	assert_null(procmap_find(map, 0xfff));
	procmap_unref(map);
}

static void a_late_record_does_not_cover_a_younger_mapping(void **state)
{
	struct procmap *map = procmap_new();

	(void)state;
	add(&map, 0x3000, 0x5000, 2, 20);
	add(&map, 0x1000, 0x9000, 1, 10);
	assert_int_equal(key_at(map, 0x1000), 1);
	assert_int_equal(key_at(map, 0x4000), 2);
	assert_int_equal(key_at(map, 0x8fff), 1);
	procmap_unref(map);
}

static void a_fork_shares_until_one_side_maps(void **state)
{
	struct procmap *parent = procmap_new();

	(void)state;
	add(&parent, 0x1000, 0x2000, 1, 1);
	struct procmap *child = procmap_ref(parent);

	add(&child, 0x1000, 0x2000, 2, 2);
	assert_int_equal(key_at(parent, 0x1000), 1);
	assert_int_equal(key_at(child, 0x1000), 2);
	procmap_unref(parent);
	assert_int_equal(key_at(child, 0x1000), 2);
	procmap_unref(child);
}

static void pages_made_executable_one_by_one_become_one_range(void **state)
{
	struct procmap *map = procmap_new();

	(void)state;
	for (uint64_t page = 0; page < 500; page++)
		add(&map, page << 12, (page + 1) << 12, 0, page);
	assert_int_equal(count_of(map), 1);
	/* Parts of a file are joined when the offsets continue, and only then. */
	struct range first = { 0x800000, 0x801000, 0, 5, 1 };
	struct range next = { 0x801000, 0x802000, 0x1000, 5, 1 };
	struct range other = { 0x802000, 0x803000, 0x9000, 5, 1 };

	assert_true(procmap_add(&map, &first, LIMIT));
	assert_true(procmap_add(&map, &next, LIMIT));
	assert_true(procmap_add(&map, &other, LIMIT));
	assert_int_equal(count_of(map), 3);
	procmap_unref(map);
}

static void over_the_limit_nothing_changes(void **state)
{
	struct procmap *map = procmap_new();
	struct range hole = { 0x1000, 0x3000, 0, 9, 9 };

	(void)state;
	add(&map, 0x0000, 0x4000, 1, 1);
	assert_false(procmap_add(&map, &hole, 2));
	assert_int_equal(key_at(map, 0x2000), 1);
	assert_int_equal(count_of(map), 1);
	assert_true(procmap_add(&map, &hole, 3));
	procmap_unref(map);
}

/* The truth is an array of pages, written in the order of the mappings' times. */
static void many_random_mappings_agree_with_an_array_of_pages(void **state)
{
	enum { PAGES = 64, ROUNDS = 20000 };
	uint64_t keys[PAGES] = { 0 }, times[PAGES] = { 0 };
	struct procmap *map = procmap_new();
	uint32_t random = 12345;

	(void)state;
	for (int i = 0; i < ROUNDS; i++) {
		random = random * 1664525 + 1013904223;
		uint64_t start = random >> 8 & (PAGES - 1),
			 length = 1 + (random >> 16 & 7);
		uint64_t time_ns = 1 + (random >> 20 & 63), key = 1 + (random >> 27);

		if (start + length > PAGES)
			continue;
		/* Every page of a file at its own place: pieces keep their offsets. */
		struct range range = { start << 12, (start + length) << 12, start << 12,
				       key, time_ns };

		assert_true(procmap_add(&map, &range, PAGES));
		for (uint64_t page = start; page < start + length; page++) {
			if (keys[page] && times[page] > time_ns)
				continue;
			keys[page] = key;
			times[page] = time_ns;
		}
		for (uint64_t page = 0; page < PAGES; page++) {
			const struct range *found = procmap_find(map, page << 12 | 0x123);

			assert_int_equal(found ? found->key : 0, keys[page]);
			if (found)
				assert_int_equal(found->pgoff, found->start);
			/* Joined ranges carry the time of their youngest part. */
			if (found)
				times[page] = found->time_ns;
		}
	}
	procmap_unref(map);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_new_mapping_cuts_what_it_covers),
		cmocka_unit_test(a_late_record_does_not_cover_a_younger_mapping),
		cmocka_unit_test(a_fork_shares_until_one_side_maps),
		cmocka_unit_test(pages_made_executable_one_by_one_become_one_range),
		cmocka_unit_test(over_the_limit_nothing_changes),
		cmocka_unit_test(many_random_mappings_agree_with_an_array_of_pages),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
