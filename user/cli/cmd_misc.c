// SPDX-License-Identifier: Apache-2.0
/* What the program says about itself: version, help, man, completion. */
#include <string.h>

#include "cli/cmd.h"
#include "store/db.h"

static struct err *run_version(struct cli *cli)
{
	if (cli->out.format == OUTPUT_TABLE) {
		fprintf(cli->out.file, "assay %s\n", ASSAY_VERSION);
		return NULL;
	}
	static const struct column columns[] = {
		{ "version", "VERSION", COLUMN_TEXT, 0 },
		{ "schema", "SCHEMA", COLUMN_NUMBER, 0 },
	};
	CLEANUP(table_free) struct table *table = table_new(columns, 2);

	table_row(table);
	table_text(table, 0, ASSAY_VERSION);
	table_number(table, 1, db_schema_version());
	return output_table(&cli->out, "assay", NULL, table);
}

const struct cmd cmd_version = {
	.name = "version",
	.args = "",
	.summary = "version of this program",
	.text = "Print the version. JSON and TSV also have the number of the database's "
		"schema.",
	.groups = CMD_OUTPUT,
	.examples = { { "for a bug report", "assay version && assay doctor" } },
	.run = run_version,
};

static struct err *find_arg(struct cli *cli, const struct cmd **ret_cmd)
{
	const char *name = cli_arg(cli, 0);
	const char *closest = name ? cmd_closest(name) : NULL;

	*ret_cmd = name ? cmd_find(name) : NULL;
	if (!name || *ret_cmd)
		return NULL;
	if (closest)
		return cli_usage(cli, "there is no command '%s'; did you mean '%s'?",
				 name, closest);
	return cli_usage(cli, "there is no command '%s'", name);
}

static struct err *run_help(struct cli *cli)
{
	const struct cmd *cmd;

	TRY(find_arg(cli, &cmd));
	help_print(cli->out.file, cmd, cli->out.width);
	return NULL;
}

const struct cmd cmd_help = {
	.name = "help",
	.args = "[COMMAND]",
	.summary = "the commands, or how to use one",
	.text = "Print the list of commands, or what 'assay COMMAND --help' prints.",
	.max_args = 1,
	.completes = COMPLETE_CMD,
	.examples = { { "one command", "assay help attach" } },
	.run = run_help,
};

static struct err *run_man(struct cli *cli)
{
	const struct cmd *cmd;

	TRY(find_arg(cli, &cmd));
	man_print(cli->out.file, cmd);
	return NULL;
}

const struct cmd cmd_man = {
	.name = "man",
	.args = "[COMMAND]",
	.summary = "print a manual page's source",
	.text = "Print assay(1), or the page of one command, in the language of man(7). "
		"The installed pages are made so.",
	.max_args = 1,
	.completes = COMPLETE_CMD,
	.examples = { { "read a page that is not installed",
			"assay man types | man -l -" } },
	.run = run_man,
};

static struct err *run_completion(struct cli *cli)
{
	if (strcmp(cli_arg(cli, 0), "bash"))
		return cli_usage(cli, "there is no completion for '%s', only bash",
				 cli_arg(cli, 0));
	return completion_print(cli->out.file);
}

const struct cmd cmd_completion = {
	.name = "completion",
	.args = "bash",
	.summary = "print the shell's completion",
	.text = "Print a completion for bash, which a package installs into "
		"/usr/share/bash-completion/completions.",
	.min_args = 1,
	.max_args = 1,
	.completes = COMPLETE_WORDS,
	.words = "bash",
	.examples = { { "for this shell only", "source <(assay completion bash)" } },
	.run = run_completion,
};
