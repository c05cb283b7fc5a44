// SPDX-License-Identifier: Apache-2.0
#include "unit/store/store_test.h"

#include "store/jobs.h"

static void put_answer(struct writer *writer, uint64_t va, int skid, enum verdict verdict)
{
	PUT(writer, FACT_ANSWER, answer,
	    { .module_id = MODULE,
	      .skid = skid,
	      .answer = { .va = va, .verdict = verdict, .type = "", .path = "" } });
}

/* A whole pass, handed out @room at a time. */
static size_t pass(struct db *db, uint32_t version, size_t room,
		   struct jobs_site *ret_sites)
{
	CLEANUP(jobs_free) struct jobs *jobs = NULL;
	size_t count = 0, got;
	bool done = false;

	assert_ok(jobs_new(db, version, &jobs));
	while (!done) {
		assert_ok(jobs_step(jobs, ret_sites + count, room, &got, &done));
		assert_true(got <= room);
		count += got;
	}
	return count;
}

static void what_lacks_a_symbol_or_an_answer_is_found_most_sampled_first(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db); /* analyser 7 */
	struct jobs_site sites[10];

	put_run(writer, RUN);
	put_access(writer, BASE_NS, 0x10, 5);  /* nothing known */
	put_access(writer, BASE_NS, 0x20, 50); /* symbol only */
	put_access(writer, BASE_NS, 0x30, 9);  /* answered, but for skid 0 */
	put_access(writer, BASE_NS, 0x40, 99); /* all known */
	PUT(writer, FACT_ACCESS, access,       /* in no module: nobody can answer */
	    { .run_id = RUN,
	      .bucket_ns = BASE_NS,
	      .va = 0x50,
	      .source = CLOCK,
	      .samples = 500 });
	for (uint64_t va = 0x20; va <= 0x40; va += 0x10)
		PUT(writer, FACT_SITE, site, { .module_id = MODULE, .va = va });
	put_answer(writer, 0x30, 0, VERDICT_NO_TYPE);
	put_answer(writer, 0x40, 1, VERDICT_NO_TYPE);
	assert_ok(writer_flush(writer));

	assert_int_equal(pass(db, 7, 10, sites), 3);
	assert_int_equal(sites[0].va, 0x20);
	assert_false(sites[0].want_symbol);
	assert_true(sites[0].want_answer);
	assert_true(sites[0].skid);
	assert_int_equal(sites[0].samples, 50);
	assert_int_equal(sites[1].va, 0x30);
	assert_int_equal(sites[2].va, 0x10);
	assert_true(sites[2].want_symbol);
	assert_int_equal(sites[2].module_id, MODULE);
	/* in portions; for a newer analyser */
	assert_int_equal(pass(db, 7, 1, sites), 3);
	assert_int_equal(sites[2].va, 0x10);
	assert_int_equal(pass(db, 8, 10, sites), 4);
	assert_int_equal(sites[0].va, 0x40);
	writer_free(writer);
	db_close(db);
}

static void an_exact_source_asks_for_the_answer_without_skid(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	struct jobs_site sites[10];

	put_run(writer, RUN);
	put_access(writer, BASE_NS, 0x10, 5);
	PUT(writer, FACT_ACCESS, access,
	    { .run_id = RUN,
	      .bucket_ns = BASE_NS,
	      .module_id = MODULE,
	      .va = 0x10,
	      .source = IBS,
	      .samples = 1 });
	PUT(writer, FACT_SITE, site, { .module_id = MODULE, .va = 0x10 });
	put_answer(writer, 0x10, 1, VERDICT_NO_TYPE);
	assert_ok(writer_flush(writer));
	assert_int_equal(pass(db, 7, 10, sites), 1);
	assert_false(sites[0].skid);
	writer_free(writer);
	db_close(db);
}

static void frames_want_symbols_only_and_come_last(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	const struct fact_frame frames[] = {
		{ MODULE, 0x100 }, { 0, 0x200 }, { MODULE, 0x300 }, { MODULE, 0x100 }
	};
	struct jobs_site sites[10];

	put_run(writer, RUN);
	put_access(writer, BASE_NS, 0x10, 1);
	put_stack(writer, 1, frames, 4);
	PUT(writer, FACT_SITE, site, { .module_id = MODULE, .va = 0x300 });
	assert_ok(writer_flush(writer));
	assert_int_equal(pass(db, 7, 10, sites), 2);
	assert_int_equal(sites[0].va, 0x10);
	assert_int_equal(sites[1].va, 0x100);
	assert_true(sites[1].want_symbol);
	assert_false(sites[1].want_answer);
	writer_free(writer);
	db_close(db);
}

static void debug_information_that_arrives_late_is_tried(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	struct jobs_site sites[10];

	put_run(writer, RUN);
	put_access(writer, BASE_NS, 0x10, 1);
	put_access(writer, BASE_NS, 0x20, 1);
	for (uint64_t va = 0x10; va <= 0x20; va += 0x10)
		PUT(writer, FACT_SITE, site,
		    { .module_id = MODULE, .va = va, .function_va = va, .file = "f.c" });
	put_answer(writer, 0x10, 1, VERDICT_NO_DEBUG);
	put_answer(writer, 0x20, 1, VERDICT_CONFLICT);
	assert_ok(writer_flush(writer));
	assert_int_equal(pass(db, 7, 10, sites), 0);
	assert_ok(jobs_retry(db, MODULE));
	assert_int_equal(pass(db, 7, 10, sites), 1);
	assert_int_equal(sites[0].va, 0x10);
	writer_free(writer);
	db_close(db);
}

static void a_large_store_takes_several_steps_and_nothing_is_missed(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	const size_t many = JOBS_BATCH * 2 + 5;
	struct jobs_site *sites = mem_array(many, sizeof(*sites));

	put_run(writer, RUN);
	for (uint64_t va = 0; va < many; va++)
		for (unsigned second = 0; second < 2; second++)
			put_access(writer, BASE_NS + second * SECOND, va, va + 1);
	assert_ok(writer_flush(writer));
	assert_int_equal(pass(db, 7, 100, sites), many);
	for (size_t i = 0; i < many; i++) {
		assert_int_equal(sites[i].va, many - 1 - i);
		assert_int_equal(sites[i].samples, 2 * (many - i));
	}
	free(sites);
	writer_free(writer);
	db_close(db);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(what_lacks_a_symbol_or_an_answer_is_found_most_sampled_first),
		TEST(an_exact_source_asks_for_the_answer_without_skid),
		TEST(frames_want_symbols_only_and_come_last),
		TEST(debug_information_that_arrives_late_is_tried),
		TEST(a_large_store_takes_several_steps_and_nothing_is_missed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
