// SPDX-License-Identifier: Apache-2.0
/*
 * One statement, stepped to its end. The authorizer is set while it is prepared and run:
 * SQLite asks it about everything a statement does, also inside views and functions.
 * DB_READ refuses writes once more, below SQL.
 */
#include "store/report.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "core/arena.h"
#include "core/embed.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"
#include "store/sql.h"

#define REPORT_FOLDER	  "schema/report/"
#define CHECK_EVERY_OPS	  1000
#define REPORT_MAX_SQL	  (1024 * 1024)
#define REPORT_MAX_LENGTH (64 * 1024 * 1024) /* bytes of one value */

enum report_unit report_unit_of(const char *column)
{
	static const struct {
		const char *word, *suffix;
		enum report_unit unit;
	} units[] = {
		{ "", "_id", REPORT_ID },
		{ "", "_at_ns", REPORT_TIME },
		{ "", "_ns", REPORT_NS },
		{ "bytes", "_bytes", REPORT_BYTES },
		{ "va", "_va", REPORT_VA },
		{ "cycles", "_cycles", REPORT_CYCLES },
		{ "share", "_share", REPORT_SHARE },
	};

	if (str_starts(column, "share_"))
		return REPORT_SHARE;
	if (str_starts(column, "is_"))
		return REPORT_FLAG;
	if (!strcmp(column, "boot_id") || !strcmp(column, "build_id"))
		return REPORT_PLAIN; /* texts */
	for (size_t i = 0; i < sizeof(units) / sizeof(*units); i++)
		if (!strcmp(column, units[i].word) || str_ends(column, units[i].suffix))
			return units[i].unit;
	return REPORT_PLAIN;
}

/* The name in "schema/report/NAME.sql", NULL for any other path; allocated. */
static char *name_of(const char *path)
{
	if (!str_starts(path, REPORT_FOLDER) || !str_ends(path, ".sql"))
		return NULL;
	path += strlen(REPORT_FOLDER);

	char *name = mem_strdup(path);

	name[strlen(name) - strlen(".sql")] = 0;
	return name;
}

/* The comment on top: licence, summary, notes. */
static void read_comment(const char *text, struct arena *arena, struct report_info *info)
{
	CLEANUP(str_fini) struct str notes = { 0 };
	unsigned number = 0;

	info->summary = "";
	while (str_starts(text, "-- ")) {
		size_t length = strcspn(text += 3, "\n");

		if (number == 1)
			info->summary = arena_strndup(arena, text, length);
		if (number > 2)
			str_add_char(&notes, '\n');
		if (number > 1)
			str_add_bytes(&notes, text, length);
		number++;
		text += length + (text[length] == '\n');
	}
	info->notes = arena_strdup(arena, str_text(&notes));
}

static int by_name(const void *a, const void *b)
{
	return strcmp(((const struct report_info *)a)->name,
		      ((const struct report_info *)b)->name);
}

const struct report_info *report_list(struct arena *arena)
{
	VEC(struct report_info) list = { 0 };

	for (const struct embed *file = embed_schema; file->path; file++) {
		CLEANUP(free) char *name = name_of(file->path);
		struct report_info info;

		if (!name)
			continue;
		info.name = arena_strdup(arena, name);
		read_comment(file->text, arena, &info);
		vec_push(&list, info);
	}
	struct report_info *sorted =
		arena_array(arena, list.count + 1, sizeof(struct report_info));

	if (list.count) {
		memcpy(sorted, list.data, list.count * sizeof(*sorted));
		qsort(sorted, list.count, sizeof(*sorted), by_name);
	}
	vec_fini(&list);
	return sorted;
}

static struct err *find_report(const char *name, const char **ret_sql)
{
	CLEANUP(str_fini) struct str known = { 0 };

	for (const struct embed *file = embed_schema; file->path; file++) {
		CLEANUP(free) char *have = name_of(file->path);

		if (have && !strcmp(have, name)) {
			*ret_sql = file->text;
			return NULL;
		}
		if (have)
			str_printf(&known, " %s", have);
	}
	return err_new(ERR_NOT_FOUND, "there is no report '%s': it is one of%s", name,
		       str_text(&known));
}

