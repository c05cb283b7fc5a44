/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SHARES_H
#define CLI_SHARES_H

/* One analysis by several workers, which looks like that of one. */

#include <stdio.h>

#include "cli/modfiles.h"
#include "job/job.h"

#define SHARES_MAX 64

struct shares_job {
	struct job_client *first; /* has the module open as @module_id already */
	const struct modfiles *files;
	uint64_t module_id;
	uint32_t count; /* workers, the first included */
	bool keeps;	/* as in struct job_open, for the others */
	int pack_fd;
	FILE **file;	  /* where @done prints: replaced meanwhile, so that the output
			 * comes in order of addresses */
	job_done_fn done; /* of each reply; progress and stats are sums over all */
	void *ctx;
};

/**
 * shares_run() - start the other workers, wait for all.
 * The error of a worker goes to @done, as with one; what comes back here is that of
 * starting them. ERR_CLOSED when the user interrupts.
 */
struct err *shares_run(const struct shares_job *job);

#endif
