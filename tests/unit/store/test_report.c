// SPDX-License-Identifier: Apache-2.0
#include "unit/store/store_test.h"

#include "core/arena.h"
#include "core/str.h"
#include "store/report.h"

/* A report as one text: a line of names, then lines of values. */
static struct err *take_columns(void *ctx, const struct report_column *columns,
				size_t count)
{
	for (size_t i = 0; i < count; i++)
		str_printf(ctx, "%s%s", i ? " " : "", columns[i].name);
	str_add_char(ctx, '\n');
	return NULL;
}

static struct err *take_row(void *ctx, const struct report_value *values, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		const struct report_value *value = &values[i];

		if (i)
			str_add_char(ctx, ' ');
		if (value->type == REPORT_INTEGER)
			str_printf(ctx, "%lld", (long long)value->integer);
		else if (value->type == REPORT_REAL)
			str_printf(ctx, "%.3f", value->real);
		else if (value->type == REPORT_TEXT)
			str_add(ctx, value->text);
		else
			str_add_char(ctx, '-');
	}
	str_add_char(ctx, '\n');
	return NULL;
}

static const struct report_ops ops = { take_columns, take_row };

static struct err *run_sql(struct db *db, const char *sql, struct str *out)
{
	return report_run(db, &(struct report_query){ .sql = sql }, &ops, out);
}

static void check_sql(struct db *db, const char *sql, const char *expected)
{
	CLEANUP(str_fini) struct str out = { 0 };

	assert_ok(run_sql(db, sql, &out));
	assert_string_equal(str_text(&out), expected);
}

#define INTEGER(name_, value_)                                           \
	{                                                                \
		.name = name_, .type = REPORT_INTEGER, .integer = value_ \
	}
#define WORD(name_, value_)                                        \
	{                                                          \
		.name = name_, .type = REPORT_TEXT, .text = value_ \
	}

/* The values of some columns of a report; NAME and the parameters as they come. */
static void check_report(struct db *db, const char *name,
			 const struct report_param *params, size_t count,
			 const char *expected)
{
	CLEANUP(str_fini) struct str out = { 0 };
	struct report_query query = { .name = name,
				      .params = params,
				      .param_count = count };

	assert_ok(report_run(db, &query, &ops, &out));
	const char *rows = strchr(str_text(&out), '\n') + 1;

	if (strcmp(rows, expected))
		fail_msg("%s gives\n%s, not\n%s", name, rows, expected);
}

static void put_answer(struct writer *writer, uint64_t va, uint64_t type_id,
		       enum verdict verdict, const char *path)
{
	PUT(writer, FACT_ANSWER, answer,
	    { .module_id = MODULE,
	      .type_id = type_id,
	      .skid = 1,
	      .answer = { .va = va,
			  .verdict = verdict,
			  .access = ACCESS_LOAD,
			  .type = type_id == 1 ? "struct a"
				  : type_id    ? "struct b"
					       : "",
			  .type_bytes = 16,
			  .path = path,
			  .field_bytes = 8,
			  .field_offset = *path == 'y' ? 8 : 0,
			  .offset = *path == 'y' ? 8 : 0,
			  .confidence = type_id ? 0.5 : 0 } });
}

