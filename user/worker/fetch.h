/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_FETCH_H
#define WORKER_FETCH_H

/*
 * Debug files from debuginfod servers. Nothing that arrives is parsed here: the answer
 * is a descriptor, to be checked and parsed by a worker without network.
 */

#include "core/err.h"
#include "job/message.h"

#define FETCH_MAX_SECONDS 600
#define FETCH_MAX_BYTES	  "2147483648"

/* fetch_prepare() - a private folder for downloads; before the sandbox. */
struct err *fetch_prepare(void);
void fetch_finish(void);
/* fetch_tidy() - remove the folders of workers that were killed; inside the sandbox, as
 * whose user they were made. */
void fetch_tidy(void);

/**
 * fetch_debug_file() - @fetch->urls: http and https only, separated by spaces.
 * @ret_fd: at its beginning, already unlinked; the caller's.
 * Errors: ERR_NOT_FOUND, ERR_INVALID (urls), ERR_LIMIT (size or time), ERR_IO.
 */
struct err *fetch_debug_file(const struct message_fetch *fetch, int *ret_fd);

#endif
