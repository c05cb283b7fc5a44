// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>

#include "probe/expr.h"

/* A chain as text: "arg1 [+80] [+0:s4] +8". */
static const char *show(const struct expr_chain *chain, char *text, size_t room)
{
	static const char *const bases[] = { "nothing", "arg",	 "ret",
					     "reg",	"const", "tid" };
	size_t at = (size_t)snprintf(text, room, "%s%lld", bases[chain->base],
				     (long long)chain->number);

	for (unsigned i = 0; i < chain->step_count; i++) {
		const struct expr_step *step = &chain->steps[i];

		at += (size_t)snprintf(text + at, room - at, " [%s%+lld:%c%u]",
				       step->is_field ? "field" : "",
				       (long long)step->offset,
				       step->is_signed ? 's' : 'u', step->bytes);
	}
	if (chain->add)
		at += (size_t)snprintf(text + at, room - at, " %+lld",
				       (long long)chain->add);
	if (chain->cast_bytes)
		snprintf(text + at, room - at, " cut %c%u",
			 chain->cast_signed ? 's' : 'u', chain->cast_bytes);
	return text;
}

static void expressions_become_chains(void **state)
{
	static const struct {
		const char *text, *chain;
	} cases[] = {
		{ "arg1", "arg1" },
		{ "ret", "ret0" },
		{ "reg(rdi)", "reg5" },
		{ "reg( r12 )", "reg12" },
		{ "tid", "tid0" },
		{ "42", "const42" },
		{ "-0x10", "const-16" },
		{ "arg1+16", "arg1 +16" },
		{ "arg1 + 16 - 0x8", "arg1 +8" },
		{ "*(arg1+16)", "arg1 [+16:u8]" },
		{ "*arg1", "arg1 [+0:u8]" },
		{ "**(arg1+80)", "arg1 [+80:u8] [+0:u8]" },
		{ "*(*(*(arg1+80))+8)", "arg1 [+80:u8] [+0:u8] [+8:u8]" },
		{ "u32(*(arg1+72))", "arg1 [+72:u4]" },
		{ "s16(*arg2)", "arg2 [+0:s2]" },
		{ "u32(arg4)", "arg4 cut u4" },
		{ "arg1->argv", "arg1 [field+0:u8]" },
		{ "arg1->argv@80", "arg1 [field+80:u8]" },
		{ "*arg1->argv", "arg1 [field+0:u8] [+0:u8]" },
		{ "arg1->db.inner->id", "arg1 [field+0:u8] [field+0:u8]" },
		{ "*(arg1+8)-4", "arg1 [+8:u8] -4" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct expr expr;
		char text[256];
		struct err *err = expr_parse(cases[i].text, &expr);

		if (err)
			fail_msg("%s: %s", cases[i].text, err->text);
		assert_int_equal(expr.kind, EXPR_VALUE);
		assert_string_equal(show(&expr.a, text, sizeof(text)), cases[i].chain);
	}
}

static void field_paths_are_kept_as_written(void **state)
{
	struct expr expr;

	(void)state;
	assert_null(expr_parse("*(arg2->db.inner->id@8)", &expr));
	assert_string_equal(expr.a.fields, "->db.inner->id");
	assert_int_equal(expr.a.first_field, 0);
	assert_false(expr.a.steps[0].has_offset);
	assert_true(expr.a.steps[1].has_offset);
}

static void texts_have_their_kinds(void **state)
{
	static const struct {
		const char *text;
		enum expr_kind kind;
	} cases[] = { { "cstr(arg1)", EXPR_CSTR },
		      { "str(*(arg1+8), u32(arg2))", EXPR_STR },
		      { "grpc_slice(arg1+32)", EXPR_GRPC_SLICE },
		      { "std_string(arg4)", EXPR_STD_STRING } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct expr expr;

		assert_null(expr_parse(cases[i].text, &expr));
		assert_int_equal(expr.kind, cases[i].kind);
	}
}

static void errors_name_the_column(void **state)
{
	static const struct {
		const char *text, *error;
	} cases[] = {
		{ "", "column 1: a value is expected here" },
		{ "arg0", "column 1: arguments are arg1 to arg6" },
		{ "arg7", "column 1: arguments are arg1 to arg6" },
		{ "*(arg1+", "column 8: a number is expected here" },
		{ "*(arg1+16", "column 10: a ')' is missing" },
		{ "arg1 arg2", "column 6: nothing more is expected here" },
		{ "arg1+arg2", "column 6: a number is expected here" },
		{ "reg(xyz)", "column 5: no register has this name (rdi, r8, ...)" },
		{ "foo", "column 1: 'foo' is none of arg1..arg6, ret, tid, reg(), "
			 "u8()..s64()" },
		{ "*******arg1", "column 1: more than 6 reads in a row" },
		{ "*42", "column 1: a constant is no address" },
		{ "*u32(arg1)", "column 1: a value of 4 bytes is no address" },
		{ "reg(rdi)->x", "column 9: fields need an argument or ret in front, "
				 "whose type is known" },
		{ "arg1->", "column 7: the name of a field is expected here" },
		{ "arg1+99999999999999999999", "column 6: the number is too large" },
		{ "arg1+3000000000", "column 5: offsets are limited to 2 GiB" },
		{ "12ab", "column 3: this does not belong to a number" },
		{ "str(arg1)", "column 9: a ',' is missing" },
		{ "((((((((((((((((((arg1))))))))))))))))))",
		  "column 18: nested deeper than 16" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct expr expr;
		struct err *err = expr_parse(cases[i].text, &expr);

		if (!err)
			fail_msg("no error: %s", cases[i].text);
		assert_string_equal(err->text, cases[i].error);
		err_free(err);
	}
}

static void conditions_are_joined_by_and(void **state)
{
	struct expr_when when;

	(void)state;
	assert_null(expr_parse_when("u32(arg1) == 2 && *(arg2+8) & 0x10", &when));
	assert_int_equal(when.count, 2);
	assert_int_equal(when.conditions[0].compare, EXPR_EQ);
	assert_int_equal(when.conditions[0].number, 2);
	assert_int_equal(when.conditions[1].compare, EXPR_MASK);
	assert_int_equal(when.conditions[1].number, 16);
	assert_int_equal(when.conditions[1].value.step_count, 1);
	assert_null(expr_parse_when("ret <= -1", &when));
	assert_int_equal(when.conditions[0].compare, EXPR_LE);
	assert_int_equal(when.conditions[0].number, -1);
}

static void conditions_that_are_none_are_refused(void **state)
{
	static const char *const cases[] = {
		"arg1",		"arg1 = 2",	   "arg1 == arg2",
		"arg1 == 1 &&", "cstr(arg1) == 1", "1==1 && 1==1 && 1==1"
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct expr_when when;
		struct err *err = expr_parse_when(cases[i], &when);

		if (!err)
			fail_msg("no error: %s", cases[i]);
		assert_non_null(strstr(err->text, "column "));
		err_free(err);
	}
}

static void a_text_of_any_length_is_limited(void **state)
{
	char text[1024];
	struct expr expr;

	(void)state;
	memset(text, ' ', sizeof(text));
	memcpy(text + sizeof(text) - 5, "arg1", 5);
	struct err *err = expr_parse(text, &expr);

	assert_non_null(err);
	assert_int_equal(err->code, ERR_LIMIT);
	err_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(expressions_become_chains),
		cmocka_unit_test(field_paths_are_kept_as_written),
		cmocka_unit_test(texts_have_their_kinds),
		cmocka_unit_test(errors_name_the_column),
		cmocka_unit_test(conditions_are_joined_by_and),
		cmocka_unit_test(conditions_that_are_none_are_refused),
		cmocka_unit_test(a_text_of_any_length_is_limited),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
