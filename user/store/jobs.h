/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_JOBS_H
#define STORE_JOBS_H

/*
 * What was sampled but not explained: after a restart, or when a newer analyser is
 * installed. During a run the daemon asks for what it sees; this finds the rest.
 */

#include <stddef.h>

#include "store/db.h"

#define JOBS_BATCH 4096 /* rows looked at per step */
#define JOBS_MAX_SEEN \
	262144u /* different addresses in one pass; others wait for the next */

struct jobs_site {
	uint64_t module_id, va;
	bool skid;	  /* a clock sample: the skid rule applies to the answer */
	bool want_symbol; /* no site row yet */
	bool want_answer; /* no answer of this analyser yet; false for stack frames */
	uint64_t samples; /* 0 for stack frames */
};

struct jobs;

/* jobs_new() - begin a pass over the samples. Answers of an analyser other than
 * @analyser_version count as missing. @db is borrowed until jobs_free(). */
struct err *jobs_new(struct db *db, uint32_t analyser_version, struct jobs **ret_jobs);
void jobs_free(struct jobs *jobs); /* NULL is fine */
CLEANUP_DEFINE(jobs_free, struct jobs *)

/**
 * jobs_step() - look on, a batch of rows (some ms); it only reads.
 * @ret_sites: room for @room of the caller's. @ret_count: how many were filled; often
 *	none, since all accesses are summed up before the first one is handed out.
 * @ret_done: the pass is over.
 * Order: accesses, most sampled first, then frames of stacks.
 */
struct err *jobs_step(struct jobs *jobs, struct jobs_site *ret_sites, size_t room,
		      size_t *ret_count, bool *ret_done);

/* jobs_retry() - forget the "no-debug" answers and unresolved symbols of a module,
 * because its debug information has arrived. */
struct err *jobs_retry(struct db *db, uint64_t module_id);

#endif
