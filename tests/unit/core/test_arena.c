// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/arena.h"

static void blocks_are_zeroed_aligned_and_apart(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	unsigned char *blocks[2000];

	(void)state;
	for (size_t i = 0; i < 2000; i++) {
		size_t bytes = 1 + i % 97;

		blocks[i] = arena_alloc(arena, bytes);
		assert_int_equal((uintptr_t)blocks[i] % 16, 0);
		for (size_t k = 0; k < bytes; k++)
			assert_int_equal(blocks[i][k], 0);
		memset(blocks[i], (int)(i & 255), bytes);
	}
	for (size_t i = 0; i < 2000; i++)
		for (size_t k = 0; k < 1 + i % 97; k++)
			assert_int_equal(blocks[i][k], i & 255);
}

static void a_block_larger_than_a_chunk_keeps_the_rest_usable(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	char *before = arena_alloc(arena, 16);
	char *big = arena_alloc(arena, 1 << 20);
	char *after = arena_alloc(arena, 16);

	(void)state;
	memset(big, 1, 1 << 20);
	assert_ptr_equal(after, before + 16);
	assert_int_equal(*after, 0);
	assert_true(arena_bytes(arena) >= 1 << 20);
}

static void a_big_block_first_is_freed_with_the_rest(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	char *big = arena_alloc(arena, 1 << 20);
	char *small = arena_alloc(arena, 16);

	(void)state;
	memset(big, 1, 1 << 20);
	assert_true(small < big || small >= big + (1 << 20));
}

static void after_a_reset_memory_is_zero_again_and_bounded(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	size_t held = 0;

	(void)state;
	for (int round = 0; round < 5; round++) {
		for (int i = 0; i < 300; i++) {
			unsigned char *block = arena_alloc(arena, 1000);

			for (int k = 0; k < 1000; k++)
				assert_int_equal(block[k], 0);
			memset(block, 0xff, 1000);
		}
		if (!held)
			held = arena_bytes(arena);
		assert_int_equal(arena_bytes(arena), held);
		arena_reset(arena);
		assert_true(arena_bytes(arena) < held);
	}
}

static void texts_are_copies(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	char text[] = "struct robj";
	char *whole = arena_strdup(arena, text),
	     *part = arena_strndup(arena, text + 7, 2);

	(void)state;
	memset(text, 'x', sizeof(text));
	assert_string_equal(whole, "struct robj");
	assert_string_equal(part, "ro");
	assert_null(arena_strdup(arena, NULL));
	assert_string_equal(arena_printf(arena, "%s+%d", whole, 8), "struct robj+8");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(blocks_are_zeroed_aligned_and_apart),
		cmocka_unit_test(a_block_larger_than_a_chunk_keeps_the_rest_usable),
		cmocka_unit_test(a_big_block_first_is_freed_with_the_rest),
		cmocka_unit_test(after_a_reset_memory_is_zero_again_and_bounded),
		cmocka_unit_test(texts_are_copies),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
