// SPDX-License-Identifier: Apache-2.0
#include "unit/store/store_test.h"

#include "store/retain.h"
#include "store/sql.h"

#define MINUTE	(60 * SECOND)
#define HOUR	(60 * MINUTE)
#define DAY	(24 * HOUR)
#define START	(BASE_NS - BASE_NS % DAY)
#define LONG_NS (60 * SECOND) /* a step's budget that is never used up */

struct store {
	struct db *db;
	struct writer *writer;
	struct retain *retain;
	uint64_t budget_ns;
};

static struct store open_store(const char *path, const struct retain_config *config)
{
	struct store store = { .db = open_for(path, DB_WRITE), .budget_ns = LONG_NS };

	store.writer = write_to(store.db);
	put_run(store.writer, RUN);
	assert_ok(retain_new(store.db, config, &store.retain));
	return store;
}

static void close_store(struct store *store)
{
	retain_free(store->retain);
	writer_free(store->writer);
	db_close(store->db);
}

static void settle(struct store *store, uint64_t now_ns)
{
	bool more = true;

	for (int i = 0; i < 1000 && more; i++)
		assert_ok(retain_step(store->retain, now_ns, LONG_NS, &more));
	assert_false(more);
}

/* Samples of 3 hours, sums known: va v has (bucket % 7 + v) samples in each second. */
static uint64_t put_hours(struct writer *writer, uint64_t seconds, uint64_t *ret_losses)
{
	uint64_t sum = 0;

	*ret_losses = 0;
	for (uint64_t i = 0; i < seconds; i++) {
		uint64_t at_ns = START + i * SECOND;

		for (uint64_t va = 1; va <= 3; va++) {
			put_access(writer, at_ns, va, i % 7 + va);
			sum += i % 7 + va;
		}
		put_tick(writer, at_ns, i % 5, 2);
		if (i % 100 == 0) {
			PUT(writer, FACT_LOSS, loss,
			    { .run_id = RUN,
			      .bucket_ns = at_ns,
			      .kind = ABI_ACCESS_KIND,
			      .reason = LOSS_RING,
			      .lost = i,
			      .seen = 2 * i });
			*ret_losses += i;
		}
	}
	return sum;
}

#define SUMS                                                            \
	"SELECT printf('%d %d %d', (SELECT sum(samples) FROM access), " \
	"(SELECT sum(cpu_ns) FROM tick), (SELECT sum(lost) FROM loss))"

static void sums_are_exact_after_every_level_of_roll_up(void **state)
{
	struct place *place = *state;
	struct store store = open_store(place->path, &(struct retain_config){ 0 });
	const uint64_t seconds = 3 * 3600;
	uint64_t losses, sum = put_hours(store.writer, seconds, &losses);
	char *expected = mem_printf("%llu %llu %llu", (unsigned long long)sum,
				    (unsigned long long)(seconds * 2 * 1000),
				    (unsigned long long)losses);
	static const struct {
		uint64_t age_ns;
		const char *rows; /* level: rows of access */
	} steps[] = {
		{ 0, "0:1800 1:3060" }, /* 10 min stay at 1 s; 170 min at 10 s */
		{ 20 * MINUTE, "1:3240" },
		{ 4 * HOUR, "1:2160 2:180" }, /* 2 h stay at 10 s; 1 h at 1 min */
		{ 12 * HOUR, "2:540" },
		{ 8 * DAY, "3:9" },
		{ 80 * DAY, "3:9" },
	};

	assert_ok(writer_flush(store.writer));
	for (size_t i = 0; i < sizeof(steps) / sizeof(*steps); i++) {
		settle(&store, START + seconds * SECOND + steps[i].age_ns);
		assert_text(place->path, SUMS, expected);
		assert_text(place->path,
			    "SELECT group_concat(level || ':' || n, ' ') FROM (SELECT "
			    "level, count(*) AS n FROM access GROUP BY level)",
			    steps[i].rows);
	}
	/* by instruction too: i % 7 sums to 32397 over 10800 s */
	assert_text(place->path,
		    "SELECT group_concat(printf('%d:%d', va, n), ' ') FROM (SELECT va, "
		    "sum(samples) AS n FROM access GROUP BY va)",
		    "1:43197 2:53997 3:64797");
	settle(&store, START + 91 * DAY);
	assert_int_equal(ask(place->path, "SELECT count(*) FROM access"), 0);
	assert_int_equal(ask(place->path, "SELECT count(*) FROM tick"), 0);
	assert_int_equal(ask(place->path, "SELECT count(*) FROM loss"), 0);
	assert_sound(place->path);
	free(expected);
	close_store(&store);
}

