/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_PROGRESS_H
#define CLI_PROGRESS_H

/*
 * A sign of life on standard error for what takes longer than PROGRESS_AFTER_NS: one
 * line that is rewritten on a terminal, a new line now and then elsewhere.
 */

#include <stdbool.h>
#include <stdint.h>

#define PROGRESS_AFTER_NS 2000000000ull

struct progress {
	const char *what; /* "sampling pid 12"; borrowed */
	bool quiet, terminal, shown;
	uint64_t start_ns, next_ns;
};

void progress_begin(struct progress *progress, const char *what, bool quiet);
/* progress_show() - @done of @total, in @unit ("s", "functions"); 0 of 0: just time. */
void progress_show(struct progress *progress, uint64_t done, uint64_t total,
		   const char *unit);
/* progress_end() - wipe the line. */
void progress_end(struct progress *progress);

#endif
