// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"

static const struct option_spec options[] = {
	{ "by", 'b', OPTION_CHOICE, "type|field|function|method",
	  "what a row is; type. method: the fields of each kind of request", 0, 0 },
	{ "since", 's', OPTION_DURATION, "TIME", "only the last TIME (10m, 2h, 1d)", 0,
	  0 },
	{ "run", 'r', OPTION_TEXT, "RUN", "only this run; see assay status", 0, 0 },
	{ "pid", 'p', OPTION_NUMBER, "PID", "only this process", 1, INT32_MAX },
	{ "process", 0, OPTION_TEXT, "NAME", "only processes with this command name", 0,
	  0 },
	{ "min-confidence", 'c', OPTION_TEXT, "C",
	  "only answers at least this sure, 0 to 1; others count as not typed", 0, 0 },
	{ "limit", 'n', OPTION_NUMBER, "N", "rows; 20, and 0 for all", 0, 0 },
	{ 0 },
};

static struct err *run_types(struct cli *cli)
{
	static const char *const names[] = { "types", "fields", "functions",
					     "method_fields" };
	const char *name = names[option_number(&cli->options, "by", 0)];
	struct report_scope scope;
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(table_free) struct table *table = NULL;

	TRY(report_scope(cli, &scope));
	scope.limit = option_number(&cli->options, "limit", 20);
	scope.pid = option_number(&cli->options, "pid", 0);
	scope.process = option_text(&cli->options, "process", NULL);
	TRY(report_open(report_db_path(cli), &db));
	TRY(report_table(db, name, &scope, &table));
	TRY(output_table(&cli->out, name, NULL, table));
	return report_summary(&cli->out, db, &scope, ABOUT_ACCESSES);
}

const struct cmd cmd_types = {
	.name = "types",
	.args = "",
	.summary = "the struct types, fields or functions that accesses go to",
	.text = "Print what the sampled memory accesses touch, most samples first.\n\n"
		"SHARE is of all access samples selected, typed or not; OF TYPED of those "
		"that have a type, OF TYPE of those of the same type. PROVENANCE says how "
		"most of the samples got their type, CONF is the mean probability that it "
		"is right. Below stands how many samples are typed, why the others are "
		"not, and how many were lost.",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.examples = { { "types of the last ten minutes", "assay types --since 10m" },
		      { "fields, for a spreadsheet",
			"assay types --by field --tsv -n 0" },
		      { "the functions that access memory in one process",
			"assay types --by function --pid 1234" } },
	.run = run_types,
};
