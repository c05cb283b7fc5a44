/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SOURCE_H
#define CLI_SOURCE_H

/*
 * Lines of source files, where these are still there and readable. Their names come from
 * debug information: only regular files are opened, and only text is given out.
 */

#include <stdint.h>

#include "core/cleanup.h"

#define SOURCE_MAX_BYTES \
	(16 * 1024 * 1024)   /* of one file; larger ones count as missing */
#define SOURCE_MAX_FILES 256 /* opened at all */

struct sources;

/**
 * sources_new() - @dir: where the sources are now, or NULL. A file is looked for there by
 * its whole name, then without one folder after the other from the front ("build/a/x.c",
 * "a/x.c", "x.c"), and at last at its own place. Borrowed.
 */
struct sources *sources_new(const char *dir);
void sources_free(struct sources *sources); /* NULL is fine */
CLEANUP_DEFINE(sources_free, struct sources *)

/* source_line() - allocated, without indentation and newline; NULL when there is none.
 * A relative @path is looked for in the folder of sources_new() only. */
char *source_line(struct sources *sources, const char *path, uint32_t line);

#endif
