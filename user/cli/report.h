/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_REPORT_H
#define CLI_REPORT_H

/* The store's reports as tables, and what stands below every one of them. */

#include "cli/cmd.h"
#include "store/report.h"

/* What a report is about; zero and NULL restrict nothing. */
struct report_scope {
	uint64_t since_ns; /* realtime */
	uint64_t run_id;
	uint64_t pid;
	const char *process;
	uint64_t limit; /* rows; 0: all */
	double min_confidence;
	const char *type, *function, *module, *method; /* names, for what asks for them */
	uint64_t type_id, module_id, function_va;
};

/* report_db_path() - --db, else $ASSAY_DB, else the default; borrowed. */
const char *report_db_path(const struct cli *cli);
/* report_open() - for reading; the error says what to do. */
struct err *report_open(const char *path, struct db **ret_db);

/* report_scope() - from a command's --since, --run and --min-confidence. */
/* report_confidence() - of --min-confidence; @or_else: where it is not given. */
struct err *report_confidence(struct cli *cli, const char *or_else,
			      double *ret_confidence);
struct err *report_scope(struct cli *cli, struct report_scope *ret_scope);

/* report_table() - run a named report. */
struct err *report_table(struct db *db, const char *name,
			 const struct report_scope *scope, struct table **ret_table);
/* report_sql() - run the user's own statement. */
struct err *report_sql(struct db *db, const char *sql, uint64_t timeout_ns,
		       struct table **ret_table);

/* One row while a report runs; a column that is not there reads as 0 or "". */
struct report_row {
	const struct report_column *columns;
	const struct report_value *values;
	size_t count;
};
int64_t row_integer(const struct report_row *row, const char *column);
double row_real(const struct report_row *row, const char *column);
const char *row_text(const struct report_row *row, const char *column);

typedef void (*report_row_fn)(void *ctx, const struct report_row *row);
struct err *report_each(struct db *db, const char *name, const struct report_scope *scope,
			report_row_fn each, void *ctx);

/* What a report's figures are made of. */
enum report_about { ABOUT_ACCESSES, ABOUT_TICKS };

/**
 * report_summary() - the lines below a report: how many samples, how much of them is
 * typed, how much was lost, and which modules lack debug information.
 */
struct err *report_summary(struct output *out, struct db *db,
			   const struct report_scope *scope, enum report_about about);

/* report_types() - what `assay attach` and `assay run` end with. */
struct err *report_types(struct output *out, const char *db_path,
			 const struct report_scope *scope);

#endif
