/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_REPORT_H
#define STORE_REPORT_H

/*
 * Named queries of schema/report/NAME.sql, and any SELECT of the user's, row by row.
 * Nothing that runs through here can write: an authorizer refuses everything but reads.
 *
 * Reports: types fields functions stacks status runs modules processes loss coverage
 * findings resources, timeline for one resource (its name is :type), and layouts, layout,
 * places, annotate for one type or function.
 * All but status and runs take since_ns (realtime, integer), run_id, pid, process (a
 * comm, text), method (text) and limit as far as they make sense; a parameter that a
 * report does not have is ignored. stacks gives (folded, samples, cpu_ns).
 */

#include <signal.h>
#include <stddef.h>

#include "store/db.h"

#define REPORT_MAX_COLUMNS 64
#define REPORT_MAX_PARAMS  16

enum report_type { REPORT_NULL, REPORT_INTEGER, REPORT_REAL, REPORT_TEXT, REPORT_BLOB };

/* What a column means, told by its name. */
enum report_unit {
	REPORT_PLAIN, /* a count or a text */
	REPORT_ID, /* *_id: 64 bits, bit-cast; JSON: a string "0x%016x", which SQL reads */
	REPORT_VA,     /* va, *_va: hexadecimal address */
	REPORT_TIME,   /* *_at_ns: realtime, ns since 1970 */
	REPORT_NS,     /* *_ns: duration */
	REPORT_BYTES,  /* bytes, *_bytes */
	REPORT_CYCLES, /* *_cycles */
	REPORT_SHARE,  /* share_of_X, *_share: 0 to 1; X is the denominator */
	REPORT_FLAG,   /* is_*: 0 or 1 */
};

struct report_column {
	const char *name;
	enum report_unit unit;
};

struct report_value {
	enum report_type type;
	int64_t integer;
	double real;
	const char *text; /* TEXT (NUL-terminated), BLOB; borrowed during the call */
	size_t text_bytes;
};

/* A named parameter, without its colon. Those not given are NULL: no restriction. */
struct report_param {
	const char *name;
	enum report_type type;
	int64_t integer;
	double real;
	const char *text;
};

/**
 * struct report_query - what to run.
 * @name: of a report, see report_list(); or NULL and @sql, one statement of the user's.
 * @timeout_ns: 0 for none. @stop: the query ends soon after it turns non-zero; or NULL.
 */
struct report_query {
	const char *name, *sql;
	const struct report_param *params;
	size_t param_count;
	uint64_t timeout_ns;
	const volatile sig_atomic_t *stop;
};

/* Callbacks; each may return an error, which ends the report and is handed on. */
struct report_ops {
	/* Once, also when no row follows; @columns is valid until report_run() returns. */
	struct err *(*columns)(void *ctx, const struct report_column *columns,
			       size_t count);
	struct err *(*row)(void *ctx, const struct report_value *values, size_t count);
};

/**
 * report_run() - run one query.
 * Errors: ERR_NOT_FOUND (no such report; the text names those there are), ERR_INVALID
 * (the SQL is wrong, or is no SELECT), ERR_LIMIT (timeout),
 * ERR_CLOSED (@stop), ERR_FORMAT (damaged file), ERR_BUSY.
 */
struct err *report_run(struct db *db, const struct report_query *query,
		       const struct report_ops *ops, void *ctx);

/* What schema/report/NAME.sql says of itself. */
struct report_info {
	const char *name;    /* "types" */
	const char *summary; /* first line of its comment, no final stop */
	const char *notes;   /* the other lines: what its shares are of; "" none */
};

/* report_list() - by name, allocated in @arena; ends with a NULL name. */
struct arena;
const struct report_info *report_list(struct arena *arena);

/* report_unit_of() - the unit that a column's name says. */
enum report_unit report_unit_of(const char *column);

#endif
