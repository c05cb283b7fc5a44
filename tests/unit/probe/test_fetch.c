// SPDX-License-Identifier: Apache-2.0
/* Registers by the psABI: rdi 5, rsi 4, rdx 1, rcx 2, r8 8, r9 9 in DWARF's numbers. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "probe/fetch.h"

static const struct resolve_target nothing = { .name = "f" };

static struct abi_fetch compiled(const char *text, const struct fetch_place *place)
{
	struct expr expr;
	struct abi_fetch fetch = { 0 };
	struct err *err = expr_parse(text, &expr);

	if (!err)
		err = fetch_compile(&expr, place, &fetch);
	if (err)
		fail_msg("%s: %s", text, err->text);
	return fetch;
}

static void arguments_are_registers_of_the_calling_convention(void **state)
{
	static const int registers[] = { 5, 4, 1, 2, 8, 9 };
	const struct fetch_place place = { .target = &nothing };

	(void)state;
	for (int i = 0; i < 6; i++) {
		char text[] = "arg1";

		text[3] = (char)('1' + i);
		struct abi_fetch fetch = compiled(text, &place);

		assert_int_equal(fetch.value.base, ABI_BASE_REG);
		assert_int_equal(fetch.value.reg, registers[i]);
		assert_int_equal(fetch.value.width, 8);
		assert_int_equal(fetch.value.derefs, 0);
	}
	assert_int_equal(compiled("ret", &place).value.reg, 0);
	assert_int_equal(compiled("42", &place).value.add, 42);
	assert_int_equal(compiled("42", &place).value.base, ABI_BASE_CONST);
	assert_int_equal(compiled("tid", &place).value.base, ABI_BASE_TASK);
}

static void reads_are_in_order_and_only_the_last_is_narrow(void **state)
{
	const struct fetch_place place = { .target = &nothing };
	struct abi_fetch fetch = compiled("s32(*(*(arg2+80)-8))", &place);
	struct expr expr;

	(void)state;
	assert_int_equal(fetch.value.derefs, 2);
	assert_int_equal(fetch.value.offset[0], 80);
	assert_int_equal(fetch.value.offset[1], -8);
	assert_int_equal(fetch.value.width, 4);
	assert_int_equal(fetch.value.flags, ABI_PATH_SIGNED);
	assert_null(expr_parse("*(u32(*(arg1)))", &expr));
	struct err *err = fetch_compile(&expr, &place, &fetch);

	assert_non_null(err);
	err_free(err);
}

static void a_counted_string_has_both_paths(void **state)
{
	const struct fetch_place place = { .target = &nothing };
	struct abi_fetch fetch = compiled("str(*(arg1+8), u32(arg2))", &place);

	(void)state;
	assert_int_equal(fetch.kind, ABI_FETCH_COUNTED);
	assert_int_equal(fetch.value.offset[0], 8);
	assert_int_equal(fetch.length.reg, 4);
	assert_int_equal(fetch.length.width, 4);
}

static void a_usdt_argument_is_where_its_note_says(void **state)
{
	static const struct resolve_arg args[] = {
		{ RESOLVE_REGISTER, 4, 3, true, 0 },
		{ RESOLVE_MEMORY, 8, 6, false, -144 },
		{ RESOLVE_CONSTANT, 8, 0, false, -5 },
		{ RESOLVE_UNKNOWN, 8, 0, false, 0 },
	};
	const struct resolve_target target = { .args = args, .arg_count = 4 };
	const struct fetch_place place = { .is_usdt = true, .target = &target };
	struct abi_fetch fetch = compiled("arg1", &place);
	struct expr expr;

	(void)state;
	assert_int_equal(fetch.value.reg, 3);
	assert_int_equal(fetch.value.width, 4);
	assert_int_equal(fetch.value.flags, ABI_PATH_SIGNED);
	fetch = compiled("cstr(*(arg2+16))", &place);
	assert_int_equal(fetch.value.reg, 6);
	assert_int_equal(fetch.value.derefs, 2);
	assert_int_equal(fetch.value.offset[0], -144);
	assert_int_equal(fetch.value.offset[1], 16);
	assert_int_equal(compiled("arg3", &place).value.add, -5);
	for (const char *const *text = (const char *const[]){ "arg4", "arg5", NULL };
	     *text; text++) {
		assert_null(expr_parse(*text, &expr));
		struct err *err = fetch_compile(&expr, &place, &fetch);

		assert_non_null(err);
		err_free(err);
	}
}

static void fields_take_their_offsets_from_the_debug_information(void **state)
{
	static const struct resolve_field asked[] = { { 1, "->db.inner->id" } };
	static const struct resolve_offsets found[] = {
		{ .offsets = { 24, 8 },
		  .count = 2,
		  .bytes = 4,
		  .is_signed = true,
		  .reason = "" },
	};
	const struct resolve_target target = { .fields = found, .field_count = 1 };
	const struct fetch_place place = { .target = &target, .fields = asked };
	struct abi_fetch fetch = compiled("arg1->db.inner->id@99", &place);

	(void)state;
	assert_int_equal(fetch.value.derefs, 2);
	assert_int_equal(fetch.value.offset[0], 24);
	assert_int_equal(fetch.value.offset[1], 8);
	assert_int_equal(fetch.value.width, 4);
	assert_int_equal(fetch.value.flags, ABI_PATH_SIGNED);
	/* The spec's word on the width wins. */
	assert_int_equal(compiled("u16(arg1->db.inner->id)", &place).value.width, 2);
}

static void without_debug_information_the_offset_by_hand_is_used(void **state)
{
	static const struct resolve_field asked[] = { { 1, "->argv" } };
	static const struct resolve_offsets found[] = { { .reason = "none" } };
	const struct resolve_target target = { .fields = found, .field_count = 1 };
	const struct fetch_place place = { .target = &target, .fields = asked };
	struct abi_fetch fetch = compiled("arg1->argv@80", &place);
	struct expr expr;

	(void)state;
	assert_int_equal(fetch.value.offset[0], 80);
	assert_int_equal(fetch.value.width, 8);
	assert_null(expr_parse("arg1->argv", &expr));
	struct err *err = fetch_compile(&expr, &place, &fetch);

	assert_non_null(err);
	assert_string_equal(err->text, "->argv: none");
	err_free(err);
}

static void conditions_carry_their_operator(void **state)
{
	const struct fetch_place place = { .target = &nothing };
	struct abi_fetch fetch;
	struct expr_when when;

	(void)state;
	assert_null(expr_parse_when("u32(arg1) & 1", &when));
	assert_null(fetch_compile_condition(&when.conditions[0], &place, &fetch));
	assert_int_equal(fetch.op, ABI_OP_ANY);
	assert_int_equal(fetch.operand, 1);
	assert_int_equal(fetch.value.width, 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(arguments_are_registers_of_the_calling_convention),
		cmocka_unit_test(reads_are_in_order_and_only_the_last_is_narrow),
		cmocka_unit_test(a_counted_string_has_both_paths),
		cmocka_unit_test(a_usdt_argument_is_where_its_note_says),
		cmocka_unit_test(fields_take_their_offsets_from_the_debug_information),
		cmocka_unit_test(without_debug_information_the_offset_by_hand_is_used),
		cmocka_unit_test(conditions_carry_their_operator),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
