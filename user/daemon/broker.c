// SPDX-License-Identifier: Apache-2.0
/*
 * Both ends of the broker's protocol in one file, so that they change together. The
 * server trusts nothing that it reads: every field is bounded by core/wire.h, and what a
 * file request may name is hand.c's to decide.
 */
#include "daemon/broker.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fdpass.h"
#include "core/file.h"
#include "core/loop.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"
#include "core/wire.h"
#include "daemon/hand.h"
#include "daemon/segments.h"
#include "probe/closer.h"

#define BROKER_MAX_WORKERS     16
#define BROKER_MAX_ATTACHMENTS 1024

enum op {
	OP_START = 1,
	OP_STOP,
	OP_OPEN,
	OP_WORKER,
	OP_ATTACH,
	OP_DETACH,
	OP_CALIBRATE,
	OP_WALK,
	OPS
};

/* What an answer consists of; descriptors in @owned are closed once they are sent. */
struct answer_out {
	struct str bytes;
	int fds[PROBE_FD_MAX];
	size_t fd_count;
	bool owned;
};

struct attached {
	uint32_t id;
	struct attachment *attachment;
};

struct server {
	struct loop *loop;
	int rpc_fd, signal_fd;
	pid_t daemon_pid;
	const char *worker_path;
	struct loader *loader;
	struct closer *closer;
	VEC(struct attached) attached;
	uint32_t last_id;
	bool is_paused;
	int status;
	int file_fd; /* that came with the request, -1 none */
	char request[FDPASS_MAX_BYTES];
};

/* Requests in wire form, shared by both sides. */

static void put_config(struct str *out, const struct probe_config *config)
{
	wire_put_u32(out, config->sources);
	wire_put_u32(out, config->access_hz);
	wire_put_u32(out, config->tick_hz);
	wire_put_u64(out, config->ring_bytes);
	wire_put_u32(out, config->stack_bytes);
	wire_put_u8(out, config->no_access);
	wire_put_u8(out, config->no_ticks);
	wire_put_u8(out, config->no_probes);
	wire_put_u8(out, config->no_messages);
	wire_put_u8(out, config->no_walk);
	wire_put_u8(out, config->no_multi);
	wire_put_u32(out, (uint32_t)config->self_count);
	for (size_t i = 0; i < config->self_count; i++)
		wire_put_u32(out, config->self_pids[i]);
}

static void get_config(struct wire *in, struct probe_config *config)
{
	config->sources = wire_u32(in);
	config->access_hz = wire_u32(in);
	config->tick_hz = wire_u32(in);
	config->ring_bytes = wire_u64(in);
	config->stack_bytes = wire_u32(in);
	config->no_access = wire_u8(in);
	config->no_ticks = wire_u8(in);
	config->no_probes = wire_u8(in);
	config->no_messages = wire_u8(in);
	config->no_walk = wire_u8(in);
	config->no_multi = wire_u8(in);
	config->self_count = wire_count(in, PROBE_MAX_SELF, sizeof(uint32_t));
	for (size_t i = 0; i < config->self_count; i++)
		config->self_pids[i] = wire_u32(in);
}

/* The server. */

static void close_loader(struct server *server)
{
	vec_each(&server->attached, item)
		attach_close_by(item->attachment, server->closer);
	vec_clear(&server->attached);
	loader_close(server->loader);
	server->loader = NULL;
}

static struct err *do_start(struct server *server, struct wire *in,
			    struct answer_out *out)
{
	struct probe_config config = { 0 };

	get_config(in, &config);
	if (in->bad)
		return err_new(ERR_FORMAT, "start: short request");
	close_loader(server);
	TRY(loader_open(&config, &server->loader));

	const struct probe_fds *fds = loader_fds(server->loader);

	out->fd_count = fds->count;
	memcpy(out->fds, fds->fd, fds->count * sizeof(int));
	wire_put_u32(&out->bytes, (uint32_t)fds->count);
	wire_put_str(&out->bytes, loader_sources(server->loader));
	return NULL;
}

static struct err *do_stop(struct server *server, struct wire *in, struct answer_out *out)
{
	(void)in;
	(void)out;
	close_loader(server);
	return NULL;
}

static struct err *do_open(struct server *server, struct wire *in, struct answer_out *out)
{
	struct open_request request;

	(void)server;
	request.what = (enum open_what)wire_u32(in);
	request.pid = wire_u32(in);
	request.start_ns = wire_u64(in);
	request.start = wire_u64(in);
	request.end = wire_u64(in);
	request.path = wire_str(in);
	if (in->bad)
		return err_new(ERR_FORMAT, "open: short request");
	TRY(hand_open(&request, &out->fds[0]));
	out->fd_count = 1;
	out->owned = true;
	return NULL;
}

