// SPDX-License-Identifier: Apache-2.0
/*
 * The SQL decides which columns a report has; a column's unit follows from its name. What
 * people see besides (headings, what only programs want, what is shown only if it says
 * something) is the small table below.
 */
#include "cli/report.h"

#include <stdlib.h>
#include <string.h>

#include "cli/stop.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

static const struct column looks[] = {
	{ "share_of_all", "SHARE", COLUMN_SHARE, 0 },
	{ "share_of_cpu", "SHARE", COLUMN_SHARE, 0 },
	{ "share_of_kind", "SHARE", COLUMN_SHARE, 0 },
	{ "share_of_typed", "OF TYPED", COLUMN_SHARE, COLUMN_SPARE },
	{ "share_of_type", "OF TYPE", COLUMN_SHARE, COLUMN_SPARE },
	{ "share_of_method", "OF METHOD", COLUMN_SHARE, 0 },
	{ "method", "METHOD", COLUMN_TEXT, COLUMN_CUT },
	{ "share_typed", "TYPED", COLUMN_SHARE, 0 },
	{ "share_lost", "LOST", COLUMN_SHARE, 0 },
	{ "typed_samples", "TYPED", COLUMN_COUNT, COLUMN_MACHINE },
	{ "lost_samples", "LOST", COLUMN_COUNT, COLUMN_MACHINE },
	{ "access_samples", "ACCESSES", COLUMN_COUNT, 0 },
	{ "tick_samples", "TICKS", COLUMN_COUNT, 0 },
	{ "mean_cycles", "CYCLES", COLUMN_NUMBER, COLUMN_IF_ANY },
	{ "l1", "L1", COLUMN_COUNT, COLUMN_IF_ANY },
	{ "l2", "L2", COLUMN_COUNT, COLUMN_IF_ANY },
	{ "l3", "L3", COLUMN_COUNT, COLUMN_IF_ANY },
	{ "dram", "DRAM", COLUMN_COUNT, COLUMN_IF_ANY },
	{ "remote", "REMOTE", COLUMN_COUNT, COLUMN_IF_ANY },
	{ "tlb_miss", "TLB MISS", COLUMN_COUNT, COLUMN_IF_ANY },
	{ "hitm", "HITM", COLUMN_COUNT, COLUMN_IF_ANY },
	{ "lost_ns", "TIME LOST", COLUMN_NS, COLUMN_IF_ANY },
	{ "provenance", "PROVENANCE", COLUMN_TEXT, 0 },
	{ "confidence", "CONF", COLUMN_NUMBER, COLUMN_SPARE },
	{ "loads", "LOADS", COLUMN_COUNT, COLUMN_SPARE },
	{ "stores", "STORES", COLUMN_COUNT, COLUMN_SPARE },
	{ "bytes", "SIZE", COLUMN_BYTES, 0 },
	{ "offset_bytes", "OFFSET", COLUMN_NUMBER, 0 },
	{ "type", "TYPE", COLUMN_TEXT, COLUMN_CUT },
	{ "field", "FIELD", COLUMN_TEXT, COLUMN_CUT },
	{ "function", "FUNCTION", COLUMN_TEXT, COLUMN_CUT },
	{ "module", "MODULE", COLUMN_TEXT, COLUMN_CUT },
	{ "top_type", "TOP TYPE", COLUMN_TEXT, COLUMN_CUT },
	{ "folded", "STACK", COLUMN_TEXT, COLUMN_CUT_LEFT },
	{ "sources", "SOURCES", COLUMN_TEXT, COLUMN_CUT },
	{ "target", "TARGET", COLUMN_TEXT, COLUMN_CUT },
	{ "start_at_ns", "START", COLUMN_TIME, 0 },
	{ "end_at_ns", "END", COLUMN_TIME, 0 },
	{ "run_id", "RUN", COLUMN_ID, 0 },
	{ "file", "FILE", COLUMN_TEXT, COLUMN_MACHINE },
	{ "host", "HOST", COLUMN_TEXT, COLUMN_MACHINE },
	{ "kernel", "KERNEL", COLUMN_TEXT, COLUMN_MACHINE },
	{ "version", "VERSION", COLUMN_TEXT, COLUMN_MACHINE },
	{ "function_va", "AT", COLUMN_HEX, COLUMN_MACHINE },
	{ "pid", "PID", COLUMN_NUMBER, 0 },
	{ "line", "LINE", COLUMN_NUMBER, 0 },
	{ 0 },
};

static const enum column_kind kinds[] = {
	[REPORT_PLAIN] = COLUMN_AUTO,  [REPORT_ID] = COLUMN_ID,
	[REPORT_VA] = COLUMN_HEX,      [REPORT_TIME] = COLUMN_TIME,
	[REPORT_NS] = COLUMN_NS,       [REPORT_BYTES] = COLUMN_BYTES,
	[REPORT_CYCLES] = COLUMN_AUTO, [REPORT_SHARE] = COLUMN_SHARE,
	[REPORT_FLAG] = COLUMN_AUTO,
};

