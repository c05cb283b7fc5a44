// SPDX-License-Identifier: Apache-2.0
/*
 * tool_recover [-d] BINARY [DEBUG [ALT]] - recover_all() as the scorer's TSV on stdout,
 * coverage, CPU seconds and peak memory on stderr. -d: debug information only.
 */
#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>

#include "types/recover.h"

static size_t by_verdict[VERDICTS];

static bool print(void *ctx, const struct answer *answer)
{
	(void)ctx;
	by_verdict[answer->verdict]++;
	if (verdict_is_claim(answer->verdict))
		printf("%lx\t%s\t%ld\t%s\t%.4f\t%s\n", answer->va, answer->type,
		       answer->offset, *answer->path ? answer->path : "-",
		       answer->confidence, verdict_name(answer->verdict));
	else
		printf("%lx\t-\t-\t-\t0\t%s\n", answer->va,
		       verdict_name(answer->verdict));
	return true;
}

int main(int argc, char **argv)
{
	int arg = argc > 1 && !strcmp(argv[1], "-d") ? 2 : 1;
	struct recover_options options = { .dwarf_only = arg == 2 };
	struct recover_files files = { -1, -1, -1 };
	CLEANUP(recover_close) struct recover *recover = NULL;
	struct err *err;
	struct rusage usage;
	size_t all = 0, claims = 0;

	if (arg >= argc)
		return 2;
	files.main_fd = open(argv[arg], O_RDONLY);
	if (arg + 1 < argc)
		files.debug_fd = open(argv[arg + 1], O_RDONLY);
	if (arg + 2 < argc)
		files.alt_fd = open(argv[arg + 2], O_RDONLY);
	err = recover_open(&files, &options, &recover);
	if (!err)
		err = recover_all(recover, print, NULL, NULL);
	if (err) {
		fprintf(stderr, "%s\n", err->text);
		err_free(err);
		return 1;
	}
	for (int v = 0; v < VERDICTS; v++) {
		all += by_verdict[v];
		claims += verdict_is_claim((enum verdict)v) ? by_verdict[v] : 0;
		if (by_verdict[v])
			fprintf(stderr, "%s %zu, ", verdict_name((enum verdict)v),
				by_verdict[v]);
	}
	getrusage(RUSAGE_SELF, &usage);

	/* a scalar or a byte buffer is typed, too; a spill or a constant is nobody's */
	size_t open_count = all - by_verdict[VERDICT_STACK] - by_verdict[VERDICT_SPILL] -
			    by_verdict[VERDICT_CANARY] - by_verdict[VERDICT_CONSTANT];
	size_t typed = claims + by_verdict[VERDICT_NOT_STRUCT];

	fprintf(stderr,
		"\nstructs %.1f%% of %zu; typed, stack and constants apart, %.1f%%; cpu %ld.%02ld s, rss %ld MB\n",
		all ? 100.0 * (double)claims / (double)all : 0, all,
		open_count ? 100.0 * (double)typed / (double)open_count : 0,
		usage.ru_utime.tv_sec + usage.ru_stime.tv_sec,
		(usage.ru_utime.tv_usec + usage.ru_stime.tv_usec) / 10000 % 100,
		usage.ru_maxrss / 1024);
	return 0;
}
