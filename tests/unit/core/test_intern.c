// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>

#include "core/intern.h"

static void equal_texts_have_one_id_and_ids_have_no_gaps(void **state)
{
	CLEANUP(intern_free) struct intern *intern = intern_new();
	char text[32];

	(void)state;
	for (uint32_t round = 0; round < 2; round++)
		for (uint32_t i = 1; i <= 5000; i++) {
			snprintf(text, sizeof(text), "name%u", i);
			assert_int_equal(intern_id(intern, text), i);
		}
	assert_int_equal(intern_count(intern), 5001);
	for (uint32_t i = 1; i <= 5000; i++) {
		snprintf(text, sizeof(text), "name%u", i);
		assert_string_equal(intern_text(intern, i), text);
	}
}

static void the_empty_text_is_zero(void **state)
{
	CLEANUP(intern_free) struct intern *intern = intern_new();

	(void)state;
	assert_int_equal(intern_id(intern, ""), 0);
	assert_int_equal(intern_id(intern, NULL), 0);
	assert_string_equal(intern_text(intern, 0), "");
	assert_string_equal(intern_text(intern, 12345), "");
}

static void texts_do_not_move_when_it_grows(void **state)
{
	CLEANUP(intern_free) struct intern *intern = intern_new();
	const char *first = intern_text(intern, intern_id(intern, "first"));
	char text[32];

	(void)state;
	for (int i = 0; i < 10000; i++) {
		snprintf(text, sizeof(text), "%d", i);
		intern_id(intern, text);
	}
	assert_ptr_equal(intern_text(intern, 1), first);
	assert_string_equal(first, "first");
}

/* XXH3_64bits with seed 0 of "" and "abc", as published with the algorithm. */
static void hashes_are_those_of_xxh3(void **state)
{
	(void)state;
	assert_true(hash_text("", 0) == 0x2d06800538d394c2u);
	assert_true(hash_text("abc", 0) == 0x78af5f94892f3950u);
	assert_true(hash_bytes("abcd", 3, 0) == hash_text("abc", 0));
	assert_true(hash_text("abc", 1) != hash_text("abc", 0));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(equal_texts_have_one_id_and_ids_have_no_gaps),
		cmocka_unit_test(the_empty_text_is_zero),
		cmocka_unit_test(texts_do_not_move_when_it_grows),
		cmocka_unit_test(hashes_are_those_of_xxh3),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
