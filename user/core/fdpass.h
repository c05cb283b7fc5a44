/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_FDPASS_H
#define CORE_FDPASS_H

/* Messages with file descriptors over a SOCK_SEQPACKET pair: one send, one message. */

#include <stddef.h>

#include "core/err.h"

#define FDPASS_MAX_BYTES (64 * 1024)
#define FDPASS_MAX_FDS	 128 /* the kernel's SCM_MAX_FD is 253 */

struct err *fdpass_pair(int ret_fds[2]);

/* fdpass_send() - the caller keeps its descriptors. ERR_CLOSED when the peer is gone. */
struct err *fdpass_send(int socket, const void *bytes, size_t length, const int *fds,
			size_t fd_count);

/**
 * fdpass_recv() - one message; descriptors arrive with FD_CLOEXEC.
 * @fds: room for FDPASS_MAX_FDS; those received are the caller's to close.
 * Errors: ERR_CLOSED at the end, ERR_LIMIT for a message larger than @room.
 */
struct err *fdpass_recv(int socket, void *bytes, size_t room, size_t *ret_length,
			int *fds, size_t *ret_fd_count);

#endif
