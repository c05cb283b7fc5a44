// SPDX-License-Identifier: Apache-2.0
/*
 * Statements live in schema/ and are prepared with SQLITE_PREPARE_PERSISTENT. A script
 * is a file of a few statements that share their parameters' names; what a statement
 * does not mention is not bound there.
 */
#include "store/sql.h"

#include <errno.h>
#include <sqlite3.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>

#include "core/embed.h"
#include "core/log.h"
#include "core/mem.h"
#include "model/ids.h"

const char *sql_text(const char *path)
{
	for (const struct embed *file = embed_schema; file->path; file++)
		if (!strcmp(file->path, path))
			return file->text;
	log_error("%s is missing from this build", path);
	abort();
}

static struct err *io_err(struct db *db, int code)
{
	int errnum = sqlite3_system_errno(db_handle(db));

	if (errnum == ENOSPC || errnum == EDQUOT)
		return err_new(ERR_LIMIT, "%s: no space left on the disk", db_path(db));
	if (errnum)
		return err_errno(errnum, "%s: %s", db_path(db), sqlite3_errstr(code));
	return err_new(ERR_IO, "%s: %s (%d)", db_path(db), sqlite3_errstr(code), code);
}

struct err *sql_err(struct db *db, int code)
{
	const char *path = db_path(db);

	switch (code & 0xff) {
	case SQLITE_OK:
	case SQLITE_ROW:
	case SQLITE_DONE:
		return NULL;
	case SQLITE_NOTADB:
		return err_new(
			ERR_FORMAT,
			"%s is not an SQLite database: name another file, or move it away",
			path);
	case SQLITE_CORRUPT:
		return err_new(ERR_FORMAT,
			       "%s is damaged: move it away and start anew; "
			       "`sqlite3 FILE .recover` may save its rows",
			       path);
	case SQLITE_FULL:
		return err_new(ERR_LIMIT, "%s: no room: the disk or the quota is full",
			       path);
	case SQLITE_BUSY:
	case SQLITE_LOCKED:
		return err_new(ERR_BUSY, "%s is in use by another program, try again",
			       path);
	case SQLITE_READONLY:
	case SQLITE_PERM:
		return err_new(ERR_PERMISSION, "%s cannot be written", path);
	case SQLITE_AUTH:
		return err_new(ERR_INVALID, "only reading is allowed here: %s",
			       sqlite3_errmsg(db_handle(db)));
	case SQLITE_INTERRUPT:
		return err_new(ERR_CLOSED, "interrupted");
	case SQLITE_IOERR:
	case SQLITE_CANTOPEN:
		return io_err(db, code);
	default:
		return err_new(ERR_INVALID, "%s", sqlite3_errmsg(db_handle(db)));
	}
}

struct err *sql_exec(struct db *db, const char *text)
{
	return sql_err(db, sqlite3_exec(db_handle(db), text, NULL, NULL, NULL));
}

struct err *sql_pragma(struct db *db, const char *text, int64_t *ret_value)
{
	CLEANUP(free) char *whole = mem_printf("PRAGMA %s", text);
	sqlite3_stmt *stmt = NULL;
	int code = sqlite3_prepare_v2(db_handle(db), whole, -1, &stmt, NULL);
	int64_t value = 0;

	while (code == SQLITE_OK || code == SQLITE_ROW) {
		code = sqlite3_step(stmt);
		if (code == SQLITE_ROW)
			value = sqlite3_column_int64(stmt, 0);
	}
	struct err *err = sql_err(db, code);

	sqlite3_finalize(stmt);
	if (!err)
		*ret_value = value;
	return err;
}

struct err *sql_begin(struct db *db)
{
	return sql_exec(db, "BEGIN IMMEDIATE");
}

struct err *sql_end(struct db *db, struct err *err)
{
	if (!err)
		err = sql_exec(db, "COMMIT");
	/* SQLite rolled back by itself after some errors. */
	if (err && !sqlite3_get_autocommit(db_handle(db)))
		sqlite3_exec(db_handle(db), "ROLLBACK", NULL, NULL, NULL);
	return err;
}

struct err *script_open(struct db *db, const char *name, struct script *ret_script)
{
	CLEANUP(free) char *path = mem_printf("schema/write/%s.sql", name);
	CLEANUP(script_close) struct script script = { .db = db };
	const char *text = sql_text(path);

