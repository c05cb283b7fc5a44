/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CONTROL_H
#define CLI_CONTROL_H

/* The asking side of the daemon's control socket; the language is model/command.h. */

#include <signal.h>

#include "core/cleanup.h"
#include "model/command.h"

#define CONTROL_TIMEOUT_MS 5000

struct control;

/* control_path() - @given, else $ASSAY_SOCKET, else COMMAND_SOCKET; borrowed. */
const char *control_path(const char *given);

/**
 * control_open() - connect.
 * Errors: ERR_NOT_FOUND (no socket there, or nobody listens), ERR_PERMISSION.
 */
struct err *control_open(const char *path, struct control **ret_control);
void control_close(struct control *control); /* NULL is fine */
CLEANUP_DEFINE(control_close, struct control *)

/* One ok line; args are borrowed during the call. */
typedef struct err *(*control_reply_fn)(void *ctx, const struct command_args *args);

/**
 * control_ask() - send one request and read its whole reply.
 * @line: as command_begin() .. command_end() made it.
 * @timeout_ms: without a byte from the daemon; -1 for ever.
 * Errors: what the daemon says, with its code; ERR_CLOSED, ERR_FORMAT, ERR_LIMIT (time).
 * The connection is of no further use after any but the daemon's own errors.
 */
struct err *control_ask(struct control *control, const char *line, int timeout_ms,
			control_reply_fn each, void *ctx);

#endif
