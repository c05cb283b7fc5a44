/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_HAND_H
#define DAEMON_HAND_H

/*
 * The broker's policy for files: which ones it opens for a daemon that may have been
 * taken over. Named /proc and /sys entries, and ELF files; never an arbitrary path.
 */

#include "daemon/opener.h"

/**
 * hand_open() - open what @request means, with the broker's privileges.
 * Regular files are handed out only when they begin with the ELF magic, so that no
 * request reaches a key, a shadow file or a database.
 * Errors: as in daemon/opener.h.
 */
struct err *hand_open(const struct open_request *request, int *ret_fd);

/* hand_path() - the path that a request means, allocated; ERR_INVALID when it means none
 * that may be opened. OPEN_ROOT_PATH: the root folder, to be searched from with @path. */
struct err *hand_path(const struct open_request *request, char **ret_path);

#endif
