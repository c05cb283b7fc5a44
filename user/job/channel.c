// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel never merges bytes across SCM_RIGHTS boundaries in one recvmsg(), and
 * keeps descriptors in the order of the messages that carried them; so a queue of
 * descriptors and the count in each head suffice to hand them out.
 */
#include "job/channel.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/mem.h"
#include "core/vec.h"
#include "job/job.h"

#define READ_BYTES (64 * 1024)

struct head {
	uint32_t bytes; /* of the payload */
	uint16_t kind;
	uint8_t fd_count;
	uint8_t more;
	uint64_t job;
};
_Static_assert(sizeof(struct head) == 16, "head");

struct outgoing {
	char *data;
	size_t bytes, sent;
	int fds[CHANNEL_MAX_FDS];
	size_t fd_count;
};

struct channel {
	int fd;
	VEC(struct outgoing) queue; /* from @first */
	size_t first, queued_bytes;
	struct str in;
	size_t in_pos; /* taken already */
	VEC(int) fds;
};

union control {
	char bytes[CMSG_SPACE(sizeof(int) * CHANNEL_MAX_WAITING)];
	struct cmsghdr align;
};

struct channel *channel_new(int fd)
{
	struct channel *channel = mem_alloc(sizeof(*channel));

	channel->fd = fd;
	return channel;
}

static void outgoing_fini(struct outgoing *out)
{
	for (size_t i = 0; i < out->fd_count; i++)
		close(out->fds[i]);
	free(out->data);
	*out = (struct outgoing){ 0 };
}

void channel_free(struct channel *channel)
{
	if (!channel)
		return;
	for (size_t i = channel->first; i < channel->queue.count; i++)
		outgoing_fini(&channel->queue.data[i]);
	vec_each(&channel->fds, fd)
		close(*fd);
	vec_fini(&channel->queue);
	vec_fini(&channel->fds);
	str_fini(&channel->in);
	if (channel->fd >= 0)
		close(channel->fd);
	free(channel);
}

int channel_fd(const struct channel *channel)
{
	return channel->fd;
}

bool channel_wants_write(const struct channel *channel)
{
	return channel->first < channel->queue.count;
}

static struct head head_of(const struct channel_message *message, size_t fd_count)
{
	return (struct head){ .bytes = (uint32_t)message->bytes,
			      .kind = message->kind,
			      .fd_count = (uint8_t)fd_count,
			      .more = message->more,
			      .job = message->job };
}

void channel_frame(const struct channel_message *message, struct str *out)
{
	struct head head = head_of(message, 0);

	str_add_bytes(out, &head, sizeof(head));
	str_add_bytes(out, message->payload, message->bytes);
}

static void drop_sent(struct channel *channel)
{
	if (channel->first < 256 || channel->first < channel->queue.count / 2)
		return;
	channel->queue.count -= channel->first;
	memmove(channel->queue.data, channel->queue.data + channel->first,
		channel->queue.count * sizeof(channel->queue.data[0]));
	channel->first = 0;
}

struct err *channel_put(struct channel *channel, const struct channel_message *message)
{
	struct outgoing out = { .bytes = sizeof(struct head) + message->bytes };

	if (message->bytes > JOB_MAX_FRAME)
		return err_new(ERR_LIMIT, "a message of %zu bytes, the limit is %d",
			       message->bytes, JOB_MAX_FRAME);
	if (channel->queued_bytes + out.bytes > CHANNEL_MAX_QUEUED)
		return err_new(ERR_LIMIT, "%zu bytes wait to be written, the limit is %d",
			       channel->queued_bytes, CHANNEL_MAX_QUEUED);
	for (; out.fd_count < CHANNEL_MAX_FDS; out.fd_count++) {
		int given = message->fds[out.fd_count];

		if (given < 0)
			break;
		out.fds[out.fd_count] = fcntl(given, F_DUPFD_CLOEXEC, 3);
		if (out.fds[out.fd_count] < 0) {
			struct err *err = err_errno(errno, "dup");

			outgoing_fini(&out);
			return err;
		}
	}
	struct head head = head_of(message, out.fd_count);

	out.data = mem_alloc(out.bytes);
	memcpy(out.data, &head, sizeof(head));
	if (message->bytes)
		memcpy(out.data + sizeof(head), message->payload, message->bytes);
	channel->queued_bytes += out.bytes;
	drop_sent(channel);
	vec_push(&channel->queue, out);
	return NULL;
}

/* Return: bytes written, 0 when it would block, -1 on error. */
static ssize_t send_some(int fd, struct outgoing *out, bool block)
{
	union control control = { 0 };
	struct iovec iov = { out->data + out->sent, out->bytes - out->sent };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (out->fd_count) {
		msg.msg_control = control.bytes;
		msg.msg_controllen = CMSG_SPACE(sizeof(int) * out->fd_count);
		struct cmsghdr *cmsg = CMSG_FIRSTHDR(&msg);

		cmsg->cmsg_level = SOL_SOCKET;
		cmsg->cmsg_type = SCM_RIGHTS;
		cmsg->cmsg_len = CMSG_LEN(sizeof(int) * out->fd_count);
		memcpy(CMSG_DATA(cmsg), out->fds, sizeof(int) * out->fd_count);
	}
	ssize_t sent = sendmsg(fd, &msg, MSG_NOSIGNAL | (block ? 0 : MSG_DONTWAIT));

	if (sent < 0)
		return errno == EINTR || errno == EAGAIN ? 0 : -1;
	while (sent > 0 && out->fd_count)
		close(out->fds[--out->fd_count]);
	return sent;
}

