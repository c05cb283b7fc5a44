// SPDX-License-Identifier: Apache-2.0
/*
 * A job that exceeds its CPU or memory limit cannot be unwound from wherever it is, so
 * the process ends; but its client may have been handed over by another process and
 * would see the end only, not the reason. Hence the two last words below: complete
 * error replies, made before each job and written by the signal handler, unless a
 * reply is just under way.
 */
#include "worker/serve.h"

#include <signal.h>
#include <string.h>
#include <sys/socket.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/str.h"
#include "job/channel.h"
#include "job/message.h"
#include "worker/answers.h"
#include "worker/fetch.h"
#include "worker/listing.h"
#include "worker/probes.h"
#include "worker/candidates.h"
#include "worker/records.h"
#include "worker/sandbox.h"
#include "worker/table.h"

struct server {
	const struct serve_options *options;
	struct channel *channel;
	struct table *table;
	struct arena *arena;
};

/* The only mutable globals: a signal handler has no other way to its data. */
static struct {
	int fd;
	volatile sig_atomic_t is_silent;
	struct str cpu, memory;
} last_words;

static void say_last(int signal)
{
	const struct str *words =
		signal == SIGXCPU ? &last_words.cpu : &last_words.memory;
	struct iovec iov = { words->data, words->length };
	struct msghdr msg = { .msg_iov = &iov, .msg_iovlen = 1 };

	if (!last_words.is_silent)
		sendmsg(last_words.fd, &msg, MSG_NOSIGNAL | MSG_DONTWAIT);
	_exit(signal == SIGXCPU ? MESSAGE_EXIT_CPU : MESSAGE_EXIT_MEMORY);
}

static void prepare_words(struct str *words, uint64_t job, const char *text)
{
	CLEANUP(str_fini) struct str payload = { 0 };
	struct err *err = err_new(ERR_LIMIT, "%s", text);

	message_put_error(&payload, err);
	err_free(err);
	str_clear(words);
	channel_frame(&(struct channel_message){ .kind = MESSAGE_ERROR,
						 .job = job,
						 .payload = payload.data,
						 .bytes = payload.length },
		      words);
}

static void prepare_last_words(uint64_t job)
{
	last_words.is_silent = true;
	prepare_words(&last_words.cpu, job, "the worker used more CPU than one job may");
	prepare_words(&last_words.memory, job, "the worker ran out of memory");
	last_words.is_silent = false;
}

static struct err *send_reply(struct server *server, struct channel_message *message)
{
	last_words.is_silent = true;
	TRY(channel_put(server->channel, message));
	return channel_flush(server->channel, true);
}

static struct err *reply(struct server *server, uint64_t job,
			 const struct job_reply *reply)
{
	CLEANUP(str_fini) struct str payload = { 0 };
	struct channel_message message = { .kind = (uint16_t)reply->kind,
					   .job = job,
					   .fds = { -1, -1, -1, -1 } };

	message_put_reply(&payload, reply);
	message.payload = payload.data;
	message.bytes = payload.length;
	if (reply->kind == JOB_DEBUG_FILE)
		message.fds[0] = reply->fd;
	return send_reply(server, &message);
}

/* Consumes @err. */
static struct err *reply_error(struct server *server, uint64_t job, struct err *err)
{
	CLEANUP(str_fini) struct str payload = { 0 };
	struct channel_message message = { .kind = MESSAGE_ERROR,
					   .job = job,
					   .fds = { -1, -1, -1, -1 } };

	message_put_error(&payload, err);
	err_free(err);
	message.payload = payload.data;
	message.bytes = payload.length;
	return send_reply(server, &message);
}

static struct err *unknown_module(uint64_t module_id)
{
	return err_new(ERR_NOT_FOUND, "module %016llx is not open in this worker",
		       (unsigned long long)module_id);
}

