// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/report.h"
#include "cli/stop.h"
#include "core/file.h"
#include "core/mem.h"

#define SQL_MAX_BYTES (1024 * 1024)

static const struct option_spec options[] = {
	{ "timeout", 0, OPTION_DURATION, "TIME", "give up after TIME; never", 0, 0 },
	{ 0 },
};

/* From the argument, or standard input. */
static struct err *read_query(struct cli *cli, char **ret_sql)
{
	const char *word = cli_arg(cli, 0);

	if (word && strcmp(word, "-")) {
		*ret_sql = mem_strdup(word);
		return NULL;
	}
	if (isatty(STDIN_FILENO))
		return cli_usage(
			cli, "no query: give one as an argument or on standard input, "
			     "as in: assay sql 'SELECT * FROM v_type LIMIT 10'; "
			     "'assay schema' shows what can be asked");
	size_t bytes;

	TRY(err_wrap(file_read_fd(STDIN_FILENO, SQL_MAX_BYTES, ret_sql, &bytes),
		     "standard input"));
	if (strlen(*ret_sql) != bytes)
		return cli_usage(cli, "standard input: a NUL is no SQL");
	return NULL;
}

static struct err *run_sql(struct cli *cli)
{
	CLEANUP(free) char *sql = NULL;
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(table_free) struct table *table = NULL;

	TRY(read_query(cli, &sql));
	TRY(report_open(report_db_path(cli), &db));
	stop_catch();
	TRY(report_sql(db, sql, option_number(&cli->options, "timeout", 0), &table));
	return output_table(&cli->out, "rows", NULL, table);
}

const struct cmd cmd_sql = {
	.name = "sql",
	.args = "[QUERY]",
	.summary = "ask the database in SQL, read-only",
	.text = "Run one SELECT of SQLite's dialect. Without QUERY, or with -, it is read "
		"from standard input. Nothing can be written. 'assay schema' shows the "
		"views; ids are 64-bit numbers, printed as 0x..., and accepted so.",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.max_args = 1,
	.examples = { { "types that miss the cache",
			"assay sql 'SELECT type, dram FROM v_type ORDER BY dram DESC LIMIT "
			"9'" },
		      { "a query from a file", "assay sql --tsv < query.sql" } },
	.run = run_sql,
};
