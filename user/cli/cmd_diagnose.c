// SPDX-License-Identifier: Apache-2.0
/*
 * Findings stand in the database as they were found. Here they get their rank, and
 * sentences for people.
 */
#include <string.h>

#include "cli/number.h"
#include "cli/report.h"
#include "core/file.h"
#include "core/mem.h"

#define EXIT_FOUND 3

static const struct option_spec options[] = {
	{ "since", 's', OPTION_DURATION, "TIME", "only what was there in the last TIME",
	  0, 0 },
	{ "run", 'r', OPTION_TEXT, "RUN", "only this run; see assay status", 0, 0 },
	{ "open", 'o', OPTION_FLAG, NULL, "only what goes on", 0, 0 },
	{ "status", 0, OPTION_FLAG, NULL, "exit with 3 when there is a finding", 0, 0 },
	{ 0 },
};

struct list {
	json_t *findings;
	bool open_only;
	size_t damaged;
};

static void take_row(void *ctx, const struct report_row *row)
{
	struct list *list = ctx;

	if (list->open_only && row_integer(row, "until_at_ns"))
		return;
	json_t *finding = json_loads(row_text(row, "text"), 0, NULL);

	if (!json_is_object(finding)) {
		json_decref(finding);
		list->damaged++;
		return;
	}
	json_object_set_new(
		finding, "rank",
		json_integer((json_int_t)json_array_size(list->findings) + 1));
	json_array_append_new(list->findings, finding);
}

static const char *text_of(const json_t *object, const char *key)
{
	const char *text = json_string_value(json_object_get(object, key));

	return text ? text : "";
}

static void print_line(FILE *file, const char *head, const char *text)
{
	CLEANUP(free) char *safe = text_safe(text);

	if (*safe)
		fprintf(file, "  %-10s %s\n", head, safe);
}

static void print_parties(FILE *file, const char *head, const json_t *parties)
{
	size_t i;
	json_t *party;

	json_array_foreach(parties, i, party)
	{
		CLEANUP(free) char *safe = text_safe(text_of(party, "label"));
		double share = json_number_value(json_object_get(party, "share"));
		json_int_t lost = json_integer_value(json_object_get(party, "lost_ms"));

		fprintf(file, "  %-10s %s (%.0f%%", i ? "" : head, safe, 100 * share);
		if (lost)
			fprintf(file, " of its time, %lld ms lately", (long long)lost);
		fprintf(file, ")\n");
	}
}

static void print_texts(FILE *file, const char *head, const json_t *texts)
{
	size_t i;
	json_t *text;

	json_array_foreach(texts, i, text)
	{
		const char *line = json_is_object(text) ? text_of(text, "text")
							: json_string_value(text);

		print_line(file, i ? "" : head, line ? line : "");
	}
}

static void print_finding(const struct output *out, const json_t *finding)
{
	const json_t *resource = json_object_get(finding, "resource");
	CLEANUP(free) char *name = text_safe(text_of(resource, "name"));
	CLEANUP(free) char *object = text_safe(text_of(resource, "object"));
	CLEANUP(free) char *class = text_safe(text_of(finding, "class"));
	const char *until = text_of(finding, "until");

	for (char *c = class; *c; c++)
		*c = *c == '_' ? ' ' : *c;
	fprintf(out->file, "%s%lld. %s: %s%s%s%s\n", output_paint(out, COLOR_BOLD),
		(long long)json_integer_value(json_object_get(finding, "rank")), class,
		name, *object ? " " : "", object, output_paint(out, COLOR_NONE));
	print_line(out->file, "since", text_of(finding, "since"));
	print_line(out->file, "until", *until ? until : "it goes on");
	print_parties(out->file, "caused by", json_object_get(finding, "culprits"));
	print_parties(out->file, "suffer", json_object_get(finding, "victims"));
	print_texts(out->file, "chain", json_object_get(finding, "chain"));
	print_texts(out->file, "evidence", json_object_get(finding, "evidence"));
	print_line(out->file, "where",
		   text_of(json_object_get(finding, "location"), "function"));
	print_line(out->file, "try", text_of(finding, "advice"));
	fprintf(out->file, "\n");
}

static struct err *print_tsv(struct cli *cli, struct db *db,
			     const struct report_scope *scope)
{
	CLEANUP(table_free) struct table *table = NULL;

	TRY(report_table(db, "findings", scope, &table));
	return output_table(&cli->out, "findings", NULL, table);
}

static struct err *run_diagnose(struct cli *cli)
{
	CLEANUP(db_close) struct db *db = NULL;
	struct list list = { .open_only = option_given(&cli->options, "open") };
	struct report_scope scope;
	const char *who = cli_arg(cli, 0);

	TRY(report_scope(cli, &scope));
	if (who && (!number_parse(who, &scope.pid) || !scope.pid))
		scope.process = who;
	TRY(report_open(report_db_path(cli), &db));
	if (cli->out.format == OUTPUT_TSV)
		return print_tsv(cli, db, &scope);
	list.findings = json_array();
	struct err *err = report_each(db, "findings", &scope, take_row, &list);

	if (err) {
		json_decref(list.findings);
		return err;
	}
	if (json_array_size(list.findings) && option_given(&cli->options, "status"))
		cli->status = EXIT_FOUND;
	if (cli->out.format == OUTPUT_JSON) {
		output_value(&cli->out, "version", json_integer(1));
		output_value(&cli->out, "findings", list.findings);
		return NULL;
	}
	size_t i;
	json_t *finding;

	json_array_foreach(list.findings, i, finding) print_finding(&cli->out, finding);
	if (!json_array_size(list.findings))
		output_note(&cli->out,
			    "Nothing is wrong with the resources that are known "
			    "here; see also: assay resources");
	if (list.damaged)
		output_note(&cli->out, "%zu findings in the database cannot be read.",
			    list.damaged);
	json_decref(list.findings);
	return NULL;
}

const struct cmd cmd_diagnose = {
	.name = "diagnose",
	.args = "[PID|NAME]",
	.summary = "which resource is the problem, who suffers, who causes it",
	.text = "Print what the agent has found about the resources that applications "
		"define for themselves: locks, caches, pools, logs, buffers. A finding "
		"needs somebody who loses over a fifth of the time and somebody who "
		"causes it; where all are equally busy there is none.\n\n"
		"assay-finding(5) documents the JSON. What is known of an application "
		"stands in its spec, see assay-spec(5).",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.max_args = 1,
	.completes = COMPLETE_PROCESS,
	.examples = { { "what is wrong with the database",
			"assay diagnose mariadbd --since 10m" },
		      { "for monitoring", "assay diagnose --open --status -q" } },
	.exits = "3: there is a finding, with --status.",
	.run = run_diagnose,
};
