// SPDX-License-Identifier: Apache-2.0
#include "unit/store/store_test.h"

#include "store/retain.h"
#include "store/sql.h"
#include "store/sweep.h"

#define OTHER_RUN    0x2222ull
#define OTHER_MODULE 0x77ull

static void sweep_all(struct db *db, uint64_t now_ns, uint64_t *ret_removed)
{
	CLEANUP(sweep_free) struct sweep *sweep = NULL;
	bool done = false;

	*ret_removed = 0;
	assert_ok(sweep_new(db, now_ns, now_ns, &sweep));
	while (!done)
		assert_ok(sweep_step(sweep, &done, ret_removed));
}

/* One sampled address with all that hangs on it. */
static void put_place(struct writer *writer, uint64_t module_id, uint64_t va,
		      uint64_t type_id)
{
	PUT(writer, FACT_MODULE, module, { .module_id = module_id, .path = "/m" });
	PUT(writer, FACT_FUNCTION, function,
	    { .module_id = module_id, .va = va & ~0xfull, .name = "f", .file = "f.c" });
	PUT(writer, FACT_SITE, site,
	    { .module_id = module_id, .va = va, .function_va = va & ~0xfull });
	PUT(writer, FACT_TYPE, type, { .type_id = type_id, .name = "t", .bytes = 8 });
	PUT(writer, FACT_FIELD, field, { .type_id = type_id, .bytes = 8, .path = "x" });
	PUT(writer, FACT_ANSWER, answer,
	    { .module_id = module_id,
	      .type_id = type_id,
	      .skid = 1,
	      .answer = {
		      .va = va, .verdict = VERDICT_LOCAL, .type = "t", .path = "x" } });
}

static const char counts[] =
	"SELECT printf('%d %d %d %d %d %d %d %d', (SELECT count(*) FROM module), "
	"(SELECT count(*) FROM function), (SELECT count(*) FROM site), "
	"(SELECT count(*) FROM answer), (SELECT count(*) FROM type), "
	"(SELECT count(*) FROM field), (SELECT count(*) FROM process), "
	"(SELECT count(*) FROM run))";

static void what_no_sample_refers_to_goes_and_the_rest_stays(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	uint64_t removed;

	put_run(writer, RUN);
	PUT(writer, FACT_PROCESS, process,
	    { .run_id = RUN, .process_id = PROCESS, .exe_module_id = MODULE });
	PUT(writer, FACT_PROCESS, process,
	    { .run_id = RUN, .process_id = 6, .end_ns = 1 });
	put_place(writer, MODULE, 0x15, 1);
	put_place(writer, MODULE, 0x25, 2);
	put_place(writer, OTHER_MODULE, 0x35, 3);
	put_access(writer, BASE_NS, 0x15, 1);
	PUT(writer, FACT_RUN, run, { .run_id = RUN, .end_ns = BASE_NS + SECOND });
	put_run(writer, OTHER_RUN);
	PUT(writer, FACT_RUN, run, { .run_id = OTHER_RUN, .end_ns = BASE_NS + SECOND });
	assert_ok(writer_flush(writer));
	assert_text(place->path, counts, "2 3 3 3 3 3 2 2");
	sweep_all(db, realtime_ns() + 3600 * SECOND, &removed);
	assert_text(place->path, counts, "1 1 1 1 1 1 1 1");
	assert_text(place->path,
		    "SELECT printf('%s %s %s', type, field, function) FROM v_access",
		    "t x f");
	assert_int_equal(removed, 1 + 2 + 2 + 2 + 2 + 1 + 1);
	sweep_all(db, realtime_ns() + 3600 * SECOND, &removed);
	assert_int_equal(removed, 0);
	do_sql(place->path, "DELETE FROM access");
	sweep_all(db, realtime_ns() + 3600 * SECOND, &removed);
	assert_text(place->path, counts, "0 0 0 0 0 0 0 0");
	writer_free(writer);
	db_close(db);
}

