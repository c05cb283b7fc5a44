// SPDX-License-Identifier: Apache-2.0
/* Layouts as the x86-64 ABI gives them: every offset below is the compiler's own. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bin/dtype.h"

struct point {
	int x, y;
};

struct shape {
	long id;
	struct point corners[3];
	union {
		double real;
		int whole;
		char *text;
	};
	unsigned low : 4, high : 12;
	char name[];
};

struct made {
	struct dtypes *types;
	uint32_t integer, wide, real, byte, text, point, shape;
};

static uint32_t base(struct dtypes *types, const char *name, uint64_t bytes)
{
	return dtype_add(
		types,
		&(struct dtype){ .kind = DTYPE_BASE, .name = name, .bytes = bytes });
}

static uint32_t array(struct dtypes *types, uint32_t element, uint64_t count)
{
	return dtype_add(
		types,
		&(struct dtype){ .kind = DTYPE_ARRAY,
				 .target = element,
				 .count = count,
				 .bytes = count * dtype_get(types, element)->bytes });
}

static struct made make(void)
{
	struct made m = { .types = dtypes_new(NULL, NULL) };
	struct dtype_member corners[] = {
		{ .name = "x", .offset = offsetof(struct point, x) },
		{ .name = "y", .offset = offsetof(struct point, y) },
	};
	struct dtype_member choices[3] = { { .name = "real" },
					   { .name = "whole" },
					   { .name = "text" } };
	struct dtype_member members[6] = {
		{ .name = "id", .offset = offsetof(struct shape, id) },
		{ .name = "corners", .offset = offsetof(struct shape, corners) },
		{ .offset = offsetof(struct shape, real) },
		{ .name = "low", .offset = offsetof(struct shape, text) + 8, .bits = 4 },
		{ .name = "high",
		  .offset = offsetof(struct shape, text) + 8,
		  .bits = 12,
		  .bit = 4 },
		{ .name = "name", .offset = offsetof(struct shape, name) },
	};

	m.integer = base(m.types, "int", 4);
	m.wide = base(m.types, "long", 8);
	m.real = base(m.types, "double", 8);
	m.byte = base(m.types, "char", 1);
	m.text = dtype_add(
		m.types,
		&(struct dtype){ .kind = DTYPE_POINTER, .bytes = 8, .target = m.byte });
	corners[0].type = corners[1].type = m.integer;
	m.point = dtype_add(m.types, &(struct dtype){ .kind = DTYPE_STRUCT,
						      .name = "struct point",
						      .bytes = sizeof(struct point),
						      .members = corners,
						      .member_count = 2 });
	choices[0].type = m.real;
	choices[1].type = m.integer;
	choices[2].type = m.text;
	members[0].type = m.wide;
	members[1].type = array(m.types, m.point, 3);
	members[2].type = dtype_add(m.types, &(struct dtype){ .kind = DTYPE_UNION,
							      .bytes = 8,
							      .line = 20,
							      .members = choices,
							      .member_count = 3 });
	members[3].type = members[4].type = m.integer;
	members[5].type = array(m.types, m.byte, 0);
	m.shape = dtype_add(m.types, &(struct dtype){ .kind = DTYPE_STRUCT,
						      .name = "struct shape",
						      .bytes = sizeof(struct shape),
						      .members = members,
						      .member_count = 6 });
	return m;
}

static void a_path_names_what_the_compiler_put_there(void **state)
{
	struct made m = make();
	static const struct {
		uint64_t offset;
		uint32_t bytes;
		const char *path;
		bool is_ambiguous;
	} table[] = {
		{ offsetof(struct shape, id), 8, "id", false },
		{ offsetof(struct shape, corners[0].y), 4, "corners[].y", false },
		{ offsetof(struct shape, corners[2].x), 4, "corners[].x", false },
		{ offsetof(struct shape, whole), 4, "whole", false },
		{ offsetof(struct shape, real), 8, "", true },
		{ offsetof(struct shape, text) + 8, 2, "low", false },
		{ offsetof(struct shape, name) + 5, 1, "name[]", false },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct str path = { 0 };
		struct dtype_place place;

		dtype_path(m.types, m.shape, table[i].offset, table[i].bytes, &path,
			   &place);
		assert_string_equal(str_text(&path), table[i].path);
		assert_int_equal(place.is_ambiguous, table[i].is_ambiguous);
		str_fini(&path);
	}
	dtypes_free(m.types);
}

static void equal_structs_are_one_type_and_others_are_not(void **state)
{
	struct made m = make();
	struct dtype_member members[] = {
		{ .name = "x", .type = m.integer },
		{ .name = "y", .offset = 4, .type = m.integer }
	};
	struct dtype again = { .kind = DTYPE_STRUCT,
			       .name = "struct point",
			       .bytes = 8,
			       .members = members,
			       .member_count = 2 };

	(void)state;
	assert_int_equal(dtype_add(m.types, &again), m.point);
	members[1].name = "z";
	assert_int_not_equal(dtype_add(m.types, &again), m.point);
	dtypes_free(m.types);
}

static void an_access_fits_exactly_partly_or_not(void **state)
{
	struct made m = make();

	(void)state;
	assert_int_equal(dtype_leaves_at(m.types, m.shape, 0, 8)->fit, DTYPE_EXACT);
	assert_int_equal(dtype_leaves_at(m.types, m.shape, 0, 4)->fit, DTYPE_STARTS);
	assert_int_equal(dtype_leaves_at(m.types, m.shape, 100, 4)->fit, DTYPE_WITHIN);
	assert_int_equal(dtype_leaves_at(m.types, m.point, 8, 4)->fit, DTYPE_OUTSIDE);
	/* all members of the union begin there */
	assert_int_equal(
		dtype_leaves_at(m.types, m.shape, offsetof(struct shape, real), 8)->count,
		3);
	dtypes_free(m.types);
}

