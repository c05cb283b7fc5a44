// SPDX-License-Identifier: Apache-2.0
/*
 * The client: a queue of jobs that the worker does in order. Replies are matched by
 * number, and a reply that belongs to no job, or does not decode, ends the worker: one
 * that has been taken over by the file it parses gets no second chance.
 */
#include "job/job.h"

#include <errno.h>
#include <poll.h>
#include <signal.h>
#include <string.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/vec.h"
#include "job/channel.h"
#include "job/message.h"

struct pending {
	uint64_t job;
	enum job_kind kind;
	job_done_fn done;
	void *ctx;
	size_t asked;	   /* SYMBOLS: answers expected */
	uint64_t heard_ns; /* last sign of life while it was the first, 0 before */
};

struct job_client {
	enum job_class class;
	pid_t pid;		 /* 0: adopted */
	struct channel *channel; /* NULL once dead */
	struct arena *arena;
	uint64_t next_job, wall_ns;
	VEC(struct pending) pending; /* oldest first */
	bool in_callback;
};

struct job_client *job_adopt(enum job_class class, int fd)
{
	struct job_client *client = mem_alloc(sizeof(*client));

	client->class = class;
	client->channel = channel_new(fd);
	client->arena = arena_new();
	client->next_job = 1;
	client->wall_ns = job_limits(class).wall_seconds * 1000000000ull;
	return client;
}

struct err *job_spawn(enum job_class class, const struct job_options *options,
		      struct job_client **ret_client)
{
	pid_t pid;
	int fd;

	TRY(job_spawn_fd(class, options, &fd, &pid));
	*ret_client = job_adopt(class, fd);
	(*ret_client)->pid = pid;
	if (options && options->wall_seconds)
		(*ret_client)->wall_ns = options->wall_seconds * 1000000000ull;
	return NULL;
}

/* Its socket is closed already: a worker at rest ends by itself, and the one that
 * fetches has a folder to remove. */
static pid_t reap(struct job_client *client, int *ret_status)
{
	const struct timespec pause = { .tv_nsec = 2000000 };
	pid_t got = 0;

	for (int i = 0; client->class == JOB_FETCH && i < 100 && got == 0; i++) {
		got = waitpid(client->pid, ret_status, WNOHANG);
		if (got == 0)
			nanosleep(&pause, NULL);
	}
	if (got)
		return got;
	kill(client->pid, SIGKILL);
	do {
		got = waitpid(client->pid, ret_status, 0);
	} while (got < 0 && errno == EINTR);
	return got;
}

/* Return: why it ended, from its wait status. */
static struct err *cause_of_death(struct job_client *client)
{
	int status;

	if (!client->pid)
		return err_new(ERR_CLOSED, "the worker is gone");
	pid_t got = reap(client, &status);

	client->pid = 0;
	if (got < 0)
		return err_new(ERR_CLOSED, "the worker is gone");
	if (WIFEXITED(status) && WEXITSTATUS(status) == MESSAGE_EXIT_CPU)
		return err_new(ERR_LIMIT, "the worker used more CPU than one job may");
	if (WIFEXITED(status) && WEXITSTATUS(status) == MESSAGE_EXIT_MEMORY)
		return err_new(ERR_LIMIT, "the worker ran out of memory");
	if (WIFEXITED(status) && WEXITSTATUS(status) == MESSAGE_EXIT_SANDBOX)
		return err_new(ERR_UNSUPPORTED, "the worker could not enter its sandbox");
	if (WIFSIGNALED(status))
		return err_new(ERR_CLOSED, "the worker was ended by signal %d (%s)",
			       WTERMSIG(status), strsignal(WTERMSIG(status)));
	if (WEXITSTATUS(status) == 127)
		return err_new(ERR_CLOSED, "the worker did not start");
	return err_new(ERR_CLOSED, "the worker exited with status %d",
		       WEXITSTATUS(status));
}

/* The first job gets the cause; those behind it were never begun. */
static void fail_pending(struct job_client *client, struct err *cause)
{
	__typeof__(client->pending) failed = client->pending;

	memset(&client->pending, 0, sizeof(client->pending));
	vec_each(&failed, job)
		job->done(job->ctx,
			  job == failed.data
				  ? err_new(cause->code, "%s", cause->text)
				  : err_new(ERR_CLOSED, "not begun: %s", cause->text),
			  NULL);
	vec_fini(&failed);
	err_free(cause);
}

/* @why: what we hold against it, or NULL to take its wait status. Consumed. */
static void bury(struct job_client *client, struct err *why)
{
	if (!client->channel) {
		err_free(why);
		return;
	}
	channel_free(take(client->channel));
	struct err *cause = cause_of_death(client);

	if (why && why->code != ERR_CLOSED) {
		err_free(cause);
		cause = take(why);
	}
	err_free(why);
	fail_pending(client, cause);
}

