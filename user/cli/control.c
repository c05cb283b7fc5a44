// SPDX-License-Identifier: Apache-2.0
/*
 * One request at a time on a stream socket. The reply is bounded in the length of a
 * line and in lines; a daemon that says nothing is given up after the timeout.
 */
#include "cli/control.h"

#include <errno.h>
#include <poll.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>

#include "core/mem.h"

struct control {
	int fd;
	size_t filled, taken; /* of @buffer */
	char buffer[COMMAND_MAX_LINE];
	struct reply reply;
};

const char *control_path(const char *given)
{
	const char *env = getenv("ASSAY_SOCKET");

	if (given)
		return given;
	return env && *env ? env : COMMAND_SOCKET;
}

static struct err *explain_connect(int errnum, const char *path)
{
	if (errnum == ENOENT || errnum == ECONNREFUSED)
		return err_new(ERR_NOT_FOUND, "no daemon listens at %s", path);
	if (errnum == EACCES || errnum == EPERM)
		return err_new(ERR_PERMISSION,
			       "%s belongs to root: run assay as root to use the daemon",
			       path);
	return err_errno(errnum, "connect to %s", path);
}

struct err *control_open(const char *path, struct control **ret_control)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		return err_new(ERR_INVALID, "%s: too long for a socket's path", path);
	strcpy(address.sun_path, path);

	CLEANUP(control_close) struct control *control = mem_alloc(sizeof(*control));

	control->fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	if (control->fd < 0)
		return err_errno(errno, "socket");
	if (connect(control->fd, (struct sockaddr *)&address, sizeof(address)))
		return explain_connect(errno, path);
	*ret_control = take(control);
	return NULL;
}

void control_close(struct control *control)
{
	if (!control)
		return;
	if (control->fd >= 0)
		close(control->fd);
	free(control);
}

static struct err *send_line(struct control *control, const char *line)
{
	size_t left = strlen(line);

	if (left > COMMAND_MAX_LINE)
		return err_new(ERR_LIMIT, "request longer than %d bytes",
			       COMMAND_MAX_LINE);
	while (left) {
		ssize_t sent = send(control->fd, line, left, MSG_NOSIGNAL);

		if (sent < 0 && errno == EINTR)
			continue;
		if (sent < 0)
			return err_errno(errno, "daemon");
		line += sent;
		left -= (size_t)sent;
	}
	return NULL;
}

static struct err *fill(struct control *control, int timeout_ms)
{
	struct pollfd poller = { .fd = control->fd, .events = POLLIN };
	int ready = poll(&poller, 1, timeout_ms);

	if (ready < 0 && errno == EINTR)
		return err_new(ERR_CLOSED, "interrupted");
	if (ready < 0)
		return err_errno(errno, "poll");
	if (!ready)
		return err_new(ERR_LIMIT, "the daemon did not answer for %d s",
			       timeout_ms / 1000);
	ssize_t got = recv(control->fd, control->buffer + control->filled,
			   sizeof(control->buffer) - control->filled, 0);

	if (got < 0 && errno == EINTR)
		return NULL;
	if (got < 0)
		return err_errno(errno, "daemon");
	if (!got)
		return err_new(ERR_CLOSED, "the daemon hung up");
	control->filled += (size_t)got;
	return NULL;
}

/* The next whole line into control->reply. */
static struct err *next_reply(struct control *control, int timeout_ms)
{
	memmove(control->buffer, control->buffer + control->taken,
		control->filled - control->taken);
	control->filled -= control->taken;
	control->taken = 0;
	for (;;) {
		char *newline = memchr(control->buffer, '\n', control->filled);

		if (newline) {
			size_t bytes = (size_t)(newline - control->buffer);

			control->taken = bytes + 1;
			return err_wrap(
				reply_parse(control->buffer, bytes, &control->reply),
				"the daemon's reply");
		}
		if (control->filled == sizeof(control->buffer))
			return err_new(ERR_LIMIT,
				       "the daemon's reply: line longer than %d bytes",
				       COMMAND_MAX_LINE);
		TRY(fill(control, timeout_ms));
	}
}

struct err *control_ask(struct control *control, const char *line, int timeout_ms,
			control_reply_fn each, void *ctx)
{
	struct err *failure = NULL;

	TRY(send_line(control, line));
	for (size_t lines = 0; lines < COMMAND_MAX_REPLIES; lines++) {
		struct err *err = next_reply(control, timeout_ms);
		const struct reply *reply = &control->reply;

		if (!err && reply->kind == REPLY_END)
			return failure;
		if (!err && reply->kind == REPLY_OK && each && !failure)
			failure = each(ctx, &reply->args);
		if (!err && reply->kind == REPLY_ERR && !failure)
			failure = err_new(reply->code, "%s", reply->message);
		if (err) {
			err_free(failure);
			return err;
		}
	}
	err_free(failure);
	return err_new(ERR_LIMIT, "the daemon's reply has more than %d lines",
		       COMMAND_MAX_REPLIES);
}
