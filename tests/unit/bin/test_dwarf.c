// SPDX-License-Identifier: Apache-2.0
/*
 * One small program in five dresses (DWARF 4 and 5, type units, dwz, clang), all built
 * from the source that is repeated here; the truth is its text and the ABI.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "bin/dwarf.h"

/* struct line { int qty, price; struct line *next; };
 * struct order { long id; struct line lines[2]; union { long a; char *b; } u; };
 * static struct order table[4];
 * static long walk(struct order *o, int k); */
static const char *const dresses[] = { "program4", "program5", "types", "dwz", "clang" };

struct rig {
	int fd;
	struct elf_file *elf;
	struct dwarf_file *dwarf;
};

static void open_dress(struct rig *rig, const char *name)
{
	char path[128];
	struct err *err;

	snprintf(path, sizeof(path), "tests/fuzz/fuzz_dwarf.seeds/%s", name);
	print_message("%s\n", name);
	rig->fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(rig->fd >= 0);
	assert_null(elf_open(rig->fd, &rig->elf));
	err = dwarf_open(rig->elf, NULL, NULL, &rig->dwarf);
	if (err)
		print_error("%s\n", err->text);
	assert_null(err);
}

static void close_dress(struct rig *rig)
{
	dwarf_close(rig->dwarf);
	elf_close(rig->elf);
	close(rig->fd);
}

static const struct dwarf_function *find_walk(struct rig *rig)
{
	size_t count;
	const struct dwarf_function *all = dwarf_functions(rig->dwarf, &count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, "walk"))
			return &all[i];
	return NULL;
}

static void a_function_has_its_ranges_and_prototype(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(dresses) / sizeof(*dresses); i++) {
		struct rig rig;
		const struct dwarf_function *walk;
		struct dwarf_proto proto;
		const struct dtype *type;

		open_dress(&rig, dresses[i]);
		walk = find_walk(&rig);
		assert_non_null(walk);
		assert_ptr_equal(dwarf_function_at(rig.dwarf, walk->va + 4), walk);
		assert_ptr_equal(dwarf_function_by_va(rig.dwarf, walk->va), walk);
		assert_null(dwarf_function_at(rig.dwarf, 1));
		proto = dwarf_proto(rig.dwarf, walk);
		type = dtype_get(dwarf_types(rig.dwarf), proto.type);
		assert_string_equal(proto.name, "walk");
		assert_int_equal(type->kind, DTYPE_FUNCTION);
		assert_int_equal(type->member_count, 2);
		assert_int_equal(dtype_get(dwarf_types(rig.dwarf), type->params[0])->kind,
				 DTYPE_POINTER);
		assert_false(proto.is_noreturn);
		close_dress(&rig);
	}
}

static void a_parameter_is_in_its_register_on_entry(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(dresses) / sizeof(*dresses); i++) {
		struct rig rig;
		struct dwarf_scopes scopes = { 0 };
		const struct dwarf_function *walk;
		bool is_found = false;

		open_dress(&rig, dresses[i]);
		walk = find_walk(&rig);
		dwarf_scopes(rig.dwarf, walk, &scopes);
		vec_each(&scopes.vars, var) {
			assert_true(var->lo < var->hi);
			if (strcmp(var->name, "o") || var->lo > walk->va)
				continue;
			/* rdi is DWARF's register 5 */
			assert_int_equal(var->where, DWARF_IN_REGISTER);
			assert_int_equal(var->reg, 5);
			assert_true(var->is_param);
			assert_int_equal(var->depth, 0);
			is_found = true;
		}
		assert_true(is_found);
		dwarf_scopes_fini(&scopes);
		close_dress(&rig);
	}
}

static void a_global_is_found_by_any_of_its_bytes(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(dresses) / sizeof(*dresses); i++) {
		struct rig rig;
		const struct dwarf_global *table = NULL;
		uint64_t offset = 0, va;
		size_t count;
		const struct elf_section *sections;

		open_dress(&rig, dresses[i]);
		sections = elf_sections(rig.elf, &count);
		for (size_t s = 0; s < count; s++)
			for (va = sections[s].va;
			     !strcmp(sections[s].name, ".bss") &&
			     va < sections[s].va + sections[s].bytes &&
			     (!table || strcmp(table->name, "table") != 0);
			     va += 4)
				table = dwarf_global_at(rig.dwarf, va, &offset);
		assert_non_null(table);
		assert_string_equal(table->name, "table");
		assert_int_equal(offset, 0);
		assert_ptr_equal(
			dwarf_global_at(rig.dwarf, table->va + 4 * 48 - 1, &offset),
			table);
		assert_int_equal(offset, 4 * 48 - 1);
		assert_ptr_not_equal(
			dwarf_global_at(rig.dwarf, table->va + 4 * 48, &offset), table);
		close_dress(&rig);
	}
}

static void a_struct_has_the_layout_of_the_abi(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(dresses) / sizeof(*dresses); i++) {
		struct rig rig;
		struct dtypes *types;
		struct str path = { 0 }, name = { 0 };
		struct dtype_place place;
		uint32_t order;

		open_dress(&rig, dresses[i]);
		types = dwarf_types(rig.dwarf);
		order = dwarf_proto(rig.dwarf, find_walk(&rig)).type;
		order = dtype_whole(
			types, dtype_target(types, dtype_get(types, order)->params[0]));
		assert_string_equal(dwarf_type_name(rig.dwarf, order, &name),
				    "struct order");
		assert_int_equal(dtype_get(types, order)->bytes, 48);
		dtype_path(types, order, 8 + 16 + 4, 4, &path, &place);
		assert_string_equal(str_text(&path), "lines[].price");
		assert_int_equal(place.offset, 28);
		str_clear(&path);
		dtype_path(types, order, 40, 8, &path, &place);
		assert_string_equal(str_text(&path), "u");
		assert_true(place.is_ambiguous);
		str_fini(&path);
		str_fini(&name);
		close_dress(&rig);
	}
}

static void a_file_without_debug_information_is_not_found(void **state)
{
	struct dwarf_file *dwarf;
	struct elf_file *elf;
	struct err *err;
	int plain = open("/bin/true", O_RDONLY);

	(void)state;
	assert_true(plain >= 0);
	assert_null(elf_open(plain, &elf));
	err = dwarf_open(elf, NULL, NULL, &dwarf);
	assert_non_null(err);
	assert_int_equal(err->code, ERR_NOT_FOUND);
	err_free(err);
	elf_close(elf);
	close(plain);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_has_its_ranges_and_prototype),
		cmocka_unit_test(a_parameter_is_in_its_register_on_entry),
		cmocka_unit_test(a_global_is_found_by_any_of_its_bytes),
		cmocka_unit_test(a_struct_has_the_layout_of_the_abi),
		cmocka_unit_test(a_file_without_debug_information_is_not_found),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