static void what_comes_late_is_added_to_what_was_rolled_up(void **state)
{
	struct place *place = *state;
	struct store store = open_store(place->path, &(struct retain_config){ 0 });

	put_access(store.writer, START, 1, 5);
	assert_ok(writer_flush(store.writer));
	settle(&store, START + HOUR);
	put_access(store.writer, START + 3 * SECOND, 1, 6);
	assert_ok(writer_flush(store.writer));
	settle(&store, START + HOUR);
	assert_text(
		place->path,
		"SELECT printf('%d %d %d %d', count(*), level, samples, bucket_at_ns - "
		"1699920000000000000) FROM access",
		"1 1 11 0");
	close_store(&store);
}

static void all_counters_of_a_row_move(void **state)
{
	struct place *place = *state;
	struct store store = open_store(place->path, &(struct retain_config){ 0 });

	for (unsigned i = 0; i < 2; i++)
		PUT(store.writer, FACT_ACCESS, access,
		    { .run_id = RUN,
		      .bucket_ns = START + i * SECOND,
		      .va = 1,
		      .samples = 1,
		      .period = 2,
		      .loads = 3,
		      .stores = 4,
		      .weight_samples = 5,
		      .weight_cycles = 6,
		      .l1 = 7,
		      .l2 = 8,
		      .l3 = 9,
		      .dram = 10,
		      .remote = 11,
		      .tlb_miss = 12,
		      .hitm = 13 });
	assert_ok(writer_flush(store.writer));
	settle(&store, START + DAY);
	assert_text(
		place->path,
		"SELECT printf('%d %d %d %d %d %d %d %d %d %d %d %d %d %d', level, "
		"samples, period, loads, stores, weight_samples, weight_cycles, l1, l2, "
		"l3, dram, remote, tlb_miss, hitm) FROM access",
		"2 2 4 6 8 10 12 14 16 18 20 22 24 26");
	close_store(&store);
}

static void a_step_without_time_does_one_batch(void **state)
{
	struct place *place = *state;
	struct store store = open_store(place->path, &(struct retain_config){ 0 });
	struct retain_stats stats;
	bool more;

	for (uint64_t i = 0; i < RETAIN_BATCH * 3; i++)
		put_access(store.writer, START, i, 1);
	assert_ok(writer_flush(store.writer));
	assert_ok(retain_step(store.retain, START + HOUR, 0, &more));
	retain_stats(store.retain, &stats);
	assert_true(more);
	assert_int_equal(stats.rolled_rows, RETAIN_BATCH);
	assert_int_equal(ask(place->path, "SELECT sum(samples) FROM access"),
			 RETAIN_BATCH * 3);
	close_store(&store);
}

/* Either the same 400 instructions every 6 s, which rolls up well, or new ones all the
 * time, which does not. */
static void put_minutes(struct store *store, uint64_t from_ns, unsigned minutes,
			bool is_new)
{
	for (unsigned minute = 0; minute < minutes; minute++) {
		uint64_t at_ns = from_ns + minute * MINUTE;

		for (unsigned i = 0; i < 4000; i++)
			put_access(store->writer, at_ns + i / 400 * 6 * SECOND,
				   is_new ? (minute + 1) * 10000 + i : i % 400, 1);
		struct err *err = writer_flush(store->writer);

		if (err && err->code == ERR_LIMIT) {
			err_free(err);
			assert_ok(retain_make_room(store->retain, at_ns));
			err = writer_flush(store->writer);
		}
		assert_ok(err);
		assert_ok(retain_step(store->retain, at_ns + MINUTE, store->budget_ns,
				      NULL));
	}
}

static uint64_t disk_bytes(const char *path)
{
	struct stat stat_buf;
	char *log = mem_printf("%s-wal", path);
	uint64_t bytes = 0;

	if (!stat(path, &stat_buf))
		bytes += (uint64_t)stat_buf.st_size;
	if (!stat(log, &stat_buf))
		bytes += (uint64_t)stat_buf.st_size;
	free(log);
	return bytes;
}

static void the_quota_holds_by_rolling_up_and_then_expiring_the_oldest(void **state)
{
	struct place *place = *state;
	const uint64_t quota = 8 << 20;
	struct store store =
		open_store(place->path, &(struct retain_config){ .quota_bytes = quota });
	struct retain_stats stats;

	put_minutes(&store, START, 70, false);
	retain_stats(store.retain, &stats);
	assert_int_equal(stats.expired_rows, 0); /* so far rolling up was enough, */
	assert_true(ask(place->path, "SELECT count(*) FROM access WHERE level = 2") >
		    0); /* which without pressure waits for six hours */
	put_minutes(&store, START + 70 * MINUTE, 50, true);
	retain_stats(store.retain, &stats);
	assert_true(stats.expired_rows > 0);
	assert_true(stats.used_bytes < quota);
	assert_true(disk_bytes(place->path) <= quota);
	/* the newest are there, the oldest are not */
	assert_true(
		ask(place->path, "SELECT max(bucket_at_ns) / 1000000000 FROM access") >=
		(int64_t)((START + 119 * MINUTE) / SECOND));
	assert_true(
		ask(place->path, "SELECT min(bucket_at_ns) / 1000000000 FROM access") >
		(int64_t)(START / SECOND));
	assert_sound(place->path);
	close_store(&store);
}

