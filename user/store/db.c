// SPDX-License-Identifier: Apache-2.0
/*
 * A database is ours by its application_id, and as new as its user_version: the number
 * of the last migration, schema/NNN_*.sql, each applied in a transaction of its own.
 * Views and the tables of names are no migration; they are made anew whenever this
 * program's differ from the file's.
 *
 * One writer: SQLite would let two take turns, but both would close each other's runs.
 * So a writer holds an flock on PATH-lock, which the kernel drops however he ends. The
 * lock is not on the database itself: closing any descriptor of that file would drop
 * SQLite's own POSIX locks.
 */
#include "store/db.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/embed.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "model/fact.h"
#include "store/sql.h"

#define APPLICATION_ID	 0x61736179 /* "asay" */
#define DB_MODE		 0640
#define BUSY_MS		 5000
#define LOG_LIMIT_BYTES	 (16 * 1024 * 1024)
#define CHECK_LIMIT_NS	 2000000000ull
#define CHECK_EVERY_OPS	 10000
#define CHECK_PAGES_TEXT "PRAGMA quick_check(1)"
#define PROBE		 "PRAGMA table_info(run)" /* reads the whole schema */

struct db {
	sqlite3 *handle;
	char *path;
	char *lock_path;
	int lock_fd;
};

struct sqlite3 *db_handle(struct db *db)
{
	return db->handle;
}

const char *db_path(const struct db *db)
{
	return db->path;
}

const char *db_schema_text(void)
{
	return sql_text("schema/views.sql");
}

void db_close(struct db *db)
{
	if (!db)
		return;
	sqlite3_close_v2(db->handle);
	if (db->lock_fd >= 0) {
		/* Still ours while it is locked, so nobody else's is removed. */
		unlink(db->lock_path);
		close(db->lock_fd);
	}
	free(db->lock_path);
	free(db->path);
	free(db);
}

static struct err *lock_busy(const struct db *db, int fd)
{
	char holder[32] = "";
	ssize_t got = pread(fd, holder, sizeof(holder) - 1, 0);

	holder[got > 0 ? strcspn(holder, "\n") : 0] = 0;
	return err_new(ERR_BUSY,
		       "%s is written by process %s: end that one (assay stop), or name "
		       "another file",
		       db->path, *holder ? holder : "(unknown)");
}

/* The holder removes the file as he goes: what we locked may no longer be PATH-lock. */
static bool is_same_file(int fd, const char *path)
{
	struct stat by_fd, by_path;

	return !fstat(fd, &by_fd) && !stat(path, &by_path) &&
	       by_fd.st_ino == by_path.st_ino && by_fd.st_dev == by_path.st_dev;
}

static struct err *lock_take(struct db *db)
{
	db->lock_path = mem_printf("%s-lock", db->path);
	for (;;) {
		CLEANUP(close)
		int fd = open(db->lock_path, O_RDWR | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
			      DB_MODE);

		if (fd < 0)
			return err_errno(errno, "%s: cannot be written", db->lock_path);
		if (flock(fd, LOCK_EX | LOCK_NB))
			return errno == EWOULDBLOCK
				       ? lock_busy(db, fd)
				       : err_errno(errno, "lock %s", db->lock_path);
		if (!is_same_file(fd, db->lock_path))
			continue;
		/* For people only: a disk without room for it is no reason to stop. */
		if (ftruncate(fd, 0) || dprintf(fd, "%d\n", (int)getpid()) < 0)
			errno = 0;
		db->lock_fd = take_fd(&fd);
		return NULL;
	}
}

static struct err *check_path(const char *path, enum db_mode mode)
{
	struct stat stat_buf;

	if (stat(path, &stat_buf)) {
		if (errno == ENOENT && mode == DB_WRITE)
			return NULL;
		if (errno == ENOENT)
			return err_new(ERR_NOT_FOUND,
				       "%s: no such database: start assayd, or `assay "
				       "attach PID --db FILE`, to make one",
				       path);
		return err_errno(errno, "%s", path);
	}
	if (!S_ISREG(stat_buf.st_mode))
		return err_new(ERR_INVALID, "%s is not a file", path);
	if (access(path, mode == DB_READ ? R_OK : R_OK | W_OK))
		return err_errno(errno, "%s: cannot be %s, become its owner or root",
				 path, mode == DB_READ ? "read" : "written");
	return NULL;
}

