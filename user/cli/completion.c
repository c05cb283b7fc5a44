// SPDX-License-Identifier: Apache-2.0
/*
 * The shell's logic is a file, tools/dist/bash-completion.in; at its line @TABLE@ come
 * the commands, their options and what each argument wants.
 */
#include <string.h>

#include "cli/cmd.h"
#include "core/embed.h"
#include "core/mem.h"

#define COMPLETION_FILE "tools/dist/bash-completion.in"
#define COMPLETION_MARK "@TABLE@\n"

static void put_words(FILE *file, const char *choices)
{
	fputs("words ", file);
	for (; *choices; choices++)
		fputc(*choices == '|' ? ' ' : *choices, file);
}

static void put_commands(FILE *file)
{
	const char *space = "";

	fputs("_assay_commands=\"", file);
	for (const struct cmd *const *cmd = cmd_table(); *cmd; cmd++) {
		fprintf(file, "%s%s", space, (*cmd)->name);
		space = " ";
	}
	fputs("\"\n\n", file);
}

static void put_options(FILE *file)
{
	fputs("_assay_options()\n{\n\tcase $1 in\n", file);
	for (const struct cmd *const *cmd = cmd_table(); *cmd; cmd++) {
		struct options options;

		cmd_options(*cmd, &options);
		fprintf(file, "\t%s) printf '%%s' \"", (*cmd)->name);
		for (size_t i = 0; i < options.count; i++)
			fprintf(file, "%s--%s", i ? " " : "", options.specs[i]->name);
		fputs("\" ;;\n", file);
	}
	fputs("\tesac\n}\n\n", file);
}

static void put_argument(FILE *file, const struct cmd *cmd,
			 const struct option_spec *spec)
{
	if (spec->kind == OPTION_FLAG)
		return;
	fprintf(file, "\t'%s --%s'", cmd->name, spec->name);
	if (spec->letter)
		fprintf(file, " | '%s -%c'", cmd->name, spec->letter);
	fputs(") printf '%s' '", file);
	if (spec->kind == OPTION_CHOICE)
		put_words(file, spec->arg);
	else
		fputs(spec->kind == OPTION_FILE ? "file" : "nothing", file);
	fputs("' ;;\n", file);
}

static void put_arguments(FILE *file)
{
	fputs("_assay_argument()\n{\n\tcase $1 in\n", file);
	for (const struct cmd *const *cmd = cmd_table(); *cmd; cmd++) {
		struct options options;

		cmd_options(*cmd, &options);
		for (size_t i = 0; i < options.count; i++)
			put_argument(file, *cmd, options.specs[i]);
	}
	fputs("\tesac\n}\n\n", file);
}

static void put_positionals(FILE *file)
{
	static const char *const kinds[] = {
		[COMPLETE_FILE] = "file",	[COMPLETE_PROCESS] = "process",
		[COMPLETE_CMD] = "command",	[COMPLETE_VIEW] = "view",
		[COMPLETE_PROGRAM] = "program",
	};

	fputs("_assay_positional()\n{\n\tcase $1 in\n", file);
	for (const struct cmd *const *cmd = cmd_table(); *cmd; cmd++) {
		if ((*cmd)->completes == COMPLETE_NOTHING)
			continue;
		fprintf(file, "\t%s) printf '%%s' '", (*cmd)->name);
		if ((*cmd)->completes == COMPLETE_WORDS)
			put_words(file, (*cmd)->words);
		else
			fputs(kinds[(*cmd)->completes], file);
		fputs("' ;;\n", file);
	}
	fputs("\tesac\n}\n", file);
}

struct err *completion_print(FILE *file)
{
	const struct embed *text = embed_text;

	while (text->path && strcmp(text->path, COMPLETION_FILE))
		text++;
	const char *mark = text->path ? strstr(text->text, COMPLETION_MARK) : NULL;

	if (!mark)
		return err_new(ERR_UNSUPPORTED, "built without %s", COMPLETION_FILE);
	fwrite(text->text, 1, (size_t)(mark - text->text), file);
	put_commands(file);
	put_options(file);
	put_arguments(file);
	put_positionals(file);
	fputs(mark + strlen(COMPLETION_MARK), file);
	return NULL;
}
