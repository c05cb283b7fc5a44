/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JOB_CANDIDATES_H
#define JOB_CANDIDATES_H

/* Replies of the job that looks for resources in a module (discover/), as they travel. */

#include "core/arena.h"
#include "core/str.h"
#include "core/wire.h"
#include "model/candidate.h"

#define CANDIDATES_MAX_REPLY 256 /* in one reply */

struct job_candidates {
	const struct event_candidate *data;
	size_t count;
	uint64_t done, total; /* functions, for progress */
};

void candidates_put(struct str *out, const struct job_candidates *candidates);
/* candidates_read() - strings are borrowed from the message. A bad one marks @in. */
void candidates_read(struct wire *in, struct arena *arena,
		     struct job_candidates *ret_candidates);

#endif