/* 100 samples: struct a 60 (x 50, y 10), struct b 20, abstained 15, not analysed 5. */
static void fill(struct writer *writer)
{
	const struct fact_frame frames[] = { { 99, 0xff0 },
					     { MODULE, 0x10 },
					     { MODULE, 0x90 } };

	put_run(writer, RUN);
	PUT(writer, FACT_PROCESS, process,
	    { .run_id = RUN, .process_id = PROCESS, .pid = 42, .comm = "redis" });
	PUT(writer, FACT_MODULE, module,
	    { .module_id = MODULE, .kind = MODULE_FILE, .path = "/bin/redis" });
	PUT(writer, FACT_MODULE, module,
	    { .module_id = 99, .kind = MODULE_KERNEL, .path = "[kernel]" });
	PUT(writer, FACT_FUNCTION, function,
	    { .module_id = MODULE, .va = 0x10, .name = "get;it", .file = "r.c" });
	for (uint64_t va = 0x10; va <= 0x18; va += 4)
		PUT(writer, FACT_SITE, site,
		    { .module_id = MODULE, .va = va, .function_va = 0x10, .line = 3 });
	put_access(writer, BASE_NS, 0x10, 50);
	put_access(writer, BASE_NS, 0x14, 10);
	put_access(writer, BASE_NS, 0x18, 20);
	put_access(writer, BASE_NS + 60 * SECOND, 0x1c, 15);
	put_access(writer, BASE_NS + 60 * SECOND, 0x20, 5);
	put_answer(writer, 0x10, 1, VERDICT_DWARF, "x");
	put_answer(writer, 0x14, 1, VERDICT_JOIN, "y");
	put_answer(writer, 0x18, 2, VERDICT_LOCAL, "");
	put_answer(writer, 0x1c, 0, VERDICT_NO_TYPE, "");
	PUT(writer, FACT_STACK, stack,
	    { .stack_id = 1,
	      .frames = frames,
	      .count = 3,
	      .kernel_count = 1,
	      .complete = 1 });
	PUT(writer, FACT_STACK, stack,
	    { .stack_id = 2, .frames = frames + 1, .count = 1 });
	put_tick(writer, BASE_NS, 1, 3);
	put_tick(writer, BASE_NS + SECOND, 1, 3);
	put_tick(writer, BASE_NS, 2, 2);
	PUT(writer, FACT_LOSS, loss,
	    { .run_id = RUN,
	      .bucket_ns = BASE_NS,
	      .kind = ABI_ACCESS_KIND,
	      .reason = LOSS_RING,
	      .lost = 25 });
	PUT(writer, FACT_LOSS, loss,
	    { .run_id = RUN,
	      .bucket_ns = BASE_NS,
	      .kind = ABI_ACCESS_KIND,
	      .reason = LOSS_REORDER,
	      .lost = 7 });
}

static struct db *filled(const char *path)
{
	struct db *db = open_for(path, DB_WRITE);
	struct writer *writer = write_to(db);

	fill(writer);
	assert_ok(writer_close(writer));
	writer_free(writer);
	db_close(db);
	return open_for(path, DB_READ);
}

static void shares_have_the_denominator_that_they_name(void **state)
{
	struct db *db = filled(((struct place *)*state)->path);

	/* type samples share_of_all share_of_typed loads stores mean_cycles dram remote
	 * tlb_miss hitm provenance confidence bytes type_id */
	check_report(db, "types", NULL, 0,
		     "struct a 60 0.600 0.750 60 0 - 60 0 0 0 0 0 0 dwarf 0.500 16 1\n"
		     "struct b 20 0.200 0.250 20 0 - 20 0 0 0 0 0 0 local 0.500 16 2\n");
	/* type field offset samples share_of_all share_of_type ... */
	check_report(db, "fields", NULL, 0,
		     "struct a x 0 50 0.500 0.833 50 0 - 50 0 0 0 0 0 0 dwarf 0.500 1\n"
		     "struct b ? 0 20 0.200 1.000 20 0 - 20 0 0 0 0 0 0 local 0.500 2\n"
		     "struct a y 8 10 0.100 0.167 10 0 - 10 0 0 0 0 0 0 join 0.500 1\n");
	/* function module samples share_of_all typed share_typed loads stores cycles
	 * top_type file function_va module_id */
	check_report(
		db, "functions", NULL, 0,
		"get;it redis 80 0.800 80 1.000 80 0 - 80 0 0 0 0 0 0 struct a - 16 "
		"-81985529216486896\n"
		"redis+0x1c redis 15 0.150 0 0.000 15 0 - 15 0 0 0 0 0 0 - - - -81985529216486896\n"
		"redis+0x20 redis 5 0.050 0 0.000 0 0 - 5 0 0 0 0 0 0 - - - -81985529216486896\n");
	check_report(db, "coverage", NULL, 0,
		     "dwarf 1 50 0.500 a variable's location at this instruction\n"
		     "local 1 20 0.200 data flow inside the basic block\n"
		     "join 1 10 0.100 data flow over the whole function\n"
		     "no-type 0 15 0.150 nothing is known about the base register\n"
		     "none 0 5 0.050 not analysed yet\n");
	/* 25 of 125; what was reordered is not lost */
	check_report(db, "loss", NULL, 0,
		     "access ring 25 125 0.200 0\naccess reorder 7 125 0.056 0\n");
	check_report(db, "modules", NULL, 0,
		     "redis 100 1.000 80 0.800 file /bin/redis   -81985529216486896\n");
	check_report(db, "processes", NULL, 0,
		     "42 redis 100 1.000 80 0.800 8000 1.000 0   -9223372036854775807\n");
	db_close(db);
}