static struct err *do_worker(struct server *server, struct wire *in,
			     struct answer_out *out)
{
	struct job_options options = { .worker_path = server->worker_path };
	uint32_t class = wire_u32(in);

	if (in->bad || class > JOB_FETCH)
		return err_new(ERR_FORMAT, "worker: bad request");
	TRY(job_spawn_fd((enum job_class) class, &options, &out->fds[0], NULL));
	out->fd_count = 1;
	out->owned = true;
	return NULL;
}

static struct err *get_attach(struct wire *in, struct attach_point *points,
			      struct attach_request *request)
{
	request->pid = wire_u32(in);
	request->is_return = wire_u8(in);
	request->count = wire_count(in, ATTACH_MAX_POINTS, 20);
	request->points = points;
	for (size_t i = 0; i < request->count; i++) {
		points[i].offset = wire_u64(in);
		points[i].semaphore_off = wire_u64(in);
		points[i].slot = wire_u32(in);
	}
	return in->bad ? err_new(ERR_FORMAT, "attach: short request") : NULL;
}

static struct err *do_attach(struct server *server, struct wire *in,
			     struct answer_out *out)
{
	struct attach_point points[ATTACH_MAX_POINTS];
	struct attach_request request = { .file_fd = server->file_fd };
	struct attached item = { 0 };

	TRY(get_attach(in, points, &request));
	TRY(segments_check(request.file_fd, points, request.count));
	if (!server->loader)
		return err_new(ERR_BUSY, "attach: nothing is loaded");
	if (server->attached.count >= BROKER_MAX_ATTACHMENTS)
		return err_new(ERR_LIMIT, "more than %d attachments",
			       BROKER_MAX_ATTACHMENTS);
	TRY(attach_open(server->loader, &request, &item.attachment));
	if (server->is_paused)
		err_free(attach_pause(item.attachment, true));
	item.id = ++server->last_id;
	vec_push(&server->attached, item);
	wire_put_u32(&out->bytes, item.id);
	return NULL;
}

static struct err *do_detach(struct server *server, struct wire *in,
			     struct answer_out *out)
{
	uint32_t id = wire_u32(in);

	(void)out;
	vec_each(&server->attached, item)
		if (item->id == id) {
			attach_close_by(item->attachment, server->closer);
			*item = server->attached.data[--server->attached.count];
			return NULL;
		}
	return err_new(ERR_NOT_FOUND, "detach: no attachment %u", id);
}

static struct err *do_calibrate(struct server *server, struct wire *in,
				struct answer_out *out)
{
	struct calibration cost = { 0 };

	(void)in;
	if (!server->loader)
		return err_new(ERR_BUSY, "calibrate: nothing is loaded");
	TRY(calibrate_run(server->loader, &cost));
	for (int kind = 0; kind < CALIBRATE_KINDS; kind++)
		wire_put_u32(&out->bytes, cost.hit_ns[kind]);
	wire_put_u8(&out->bytes, loader_probe(server->loader).is_multi);
	return NULL;
}

static struct err *do_walk(struct server *server, struct wire *in, struct answer_out *out)
{
	(void)in;
	if (!server->loader)
		return err_new(ERR_BUSY, "walk: nothing is loaded");
	TRY(loader_walk(server->loader, &out->fds[0]));
	out->fd_count = 1;
	out->owned = true;
	return NULL;
}

static struct err *(*const ops[OPS])(struct server *, struct wire *,
				     struct answer_out *) = {
	[OP_START] = do_start,	       [OP_STOP] = do_stop,	[OP_OPEN] = do_open,
	[OP_WORKER] = do_worker,       [OP_ATTACH] = do_attach, [OP_DETACH] = do_detach,
	[OP_CALIBRATE] = do_calibrate, [OP_WALK] = do_walk,
};

/* More descriptors than one message takes follow in messages of a single byte. */
static struct err *send_answer(int fd, struct answer_out *out)
{
	size_t first = out->fd_count < FDPASS_MAX_FDS ? out->fd_count : FDPASS_MAX_FDS;

	TRY(fdpass_send(fd, out->bytes.data, out->bytes.length, out->fds, first));
	for (size_t at = first; at < out->fd_count; at += FDPASS_MAX_FDS) {
		size_t rest = out->fd_count - at;

		TRY(fdpass_send(fd, "+", 1, out->fds + at,
				rest < FDPASS_MAX_FDS ? rest : FDPASS_MAX_FDS));
	}
	return NULL;
}

static struct err *serve_one(struct server *server, const void *bytes, size_t length)
{
	struct wire in = { .data = bytes, .size = length };
	struct answer_out *out = mem_alloc(sizeof(*out));
	uint8_t op = wire_u8(&in);

	wire_put_u8(&out->bytes, 1);
	struct err *err = op < OPS && ops[op]
				  ? ops[op](server, &in, out)
				  : err_new(ERR_FORMAT, "unknown request %u", op);

