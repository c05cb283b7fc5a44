// SPDX-License-Identifier: Apache-2.0
/*
 * Each step looks for the first thing that is due: rows to move up a level, rows to
 * expire, a quota to meet, pages to give back, orphans to sweep. Looking costs a few
 * index look-ups; what is found is done for one batch of rows.
 *
 * Under the quota's pressure the ages are halved again and again, down to floors, before
 * the oldest buckets go. SQLite's max_page_count is the last line: a writer that outruns
 * this file's work is refused, and counts what it drops.
 */
#include "store/retain.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "store/sql.h"
#include "store/sweep.h"

#define SECOND_NS	   1000000000ull
#define MAX_PRESSURE	   12
#define EASE_NS		   (60 * SECOND_NS) /* between two steps of less pressure */
#define VACUUM_PAGES	   128
#define MIN_QUOTA_BYTES	   (4ull * 1024 * 1024)
#define MAKE_ROOM_STEPS	   64
#define RESERVE_FREE_TIMES 2 /* that much more must be free before the reserve is made */

static const char *const tables[] = { "span",	 "access",	    "tick",
				      "request", "resource_bucket", "loss" };
#define TABLES	   ((int)(sizeof(tables) / sizeof(*tables)))
#define TABLE_LOSS (TABLES - 1) /* the last to go */

static const uint64_t length_ns[RETAIN_LEVELS] = { SECOND_NS, 10 * SECOND_NS,
						   60 * SECOND_NS, 3600 * SECOND_NS };
static const uint64_t default_keep_ns[RETAIN_LEVELS] = { 600 * SECOND_NS,
							 6 * 3600 * SECOND_NS,
							 7 * 86400 * SECOND_NS,
							 90 * 86400 * SECOND_NS };
/* What pressure leaves. */
static const uint64_t floor_ns[RETAIN_LEVELS] = { 10 * SECOND_NS, 60 * SECOND_NS,
						  3600 * SECOND_NS, 0 };

struct retain {
	struct db *db;
	struct retain_config config;
	char *reserve_path;
	struct script roll[TABLES], expire[TABLES], oldest[TABLES];
	struct sweep *sweep;
	uint64_t swept_at_ns, eased_at_ns;
	uint64_t limit_bytes; /* of pages: the quota less the log */
	struct retain_stats stats;
};

static struct err *set_pragma(struct db *db, const char *name, uint64_t value)
{
	CLEANUP(free)
	char *text = mem_printf("%s = %llu", name, (unsigned long long)value);
	int64_t ignored;

	return sql_pragma(db, text, &ignored);
}

/*
 * The log may take half the reserve: then the reserve is enough to copy the log back to a
 * database that has to grow for it, which is the only way to shorten the log. It is
 * copied back at half of that, so that one more transaction fits. The pages get the rest
 * of the quota.
 */
static struct err *set_limits(struct retain *retain)
{
	uint64_t quota = retain->config.quota_bytes, log_pages;
	int64_t page_bytes;

	TRY(sql_pragma(retain->db, "page_size", &page_bytes));
	log_pages = retain->config.reserve_bytes / 2 / (uint64_t)page_bytes;
	retain->limit_bytes = quota - log_pages * (uint64_t)page_bytes;
	TRY(set_pragma(retain->db, "wal_autocheckpoint", log_pages / 2));
	TRY(set_pragma(retain->db, "journal_size_limit",
		       log_pages * (uint64_t)page_bytes / 2));
	TRY(set_pragma(retain->db, "max_page_count",
		       retain->limit_bytes / (uint64_t)page_bytes));
	return NULL;
}

