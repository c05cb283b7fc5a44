// SPDX-License-Identifier: Apache-2.0
/*
 * Truth stands beside the source line of the fixture. A wrong answer fails; accesses on
 * such lines that stay unanswered are counted, and there may not be more than the table
 * says.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>

#include "bin/symbol.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "types/recover.h"

#define MAX_LINES 2048
#define FIXTURES  2

static const char *const names[FIXTURES] = { "types_flow", "types_more" };

static const struct {
	const char *build;
	size_t max_unanswered[FIXTURES];
} builds[] = {
	{ "gcc-O0", { 1, 0 } },	    { "gcc-O2", { 0, 0 } },   { "gcc-O3", { 0, 0 } },
	{ "gcc-Os", { 0, 0 } },	    { "clang-O2", { 1, 1 } }, { "clang-O3", { 1, 1 } },
	{ "gcc-O2-lto", { 2, 2 } },
};

struct source {
	char *text;
	const char *expect[MAX_LINES]; /* NULL: not judged */
};

struct judge {
	const struct source *source;
	const char *fixture;
	struct symbols *symbols;
	size_t right, wrong, unanswered;
	uint64_t last_va;
};

static void read_source(const char *fixture, struct source *source)
{
	CLEANUP(free) char *path = mem_printf("tests/fixture/%s.c", fixture);
	size_t bytes, number = 1;
	struct err *err = file_read(path, 1 << 20, &source->text, &bytes);
	char *line, *rest;

	assert_null(err);
	rest = source->text;
	while ((line = strsep(&rest, "\n")) && number < MAX_LINES) {
		char *expect = strstr(line, "/* expect: ");

		source->expect[number++] = expect ? expect + strlen("/* expect: ") : NULL;
	}
}

/* "struct a.b[].c" without its brackets is one of the comma-separated words. */
static bool is_expected(const char *expect, const struct answer *answer)
{
	CLEANUP(str_fini) struct str name = { 0 };
	size_t length;

	str_add(&name, answer->type);
	if (*answer->path)
		str_add_char(&name, '.');
	for (const char *c = answer->path; *c; c++)
		if (*c != '[' && *c != ']')
			str_add_char(&name, *c);
	length = strlen(str_text(&name));
	for (const char *at = expect; at; at = strstr(at, ", ")) {
		at += *at == ',' ? 2 : 0;
		if (!strncmp(at, str_text(&name), length) &&
		    (at[length] == ',' || at[length] == ' '))
			return true;
	}
	return false;
}

/* A spill, a constant or a scalar on a judged line is nobody's field. */
static bool is_open(enum verdict verdict)
{
	return verdict == VERDICT_NO_TYPE || verdict == VERDICT_CONFLICT ||
	       verdict == VERDICT_OUT_OF_RANGE;
}

static bool judge_one(void *ctx, const struct answer *answer)
{
	struct judge *judge = ctx;
	struct symbol symbol = symbols_at(judge->symbols, answer->va);
	const char *expect;

	assert_true(answer->va > judge->last_va || !judge->last_va);
	judge->last_va = answer->va;
	if (!strstr(symbol.file, judge->fixture) || symbol.line >= MAX_LINES)
		return true;
	expect = judge->source->expect[symbol.line];
	if (!expect)
		return true;
	if (!strncmp(expect, "canary", strlen("canary")) && !answer->is_frame) {
		judge->wrong += answer->verdict != VERDICT_CANARY;
		judge->right += answer->verdict == VERDICT_CANARY;
	} else if (!verdict_is_claim(answer->verdict)) {
		judge->unanswered += is_open(answer->verdict);
	} else if (is_expected(expect, answer)) {
		judge->right++;
	} else {
		judge->wrong++;
		print_error("line %u, %#lx: %s.%s (%s), expected %.60s\n", symbol.line,
			    answer->va, answer->type, answer->path,
			    verdict_name(answer->verdict), expect);
	}
	return true;
}

static int open_fixture(const char *build, const char *name)
{
	const char *folder = getenv("FIXTURE");
	char *path = folder ? mem_printf("%s/../%s/%s", folder, build, name)
			    : mem_printf(".build/fixture/%s/%s", build, name);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	free(path);
	return fd;
}

static void open_module(int fd, bool dwarf_only, struct recover **ret_recover)
{
	struct recover_files files = { fd, -1, -1 };
	struct recover_options options = { .dwarf_only = dwarf_only };
	struct err *err = recover_open(&files, &options, ret_recover);

	if (err)
		print_error("%s\n", err->text);
	assert_null(err);
}

static void judge_build(const char *build, unsigned fixture, bool dwarf_only,
			struct judge *judge)
{
	CLEANUP(recover_close) struct recover *recover = NULL;
	CLEANUP(elf_close) struct elf_file *file = NULL;
	CLEANUP(close) int fd = open_fixture(build, names[fixture]);
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	static struct source sources[FIXTURES];
	struct source *source = &sources[fixture];

	if (fd < 0) {
		print_message("%s is not built\n", build);
		skip();
	}
	if (!source->text)
		read_source(names[fixture], source);
	open_module(fd, dwarf_only, &recover);
	assert_null(elf_open(fd, &file));
	assert_null(symbols_new(file, NULL, &symbols));
	*judge = (struct judge){ .source = source,
				 .fixture = names[fixture],
				 .symbols = symbols };
	assert_null(recover_all(recover, judge_one, NULL, judge));
}