static void a_writer_that_outruns_the_work_is_stopped_at_the_quota(void **state)
{
	struct place *place = *state;
	const uint64_t quota = 8 << 20;
	struct store store =
		open_store(place->path, &(struct retain_config){ .quota_bytes = quota });

	store.budget_ns = 0;
	put_minutes(&store, START, 60, true);
	assert_true(disk_bytes(place->path) <= quota);
	assert_sound(place->path);
	close_store(&store);
}

static void pressure_eases_when_there_is_room_again(void **state)
{
	struct place *place = *state;
	struct store store = open_store(
		place->path, &(struct retain_config){ .quota_bytes = 8 << 20 });
	struct retain_stats stats;
	uint64_t now_ns = START;

	put_minutes(&store, START, 60, true);
	now_ns += HOUR;
	retain_stats(store.retain, &stats);
	assert_true(stats.pressure > 0);
	do_sql(place->path, "DELETE FROM access");
	for (unsigned i = 0; i < 20; i++)
		settle(&store, now_ns += 2 * MINUTE);
	retain_stats(store.retain, &stats);
	assert_int_equal(stats.pressure, 0);
	close_store(&store);
}

static void free_pages_are_given_back(void **state)
{
	struct place *place = *state;
	struct store store = open_store(place->path, &(struct retain_config){ 0 });
	struct db_size before, after;

	for (unsigned i = 0; i < 100000; i++)
		put_access(store.writer, START, i, 1);
	assert_ok(writer_flush(store.writer));
	assert_ok(db_size(store.db, &before));
	settle(&store, START + 100 * DAY);
	assert_ok(db_size(store.db, &after));
	assert_true(before.file_bytes > 4 << 20);
	assert_true(ask(place->path, "PRAGMA page_count") < 512);
	close_store(&store);
}

static void a_full_disk_has_the_reserve_to_delete_with(void **state)
{
	struct place *place = *state;

	if (mount("tmpfs", place->folder, "tmpfs", 0, "size=12m")) {
		print_message("skip: needs root to mount a small tmpfs\n");
		skip();
	}
	struct store store = open_store(
		place->path, &(struct retain_config){ .reserve_bytes = 2 << 20 });
	char *other = mem_printf("%s/other", place->folder);
	struct retain_stats stats;
	struct err *err = NULL;

	retain_stats(store.retain, &stats);
	assert_true(stats.reserve);
	for (unsigned i = 0; i < 40000; i++)
		put_access(store.writer, START + i * SECOND, i % 100, 1);
	assert_ok(writer_flush(store.writer));
	/* somebody else takes the rest of the disk, to the last byte */
	FILE *file = fopen(other, "w");

	while (fwrite(place, sizeof(*place), 1, file) == 1 && !fflush(file))
		;
	fclose(file);
	for (unsigned i = 0; i < 1000 && !err; i++) {
		for (unsigned j = 0; j < 1000; j++)
			put_access(store.writer, START + i * SECOND, 1000 + j, 1);
		err = writer_flush(store.writer);
	}
	assert_non_null(err);
	assert_int_equal(err->code, ERR_LIMIT);
	err_free(err);
	assert_ok(retain_make_room(store.retain, START));
	assert_ok(writer_flush(store.writer));
	retain_stats(store.retain, &stats);
	assert_false(stats.reserve);
	assert_true(stats.expired_rows > 0);
	unlink(other);
	assert_ok(retain_step(store.retain, START, 0, NULL));
	retain_stats(store.retain, &stats);
	assert_true(stats.reserve);
	assert_sound(place->path);
	close_store(&store);
	free(other);
	assert_int_equal(umount(place->folder), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(sums_are_exact_after_every_level_of_roll_up),
		TEST(what_comes_late_is_added_to_what_was_rolled_up),
		TEST(all_counters_of_a_row_move),
		TEST(a_step_without_time_does_one_batch),
		TEST(the_quota_holds_by_rolling_up_and_then_expiring_the_oldest),
		TEST(a_writer_that_outruns_the_work_is_stopped_at_the_quota),
		TEST(pressure_eases_when_there_is_room_again),
		TEST(free_pages_are_given_back),
		TEST(a_full_disk_has_the_reserve_to_delete_with),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
