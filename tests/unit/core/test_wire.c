// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/cleanup.h"
#include "core/wire.h"

static struct wire reader(const struct str *str)
{
	return (struct wire){ .data = (const unsigned char *)str->data,
			      .size = str->length };
}

static void what_was_put_is_read_back(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };
	size_t length;

	(void)state;
	wire_put_u8(&out, 0xfe);
	wire_put_u32(&out, 0xdeadbeef);
	wire_put_u64(&out, UINT64_MAX - 1);
	wire_put_double(&out, -0.125);
	wire_put_bytes(&out, "a\0b", 3);
	wire_put_str(&out, "struct robj");
	wire_put_str(&out, NULL);

	struct wire wire = reader(&out);

	assert_int_equal(wire_u8(&wire), 0xfe);
	assert_int_equal(wire_u32(&wire), 0xdeadbeef);
	assert_true(wire_u64(&wire) == UINT64_MAX - 1);
	assert_true(wire_double(&wire) == -0.125);
	assert_memory_equal(wire_bytes(&wire, &length), "a\0b", 3);
	assert_int_equal(length, 3);
	assert_string_equal(wire_str(&wire), "struct robj");
	assert_string_equal(wire_str(&wire), "");
	assert_false(wire.bad);
	assert_int_equal(wire.pos, out.length);
}

static void integers_are_little_endian(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };

	(void)state;
	wire_put_u32(&out, 0x04030201);
	wire_put_u64(&out, 0x0807060504030201);
	assert_memory_equal(out.data, "\1\2\3\4\1\2\3\4\5\6\7\10", 12);
}

/* Every prefix of a message: no read beyond it, zeros, and @bad at the end. */
static void a_cut_message_is_bad_and_reads_as_zeros(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 };

	(void)state;
	wire_put_u32(&out, 77);
	wire_put_str(&out, "abc");
	wire_put_u64(&out, 99);
	for (size_t size = 0; size < out.length; size++) {
		struct wire wire = { .data = (const unsigned char *)out.data,
				     .size = size };
		uint32_t first = wire_u32(&wire);
		const char *text = wire_str(&wire);

		assert_int_equal(first, size >= 4 ? 77 : 0);
		assert_true(!strcmp(text, size >= 12 ? "abc" : ""));
		assert_int_equal(wire_u64(&wire), 0);
		assert_true(wire.bad);
	}
}

static void after_one_bad_read_all_are_bad(void **state)
{
	struct wire wire = { .data = (const unsigned char *)"\1\2", .size = 2 };
	size_t length = 7;

	(void)state;
	assert_int_equal(wire_u64(&wire), 0);
	assert_true(wire.bad);
	assert_int_equal(wire_u8(&wire), 0);
	assert_null(wire_bytes(&wire, &length));
	assert_int_equal(length, 0);
}

static void a_string_must_end_inside_its_length(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} cases[] = {
		{ "\0\0\0\0", 4 },		/* no room for a NUL */
		{ "\3\0\0\0abc", 7 },		/* no NUL */
		{ "\377\377\377\377abc\0", 8 }, /* beyond the end */
		{ "\1\0\1\0", 4 },		/* 65537 bytes: beyond the limit */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct wire wire = { .data = (const unsigned char *)cases[i].bytes,
				     .size = cases[i].size };

		assert_string_equal(wire_str(&wire), "");
		assert_true(wire.bad);
	}
}

static void a_string_beyond_the_limit_travels_cut(void **state)
{
	CLEANUP(str_fini) struct str out = { 0 }, text = { 0 };

	(void)state;
	for (int i = 0; i < WIRE_MAX_STRING + 10; i++)
		str_add_char(&text, 'x');
	wire_put_str(&out, text.data);

	struct wire wire = reader(&out);

	assert_int_equal(strlen(wire_str(&wire)), WIRE_MAX_STRING - 1);
	assert_false(wire.bad);
}

static void a_count_must_respect_limit_and_room(void **state)
{
	static const struct {
		uint32_t count, limit;
		size_t each;
		uint32_t expected;
	} cases[] = {
		{ 2, 10, 8, 2 },
		{ 3, 10, 8, 0 },
		{ 2, 1, 8, 0 },
		{ 0, 0, 8, 0 },
		{ 1000000, 2000000, 0, 1000000 },
		{ UINT32_MAX, UINT32_MAX, 8, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		CLEANUP(str_fini) struct str out = { 0 };

		wire_put_u32(&out, cases[i].count);
		wire_put_u64(&out, 0);
		wire_put_u64(&out, 0);

		struct wire wire = reader(&out);

		assert_int_equal(wire_count(&wire, cases[i].limit, cases[i].each),
				 cases[i].expected);
		assert_int_equal(wire.bad, cases[i].count != cases[i].expected);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_put_is_read_back),
		cmocka_unit_test(integers_are_little_endian),
		cmocka_unit_test(a_cut_message_is_bad_and_reads_as_zeros),
		cmocka_unit_test(after_one_bad_read_all_are_bad),
		cmocka_unit_test(a_string_must_end_inside_its_length),
		cmocka_unit_test(a_string_beyond_the_limit_travels_cut),
		cmocka_unit_test(a_count_must_respect_limit_and_room),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
