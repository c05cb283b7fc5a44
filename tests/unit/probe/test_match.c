// SPDX-License-Identifier: Apache-2.0
/* Truth about versions: dpkg --compare-versions, by hand where it stands in the policy. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <stdlib.h>

#include "probe/match.h"

static int sign(int number)
{
	return number < 0 ? -1 : number > 0;
}

static void versions_are_ordered_as_dpkg_orders_them(void **state)
{
	static const struct {
		const char *a, *b;
		int order;
	} cases[] = {
		{ "1.0", "1.0", 0 },
		{ "1.9", "1.10", -1 },
		{ "1.0~rc1", "1.0", -1 },
		{ "1.0-1", "1.0-1+deb12u1", -1 },
		{ "1:1.0", "2.0", 1 },
		{ "1.22.1-9+deb12u11", "1.22", 1 },
		{ "1.22.1-9+deb12u11", "1.23", -1 },
		{ "5:7.0.15-1~deb12u10", "5:7.0.15-1~deb12u9", 1 },
		{ "1.0a", "1.0+", -1 },
		{ "1.001", "1.1", 0 },
		{ "", "0", 0 },
	};
	bool has_dpkg = system("dpkg --version >/dev/null 2>&1") == 0;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		static const char *const ops[] = { "lt", "eq", "gt" };
		char line[256];

		if (sign(match_versions(cases[i].a, cases[i].b)) != cases[i].order)
			fail_msg("%s against %s", cases[i].a, cases[i].b);
		if (sign(match_versions(cases[i].b, cases[i].a)) != -cases[i].order)
			fail_msg("%s against %s, turned round", cases[i].a, cases[i].b);
		if (!has_dpkg || !*cases[i].a)
			continue;
		snprintf(line, sizeof(line), "dpkg --compare-versions '%s' %s '%s'",
			 cases[i].a, ops[cases[i].order + 1], cases[i].b);
		assert_int_equal(system(line), 0);
	}
}

static void a_range_is_closed_below_and_open_above(void **state)
{
	(void)state;
	assert_true(match_in_range("1.22.1-9", "1.22 .. 1.23"));
	assert_false(match_in_range("1.23", "1.22..1.23"));
	assert_true(match_in_range("1.22", "1.22 .. 1.23"));
	assert_true(match_in_range("0.1", ".. 1"));
	assert_true(match_in_range("9", "1 .."));
	assert_true(match_in_range("1.0-1", "1.0-1"));
	assert_false(match_in_range("1.0-2", "1.0-1"));
}

static const struct spec_match by_path[] = {
	{ .path = "*/nginx", .package = "nginx*", .versions = "1.22 .. 1.23" },
	{ .build_id = "abcd" },
};
static const struct spec_variant variant = { .name = "v",
					     .matches = by_path,
					     .match_count = 2 };

static void one_match_of_several_is_enough(void **state)
{
	const struct match_module by_version = { .path = "/usr/sbin/nginx",
						 .package = "nginx",
						 .version = "1.22.1-9" };
	const struct match_module by_id = { .path = "/opt/n", .build_id = "abcd" };
	CLEANUP(str_fini) struct str why = { 0 };

	(void)state;
	assert_true(match_variant(&variant, &by_version, &why));
	assert_true(match_variant(&variant, &by_id, &why));
	assert_string_equal(str_text(&why), "");
}

static void the_reason_is_that_of_the_closest_match(void **state)
{
	const struct match_module newer = { .path = "/usr/sbin/nginx",
					    .package = "nginx",
					    .version = "1.24.0-1",
					    .build_id = "ffff" };
	const struct match_module unknown = { .path = "/usr/sbin/nginx" };
	CLEANUP(str_fini) struct str why = { 0 };

	(void)state;
	assert_false(match_variant(&variant, &newer, &why));
	assert_string_equal(str_text(&why),
			    "its version is 1.24.0-1, not in 1.22 .. 1.23");
	str_clear(&why);
	assert_false(match_variant(&variant, &unknown, &why));
	assert_string_equal(str_text(&why), "its package is unknown, not nginx*");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(versions_are_ordered_as_dpkg_orders_them),
		cmocka_unit_test(a_range_is_closed_below_and_open_above),
		cmocka_unit_test(one_match_of_several_is_enough),
		cmocka_unit_test(the_reason_is_that_of_the_closest_match),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
