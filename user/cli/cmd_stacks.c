// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"
#include "core/file.h"

static const struct option_spec options[] = {
	{ "folded", 'f', OPTION_FLAG, NULL, "one line per call path, for flame graphs", 0,
	  0 },
	{ "since", 's', OPTION_DURATION, "TIME", "only the last TIME (10m, 2h, 1d)", 0,
	  0 },
	{ "run", 'r', OPTION_TEXT, "RUN", "only this run; see assay status", 0, 0 },
	{ "limit", 'n', OPTION_NUMBER, "N", "rows; 20, all with --folded; 0 for all", 0,
	  0 },
	{ 0 },
};

static void put_folded(void *ctx, const struct report_row *row)
{
	fprintf(ctx, "%s %lld\n", row_text(row, "folded"),
		(long long)row_integer(row, "samples"));
}

static struct err *run_stacks(struct cli *cli)
{
	bool folded = option_given(&cli->options, "folded");
	struct report_scope scope;
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(table_free) struct table *table = NULL;

	if (folded && cli->out.format != OUTPUT_TABLE)
		return cli_usage(cli, "--folded is a format of its own");
	TRY(report_scope(cli, &scope));
	if (cli_arg(cli, 0) && (!number_parse(cli_arg(cli, 0), &scope.pid) || !scope.pid))
		scope.process = cli_arg(cli, 0);
	scope.limit = option_number(&cli->options, "limit", folded ? 0 : 20);
	TRY(report_open(report_db_path(cli), &db));
	if (folded) {
		TRY(report_each(db, "stacks", &scope, put_folded, cli->out.file));
		cli->out.format = OUTPUT_TSV; /* remarks go to standard error */
		return report_summary(&cli->out, db, &scope, ABOUT_TICKS);
	}
	TRY(report_table(db, "stacks", &scope, &table));
	TRY(output_table(&cli->out, "stacks", NULL, table));
	return report_summary(&cli->out, db, &scope, ABOUT_TICKS);
}

const struct cmd cmd_stacks = {
	.name = "stacks",
	.args = "[PID|NAME]",
	.summary = "CPU time by call path",
	.text = "Print where the CPU time went, root first: the process, its functions, and "
		"with _[k] those of the kernel. [cut] marks a path that could not be "
		"followed to its root. PID and NAME are those in the database, of processes "
		"that may be gone by now.",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.max_args = 1,
	.completes = COMPLETE_PROCESS,
	.examples = { { "a flame graph",
			"assay stacks 1234 --folded | flamegraph.pl > redis.svg" },
		      { "the hottest paths of the last minute",
			"assay stacks --since 1m" } },
	.run = run_stacks,
};