static void fill_segments(const struct elf_file *file, struct job_identity *identity)
{
	size_t count;
	const struct elf_segment *segments = elf_segments(file, &count);

	for (size_t i = 0; i < count && identity->segment_count < JOB_MAX_SEGMENTS; i++)
		if (segments[i].kind == ELF_LOAD && segments[i].can_exec)
			identity->segments[identity->segment_count++] =
				(struct job_segment){
					.off = segments[i].off,
					.va = segments[i].va,
					.file_bytes = segments[i].file_bytes,
				};
}

static struct err *do_identify(struct server *server,
			       const struct channel_message *message, struct wire *in)
{
	CLEANUP(elf_close) struct elf_file *file = NULL;
	struct job_reply answer = { .kind = JOB_IDENTIFY };

	(void)in;
	if (message->fds[0] < 0)
		return err_new(ERR_FORMAT, "identify: a descriptor is missing");
	TRY(elf_open(message->fds[0], &file));
	struct elf_link debuglink = elf_debuglink(file), altlink = elf_altlink(file);

	answer.identity = (struct job_identity){ .is_executable = elf_is_executable(file),
						 .has_dwarf = elf_has_dwarf(file),
						 .has_symtab = elf_has_symtab(file),
						 .has_cfi = elf_has_cfi(file),
						 .soname = elf_soname(file),
						 .debuglink = debuglink.name,
						 .debuglink_crc = debuglink.crc,
						 .altlink = altlink.name,
						 .altlink_id = altlink.id };
	if (elf_build_id(file))
		answer.identity.build_id = *elf_build_id(file);
	fill_segments(file, &answer.identity);
	return reply(server, message->job, &answer);
}

static struct err *do_symbols(struct server *server,
			      const struct channel_message *message, struct wire *in)
{
	struct message_vas vas;
	struct symbols *symbols;

	TRY(message_read_vas(in, server->arena, &vas));
	struct module *module = table_find(server->table, vas.module_id);

	if (!module)
		return unknown_module(vas.module_id);
	TRY(module_symbols(module, &symbols));
	struct job_symbol *found = arena_array(server->arena, vas.count, sizeof(*found));

	for (size_t i = 0; i < vas.count; i++) {
		struct symbol symbol = symbols_at(symbols, vas.vas[i]);

		found[i] = (struct job_symbol){ .va = vas.vas[i],
						.function_va = symbol.function_va,
						.function_bytes = symbol.function_bytes,
						.function = symbol.function,
						.function_file = symbol.function_file,
						.file = symbol.file,
						.function_line = symbol.function_line,
						.line = symbol.line };
	}
	struct job_reply answer = { .kind = JOB_SYMBOLS };

	answer.symbols.data = found;
	answer.symbols.count = vas.count;
	return reply(server, message->job, &answer);
}

static struct frame_range *frame_ranges(struct server *server,
					const struct message_unwind *unwind)
{
	struct frame_range *ranges =
		arena_array(server->arena, unwind->range_count, sizeof(*ranges));

	for (size_t i = 0; i < unwind->range_count; i++) {
		const struct job_range *range = &unwind->ranges[i];
		struct module *module =
			range->module_id ? table_find(server->table, range->module_id)
					 : NULL;

		ranges[i] = (struct frame_range){ .start = range->start,
						  .end = range->end,
						  .bias = range->bias,
						  .id = range->module_id,
						  .table = module ? module_frames(module)
								  : NULL };
	}
	return ranges;
}

static struct err *do_unwind(struct server *server, const struct channel_message *message,
			     struct wire *in)
{
	struct job_reply answer = { .kind = JOB_UNWIND };
	struct frame_at at[FRAME_MAX_DEPTH];
	struct fact_frame frames[FRAME_MAX_DEPTH];
	struct message_unwind unwind;
	struct frame_stack stack;

