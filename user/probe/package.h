/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_PACKAGE_H
#define PROBE_PACKAGE_H

/* Which Debian package a file belongs to, and its version, from dpkg's own files. */

#include "core/err.h"

#define PACKAGE_MAX_STATUS (64 * 1024 * 1024)
#define PACKAGE_STATUS	   "/var/lib/dpkg/status"
#define PACKAGE_MAX_LIST   (16 * 1024 * 1024)
#define PACKAGE_MAX_LISTS  65536

/**
 * package_find() - @root: "" or like "/proc/1/root"; @path: below it, absolute.
 * Reads every list of files there: some 50 ms on a large system, so ask only when a spec
 * wants it. Both answers allocated, "" when no package owns the file.
 */
void package_find(const char *root, const char *path, char **ret_name,
		  char **ret_version);

#endif
