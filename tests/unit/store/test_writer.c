// SPDX-License-Identifier: Apache-2.0
#include "unit/store/store_test.h"

static void put_samples(struct writer *writer)
{
	static const struct fact_frame frames[] = { { MODULE, 0x30 },
						    { MODULE, 0x20 },
						    { MODULE, 0x10 } };

	PUT(writer, FACT_ACCESS, access,
	    { .run_id = RUN,
	      .bucket_ns = BASE_NS,
	      .process_id = PROCESS,
	      .module_id = MODULE,
	      .va = 0x30,
	      .method_id = 9,
	      .source = CLOCK,
	      .samples = 2,
	      .period = 3,
	      .loads = 4,
	      .stores = 5,
	      .weight_samples = 6,
	      .weight_cycles = 7,
	      .l1 = 8,
	      .l2 = 9,
	      .l3 = 10,
	      .dram = 11,
	      .remote = 12,
	      .tlb_miss = 13,
	      .hitm = 14 });
	put_stack(writer, 77, frames, 3);
	put_tick(writer, BASE_NS, 77, 3);
	PUT(writer, FACT_LOSS, loss,
	    { .run_id = RUN,
	      .bucket_ns = BASE_NS,
	      .kind = ABI_ACCESS_KIND,
	      .reason = LOSS_RING,
	      .lost = 1,
	      .seen = 10 });
}

static void put_one_of_each(struct writer *writer)
{
	put_run(writer, RUN);
	PUT(writer, FACT_PROCESS, process,
	    { .run_id = RUN,
	      .process_id = PROCESS,
	      .parent_id = 3,
	      .pid = 42,
	      .uid = 7,
	      .start_ns = 99,
	      .exe_module_id = MODULE,
	      .cgroup_id = 5,
	      .comm = "redis",
	      .exe = "/bin/redis",
	      .service = "redis.service" });
	PUT(writer, FACT_MODULE, module,
	    { .module_id = MODULE,
	      .build_id = { { 0xab, 0xcd }, 2 },
	      .kind = MODULE_FILE,
	      .path = "/usr/bin/redis",
	      .debug = "file" });
	put_samples(writer);
	PUT(writer, FACT_FUNCTION, function,
	    { .module_id = MODULE,
	      .va = 0x30,
	      .bytes = 16,
	      .name = "leaf",
	      .file = "a.c",
	      .line = 12 });
	PUT(writer, FACT_SITE, site,
	    { .module_id = MODULE,
	      .va = 0x30,
	      .function_va = 0x30,
	      .file = "a.c",
	      .line = 13 });
	PUT(writer, FACT_TYPE, type,
	    { .type_id = 55, .name = "struct robj", .bytes = 16 });
	PUT(writer, FACT_FIELD, field,
	    { .type_id = 55, .offset = 8, .bytes = 8, .path = "ptr" });
	PUT(writer, FACT_ANSWER, answer,
	    { .module_id = MODULE,
	      .type_id = 55,
	      .skid = 1,
	      .answer = { .va = 0x30,
			  .insn_va = 0x2c,
			  .verdict = VERDICT_DWARF,
			  .access = ACCESS_LOAD,
			  .width = 8,
			  .type = "struct robj",
			  .type_bytes = 16,
			  .offset = 8,
			  .path = "ptr",
			  .field_offset = 8,
			  .field_bytes = 8,
			  .confidence = 0.75 } });
	PUT(writer, FACT_METHOD, method,
	    { .method_id = 9, .framework = "grpc", .name = "Get" });
}

