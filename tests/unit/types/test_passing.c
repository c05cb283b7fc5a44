// SPDX-License-Identifier: Apache-2.0
/* Who travels in which register: the answers are read off what gcc and clang emit. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "types/passing.h"

struct made {
	struct dtypes *types;
	uint32_t integer, real, wide_real, object, pointer, void_pointer;
	uint32_t pair;	/* struct { int size; struct object *first; } */
	uint32_t large; /* struct { struct object *first; long size[2]; } */
	uint32_t mixed; /* struct { double x; struct object *first; } */
	uint32_t empty;
};

static uint32_t scalar(struct dtypes *types, const char *name, uint64_t bytes,
		       bool is_float)
{
	return dtype_add(types, &(struct dtype){ .kind = DTYPE_BASE,
						 .name = name,
						 .bytes = bytes,
						 .is_float = is_float });
}

static uint32_t record(struct dtypes *types, const char *name, uint64_t bytes,
		       struct dtype_member *members, uint32_t count)
{
	return dtype_add(types, &(struct dtype){ .kind = DTYPE_STRUCT,
						 .name = name,
						 .bytes = bytes,
						 .member_count = count,
						 .members = members });
}

static uint32_t pointer(struct dtypes *types, uint32_t target)
{
	return dtype_add(
		types,
		&(struct dtype){ .kind = DTYPE_POINTER, .bytes = 8, .target = target });
}

static struct made make(void)
{
	struct made m = { .types = dtypes_new(NULL, NULL) };
	uint32_t longs;

	m.integer = scalar(m.types, "int", 4, false);
	m.real = scalar(m.types, "double", 8, true);
	m.wide_real = scalar(m.types, "long double", 16, true);
	m.object =
		record(m.types, "struct object", 4,
		       (struct dtype_member[]){ { .name = "a", .type = m.integer } }, 1);
	m.pointer = pointer(m.types, m.object);
	m.void_pointer = pointer(m.types, 0);
	longs = dtype_add(m.types, &(struct dtype){ .kind = DTYPE_ARRAY,
						    .target = m.integer,
						    .count = 4,
						    .bytes = 16 });
	m.pair = record(m.types, "struct pair", 16,
			(struct dtype_member[]){
				{ .name = "size", .type = m.integer },
				{ .name = "first", .type = m.pointer, .offset = 8 } },
			2);
	m.large = record(
		m.types, "struct large", 24,
		(struct dtype_member[]){ { .name = "first", .type = m.pointer },
					 { .name = "size", .type = longs, .offset = 8 } },
		2);
	m.mixed = record(m.types, "struct mixed", 16,
			 (struct dtype_member[]){
				 { .name = "x", .type = m.real },
				 { .name = "first", .type = m.pointer, .offset = 8 } },
			 2);
	m.empty = record(m.types, "struct empty", 0, NULL, 0);
	return m;
}

static struct passing pass(struct made *m, uint32_t result, const uint32_t *params,
			   uint32_t count)
{
	struct passing passing;
	uint32_t function = dtype_add(m->types, &(struct dtype){ .kind = DTYPE_FUNCTION,
								 .target = result,
								 .member_count = count,
								 .params = params });

	passing_of(m->types, function, FLOW_MAX_ARGS, &passing);
	return passing;
}

#define PASS(m, result, ...)                               \
	pass(m, result, (const uint32_t[]){ __VA_ARGS__ }, \
	     sizeof((uint32_t[]){ __VA_ARGS__ }) / sizeof(uint32_t))

static void floats_take_no_register_and_void_pointers_are_pointers(void **state)
{
	struct made m = make();
	struct passing p = PASS(&m, m.integer, m.real, m.integer, m.wide_real,
				m.void_pointer, m.pointer);

	(void)state;
	assert_int_equal(p.used, 3);
	assert_false(p.is_pointer[0]);
	assert_true(p.is_pointer[1]);
	assert_int_equal(p.pointee[1], 0);
	assert_int_equal(p.pointee[2], m.object);
	assert_int_equal(p.result, 0);
	dtypes_free(m.types);
}

static void a_large_result_shifts_the_parameters(void **state)
{
	struct made m = make();
	struct passing p = PASS(&m, m.large, m.pointer);

	(void)state;
	assert_int_equal(p.used, 2);
	assert_int_equal(p.pointee[0], m.large);
	assert_int_equal(p.pointee[1], m.object);
	assert_int_equal(p.result, m.large);
	/* a small one comes back in registers, here an integer in the first */
	p = PASS(&m, m.pair, m.pointer);
	assert_int_equal(p.used, 1);
	assert_int_equal(p.pointee[0], m.object);
	assert_int_equal(p.result, 0);
	/* the double is in xmm0, so the pointer is in the first general one */
	p = PASS(&m, m.mixed, m.pointer);
	assert_int_equal(p.result, m.object);
	dtypes_free(m.types);
}

static void structs_by_value_leave_the_later_parameters_known(void **state)
{
	struct made m = make();
	struct passing p =
		PASS(&m, 0, m.large, m.pair, m.empty, m.mixed, m.integer, m.pointer);

	(void)state;
	/* large: memory; pair: two; mixed: one and xmm0 */
	assert_int_equal(p.used, 5);
	assert_false(p.is_pointer[0]);
	assert_int_equal(p.pointee[1], m.object);
	assert_int_equal(p.pointee[2], m.object);
	assert_false(p.is_pointer[3]);
	assert_int_equal(p.pointee[4], m.object);
	dtypes_free(m.types);
}

static void what_does_not_fit_whole_leaves_its_register_to_others(void **state)
{
	struct made m = make();
	struct passing p = PASS(&m, 0, m.integer, m.integer, m.integer, m.integer,
				m.integer, m.pair, m.pointer);

	(void)state;
	assert_int_equal(p.used, 6);
	assert_true(p.is_pointer[5]);
	assert_int_equal(p.pointee[5], m.object);
	p = PASS(&m, 0, m.integer, m.integer, m.integer, m.integer, m.integer, m.integer,
		 m.pointer);
	assert_int_equal(p.used, 6);
	assert_false(p.is_pointer[5]);
	passing_of(m.types, m.object, FLOW_MAX_ARGS, &p);
	assert_int_equal(p.used, 0);
	dtypes_free(m.types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(floats_take_no_register_and_void_pointers_are_pointers),
		cmocka_unit_test(a_large_result_shifts_the_parameters),
		cmocka_unit_test(structs_by_value_leave_the_later_parameters_known),
		cmocka_unit_test(what_does_not_fit_whole_leaves_its_register_to_others),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
