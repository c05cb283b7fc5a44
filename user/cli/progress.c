// SPDX-License-Identifier: Apache-2.0
#include "cli/progress.h"

#include <stdio.h>
#include <unistd.h>

#include "core/file.h"

#define TERMINAL_STEP_NS 200000000ull
#define PLAIN_STEP_NS	 10000000000ull

void progress_begin(struct progress *progress, const char *what, bool quiet)
{
	uint64_t now = clock_ns();

	*progress = (struct progress){ .what = what,
				       .quiet = quiet,
				       .terminal = isatty(STDERR_FILENO),
				       .start_ns = now,
				       .next_ns = now + PROGRESS_AFTER_NS };
}

/* As if what is left went at the pace so far. */
static uint64_t seconds_left(const struct progress *progress, uint64_t now, uint64_t done,
			     uint64_t total)
{
	double pace = done ? (double)(now - progress->start_ns) / (double)done : 0;

	return total > done ? (uint64_t)(pace * (double)(total - done) / 1e9 + 0.5) : 0;
}

void progress_show(struct progress *progress, uint64_t done, uint64_t total,
		   const char *unit)
{
	uint64_t now = clock_ns();
	const char *begin = progress->terminal ? "\r\033[K" : "";
	const char *end = progress->terminal ? "" : "\n";

	if (progress->quiet || now < progress->next_ns)
		return;
	progress->next_ns = now + (progress->terminal ? TERMINAL_STEP_NS : PLAIN_STEP_NS);
	progress->shown = true;
	if (total)
		fprintf(stderr, "%s%s: %llu of %llu %s, %llu s left%s", begin,
			progress->what, (unsigned long long)done,
			(unsigned long long)total, unit,
			(unsigned long long)seconds_left(progress, now, done, total),
			end);
	else
		fprintf(stderr, "%s%s: %llu s%s", begin, progress->what,
			(unsigned long long)((now - progress->start_ns) / 1000000000u),
			end);
}

void progress_end(struct progress *progress)
{
	if (progress->shown && progress->terminal)
		fputs("\r\033[K", stderr);
	progress->shown = false;
}
