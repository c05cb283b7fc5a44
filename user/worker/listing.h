/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_LISTING_H
#define WORKER_LISTING_H

/* Machine code as text, each instruction with its source line. */

#include <stdint.h>

#include "bin/symbol.h"
#include "core/arena.h"
#include "job/job.h"

#define LISTING_MAX_BYTES (4 * 1024 * 1024) /* texts and file names of one listing */

struct listing_range {
	uint64_t va, bytes;
};

/**
 * listing_make() - fill ret_reply->listing; strings live in @arena or are @symbols' own.
 * What exceeds JOB_MAX_LISTING or LISTING_MAX_BYTES is left out.
 * Errors: ERR_NOT_FOUND where the file has no code, ERR_UNSUPPORTED.
 */
struct err *listing_make(const struct elf_file *file, struct symbols *symbols,
			 struct arena *arena, const struct listing_range *range,
			 struct job_reply *ret_reply);

#endif