static void every_fact_arrives_whole_in_its_columns(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);

	put_one_of_each(writer);
	assert_ok(writer_close(writer));
	writer_free(writer);
	db_close(db);
	assert_text(place->path,
		    "SELECT printf('%d %d %s', run_id, end_at_ns IS NULL, "
		    "concat) FROM (SELECT *, host || boot_id || kernel || version || "
		    "target || sources AS concat FROM run)",
		    "4369 1 hb6.10allclock 97 Hz");
	assert_text(
		place->path,
		"SELECT printf('%016x %d %d %d %d %d %d %s %s %s', process_id, run_id, "
		"parent_id, pid, uid, start_boot_ns, cgroup_id, comm, exe, service) "
		"FROM process WHERE end_boot_ns IS NULL",
		"8000000000000001 4369 3 42 7 99 5 redis /bin/redis redis.service");
	assert_text(place->path,
		    "SELECT printf('%016x %d %s %s %s %s', module_id, kind, "
		    "hex(build_id), name, path, debug) FROM module",
		    "fedcba9876543210 1 ABCD redis /usr/bin/redis file");
	assert_text(
		place->path,
		"SELECT printf('%d %d %d %x %d %d|%d %d %d %d %d %d|%d %d %d %d %d %d %d', "
		"level, bucket_at_ns, run_id, va, source, method_id, samples, period, "
		"loads, stores, weight_samples, weight_cycles, l1, l2, l3, dram, "
		"remote, tlb_miss, hitm) FROM access",
		"0 1700000000000000000 4369 30 1 9|2 3 4 5 6 7|8 9 10 11 12 13 14");
	assert_text(place->path,
		    "SELECT printf('%d %d %d %d', stack_id, method_id, samples, cpu_ns) "
		    "FROM tick",
		    "77 0 3 3000");
	assert_text(place->path,
		    "SELECT group_concat(printf('%d:%x', depth, va), ' ') FROM "
		    "(SELECT * FROM v_frame WHERE stack_id = 77 ORDER BY depth)",
		    "0:30 1:20 2:10");
	assert_text(place->path,
		    "SELECT printf('%s %s:%d', function, file, line) FROM v_frame "
		    "WHERE depth = 0",
		    "leaf a.c:13");
	assert_text(place->path,
		    "SELECT printf('%s %d %s %d %s %d %.2f %s %x %d', t.name, t.bytes, "
		    "f.path, f.offset_bytes, v.name, a.skid, a.confidence, "
		    "a.analyser_version, a.insn_va, a.width_bytes) FROM answer AS a "
		    "JOIN type AS t USING (type_id) JOIN field AS f USING (field_id) "
		    "JOIN verdict AS v USING (verdict)",
		    "struct robj 16 ptr 8 dwarf 1 0.75 7 2c 8");
	assert_text(
		place->path,
		"SELECT printf('%s %s %d %d', kind, reason, lost, records) FROM v_loss",
		"access ring 1 10");
	assert_text(place->path,
		    "SELECT printf('%s %s %s %s %s %d', process, function, type, field, "
		    "method, loads) FROM v_access",
		    "redis leaf struct robj ptr Get 4");
}

static void equal_buckets_add_up_within_and_across_flushes(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);

	put_run(writer, RUN);
	for (int flush = 0; flush < 3; flush++) {
		for (int i = 0; i < 4; i++) {
			put_access(writer, BASE_NS, 0x10, 2);
			put_tick(writer, BASE_NS, 1, 5);
			PUT(writer, FACT_LOSS, loss,
			    { .run_id = RUN,
			      .bucket_ns = BASE_NS,
			      .kind = ABI_TICK_KIND,
			      .reason = LOSS_UNWIND,
			      .lost = 1,
			      .seen = 6 });
		}
		assert_ok(writer_flush(writer));
	}
	assert_text(
		place->path,
		"SELECT printf('%d %d %d %d', count(*), samples, period, l1) FROM access",
		"1 24 240 24");
	assert_text(place->path,
		    "SELECT printf('%d %d %d', count(*), samples, cpu_ns) FROM tick",
		    "1 60 60000");
	assert_text(place->path,
		    "SELECT printf('%d %d %d', count(*), lost, seen) FROM loss",
		    "1 12 72");
	writer_free(writer);
	db_close(db);
}

