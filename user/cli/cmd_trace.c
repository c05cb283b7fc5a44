// SPDX-License-Identifier: Apache-2.0
#include <stdlib.h>
#include <string.h>

#include "cli/report.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"

#define MAX_DEPTH 64

struct line {
	uint64_t span_id, parent_id, begin_ns, duration_ns, cpu_ns, off_cpu_ns;
	int64_t in_bytes, out_bytes, faults, status;
	bool has_status;
	int64_t pid;
	char *service, *method, *labels;
	bool is_done;
};

struct trace {
	uint64_t id; /* of the trace, or of any span of it */
	VEC(struct line) lines;
};

/* First pass: which trace is meant. */
static void find_trace(void *ctx, const struct report_row *row)
{
	struct trace *trace = ctx;

	if ((uint64_t)row_integer(row, "span_id") == trace->id &&
	    row_integer(row, "trace_id"))
		trace->id = (uint64_t)row_integer(row, "trace_id");
}

static void keep_line(void *ctx, const struct report_row *row)
{
	struct trace *trace = ctx;

	if ((uint64_t)row_integer(row, "trace_id") != trace->id)
		return;
	vec_push(&trace->lines,
		 ((struct line){
			 .span_id = (uint64_t)row_integer(row, "span_id"),
			 .parent_id = (uint64_t)row_integer(row, "parent_id"),
			 .begin_ns = (uint64_t)row_integer(row, "begin_at_ns"),
			 .duration_ns = (uint64_t)row_integer(row, "duration_ns"),
			 .cpu_ns = (uint64_t)row_integer(row, "cpu_ns"),
			 .off_cpu_ns = (uint64_t)row_integer(row, "off_cpu_ns"),
			 .in_bytes = row_integer(row, "in_bytes"),
			 .out_bytes = row_integer(row, "out_bytes"),
			 .faults = row_integer(row, "page_faults"),
			 .status = row_integer(row, "status"),
			 .has_status = row_integer(row, "has_status") != 0,
			 .labels = mem_strdup(row_text(row, "labels")),
			 .pid = row_integer(row, "pid"),
			 .service = mem_strdup(row_text(row, "service")),
			 .method = mem_strdup(row_text(row, "method")),
		 }));
}

static void put_usage(struct table *table, const struct line *line)
{
	table_number(table, 5, (int64_t)line->off_cpu_ns);
	table_number(table, 6, line->in_bytes);
	table_number(table, 7, line->out_bytes);
	table_number(table, 8, line->faults);
	table_text(table, 9, line->labels);
	if (line->has_status)
		table_number(table, 10, line->status);
}

static void put_below(struct table *table, struct trace *trace, uint64_t parent_id,
		      unsigned depth)
{
	vec_each(&trace->lines, line) {
		CLEANUP(free) char *name = NULL;

		if (line->is_done || line->parent_id != parent_id)
			continue;
		line->is_done = true;
		name = mem_printf("%*s%s", (int)depth * 2, "", line->method);
		table_row(table);
		table_text(table, 0, line->service);
		table_text(table, 1, name);
		table_number(table, 2,
			     (int64_t)(line->begin_ns - trace->lines.data[0].begin_ns));
		table_number(table, 3, (int64_t)line->duration_ns);
		table_number(table, 4, (int64_t)line->cpu_ns);
		put_usage(table, line);
		table_number(table, 11, line->pid);
		table_number(table, 12, (int64_t)line->span_id);
		if (depth < MAX_DEPTH)
			put_below(table, trace, line->span_id, depth + 1);
	}
}

static void trace_fini(struct trace *trace)
{
	vec_each(&trace->lines, line) {
		free(line->service);
		free(line->method);
		free(line->labels);
	}
	vec_fini(&trace->lines);
}

static inline void cleanup_trace_fini(struct trace *trace)
{
	trace_fini(trace);
}

static struct err *run_trace(struct cli *cli)
{
	static const struct column columns[] = {
		{ "service", "SERVICE", COLUMN_TEXT, COLUMN_CUT },
		{ "name", "METHOD", COLUMN_TEXT, COLUMN_CUT },
		{ "after_ns", "AFTER", COLUMN_NS, 0 },
		{ "duration_ns", "TIME", COLUMN_NS, 0 },
		{ "cpu_ns", "CPU", COLUMN_NS, 0 },
		{ "off_cpu_ns", "OFF CPU", COLUMN_NS, COLUMN_IF_ANY },
		{ "in_bytes", "IN", COLUMN_BYTES, COLUMN_IF_ANY },
		{ "out_bytes", "OUT", COLUMN_BYTES, COLUMN_IF_ANY },
		{ "page_faults", "FAULTS", COLUMN_NUMBER, COLUMN_IF_ANY },
		{ "labels", "LABELS", COLUMN_TEXT, COLUMN_IF_ANY },
		{ "status", "STATUS", COLUMN_NUMBER, COLUMN_IF_ANY },
		{ "pid", "PID", COLUMN_NUMBER, 0 },
		{ "span_id", "SPAN", COLUMN_ID, COLUMN_SPARE },
	};
	struct report_scope scope = { 0 };
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(table_free) struct table *table = table_new(columns, 13);
	CLEANUP(trace_fini) struct trace trace = { 0 };
	char *end;

	trace.id = strtoull(cli_arg(cli, 0), &end, 0);
	if (*end || !trace.id)
		return cli_usage(cli, "%s is no id of a trace or span", cli_arg(cli, 0));
	TRY(report_open(report_db_path(cli), &db));
	TRY(report_each(db, "spans", &scope, find_trace, &trace));
	TRY(report_each(db, "spans", &scope, keep_line, &trace));
	if (!trace.lines.count)
		return err_new(ERR_NOT_FOUND, "no trace %s was kept", cli_arg(cli, 0));
	put_below(table, &trace, 0, 0);
	vec_each(&trace.lines, line)
		if (!line->is_done) /* whose parent was not kept */
			put_below(table, &trace, line->parent_id, 0);
	table_settle(table, COLUMN_NUMBER);
	return output_table(&cli->out, "spans", NULL, table);
}

const struct cmd cmd_trace = {
	.name = "trace",
	.args = "ID",
	.summary = "one request with all that it asked for",
	.text = "Print the requests of one trace as a tree. ID is that of the trace or of "
		"any request in it: span_id in v_span. Bytes are those of sockets and counted "
		"with 'join = on'; labels and status come from spec files.",
	.groups = CMD_DB | CMD_OUTPUT,
	.min_args = 1,
	.max_args = 1,
	.examples = { { "the longest request's trace",
			"assay trace $(assay sql --tsv 'SELECT span_id FROM v_span ORDER BY "
			"duration_ns DESC LIMIT 1' | tail -1)" } },
	.run = run_trace,
};
