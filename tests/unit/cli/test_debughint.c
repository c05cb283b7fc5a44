// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/debughint.h"

static void dpkgs_answer_names_the_debug_package(void **state)
{
	static const struct {
		const char *answer, *package;
	} cases[] = {
		{ "redis-tools: /usr/bin/redis-check-rdb\n", "redis-tools-dbgsym" },
		{ "libssl3:amd64: /usr/lib/libssl.so.3\n", "libssl3-dbgsym" },
		{ "g++-12, gcc-12: /usr/share/x\n", "g++-12-dbgsym" },
		{ "libc6:amd64: /lib/x86_64-linux-gnu/libc.so.6\n", "libc6-dbg" },
		{ "diversion by dash from: /bin/sh\n", NULL },
		{ "$(reboot): /x\n", NULL },
		{ "", NULL },
		{ "redis-tools", NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *package = debughint_package(cases[i].answer);

		if (cases[i].package)
			assert_string_equal(package, cases[i].package);
		else
			assert_null(package);
		free(package);
	}
}

static void a_file_of_a_package_names_it_and_another_does_not(void **state)
{
	struct build_id id = { { 0xab, 0xcd }, 2 };

	(void)state;
	if (access("/usr/bin/dpkg-query", X_OK)) {
		print_message("no dpkg-query here\n");
		skip();
	}
	char *mine = debughint("/usr/bin/dpkg-query", &id);
	char *other = debughint("/usr/bin/*", &id); /* a name, no pattern */

	assert_non_null(strstr(mine, "/usr/bin/dpkg-query (build-id abcd)"));
	assert_non_null(strstr(mine, "apt-get install dpkg-dbgsym"));
	assert_null(strstr(other, "apt-get"));
	assert_non_null(strstr(other, "-g"));
	free(mine);
	free(other);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(dpkgs_answer_names_the_debug_package),
		cmocka_unit_test(a_file_of_a_package_names_it_and_another_does_not),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
