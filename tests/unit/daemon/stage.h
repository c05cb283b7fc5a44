/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_DAEMON_STAGE_H
#define TESTS_UNIT_DAEMON_STAGE_H

/*
 * An opener that serves prepared files, a worker played by the test over a socket, and
 * a sink and a feed that keep what they get.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/vec.h"
#include "daemon/jobs.h"
#include "daemon/opener.h"
#include "event/event.h"
#include "job/channel.h"
#include "job/message.h"
#include "model/sink.h"

struct served {
	enum open_what what;
	uint32_t pid;
	char path[96]; /* or "START-END" */
	int fd;
};

struct fed {
	struct event event;
	char path[96];
};

struct kept {
	struct fact fact;
	char text[160]; /* of a module: debug; of a function: its name */
	struct fact_frame frames[16];
};

struct stage {
	struct sink sink;
	struct opener opener;
	struct job_source jobs;
	struct job_client *client; /* NULL: no worker */
	struct channel *peer;
	VEC(struct served) files;
	VEC(struct fed) events;
	VEC(struct kept) facts;
	VEC(struct served) opened; /* what was asked for */
};

static inline void stage_key(const struct open_request *request, char *key, size_t room)
{
	if (request->what == OPEN_MAP_FILE || request->what == OPEN_CHILDREN)
		snprintf(key, room, "%llx-%llx", (unsigned long long)request->start,
			 (unsigned long long)request->end);
	else
		snprintf(key, room, "%s", request->path ? request->path : "");
}

static inline struct err *stage_open(void *ctx, const struct open_request *request,
				     int *ret_fd)
{
	struct stage *stage = ctx;
	struct served asked = { .what = request->what, .pid = request->pid };
	char name[64];

	stage_key(request, asked.path, sizeof(asked.path));
	vec_push(&stage->opened, asked);
	vec_each(&stage->files, file) {
		if (file->what != request->what || file->pid != request->pid ||
		    strcmp(file->path, asked.path) != 0)
			continue;
		snprintf(name, sizeof(name), "/proc/self/fd/%d", file->fd);
		*ret_fd = open(name, O_RDONLY | O_CLOEXEC);
		assert_true(*ret_fd >= 0);
		return NULL;
	}
	return err_new(ERR_NOT_FOUND, "not served");
}

/* Serve @text; the same @fd may be served under several names. Return its inode. */
static inline uint64_t stage_serve_fd(struct stage *stage, enum open_what what,
				      uint32_t pid, const char *path, int fd)
{
	struct served file = { .what = what, .pid = pid, .fd = fd };
	struct stat info;

	snprintf(file.path, sizeof(file.path), "%s", path);
	vec_push(&stage->files, file);
	assert_int_equal(fstat(fd, &info), 0);
	return info.st_ino;
}

static inline int stage_file(const char *text)
{
	int fd = memfd_create("served", MFD_CLOEXEC);

	assert_true(fd >= 0);
	assert_int_equal(write(fd, text, strlen(text)), (ssize_t)strlen(text));
	return fd;
}

static inline uint64_t stage_serve(struct stage *stage, enum open_what what, uint32_t pid,
				   const char *path, const char *text)
{
	return stage_serve_fd(stage, what, pid, path, stage_file(text));
}

static inline void stage_feed(void *ctx, struct event *event)
{
	struct stage *stage = ctx;
	struct fed fed = { .event = *event };
	CLEANUP(str_fini) struct str bytes = { 0 };
	struct event again;

	/* What the daemon makes itself must be a valid record too. */
	event_encode(event, &bytes);
	assert_null(event_decode(bytes.data, bytes.length, &again));
	snprintf(fed.path, sizeof(fed.path), "%s", event->path);
	vec_push(&stage->events, fed);
}

static inline void stage_put(struct sink *sink, const struct fact *fact)
{
	struct stage *stage = (struct stage *)sink;
	struct kept kept = { .fact = *fact };

	if (fact->kind == FACT_MODULE)
		snprintf(kept.text, sizeof(kept.text), "%s", fact->module.debug);
	if (fact->kind == FACT_FUNCTION)
		snprintf(kept.text, sizeof(kept.text), "%s", fact->function.name);
	if (fact->kind == FACT_STACK)
		for (size_t i = 0; i < fact->stack.count && i < 16; i++)
			kept.frames[i] = fact->stack.frames[i];
	vec_push(&stage->facts, kept);
}

