// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/str.h"

static void what_is_added_is_joined(void **state)
{
	CLEANUP(str_fini) struct str str = { 0 };

	(void)state;
	assert_string_equal(str_text(&str), "");
	str_add(&str, "a");
	str_add_char(&str, 'b');
	str_printf(&str, "%03d", 7);
	str_add_bytes(&str, "x\0y", 3);
	assert_int_equal(str.length, 8);
	assert_memory_equal(str.data, "ab007x\0y", 9);
}

static void it_grows_past_any_first_guess(void **state)
{
	CLEANUP(str_fini) struct str str = { 0 };

	(void)state;
	for (int i = 0; i < 100000; i++)
		str_add_char(&str, (char)('a' + i % 26));
	assert_int_equal(str.length, 100000);
	assert_int_equal(strlen(str.data), 100000);
	assert_int_equal(str.data[99999], 'a' + 99999 % 26);
}

static void taking_leaves_an_empty_builder(void **state)
{
	struct str str = { 0 };
	char *empty = str_take(&str);

	(void)state;
	assert_string_equal(empty, "");
	free(empty);
	str_add(&str, "text");

	char *text = str_take(&str);

	assert_string_equal(text, "text");
	assert_string_equal(str_text(&str), "");
	assert_int_equal(str.length, 0);
	free(text);
	str_fini(&str);
}

static void clearing_keeps_nothing_of_the_text(void **state)
{
	CLEANUP(str_fini) struct str str = { 0 };

	(void)state;
	str_clear(&str);
	str_add(&str, "long ago");
	str_clear(&str);
	assert_string_equal(str_text(&str), "");
	str_add(&str, "now");
	assert_string_equal(str_text(&str), "now");
}

static void prefixes_and_suffixes(void **state)
{
	(void)state;
	assert_true(str_starts("pid:12", "pid:"));
	assert_true(str_starts("pid:", ""));
	assert_false(str_starts("pi", "pid:"));
	assert_true(str_ends("libc.so", ".so"));
	assert_true(str_ends(".so", ".so"));
	assert_false(str_ends("so", ".so"));
}

static void hexadecimal_goes_both_ways(void **state)
{
	unsigned char bytes[4];
	char *text = str_hex("\x00\x0f\xa5\xff", 4);

	(void)state;
	assert_string_equal(text, "000fa5ff");
	assert_int_equal(str_unhex(text, bytes, sizeof(bytes)), 4);
	assert_memory_equal(bytes, "\x00\x0f\xa5\xff", 4);
	assert_int_equal(str_unhex("A5", bytes, 4), 1);
	assert_int_equal(bytes[0], 0xa5);
	free(text);
}

static void bad_hexadecimal_is_refused(void **state)
{
	static const char *const bad[] = { "0", "0g", "g0", "0011223344", "-1", " 1" };
	unsigned char bytes[4];

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++)
		assert_int_equal(str_unhex(bad[i], bytes, sizeof(bytes)), -1);
	assert_int_equal(str_unhex("", bytes, sizeof(bytes)), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_is_added_is_joined),
		cmocka_unit_test(it_grows_past_any_first_guess),
		cmocka_unit_test(taking_leaves_an_empty_builder),
		cmocka_unit_test(clearing_keeps_nothing_of_the_text),
		cmocka_unit_test(prefixes_and_suffixes),
		cmocka_unit_test(hexadecimal_goes_both_ways),
		cmocka_unit_test(bad_hexadecimal_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
