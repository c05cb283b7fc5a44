/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_TEST_H
#define STORE_TEST_H

/* A folder of its own for each test, a plain SQLite connection as the second witness. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>
#include <sqlite3.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mount.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "model/sink.h"
#include "store/db.h"
#include "store/writer.h"

#define SECOND		1000000000ull
#define BASE_NS		(1700000000ull * SECOND) /* a multiple of an hour it is not */
#define RUN		0x1111ull
#define PROCESS		0x8000000000000001ull /* negative as SQLite's integer */
#define MODULE		0xfedcba9876543210ull
#define ABI_ACCESS_KIND 4
#define ABI_TICK_KIND	5
#define CLOCK		1
#define IBS		2

struct place {
	char folder[64];
	char path[96];
};

static inline int place_make(void **state)
{
	struct place *place = mem_alloc(sizeof(*place));

	/* in memory where possible: a disk's fsync is not under test, and slow */
	snprintf(place->folder, sizeof(place->folder), "%s/store-test-XXXXXX",
		 access("/dev/shm", W_OK) ? "/tmp" : "/dev/shm");
	if (!mkdtemp(place->folder))
		return -1;
	snprintf(place->path, sizeof(place->path), "%s/a.db", place->folder);
	*state = place;
	return 0;
}

static inline int place_remove(void **state)
{
	struct place *place = *state;
	umount2(place->folder, MNT_DETACH); /* of a test that failed half-way */
	char *command = mem_printf("rm -rf '%s'", place->folder);
	int status = system(command);

	free(command);
	free(place);
	return status;
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, place_make, place_remove)

#define assert_ok(expr)                                \
	do {                                           \
		struct err *ok_err_ = (expr);          \
		if (ok_err_)                           \
			fail_msg("%s", ok_err_->text); \
	} while (0)

/* The expression fails with this code, and its one line says @words. */
#define assert_fails(expr, expected, words)                                             \
	do {                                                                            \
		struct err *fails_err_ = (expr);                                        \
		assert_non_null(fails_err_);                                            \
		if (!strstr(fails_err_->text, words) || strchr(fails_err_->text, '\n')) \
			fail_msg("'%s' does not say '%s'", fails_err_->text, words);    \
		assert_int_equal(fails_err_->code, expected);                           \
		err_free(fails_err_);                                                   \
	} while (0)

static inline struct db *open_for(const char *path, enum db_mode mode)
{
	struct db *db = NULL;

	assert_ok(db_open(path, mode, &db));
	return db;
}

/* One integer, by a connection of its own. */
static inline int64_t ask(const char *path, const char *sql)
{
	sqlite3 *handle;
	sqlite3_stmt *stmt;

	assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
	sqlite3_busy_timeout(handle, 5000);
	if (sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(handle));
	int code = sqlite3_step(stmt);

	if (code != SQLITE_ROW)
		fail_msg("%s: %s", sql, sqlite3_errmsg(handle));
	int64_t value = sqlite3_column_int64(stmt, 0);

	sqlite3_finalize(stmt);
	sqlite3_close(handle);
	return value;
}

/* Likewise a text, which the caller frees. */
static inline char *ask_text(const char *path, const char *sql)
{
	sqlite3 *handle;
	sqlite3_stmt *stmt;

	assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
	if (sqlite3_prepare_v2(handle, sql, -1, &stmt, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(handle));
	sqlite3_step(stmt);
	char *text = mem_strdup((const char *)sqlite3_column_text(stmt, 0));

	sqlite3_finalize(stmt);
	sqlite3_close(handle);
	return text;
}

#define assert_text(path, sql, expected)              \
	do {                                          \
		char *text_ = ask_text(path, sql);    \
		assert_non_null(text_);               \
		assert_string_equal(text_, expected); \
		free(text_);                          \
	} while (0)

static inline void assert_sound(const char *path)
{
	assert_text(path, "PRAGMA integrity_check", "ok");
}

static inline void do_sql(const char *path, const char *sql)
{
	sqlite3 *handle;

	assert_int_equal(sqlite3_open(path, &handle), SQLITE_OK);
	if (sqlite3_exec(handle, sql, NULL, NULL, NULL) != SQLITE_OK)
		fail_msg("%s: %s", sql, sqlite3_errmsg(handle));
	sqlite3_close(handle);
}

static inline struct writer *write_to(struct db *db)
{
	struct writer_config config = { .analyser_version = 7 };
	struct writer *writer = NULL;

	assert_ok(writer_new(db, &config, &writer));
	return writer;
}

#define PUT(writer, KIND, member, ...) \
	sink_put(writer_sink(writer),  \
		 &(struct fact){ .kind = KIND, .member = __VA_ARGS__ })

static inline void put_run(struct writer *writer, uint64_t run_id)
{
	PUT(writer, FACT_RUN, run,
	    { .run_id = run_id,
	      .start_ns = BASE_NS,
	      .host = "h",
	      .boot_id = "b",
	      .kernel = "6.1",
	      .version = "0",
	      .target = "all",
	      .sources = "clock 97 Hz" });
}

static inline void put_access(struct writer *writer, uint64_t bucket_ns, uint64_t va,
			      uint64_t samples)
{
	PUT(writer, FACT_ACCESS, access,
	    { .run_id = RUN,
	      .bucket_ns = bucket_ns,
	      .process_id = PROCESS,
	      .module_id = MODULE,
	      .va = va,
	      .source = CLOCK,
	      .samples = samples,
	      .period = samples * 10,
	      .l1 = samples });
}

static inline void put_tick(struct writer *writer, uint64_t bucket_ns, uint64_t stack_id,
			    uint64_t samples)
{
	PUT(writer, FACT_TICK, tick,
	    { .run_id = RUN,
	      .bucket_ns = bucket_ns,
	      .process_id = PROCESS,
	      .stack_id = stack_id,
	      .samples = samples,
	      .cpu_ns = samples * 1000 });
}

static inline void put_stack(struct writer *writer, uint64_t stack_id,
			     const struct fact_frame *frames, size_t count)
{
	PUT(writer, FACT_STACK, stack,
	    { .stack_id = stack_id, .frames = frames, .count = count, .complete = 1 });
}

#endif
