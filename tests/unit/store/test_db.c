// SPDX-License-Identifier: Apache-2.0
#include "unit/store/store_test.h"

#include <fcntl.h>
#include <signal.h>
#include <sys/wait.h>

#include "core/embed.h"
#include "model/verdict.h"
#include "store/sql.h"

static void a_new_file_is_private_and_has_the_newest_schema(void **state)
{
	struct place *place = *state;
	struct stat stat_buf;

	umask(0);
	db_close(open_for(place->path, DB_WRITE));
	umask(022);
	assert_int_equal(stat(place->path, &stat_buf), 0);
	assert_int_equal(stat_buf.st_mode & 07777, 0640);
	assert_int_equal(ask(place->path, "PRAGMA user_version"), db_schema_version());
	assert_int_equal(ask(place->path, "PRAGMA application_id"), 0x61736179);
	assert_int_equal(ask(place->path, "PRAGMA auto_vacuum"), 2);
	assert_text(place->path, "PRAGMA journal_mode", "wal");
	assert_true(db_schema_version() >= 1);
}

static void opening_again_keeps_what_is_there(void **state)
{
	struct place *place = *state;

	db_close(open_for(place->path, DB_WRITE));
	do_sql(place->path, "INSERT INTO method VALUES (5, 'grpc', 'Get')");
	db_close(open_for(place->path, DB_WRITE));
	db_close(open_for(place->path, DB_READ));
	assert_int_equal(ask(place->path, "SELECT count(*) FROM method"), 2);
}

static void the_names_of_numbers_are_those_of_the_program(void **state)
{
	struct place *place = *state;

	db_close(open_for(place->path, DB_WRITE));
	assert_int_equal(ask(place->path, "SELECT count(*) FROM verdict"), VERDICTS);
	assert_text(place->path, "SELECT name FROM verdict WHERE verdict = 3", "local");
	assert_text(place->path,
		    "SELECT group_concat(name) FROM (SELECT name FROM source "
		    "WHERE skid = 1)",
		    "clock,cycles");
	assert_text(place->path, "SELECT name FROM loss_kind WHERE kind = 4", "access");
	assert_text(place->path, "SELECT name FROM loss_reason WHERE reason = 13",
		    "crash");
}

static void changed_views_are_made_anew(void **state)
{
	struct place *place = *state;

	db_close(open_for(place->path, DB_WRITE));
	do_sql(place->path, "DROP VIEW v_type; CREATE VIEW v_type AS SELECT 1 AS old; "
			    "UPDATE meta SET value = 1 WHERE key = 'views_hash'");
	db_close(open_for(place->path, DB_WRITE));
	ask(place->path, "SELECT count(share_of_typed) FROM v_type");
}

static void a_migration_applies_once_in_order_and_whole_or_not_at_all(void **state)
{
	static const struct embed next[] = {
		{ "schema/007_c.sql", "INSERT INTO extra VALUES (3);" },
		{ "schema/006_b.sql",
		  "CREATE TABLE extra (x); INSERT INTO extra VALUES (2);" },
		{ "schema/008_d.sql", "INSERT INTO extra VALUES (4); SELEKT;" },
		{ NULL, NULL },
	};
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);

	assert_fails(db_migrate(db, next), ERR_INVALID, "schema/008_d.sql");
	assert_fails(db_migrate(db, next), ERR_INVALID, "SELEKT");
	db_close(db);
	assert_int_equal(ask(place->path, "PRAGMA user_version"), 7);
	assert_text(place->path, "SELECT group_concat(x) FROM extra", "2,3");
}

static void a_newer_schema_is_refused(void **state)
{
	struct place *place = *state;
	struct db *db = NULL;

	db_close(open_for(place->path, DB_WRITE));
	do_sql(place->path, "PRAGMA user_version = 99");
	assert_fails(db_open(place->path, DB_WRITE, &db), ERR_UNSUPPORTED,
		     "update assay");
	assert_fails(db_open(place->path, DB_READ, &db), ERR_UNSUPPORTED, "schema 99");
	assert_null(db);
}

static void write_bytes(const char *path, const char *mode, long at, const void *bytes,
			size_t count)
{
	FILE *file = fopen(path, mode);

	assert_non_null(file);
	assert_int_equal(fseek(file, at, SEEK_SET), 0);
	assert_int_equal(fwrite(bytes, 1, count, file), count);
	fclose(file);
}

static void what_is_no_database_of_ours_is_refused(void **state)
{
	struct place *place = *state;
	static const char text[4096] = "This is a text, and a long one.\n";
	struct db *db = NULL;

	assert_fails(db_open(place->path, DB_READ, &db), ERR_NOT_FOUND,
		     "no such database");
	assert_fails(db_open(place->folder, DB_WRITE, &db), ERR_INVALID, "is not a file");
	write_bytes(place->path, "w", 0, "", 0);
	assert_fails(db_open(place->path, DB_READ, &db), ERR_FORMAT, "is empty");
	write_bytes(place->path, "w", 0, text, sizeof(text));
	assert_fails(db_open(place->path, DB_READ, &db), ERR_FORMAT,
		     "is not an SQLite database: name another file");
	assert_fails(db_open(place->path, DB_WRITE, &db), ERR_FORMAT,
		     "is not an SQLite database");
	unlink(place->path);
	do_sql(place->path, "CREATE TABLE theirs (x)");
	assert_fails(db_open(place->path, DB_READ, &db), ERR_FORMAT, "another program");
	assert_fails(db_open(place->path, DB_WRITE, &db), ERR_FORMAT, "another program");
	assert_text(place->path, "SELECT group_concat(name) FROM sqlite_master",
		    "theirs");
	assert_null(db);
}

