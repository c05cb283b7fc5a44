// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <string.h>

#include "cli/cost.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"
#include "cost/labelled.h"

enum by { BY_METHOD, BY_PATH, BY_SERVICE, BY_CALLER, BY_LABEL };

static const struct option_spec options[] = {
	{ "by", 'b', OPTION_CHOICE, "method|path|service|caller|label",
	  "what a row is; method", 0, 0 },
	{ "tree", 't', OPTION_FLAG, NULL, "paths as a tree, roots first", 0, 0 },
	{ "folded", 'f', OPTION_FLAG, NULL, "one line per path with its own CPU, in ns",
	  0, 0 },
	{ "fields", 0, OPTION_FLAG, NULL, "the struct fields that METHOD touches", 0, 0 },
	{ "since", 's', OPTION_DURATION, "TIME", "only the last TIME (10m, 2h, 1d)", 0,
	  0 },
	{ "run", 'r', OPTION_TEXT, "RUN", "only this run; see assay status", 0, 0 },
	{ "limit", 'n', OPTION_NUMBER, "N", "rows; 20, and 0 for all", 0, 0 },
	{ 0 },
};

enum {
	C_SERVICE,
	C_NAME,
	C_ROOT,
	C_QPS,
	C_QPS_SE,
	C_SELF,
	C_TRANS,
	C_SE,
	C_TIME,
	C_SHARE,
	C_CALLS,
	C_OFF_CPU,
	C_IN,
	C_OUT,
	C_FAULTS
};
static const struct column columns[] = {
	[C_SERVICE] = { "service", "SERVICE", COLUMN_TEXT, COLUMN_CUT },
	[C_NAME] = { "name", "METHOD", COLUMN_TEXT, COLUMN_CUT },
	[C_ROOT] = { "is_root", "ROOT", COLUMN_NUMBER, COLUMN_MACHINE },
	[C_QPS] = { "qps", "QPS", COLUMN_NUMBER, 0 },
	[C_QPS_SE] = { "qps_se", "+-", COLUMN_NUMBER, 0 },
	[C_SELF] = { "cpu_self_ns", "OWN CPU", COLUMN_NS, 0 },
	[C_TRANS] = { "cpu_transitive_ns", "WITH CALLS", COLUMN_NS, 0 },
	[C_SE] = { "cpu_se", "+-", COLUMN_NS, 0 },
	[C_TIME] = { "mean_ns", "TIME", COLUMN_NS, COLUMN_SPARE },
	[C_SHARE] = { "share_of_cpu", "SHARE", COLUMN_SHARE, 0 },
	[C_CALLS] = { "calls_sampled", "SEEN", COLUMN_COUNT, COLUMN_SPARE },
	[C_OFF_CPU] = { "off_cpu_ns", "OFF CPU", COLUMN_NS,
			COLUMN_SPARE | COLUMN_IF_ANY },
	[C_IN] = { "in_bytes", "IN", COLUMN_BYTES, COLUMN_SPARE | COLUMN_IF_ANY },
	[C_OUT] = { "out_bytes", "OUT", COLUMN_BYTES, COLUMN_SPARE | COLUMN_IF_ANY },
	[C_FAULTS] = { "page_faults", "FAULTS", COLUMN_NUMBER, COLUMN_MACHINE },
};
#define COLUMNS (sizeof(columns) / sizeof(*columns))

static double total_cpu(const struct costs *costs)
{
	size_t count;
	const struct profile_row *rows = profile_methods(costs->profile, &count);
	double sum = 0;

	for (size_t i = 0; i < count; i++)
		sum += rows[i].cpu_ns;
	return sum > 0 ? sum : 1;
}

static double rounded(double value)
{
	return round(value * 100) / 100;
}

static void put_row(struct table *table, const struct costs *costs,
		    const struct profile_row *row, const char *name)
{
	table_row(table);
	table_text(table, C_SERVICE, row->service);
	table_text(table, C_NAME, name);
	table_number(table, C_ROOT, row->is_root);
	table_real(table, C_QPS, rounded(row->calls.value / costs->window_s));
	table_real(table, C_QPS_SE, rounded(row->calls.error / costs->window_s));
	table_number(table, C_SELF, llround(row->self_ns.value));
	table_number(table, C_TRANS, llround(row->transitive_ns.value));
	table_number(table, C_SE, llround(row->transitive_ns.error));
	table_number(table, C_TIME, llround(row->duration_ns.value));
	table_real(table, C_SHARE, row->cpu_ns / total_cpu(costs));
	table_number(table, C_CALLS, (int64_t)row->sampled);
	table_number(table, C_OFF_CPU, llround(row->off_cpu_ns.value));
	table_number(table, C_IN, llround(row->in_bytes.value));
	table_number(table, C_OUT, llround(row->out_bytes.value));
	table_real(table, C_FAULTS, rounded(row->faults.value));
}

