/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SPECTEST_H
#define CLI_SPECTEST_H

/* assay spec test: the probes of a spec on a live process, for a few seconds. */

#include "cli/cmd.h"
#include "cli/specs.h"

#define SPECTEST_NS	   5000000000ull
#define SPECTEST_SAMPLES   20
#define SPECTEST_MAX_FILES 64

/**
 * spectest_run() - attach to all files of process @pid that the spec is about, count,
 * detach, print. Needs root; errors are those of the loader.
 */
struct err *spectest_run(struct cli *cli, const struct spec *spec, const char *pid,
			 uint64_t for_ns);

#endif