static void stacks_are_folded_from_the_root(void **state)
{
	struct db *db = filled(((struct place *)*state)->path);

	check_report(db, "stacks", NULL, 0,
		     "redis;redis+0x90;get:it;[kernel]+0xff0_[k] 6 6000 0.750\n"
		     "redis;[cut];get:it 2 2000 0.250\n");
	db_close(db);
}

static void parameters_select_and_absent_ones_do_not(void **state)
{
	struct db *db = filled(((struct place *)*state)->path);
	struct report_param since[] = { INTEGER("since_ns", (int64_t)(BASE_NS + SECOND)),
					INTEGER("unknown", 1) };
	struct report_param other[] = { INTEGER("pid", 43) };
	struct report_param this[] = { INTEGER("pid", 42),
				       INTEGER("run_id", (int64_t)RUN),
				       WORD("process", "redis"), WORD("method", ""),
				       INTEGER("limit", 1) };

	check_report(db, "coverage", since, 2,
		     "no-type 0 15 0.750 nothing is known about the base register\n"
		     "none 0 5 0.250 not analysed yet\n");
	check_report(db, "types", since, 1, "");
	check_report(db, "types", other, 1, "");
	check_report(db, "types", this, 5,
		     "struct a 60 0.600 0.750 60 0 - 60 0 0 0 0 0 0 dwarf 0.500 16 1\n");
	db_close(db);
}

static void every_report_runs_on_an_empty_database(void **state)
{
	struct place *place = *state;
	CLEANUP(arena_free) struct arena *arena = arena_new();
	static const char *const must[] = {
		"annotate", "coverage",	 "fields",    "findings",      "functions",
		"layout",   "layouts",	 "loss",      "method_fields", "modules",
		"places",   "processes", "resources", "runs",	       "spans",
		"stacks",   "status",	 "timeline",  "types"
	};
	size_t count = 0;

	db_close(open_for(place->path, DB_WRITE));
	struct db *db = open_for(place->path, DB_READ);

	for (const struct report_info *info = report_list(arena); info->name; info++) {
		CLEANUP(str_fini) struct str out = { 0 };

		assert_string_equal(info->name, must[count++]);
		assert_true(strlen(info->summary) > 5);
		assert_ok(report_run(db, &(struct report_query){ .name = info->name },
				     &ops, &out));
		assert_true(strlen(str_text(&out)) > 10);
	}
	assert_int_equal(count, sizeof(must) / sizeof(*must));
	assert_fails(
		report_run(db, &(struct report_query){ .name = "typos" }, &ops, NULL),
		ERR_NOT_FOUND, "it is one of");
	db_close(db);
}

static void status_sums_one_run_up(void **state)
{
	struct db *db = filled(((struct place *)*state)->path);
	CLEANUP(str_fini) struct str out = { 0 };
	struct report_query query = { .name = "status" };

	assert_ok(report_run(db, &query, &ops, &out));
	assert_non_null(strstr(str_text(&out),
			       " all clock 97 Hz h 6.1 0 100 80 0.800 5 25 "
			       "0.200 8 8000 0 0.000 1 2 2 "));
	db_close(db);
}