/* Made by us, because SQLite's own mode is 0644. */
static struct err *make_file(const char *path)
{
	CLEANUP(close)
	int fd = open(path, O_RDWR | O_CREAT | O_EXCL | O_CLOEXEC, DB_MODE);

	if (fd < 0 && errno != EEXIST)
		return err_errno(errno, "%s: cannot be made", path);
	if (fd >= 0 && fchmod(fd, DB_MODE))
		return err_errno(errno, "%s", path);
	return NULL;
}

/* Without write permission on the folder SQLite cannot open a log, and there is none to
 * open when no writer is there: then the file does not change and needs no lock. */
static int open_immutable(struct db *db)
{
	CLEANUP(str_fini) struct str uri = { 0 };

	str_add(&uri, "file:");
	for (const char *at = db->path; *at; at++) {
		if (strchr("%?#", *at))
			str_printf(&uri, "%%%02x", (unsigned char)*at);
		else
			str_add_char(&uri, *at);
	}
	str_add(&uri, "?immutable=1");
	sqlite3_close_v2(db->handle);
	db->handle = NULL;
	return sqlite3_open_v2(
		str_text(&uri), &db->handle,
		SQLITE_OPEN_READONLY | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_URI, NULL);
}

static bool has_log(const struct db *db)
{
	CLEANUP(free) char *log = mem_printf("%s-wal", db->path);

	return !access(log, F_OK);
}

static struct err *open_handle(struct db *db, enum db_mode mode)
{
	int flags = SQLITE_OPEN_NOMUTEX |
		    (mode == DB_READ ? SQLITE_OPEN_READONLY : SQLITE_OPEN_READWRITE);
	int code = sqlite3_open_v2(db->path, &db->handle, flags, NULL);

	if (!db->handle)
		return err_new(ERR_IO, "%s: out of memory", db->path);
	if (code == SQLITE_OK) {
		sqlite3_busy_timeout(db->handle, BUSY_MS);
		code = sqlite3_exec(db->handle, PROBE, NULL, NULL, NULL);
	}
	bool no_log =
		(code & 0xff) == SQLITE_CANTOPEN || (code & 0xff) == SQLITE_READONLY;

	if (mode == DB_READ && no_log && !has_log(db)) {
		code = open_immutable(db);
		if (code == SQLITE_OK)
			code = sqlite3_exec(db->handle, PROBE, NULL, NULL, NULL);
	}
	sqlite3_extended_result_codes(db->handle, 1);
	sqlite3_busy_timeout(db->handle, BUSY_MS);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_DEFENSIVE, 1, NULL);
	sqlite3_db_config(db->handle, SQLITE_DBCONFIG_TRUSTED_SCHEMA, 0, NULL);
	return sql_err(db, code);
}

uint32_t db_schema_version(void)
{
	uint32_t version = 0;
	unsigned number;

	for (const struct embed *file = embed_schema; file->path; file++)
		if (sscanf(file->path, "schema/%3u_", &number) == 1 && number > version)
			version = number;
	return version;
}

static const struct embed *find_migration(const struct embed *table, uint32_t version)
{
	unsigned number;

	for (; table->path; table++)
		if (sscanf(table->path, "schema/%3u_", &number) == 1 && number == version)
			return table;
	return NULL;
}

static struct err *apply_migration(struct db *db, const struct embed *file,
				   uint32_t version)
{
	CLEANUP(free)
	char *mark = mem_printf("PRAGMA user_version = %u; PRAGMA application_id = %d",
				version, APPLICATION_ID);

	TRY(sql_begin(db));
	struct err *err = sql_exec(db, file->text);

	if (!err)
		err = sql_exec(db, mark);
	return err_wrap(sql_end(db, err), "%s", file->path);
}

struct err *db_migrate(struct db *db, const struct embed *table)
{
	const struct embed *file;
	int64_t version;

