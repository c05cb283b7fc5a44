// SPDX-License-Identifier: Apache-2.0
/*
 * Each client has a line buffer and a reply buffer, both bounded; a client that sends
 * too long a line or leaves too much unread is closed. Nothing here blocks.
 */
#include "daemon/control.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include "core/mem.h"

struct client {
	struct control *control;
	int fd;
	struct str in, out;
	bool closing; /* once @out is written */
};

struct control {
	struct loop *loop;
	int listen_fd;
	control_fn answer;
	void *ctx;
	struct client *clients[CONTROL_MAX_CLIENTS];
};

static struct err *address_of(const char *path, struct sockaddr_un *ret_address)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	if (strlen(path) >= sizeof(address.sun_path))
		return err_new(ERR_LIMIT, "%s: longer than a socket path may be", path);
	strcpy(address.sun_path, path);
	*ret_address = address;
	return NULL;
}

static bool is_served(const struct sockaddr_un *address)
{
	CLEANUP(close) int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);

	return fd >= 0 &&
	       !connect(fd, (const struct sockaddr *)address, sizeof(*address));
}

struct err *control_listen(const char *path, int *ret_fd)
{
	struct sockaddr_un address;

	TRY(address_of(path, &address));
	if (is_served(&address))
		return err_new(ERR_BUSY, "%s: another assayd answers there", path);
	CLEANUP(close)
	int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC | SOCK_NONBLOCK, 0);

	if (fd < 0)
		return err_errno(errno, "socket");
	struct stat info;

	if (!lstat(path, &info)) {
		if (!S_ISSOCK(info.st_mode))
			return err_new(ERR_INVALID, "%s: is there and is no socket",
				       path);
		unlink(path);
	}
	mode_t mask = umask(0177);
	int failed = bind(fd, (const struct sockaddr *)&address, sizeof(address));
	int errnum = errno;

	umask(mask);
	if (failed)
		return err_errno(errnum, "bind %s", path);
	if (listen(fd, CONTROL_MAX_CLIENTS))
		return err_errno(errno, "listen on %s", path);
	*ret_fd = take_fd(&fd);
	return NULL;
}

bool control_peer_ok(uint32_t uid, uint32_t own_uid)
{
	return uid == 0 || uid == own_uid;
}

static void client_free(struct client *client)
{
	struct control *control = client->control;

	for (int i = 0; i < CONTROL_MAX_CLIENTS; i++)
		if (control->clients[i] == client)
			control->clients[i] = NULL;
	loop_del_fd(control->loop, client->fd);
	close(client->fd);
	str_fini(&client->in);
	str_fini(&client->out);
	free(client);
}

static void answer_line(struct client *client, const char *line, size_t bytes)
{
	/* Larger than a frame should be: 8 KiB of text. */
	struct command *command = mem_alloc(sizeof(*command));
	struct err *err = command_parse(line, bytes, command);

	if (err) {
		reply_error(&client->out, err);
		err_free(err);
	} else {
		client->control->answer(client->control->ctx, command, &client->out);
	}
	reply_done(&client->out);
	free(command);
}

static void answer_lines(struct client *client)
{
	char *newline;

	while (client->in.length &&
	       (newline = memchr(client->in.data, '\n', client->in.length))) {
		size_t used = (size_t)(newline - client->in.data) + 1;

		answer_line(client, client->in.data, used - 1);
		memmove(client->in.data, client->in.data + used,
			client->in.length - used);
		client->in.length -= used;
	}
	if (client->in.length < COMMAND_MAX_LINE)
		return;
	struct err *err =
		err_new(ERR_LIMIT, "line longer than %d bytes", COMMAND_MAX_LINE);

	reply_error(&client->out, err);
	reply_done(&client->out);
	err_free(err);
	client->closing = true;
}

/* Return false when the client is to be dropped. */
static bool read_some(struct client *client)
{
	char chunk[4096];
	ssize_t got = read(client->fd, chunk, sizeof(chunk));

	if (got < 0)
		return errno == EAGAIN || errno == EINTR;
	if (got == 0)
		return false;
	str_add_bytes(&client->in, chunk, (size_t)got);
	answer_lines(client);
	return client->out.length <= CONTROL_MAX_UNREAD;
}

static bool write_some(struct client *client)
{
	while (client->out.length) {
		ssize_t put = send(client->fd, client->out.data, client->out.length,
				   MSG_NOSIGNAL);

		if (put < 0)
			return errno == EAGAIN || errno == EINTR;
		memmove(client->out.data, client->out.data + put,
			client->out.length - (size_t)put);
		client->out.length -= (size_t)put;
	}
	return !client->closing;
}

static struct err *client_ready(void *ctx, int fd, uint32_t events)
{
	struct client *client = ctx;
	bool keep = true;

	if (events & (EPOLLIN | EPOLLHUP | EPOLLERR))
		keep = client->closing ? false : read_some(client);
	if (keep)
		keep = write_some(client);
	if (!keep) {
		client_free(client);
		return NULL;
	}
	return loop_mod_fd(client->control->loop, fd,
			   EPOLLIN | (client->out.length ? EPOLLOUT : 0));
}

static bool peer_allowed(int fd)
{
	struct ucred peer;
	socklen_t length = sizeof(peer);

	return !getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &length) &&
	       control_peer_ok(peer.uid, geteuid());
}

static struct err *accept_client(void *ctx, int listen_fd, uint32_t events)
{
	struct control *control = ctx;
	int slot = 0;

	(void)events;
	CLEANUP(close)
	int fd = accept4(listen_fd, NULL, NULL, SOCK_CLOEXEC | SOCK_NONBLOCK);

	while (slot < CONTROL_MAX_CLIENTS && control->clients[slot])
		slot++;
	if (fd < 0 || slot == CONTROL_MAX_CLIENTS || !peer_allowed(fd))
		return NULL; /* closed: not our business, or one too many */
	struct client *client = mem_alloc(sizeof(*client));

	client->control = control;
	client->fd = take_fd(&fd);
	control->clients[slot] = client;
	return loop_add_fd(control->loop, client->fd, EPOLLIN, client_ready, client);
}

struct err *control_new(struct loop *loop, int listen_fd, control_fn answer, void *ctx,
			struct control **ret_control)
{
	struct control *control = mem_alloc(sizeof(*control));

	*control = (struct control){
		.loop = loop, .listen_fd = listen_fd, .answer = answer, .ctx = ctx
	};
	struct err *err = loop_add_fd(loop, listen_fd, EPOLLIN, accept_client, control);

	if (err) {
		control_free(control);
		return err;
	}
	*ret_control = control;
	return NULL;
}

void control_free(struct control *control)
{
	if (!control)
		return;
	for (int i = 0; i < CONTROL_MAX_CLIENTS; i++)
		if (control->clients[i])
			client_free(control->clients[i]);
	loop_del_fd(control->loop, control->listen_fd);
	close(control->listen_fd);
	free(control);
}
