// SPDX-License-Identifier: Apache-2.0
/* Objects of the frame, whole and taken apart. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "types/seed.h"

static uint32_t add_point(struct dtypes *types)
{
	uint32_t number = dtype_add(
		types, &(struct dtype){ .kind = DTYPE_BASE, .name = "long", .bytes = 8 });

	return dtype_add(
		types, &(struct dtype){
			       .kind = DTYPE_STRUCT,
			       .name = "struct point",
			       .bytes = 16,
			       .member_count = 2,
			       .members = (struct dtype_member[]){
				       { .name = "x", .type = number },
				       { .name = "y", .type = number, .offset = 8 } } });
}

/* gcc describes a spilled half of a struct as DW_OP_fbreg -32, DW_OP_piece 8. */
static void a_spilled_part_is_no_struct_and_a_whole_object_comes_first(void **state)
{
	struct dtypes *types = dtypes_new(NULL, NULL);
	uint32_t point_type = add_point(types);
	struct code code = { 0 };
	struct seed seed;
	struct seed_point at = { .va = 0x10, .cfa_offset = 8, .cfa_reg = 7 };
	const struct dwarf_var *found;
	int64_t into;

	(void)state;
	vec_push(&code.scopes.vars, ((struct dwarf_var){ .lo = 0,
							 .hi = 0x100,
							 .offset = -64,
							 .type = point_type,
							 .where = DWARF_AT_CFA }));
	vec_push(&code.scopes.vars, ((struct dwarf_var){ .lo = 0,
							 .hi = 0x100,
							 .offset = -32,
							 .type = point_type,
							 .piece_offset = 8,
							 .piece_bytes = 8,
							 .where = DWARF_AT_CFA }));
	vec_push(&code.scopes.vars, ((struct dwarf_var){ .lo = 0,
							 .hi = 0x100,
							 .offset = -56,
							 .type = point_type,
							 .piece_bytes = 8,
							 .depth = 3,
							 .where = DWARF_AT_CFA }));
	seed_init(&seed, &code);
	found = seed_object(&seed, types, &at, -32, &into);
	assert_non_null(found);
	assert_true(seed_is_part(types, found));
	assert_int_equal(into, 8);
	found = seed_object(&seed, types, &at, -56, &into);
	assert_non_null(found);
	assert_false(seed_is_part(types, found));
	assert_int_equal(into, 8);
	assert_null(seed_object(&seed, types, &at, -24, &into));
	seed_fini(&seed);
	vec_fini(&code.scopes.vars);
	dtypes_free(types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			a_spilled_part_is_no_struct_and_a_whole_object_comes_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
