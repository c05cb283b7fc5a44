/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SQL_H
#define STORE_SQL_H

/*
 * What the files of this folder share: statements out of schema/, prepared once, and
 * SQLite's result codes turned into errors that say what to do.
 */

#include <stddef.h>
#include <stdint.h>

#include "store/db.h"

struct sqlite3_stmt;

/* sql_text() - an embedded file by its path; aborts when the build lacks it. */
const char *sql_text(const char *path);

/* sql_err() - what @code means for this database; NULL for OK, ROW and DONE. */
struct err *sql_err(struct db *db, int code);

/* sql_exec() - run statements that give no rows and take no parameters. */
struct err *sql_exec(struct db *db, const char *text);

/* sql_pragma() - the integer that "PRAGMA text" gives, 0 when it gives none. */
struct err *sql_pragma(struct db *db, const char *text, int64_t *ret_value);

/* sql_begin(), sql_end() - a write transaction. sql_end() commits when @err is NULL, else
 * rolls back and hands @err on. */
struct err *sql_begin(struct db *db);
struct err *sql_end(struct db *db, struct err *err);

/* A file of schema/write/: one or several statements, run one after the other. */
#define SCRIPT_MAX 4
struct script {
	struct db *db;
	struct sqlite3_stmt *stmts[SCRIPT_MAX];
	size_t count;
};

/* script_open() - @name without folder and ".sql". */
struct err *script_open(struct db *db, const char *name, struct script *ret_script);
void script_close(struct script *script); /* { 0 } is fine */
static inline void cleanup_script_close(struct script *script)
{
	script_close(script);
}

/* script_set() - bind an integer by name (":level") wherever it appears. */
void script_set(struct script *script, const char *name, int64_t value);

/* script_keys() - bind ?1, ?2, ... of every statement. */
void script_keys(struct script *script, const int64_t *keys, unsigned count);

/**
 * script_bind() - bind the parameters of the only statement in their order.
 * @format: one letter each: u uint32_t, l uint64_t, d double, t text (NULL is ""),
 * s text and its length (size_t), b struct build_id pointer.
 */
void script_bind(struct script *script, const char *format, ...);

/* script_step() - run all; Return SQLite's code of the first that failed, or of the last.
 * @ret_changed: rows changed by the last statement that changes rows; may be NULL. */
int script_step(struct script *script, uint64_t *ret_changed);

/* script_run() - script_step() with an error. */
struct err *script_run(struct script *script, uint64_t *ret_changed);

/* script_rows() - up to @max rows of @columns integers from the only statement. */
struct err *script_rows(struct script *script, int64_t *ret_rows, size_t columns,
			size_t max, size_t *ret_count);

/* meta_get() gives @otherwise for a key that is not there. */
struct err *meta_get(struct db *db, const char *key, int64_t otherwise,
		     int64_t *ret_value);
struct err *meta_set(struct db *db, const char *key, int64_t value);

/* source_skids() - the address that this enum abi_source gives lies behind the access. */
bool source_skids(uint32_t source);

/* db_migrate() - what db_open() does with embed_schema; @table for the tests. */
struct embed;
struct err *db_migrate(struct db *db, const struct embed *table);

#endif