	TRY(message_read_unwind(in, server->arena, &unwind));
	memcpy(stack.regs, unwind.stack.regs, sizeof(stack.regs));
	stack.bytes = unwind.stack.bytes;
	stack.byte_count = unwind.stack.byte_count;
	answer.unwound.count =
		frame_unwind(frame_ranges(server, &unwind), unwind.range_count, &stack,
			     at, &answer.unwound.complete);
	for (size_t i = 0; i < answer.unwound.count; i++) {
		/* Only modules that the walk met need be there. */
		if (at[i].id && !table_find(server->table, at[i].id))
			return unknown_module(at[i].id);
		frames[i] = (struct fact_frame){ at[i].id, at[i].va };
	}
	answer.unwound.frames = frames;
	return reply(server, message->job, &answer);
}

static struct err *do_sites(struct server *server, const struct channel_message *message,
			    struct wire *in)
{
	struct message_sites sites;
	struct recover *recover;

	TRY(message_read_sites(in, server->arena, &sites));
	struct module *module = table_find(server->table, sites.module_id);

	if (!module)
		return unknown_module(sites.module_id);
	TRY(module_recover(module, &recover));
	return answers_sites(&(struct answers_job){ server->channel, message->job,
						    sites.module_id, JOB_SITES },
			     recover, &sites);
}

static struct err *do_module(struct server *server, const struct channel_message *message,
			     struct wire *in)
{
	struct message_vas vas;
	struct recover *recover;

	TRY(message_read_vas(in, server->arena, &vas));
	struct module *module = table_find(server->table, vas.module_id);

	if (!module)
		return unknown_module(vas.module_id);
	TRY(module_recover(module, &recover));
	if (!recover)
		return err_new(ERR_UNSUPPORTED, "the module has no file");
	if (vas.count != 0 && vas.count != 2)
		return err_new(ERR_FORMAT, "module: no share");
	uint64_t index = vas.count ? vas.vas[0] : 0, count = vas.count ? vas.vas[1] : 1;

	if (count > UINT32_MAX || index >= count)
		return err_new(ERR_FORMAT, "module: no such share");
	return answers_module(&(struct answers_job){ server->channel, message->job,
						     vas.module_id, JOB_MODULE },
			      recover, (uint32_t)index, (uint32_t)count);
}

static struct err *do_listing(struct server *server,
			      const struct channel_message *message, struct wire *in)
{
	struct job_reply answer = { .kind = JOB_LISTING };
	struct module_elf elf;
	struct symbols *symbols;
	struct message_vas vas;

	TRY(message_read_vas(in, server->arena, &vas));
	struct module *module = table_find(server->table, vas.module_id);

	if (!module)
		return unknown_module(vas.module_id);
	if (vas.count != 2)
		return err_new(ERR_FORMAT, "listing: no range");
	TRY(module_elf(module, &elf));
	TRY(module_symbols(module, &symbols));
	TRY(listing_make(elf.main, symbols, server->arena,
			 &(struct listing_range){ vas.vas[0], vas.vas[1] }, &answer));
	return reply(server, message->job, &answer);
}

static struct err *do_probes(struct server *server, const struct channel_message *message,
			     struct wire *in)
{
	struct job_reply answer = { .kind = JOB_PROBES };
	struct resolve_request request;
	struct module_elf elf;

	TRY(resolve_read_request(in, server->arena, &request));
	struct module *module = table_find(server->table, request.module_id);

	if (!module)
		return unknown_module(request.module_id);
	TRY(module_elf(module, &elf));
	TRY(probes_find(&elf, module_frames(module), &request, server->arena,
			&answer.probes));
	return reply(server, message->job, &answer);
}

static struct err *do_records(struct server *server,
			      const struct channel_message *message, struct wire *in)
{
	(void)in;
	if (message->fds[0] < 0)
		return err_new(ERR_FORMAT, "records: a descriptor is missing");
	return records_send(server->channel, message->job, message->fds[0]);
}

static struct err *do_discover(struct server *server,
			       const struct channel_message *message, struct wire *in)
{
	struct message_vas vas;
	struct module_elf elf;

	TRY(message_read_vas(in, server->arena, &vas));
	struct module *module = table_find(server->table, vas.module_id);

	if (!module)
		return unknown_module(vas.module_id);
	TRY(module_elf(module, &elf));
	struct discover_files files = { elf.main, elf.debug, module_frames(module) };

	return candidates_send(server->channel, message->job, &files);
}