	if (err) {
		str_clear(&out->bytes);
		wire_put_u8(&out->bytes, 0);
		wire_put_u32(&out->bytes, err->code);
		wire_put_u32(&out->bytes, (uint32_t)err->errnum);
		wire_put_str(&out->bytes, err->text);
		out->fd_count = 0;
		err_free(err);
	}
	err = send_answer(server->rpc_fd, out);
	for (size_t i = 0; out->owned && i < out->fd_count; i++)
		close(out->fds[i]);
	str_fini(&out->bytes);
	free(out);
	return err;
}

static struct err *rpc_ready(void *ctx, int fd, uint32_t events)
{
	struct server *server = ctx;
	int fds[FDPASS_MAX_FDS];
	size_t length, fd_count;

	(void)events;
	struct err *err = fdpass_recv(fd, server->request, sizeof(server->request),
				      &length, fds, &fd_count);

	if (!err) {
		server->file_fd = fd_count == 1 ? fds[0] : -1;
		err = serve_one(server, server->request, length);
		while (fd_count)
			close(fds[--fd_count]);
	}
	if (err) { /* the daemon is gone or going: SIGCHLD ends us */
		loop_del_fd(server->loop, fd);
		err_free(err);
	}
	return NULL;
}

static struct err *on_signal(void *ctx, int signal)
{
	struct server *server = ctx;
	char byte = signal == SIGHUP ? BROKER_HUP : BROKER_TERM;

	err_free(file_write_all(server->signal_fd, &byte, 1));
	return NULL;
}

static struct err *on_pause(void *ctx, int signal)
{
	struct server *server = ctx;

	server->is_paused = signal == SIGUSR1;
	vec_each(&server->attached, item)
		TRY(attach_pause(item->attachment, server->is_paused));
	return server->loader ? loader_pause(server->loader, server->is_paused) : NULL;
}

static struct err *on_child(void *ctx, int signal)
{
	struct server *server = ctx;
	int status;
	pid_t pid;

	(void)signal;
	while ((pid = waitpid(-1, &status, WNOHANG)) > 0) {
		if (pid != server->daemon_pid)
			continue; /* a worker: the daemon sees its socket close */
		server->status =
			WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
		loop_stop(server->loop);
	}
	return NULL;
}

static struct err *watch_all(struct server *server)
{
	static const struct {
		int signal;
		loop_signal_fn call;
	} signals[] = { { SIGTERM, on_signal }, { SIGINT, on_signal },
			{ SIGHUP, on_signal },	{ SIGUSR1, on_pause },
			{ SIGUSR2, on_pause },	{ SIGCHLD, on_child } };

	for (size_t i = 0; i < sizeof(signals) / sizeof(*signals); i++)
		TRY(loop_add_signal(server->loop, signals[i].signal, signals[i].call,
				    server));
	TRY(loop_add_fd(server->loop, server->rpc_fd, EPOLLIN, rpc_ready, server));
	return on_child(server, SIGCHLD); /* it may have ended before we watched */
}

struct err *broker_serve(int rpc_fd, int signal_fd, pid_t daemon_pid,
			 const char *worker_path, int *ret_status)
{
	struct server server = { .rpc_fd = rpc_fd,
				 .signal_fd = signal_fd,
				 .daemon_pid = daemon_pid,
				 .worker_path = worker_path };

	TRY(loop_new(&server.loop));
	server.closer = closer_new();
	struct err *err = watch_all(&server);

	if (!err)
		err = loop_run(server.loop);
	close_loader(&server);
	closer_free(server.closer);
	vec_fini(&server.attached);
	loop_free(server.loop);
	*ret_status = server.status;
	return err;
}

/* The client. */

struct broker {
	int fd;
	char reply[FDPASS_MAX_BYTES];
	struct wire in; /* of the last reply */
	int fds[PROBE_FD_MAX];
	size_t fd_count;
};

struct broker *broker_connect(int rpc_fd)
{
	struct broker *broker = mem_alloc(sizeof(*broker));

	broker->fd = rpc_fd;
	return broker;
}

void broker_free(struct broker *broker)
{
	if (!broker)
		return;
	close(broker->fd);
	free(broker);
}

static struct err *ask_with(struct broker *broker, const struct str *request,
			    const int *fds, size_t fd_count)
{
	size_t length;

	TRY(fdpass_send(broker->fd, request->data, request->length, fds, fd_count));
	TRY(fdpass_recv(broker->fd, broker->reply, sizeof(broker->reply), &length,
			broker->fds, &broker->fd_count));
	broker->in =
		(struct wire){ .data = (unsigned char *)broker->reply, .size = length };
	if (wire_u8(&broker->in))
		return NULL;
	enum err_code code = (enum err_code)wire_u32(&broker->in);
	int errnum = (int)wire_u32(&broker->in);
	struct err *err = err_new(code, "%s", wire_str(&broker->in));

	err->errnum = errnum;
	return err;
}