const char *report_db_path(const struct cli *cli)
{
	const char *env = getenv("ASSAY_DB");

	return option_text(&cli->options, "db", env && *env ? env : DB_DEFAULT_PATH);
}

struct err *report_open(const char *path, struct db **ret_db)
{
	struct err *err = db_open(path, DB_READ, ret_db);

	if (err && err->code == ERR_NOT_FOUND) {
		err_free(err);
		return err_new(ERR_NOT_FOUND,
			       "there is no database at %s: run 'assay attach' first, or "
			       "name one with --db",
			       path);
	}
	return err;
}

static struct err *run_of(struct cli *cli, const char *text, uint64_t *ret_run)
{
	if (number_parse(text, ret_run) && *ret_run)
		return NULL;
	return cli_usage(cli, "--run: '%s' is no run; 'assay status' lists them", text);
}

static bool has_option(const struct options *options, const char *name)
{
	for (size_t i = 0; i < options->count; i++)
		if (!strcmp(options->specs[i]->name, name))
			return true;
	return false;
}

struct err *report_confidence(struct cli *cli, const char *or_else,
			      double *ret_confidence)
{
	const char *text = option_text(&cli->options, "min-confidence", or_else);
	char *end;
	double value = strtod(text, &end);

	/* Written so that a NaN is refused too. */
	if (end == text || *end || !(value >= 0 && value <= 1))
		return cli_usage(cli, "--min-confidence: '%s' is not between 0 and 1",
				 text);
	*ret_confidence = value;
	return NULL;
}

struct err *report_scope(struct cli *cli, struct report_scope *ret_scope)
{
	const char *run = option_text(&cli->options, "run", NULL);
	uint64_t since = option_number(&cli->options, "since", 0);

	*ret_scope = (struct report_scope){ 0 };
	if (since)
		ret_scope->since_ns = realtime_ns() - since;
	if (run)
		TRY(run_of(cli, run, &ret_scope->run_id));
	if (has_option(&cli->options, "min-confidence"))
		TRY(report_confidence(cli, "0", &ret_scope->min_confidence));
	return NULL;
}

/* A table that report_run() fills. */
struct collect {
	struct table *table;
	bool plain; /* the user's own SQL: columns as they are */
};

static const struct column *look_of(const char *name)
{
	for (const struct column *look = looks; look->name; look++)
		if (!strcmp(look->name, name))
			return look;
	return NULL;
}

/* "cpu_ns" -> "CPU", "share_lost" -> "SHARE LOST" */
static char *heading_of(const struct report_column *column)
{
	char *head = mem_strdup(column->name);
	bool unit_shown = column->unit == REPORT_NS || column->unit == REPORT_TIME ||
			  column->unit == REPORT_BYTES;

	if (unit_shown && strrchr(head, '_'))
		*strrchr(head, '_') = 0;
	for (char *at = head; *at; at++)
		*at = *at == '_'		 ? ' '
		      : *at >= 'a' && *at <= 'z' ? (char)(*at - 'a' + 'A')
						 : *at;
	return head;
}

static struct err *take_columns(void *ctx, const struct report_column *columns,
				size_t count)
{
	struct collect *collect = ctx;
	struct column made[REPORT_MAX_COLUMNS];
	char *heads[REPORT_MAX_COLUMNS] = { 0 };

	for (size_t i = 0; i < count && i < REPORT_MAX_COLUMNS; i++) {
		const struct column *look =
			collect->plain ? NULL : look_of(columns[i].name);
		unsigned flags = columns[i].unit == REPORT_ID ? COLUMN_MACHINE : 0;

		heads[i] = collect->plain ? mem_strdup(columns[i].name)
					  : heading_of(&columns[i]);
		made[i] = look ? *look
			       : (struct column){ columns[i].name, heads[i],
						  kinds[columns[i].unit],
						  collect->plain ? 0 : flags };
		if (collect->plain && made[i].kind == COLUMN_AUTO)
			made[i].flags |= COLUMN_CUT;
	}
	collect->table = table_new(made, count);
	for (size_t i = 0; i < REPORT_MAX_COLUMNS; i++)
		free(heads[i]);
	return NULL;
}

static struct err *take_row(void *ctx, const struct report_value *values, size_t count)
{
	struct collect *collect = ctx;

