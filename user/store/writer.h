/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_WRITER_H
#define STORE_WRITER_H

/*
 * A sink that writes facts, one transaction per flush. Facts wait in memory until then;
 * when the disk is full they go on waiting up to a limit, beyond which they are dropped
 * and counted (LOSS_STORE). A crash loses what waited: at most one flush interval, which
 * the next writer_new() on the same file counts (LOSS_CRASH).
 */

#include <stddef.h>

#include "model/sink.h"
#include "store/db.h"

#define WRITER_FLUSH_NS	     1000000000ull
#define WRITER_PENDING_BYTES (16u * 1024 * 1024)

struct writer_config {
	uint64_t flush_ns;    /* 0: WRITER_FLUSH_NS */
	size_t pending_bytes; /* memory for facts that wait; 0: WRITER_PENDING_BYTES */
	uint32_t analyser_version; /* stands in every answer; others are asked for anew */
};

struct writer;

/**
 * writer_new() - start writing into @db (DB_WRITE; borrowed until writer_free()).
 * After an unclean end the runs still open are closed at their last flush and the time
 * from there, at most one flush interval, is stored as LOSS_CRASH.
 */
struct err *writer_new(struct db *db, const struct writer_config *config,
		       struct writer **ret_writer);

/**
 * writer_free() - drop what was not flushed; the file stays marked unclean.
 * NULL is fine. writer_close() comes before it in an orderly end.
 */
void writer_free(struct writer *writer);
CLEANUP_DEFINE(writer_free, struct writer *)

/* writer_close() - flush everything, write the clean mark and empty the log. */
struct err *writer_close(struct writer *writer);

struct sink *writer_sink(struct writer *writer);

/**
 * writer_flush() - write what waits, now.
 * A disk that is full, or a quota that is reached, is an error (ERR_LIMIT) but loses
 * nothing: the facts wait for the next flush. ERR_FORMAT: the file is damaged, give up.
 * A caller that cannot do better logs the text once and goes on.
 */
struct err *writer_flush(struct writer *writer);

/* writer_tick() - flush when flush_ns passed since the last one. @now_ns: clock_ns(). Call
 * it often. A put flushes by itself only when memory is half full and the disk is not;
 * the error of such a flush comes from the next writer_tick(). */
struct err *writer_tick(struct writer *writer, uint64_t now_ns);

struct writer_stats {
	uint64_t facts;	  /* put */
	uint64_t written; /* committed */
	uint64_t dropped; /* counted as LOSS_STORE */
	uint64_t flushes, failed_flushes;
	uint64_t flush_max_ns; /* the longest flush */
	size_t pending_facts, pending_bytes;
	bool full; /* the last flush found no room */
};
void writer_stats(const struct writer *writer, struct writer_stats *ret_stats);

#endif