static void a_later_fact_completes_a_process_and_forgets_nothing(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);

	put_one_of_each(writer);
	PUT(writer, FACT_PROCESS, process,
	    { .run_id = RUN, .process_id = PROCESS, .pid = 42, .end_ns = 500 });
	PUT(writer, FACT_PROCESS, process,
	    { .run_id = RUN, .process_id = PROCESS, .comm = "renamed", .uid = 0 });
	PUT(writer, FACT_MODULE, module,
	    { .module_id = MODULE, .path = "", .debug = "/usr/lib/debug/x" });
	PUT(writer, FACT_RUN, run, { .run_id = RUN, .end_ns = BASE_NS + 5 });
	assert_ok(writer_flush(writer));
	assert_text(place->path,
		    "SELECT printf('%s %s %d %d %d', comm, exe, uid, start_boot_ns, "
		    "end_boot_ns) FROM process",
		    "renamed /bin/redis 0 99 500");
	assert_text(place->path,
		    "SELECT printf('%s %s %s', path, debug, hex(build_id)) FROM module",
		    "/usr/bin/redis /usr/lib/debug/x ABCD");
	assert_text(place->path,
		    "SELECT printf('%s %d', host, end_at_ns - start_at_ns) FROM run",
		    "h 5");
	writer_free(writer);
	db_close(db);
}

static void an_answer_replaces_the_one_for_the_same_place_and_skid(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);

	put_one_of_each(writer);
	PUT(writer, FACT_ANSWER, answer,
	    { .module_id = MODULE,
	      .skid = 1,
	      .answer = { .va = 0x30,
			  .verdict = VERDICT_CONFLICT,
			  .type = "",
			  .path = "" } });
	PUT(writer, FACT_ANSWER, answer,
	    { .module_id = MODULE,
	      .type_id = 56,
	      .skid = 0,
	      .answer = { .va = 0x30,
			  .insn_va = 0x30,
			  .verdict = VERDICT_JOIN,
			  .type = "struct dict",
			  .type_bytes = 56,
			  .path = "" } });
	assert_ok(writer_flush(writer));
	assert_text(place->path,
		    "SELECT group_concat(printf('%d %s %d', skid, name, type_id)) FROM "
		    "answer JOIN verdict USING (verdict)",
		    "0 join 56,1 conflict 0");
	assert_text(place->path, "SELECT name FROM type WHERE type_id = 56",
		    "struct dict");
	/* the clock's sample is answered by skid 1, an exact one by skid 0 */
	PUT(writer, FACT_ACCESS, access,
	    { .run_id = RUN,
	      .bucket_ns = BASE_NS,
	      .process_id = PROCESS,
	      .module_id = MODULE,
	      .va = 0x30,
	      .source = IBS,
	      .samples = 1 });
	assert_ok(writer_flush(writer));
	assert_text(place->path,
		    "SELECT group_concat(source || ' ' || verdict) FROM "
		    "(SELECT * FROM v_access ORDER BY source)",
		    "clock conflict,ibs join");
	writer_free(writer);
	db_close(db);
}

static void stacks_share_the_frames_of_their_callers(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	struct fact_frame frames[100];

	for (unsigned i = 0; i < 100; i++)
		frames[i] = (struct fact_frame){ MODULE, 1000 - i };
	put_run(writer, RUN);
	for (unsigned i = 0; i < 50; i++) {
		frames[0].va = 5000 + i;
		put_stack(writer, 100 + i, frames, 100);
		put_stack(writer, 100 + i, frames, 100);
	}
	put_stack(writer, 9, NULL, 0);
	assert_ok(writer_flush(writer));
	assert_int_equal(ask(place->path, "SELECT count(*) FROM stack"), 51);
	assert_int_equal(ask(place->path, "SELECT count(*) FROM frame"), 99 + 50);
	assert_int_equal(
		ask(place->path, "SELECT count(*) FROM v_frame WHERE stack_id = 120"),
		100);
	writer_free(writer);
	db_close(db);
}

