/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EVENT_MERGE_H
#define EVENT_MERGE_H

/*
 * Several sources into one order by time. Each source is nearly sorted and is drained
 * at its own moment, so a record waits until every source has had @window_ns to hand
 * over something older. Pure: it has no clock, the caller says what time it is.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"

struct merge_config {
	uint64_t window_ns; /* how long a record may wait for older ones */
	size_t max_records; /* waiting at once; 0: no limit of this kind */
	size_t max_bytes;
};

struct merge_stats {
	uint64_t delivered;
	uint64_t forced; /* pushed out early because a limit was reached: LOSS_REORDER */
	uint64_t
		late; /* older than one delivered before, delivered all the same: LOSS_LATE */
	size_t waiting, waiting_bytes;
};

struct merge;

/* merge_fn - one record, @bytes of it; borrowed during the call. Must not call merge_*. */
typedef void (*merge_fn)(void *ctx, const void *data, size_t bytes);

struct merge *merge_new(const struct merge_config *config, merge_fn deliver, void *ctx);
void merge_free(struct merge *merge); /* what waits is dropped; NULL is fine */
CLEANUP_DEFINE(merge_free, struct merge *)

/**
 * merge_put() - copy one record in.
 * @data: begins with a struct abi_head; anything shorter is delivered at once and left
 * to event_decode() to refuse.
 * Records of equal time leave in the order in which they came.
 */
void merge_put(struct merge *merge, const void *data, size_t bytes);

/* merge_run() - deliver what is at least window_ns older than @now_ns. */
void merge_run(struct merge *merge, uint64_t now_ns);

/* merge_flush() - deliver everything: at the end of a run. */
void merge_flush(struct merge *merge);

void merge_stats(const struct merge *merge, struct merge_stats *ret_stats);

#endif
