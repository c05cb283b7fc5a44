/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JOB_CHANNEL_H
#define JOB_CHANNEL_H

/*
 * Messages with file descriptors over a stream socket, used on both sides of the
 * sandbox. A message is 16 bytes of head and a payload; its descriptors travel as
 * SCM_RIGHTS with its first byte. Neither side trusts the other: sizes and counts are
 * checked, and whatever contradicts the format closes the channel.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "core/str.h"

#define CHANNEL_MAX_FDS	    4		       /* of one message */
#define CHANNEL_MAX_WAITING 64		       /* descriptors received, not yet taken */
#define CHANNEL_MAX_QUEUED  (64 * 1024 * 1024) /* bytes not yet written */

struct channel;

struct channel_message {
	uint16_t kind;
	bool more;
	uint64_t job;
	const void *payload; /* borrowed until the next channel_take() */
	size_t bytes;
	int fds[CHANNEL_MAX_FDS]; /* owned by who took the message; -1 behind the last */
};

struct channel *channel_new(int fd);	    /* takes @fd */
void channel_free(struct channel *channel); /* NULL is fine */
CLEANUP_DEFINE(channel_free, struct channel *)
int channel_fd(const struct channel *channel);

/* channel_frame() - append a message without descriptors as it travels. */
void channel_frame(const struct channel_message *message, struct str *out);

/**
 * channel_put() - queue a message. @message->fds are duplicated, payload is copied.
 * Errors: ERR_LIMIT when the queue is full or the payload too large, ERR_IO.
 */
struct err *channel_put(struct channel *channel, const struct channel_message *message);

/* channel_flush() - write what goes; @block: all of it. ERR_CLOSED, ERR_IO. */
struct err *channel_flush(struct channel *channel, bool block);
bool channel_wants_write(const struct channel *channel);

/* channel_fill() - read what is there; @block: wait for some. ERR_CLOSED at the end. */
struct err *channel_fill(struct channel *channel, bool block);

/**
 * channel_take() - the next complete message.
 * Return false when there is none yet. Errors: ERR_FORMAT, ERR_LIMIT.
 */
struct err *channel_take(struct channel *channel, struct channel_message *ret_message,
			 bool *ret_taken);

void channel_message_fini(struct channel_message *message); /* closes its descriptors */

#endif