void job_free(struct job_client *client)
{
	if (!client)
		return;
	bury(client, NULL);
	vec_fini(&client->pending);
	arena_free(client->arena);
	free(client);
}

int job_fd(const struct job_client *client)
{
	return client->channel ? channel_fd(client->channel) : -1;
}

bool job_wants_write(const struct job_client *client)
{
	return client->channel && channel_wants_write(client->channel);
}

bool job_alive(const struct job_client *client)
{
	return client->channel;
}

pid_t job_pid(const struct job_client *client)
{
	return client->pid;
}

size_t job_pending(const struct job_client *client)
{
	return client->pending.count;
}

static struct pending *find_pending(struct job_client *client, uint64_t job)
{
	vec_each(&client->pending, pending)
		if (pending->job == job)
			return pending;
	return NULL;
}

static struct pending take_pending(struct job_client *client, struct pending *pending)
{
	struct pending taken = *pending;
	size_t index = (size_t)(pending - client->pending.data);

	client->pending.count--;
	memmove(pending, pending + 1, (client->pending.count - index) * sizeof(*pending));
	return taken;
}

static bool may_stream(enum job_kind kind)
{
	return kind == JOB_SITES || kind == JOB_MODULE || kind == JOB_RECORDS ||
	       kind == JOB_DISCOVER;
}

static struct err *check_reply(const struct pending *pending,
			       const struct channel_message *message,
			       const struct job_reply *reply)
{
	if (message->kind != pending->kind)
		return err_new(ERR_FORMAT, "reply %u to a job of kind %d", message->kind,
			       pending->kind);
	if (message->more && !may_stream(pending->kind))
		return err_new(ERR_FORMAT, "several replies to one job");
	if ((message->fds[0] >= 0) != (pending->kind == JOB_DEBUG_FILE))
		return err_new(ERR_FORMAT, "a reply with the wrong descriptors");
	if (pending->kind == JOB_SYMBOLS && reply->symbols.count != pending->asked)
		return err_new(ERR_FORMAT, "%zu symbols for %zu addresses",
			       reply->symbols.count, pending->asked);
	return NULL;
}

static struct err *deliver(struct job_client *client, struct channel_message *message)
{
	struct wire in = { .data = message->payload, .size = message->bytes };
	struct pending *pending = find_pending(client, message->job);
	struct job_reply reply = { .more = message->more };
	struct err *failure = NULL;

	if (message->kind == MESSAGE_READY)
		return NULL;
	if (!pending)
		return err_new(ERR_FORMAT, "a reply to no job");
	arena_reset(client->arena);
	if (message->kind == MESSAGE_ERROR) {
		failure = message_read_error(&in);
	} else {
		TRY(message_read_reply(&in, client->arena, message->kind, &reply));
		TRY(check_reply(pending, message, &reply));
	}
	/* Copied: the callback may add jobs, which moves the vector. */
	struct pending job = *pending;

	pending->heard_ns = clock_ns();
	if (failure || !message->more)
		take_pending(client, pending);
	if (!failure && message->kind == JOB_DEBUG_FILE)
		reply.fd = take_fd(&message->fds[0]);
	job.done(job.ctx, failure, failure ? NULL : &reply);
	return NULL;
}

static struct err *receive(struct job_client *client)
{
	struct err *end = channel_fill(client->channel, false);

	/* What arrived before the end still counts. */
	while (!end || end->code == ERR_CLOSED) {
		struct channel_message message;
		bool taken;
		struct err *err = channel_take(client->channel, &message, &taken);

		if (!err && !taken)
			break;
		if (!err) {
			err = deliver(client, &message);
			channel_message_fini(&message);
		}
		if (err) {
			err_free(end);
			return err;
		}
	}
	return end;
}

static struct err *check_hung(struct job_client *client)
{
	if (!client->pending.count)
		return NULL;
	struct pending *first = &client->pending.data[0];
	uint64_t now_ns = clock_ns();

	if (!first->heard_ns)
		first->heard_ns = now_ns;
	if (now_ns - first->heard_ns < client->wall_ns)
		return NULL;
	return err_new(ERR_LIMIT, "the worker was silent for %llu s",
		       (unsigned long long)(client->wall_ns / 1000000000ull));
}