	TRY(sql_pragma(db, "user_version", &version));
	while ((file = find_migration(table, (uint32_t)version + 1)))
		TRY(apply_migration(db, file, (uint32_t)++version));
	return NULL;
}

static struct err *put_names(struct db *db, const char *name, uint32_t count,
			     const char *(*of)(uint32_t))
{
	CLEANUP(script_close) struct script script = { 0 };

	TRY(script_open(db, name, &script));
	for (uint32_t i = 0; i < count; i++) {
		script_bind(&script, "ut", i, of(i));
		TRY(script_run(&script, NULL));
	}
	return NULL;
}

static const char *reason_name(uint32_t reason)
{
	return reason ? loss_reason_name((enum loss_reason)reason) : "none";
}

/* How many names a table has, when an unknown number is "unknown". */
static uint32_t count_names(const char *(*of)(uint32_t))
{
	uint32_t count = 0;

	while (strcmp(of(count), "unknown"))
		count++;
	return count;
}

static struct err *put_verdicts(struct db *db)
{
	CLEANUP(script_close) struct script script = { 0 };

	TRY(script_open(db, "names_verdict", &script));
	for (uint32_t i = 0; i < VERDICTS; i++) {
		enum verdict verdict = (enum verdict)i;

		script_bind(&script, "uttu", i, verdict_name(verdict),
			    verdict_text(verdict), (uint32_t)verdict_is_claim(verdict));
		TRY(script_run(&script, NULL));
	}
	return NULL;
}

/* See bpf/abi.h. */
bool source_skids(uint32_t source)
{
	const char *name = source_name(source);

	return !strcmp(name, "clock") || !strcmp(name, "cycles");
}

static struct err *put_sources(struct db *db)
{
	CLEANUP(script_close) struct script script = { 0 };
	uint32_t count = count_names(source_name);

	TRY(script_open(db, "names_source", &script));
	for (uint32_t i = 0; i < count; i++) {
		script_bind(&script, "utu", i, source_name(i), (uint32_t)source_skids(i));
		TRY(script_run(&script, NULL));
	}
	return NULL;
}

static struct err *put_views(struct db *db)
{
	TRY(sql_exec(db, sql_text("schema/write/drop_views.sql")));
	TRY(sql_exec(db, db_schema_text()));
	TRY(put_verdicts(db));
	TRY(put_sources(db));
	TRY(put_names(db, "names_loss_kind", count_names(loss_kind_name),
		      loss_kind_name));
	return put_names(db, "names_loss_reason", LOSS_REASONS, reason_name);
}

/* What put_views() would write, as one number. */
static int64_t views_hash(void)
{
	CLEANUP(str_fini) struct str all = { 0 };

	str_add(&all, db_schema_text());
	for (int i = 0; i < VERDICTS; i++)
		str_printf(&all, "%s=%s;", verdict_name((enum verdict)i),
			   verdict_text((enum verdict)i));
	for (uint32_t i = 0; i < count_names(source_name); i++)
		str_printf(&all, "%s;", source_name(i));
	for (uint32_t i = 0; i < count_names(loss_kind_name); i++)
		str_printf(&all, "%s;", loss_kind_name(i));
	for (uint32_t i = 0; i < LOSS_REASONS; i++)
		str_printf(&all, "%s;", reason_name(i));
	return (int64_t)hash_bytes(all.data, all.length, 0);
}

static struct err *refresh_views(struct db *db)
{
	int64_t hash = views_hash(), stored;

	TRY(meta_get(db, "views_hash", 0, &stored));
	if (stored == hash)
		return NULL;
	TRY(sql_begin(db));
	struct err *err = put_views(db);

	if (!err)
		err = meta_set(db, "views_hash", hash);
	return sql_end(db, err);
}

static int check_timeout(void *ctx)
{
	return clock_ns() > *(const uint64_t *)ctx;
}

/* After a crash only, and not for longer than an operator would wait for a start. */
static struct err *check_pages(struct db *db)
{
	uint64_t until_ns = clock_ns() + CHECK_LIMIT_NS;
	sqlite3_stmt *stmt = NULL;

	sqlite3_progress_handler(db->handle, CHECK_EVERY_OPS, check_timeout, &until_ns);
	int code = sqlite3_prepare_v2(db->handle, CHECK_PAGES_TEXT, -1, &stmt, NULL);