static void a_flexible_array_belongs_to_its_struct(void **state)
{
	struct made m = make();

	(void)state;
	assert_true(dtype_covers(m.types, m.shape, sizeof(struct shape) + 40));
	assert_false(dtype_covers(m.types, m.point, sizeof(struct point)));
	assert_false(dtype_covers(m.types, m.shape, -1));
	dtypes_free(m.types);
}

static void an_object_contains_its_parts_at_their_places(void **state)
{
	struct made m = make();
	uint64_t second = offsetof(struct shape, corners[1].y);

	(void)state;
	assert_true(dtype_contains(m.types, m.shape, (int64_t)second, m.point, 4));
	assert_false(dtype_contains(m.types, m.shape, (int64_t)second, m.point, 0));
	assert_false(dtype_contains(m.types, m.point, 0, m.shape, 0));
	assert_true(dtype_in_array(m.types, m.shape, (int64_t)second));
	assert_false(dtype_in_array(m.types, m.shape, 0));
	dtypes_free(m.types);
}

/* A struct that claims to contain itself, as damaged debug information may. */
static uint32_t fetch_itself(void *ctx, const struct dtype_ref *ref)
{
	(void)ref;
	return *(uint32_t *)ctx;
}

static void a_struct_inside_itself_does_not_hang(void **state)
{
	uint32_t id = 0;
	struct dtypes *types = dtypes_new(fetch_itself, &id);
	struct dtype_member members[2] = {
		{ .name = "a", .type = DTYPE_UNRESOLVED, .ref = { &id, &id } },
		{ .name = "b", .type = DTYPE_UNRESOLVED, .ref = { &id, &id } },
	};
	struct str path = { 0 };
	struct dtype_place place;

	(void)state;
	id = dtype_add(types, &(struct dtype){ .kind = DTYPE_UNION,
					       .name = "union loop",
					       .bytes = 8,
					       .members = members,
					       .member_count = 2 });
	dtype_path(types, id, 4, 4, &path, &place);
	dtype_contains(types, id, 4, 0, 0);
	dtype_in_array(types, id, 4);
	str_fini(&path);
	dtypes_free(types);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_path_names_what_the_compiler_put_there),
		cmocka_unit_test(equal_structs_are_one_type_and_others_are_not),
		cmocka_unit_test(an_access_fits_exactly_partly_or_not),
		cmocka_unit_test(a_flexible_array_belongs_to_its_struct),
		cmocka_unit_test(an_object_contains_its_parts_at_their_places),
		cmocka_unit_test(a_struct_inside_itself_does_not_hang),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