	for (;;) {
		sqlite3_stmt *stmt = NULL;
		int code = sqlite3_prepare_v3(db_handle(db), text, -1,
					      SQLITE_PREPARE_PERSISTENT, &stmt, &text);

		TRY(err_wrap(sql_err(db, code), "%s", path));
		if (!stmt)
			break;
		if (script.count == SCRIPT_MAX) {
			sqlite3_finalize(stmt);
			return err_new(ERR_LIMIT, "%s: more than %d statements", path,
				       SCRIPT_MAX);
		}
		script.stmts[script.count++] = stmt;
	}
	*ret_script = script;
	script.count = 0;
	return NULL;
}

void script_close(struct script *script)
{
	for (size_t i = 0; i < script->count; i++)
		sqlite3_finalize(script->stmts[i]);
	script->count = 0;
}

void script_set(struct script *script, const char *name, int64_t value)
{
	for (size_t i = 0; i < script->count; i++) {
		int index = sqlite3_bind_parameter_index(script->stmts[i], name);

		if (index)
			sqlite3_bind_int64(script->stmts[i], index, value);
	}
}

void script_keys(struct script *script, const int64_t *keys, unsigned count)
{
	for (size_t i = 0; i < script->count; i++)
		for (unsigned key = 0; key < count; key++)
			sqlite3_bind_int64(script->stmts[i], (int)key + 1, keys[key]);
}

static void bind_one(sqlite3_stmt *stmt, int index, char letter, va_list *ap)
{
	switch (letter) {
	case 'u':
		sqlite3_bind_int64(stmt, index, va_arg(*ap, uint32_t));
		break;
	case 'l':
		sqlite3_bind_int64(stmt, index, (int64_t)va_arg(*ap, uint64_t));
		break;
	case 'd':
		sqlite3_bind_double(stmt, index, va_arg(*ap, double));
		break;
	case 't': {
		const char *text = va_arg(*ap, const char *);

		sqlite3_bind_text(stmt, index, text ? text : "", -1, SQLITE_STATIC);
		break;
	}
	case 's': {
		const char *text = va_arg(*ap, const char *);
		size_t length = va_arg(*ap, size_t);

		sqlite3_bind_text(stmt, index, text, (int)length, SQLITE_STATIC);
		break;
	}
	case 'b': {
		const struct build_id *id = va_arg(*ap, const struct build_id *);
		int size = id->size <= BUILD_ID_MAX ? id->size : 0;

		sqlite3_bind_blob(stmt, index, id->bytes, size, SQLITE_STATIC);
		break;
	}
	default:
		abort();
	}
}

void script_bind(struct script *script, const char *format, ...)
{
	va_list ap;

	/* A letter too few would write NULL into somebody's column. */
	if ((int)strlen(format) != sqlite3_bind_parameter_count(script->stmts[0]))
		abort();
	va_start(ap, format);
	for (int i = 0; format[i]; i++)
		bind_one(script->stmts[0], i + 1, format[i], &ap);
	va_end(ap);
}

int script_step(struct script *script, uint64_t *ret_changed)
{
	int code = SQLITE_DONE;

	for (size_t i = 0; i < script->count && code == SQLITE_DONE; i++) {
		do
			code = sqlite3_step(script->stmts[i]);
		while (code == SQLITE_ROW);
		sqlite3_reset(script->stmts[i]);
	}
	if (ret_changed)
		*ret_changed = (uint64_t)sqlite3_changes(db_handle(script->db));
	return code;
}

struct err *script_run(struct script *script, uint64_t *ret_changed)
{
	return sql_err(script->db, script_step(script, ret_changed));
}

struct err *script_rows(struct script *script, int64_t *ret_rows, size_t columns,
			size_t max, size_t *ret_count)
{
	sqlite3_stmt *stmt = script->stmts[0];
	size_t count = 0;
	int code = SQLITE_DONE;

	while (count < max && (code = sqlite3_step(stmt)) == SQLITE_ROW) {
		for (size_t i = 0; i < columns; i++)
			ret_rows[count * columns + i] =
				sqlite3_column_int64(stmt, (int)i);
		count++;
	}
	struct err *err = sql_err(script->db, code);

	sqlite3_reset(stmt);
	*ret_count = count;
	return err;
}

struct err *meta_get(struct db *db, const char *key, int64_t otherwise,
		     int64_t *ret_value)
{
	CLEANUP(script_close) struct script script = { 0 };
	size_t count;

	TRY(script_open(db, "meta_get", &script));
	script_bind(&script, "t", key);
	TRY(script_rows(&script, ret_value, 1, 1, &count));
	if (!count)
		*ret_value = otherwise;
	return NULL;
}

struct err *meta_set(struct db *db, const char *key, int64_t value)
{
	CLEANUP(script_close) struct script script = { 0 };

	TRY(script_open(db, "meta_set", &script));
	script_bind(&script, "tl", key, (uint64_t)value);
	return script_run(&script, NULL);
}
