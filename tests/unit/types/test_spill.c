// SPDX-License-Identifier: Apache-2.0
/* What the fixture's functions spill stands in their source: one value each. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>

#include "bin/symbol.h"
#include "core/file.h"
#include "core/mem.h"
#include "types/recover.h"

static const char *const builds[] = { "gcc-O2", "gcc-O3", "gcc-Os", "clang-O2",
				      "clang-O3" };

struct count {
	struct symbols *symbols;
	const char *function, *text;
	uint32_t width;
	size_t right, wrong, unknown;
};

static bool judge(void *ctx, const struct answer *answer)
{
	struct count *count = ctx;

	if (strcmp(symbols_at(count->symbols, answer->va).function, count->function) != 0)
		return true;
	if (answer->verdict == VERDICT_SPILL) {
		assert_false(verdict_is_claim(answer->verdict));
		assert_string_equal(answer->type, "");
		if (!strcmp(answer->path, count->text))
			count->right++;
		else
			count->wrong++;
	} else if (answer->verdict == VERDICT_STACK && answer->width == count->width) {
		count->unknown++;
	}
	return true;
}

static int open_build(const char *build)
{
	const char *folder = getenv("FIXTURE");
	CLEANUP(free)
	char *path = folder ? mem_printf("%s/../%s/types_spill", folder, build)
			    : mem_printf(".build/fixture/%s/types_spill", build);

	return open(path, O_RDONLY | O_CLOEXEC);
}

static void judge_build(const char *build, struct count *count)
{
	CLEANUP(close) int fd = open_build(build);
	CLEANUP(recover_close) struct recover *recover = NULL;
	CLEANUP(elf_close) struct elf_file *file = NULL;
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	struct recover_files files = { fd, -1, -1 };

	assert_true(fd >= 0);
	assert_null(recover_open(&files, NULL, &recover));
	assert_null(elf_open(fd, &file));
	assert_null(symbols_new(file, NULL, &symbols));
	count->symbols = symbols;
	count->right = count->wrong = count->unknown = 0;
	assert_null(recover_all(recover, judge, NULL, count));
	count->symbols = NULL;
}

/* A store and a load, unless the load is folded into the access. */
static void judge_function(const char *function, const char *text, uint32_t width)
{
	for (size_t b = 0; b < sizeof(builds) / sizeof(*builds); b++) {
		struct count count = { .function = function,
				       .text = text,
				       .width = width };

		judge_build(builds[b], &count);
		if (count.wrong || count.unknown || !count.right)
			print_error("%s: %s: %zu right, %zu wrong, %zu unknown\n",
				    builds[b], function, count.right, count.wrong,
				    count.unknown);
		assert_int_equal(count.wrong, 0);
		assert_int_equal(count.unknown, 0);
		assert_true(count.right >= 1);
	}
}

static void a_spilled_pointer_says_to_what(void **state)
{
	(void)state;
	judge_function("spill_pointer", "struct parcel *", 8);
}

static void a_spilled_number_has_the_type_of_its_variable(void **state)
{
	(void)state;
	judge_function("spill_scalar", "unsigned int", 4);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_spilled_pointer_says_to_what),
		cmocka_unit_test(a_spilled_number_has_the_type_of_its_variable),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
