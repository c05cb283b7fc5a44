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
		fprintf(stderr, "%s%s: %llu of %llu %s%s", begin, progress->what,
			(unsigned long long)done, (unsigned long long)total, unit, end);
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
