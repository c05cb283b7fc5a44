/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CONTROL_H
#define DAEMON_CONTROL_H

/*
 * The control socket: model/command.h spoken over AF_UNIX. Root's, mode 0600; the peer's
 * credentials are checked besides, so that a loosened file mode opens nothing.
 */

#include "core/cleanup.h"
#include "core/loop.h"
#include "core/str.h"
#include "model/command.h"

#define CONTROL_MAX_CLIENTS 16
#define CONTROL_MAX_UNREAD  (4 * 1024 * 1024) /* reply bytes a client may leave unread */

struct control;

/* control_listen() - bind @path before privileges are dropped; a dead daemon's socket is
 * replaced, a living one's is ERR_BUSY. */
struct err *control_listen(const char *path, int *ret_fd);

/* control_fn - answer one command: append reply lines, without the end line. */
typedef void (*control_fn)(void *ctx, const struct command *command, struct str *reply);

/* control_new() - serve @listen_fd (taken) on @loop. */
struct err *control_new(struct loop *loop, int listen_fd, control_fn answer, void *ctx,
			struct control **ret_control);
void control_free(struct control *control); /* NULL is fine */
CLEANUP_DEFINE(control_free, struct control *)

/* control_peer_ok() - may a process of @uid command us? Root, and who we run as. */
bool control_peer_ok(uint32_t uid, uint32_t own_uid);

#endif