static void a_damaged_file_says_what_to_do(void **state)
{
	struct place *place = *state;
	struct db *db = NULL;
	char rubbish[4000];

	db_close(open_for(place->path, DB_WRITE));
	memset(rubbish, 0xa5, sizeof(rubbish));
	write_bytes(place->path, "r+", 100, rubbish, sizeof(rubbish) - 100);
	assert_fails(db_open(place->path, DB_WRITE, &db), ERR_FORMAT,
		     "is damaged: move it away");
	assert_fails(db_open(place->path, DB_READ, &db), ERR_FORMAT, "is damaged");
	assert_null(db);
}

static void damage_inside_is_found_after_a_crash(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	char rubbish[4096];

	for (unsigned i = 0; i < 5000; i++)
		put_access(writer, BASE_NS, i, 1);
	assert_ok(writer_flush(writer));
	writer_free(writer);
	db_close(db);
	int64_t page = ask(place->path, "SELECT max(pageno) FROM dbstat "
					"WHERE name = 'access' AND pagetype = 'leaf'");

	memset(rubbish, 0xa5, sizeof(rubbish));
	write_bytes(place->path, "r+", (page - 1) * 4096, rubbish, sizeof(rubbish));
	assert_fails(db_open(place->path, DB_WRITE, &db), ERR_FORMAT, "is damaged");
}

static void a_second_writer_is_told_who_the_first_is(void **state)
{
	struct place *place = *state;
	struct db *first = open_for(place->path, DB_WRITE), *second = NULL;
	char pid[32];

	snprintf(pid, sizeof(pid), "process %d:", (int)getpid());
	assert_fails(db_open(place->path, DB_WRITE, &second), ERR_BUSY, pid);
	db_close(open_for(place->path, DB_READ));
	db_close(first);
	db_close(open_for(place->path, DB_WRITE));
}

static void the_lock_of_a_killed_writer_is_free(void **state)
{
	struct place *place = *state;
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();

	if (!pid) {
		struct db *db;

		if (!db_open(place->path, DB_WRITE, &db) && write(ready[1], "r", 1) == 1)
			pause();
		_exit(1);
	}
	assert_int_equal(read(ready[0], &byte, 1), 1);
	struct db *db = NULL;

	assert_fails(db_open(place->path, DB_WRITE, &db), ERR_BUSY, "process ");
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
	db_close(open_for(place->path, DB_WRITE));
	close(ready[0]);
	close(ready[1]);
}

static void a_reader_without_rights_to_the_folder_reads(void **state)
{
	struct place *place = *state;

	if (geteuid()) {
		print_message("skip: needs root to become somebody else\n");
		skip();
	}
	db_close(open_for(place->path, DB_WRITE));
	assert_int_equal(chmod(place->folder, 0755) || chmod(place->path, 0644), 0);
	pid_t pid = fork();

	if (!pid) {
		struct db *db = NULL;

		if (setgid(65534) || setuid(65534))
			_exit(2);
		struct err *err = db_open(place->path, DB_READ, &db);

		if (err)
			fprintf(stderr, "%s\n", err->text);
		if (err || db_open(place->path, DB_WRITE, &db)->code != ERR_PERMISSION)
			_exit(1);
		_exit(0);
	}
	int status;

	waitpid(pid, &status, 0);
	assert_int_equal(status, 0);
}

static void every_column_of_every_view_is_explained(void **state)
{
	struct place *place = *state;
	sqlite3 *handle;
	sqlite3_stmt *stmt;
	int columns = 0;

	db_close(open_for(place->path, DB_WRITE));
	assert_int_equal(sqlite3_open(place->path, &handle), SQLITE_OK);
	assert_int_equal(
		sqlite3_prepare_v2(handle,
				   "SELECT m.name, c.name FROM sqlite_master AS m, "
				   "pragma_table_info(m.name) AS c "
				   "WHERE m.type = 'view' ORDER BY m.name, c.cid",
				   -1, &stmt, NULL),
		SQLITE_OK);
	while (sqlite3_step(stmt) == SQLITE_ROW) {
		const char *view = (const char *)sqlite3_column_text(stmt, 0);
		char *begin = mem_printf("\n-- %s: ", view);
		char *end = mem_printf("\nCREATE VIEW %s AS", view);
		char *line = mem_printf("\n--   %s ", sqlite3_column_text(stmt, 1));
		const char *from = strstr(db_schema_text(), begin);
		const char *to = strstr(db_schema_text(), end);

		assert_non_null(from);
		assert_non_null(to);
		const char *found = strstr(from, line);

		if (!found || found > to)
			fail_msg("%s.%s has no comment", view, line + 6);
		columns++;
		free(begin);
		free(end);
		free(line);
	}
	assert_true(columns > 100);
	sqlite3_finalize(stmt);
	sqlite3_close(handle);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_new_file_is_private_and_has_the_newest_schema),
		TEST(opening_again_keeps_what_is_there),
		TEST(the_names_of_numbers_are_those_of_the_program),
		TEST(changed_views_are_made_anew),
		TEST(a_migration_applies_once_in_order_and_whole_or_not_at_all),
		TEST(a_newer_schema_is_refused),
		TEST(what_is_no_database_of_ours_is_refused),
		TEST(a_damaged_file_says_what_to_do),
		TEST(damage_inside_is_found_after_a_crash),
		TEST(a_second_writer_is_told_who_the_first_is),
		TEST(the_lock_of_a_killed_writer_is_free),
		TEST(a_reader_without_rights_to_the_folder_reads),
		TEST(every_column_of_every_view_is_explained),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
