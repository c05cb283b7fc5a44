/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_PRIVILEGE_H
#define DAEMON_PRIVILEGE_H

/* Giving up: what the daemon process does before it reads the first event. */

#include <stdbool.h>

#include "core/err.h"

/**
 * privilege_folder() - make sure that the folder of @file exists, as the broker.
 * A folder made here belongs to @user ("" or NULL: to the caller).
 */
struct err *privilege_folder(const char *file, const char *user);

/**
 * privilege_drop() - no capability in any set, no way to get one back.
 * @user: become this user first. "" or NULL: the owner of the folder of @file when that is
 *	somebody else than root, so that what we write belongs to who keeps it; otherwise
 *	stay who we are. uid 0 without capabilities is still bound by file modes.
 */
struct err *privilege_drop(const char *user, const char *file);

/* privilege_missing() - names of the capabilities that sampling needs and we lack,
 * "CAP_BPF, CAP_PERFMON"; NULL when all are there. Allocated. */
char *privilege_missing(void);

#endif
