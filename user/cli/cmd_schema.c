// SPDX-License-Identifier: Apache-2.0
/*
 * schema/views.sql documents itself: above each CREATE VIEW stands a comment that begins
 * with "-- v_NAME: what it is". The parts are cut out of that text.
 */
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "core/mem.h"
#include "core/str.h"

static const struct option_spec options[] = {
	{ "list", 'l', OPTION_FLAG, NULL, "only the names", 0, 0 },
	{ "sql", 0, OPTION_FLAG, NULL, "also how the views are made", 0, 0 },
	{ 0 },
};

struct view {
	const char *name, *summary; /* in the comment's first line */
	size_t name_bytes, summary_bytes;
	const char *comment, *create, *end;
};

/* The next view at or behind @text. */
static bool next_view(const char *text, struct view *ret_view)
{
	const char *create = text ? strstr(text, "\nCREATE VIEW ") : NULL;

	if (!create)
		return false;
	struct view view = { .create = create + 1 };

	view.name = create + strlen("\nCREATE VIEW ");
	view.name_bytes = strcspn(view.name, " \n");
	const char *end = strstr(create, ";\n");

	view.end = end ? end + 2 : create + strlen(create);
	view.comment = view.create;
	while (view.comment > text && view.comment[-1] == '\n') {
		const char *line = view.comment - 1;

		while (line > text && line[-1] != '\n')
			line--;
		if (strncmp(line, "--", 2))
			break;
		view.comment = line;
	}
	view.summary = view.comment + strcspn(view.comment, ":\n");
	view.summary += strspn(view.summary, ": ");
	view.summary_bytes = strcspn(view.summary, "\n");
	*ret_view = view;
	return true;
}

/* A comment without its dashes. */
static void put_comment(FILE *file, const struct view *view)
{
	const char *line = view->comment;

	while (line < view->create) {
		size_t length = strcspn(line, "\n");
		size_t dashes = strspn(line, "-");

		dashes += line[dashes] == ' ';
		fprintf(file, "%.*s\n", (int)(length - dashes), line + dashes);
		line += length + 1;
	}
}

static struct table *list_views(const char *text)
{
	static const struct column columns[] = {
		{ "view", "VIEW", COLUMN_TEXT, 0 },
		{ "summary", "WHAT IT SHOWS", COLUMN_TEXT, 0 },
	};
	struct table *table = table_new(columns, 2);

	for (struct view view; next_view(text, &view); text = view.end) {
		CLEANUP(free)
		char *name = mem_printf("%.*s", (int)view.name_bytes, view.name);
		CLEANUP(free)
		char *summary = mem_printf("%.*s", (int)view.summary_bytes, view.summary);

		table_row(table);
		table_text(table, 0, name);
		table_text(table, 1, summary);
	}
	return table;
}

static struct err *put_view(struct cli *cli, const char *text, const char *name)
{
	for (struct view view; next_view(text, &view); text = view.end) {
		if (strlen(name) != view.name_bytes ||
		    memcmp(name, view.name, view.name_bytes))
			continue;
		put_comment(cli->out.file, &view);
		if (option_given(&cli->options, "sql"))
			fprintf(cli->out.file, "%.*s", (int)(view.end - view.create),
				view.create);
		return NULL;
	}
	return err_new(ERR_NOT_FOUND, "there is no view '%s'; 'assay schema' lists them",
		       name);
}

static struct err *run_schema(struct cli *cli)
{
	const char *text = db_schema_text();
	CLEANUP(table_free) struct table *table = list_views(text);

	if (cli_arg(cli, 0) && cli->out.format == OUTPUT_TABLE)
		return put_view(cli, text, cli_arg(cli, 0));
	if (cli_arg(cli, 0))
		return cli_usage(cli, "--json and --tsv list the views, "
				      "they do not describe one");
	if (option_given(&cli->options, "list")) {
		for (struct view view; next_view(text, &view); text = view.end)
			fprintf(cli->out.file, "%.*s\n", (int)view.name_bytes, view.name);
		return NULL;
	}
	if (option_given(&cli->options, "sql")) {
		fputs(text, cli->out.file);
		return NULL;
	}
	TRY(output_table(&cli->out, "views", NULL, table));
	output_gap(&cli->out);
	output_note(&cli->out, "'assay schema VIEW' describes the columns of one.");
	return NULL;
}

const struct cmd cmd_schema = {
	.name = "schema",
	.args = "[VIEW]",
	.summary = "what the database can be asked: views and their columns",
	.text = "List the views that assay sql and other SQLite programs can read, or "
		"describe the columns of one. The views are a public interface: columns are "
		"added, not renamed.",
	.groups = CMD_OUTPUT,
	.options = options,
	.max_args = 1,
	.completes = COMPLETE_VIEW,
	.examples = { { "all views", "assay schema" },
		      { "the columns of one", "assay schema v_access" } },
	.run = run_schema,
};