struct err *channel_flush(struct channel *channel, bool block)
{
	while (channel_wants_write(channel)) {
		struct outgoing *out = &channel->queue.data[channel->first];
		ssize_t sent = send_some(channel->fd, out, block);

		if (sent < 0 && (errno == EPIPE || errno == ECONNRESET))
			return err_new(ERR_CLOSED, "the peer is gone");
		if (sent < 0)
			return err_errno(errno, "send");
		if (sent == 0 && !block)
			return NULL;
		out->sent += (size_t)sent;
		if (out->sent < out->bytes)
			continue;
		channel->queued_bytes -= out->bytes;
		outgoing_fini(out);
		channel->first++;
	}
	channel->first = 0;
	vec_clear(&channel->queue);
	return NULL;
}

static void take_fds(struct channel *channel, struct msghdr *msg)
{
	for (struct cmsghdr *cmsg = CMSG_FIRSTHDR(msg); cmsg;
	     cmsg = CMSG_NXTHDR(msg, cmsg)) {
		if (cmsg->cmsg_level != SOL_SOCKET || cmsg->cmsg_type != SCM_RIGHTS)
			continue;
		size_t count = (cmsg->cmsg_len - CMSG_LEN(0)) / sizeof(int);

		for (size_t i = 0; i < count; i++) {
			int fd;

			memcpy(&fd, CMSG_DATA(cmsg) + i * sizeof(fd), sizeof(fd));
			vec_push(&channel->fds, fd);
		}
	}
}

struct err *channel_fill(struct channel *channel, bool block)
{
	char data[READ_BYTES];
	union control control;
	struct iovec iov = { data, sizeof(data) };
	struct msghdr msg = { .msg_iov = &iov,
			      .msg_iovlen = 1,
			      .msg_control = control.bytes,
			      .msg_controllen = sizeof(control.bytes) };
	ssize_t got =
		recvmsg(channel->fd, &msg, MSG_CMSG_CLOEXEC | (block ? 0 : MSG_DONTWAIT));

	if (got < 0 && (errno == EAGAIN || errno == EINTR))
		return NULL;
	if (got == 0 || (got < 0 && errno == ECONNRESET))
		return err_new(ERR_CLOSED, "the peer is gone");
	if (got < 0)
		return err_errno(errno, "receive");
	take_fds(channel, &msg);
	if ((msg.msg_flags & MSG_CTRUNC) || channel->fds.count > CHANNEL_MAX_WAITING)
		return err_new(ERR_LIMIT, "more than %d descriptors at once",
			       CHANNEL_MAX_WAITING);
	str_add_bytes(&channel->in, data, (size_t)got);
	return NULL;
}

/* Forget what was taken before, unless the rest would be moved for little. */
static void compact(struct channel *channel)
{
	if (channel->in_pos == channel->in.length) {
		str_clear(&channel->in);
		channel->in_pos = 0;
	} else if (channel->in_pos > READ_BYTES &&
		   channel->in_pos > channel->in.length / 2) {
		channel->in.length -= channel->in_pos;
		memmove(channel->in.data, channel->in.data + channel->in_pos,
			channel->in.length);
		channel->in_pos = 0;
	}
}

struct err *channel_take(struct channel *channel, struct channel_message *ret_message,
			 bool *ret_taken)
{
	struct head head;

	*ret_taken = false;
	compact(channel);
	if (channel->in.length - channel->in_pos < sizeof(head))
		return NULL;
	memcpy(&head, channel->in.data + channel->in_pos, sizeof(head));
	if (head.bytes > JOB_MAX_FRAME)
		return err_new(ERR_LIMIT, "a message of %u bytes, the limit is %d",
			       head.bytes, JOB_MAX_FRAME);
	if (head.fd_count > CHANNEL_MAX_FDS)
		return err_new(ERR_FORMAT, "a message with %u descriptors",
			       head.fd_count);
	if (channel->in.length - channel->in_pos < sizeof(head) + head.bytes)
		return NULL;
	if (head.fd_count > channel->fds.count)
		return err_new(ERR_FORMAT, "descriptors are missing");
	*ret_message = (struct channel_message){
		.kind = head.kind,
		.more = head.more,
		.job = head.job,
		.payload = channel->in.data + channel->in_pos + sizeof(head),
		.bytes = head.bytes,
	};
	for (size_t i = 0; i < CHANNEL_MAX_FDS; i++)
		ret_message->fds[i] = i < head.fd_count ? channel->fds.data[i] : -1;
	if (head.fd_count) {
		channel->fds.count -= head.fd_count;
		memmove(channel->fds.data, channel->fds.data + head.fd_count,
			channel->fds.count * sizeof(int));
	}
	channel->in_pos += sizeof(head) + head.bytes;
	*ret_taken = true;
	return NULL;
}

void channel_message_fini(struct channel_message *message)
{
	for (size_t i = 0; i < CHANNEL_MAX_FDS; i++) {
		if (message->fds[i] >= 0)
			close(message->fds[i]);
		message->fds[i] = -1;
	}
}