static struct table *by_method(const struct costs *costs, uint64_t limit)
{
	size_t count;
	const struct profile_row *rows = profile_methods(costs->profile, &count);
	struct table *table = table_new(columns, COLUMNS);

	for (size_t i = 0; i < count && (!limit || i < limit); i++)
		put_row(table, costs, &rows[i], rows[i].name);
	return table;
}

/* "front buy;cart add" */
static void path_text(const struct profile_row *rows, size_t at, struct str *out)
{
	size_t chain[PROFILE_MAX_DEPTH], depth = 0;

	for (; at != SIZE_MAX && depth < PROFILE_MAX_DEPTH; at = rows[at].parent)
		chain[depth++] = at;
	while (depth--) {
		CLEANUP(free)
		char *part = mem_printf("%s %s", rows[chain[depth]].service,
					rows[chain[depth]].name);

		for (char *c = part; *c; c++)
			if (*c == ';')
				*c = ':';
		str_add(out, part);
		if (depth)
			str_add_char(out, ';');
	}
}

static struct table *by_path(const struct costs *costs, uint64_t limit, bool tree)
{
	size_t count;
	const struct profile_row *rows = profile_paths(costs->profile, &count);
	struct table *table = table_new(columns, COLUMNS);

	for (size_t i = 0; i < count && (!limit || i < limit); i++) {
		CLEANUP(str_fini) struct str name = { 0 };

		if (tree)
			str_printf(&name, "%*s%s%s", (int)rows[i].depth * 2, "",
				   rows[i].name, rows[i].is_call ? " (call)" : "");
		else
			path_text(rows, i, &name);
		put_row(table, costs, &rows[i], str_text(&name));
	}
	return table;
}

static void put_folded(struct output *out, const struct costs *costs)
{
	size_t count;
	const struct profile_row *rows = profile_paths(costs->profile, &count);

	for (size_t i = 0; i < count; i++) {
		CLEANUP(str_fini) struct str path = { 0 };

		path_text(rows, i, &path);
		if (rows[i].cpu_ns >= 1)
			fprintf(out->file, "%s %.0f\n", str_text(&path), rows[i].cpu_ns);
	}
}

static struct table *by_service(const struct costs *costs, uint64_t limit)
{
	static const struct column heads[] = {
		{ "service", "SERVICE", COLUMN_TEXT, COLUMN_CUT },
		{ "qps", "QPS", COLUMN_NUMBER, 0 },
		{ "cpu_ns_per_s", "CPU PER SECOND", COLUMN_NS, 0 },
		{ "share_of_cpu", "SHARE", COLUMN_SHARE, 0 },
	};
	struct sum {
		const char *service;
		double calls, cpu_ns;
	};
	size_t count, done = 0;
	const struct profile_row *rows = profile_methods(costs->profile, &count);
	struct table *table = table_new(heads, 4);
	VEC(struct sum) sums = { 0 };

	for (size_t i = 0; i < count; i++) {
		struct sum *sum = NULL;

		vec_each(&sums, one)
			if (one->service == rows[i].service) /* interned */
				sum = one;
		if (!sum) {
			vec_push(&sums, ((struct sum){ rows[i].service, 0, 0 }));
			sum = &sums.data[sums.count - 1];
		}
		sum->calls += rows[i].is_call ? 0 : rows[i].calls.value;
		sum->cpu_ns += rows[i].cpu_ns;
	}
	while (done < sums.count && (!limit || done < limit)) {
		struct sum *most = &sums.data[0];

		vec_each(&sums, one)
			if (one->cpu_ns > most->cpu_ns)
				most = one;
		table_row(table);
		table_text(table, 0, most->service);
		table_real(table, 1, rounded(most->calls / costs->window_s));
		table_number(table, 2, llround(most->cpu_ns / costs->window_s));
		table_real(table, 3, most->cpu_ns / total_cpu(costs));
		most->cpu_ns = -1;
		done++;
	}
	vec_fini(&sums);
	return table;
}

static struct table *by_caller(const struct costs *costs, uint64_t limit)
{
	static const struct column heads[] = {
		{ "service", "SERVICE", COLUMN_TEXT, COLUMN_CUT },
		{ "name", "METHOD", COLUMN_TEXT, COLUMN_CUT },
		{ "root_service", "PAID BY", COLUMN_TEXT, COLUMN_CUT },
		{ "root_name", "ROOT METHOD", COLUMN_TEXT, COLUMN_CUT },
		{ "qps", "QPS", COLUMN_NUMBER, 0 },
		{ "cpu_ns_per_s", "CPU PER SECOND", COLUMN_NS, 0 },
		{ "share_of_method", "OF METHOD", COLUMN_SHARE, 0 },
	};
	size_t count, methods;
	const struct profile_payer *payers = profile_payers(costs->profile, &count);
	const struct profile_row *rows = profile_methods(costs->profile, &methods);
	struct table *table = table_new(heads, 7);

