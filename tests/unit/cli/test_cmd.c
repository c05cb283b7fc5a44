// SPDX-License-Identifier: Apache-2.0
/* The command table is data; these are the promises that its readers rely on. */
#include <ctype.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/cmd.h"

static void every_entry_is_complete(void **state)
{
	(void)state;
	for (const struct cmd *const *at = cmd_table(); *at; at++) {
		const struct cmd *cmd = *at;

		if (!cmd->name || !cmd->args || !cmd->summary || !cmd->text || !cmd->run)
			fail_msg("%s: something is missing", cmd->name);
		assert_ptr_equal(cmd_find(cmd->name), cmd);
		assert_true(strlen(cmd->summary) <= 66);
		assert_true(cmd->summary[strlen(cmd->summary) - 1] != '.');
		assert_true(cmd->text[strlen(cmd->text) - 1] == '.');
		assert_true(cmd->min_args <= cmd->max_args);
		assert_true((cmd->completes == COMPLETE_WORDS) == !!cmd->words);
		assert_true(!*cmd->args == !cmd->max_args);
	}
}

static void every_example_is_a_call_of_its_own_command(void **state)
{
	(void)state;
	for (const struct cmd *const *cmd = cmd_table(); *cmd; cmd++) {
		char start[64];

		snprintf(start, sizeof(start), "assay %s", (*cmd)->name);
		assert_non_null((*cmd)->examples[0].line);
		for (size_t i = 0; i < CMD_MAX_EXAMPLES && (*cmd)->examples[i].line;
		     i++) {
			assert_non_null((*cmd)->examples[i].what);
			assert_non_null(strstr((*cmd)->examples[i].line, start));
		}
	}
}

static void options_are_unique_and_described(void **state)
{
	(void)state;
	for (const struct cmd *const *cmd = cmd_table(); *cmd; cmd++) {
		struct options options;

		cmd_options(*cmd, &options);
		for (size_t i = 0; i < options.count; i++) {
			const struct option_spec *spec = options.specs[i];

			assert_true(spec->help && *spec->help);
			assert_true((spec->kind == OPTION_FLAG) == !spec->arg);
			assert_true(!strpbrk(spec->name, " '\"\\="));
			for (size_t j = 0; j < i; j++) {
				const struct option_spec *other = options.specs[j];

				assert_string_not_equal(spec->name, other->name);
				assert_true(!spec->letter ||
					    spec->letter != other->letter);
			}
		}
	}
}

static void a_mistyped_command_suggests_the_closest(void **state)
{
	(void)state;
	assert_string_equal(cmd_closest("typs"), "types");
	assert_string_equal(cmd_closest("atach"), "attach");
	assert_string_equal(cmd_closest("sq"), "sql");
	assert_null(cmd_closest("frobnicate"));
	assert_null(cmd_closest(""));
	assert_null(cmd_closest("a-name-that-is-much-longer-than-any-command-there-is"));
}

/* groff's own complaint is no option here: what it would stumble over is looked for. */
static void pages_have_their_sections_and_escaped_hyphens(void **state)
{
	(void)state;
	for (const struct cmd *const *cmd = cmd_table(); *cmd; cmd++) {
		char *text = NULL;
		size_t bytes;
		FILE *file = open_memstream(&text, &bytes);

		man_print(file, *cmd);
		fclose(file);
		assert_true(!strncmp(text, ".TH ASSAY\\-", 11));
		assert_non_null(strstr(text, "\n.SH NAME\nassay\\-"));
		assert_non_null(strstr(text, "\n.SH EXAMPLES\n"));
		for (const char *at = text; (at = strchr(at, '-')); at++)
			if (at[-1] != '\\')
				fail_msg("%s: a bare hyphen: %.20s", (*cmd)->name,
					 at - 5);
		free(text);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_entry_is_complete),
		cmocka_unit_test(every_example_is_a_call_of_its_own_command),
		cmocka_unit_test(options_are_unique_and_described),
		cmocka_unit_test(a_mistyped_command_suggests_the_closest),
		cmocka_unit_test(pages_have_their_sections_and_escaped_hyphens),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