static struct err *ask(struct broker *broker, const struct str *request)
{
	return ask_with(broker, request, NULL, 0);
}

static struct err *ask_fd(struct broker *broker, const struct str *request, int *ret_fd)
{
	TRY(ask(broker, request));
	if (broker->fd_count != 1)
		return err_new(ERR_FORMAT, "broker: %zu descriptors instead of one",
			       broker->fd_count);
	*ret_fd = broker->fds[0];
	return NULL;
}

static struct err *receive_more(struct broker *broker, size_t count)
{
	char byte;
	size_t length, more;
	int fds[FDPASS_MAX_FDS];

	while (broker->fd_count < count) {
		TRY(fdpass_recv(broker->fd, &byte, 1, &length, fds, &more));
		if (broker->fd_count + more > count)
			return err_new(ERR_FORMAT, "broker: too many descriptors");
		memcpy(broker->fds + broker->fd_count, fds, more * sizeof(int));
		broker->fd_count += more;
	}
	return NULL;
}

struct err *broker_start(struct broker *broker, const struct probe_config *config,
			 struct probe_fds *ret_fds, char **ret_sources)
{
	CLEANUP(str_fini) struct str request = { 0 };

	wire_put_u8(&request, OP_START);
	put_config(&request, config);
	TRY(ask(broker, &request));
	uint32_t count = wire_u32(&broker->in);

	if (count > PROBE_FD_MAX)
		return err_new(ERR_FORMAT, "broker: %u descriptors", count);
	TRY(receive_more(broker, count));
	ret_fds->count = count;
	memcpy(ret_fds->fd, broker->fds, count * sizeof(int));
	*ret_sources = mem_strdup(wire_str(&broker->in));
	return NULL;
}

struct err *broker_stop(struct broker *broker)
{
	CLEANUP(str_fini) struct str request = { 0 };

	wire_put_u8(&request, OP_STOP);
	return ask(broker, &request);
}

struct err *broker_worker(struct broker *broker, enum job_class class, int *ret_fd)
{
	CLEANUP(str_fini) struct str request = { 0 };

	wire_put_u8(&request, OP_WORKER);
	wire_put_u32(&request, class);
	return ask_fd(broker, &request, ret_fd);
}

struct err *broker_walk(struct broker *broker, int *ret_fd)
{
	CLEANUP(str_fini) struct str request = { 0 };

	wire_put_u8(&request, OP_WALK);
	return ask_fd(broker, &request, ret_fd);
}

struct err *broker_attach(struct broker *broker, const struct attach_request *request,
			  uint32_t *ret_id)
{
	CLEANUP(str_fini) struct str bytes = { 0 };

	wire_put_u8(&bytes, OP_ATTACH);
	wire_put_u32(&bytes, request->pid);
	wire_put_u8(&bytes, request->is_return);
	wire_put_u32(&bytes, (uint32_t)request->count);
	for (size_t i = 0; i < request->count; i++) {
		wire_put_u64(&bytes, request->points[i].offset);
		wire_put_u64(&bytes, request->points[i].semaphore_off);
		wire_put_u32(&bytes, request->points[i].slot);
	}
	TRY(ask_with(broker, &bytes, &request->file_fd, 1));
	*ret_id = wire_u32(&broker->in);
	return NULL;
}

struct err *broker_detach(struct broker *broker, uint32_t id)
{
	CLEANUP(str_fini) struct str request = { 0 };

	wire_put_u8(&request, OP_DETACH);
	wire_put_u32(&request, id);
	return ask(broker, &request);
}

struct err *broker_calibrate(struct broker *broker, struct calibration *ret_cost,
			     bool *ret_multi)
{
	CLEANUP(str_fini) struct str request = { 0 };

	wire_put_u8(&request, OP_CALIBRATE);
	TRY(ask(broker, &request));
	for (int kind = 0; kind < CALIBRATE_KINDS; kind++)
		ret_cost->hit_ns[kind] = wire_u32(&broker->in);
	*ret_multi = wire_u8(&broker->in);
	return NULL;
}

static struct err *open_through(void *ctx, const struct open_request *open, int *ret_fd)
{
	CLEANUP(str_fini) struct str request = { 0 };

	wire_put_u8(&request, OP_OPEN);
	wire_put_u32(&request, open->what);
	wire_put_u32(&request, open->pid);
	wire_put_u64(&request, open->start_ns);
	wire_put_u64(&request, open->start);
	wire_put_u64(&request, open->end);
	wire_put_str(&request, open->path);
	return ask_fd(ctx, &request, ret_fd);
}

struct opener broker_opener(struct broker *broker)
{
	return (struct opener){ .open = open_through, .ctx = broker };
}