	for (size_t i = 0; i < count && (!limit || i < limit); i++) {
		const struct profile_row *method = &rows[payers[i].method];

		table_row(table);
		table_text(table, 0, method->service);
		table_text(table, 1, method->name);
		table_text(table, 2, rows[payers[i].root].service);
		table_text(table, 3, rows[payers[i].root].name);
		table_real(table, 4, rounded(payers[i].calls / costs->window_s));
		table_number(table, 5, llround(payers[i].cpu_ns / costs->window_s));
		table_real(table, 6,
			   method->cpu_ns > 0 ? payers[i].cpu_ns / method->cpu_ns : 0);
	}
	return table;
}

static void say_made_of(struct output *out, const struct costs *costs)
{
	struct profile_stats stats = profile_stats(costs->profile);

	output_gap(out);
	output_note(out, "%zu requests in %zu traces kept, over %.1f s.", stats.spans,
		    stats.roots, costs->window_s);
	if (stats.lost_parents)
		output_note(out,
			    "%zu have a parent that was not kept; they count as "
			    "roots.",
			    stats.lost_parents);
	if (costs->is_cut)
		output_note(out, "There are more than %d: use --since.",
			    PROFILE_MAX_SPANS);
}

static void say_labelled(struct output *out, const struct costs *costs)
{
	struct labelled sum = labelled_sum(costs->profile);
	double all = sum.cpu_ns > 0 ? sum.cpu_ns : 1;

	output_value(out, "share_for_empty", json_real(sum.empty_ns / all));
	output_value(out, "share_low_for_high", json_real(sum.low_for_high_ns / all));
	if (sum.empty_ns > 0)
		output_note(out, "%.1f%% of the CPU went to requests that found nothing.",
			    100 * sum.empty_ns / all);
	if (sum.low_for_high_ns > 0)
		output_note(out,
			    "%.1f%% went to requests of high priority that one of low "
			    "priority asked for.",
			    100 * sum.low_for_high_ns / all);
}

static struct err *show(struct cli *cli, const struct costs *costs, uint64_t limit)
{
	long by = (long)option_number(&cli->options, "by", BY_METHOD);
	bool tree = option_given(&cli->options, "tree");
	CLEANUP(table_free) struct table *table = NULL;

	if (option_given(&cli->options, "folded")) {
		put_folded(&cli->out, costs);
		return NULL;
	}
	if (cli->out.format == OUTPUT_JSON)
		costs_json(&cli->out, costs);
	if (cli->out.format == OUTPUT_JSON && by == BY_LABEL)
		say_labelled(&cli->out, costs);
	if (cli->out.format == OUTPUT_JSON && (by == BY_METHOD || by == BY_LABEL) &&
	    !tree)
		return NULL;
	if (tree || by == BY_PATH)
		table = by_path(costs, limit, tree);
	else if (by == BY_SERVICE)
		table = by_service(costs, limit);
	else if (by == BY_CALLER)
		table = by_caller(costs, limit);
	else
		table = by_method(costs, limit);
	table_settle(table, COLUMN_NUMBER);
	TRY(output_table(&cli->out, "rows", NULL, table));
	say_made_of(&cli->out, costs);
	if (by == BY_LABEL && cli->out.format != OUTPUT_JSON)
		say_labelled(&cli->out, costs);
	return NULL;
}

/* Two databases. */

static const struct profile_row *same_method(const struct costs *costs,
					     const struct profile_row *row)
{
	size_t count;
	const struct profile_row *rows = profile_methods(costs->profile, &count);

	for (size_t i = 0; i < count; i++)
		if (rows[i].is_call == row->is_call && !strcmp(rows[i].name, row->name) &&
		    !strcmp(rows[i].service, row->service))
			return &rows[i];
	return NULL;
}

static void put_change(struct table *table, const struct costs *before,
		       const struct costs *after, const struct profile_row *row)
{
	static const struct profile_row none;
	const struct profile_row *old = same_method(before, row) ?: &none,
				 *new = same_method(after, row) ?: &none;
	double change = new->transitive_ns.value - old->transitive_ns.value;
	double error = hypot(new->transitive_ns.error, old->transitive_ns.error);

	table_row(table);
	table_text(table, 0, row->service);
	table_text(table, 1, row->name);
	table_real(table, 2, rounded(old->calls.value / before->window_s));
	table_real(table, 3, rounded(new->calls.value / after->window_s));
	table_number(table, 4, llround(old->transitive_ns.value));
	table_number(table, 5, llround(new->transitive_ns.value));
	table_number(table, 6, llround(error));
	table_text(table, 7,
		   !old->sampled		  ? "new"
		   : !new->sampled		  ? "gone"
		   : fabs(change) <= 1.96 * error ? "within error"
		   : change > 0			  ? "dearer"
						  : "cheaper");
}