static void nothing_can_be_written_not_even_through_a_writers_connection(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	CLEANUP(str_fini) struct str out = { 0 };
	char *into = mem_printf("VACUUM INTO '%s/copy'", place->folder);
	char *attach = mem_printf("ATTACH '%s/other' AS o", place->folder);
	const char *const writes[] = {
		"DELETE FROM method",
		"INSERT INTO method VALUES (1, '', '')",
		"INSERT INTO method VALUES (1, '', '') RETURNING 1",
		"CREATE TEMP TABLE t (x)",
		"CREATE TABLE t (x)",
		"DROP TABLE method",
		"PRAGMA journal_mode = DELETE",
		"PRAGMA user_version = 9",
		"PRAGMA writable_schema = 1",
		"PRAGMA wal_checkpoint",
		"PRAGMA locking_mode = EXCLUSIVE",
		"PRAGMA mmap_size = 1000000",
		"SELECT load_extension('x')",
		"SELECT fts3_tokenizer('x')",
		"BEGIN",
		"VACUUM",
		into,
		attach,
		"UPDATE sqlite_master SET sql = ''",
		"ANALYZE",
		"REINDEX",
	};

	for (size_t i = 0; i < sizeof(writes) / sizeof(*writes); i++) {
		struct err *err = run_sql(db, writes[i], &out);

		if (!err)
			fail_msg("%s is allowed", writes[i]);
		if (err->code != ERR_INVALID && err->code != ERR_PERMISSION)
			fail_msg("%s: %s", writes[i], err->text);
		err_free(err);
	}
	assert_int_equal(ask(place->path, "SELECT count(*) FROM method"), 1);
	assert_int_equal(ask(place->path, "PRAGMA user_version"), db_schema_version());
	assert_string_equal(str_text(&out), "");
	/* and the connection can still be written to by its owner */
	struct writer *writer = write_to(db);

	put_run(writer, RUN);
	assert_ok(writer_close(writer));
	writer_free(writer);
	db_close(db);
	free(into);
	free(attach);
}

static void any_select_runs_with_typed_values(void **state)
{
	struct db *db = filled(((struct place *)*state)->path);

	check_sql(db, "SELECT 1 AS a, 2.5 AS b, 'c' AS c, NULL AS d;  -- done",
		  "a b c d\n1 2.500 c -\n");
	check_sql(db, "SELECT name FROM pragma_table_info('method') LIMIT 1",
		  "name\nmethod_id\n");
	check_sql(db, "SELECT sum(value) AS s FROM json_each('[1, 2]')", "s\n3\n");
	check_sql(db, "SELECT count(*) FROM pragma_user_version WHERE user_version > 0",
		  "count(*)\n1\n");
	check_sql(db,
		  "WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n "
		  "WHERE i < 3) SELECT sum(i) AS s FROM n",
		  "s\n6\n");
	/* an id as JSON shows it finds its row */
	check_sql(db, "SELECT pid FROM v_process WHERE process_id = 0x8000000000000001",
		  "pid\n42\n");
	db_close(db);
}

static void wrong_sql_gets_one_clear_line(void **state)
{
	struct db *db = filled(((struct place *)*state)->path);
	CLEANUP(str_fini) struct str out = { 0 };

	assert_fails(run_sql(db, "SELECT nix FROM run", &out), ERR_INVALID,
		     "no such column: nix");
	assert_fails(run_sql(db, "SELEKT", &out), ERR_INVALID, "syntax error");
	assert_fails(run_sql(db, " -- nothing", &out), ERR_INVALID, "the query is empty");
	assert_fails(run_sql(db, "SELECT 1; SELECT 2", &out), ERR_INVALID,
		     "one statement at a time");
	db_close(db);
}

#define ENDLESS                                                                    \
	"WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n) SELECT " \
	"count(*) FROM n"