static inline struct job_client *stage_client(void *ctx, enum job_class class)
{
	struct stage *stage = ctx;

	(void)class;
	return stage->client && job_alive(stage->client) ? stage->client : NULL;
}

static inline void stage_hire_as(struct stage *stage, enum job_class class)
{
	int fds[2];

	job_free(stage->client);
	channel_free(stage->peer);
	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	stage->client = job_adopt(class, fds[0]);
	stage->peer = channel_new(fds[1]);
}

static inline void stage_hire(struct stage *stage)
{
	stage_hire_as(stage, JOB_RESOLVE);
}

/* The worker dies; its jobs fail. */
static inline void stage_kill(struct stage *stage)
{
	channel_free(take(stage->peer));
	job_pump(stage->client);
	assert_false(job_alive(stage->client));
}

static inline struct stage *stage_new(void)
{
	struct stage *stage = mem_alloc(sizeof(*stage));

	stage->sink.put = stage_put;
	stage->opener = (struct opener){ stage_open, stage };
	stage->jobs = (struct job_source){ stage_client, stage };
	stage_hire(stage);
	return stage;
}

static inline void stage_free(struct stage *stage)
{
	job_free(stage->client);
	channel_free(stage->peer);
	vec_fini(&stage->files); /* descriptors go with the process */
	vec_fini(&stage->events);
	vec_fini(&stage->facts);
	vec_fini(&stage->opened);
	free(stage);
}

/* The next request that the worker gets; fails when there is none. */
static inline struct channel_message stage_request(struct stage *stage)
{
	struct channel_message message;
	bool taken = false;

	job_pump(stage->client);
	while (!taken) {
		assert_null(channel_take(stage->peer, &message, &taken));
		if (!taken)
			assert_null(channel_fill(stage->peer, true));
	}
	for (size_t i = 0; i < CHANNEL_MAX_FDS; i++)
		if (message.fds[i] >= 0)
			close(message.fds[i]);
	return message;
}

static inline bool stage_is_quiet(struct stage *stage)
{
	struct channel_message message;
	bool taken = false;

	job_pump(stage->client);
	err_free(channel_fill(stage->peer, false));
	assert_null(channel_take(stage->peer, &message, &taken));
	return !taken;
}

static inline void stage_say(struct stage *stage, uint64_t job, uint16_t kind,
			     struct str *payload)
{
	struct channel_message message = { .kind = kind,
					   .job = job,
					   .payload = payload->data,
					   .bytes = payload->length,
					   .fds = { -1, -1, -1, -1 } };

	assert_null(channel_put(stage->peer, &message));
	assert_null(channel_flush(stage->peer, true));
	str_fini(payload);
	job_pump(stage->client);
}

/* Answer the next request, which must be of this kind. Return its job number. */
static inline void stage_answer(struct stage *stage, const struct job_reply *reply)
{
	struct channel_message message = stage_request(stage);
	struct str payload = { 0 };

	assert_int_equal(message.kind, reply->kind);
	message_put_reply(&payload, reply);
	stage_say(stage, message.job, (uint16_t)reply->kind, &payload);
}

static inline void stage_refuse(struct stage *stage, enum err_code code)
{
	struct channel_message message = stage_request(stage);
	struct str payload = { 0 };
	struct err *err = err_new(code, "no");

	message_put_error(&payload, err);
	err_free(err);
	stage_say(stage, message.job, MESSAGE_ERROR, &payload);
}

/* An ELF file as the worker would describe it; @id is one byte, repeated. */
static inline struct job_reply stage_identity(uint8_t id, bool has_dwarf)
{
	struct job_reply reply = { .kind = JOB_IDENTIFY,
				   .identity = { .is_executable = true,
						 .has_dwarf = has_dwarf,
						 .soname = "",
						 .debuglink = "",
						 .altlink = "",
						 .segment_count = 1 } };

	reply.identity.segments[0] = (struct job_segment){ 0x1000, 0x1000, 0x5000 };
	reply.identity.build_id.size = id ? 20 : 0;
	memset(reply.identity.build_id.bytes, id, id ? 20 : 0);
	return reply;
}

static inline uint64_t stage_module_id(uint8_t id)
{
	struct build_id build_id = { .size = 20 };

	memset(build_id.bytes, id, 20);
	return module_id_of(&build_id);
}

CLEANUP_DEFINE(stage_free, struct stage *)

#endif