/* Room held back on the disk. Without it we go on: a full disk then ends the writing. */
static void make_reserve(struct retain *retain)
{
	uint64_t bytes = retain->config.reserve_bytes;
	struct statvfs disk;
	struct stat stat_buf;

	if (!stat(retain->reserve_path, &stat_buf) &&
	    (uint64_t)stat_buf.st_size == bytes) {
		retain->stats.reserve = true;
		return;
	}
	retain->stats.reserve = false;
	CLEANUP(close)
	int fd = open(retain->reserve_path, O_WRONLY | O_CREAT | O_CLOEXEC | O_NOFOLLOW,
		      0640);

	if (fd < 0)
		return;
	if (fstatvfs(fd, &disk) ||
	    (uint64_t)disk.f_bavail * disk.f_frsize < bytes * RESERVE_FREE_TIMES ||
	    posix_fallocate(fd, 0, (off_t)bytes) || ftruncate(fd, (off_t)bytes))
		unlink(retain->reserve_path);
	else
		retain->stats.reserve = true;
}

static void drop_reserve(struct retain *retain)
{
	unlink(retain->reserve_path);
	retain->stats.reserve = false;
}

static void fill_config(struct retain_config *config)
{
	for (int i = 0; i < RETAIN_LEVELS; i++)
		if (!config->keep_ns[i])
			config->keep_ns[i] = default_keep_ns[i];
	if (!config->quota_bytes)
		config->quota_bytes = RETAIN_QUOTA_BYTES;
	if (config->quota_bytes < MIN_QUOTA_BYTES)
		config->quota_bytes = MIN_QUOTA_BYTES;
	if (!config->reserve_bytes)
		config->reserve_bytes = RETAIN_RESERVE_BYTES;
	if (config->reserve_bytes > config->quota_bytes / 4)
		config->reserve_bytes = config->quota_bytes / 4;
	if (!config->sweep_ns)
		config->sweep_ns = 3600 * SECOND_NS;
}

static struct err *open_scripts(struct retain *retain)
{
	TRY(sql_exec(retain->db, sql_text("schema/write/retain_temp.sql")));
	for (int i = 0; i < TABLES; i++) {
		CLEANUP(free) char *roll = mem_printf("roll_%s", tables[i]);
		CLEANUP(free) char *expire = mem_printf("expire_%s", tables[i]);
		CLEANUP(free) char *oldest = mem_printf("oldest_%s", tables[i]);

		TRY(script_open(retain->db, roll, &retain->roll[i]));
		TRY(script_open(retain->db, expire, &retain->expire[i]));
		TRY(script_open(retain->db, oldest, &retain->oldest[i]));
	}
	return NULL;
}

static struct err *store_levels(struct retain *retain)
{
	CLEANUP(script_close) struct script script = { 0 };

	TRY(script_open(retain->db, "bucket_level", &script));
	for (int i = 0; i < RETAIN_LEVELS; i++) {
		script_bind(&script, "lu", retain->config.keep_ns[i], (uint32_t)i);
		TRY(script_run(&script, NULL));
	}
	return NULL;
}

struct err *retain_new(struct db *db, const struct retain_config *config,
		       struct retain **ret_retain)
{
	CLEANUP(retain_free) struct retain *retain = mem_alloc(sizeof(*retain));

	retain->db = db;
	retain->config = *config;
	fill_config(&retain->config);
	retain->reserve_path = mem_printf("%s-reserve", db_path(db));
	retain->stats.quota_bytes = retain->config.quota_bytes;
	TRY(open_scripts(retain));
	TRY(set_limits(retain));
	make_reserve(retain);
	/* On a disk that is full already this does not matter enough to stop. */
	err_free(store_levels(retain));
	*ret_retain = take(retain);
	return NULL;
}

void retain_free(struct retain *retain)
{
	if (!retain)
		return;
	for (int i = 0; i < TABLES; i++) {
		script_close(&retain->roll[i]);
		script_close(&retain->expire[i]);
		script_close(&retain->oldest[i]);
	}
	sweep_free(retain->sweep);
	free(retain->reserve_path);
	free(retain);
}

static uint64_t keep_ns(const struct retain *retain, int level)
{
	uint64_t keep = retain->config.keep_ns[level] >> retain->stats.pressure;

	if (level == RETAIN_1H || keep >= retain->config.keep_ns[level])
		return retain->config.keep_ns[level];
	if (keep < floor_ns[level])
		keep = floor_ns[level];
	return keep < retain->config.keep_ns[level] ? keep
						    : retain->config.keep_ns[level];
}