	if (code == SQLITE_OK)
		code = sqlite3_step(stmt);
	if (code == SQLITE_ROW &&
	    strcmp((const char *)sqlite3_column_text(stmt, 0), "ok"))
		code = SQLITE_CORRUPT;
	sqlite3_finalize(stmt);
	sqlite3_progress_handler(db->handle, 0, NULL, NULL);
	return (code & 0xff) == SQLITE_INTERRUPT ? NULL : sql_err(db, code);
}

static struct err *check_owner(struct db *db, enum db_mode mode)
{
	int64_t application, version, schema, ours = db_schema_version();

	TRY(sql_pragma(db, "application_id", &application));
	TRY(sql_pragma(db, "user_version", &version));
	TRY(sql_pragma(db, "schema_version", &schema));
	if (!application && !version && !schema) {
		if (mode == DB_WRITE)
			return NULL;
		return err_new(ERR_FORMAT, "%s is empty: nothing was recorded yet",
			       db->path);
	}
	if (application != APPLICATION_ID)
		return err_new(ERR_FORMAT,
			       "%s is a database of another program: name another file",
			       db->path);
	if (version > ours)
		return err_new(ERR_UNSUPPORTED,
			       "%s has schema %lld, this assay knows up to %lld: update "
			       "assay, or name another file",
			       db->path, (long long)version, (long long)ours);
	if (version < ours && mode == DB_READ)
		return err_new(ERR_UNSUPPORTED,
			       "%s has the old schema %lld: start assayd, or attach with "
			       "--db, once to bring it up to date",
			       db->path, (long long)version);
	return NULL;
}

static struct err *setup_writer(struct db *db)
{
	int64_t version, clean;

	TRY(sql_pragma(db, "user_version", &version));
	/* Decided by the first page written, so it comes before everything else. */
	if (!version)
		TRY(sql_exec(db, "PRAGMA auto_vacuum = INCREMENTAL"));
	TRY(sql_exec(db, "PRAGMA journal_mode = WAL"));
	TRY(sql_exec(db, "PRAGMA synchronous = NORMAL"));
	/* Debian's default overwrites what is deleted; roll-up deletes all day. */
	TRY(sql_exec(db, "PRAGMA secure_delete = OFF"));
	CLEANUP(free)
	char *limit = mem_printf("PRAGMA journal_size_limit = %d", LOG_LIMIT_BYTES);

	TRY(sql_exec(db, limit));
	if (version) {
		TRY(meta_get(db, "clean", 1, &clean));
		if (!clean)
			TRY(check_pages(db));
	}
	TRY(db_migrate(db, embed_schema));
	return refresh_views(db);
}

struct err *db_open(const char *path, enum db_mode mode, struct db **ret_db)
{
	CLEANUP(db_close) struct db *db = mem_alloc(sizeof(*db));

	db->path = mem_strdup(path);
	db->lock_fd = -1;
	TRY(check_path(path, mode));
	if (mode == DB_WRITE) {
		TRY(lock_take(db));
		TRY(make_file(path));
	}
	TRY(open_handle(db, mode));
	TRY(check_owner(db, mode));
	if (mode == DB_WRITE)
		TRY(setup_writer(db));
	*ret_db = take(db);
	return NULL;
}

struct err *db_size(struct db *db, struct db_size *ret_size)
{
	CLEANUP(free) char *log = mem_printf("%s-wal", db->path);
	int64_t pages, free_pages, page_bytes;
	struct stat stat_buf;

	TRY(sql_pragma(db, "page_count", &pages));
	TRY(sql_pragma(db, "freelist_count", &free_pages));
	TRY(sql_pragma(db, "page_size", &page_bytes));
	ret_size->used_bytes = (uint64_t)((pages - free_pages) * page_bytes);
	ret_size->file_bytes = (uint64_t)(pages * page_bytes);
	ret_size->log_bytes = stat(log, &stat_buf) ? 0 : (uint64_t)stat_buf.st_size;
	ret_size->file_bytes += ret_size->log_bytes;
	return NULL;
}