static void no_answer_is_wrong_and_few_are_missing(void **state)
{
	bool is_bad = false;

	(void)state;
	for (size_t i = 0; i < FIXTURES * sizeof(builds) / sizeof(*builds); i++) {
		size_t build = i / FIXTURES, fixture = i % FIXTURES;
		struct judge judge;

		judge_build(builds[build].build, (unsigned)fixture, false, &judge);
		print_message("%s %s: %zu right, %zu wrong, %zu unanswered\n",
			      builds[build].build, names[fixture], judge.right,
			      judge.wrong, judge.unanswered);
		is_bad |= judge.wrong || judge.right < 20 ||
			  judge.unanswered > builds[build].max_unanswered[fixture];
	}
	assert_false(is_bad);
}

static void debug_information_alone_is_never_wrong_either(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(builds) / sizeof(*builds); i++) {
		struct judge judge;

		judge_build(builds[i].build, 0, true, &judge);
		assert_int_equal(judge.wrong, 0);
		/* without optimisation hardly any pointer lives in a register */
		assert_true(judge.right >= (strcmp(builds[i].build, "gcc-O0") ? 10 : 1));
	}
}

struct again {
	struct recover *other;
	size_t checked;
};

static bool ask_again(void *ctx, const struct answer *answer)
{
	struct again *again = ctx;
	struct answer single;

	if (answer->verdict == VERDICT_NO_FUNCTION)
		return true;
	recover_at(again->other, answer->va, false, &single);
	assert_int_equal(single.verdict, answer->verdict);
	assert_string_equal(single.type, answer->type);
	assert_string_equal(single.path, answer->path);
	assert_int_equal(single.offset, answer->offset);
	again->checked++;
	return true;
}

static void a_single_question_gets_the_answer_of_the_whole_pass(void **state)
{
	CLEANUP(recover_close) struct recover *recover = NULL;
	CLEANUP(recover_close) struct recover *other = NULL;
	CLEANUP(close) int fd = open_fixture("gcc-O2", names[0]);
	struct again again = { 0 };

	(void)state;
	if (fd < 0)
		skip();
	open_module(fd, false, &recover);
	open_module(fd, false, &other);
	again.other = other;
	assert_null(recover_all(recover, ask_again, NULL, &again));
	assert_true(again.checked > 50);
}

static bool find_line(void *ctx, const struct answer *answer)
{
	struct answer *found = ctx;

	if (!strcmp(answer->type, "struct order") && !found->va) {
		*found = *answer;
		found->type = "struct order";
	}
	return true;
}

static void the_layout_of_an_answered_type_lists_its_leaves(void **state)
{
	CLEANUP(recover_close) struct recover *recover = NULL;
	CLEANUP(close) int fd = open_fixture("gcc-O2", names[0]);
	struct answer answer = { 0 };
	struct fact_type type;
	const struct fact_field *fields;
	size_t count;
	/* offsets as the x86-64 ABI lays the fixture's struct out */
	static const struct {
		const char *path;
		uint64_t offset, bytes;
	} truth[] = {
		{ "id", 0, 8 },		 { "flags:3@0", 8, 1 }, { "state:5@3", 8, 1 },
		{ "lines[]", 16, 64 },	 { "first", 80, 8 },	{ "box.width", 88, 2 },
		{ "box.height", 90, 2 },
	};

	(void)state;
	if (fd < 0)
		skip();
	open_module(fd, false, &recover);
	assert_null(recover_all(recover, find_line, NULL, &answer));
	assert_int_not_equal(answer.va, 0);
	assert_true(recover_type(recover, &answer, &type, &fields, &count));
	assert_string_equal(type.name, "struct order");
	assert_int_equal(type.bytes, 96);
	assert_int_equal(count, sizeof(truth) / sizeof(*truth));
	for (size_t i = 0; i < count; i++) {
		assert_string_equal(fields[i].path, truth[i].path);
		assert_int_equal(fields[i].offset, truth[i].offset);
		assert_int_equal(fields[i].bytes, truth[i].bytes);
		assert_int_equal(fields[i].type_id, type.type_id);
	}
}

static void what_is_no_access_says_so(void **state)
{
	CLEANUP(recover_close) struct recover *recover = NULL;
	CLEANUP(elf_close) struct elf_file *file = NULL;
	CLEANUP(close) int fd = open_fixture("gcc-O2", names[0]);
	struct answer answer;

	(void)state;
	if (fd < 0)
		skip();
	open_module(fd, false, &recover);
	assert_null(elf_open(fd, &file));
	recover_at(recover, 0, false, &answer);
	assert_int_equal(answer.verdict, VERDICT_NO_FUNCTION);
	assert_string_equal(answer.type, "");
	recover_at(recover, elf_entry(file), true, &answer);
	assert_int_equal(answer.verdict, VERDICT_NO_FUNCTION);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_answer_is_wrong_and_few_are_missing),
		cmocka_unit_test(debug_information_alone_is_never_wrong_either),
		cmocka_unit_test(a_single_question_gets_the_answer_of_the_whole_pass),
		cmocka_unit_test(the_layout_of_an_answered_type_lists_its_leaves),
		cmocka_unit_test(what_is_no_access_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
