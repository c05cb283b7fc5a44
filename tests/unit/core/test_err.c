// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <errno.h>
#include <stdlib.h>

#include "core/err.h"

static void text_and_code_are_what_was_given(void **state)
{
	struct err *err = err_new(ERR_LIMIT, "%s: %d members", "robj", 70000);

	(void)state;
	assert_int_equal(err->code, ERR_LIMIT);
	assert_int_equal(err->errnum, 0);
	assert_string_equal(err->text, "robj: 70000 members");
	err_free(err);
}

static void errno_becomes_a_class_and_a_sentence(void **state)
{
	static const struct {
		int errnum;
		enum err_code code;
		const char *text; /* glibc's own words */
	} cases[] = {
		{ EPERM, ERR_PERMISSION, "open x: Operation not permitted" },
		{ EACCES, ERR_PERMISSION, "open x: Permission denied" },
		{ ENOENT, ERR_NOT_FOUND, "open x: No such file or directory" },
		{ ESRCH, ERR_NOT_FOUND, "open x: No such process" },
		{ ENOSYS, ERR_UNSUPPORTED, "open x: Function not implemented" },
		{ EPIPE, ERR_CLOSED, "open x: Broken pipe" },
		{ EIO, ERR_IO, "open x: Input/output error" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err *err = err_errno(cases[i].errnum, "open %c", 'x');

		assert_int_equal(err->code, cases[i].code);
		assert_int_equal(err->errnum, cases[i].errnum);
		assert_string_equal(err->text, cases[i].text);
		err_free(err);
	}
}

static void a_wrap_names_the_outer_place_first(void **state)
{
	struct err *err = err_new(ERR_FORMAT, "bad magic");

	(void)state;
	err = err_wrap(err_wrap(err, "header"), "%s", "/bin/x");
	assert_string_equal(err->text, "/bin/x: header: bad magic");
	assert_int_equal(err->code, ERR_FORMAT);
	err_free(err);
}

static void wrapping_or_freeing_success_is_nothing(void **state)
{
	(void)state;
	assert_null(err_wrap(NULL, "%s", "never seen"));
	err_free(NULL);
}

static struct err *fail_at(int step, int *ret_done)
{
	for (int i = 1; i <= 3; i++) {
		TRY(i == step ? err_new(ERR_INVALID, "step %d", i) : NULL);
		*ret_done = i;
	}
	return NULL;
}

static void try_returns_the_first_error_and_only_then(void **state)
{
	int done = 0;

	(void)state;
	assert_null(fail_at(9, &done));
	assert_int_equal(done, 3);
	done = 0;

	struct err *err = fail_at(2, &done);

	assert_string_equal(err->text, "step 2");
	assert_int_equal(done, 1);
	err_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(text_and_code_are_what_was_given),
		cmocka_unit_test(errno_becomes_a_class_and_a_sentence),
		cmocka_unit_test(a_wrap_names_the_outer_place_first),
		cmocka_unit_test(wrapping_or_freeing_success_is_nothing),
		cmocka_unit_test(try_returns_the_first_error_and_only_then),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