static void text_that_is_too_long_or_missing_does_no_harm(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	char *name = mem_alloc(100000);

	memset(name, 'x', 99999);
	put_run(writer, RUN);
	PUT(writer, FACT_FUNCTION, function,
	    { .module_id = MODULE, .va = 1, .name = name });
	PUT(writer, FACT_MODULE, module, { .module_id = MODULE });
	memset(name, 'y', 99999); /* borrowed for the put only */
	assert_ok(writer_flush(writer));
	assert_text(place->path,
		    "SELECT printf('%d %s %d', length(name), substr(name, 1, 1), line) "
		    "FROM function",
		    "4096 x 0");
	assert_text(place->path, "SELECT path || '.' FROM module", ".");
	free(name);
	writer_free(writer);
	db_close(db);
}

static void a_tick_flushes_when_the_interval_has_passed(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);
	struct writer_stats stats;
	uint64_t now_ns = clock_ns();

	put_run(writer, RUN);
	assert_ok(writer_tick(writer, now_ns));
	writer_stats(writer, &stats);
	assert_int_equal(stats.pending_facts, 1);
	assert_ok(writer_tick(writer, now_ns + WRITER_FLUSH_NS));
	writer_stats(writer, &stats);
	assert_int_equal(stats.pending_facts, 0);
	assert_int_equal(stats.written, 1);
	writer_free(writer);
	db_close(db);
}

static void a_burst_flushes_itself_before_memory_is_full(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer_config config = { .pending_bytes = 100 * sizeof(struct fact) };
	struct writer *writer;
	struct writer_stats stats;

	assert_ok(writer_new(db, &config, &writer));
	put_run(writer, RUN);
	for (unsigned i = 0; i < 1000; i++)
		put_access(writer, BASE_NS, i, 1);
	writer_stats(writer, &stats);
	assert_int_equal(stats.dropped, 0);
	assert_ok(writer_flush(writer));
	assert_int_equal(ask(place->path, "SELECT count(*) FROM access"), 1000);
	writer_free(writer);
	db_close(db);
}

/* Puts until the writer says that it is full; then much more than memory holds. Every
 * sample must be found again, as a sample or as a loss. */
static void fill_up(struct writer *writer, uint64_t *ret_put)
{
	struct err *err = NULL;
	uint64_t put = 0;

	for (unsigned round = 0; round < 1000 && !err; round++) {
		for (unsigned i = 0; i < 500; i++, put++)
			put_access(writer, BASE_NS + round * SECOND, put * 16, 1);
		err = writer_flush(writer);
	}
	assert_non_null(err);
	assert_int_equal(err->code, ERR_LIMIT);
	err_free(err);
	for (unsigned i = 0; i < 5000; i++, put++)
		put_access(writer, BASE_NS, put * 16, 1);
	assert_fails(writer_flush(writer), ERR_LIMIT, "no ");
	*ret_put = put;
}

static void check_balance(const char *path, uint64_t put)
{
	int64_t stored = ask(path, "SELECT sum(samples) FROM access");
	int64_t lost = ask(path, "SELECT sum(lost) FROM loss JOIN loss_kind USING (kind) "
				 "JOIN loss_reason USING (reason) WHERE loss_kind.name "
				 "= 'access' AND loss_reason.name = 'store'");

	assert_int_equal(stored + lost, put);
	assert_true(lost > 0);
	assert_sound(path);
}

