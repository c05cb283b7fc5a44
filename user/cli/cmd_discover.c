// SPDX-License-Identifier: Apache-2.0
/*
 * Candidates from the worker, perhaps seen through somebody's own judgement (--ranker),
 * as a table or as the beginning of a spec file.
 */
#include <errno.h>
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/discovery.h"
#include "cli/modfiles.h"
#include "cli/progress.h"
#include "cli/report.h"
#include "cli/ranker.h"
#include "cli/stop.h"
#include "core/mem.h"
#include "core/str.h"
#include "job/job.h"

#define DISCOVER_STEP_MS 200
#define DISCOVER_ID	 1 /* the only module of our worker */
#define DISCOVER_ROWS	 40

static const struct option_spec options[] = {
	{ "output", 'o', OPTION_FILE, "SPEC", "write a spec file with the evidence", 0,
	  0 },
	{ "min-confidence", 0, OPTION_TEXT, "C", "leave out what is less certain; 0.5", 0,
	  0 },
	{ "resource", 'r', OPTION_TEXT, "NAME", "only of this resource", 0, 0 },
	{ "limit", 'n', OPTION_NUMBER, "N", "rows of the table; 40, and 0 for all", 0,
	  0 },
	{ "ranker", 0, OPTION_TEXT, "CMD",
	  "let CMD judge them: JSON in, JSON out; see below", 0, 0 },
	{ 0 },
};

struct finding {
	struct cli *cli;
	struct progress progress;
	struct discovery *discovery;
	struct err *err;
	bool done;
};

static void on_candidates(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct finding *finding = ctx;

	if (err) {
		finding->err = err;
		finding->done = true;
		return;
	}
	const struct job_candidates *candidates = &reply->candidates;

	progress_show(&finding->progress, candidates->done, candidates->total, "steps");
	for (size_t i = 0; i < candidates->count; i++)
		discovery_add(finding->discovery, &candidates->data[i]);
	finding->done = !reply->more;
}

static struct err *find(struct finding *finding, struct job_client *worker,
			const struct modfiles *files)
{
	TRY(job_open(worker, &(struct job_open){ .module_id = DISCOVER_ID,
						 .main_fd = files->main_fd,
						 .debug_fd = files->debug_fd,
						 .alt_fd = files->alt_fd,
						 .kallsyms_fd = -1,
						 .pack_fd = -1 }));
	progress_begin(&finding->progress, "looking for resources", finding->cli->quiet);
	TRY(job_discover(worker, DISCOVER_ID, on_candidates, finding));
	while (!finding->done && !stop_flag) {
		struct err *err = job_wait(worker, DISCOVER_STEP_MS);
		bool slow = err && err->code == ERR_LIMIT;

		if (slow)
			err_free(err);
		else
			TRY(err);
		progress_show(&finding->progress, 0, 0, NULL);
	}
	progress_end(&finding->progress);
	if (!finding->done)
		return err_new(ERR_CLOSED, "interrupted");
	return take(finding->err);
}

static struct table *resource_table(const struct discovery *discovery, size_t limit)
{
	static const struct column columns[] = {
		{ "confidence", "CONF", COLUMN_NUMBER, 0 },
		{ "event", "EVENT", COLUMN_TEXT, 0 },
		{ "resource", "RESOURCE", COLUMN_TEXT, COLUMN_CUT },
		{ "function", "FUNCTION", COLUMN_TEXT, COLUMN_CUT },
		{ "object", "OBJECT", COLUMN_TEXT, 0 },
		{ "is_verified", "VERIFIED", COLUMN_NUMBER, COLUMN_MACHINE },
		{ "symbol", "SYMBOL", COLUMN_TEXT, COLUMN_MACHINE },
		{ "va", "VA", COLUMN_ID, COLUMN_MACHINE },
		{ "evidence", "EVIDENCE", COLUMN_TEXT, COLUMN_CUT },
	};
	struct table *table = table_new(columns, 9);
	size_t count;
	const struct event_candidate *all = discovery_all(discovery, &count);

