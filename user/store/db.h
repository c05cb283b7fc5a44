/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_DB_H
#define STORE_DB_H

/*
 * store/ - facts in SQLite: one file, one writer, any number of readers. The only
 * folder that knows sqlite3.h; what the SQL says lives in schema/. It knows no probe,
 * worker or socket.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"

#define DB_DEFAULT_PATH "/var/lib/assay/assay.db"

enum db_mode {
	DB_READ,  /* must exist; nothing is written, not even a migration */
	DB_WRITE, /* made (mode 0640) when missing; holds the writer's lock PATH-lock */
};

struct db;

/**
 * db_open() - open, check, and for DB_WRITE lock and migrate.
 * Errors, each one line that says what to do: ERR_NOT_FOUND, ERR_PERMISSION, ERR_FORMAT
 * (no SQLite file, another program's, or damaged), ERR_UNSUPPORTED (schema newer than
 * this program, or for DB_READ older), ERR_BUSY (names the pid that writes), ERR_IO.
 */
struct err *db_open(const char *path, enum db_mode mode, struct db **ret_db);
void db_close(struct db *db); /* NULL is fine */
CLEANUP_DEFINE(db_close, struct db *)

const char *db_path(const struct db *db);

/* db_schema_version() - number of the last migration; of this program, not of a file. */
uint32_t db_schema_version(void);

/* db_schema_text() - schema/views.sql: the public views with a line on each column. */
const char *db_schema_text(void);

struct db_size {
	uint64_t file_bytes; /* database and write-ahead log on disk */
	uint64_t used_bytes; /* pages in use; the rest is free for new rows */
	uint64_t log_bytes;  /* the write-ahead log, as part of file_bytes */
};
struct err *db_size(struct db *db, struct db_size *ret_size);

/* For this folder only. */
struct sqlite3;
struct sqlite3 *db_handle(struct db *db);

#endif