/* Rows of @level from before this are due; whole buckets of the next level only. */
static uint64_t cut_ns(const struct retain *retain, int level, uint64_t now_ns)
{
	uint64_t keep = keep_ns(retain, level);
	uint64_t cut = now_ns > keep ? now_ns - keep : 0;
	uint64_t whole = length_ns[level == RETAIN_1H ? RETAIN_1H : level + 1];

	return cut - cut % whole;
}

/* -1: the level is empty. */
static struct err *oldest(struct retain *retain, int table, int level, int64_t *ret_at_ns)
{
	size_t count;

	script_set(&retain->oldest[table], ":level", level);
	return script_rows(&retain->oldest[table], ret_at_ns, 1, 1, &count);
}

static struct err *run_batch(struct retain *retain, struct script *script, int level,
			     uint64_t cut_at_ns, uint64_t *ret_rows)
{
	script_set(script, ":level", level);
	script_set(script, ":cut_at_ns", (int64_t)cut_at_ns);
	script_set(script, ":batch", RETAIN_BATCH);
	if (level < RETAIN_1H)
		script_set(script, ":to_length_ns", (int64_t)length_ns[level + 1]);
	TRY(sql_begin(retain->db));
	return sql_end(retain->db, script_run(script, ret_rows));
}

static struct err *age_step(struct retain *retain, uint64_t now_ns, bool *ret_worked)
{
	for (int level = 0; level < RETAIN_LEVELS; level++) {
		uint64_t cut = cut_ns(retain, level, now_ns), rows = 0;
		bool is_last = level == RETAIN_1H;

		for (int table = 0; table < TABLES; table++) {
			int64_t at_ns;

			TRY(oldest(retain, table, level, &at_ns));
			if (at_ns < 0 || (uint64_t)at_ns >= cut)
				continue;
			TRY(run_batch(retain,
				      is_last ? &retain->expire[table]
					      : &retain->roll[table],
				      level, cut, &rows));
			if (is_last)
				retain->stats.expired_rows += rows;
			else
				retain->stats.rolled_rows += rows;
			*ret_worked = rows > 0;
			return NULL;
		}
	}
	return NULL;
}

/* One batch of the oldest samples: those in the longest buckets. */
static struct err *expire_oldest(struct retain *retain, bool *ret_worked)
{
	for (int level = RETAIN_1H; level >= 0; level--)
		for (int table = 0; table < TABLE_LOSS; table++) {
			uint64_t rows;
			int64_t at_ns;

			TRY(oldest(retain, table, level, &at_ns));
			if (at_ns < 0)
				continue;
			TRY(run_batch(retain, &retain->expire[table], level, INT64_MAX,
				      &rows));
			retain->stats.expired_rows += rows;
			*ret_worked = rows > 0;
			return NULL;
		}
	return NULL;
}

static struct err *begin_sweep(struct retain *retain, uint64_t now_ns)
{
	uint64_t keep = retain->config.keep_ns[RETAIN_1H];

	retain->swept_at_ns = now_ns;
	return sweep_new(retain->db, now_ns, now_ns > keep ? now_ns - keep : 0,
			 &retain->sweep);
}

static struct err *quota_step(struct retain *retain, uint64_t now_ns, bool *ret_worked)
{
	uint64_t limit = retain->limit_bytes;
	struct db_size size;

	TRY(db_size(retain->db, &size));
	retain->stats.used_bytes = size.used_bytes;
	if (size.used_bytes > limit / 8 * 7) {
		retain->eased_at_ns = now_ns;
		*ret_worked = true;
		if (retain->stats.pressure < MAX_PRESSURE) {
			retain->stats.pressure++;
			return NULL;
		}
		TRY(expire_oldest(retain, ret_worked));
		/* Only names are left: drop those that nothing refers to. */
		if (!*ret_worked && !retain->sweep &&
		    now_ns > retain->swept_at_ns + EASE_NS)
			TRY(begin_sweep(retain, now_ns));
		return NULL;
	}
	if (size.used_bytes < limit / 4 * 3 && retain->stats.pressure &&
	    now_ns > retain->eased_at_ns + EASE_NS) {
		retain->stats.pressure--;
		retain->eased_at_ns = now_ns;
	}
	return NULL;
}