	for (size_t i = 0; i < count && (!limit || i < limit); i++) {
		CLEANUP(free) char *evidence = discovery_evidence(&all[i]);

		table_row(table);
		table_real(table, 0, all[i].confidence);
		table_text(table, 1, candidate_event_name(all[i].event));
		table_text(table, 2, all[i].resource);
		table_text(table, 3, all[i].function);
		table_text(table, 4, discovery_object(&all[i]));
		table_number(table, 5, all[i].is_verified);
		table_text(table, 6, all[i].symbol);
		table_number(table, 7, (int64_t)all[i].va);
		table_text(table, 8, evidence);
	}
	return table;
}

static struct err *report(struct cli *cli, const struct discovery *discovery,
			  const char *path)
{
	struct output *out = &cli->out;
	size_t count, limit = option_number(&cli->options, "limit", DISCOVER_ROWS);

	if (out->format != OUTPUT_TABLE && !option_given(&cli->options, "limit"))
		limit = 0;
	CLEANUP(table_free) struct table *table = resource_table(discovery, limit);

	discovery_all(discovery, &count);
	output_value(out, "version", json_integer(DISCOVERY_VERSION));
	output_value(out, "binary", json_string(path));
	TRY(output_table(out, "candidates", NULL, table));
	output_gap(out);
	output_note(out,
		    "%zu candidates%s; 'assay spec test' tells which of them a load "
		    "calls, and how often.",
		    count,
		    limit && count > limit ? ", the first of which are shown" : "");
	return output_done(out);
}

static struct err *run_discover(struct cli *cli)
{
	const char *path = cli_arg(cli, 0);
	const char *spec = option_text(&cli->options, "output", NULL);
	const char *ranker = option_text(&cli->options, "ranker", NULL);
	CLEANUP(job_free) struct job_client *worker = NULL;
	CLEANUP(modfiles_close)
	struct modfiles files = { -1, -1, -1, { { 0 }, 0 }, 0, 0 };
	struct discovery_filter filter = {
		.resource = option_text(&cli->options, "resource", NULL),
	};
	CLEANUP(discovery_free) struct discovery *discovery = discovery_new();
	struct finding finding = { .cli = cli, .discovery = discovery };

	TRY(report_confidence(cli, "0.5", &filter.min_confidence));
	stop_catch();
	TRY(job_spawn(JOB_ANALYZE, NULL, &worker));
	TRY(modfiles_open(worker, path, &files));
	TRY(err_wrap(find(&finding, worker, &files), "%s", path));
	if (ranker)
		TRY(err_wrap(ranker_run(ranker, path, discovery), "--ranker"));
	discovery_filter(discovery, &filter);
	if (spec)
		TRY(discovery_write_spec(discovery, path, &files.build_id, spec));
	return report(cli, discovery, path);
}

const struct cmd cmd_discover = {
	.name = "discover",
	.args = "BINARY",
	.summary = "which resources a program defines, and by which functions",
	.text = "Look for functions that wait for, acquire, use or release what a program "
		"shares out among its clients: locks, pools, caches, logs, slots. Names "
		"propose and the machine code must agree; each candidate comes with the "
		"evidence for it. Nothing is run. Debug information or symbols are not "
		"needed, but what has no name is not found.\n\n"
		"-o writes them as a spec file, to be looked at, cut down and tried with "
		"'assay spec test'; see assay-spec(5).\n\n"
		"--ranker: CMD is run by the shell. On its standard input it gets one JSON "
		"object, {\"version\": 1, \"binary\", \"candidates\": [{\"id\", \"event\", "
		"\"resource\", \"function\", \"symbol\", \"object\", \"is_verified\", "
		"\"confidence\", \"evidence\": [TEXT]}]}. On its standard output it "
		"answers {\"version\": 1, \"candidates\": [{\"id\", \"confidence\", "
		"\"event\", \"resource\", \"note\"}]}, all but the id as it likes; what it "
		"leaves out stays. Without --ranker nothing leaves this program.",
	.groups = CMD_OUTPUT,
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.completes = COMPLETE_FILE,
	.examples = { { "locks, buffers and logs of a database",
			"assay discover /usr/lib/postgresql/15/bin/postgres" },
		      { "a first spec file of one resource",
			"assay discover ./server -r conn-pool -o server.yaml\n"
			"  assay spec check server.yaml ./server" } },
	.run = run_discover,
};
