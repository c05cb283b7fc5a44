// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "cli/option.h"

static const struct option_spec specs[] = {
	{ "for", 0, OPTION_DURATION, "TIME", "", 0, 0 },
	{ "rate", 'r', OPTION_NUMBER, "HZ", "", 1, 10000 },
	{ "by", 'b', OPTION_CHOICE, "type|field|function", "", 0, 0 },
	{ "db", 0, OPTION_FILE, "FILE", "", 0, 0 },
	{ "all", 'a', OPTION_FLAG, NULL, "", 0, 0 },
	{ "always", 0, OPTION_FLAG, NULL, "", 0, 0 },
	{ 0 },
};

/* Words of one line, cut at spaces; "cmd" goes in front. */
static struct err *parse(const char *line, bool in_order, struct options *options)
{
	static char text[256];
	static char *argv[32];
	int argc = 0;

	snprintf(text, sizeof(text), "%s", line);
	argv[argc++] = (char *)"cmd";
	for (char *word = strtok(text, " "); word; word = strtok(NULL, " "))
		argv[argc++] = word;
	argv[argc] = NULL;
	*options = (struct options){ 0 };
	option_add(options, specs);
	return option_parse(options, argc, argv, in_order);
}

static void values_are_read_in_every_spelling(void **state)
{
	static const char *const lines[] = {
		"--for 1500ms --rate 99 --by field -a --db x one two",
		"--for=1500ms -r99 -b field --all --db=x one two",
		"one --rat 99 two --for 1500ms -ar 99 -bfield --db x",
	};
	struct options options;

	(void)state;
	for (size_t i = 0; i < 3; i++) {
		assert_null(parse(lines[i], false, &options));
		assert_int_equal(option_number(&options, "for", 0), 1500000000);
		assert_int_equal(option_number(&options, "rate", 0), 99);
		assert_int_equal(option_number(&options, "by", 9), 1);
		assert_string_equal(option_text(&options, "db", ""), "x");
		assert_true(option_given(&options, "all"));
		assert_false(option_given(&options, "always"));
		assert_int_equal(options.arg_count, 2);
		assert_string_equal(options.args[0], "one");
		assert_string_equal(options.args[1], "two");
	}
}

static void nonsense_is_refused_with_the_options_name(void **state)
{
	static const struct {
		const char *line, *word;
	} cases[] = {
		{ "--for never", "--for" },
		{ "--for 0", "--for" },
		{ "--for", "--for needs" },
		{ "--rate 0", "--rate" },
		{ "--rate 10001", "--rate" },
		{ "--rate -1", "--rate" },
		{ "-r", "--rate needs" },
		{ "--by colour", "type|field|function" },
		{ "--by typ", "--by" },
		{ "--all=yes", "--all takes no" },
		{ "--al", "--al" },
		{ "--nix", "--nix" },
		{ "-x", "-x" },
		{ "--db=", "--db" },
	};
	struct options options;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err *err = parse(cases[i].line, false, &options);

		if (!err || err->code != ERR_INVALID || !strstr(err->text, cases[i].word))
			fail_msg("%s: %s", cases[i].line, err ? err->text : "accepted");
		err_free(err);
	}
}

static void words_behind_the_first_belong_to_the_command_when_in_order(void **state)
{
	struct options options;

	(void)state;
	assert_null(parse("--rate 5 ls --all -r", true, &options));
	assert_false(option_given(&options, "all"));
	assert_int_equal(options.arg_count, 3);
	assert_string_equal(options.args[1], "--all");
	assert_null(parse("--rate 5 -- --all", true, &options));
	assert_int_equal(options.arg_count, 1);
	assert_null(parse("--all -- -r --nix", false, &options));
	assert_int_equal(options.arg_count, 2);
}

static void what_is_not_given_has_its_fallback(void **state)
{
	struct options options;

	(void)state;
	assert_null(parse("", false, &options));
	assert_int_equal(option_number(&options, "rate", 997), 997);
	assert_null(option_text(&options, "db", NULL));
	assert_int_equal(options.arg_count, 0);
}

static void a_choice_is_a_whole_word_of_the_list(void **state)
{
	(void)state;
	assert_int_equal(option_choice("a|bc|d", "a"), 0);
	assert_int_equal(option_choice("a|bc|d", "bc"), 1);
	assert_int_equal(option_choice("a|bc|d", "d"), 2);
	assert_int_equal(option_choice("a|bc|d", "b"), -1);
	assert_int_equal(option_choice("a|bc|d", "a|bc"), -1);
	assert_int_equal(option_choice("a|bc|d", ""), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(values_are_read_in_every_spelling),
		cmocka_unit_test(nonsense_is_refused_with_the_options_name),
		cmocka_unit_test(
			words_behind_the_first_belong_to_the_command_when_in_order),
		cmocka_unit_test(what_is_not_given_has_its_fallback),
		cmocka_unit_test(a_choice_is_a_whole_word_of_the_list),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
