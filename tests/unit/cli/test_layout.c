// SPDX-License-Identifier: Apache-2.0
/* Where members lie is the compiler's word: offsetof() and sizeof() of real structs. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cli/layout.h"

struct holes {
	char a;
	uint32_t b;
	uint16_t c;
	uint64_t d;
	char e[3];
};

#define FIELD(type, member)                                                        \
	{                                                                          \
#member, offsetof(type, member), sizeof(((type *)0)->member), 0, 0 \
	}

static uint64_t unused_bits(const struct layout_rows *rows)
{
	uint64_t bits = 0;

	vec_each(&rows->rows, row) {
		if (row->kind == LAYOUT_HOLE || row->kind == LAYOUT_PADDING)
			bits += row->bits;
	}
	return bits;
}

static void holes_and_fields_tile_the_struct(void **state)
{
	static const struct layout_field fields[] = {
		FIELD(struct holes, a), FIELD(struct holes, b), FIELD(struct holes, c),
		FIELD(struct holes, d), FIELD(struct holes, e),
	};
	struct layout_rows rows = { 0 };
	uint64_t at = 0;

	(void)state;
	layout_draw(fields, 5, sizeof(struct holes), &rows);
	vec_each(&rows.rows, row) {
		assert_int_equal(row->offset, at);
		at += row->bits / 8;
	}
	assert_int_equal(at, sizeof(struct holes));
	assert_int_equal(unused_bits(&rows) / 8,
			 sizeof(struct holes) - 1 - 4 - 2 - 8 - 3);
	assert_int_equal(rows.rows.data[rows.rows.count - 1].kind, LAYOUT_PADDING);
	vec_fini(&rows.rows);
}

static void a_union_member_is_no_hole_and_hides_none(void **state)
{
	/* union { uint32_t; char; } and behind it, at 8, another field of a byte */
	static const struct layout_field fields[] = { { "u.whole", 0, 4, 0, 0 },
						      { "u.part", 0, 1, 0, 0 },
						      { "next", 8, 1, 0, 0 } };
	static const enum layout_kind kinds[] = { LAYOUT_FIELD, LAYOUT_OVERLAY,
						  LAYOUT_HOLE, LAYOUT_FIELD };
	struct layout_rows rows = { 0 };

	(void)state;
	layout_draw(fields, 3, 9, &rows);
	assert_int_equal(rows.rows.count, 4);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(rows.rows.data[i].kind, kinds[i]);
	assert_int_equal(rows.rows.data[2].offset, 4);
	assert_int_equal(rows.rows.data[2].bits, 4 * 8);
	vec_fini(&rows.rows);
}

static void bits_that_nothing_uses_are_told_from_bytes(void **state)
{
	/* unsigned a : 3, : 4, b : 6; then char c at 4: bits 3-6, 13-15 and bytes 2, 3 */
	static const struct layout_field fields[] = { { "a", 0, 1, 3, 0 },
						      { "b", 0, 2, 6, 7 },
						      { "c", 4, 1, 0, 0 } };
	static const struct {
		uint64_t offset, bits;
	} gaps[] = { { 0, 4 }, { 1, 3 }, { 2, 16 } };
	struct layout_rows rows = { 0 };
	size_t seen = 0;

	(void)state;
	layout_draw(fields, 3, 5, &rows);
	vec_each(&rows.rows, row) {
		if (row->kind != LAYOUT_HOLE)
			continue;
		assert_true(seen < 3);
		assert_int_equal(row->offset, gaps[seen].offset);
		assert_int_equal(row->bits, gaps[seen++].bits);
	}
	assert_int_equal(seen, 3);
	vec_fini(&rows.rows);
}

static void a_field_across_lines_knows_both(void **state)
{
	static const struct layout_field field = { "name", 60, 10, 0, 0 };
	struct layout_rows rows = { 0 };

	(void)state;
	layout_draw(&field, 1, 70, &rows);
	assert_int_equal(rows.rows.data[1].line, 0);
	assert_int_equal(rows.rows.data[1].last_line, 1);
	vec_fini(&rows.rows);
}

static void only_a_width_and_a_bit_make_a_bit_field(void **state)
{
	char bits[] = "a.flags:3@17", colons[] = "ns::name", plain[] = "list[]";
	struct layout_field field;

	(void)state;
	layout_parse(bits, &field);
	assert_string_equal(field.path, "a.flags");
	assert_int_equal(field.bits, 3);
	assert_int_equal(field.bit, 17);
	layout_parse(colons, &field);
	assert_string_equal(field.path, "ns::name");
	assert_int_equal(field.bits, 0);
	layout_parse(plain, &field);
	assert_string_equal(field.path, "list[]");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(holes_and_fields_tile_the_struct),
		cmocka_unit_test(a_union_member_is_no_hole_and_hides_none),
		cmocka_unit_test(bits_that_nothing_uses_are_told_from_bytes),
		cmocka_unit_test(a_field_across_lines_knows_both),
		cmocka_unit_test(only_a_width_and_a_bit_make_a_bit_field),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