static struct err *run_diff(struct cli *cli)
{
	static const struct column heads[] = {
		{ "service", "SERVICE", COLUMN_TEXT, COLUMN_CUT },
		{ "name", "METHOD", COLUMN_TEXT, COLUMN_CUT },
		{ "qps_before", "QPS BEFORE", COLUMN_NUMBER, 0 },
		{ "qps_after", "AFTER", COLUMN_NUMBER, 0 },
		{ "cpu_before_ns", "CPU BEFORE", COLUMN_NS, 0 },
		{ "cpu_after_ns", "AFTER", COLUMN_NS, 0 },
		{ "error_ns", "+-", COLUMN_NS, 0 },
		{ "verdict", "VERDICT", COLUMN_TEXT, 0 },
	};
	struct report_scope scope = { 0 };
	CLEANUP(costs_fini) struct costs before = { 0 };
	CLEANUP(costs_fini) struct costs after = { 0 };
	CLEANUP(table_free) struct table *table = table_new(heads, 8);
	size_t count;
	const struct profile_row *rows;

	if (!cli_arg(cli, 2))
		return cli_usage(cli, "diff wants two databases");
	TRY(costs_load(cli_arg(cli, 1), &scope, false, &before));
	TRY(costs_load(cli_arg(cli, 2), &scope, false, &after));
	rows = profile_methods(after.profile, &count);
	for (size_t i = 0; i < count; i++)
		put_change(table, &before, &after, &rows[i]);
	rows = profile_methods(before.profile, &count);
	for (size_t i = 0; i < count; i++)
		if (!same_method(&after, &rows[i]))
			put_change(table, &before, &after, &rows[i]);
	return output_table(&cli->out, "changes", NULL, table);
}

static struct err *run_fields(struct cli *cli, struct report_scope *scope)
{
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(table_free) struct table *table = NULL;

	scope->method = cli_arg(cli, 0);
	TRY(report_open(report_db_path(cli), &db));
	TRY(report_table(db, "method_fields", scope, &table));
	TRY(output_table(&cli->out, "method_fields", NULL, table));
	return report_summary(&cli->out, db, scope, ABOUT_ACCESSES);
}

static struct err *run_cost(struct cli *cli)
{
	struct report_scope scope;
	CLEANUP(costs_fini) struct costs costs = { 0 };
	uint64_t limit = option_number(&cli->options, "limit", 20);

	if (cli_arg(cli, 0) && !strcmp(cli_arg(cli, 0), "diff"))
		return run_diff(cli);
	TRY(report_scope(cli, &scope));
	if (option_given(&cli->options, "fields")) {
		scope.limit = limit;
		return run_fields(cli, &scope);
	}
	if (cli_arg(cli, 0))
		return cli_usage(cli, "METHOD goes with --fields");
	bool by_label = option_number(&cli->options, "by", BY_METHOD) == BY_LABEL;

	TRY(costs_load(report_db_path(cli), &scope, by_label, &costs));
	return show(cli, &costs, limit);
}

const struct cmd cmd_cost = {
	.name = "cost",
	.args = "[METHOD | diff BEFORE AFTER]",
	.summary = "what each kind of request costs, with all that it asks for",
	.text = "Print the CPU of requests: OWN CPU of a call, and WITH CALLS also what it "
		"asked of others, over all processes that were watched.\n\n"
		"Requests are drawn by whole traces; +- is one standard error. That of QPS "
		"is 0 where all traces were kept. SHARE is of the CPU of all requests. "
		"--by caller tells which root method pays for a method. --by label tells "
		"cache hits from misses and so on, where the spec says which is which, and the share "
		"of the CPU that went to empty results, and to requests of high priority "
		"asked for by ones of low priority. diff "
		"compares two databases; METHOD --fields shows the struct fields that a method "
		"touches.",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.max_args = 3,
	.examples = { { "the tree of calls", "assay cost --tree" },
		      { "a flame graph of services",
			"assay cost --folded | flamegraph.pl > cost.svg" },
		      { "what a miss costs, with what it asks for, and a hit saves",
			"assay cost --by label" },
		      { "before and after", "assay cost diff old.db new.db" },
		      { "the fields that GET touches", "assay cost get --fields" } },
	.run = run_cost,
};
