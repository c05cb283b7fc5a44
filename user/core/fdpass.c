// SPDX-License-Identifier: Apache-2.0
#include "core/fdpass.h"

#include <errno.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

union control {
	struct cmsghdr align;
	char bytes[CMSG_SPACE(FDPASS_MAX_FDS * sizeof(int))];
};

struct err *fdpass_pair(int ret_fds[2])
{
	if (socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ret_fds))
		return err_errno(errno, "socketpair");
	return NULL;
}

struct err *fdpass_send(int socket, const void *bytes, size_t length, const int *fds,
			size_t fd_count)
{
	struct iovec iov = { .iov_base = (void *)bytes, .iov_len = length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };
	union control control;

	if (length > FDPASS_MAX_BYTES || fd_count > FDPASS_MAX_FDS)
		return err_new(ERR_LIMIT, "message of %zu bytes and %zu descriptors",
			       length, fd_count);
	if (fd_count) {
		memset(&control, 0, sizeof(control));
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(fd_count * sizeof(int));
		struct cmsghdr *head = CMSG_FIRSTHDR(&msg);

		head->cmsg_level = SOL_SOCKET;
		head->cmsg_type = SCM_RIGHTS;
		head->cmsg_len = CMSG_LEN(fd_count * sizeof(int));
		memcpy(CMSG_DATA(head), fds, fd_count * sizeof(int));
	}
	while (sendmsg(socket, &msg, MSG_NOSIGNAL) < 0)
		if (errno != EINTR)
			return err_errno(errno, "send");
	return NULL;
}

static size_t take_fds(struct msghdr *msg, int *fds)
{
	size_t count = 0;

	for (struct cmsghdr *head = CMSG_FIRSTHDR(msg); head;
	     head = CMSG_NXTHDR(msg, head)) {
		if (head->cmsg_level != SOL_SOCKET || head->cmsg_type != SCM_RIGHTS)
			continue;
		size_t more = (head->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		memcpy(fds + count, CMSG_DATA(head), more * sizeof(int));
		count += more;
	}
	return count;
}

struct err *fdpass_recv(int socket, void *bytes, size_t room, size_t *ret_length,
			int *fds, size_t *ret_fd_count)
{
	struct iovec iov = { .iov_base = bytes, .iov_len = room };
	union control control;
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t got;

	while ((got = recvmsg(socket, &msg, MSG_CMSG_CLOEXEC)) < 0)
		if (errno != EINTR)
			return err_errno(errno, "receive");
	size_t count = take_fds(&msg, fds);

	if (got == 0 || (msg.msg_flags & (MSG_TRUNC | MSG_CTRUNC))) {
		for (size_t i = 0; i < count; i++)
			close(fds[i]);
		return got ? err_new(ERR_LIMIT, "message larger than %zu bytes", room)
			   : err_new(ERR_CLOSED, "closed by the other side");
	}
	*ret_length = (size_t)got;
	*ret_fd_count = count;
	return NULL;
}
