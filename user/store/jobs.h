/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_JOBS_H
#define STORE_JOBS_H

/*
 * What was sampled but not explained: after a restart, or when a newer analyser is
 * installed. During a run the daemon asks for what it sees; this finds the rest.
 */

#include <stddef.h>

#include "store/db.h"

#define JOBS_MAX 4096

struct jobs_site {
	uint64_t module_id, va;
	bool skid;	  /* a clock sample: the skid rule applies to the answer */
	bool want_symbol; /* no site row yet */
	bool want_answer; /* no answer of this analyser yet; false for stack frames */
	uint64_t samples;
};

struct jobs_query {
	uint64_t module_id;	   /* 0: every module */
	uint32_t analyser_version; /* answers of another one count as missing */
	size_t limit;		   /* 1..JOBS_MAX */
};

/**
 * jobs_next() - the most sampled addresses that lack a symbol or an answer.
 * @ret_sites: @query->limit entries of the caller's. @ret_count: how many were filled.
 * Addresses of one module come together. Frames of stacks follow the accesses.
 */
struct err *jobs_next(struct db *db, const struct jobs_query *query,
		      struct jobs_site *ret_sites, size_t *ret_count);

/* jobs_retry() - forget the "no-debug" answers and unresolved symbols of a module,
 * because its debug information has arrived. */
struct err *jobs_retry(struct db *db, uint64_t module_id);

#endif