void job_pump(struct job_client *client)
{
	if (!client->channel || client->in_callback)
		return;
	client->in_callback = true;
	struct err *err = channel_flush(client->channel, false);
	struct err *end = receive(client);

	/* A closed write side tells less than what can still be read. */
	if (end && (!err || end->code != ERR_CLOSED)) {
		err_free(err);
		err = end;
	} else {
		err_free(end);
	}
	if (!err)
		err = channel_flush(client->channel, false);
	if (!err)
		err = check_hung(client);
	if (err)
		bury(client, err);
	client->in_callback = false;
}

struct err *job_wait(struct job_client *client, int timeout_ms)
{
	uint64_t end_ns = clock_ns() + (uint64_t)timeout_ms * 1000000ull;

	while (client->channel && client->pending.count) {
		uint64_t now_ns = clock_ns();
		uint64_t left_ms = 1000;

		if (timeout_ms >= 0) {
			if (now_ns >= end_ns)
				return err_new(ERR_LIMIT,
					       "%zu jobs still pending after %d ms",
					       client->pending.count, timeout_ms);
			left_ms = (end_ns - now_ns + 999999) / 1000000;
		}
		struct pollfd poll_fd = { .fd = job_fd(client), .events = POLLIN };

		if (job_wants_write(client))
			poll_fd.events |= POLLOUT;
		poll(&poll_fd, 1, left_ms < 1000 ? (int)left_ms : 1000);
		job_pump(client);
	}
	return NULL;
}

struct request {
	uint16_t kind;
	struct str payload;
	int fds[CHANNEL_MAX_FDS]; /* from the front, -1 behind */
	size_t asked;
};

static struct err *check_room(const struct job_client *client)
{
	if (!client->channel)
		return err_new(ERR_CLOSED, "the worker is gone");
	if (client->pending.count >= JOB_MAX_PENDING)
		return err_new(ERR_LIMIT, "%d jobs are pending", JOB_MAX_PENDING);
	return NULL;
}

/* Consumes the payload. */
static struct err *start(struct job_client *client, struct request *request,
			 job_done_fn done, void *ctx)
{
	struct channel_message message = { .kind = request->kind,
					   .job = client->next_job,
					   .payload = request->payload.data,
					   .bytes = request->payload.length };

	memcpy(message.fds, request->fds, sizeof(message.fds));
	struct err *err = channel_put(client->channel, &message);

	str_fini(&request->payload);
	TRY(err);
	if (done)
		vec_push(&client->pending,
			 ((struct pending){ .job = client->next_job,
					    .kind = (enum job_kind)request->kind,
					    .done = done,
					    .ctx = ctx,
					    .asked = request->asked }));
	client->next_job++;
	/* A worker that just died is found out about by the next job_pump(). */
	err_free(channel_flush(client->channel, false));
	return NULL;
}

#define NO_FDS                 \
	{                      \
		-1, -1, -1, -1 \
	}

struct err *job_identify(struct job_client *client, int fd, job_done_fn done, void *ctx)
{
	struct request request = { .kind = JOB_IDENTIFY, .fds = { fd, -1, -1, -1 } };

	TRY(check_room(client));
	return start(client, &request, done, ctx);
}

struct err *job_open(struct job_client *client, const struct job_open *open)
{
	struct request request = { .kind = MESSAGE_OPEN, .fds = NO_FDS };
	const int given[] = { open->main_fd, open->debug_fd, open->alt_fd,
			      open->kallsyms_fd, open->keeps ? open->pack_fd : -1 };
	size_t count = 0;

	TRY(check_room(client));
	message_put_open(
		&request.payload,
		&(struct message_open){ .module_id = open->module_id,
					.slide = open->slide,
					.has_main = open->main_fd >= 0,
					.has_debug = open->debug_fd >= 0,
					.has_alt = open->alt_fd >= 0,
					.has_kallsyms = open->kallsyms_fd >= 0,
					.keeps = open->keeps,
					.has_pack = open->keeps && open->pack_fd >= 0 });
	for (size_t i = 0; i < sizeof(given) / sizeof(*given); i++) {
		if (given[i] >= 0 && count == CHANNEL_MAX_FDS)
			return err_new(ERR_INVALID, "too many files of one module");
		if (given[i] >= 0)
			request.fds[count++] = given[i];
	}
	return start(client, &request, NULL, NULL);
}

struct err *job_symbols(struct job_client *client, uint64_t module_id,
			const uint64_t *vas, size_t count, job_done_fn done, void *ctx)
{
	struct request request = { .kind = JOB_SYMBOLS, .fds = NO_FDS, .asked = count };

	TRY(check_room(client));
	if (count > MESSAGE_MAX_VAS)
		return err_new(ERR_LIMIT, "%zu addresses in one job, the limit is %d",
			       count, MESSAGE_MAX_VAS);
	message_put_vas(&request.payload, &(struct message_vas){ module_id, vas, count });
	return start(client, &request, done, ctx);
}