static void a_full_disk_costs_only_what_memory_cannot_hold_and_counts_it(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer_config config = { .pending_bytes = 2000 * sizeof(struct fact) };
	struct writer *writer;
	struct writer_stats stats;
	uint64_t put;

	assert_ok(writer_new(db, &config, &writer));
	put_run(writer, RUN);
	assert_int_equal(sqlite3_exec(db_handle(db), "PRAGMA max_page_count = 100", NULL,
				      NULL, NULL),
			 SQLITE_OK);
	fill_up(writer, &put);
	writer_stats(writer, &stats);
	assert_true(stats.full);
	assert_true(stats.pending_bytes <= config.pending_bytes + sizeof(struct fact));
	assert_true(stats.dropped > 0);
	sqlite3_exec(db_handle(db), "PRAGMA max_page_count = 100000", NULL, NULL, NULL);
	assert_ok(writer_close(writer));
	writer_free(writer);
	db_close(db);
	check_balance(place->path, put);
}

static void a_real_full_disk_leaves_a_sound_file_and_recovers(void **state)
{
	struct place *place = *state;

	if (mount("tmpfs", place->folder, "tmpfs", 0, "size=3m")) {
		print_message("skip: needs root to mount a small tmpfs\n");
		skip();
	}
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer_config config = { .pending_bytes = 2000 * sizeof(struct fact) };
	struct writer *writer;
	uint64_t put;

	assert_ok(writer_new(db, &config, &writer));
	put_run(writer, RUN);
	fill_up(writer, &put);
	assert_sound(place->path);
	assert_int_equal(mount(NULL, place->folder, NULL, MS_REMOUNT, "size=64m"), 0);
	assert_ok(writer_close(writer));
	writer_free(writer);
	db_close(db);
	check_balance(place->path, put);
	assert_int_equal(umount(place->folder), 0);
}

static void an_unclean_end_is_counted_and_closes_the_open_runs(void **state)
{
	struct place *place = *state;
	struct db *db = open_for(place->path, DB_WRITE);
	struct writer *writer = write_to(db);

	put_run(writer, RUN);
	put_access(writer, BASE_NS, 1, 40);
	put_tick(writer, BASE_NS, 1, 3);
	assert_ok(writer_flush(writer));
	put_access(writer, BASE_NS + SECOND, 1, 41); /* never written */
	writer_free(writer);
	db_close(db);
	do_sql(place->path, "UPDATE meta SET value = value - 3600000000000 "
			    "WHERE key = 'flush_at_ns'");
	int64_t flush_at_ns =
		ask(place->path, "SELECT value FROM meta WHERE key = 'flush_at_ns'");

	db = open_for(place->path, DB_WRITE);
	writer = write_to(db);
	assert_int_equal(ask(place->path, "SELECT end_at_ns FROM run"), flush_at_ns);
	assert_text(place->path,
		    "SELECT group_concat(printf('%s %s %d %d', kind, reason, lost, "
		    "lost_ns)) FROM (SELECT * FROM v_loss ORDER BY kind)",
		    "access crash 40 1000000000,tick crash 3 1000000000");
	assert_ok(writer_close(writer));
	writer_free(writer);
	db_close(db);
	/* a clean end adds nothing */
	db = open_for(place->path, DB_WRITE);
	writer_free(write_to(db));
	db_close(db);
	assert_int_equal(ask(place->path, "SELECT sum(lost) FROM loss"), 43);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(every_fact_arrives_whole_in_its_columns),
		TEST(equal_buckets_add_up_within_and_across_flushes),
		TEST(a_later_fact_completes_a_process_and_forgets_nothing),
		TEST(an_answer_replaces_the_one_for_the_same_place_and_skid),
		TEST(stacks_share_the_frames_of_their_callers),
		TEST(text_that_is_too_long_or_missing_does_no_harm),
		TEST(a_tick_flushes_when_the_interval_has_passed),
		TEST(a_burst_flushes_itself_before_memory_is_full),
		TEST(a_full_disk_costs_only_what_memory_cannot_hold_and_counts_it),
		TEST(a_real_full_disk_leaves_a_sound_file_and_recovers),
		TEST(an_unclean_end_is_counted_and_closes_the_open_runs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