static void what_an_open_run_put_stays(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	uint64_t removed;

	put_run(writer, RUN);
	PUT(writer, FACT_PROCESS, process, { .run_id = RUN, .process_id = PROCESS });
	put_place(writer, MODULE, 0x15, 1);
	assert_ok(writer_flush(writer));
	sweep_all(db, realtime_ns() + 3600 * SECOND, &removed);
	assert_text(place->path, counts, "1 1 1 1 1 1 1 1");
	/* except a process that ended without a sample, after some time */
	PUT(writer, FACT_PROCESS, process,
	    { .run_id = RUN, .process_id = PROCESS, .end_ns = 5 });
	assert_ok(writer_flush(writer));
	sweep_all(db, realtime_ns() + 60 * SECOND, &removed);
	assert_int_equal(removed, 0);
	sweep_all(db, realtime_ns() + 3600 * SECOND, &removed);
	assert_text(place->path, counts, "1 1 1 1 1 1 0 1");
	/* what a newer run puts again is its own from then on */
	PUT(writer, FACT_RUN, run, { .run_id = RUN, .end_ns = BASE_NS + SECOND });
	put_run(writer, OTHER_RUN);
	put_place(writer, MODULE, 0x15, 1);
	assert_ok(writer_flush(writer));
	sweep_all(db, realtime_ns() + 3600 * SECOND, &removed);
	assert_text(place->path, counts, "1 1 1 1 1 1 0 1");
	writer_free(writer);
	db_close(db);
}

static void frames_go_with_the_last_stack_that_needs_them(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	const struct fact_frame a[] = { { 1, 10 }, { 1, 20 }, { 1, 30 } };
	const struct fact_frame b[] = { { 1, 11 }, { 1, 21 }, { 1, 30 } };
	const struct fact_frame c[] = { { 1, 20 }, { 1, 30 } }; /* the callers of a */
	uint64_t removed;

	put_run(writer, RUN);
	put_stack(writer, 1, a, 3);
	put_stack(writer, 2, b, 3);
	put_stack(writer, 3, c, 2);
	put_tick(writer, BASE_NS, 1, 1);
	put_tick(writer, BASE_NS, 3, 1);
	assert_ok(writer_flush(writer));
	assert_int_equal(ask(place->path, "SELECT count(*) FROM frame"), 5);
	sweep_all(db, realtime_ns() + 60 * SECOND, &removed);
	assert_int_equal(removed, 0); /* a stack just put may yet get its tick */
	sweep_all(db, realtime_ns() + 7200 * SECOND, &removed);
	assert_text(place->path,
		    "SELECT group_concat(va) FROM (SELECT va FROM frame ORDER BY va)",
		    "10,20,30");
	do_sql(place->path, "DELETE FROM tick WHERE stack_id = 1");
	sweep_all(db, realtime_ns() + 7200 * SECOND, &removed);
	assert_text(place->path,
		    "SELECT group_concat(va) FROM (SELECT va FROM frame ORDER BY va)",
		    "20,30");
	writer_free(writer);
	db_close(db);
}

static void a_large_table_takes_several_steps(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	uint64_t removed;

	put_run(writer, RUN);
	for (uint64_t va = 0; va < RETAIN_BATCH * 2 + 10; va++) {
		PUT(writer, FACT_SITE, site, { .module_id = MODULE, .va = va });
		if (va % 2)
			put_access(writer, BASE_NS, va, 1);
	}
	PUT(writer, FACT_RUN, run, { .run_id = RUN, .end_ns = BASE_NS + SECOND });
	assert_ok(writer_flush(writer));
	sweep_all(db, realtime_ns(), &removed);
	assert_int_equal(removed, RETAIN_BATCH + 5);
	assert_int_equal(ask(place->path, "SELECT count(*) FROM site WHERE va % 2 = 0"),
			 0);
	assert_int_equal(ask(place->path, "SELECT count(*) FROM site"), RETAIN_BATCH + 5);
	writer_free(writer);
	db_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_no_sample_refers_to_goes_and_the_rest_stays),
		TEST(what_an_open_run_put_stays),
		TEST(frames_go_with_the_last_stack_that_needs_them),
		TEST(a_large_table_takes_several_steps),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
