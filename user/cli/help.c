// SPDX-License-Identifier: Apache-2.0
/* The command table as text for a terminal. */
#include <stdbool.h>
#include <string.h>

#include "cli/cmd.h"
#include "core/mem.h"
#include "core/str.h"

#define HELP_WIDTH_MAX 90 /* longer lines read badly */
#define HELP_COLUMN    24

/* What is in brackets stays on one line. */
static int word_length(const char *text)
{
	int length = *text == '[' ? (int)strcspn(text, "]") : 0;

	return length + (int)strcspn(text + length, " \n");
}

/* Fill lines up to @width; continuation lines start at @indent. @at: where we stand. */
static void put_wrapped(FILE *file, const char *text, int at, int indent, int width)
{
	bool begun = false; /* a word stands on this line */

	while (*text) {
		int length = word_length(text);

		if (begun && at + 1 + length > width) {
			fprintf(file, "\n%*s", indent, "");
			at = indent;
		} else if (begun) {
			fputc(' ', file);
			at++;
		}
		fprintf(file, "%.*s", length, text);
		at += length;
		begun = true;
		text += length;
		if (text[0] == '\n' && text[1] == '\n') {
			fprintf(file, "\n\n%*s", indent, "");
			at = indent;
			begun = false;
		}
		text += strspn(text, " \n");
	}
	fputc('\n', file);
}

static void put_option(FILE *file, const struct option_spec *spec, int width)
{
	CLEANUP(str_fini) struct str left = { 0 };

	if (spec->letter)
		str_printf(&left, "  -%c, --%s", spec->letter, spec->name);
	else
		str_printf(&left, "      --%s", spec->name);
	if (spec->arg)
		str_printf(&left, " %s", spec->arg);
	fputs(left.data, file);
	if (left.length + 2 > HELP_COLUMN)
		fprintf(file, "\n%*s", HELP_COLUMN, "");
	else
		fprintf(file, "%*s", HELP_COLUMN - (int)left.length, "");
	put_wrapped(file, spec->help, HELP_COLUMN, HELP_COLUMN, width);
}

static void print_overview(FILE *file, int width)
{
	fputs("usage: assay COMMAND [OPTIONS] [ARGUMENTS]\n\n", file);
	put_wrapped(file,
		    "See which struct fields cost a running program its time: sample it, "
		    "find the types its memory instructions touch, read the answer.",
		    0, 0, width);
	fputs("\ncommands:\n", file);
	for (const struct cmd *const *cmd = cmd_table(); *cmd; cmd++)
		fprintf(file, "  %-12s%s\n", (*cmd)->name, (*cmd)->summary);
	fputs("\nfirst steps:\n"
	      "  assay doctor                         what this machine can do\n"
	      "  assay attach redis-server --for 10s  sample it and show its types\n"
	      "  assay types --by field               the fields, again from the database\n"
	      "\n'assay COMMAND --help' and assay-COMMAND(1) say more.\n",
	      file);
}

void help_print(FILE *file, const struct cmd *cmd, int width)
{
	struct options options;

	if (width <= 40 || width > HELP_WIDTH_MAX)
		width = HELP_WIDTH_MAX;
	if (!cmd) {
		print_overview(file, width);
		return;
	}
	CLEANUP(free) char *synopsis = cmd_synopsis(cmd);

	fputs("usage: ", file);
	put_wrapped(file, synopsis, 7, 15, width);
	fputc('\n', file);
	put_wrapped(file, cmd->text, 0, 0, width);
	fputs("\noptions:\n", file);
	cmd_options(cmd, &options);
	for (size_t i = 0; i < options.count; i++)
		put_option(file, options.specs[i], width);
	fputs("\nexamples:\n", file);
	for (size_t i = 0; i < CMD_MAX_EXAMPLES && cmd->examples[i].line; i++)
		fprintf(file, "  # %s\n  %s\n", cmd->examples[i].what,
			cmd->examples[i].line);
	fputs("\nexit codes: ", file);
	put_wrapped(file, cmd->exits ? cmd->exits : "0 done, 1 failed, 2 wrong usage.",
		    12, 12, width);
}
