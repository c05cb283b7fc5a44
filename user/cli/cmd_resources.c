// SPDX-License-Identifier: Apache-2.0
#include "cli/report.h"
#include "core/file.h"

static const struct option_spec options[] = {
	{ "since", 's', OPTION_DURATION, "TIME", "only the last TIME (10m, 2h, 1d)", 0,
	  0 },
	{ "run", 'r', OPTION_TEXT, "RUN", "only this run; see assay status", 0, 0 },
	{ "limit", 'n', OPTION_NUMBER, "N", "rows; 0 for all", 0, 0 },
	{ 0 },
};

static struct err *print(struct cli *cli, const char *report, const char *name,
			 const char *pid)
{
	struct report_scope scope;
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(table_free) struct table *table = NULL;

	TRY(report_scope(cli, &scope));
	if (pid && !number_parse(pid, &scope.pid))
		return cli_usage(cli, "'%s' is not a process id", pid);
	scope.type = name;
	scope.limit = option_number(&cli->options, "limit", 0);
	TRY(report_open(report_db_path(cli), &db));
	TRY(report_table(db, report, &scope, &table));
	return output_table(&cli->out, report, NULL, table);
}

static struct err *run_resources(struct cli *cli)
{
	return print(cli, "resources", NULL, cli_arg(cli, 0));
}

static struct err *run_resource(struct cli *cli)
{
	return print(cli, "timeline", cli_arg(cli, 0), cli_arg(cli, 1));
}

const struct cmd cmd_resources = {
	.name = "resources",
	.args = "[PID]",
	.summary = "how the resources of applications are used",
	.text = "Print every resource that a spec knows in the applications that were "
		"watched: how long was it waited for and held, how often acquired, refused "
		"and used, by all together.",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.max_args = 1,
	.completes = COMPLETE_PROCESS,
	.examples = { { "the last minute", "assay resources --since 1m" } },
	.run = run_resources,
};

const struct cmd cmd_resource = {
	.name = "resource",
	.args = "NAME [PID]",
	.summary = "one resource over time",
	.text = "Print what happened to one resource, one line per second, later per ten "
		"seconds, minute and hour. assay resources lists the names.",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.min_args = 1,
	.max_args = 2,
	.completes = COMPLETE_NOTHING,
	.examples = { { "since when are tables locked",
			"assay resource metadata-lock --since 10m" } },
	.run = run_resource,
};
