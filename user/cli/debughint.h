/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DEBUGHINT_H
#define CLI_DEBUGHINT_H

/* What to install when a file has no debug information. */

#include "model/ids.h"

/**
 * debughint() - one sentence, allocated: the file, its build-id and the package.
 * The package is asked of dpkg-query (no shell, a bounded answer, 5 s); none is named
 * when the file belongs to none.
 */
char *debughint(const char *path, const struct build_id *id);

/* debughint_archive() - how to enable Debian's debug archive; NULL when it is enabled or
 * this is no Debian. Allocated. */
char *debughint_archive(void);

/* debughint_package() - the debug package of the package in dpkg-query's answer
 * "redis-tools:amd64: /usr/bin/x"; NULL for none. Allocated. */
char *debughint_package(const char *answer);

#endif
