/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_RETAIN_H
#define STORE_RETAIN_H

/*
 * Old aggregates move to longer buckets (1 s, 10 s, 1 min, 1 h) with exact sums, the
 * oldest expire, what nothing refers to any more is swept, free pages are given back.
 * All of it in small steps, each a transaction of its own, between two flushes.
 *
 * The quota is met in this order: roll up earlier, expire the oldest. A reserve file,
 * PATH-reserve, holds room back, since on a full disk SQLite cannot even delete.
 */

#include "store/db.h"

enum retain_level { RETAIN_1S, RETAIN_10S, RETAIN_1MIN, RETAIN_1H, RETAIN_LEVELS };

struct retain_config {
	uint64_t keep_ns[RETAIN_LEVELS]; /* age at which a bucket leaves its level; 0:
					  * 10 min, 6 h, 7 d, 90 d */
	uint64_t quota_bytes;		 /* database and log; 0: RETAIN_QUOTA_BYTES */
	uint64_t reserve_bytes;		 /* 0: RETAIN_RESERVE_BYTES, at most quota / 4 */
	uint64_t sweep_ns;		 /* between two sweeps of orphans; 0: 1 h */
};

#define RETAIN_QUOTA_BYTES   (1024ull * 1024 * 1024)
#define RETAIN_RESERVE_BYTES (8ull * 1024 * 1024)

struct retain;

/* retain_new() - @db is DB_WRITE and borrowed. Makes the reserve file if there is room. */
struct err *retain_new(struct db *db, const struct retain_config *config,
		       struct retain **ret_retain);
void retain_free(struct retain *retain); /* NULL is fine; the reserve file stays */
CLEANUP_DEFINE(retain_free, struct retain *)

/**
 * retain_step() - work off what is due, for about @budget_ns, then stop.
 * @now_ns: realtime_ns(). Call it once a second, after writer_tick(), never inside a
 * transaction. One step handles at most RETAIN_BATCH rows and is not cut.
 * Return in @ret_more whether there is more to do; may be NULL.
 */
#define RETAIN_BATCH 2048
struct err *retain_step(struct retain *retain, uint64_t now_ns, uint64_t budget_ns,
			bool *ret_more);

/**
 * retain_make_room() - the disk is full or the quota reached: give the reserve back,
 * then expire the oldest until a sixteenth of the data is free. The reserve is made
 * anew by a later retain_step() that finds room.
 */
struct err *retain_make_room(struct retain *retain, uint64_t now_ns);

struct retain_stats {
	uint64_t rolled_rows, expired_rows, swept_rows;
	unsigned pressure; /* 0: as configured; each step halves the ages */
	bool reserve;	   /* the reserve file is in place */
	uint64_t used_bytes, quota_bytes;
};
void retain_stats(const struct retain *retain, struct retain_stats *ret_stats);

#endif