struct err *job_unwind(struct job_client *client, const struct job_range *ranges,
		       size_t range_count, const struct job_stack *stack,
		       job_done_fn done, void *ctx)
{
	struct request request = { .kind = JOB_UNWIND, .fds = NO_FDS };

	TRY(check_room(client));
	if (range_count > MESSAGE_MAX_RANGES)
		return err_new(ERR_LIMIT, "%zu mappings, the limit is %d", range_count,
			       MESSAGE_MAX_RANGES);
	if (stack->byte_count > MESSAGE_MAX_STACK)
		return err_new(ERR_LIMIT, "%zu bytes of stack, the limit is %d",
			       stack->byte_count, MESSAGE_MAX_STACK);
	message_put_unwind(&request.payload,
			   &(struct message_unwind){ ranges, range_count, *stack });
	return start(client, &request, done, ctx);
}

struct err *job_sites(struct job_client *client, uint64_t module_id,
		      const struct job_site *sites, size_t count, job_done_fn done,
		      void *ctx)
{
	struct request request = { .kind = JOB_SITES, .fds = NO_FDS };

	TRY(check_room(client));
	if (count > JOB_MAX_SITES)
		return err_new(ERR_LIMIT, "%zu addresses in one job, the limit is %d",
			       count, JOB_MAX_SITES);
	message_put_sites(&request.payload,
			  &(struct message_sites){ module_id, sites, count });
	return start(client, &request, done, ctx);
}

struct err *job_module(struct job_client *client, uint64_t module_id, job_done_fn done,
		       void *ctx)
{
	struct request request = { .kind = JOB_MODULE, .fds = NO_FDS };

	TRY(check_room(client));
	message_put_vas(&request.payload, &(struct message_vas){ module_id, NULL, 0 });
	return start(client, &request, done, ctx);
}

struct err *job_module_part(struct job_client *client, uint64_t module_id, uint32_t index,
			    uint32_t count, job_done_fn done, void *ctx)
{
	struct request request = { .kind = JOB_MODULE, .fds = NO_FDS };
	const uint64_t part[2] = { index, count };

	TRY(check_room(client));
	message_put_vas(&request.payload, &(struct message_vas){ module_id, part, 2 });
	return start(client, &request, done, ctx);
}

struct err *job_listing(struct job_client *client, uint64_t module_id, uint64_t va,
			uint64_t bytes, job_done_fn done, void *ctx)
{
	struct request request = { .kind = JOB_LISTING, .fds = NO_FDS };
	const uint64_t range[2] = { va, bytes };

	TRY(check_room(client));
	message_put_vas(&request.payload, &(struct message_vas){ module_id, range, 2 });
	return start(client, &request, done, ctx);
}

struct err *job_probes(struct job_client *client, const struct resolve_request *request,
		       job_done_fn done, void *ctx)
{
	struct request message = { .kind = JOB_PROBES, .fds = NO_FDS };

	TRY(check_room(client));
	if (request->count > RESOLVE_MAX_PROBES)
		return err_new(ERR_LIMIT, "%zu probes in one job, the limit is %d",
			       request->count, RESOLVE_MAX_PROBES);
	resolve_put_request(&message.payload, request);
	return start(client, &message, done, ctx);
}

struct err *job_records(struct job_client *client, int fd, job_done_fn done, void *ctx)
{
	struct request request = { .kind = JOB_RECORDS, .fds = { fd, -1, -1, -1 } };

	TRY(check_room(client));
	return start(client, &request, done, ctx);
}

struct err *job_discover(struct job_client *client, uint64_t module_id, job_done_fn done,
			 void *ctx)
{
	struct request request = { .kind = JOB_DISCOVER, .fds = NO_FDS };

	TRY(check_room(client));
	message_put_vas(&request.payload, &(struct message_vas){ module_id, NULL, 0 });
	return start(client, &request, done, ctx);
}

struct err *job_debug_file(struct job_client *client, const char *urls,
			   const struct build_id *id, job_done_fn done, void *ctx)
{
	struct request request = { .kind = JOB_DEBUG_FILE, .fds = NO_FDS };

	TRY(check_room(client));
	if (client->class != JOB_FETCH)
		return err_new(ERR_INVALID, "only a fetch worker has the network");
	if (strlen(urls) >= WIRE_MAX_STRING)
		return err_new(ERR_LIMIT, "the list of debuginfod servers is too long");
	message_put_fetch(&request.payload, &(struct message_fetch){ urls, *id });
	return start(client, &request, done, ctx);
}