static struct err *do_debug_file(struct server *server,
				 const struct channel_message *message, struct wire *in)
{
	struct job_reply answer = { .kind = JOB_DEBUG_FILE };
	struct message_fetch fetch;

	TRY(message_read_fetch(in, &fetch));
	TRY(fetch_debug_file(&fetch, &answer.fd));
	struct err *err = reply(server, message->job, &answer);

	close(answer.fd);
	return err;
}

typedef struct err *(*do_fn)(struct server *server, const struct channel_message *message,
			     struct wire *in);

static const struct {
	do_fn call;
	bool fetches; /* JOB_FETCH parses nothing, the others have no network */
} jobs[] = {
	[JOB_IDENTIFY] = { do_identify, false },
	[JOB_SYMBOLS] = { do_symbols, false },
	[JOB_UNWIND] = { do_unwind, false },
	[JOB_SITES] = { do_sites, false },
	[JOB_MODULE] = { do_module, false },
	[JOB_DEBUG_FILE] = { do_debug_file, true },
	[JOB_LISTING] = { do_listing, false },
	[JOB_PROBES] = { do_probes, false },
	[JOB_RECORDS] = { do_records, false },
	[JOB_DISCOVER] = { do_discover, false },
};

static struct err *do_open(struct server *server, struct channel_message *message,
			   struct wire *in)
{
	struct message_open open;

	TRY(message_read_open(in, &open));
	return table_open(server->table, &open, message->fds);
}

static struct err *handle(struct server *server, struct channel_message *message)
{
	struct wire in = { .data = message->payload, .size = message->bytes };

	if (message->kind == MESSAGE_OPEN)
		return do_open(server, message, &in);
	if (message->kind >= sizeof(jobs) / sizeof(jobs[0]) || !jobs[message->kind].call)
		return err_new(ERR_FORMAT, "unknown job %u", message->kind);
	prepare_last_words(message->job);
	sandbox_allow_cpu(server->options->cpu_seconds);
	arena_reset(server->arena);
	table_relieve(server->table);
	struct err *err;

	if (jobs[message->kind].fetches != (server->options->class == JOB_FETCH))
		err = err_new(ERR_INVALID, "a %s worker does not do this",
			      job_class_name(server->options->class));
	else
		err = jobs[message->kind].call(server, message, &in);
	if (err && err->code != ERR_CLOSED)
		err = reply_error(server, message->job, err);
	last_words.is_silent = true;
	return err;
}

static struct err *serve_all(struct server *server)
{
	while (true) {
		struct channel_message message;
		bool taken;

		TRY(channel_take(server->channel, &message, &taken));
		if (!taken) {
			TRY(channel_fill(server->channel, true));
			continue;
		}
		struct err *err = handle(server, &message);

		channel_message_fini(&message);
		TRY(err);
	}
}

struct err *serve(int fd, const struct serve_options *options)
{
	struct server server = { .options = options, .channel = channel_new(fd) };

	last_words.fd = fd;
	last_words.is_silent = true;
	server.table = table_new(options->memory_bytes, options->version);
	server.arena = arena_new();
	struct err *err = send_reply(
		&server, &(struct channel_message){ .kind = MESSAGE_READY,
						    .fds = { -1, -1, -1, -1 } });

	if (!err)
		err = serve_all(&server);
	table_free(server.table);
	arena_free(server.arena);
	channel_free(server.channel);
	str_fini(&last_words.cpu);
	str_fini(&last_words.memory);
	if (err && err->code == ERR_CLOSED) {
		err_free(err);
		err = NULL;
	}
	return err;
}

void serve_catch_limits(void)
{
	signal(SIGXCPU, say_last);
	signal(SIGABRT, say_last);
	signal(SIGPIPE, SIG_IGN);
	signal(SIGXFSZ, SIG_IGN); /* standard error may be a file */
}