static bool is_reading_pragma(const char *name, const char *argument)
{
	static const char *const plain[] = {
		"application_id", "collation_list", "compile_options", "database_list",
		"freelist_count", "function_list",  "journal_mode",    "page_count",
		"page_size",	  "schema_version", "table_list",      "user_version"
	};
	static const char *const of_table[] = { "foreign_key_list", "index_info",
						"index_list",	    "index_xinfo",
						"table_info",	    "table_list",
						"table_xinfo" };

	for (size_t i = 0; !argument && i < sizeof(plain) / sizeof(*plain); i++)
		if (!strcasecmp(name, plain[i]))
			return true;
	for (size_t i = 0; i < sizeof(of_table) / sizeof(*of_table); i++)
		if (!strcasecmp(name, of_table[i]))
			return true;
	return false;
}

static int authorize(void *ctx, int action, const char *first, const char *second,
		     const char *database, const char *trigger)
{
	(void)ctx;
	(void)database;
	(void)trigger;
	switch (action) {
	case SQLITE_SELECT:
	case SQLITE_READ:
	case SQLITE_RECURSIVE:
		return SQLITE_OK;
	case SQLITE_UPDATE:
		/* So SQLite declares the columns of a table function, json_each() say, when
		 * it is first used. A real UPDATE is no reading statement: see prepare(). */
		return strcmp(first, "sqlite_master") ? SQLITE_DENY : SQLITE_OK;
	case SQLITE_FUNCTION:
		/* fts3_tokenizer() takes pointers */
		return strcasecmp(second, "load_extension") &&
				       strcasecmp(second, "fts3_tokenizer")
			       ? SQLITE_OK
			       : SQLITE_DENY;
	case SQLITE_PRAGMA:
		return is_reading_pragma(first, second) ? SQLITE_OK : SQLITE_DENY;
	default:
		return SQLITE_DENY;
	}
}

struct watch {
	uint64_t until_ns; /* 0: no limit */
	const volatile sig_atomic_t *stop;
};

static bool is_stopped(const struct watch *watch)
{
	return watch->stop && *watch->stop;
}

static int watch_progress(void *ctx)
{
	const struct watch *watch = ctx;

	return is_stopped(watch) || (watch->until_ns && clock_ns() > watch->until_ns);
}

static struct err *report_err(struct db *db, int code, const struct watch *watch)
{
	if ((code & 0xff) != SQLITE_INTERRUPT)
		return sql_err(db, code);
	if (is_stopped(watch))
		return err_new(ERR_CLOSED, "the query was stopped");
	return err_new(ERR_LIMIT, "the query takes too long: narrow it down (--since, "
				  "--limit), or allow it more time");
}

static void bind_params(sqlite3_stmt *stmt, const struct report_query *query)
{
	for (size_t i = 0; i < query->param_count; i++) {
		const struct report_param *param = &query->params[i];
		CLEANUP(free) char *name = mem_printf(":%s", param->name);
		int index = sqlite3_bind_parameter_index(stmt, name);

		if (!index)
			continue;
		if (param->type == REPORT_INTEGER)
			sqlite3_bind_int64(stmt, index, param->integer);
		else if (param->type == REPORT_REAL)
			sqlite3_bind_double(stmt, index, param->real);
		else if (param->type == REPORT_TEXT)
			sqlite3_bind_text(stmt, index, param->text, -1, SQLITE_STATIC);
	}
}

/* Copied, since SQLite frees the names when the schema changes during the first step. */
static struct err *hand_columns(sqlite3_stmt *stmt, struct arena *arena,
				const struct report_ops *ops, void *ctx)
{
	size_t count = (size_t)sqlite3_column_count(stmt);

	if (count > REPORT_MAX_COLUMNS)
		return err_new(ERR_LIMIT, "more than %d columns", REPORT_MAX_COLUMNS);
	struct report_column *columns = arena_array(arena, count, sizeof(*columns));

	for (size_t i = 0; i < count; i++) {
		columns[i].name = arena_strdup(arena, sqlite3_column_name(stmt, (int)i));
		columns[i].unit = report_unit_of(columns[i].name);
	}
	return ops->columns ? ops->columns(ctx, columns, count) : NULL;
}

static struct report_value value_at(sqlite3_stmt *stmt, int column)
{
	struct report_value value = { 0 };