static void a_query_without_end_is_ended(void **state)
{
	struct db *db = filled(((struct place *)*state)->path);
	volatile sig_atomic_t stop = 1;
	struct report_query timed = { .sql = ENDLESS, .timeout_ns = 50000000 };
	struct report_query stopped = { .sql = ENDLESS, .stop = &stop };
	CLEANUP(str_fini) struct str out = { 0 };

	assert_fails(report_run(db, &timed, &ops, &out), ERR_LIMIT, "takes too long");
	assert_fails(report_run(db, &stopped, &ops, &out), ERR_CLOSED, "stopped");
	db_close(db);
}

static void a_columns_name_tells_its_unit(void **state)
{
	static const struct {
		const char *column;
		enum report_unit unit;
	} table[] = {
		{ "run_id", REPORT_ID },
		{ "build_id", REPORT_PLAIN },
		{ "start_at_ns", REPORT_TIME },
		{ "cpu_ns", REPORT_NS },
		{ "bytes", REPORT_BYTES },
		{ "offset_bytes", REPORT_BYTES },
		{ "va", REPORT_VA },
		{ "function_va", REPORT_VA },
		{ "mean_cycles", REPORT_CYCLES },
		{ "share_of_all", REPORT_SHARE },
		{ "is_typed", REPORT_FLAG },
		{ "samples", REPORT_PLAIN },
		{ "java", REPORT_PLAIN },
		{ "type", REPORT_PLAIN },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		assert_int_equal(report_unit_of(table[i].column), table[i].unit);
}

static void a_view_gives_the_same_figures_as_its_report(void **state)
{
	struct db *db = filled(((struct place *)*state)->path);

	check_sql(db, "SELECT type, samples, share_of_all, share_of_typed FROM v_type",
		  "type samples share_of_all share_of_typed\n"
		  "struct a 60 0.600 0.750\nstruct b 20 0.200 0.250\n");
	check_sql(db, "SELECT type, field, samples, share_of_type FROM v_field",
		  "type field samples share_of_type\n"
		  "struct a x 50 0.833\nstruct b - 20 1.000\nstruct a y 10 0.167\n");
	check_sql(db, "SELECT function, samples, typed_samples FROM v_function",
		  "function samples typed_samples\nget;it 80 80\n- 20 0\n");
	check_sql(db, "SELECT verdict, samples FROM v_coverage WHERE is_typed = 0",
		  "verdict samples\nno-type 15\nnone 5\n");
	check_sql(db, "SELECT kind, reason, lost, records, share_of_kind FROM v_loss",
		  "kind reason lost records share_of_kind\n"
		  "access ring 25 125 0.200\naccess reorder 7 125 0.056\n");
	check_sql(db, "SELECT process, function, samples, share_of_cpu FROM v_stack",
		  "process function samples share_of_cpu\n"
		  "redis - 6 0.750\nredis get;it 2 0.250\n");
	check_sql(db, "SELECT access_samples, tick_samples, lost_samples FROM v_run",
		  "access_samples tick_samples lost_samples\n100 8 25\n");
	check_sql(db, "SELECT module, samples, share_typed FROM v_module WHERE samples",
		  "module samples share_typed\nredis 100 0.800\n");
	check_sql(db, "SELECT process, samples, cpu_ns FROM v_process",
		  "process samples cpu_ns\nredis 100 8000\n");
	db_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(shares_have_the_denominator_that_they_name),
		TEST(stacks_are_folded_from_the_root),
		TEST(parameters_select_and_absent_ones_do_not),
		TEST(every_report_runs_on_an_empty_database),
		TEST(status_sums_one_run_up),
		TEST(nothing_can_be_written_not_even_through_a_writers_connection),
		TEST(any_select_runs_with_typed_values),
		TEST(wrong_sql_gets_one_clear_line),
		TEST(a_query_without_end_is_ended),
		TEST(a_view_gives_the_same_figures_as_its_report),
		cmocka_unit_test(a_columns_name_tells_its_unit),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