/* Pages are only given back when many are free: the next second needs some. */
static struct err *vacuum_step(struct retain *retain, bool *ret_worked)
{
	CLEANUP(free) char *text = mem_printf("incremental_vacuum(%d)", VACUUM_PAGES);
	int64_t pages, free_pages, ignored;

	TRY(sql_pragma(retain->db, "page_count", &pages));
	TRY(sql_pragma(retain->db, "freelist_count", &free_pages));
	if (free_pages < VACUUM_PAGES * 2 || free_pages < pages / 8)
		return NULL;
	*ret_worked = true;
	return sql_pragma(retain->db, text, &ignored);
}

static struct err *sweep_due(struct retain *retain, uint64_t now_ns, bool *ret_worked)
{
	bool done = false;

	if (!retain->sweep && !retain->swept_at_ns)
		retain->swept_at_ns = now_ns; /* not in the rush of a start */
	if (!retain->sweep && now_ns < retain->swept_at_ns + retain->config.sweep_ns)
		return NULL;
	if (!retain->sweep)
		TRY(begin_sweep(retain, now_ns));
	*ret_worked = true;
	struct err *err = sweep_step(retain->sweep, &done, &retain->stats.swept_rows);

	if (err || done) {
		sweep_free(retain->sweep);
		retain->sweep = NULL;
	}
	return err;
}

static struct err *one_step(struct retain *retain, uint64_t now_ns, bool *ret_worked)
{
	*ret_worked = false;
	struct err *err = age_step(retain, now_ns, ret_worked);

	if (err && err->code == ERR_LIMIT) {
		/* No page is left to write the sums to, but deleting needs none. */
		err_free(err);
		return expire_oldest(retain, ret_worked);
	}
	if (err)
		return err;
	if (!*ret_worked)
		TRY(quota_step(retain, now_ns, ret_worked));
	if (!*ret_worked)
		TRY(vacuum_step(retain, ret_worked));
	if (!*ret_worked)
		TRY(sweep_due(retain, now_ns, ret_worked));
	return NULL;
}

struct err *retain_step(struct retain *retain, uint64_t now_ns, uint64_t budget_ns,
			bool *ret_more)
{
	uint64_t begin_ns = clock_ns();
	bool worked;

	do
		TRY(one_step(retain, now_ns, &worked));
	while (worked && clock_ns() - begin_ns < budget_ns);
	if (!retain->stats.reserve)
		make_reserve(retain);
	if (ret_more)
		*ret_more = worked;
	return NULL;
}

struct err *retain_make_room(struct retain *retain, uint64_t now_ns)
{
	int64_t pages, free_pages = 0, ignored;
	bool worked = true;

	struct db_size size;

	drop_reserve(retain);
	retain->eased_at_ns = now_ns;
	TRY(sql_pragma(retain->db, "page_count", &pages));
	TRY(db_size(retain->db, &size));
	/* A log that was copied back begins anew without growing; but one that is larger
	 * than the reserve would eat it all up half-way. */
	if (size.log_bytes < retain->config.reserve_bytes)
		err_free(sql_pragma(retain->db, "wal_checkpoint(TRUNCATE)", &ignored));
	for (int i = 0; i < MAKE_ROOM_STEPS && worked; i++) {
		TRY(sql_pragma(retain->db, "freelist_count", &free_pages));
		worked = false;
		if (free_pages < 16 || free_pages < pages / 16)
			TRY(expire_oldest(retain, &worked));
	}
	err_free(sql_pragma(retain->db, "wal_checkpoint(TRUNCATE)", &ignored));
	if (free_pages > 0)
		return NULL;
	return err_new(ERR_LIMIT,
		       "%s: no room, and no samples left to expire: free some space, or "
		       "raise the quota",
		       db_path(retain->db));
}

void retain_stats(const struct retain *retain, struct retain_stats *ret_stats)
{
	*ret_stats = retain->stats;
}