	switch (sqlite3_column_type(stmt, column)) {
	case SQLITE_INTEGER:
		value.type = REPORT_INTEGER;
		value.integer = sqlite3_column_int64(stmt, column);
		break;
	case SQLITE_FLOAT:
		value.type = REPORT_REAL;
		value.real = sqlite3_column_double(stmt, column);
		break;
	case SQLITE_TEXT:
		value.type = REPORT_TEXT;
		value.text = (const char *)sqlite3_column_text(stmt, column);
		value.text_bytes = (size_t)sqlite3_column_bytes(stmt, column);
		break;
	case SQLITE_BLOB:
		value.type = REPORT_BLOB;
		value.text = sqlite3_column_blob(stmt, column);
		value.text_bytes = (size_t)sqlite3_column_bytes(stmt, column);
		break;
	default:
		break;
	}
	if (value.type >= REPORT_TEXT && !value.text)
		value.text = ""; /* of no bytes */
	return value;
}

static struct err *hand_rows(struct db *db, sqlite3_stmt *stmt, const struct watch *watch,
			     const struct report_ops *ops, void *ctx)
{
	struct report_value values[REPORT_MAX_COLUMNS];
	int code;

	while ((code = sqlite3_step(stmt)) == SQLITE_ROW) {
		int count = sqlite3_data_count(stmt);

		for (int i = 0; i < count && i < REPORT_MAX_COLUMNS; i++)
			values[i] = value_at(stmt, i);
		TRY(ops->row(ctx, values, (size_t)count));
	}
	return report_err(db, code, watch);
}

/* What follows the statement: blanks, comments and semicolons only? */
static bool is_blank(struct db *db, const char *tail)
{
	sqlite3_stmt *stmt = NULL;

	while (*tail) {
		const char *next = tail;

		if (sqlite3_prepare_v2(db_handle(db), tail, -1, &stmt, &next) !=
			    SQLITE_OK ||
		    stmt) {
			sqlite3_finalize(stmt);
			return false;
		}
		if (next == tail)
			break;
		tail = next;
	}
	return true;
}

static struct err *prepare(struct db *db, const char *sql, const struct watch *watch,
			   sqlite3_stmt **ret_stmt)
{
	const char *tail;

	if (strlen(sql) > REPORT_MAX_SQL)
		return err_new(ERR_LIMIT, "a query of more than %d bytes",
			       REPORT_MAX_SQL);
	TRY(report_err(db, sqlite3_prepare_v2(db_handle(db), sql, -1, ret_stmt, &tail),
		       watch));
	if (!*ret_stmt)
		return err_new(ERR_INVALID, "the query is empty");
	if (!sqlite3_stmt_readonly(*ret_stmt) || !sqlite3_column_count(*ret_stmt))
		return err_new(ERR_INVALID, "only reading is allowed here: SELECT ...");
	if (!is_blank(db, tail))
		return err_new(ERR_INVALID, "one statement at a time");
	return NULL;
}

struct err *report_run(struct db *db, const struct report_query *query,
		       const struct report_ops *ops, void *ctx)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	struct watch watch = { query->timeout_ns ? clock_ns() + query->timeout_ns : 0,
			       query->stop };
	sqlite3 *handle = db_handle(db);
	sqlite3_stmt *stmt = NULL;
	const char *sql = query->sql;

	if (query->name)
		TRY(find_report(query->name, &sql));
	int old_limit = sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, REPORT_MAX_LENGTH);

	sqlite3_set_authorizer(handle, authorize, NULL);
	sqlite3_progress_handler(handle, CHECK_EVERY_OPS, watch_progress, &watch);
	struct err *err = prepare(db, sql, &watch, &stmt);

	if (!err) {
		bind_params(stmt, query);
		err = hand_columns(stmt, arena, ops, ctx);
	}
	if (!err)
		err = hand_rows(db, stmt, &watch, ops, ctx);
	sqlite3_finalize(stmt);
	sqlite3_progress_handler(handle, 0, NULL, NULL);
	sqlite3_set_authorizer(handle, NULL, NULL);
	sqlite3_limit(handle, SQLITE_LIMIT_LENGTH, old_limit);
	return query->name ? err_wrap(err, "report %s", query->name) : err;
}
