// SPDX-License-Identifier: Apache-2.0
/* Every byte of a pack is turned over once: what is read then is what was put in, or less. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/cleanup.h"
#include "core/mem.h"
#include "core/pack.h"

static const char *const texts[] = { "", "one", "a longer one, of more than 8 bytes",
				     "four" };
#define TEXTS (sizeof(texts) / sizeof(*texts))

static void fill(struct str *out, uint64_t version)
{
	pack_begin(out, version);
	for (size_t i = 0; i < TEXTS; i++)
		pack_put(out, 100 + i, 200 + i, texts[i], strlen(texts[i]));
}

static bool is_put(const struct pack_item *item)
{
	size_t i = item->entry.exact - 100;

	return i < TEXTS && item->entry.key == 200 + i &&
	       item->entry.bytes == strlen(texts[i]) &&
	       !memcmp(item->data, texts[i], item->entry.bytes);
}

static void what_was_put_comes_out(void **state)
{
	CLEANUP(str_fini) struct str bytes = { 0 };
	struct pack pack;

	(void)state;
	fill(&bytes, 7);
	assert_true(pack_read(bytes.data, bytes.length, &pack));
	assert_int_equal(pack.version, 7);
	assert_int_equal(pack.items.count, TEXTS);
	vec_each(&pack.items, item)
		assert_true(is_put(item));
	pack_fini(&pack);
}

static void a_damaged_byte_costs_entries_never_makes_one(void **state)
{
	CLEANUP(str_fini) struct str bytes = { 0 };
	struct pack pack;

	(void)state;
	fill(&bytes, 7);
	for (size_t at = 0; at < bytes.length; at++) {
		bytes.data[at] ^= 0x41;
		if (pack_read(bytes.data, bytes.length, &pack))
			vec_each(&pack.items, item)
				assert_true(is_put(item));
		else
			assert_int_equal(pack.items.count, 0);
		assert_true(pack.items.count <= TEXTS);
		pack_fini(&pack);
		bytes.data[at] ^= 0x41;
	}
}

static void a_damaged_payload_costs_its_own_entry_only(void **state)
{
	CLEANUP(str_fini) struct str bytes = { 0 };
	struct pack pack;

	(void)state;
	fill(&bytes, 7);
	*strstr(bytes.data + sizeof(struct pack_head) + pack_size(0) +
			sizeof(struct pack_entry),
		"one") = 'O';
	assert_true(pack_read(bytes.data, bytes.length, &pack));
	assert_int_equal(pack.items.count, TEXTS - 1);
	pack_fini(&pack);
}

static void what_is_cut_short_keeps_its_begin(void **state)
{
	CLEANUP(str_fini) struct str bytes = { 0 };
	size_t before = 0;

	(void)state;
	fill(&bytes, 7);
	for (size_t length = 0; length <= bytes.length; length++) {
		char *cut = mem_alloc(length + 1); /* so that valgrind sees the end */
		struct pack pack;

		memcpy(cut, bytes.data, length);
		pack_read(cut, length, &pack);
		assert_true(pack.items.count >= before);
		before = pack.items.count;
		pack_fini(&pack);
		free(cut);
	}
	assert_int_equal(before, TEXTS);
}

static void a_merge_puts_the_new_first_and_drops_what_it_replaces(void **state)
{
	CLEANUP(str_fini) struct str old = { 0 }, fresh = { 0 }, all = { 0 };
	struct pack pack;

	(void)state;
	fill(&old, 7);
	pack_begin(&fresh, 7);
	pack_put(&fresh, 102, 900, "new", 3);
	assert_true(pack_merge(&fresh, &old, 1 << 20, &all));
	assert_true(pack_read(all.data, all.length, &pack));
	assert_int_equal(pack.items.count, TEXTS);
	assert_int_equal(pack.items.data[0].entry.key, 900);
	for (size_t i = 1; i < pack.items.count; i++) {
		assert_true(is_put(&pack.items.data[i]));
		assert_int_not_equal(pack.items.data[i].entry.exact, 102);
	}
	pack_fini(&pack);
}

static void a_merge_stays_below_its_limit(void **state)
{
	CLEANUP(str_fini) struct str old = { 0 }, fresh = { 0 };

	(void)state;
	fill(&old, 7);
	pack_begin(&fresh, 7);
	pack_put(&fresh, 1, 2, "new", 3);
	for (size_t limit = fresh.length; limit < old.length + fresh.length; limit += 8) {
		CLEANUP(str_fini) struct str all = { 0 };

		assert_true(pack_merge(&fresh, &old, limit, &all));
		assert_true(all.length <= limit);
		assert_true(all.length >= fresh.length);
	}
}

static void another_version_keeps_nothing_of_the_old(void **state)
{
	CLEANUP(str_fini) struct str old = { 0 }, fresh = { 0 }, all = { 0 };

	(void)state;
	fill(&old, 7);
	pack_begin(&fresh, 8);
	pack_put(&fresh, 1, 2, "new", 3);
	assert_true(pack_merge(&fresh, &old, 1 << 20, &all));
	assert_int_equal(all.length, fresh.length);
	assert_false(pack_merge(&(struct str){ .data = (char *)"none", .length = 4 },
				&old, 1 << 20, &all));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_comes_out),
		cmocka_unit_test(a_damaged_byte_costs_entries_never_makes_one),
		cmocka_unit_test(a_damaged_payload_costs_its_own_entry_only),
		cmocka_unit_test(what_is_cut_short_keeps_its_begin),
		cmocka_unit_test(a_merge_puts_the_new_first_and_drops_what_it_replaces),
		cmocka_unit_test(a_merge_stays_below_its_limit),
		cmocka_unit_test(another_version_keeps_nothing_of_the_old),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
