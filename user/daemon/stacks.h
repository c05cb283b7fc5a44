/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_STACKS_H
#define DAEMON_STACKS_H

/*
 * Ticks that carry a copy of the user stack: unwound by the worker, put as FACT_STACK
 * (once each) and FACT_TICK. Bounded: over the limit a tick keeps its leaf and is
 * counted as LOSS_UNWIND.
 */

#include <stdint.h>

#include "core/cleanup.h"
#include "daemon/jobs.h"
#include "daemon/modules.h"
#include "live/live.h"

#define STACKS_MAX_QUEUED 1024
#define STACKS_MAX_BYTES  (16 * 1024 * 1024) /* of queued stack copies and ranges */
#define STACKS_FLYING	  64		     /* unwind jobs in flight */
#define STACKS_MAX_KNOWN  65536		     /* stack ids remembered as put */
#define STACKS_FP_AGREE	  32 /* equal walks in a row before frame pointers are trusted */
#define STACKS_MAX_FP	  4096 /* processes whose agreement is counted */

/* Borrowed during the call; innermost frame first. */
struct stacks_sleep {
	uint32_t pid, tid;
	uint64_t time_ns; /* when it was seen there */
	const struct fact_frame *frames;
	size_t count;
};

/**
 * struct stacks_config - copied; pointers are borrowed.
 * @loss: LOSS_UNWIND for ticks whose stack did not reach its root; live_loss() fits.
 * @fp_ok: the frame-pointer walk of @pid agreed STACKS_FP_AGREE times in a row with
 *	the unwinder: its stacks need no copy any more. Once per process. May be NULL.
 * @slept: where a thread sleeps; such ticks are no CPU time. May be NULL.
 */
struct stacks_config {
	const struct job_source *jobs;
	struct modules *modules;
	struct sink *sink;
	uint64_t run_id;
	void (*loss)(void *ctx, uint64_t time_ns, uint64_t lost);
	void (*fp_ok)(void *ctx, uint32_t pid, uint64_t start_ns);
	void (*slept)(void *ctx, const struct stacks_sleep *sleep);
	void *ctx;
};

struct stacks;
struct stacks *stacks_new(const struct stacks_config *config);
void stacks_free(struct stacks *stacks); /* NULL is fine; before the workers go */
CLEANUP_DEFINE(stacks_free, struct stacks *)

/* stacks_unwind() - live_ops.unwind; copies what it keeps. */
void stacks_unwind(struct stacks *stacks, const struct live_tick *tick);

/* stacks_pump() - send what waits. */
void stacks_pump(struct stacks *stacks);

/* stacks_flush() - put the ticks counted so far; with live_flush(), once per second. */
void stacks_flush(struct stacks *stacks);

/* stacks_drain() - give up on what still waits: leaf only, counted; before the end. */
void stacks_drain(struct stacks *stacks);

struct stacks_stats {
	size_t queued, flying;
	uint64_t unwound, complete, by_frame_pointer, dropped;
};
void stacks_stats(const struct stacks *stacks, struct stacks_stats *ret_stats);

#endif