	table_row(collect->table);
	for (size_t i = 0; i < count; i++) {
		CLEANUP(free) char *hex = NULL;

		switch (values[i].type) {
		case REPORT_INTEGER:
			table_number(collect->table, i, values[i].integer);
			break;
		case REPORT_REAL:
			table_real(collect->table, i, values[i].real);
			break;
		case REPORT_TEXT:
			table_text(collect->table, i, values[i].text);
			break;
		case REPORT_BLOB:
			hex = str_hex(values[i].text, values[i].text_bytes);
			table_text(collect->table, i, hex);
			break;
		case REPORT_NULL:
			break;
		}
	}
	return NULL;
}

static struct err *collect_run(struct db *db, const struct report_query *query,
			       bool plain, struct table **ret_table)
{
	static const struct report_ops ops = { take_columns, take_row };
	struct collect collect = { .plain = plain };
	struct err *err = report_run(db, query, &ops, &collect);

	if (err) {
		table_free(collect.table);
		return err;
	}
	table_settle(collect.table, plain ? COLUMN_NUMBER : COLUMN_COUNT);
	*ret_table = collect.table;
	return NULL;
}

static size_t scope_params(const struct report_scope *scope, struct report_param *params)
{
	const struct {
		const char *name;
		uint64_t value;
	} numbers[] = {
		{ "since_ns", scope->since_ns },
		{ "run_id", scope->run_id },
		{ "pid", scope->pid },
		{ "limit", scope->limit },
		{ "type_id", scope->type_id },
		{ "module_id", scope->module_id },
		{ "function_va", scope->function_va },
	};
	const struct {
		const char *name, *text;
	} texts[] = {
		{ "process", scope->process },	 { "type", scope->type },
		{ "function", scope->function }, { "module", scope->module },
		{ "method", scope->method },
	};
	size_t count = 0;

	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		if (numbers[i].value)
			params[count++] = (struct report_param){
				.name = numbers[i].name,
				.type = REPORT_INTEGER,
				.integer = (int64_t)numbers[i].value,
			};
	for (size_t i = 0; i < sizeof(texts) / sizeof(*texts); i++)
		if (texts[i].text)
			params[count++] = (struct report_param){ .name = texts[i].name,
								 .type = REPORT_TEXT,
								 .text = texts[i].text };
	if (scope->min_confidence > 0)
		params[count++] = (struct report_param){ .name = "min_confidence",
							 .type = REPORT_REAL,
							 .real = scope->min_confidence };
	return count;
}

/* report_each() on the way through report_run(). */
struct each {
	struct report_row row;
	report_row_fn call;
	void *ctx;
};

static struct err *each_columns(void *ctx, const struct report_column *columns,
				size_t count)
{
	struct each *each = ctx;

	each->row.columns = columns;
	each->row.count = count;
	return NULL;
}

static struct err *each_row(void *ctx, const struct report_value *values, size_t count)
{
	struct each *each = ctx;

	each->row.values = values;
	each->row.count = count;
	each->call(each->ctx, &each->row);
	return NULL;
}

struct err *report_each(struct db *db, const char *name, const struct report_scope *scope,
			report_row_fn call, void *ctx)
{
	static const struct report_ops ops = { each_columns, each_row };
	struct each each = { .call = call, .ctx = ctx };
	struct report_param params[REPORT_MAX_PARAMS];
	struct report_query query = { .name = name,
				      .params = params,
				      .param_count = scope_params(scope, params),
				      .stop = &stop_flag };

	return report_run(db, &query, &ops, &each);
}

static const struct report_value *value_of(const struct report_row *row,
					   const char *column)
{
	for (size_t i = 0; i < row->count; i++)
		if (!strcmp(row->columns[i].name, column))
			return &row->values[i];
	return NULL;
}

int64_t row_integer(const struct report_row *row, const char *column)
{
	const struct report_value *value = value_of(row, column);

	return value && value->type == REPORT_INTEGER ? value->integer : 0;
}

double row_real(const struct report_row *row, const char *column)
{
	const struct report_value *value = value_of(row, column);

	if (!value || value->type == REPORT_NULL)
		return 0;
	return value->type == REPORT_REAL ? value->real : (double)value->integer;
}

const char *row_text(const struct report_row *row, const char *column)
{
	const struct report_value *value = value_of(row, column);

	return value && value->type == REPORT_TEXT ? value->text : "";
}

struct err *report_table(struct db *db, const char *name,
			 const struct report_scope *scope, struct table **ret_table)
{
	struct report_param params[REPORT_MAX_PARAMS];
	struct report_query query = { .name = name,
				      .params = params,
				      .param_count = scope_params(scope, params),
				      .stop = &stop_flag };

	return collect_run(db, &query, false, ret_table);
}

struct err *report_sql(struct db *db, const char *sql, uint64_t timeout_ns,
		       struct table **ret_table)
{
	struct report_query query = { .sql = sql,
				      .timeout_ns = timeout_ns,
				      .stop = &stop_flag };

	return collect_run(db, &query, true, ret_table);
}
