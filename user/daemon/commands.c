// SPDX-License-Identifier: Apache-2.0
#include "daemon/commands.h"

#include <stdio.h>
#include <stdlib.h>
#include <unistd.h>

#include "core/file.h"
#include "daemon/daemon_impl.h"

typedef struct err *(*command_fn)(struct daemon *daemon, const struct command *command,
				  struct str *reply);

static void add_id(struct str *reply, const char *key, uint64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%016llx", (unsigned long long)id);
	command_add(reply, key, text);
}

static struct err *need_session(struct daemon *daemon)
{
	return daemon->session
		       ? NULL
		       : err_new(ERR_BUSY, "nothing is sampled: the settings are wrong");
}

static struct err *do_ping(struct daemon *daemon, const struct command *command,
			   struct str *reply)
{
	(void)daemon;
	(void)command;
	reply_ok(reply);
	command_add(reply, "version", ASSAY_VERSION);
	command_add_number(reply, "pid", (uint64_t)getpid());
	command_end(reply);
	return NULL;
}

static struct err *do_status(struct daemon *daemon, const struct command *command,
			     struct str *reply)
{
	struct writer_stats writer;
	struct retain_stats retain;

	(void)command;
	writer_stats(daemon->writer, &writer);
	retain_stats(daemon->retain, &retain);
	reply_ok(reply);
	command_add(reply, "what", "daemon");
	command_add(reply, "version", ASSAY_VERSION);
	command_add_number(reply, "pid", (uint64_t)getpid());
	command_add_number(reply, "up_ns", clock_ns() - daemon->start_ns);
	command_add(reply, "db", daemon->options->config.db);
	command_add_number(reply, "used_bytes", retain.used_bytes);
	command_add_number(reply, "quota_bytes", retain.quota_bytes);
	command_add_number(reply, "facts", writer.facts);
	command_add_number(reply, "dropped", writer.dropped);
	command_add_number(reply, "flush_max_ns", writer.flush_max_ns);
	command_add(reply, "worker_error", workers_error(daemon->workers));
	command_end(reply);
	if (daemon->session)
		session_status(daemon->session, reply);
	return NULL;
}

static struct err *do_attach(struct daemon *daemon, const struct command *command,
			     struct str *reply)
{
	uint64_t for_ns = 0;

	TRY(need_session(daemon));
	if (command_arg(&command->args, "for_ns"))
		TRY(command_number(&command->args, "for_ns", &for_ns));
	TRY(session_attach(daemon->session, command_arg(&command->args, "target"),
			   for_ns));
	reply_ok(reply);
	add_id(reply, "run", session_run_id(daemon->session));
	command_add(reply, "db", daemon->options->config.db);
	command_end(reply);
	return NULL;
}

static struct err *do_flush(struct daemon *daemon, const struct command *command,
			    struct str *reply)
{
	(void)command;
	TRY(need_session(daemon));
	TRY(session_drain(daemon->session));
	TRY(session_flush(daemon->session));
	TRY(writer_flush(daemon->writer));
	reply_ok(reply);
	command_end(reply);
	return NULL;
}

static struct err *do_detach(struct daemon *daemon, const struct command *command,
			     struct str *reply)
{
	const char *target = command_arg(&command->args, "target");

	TRY(need_session(daemon));
	if (target)
		TRY(session_detach(daemon->session, target));
	return do_flush(daemon, command, reply);
}

static struct err *do_reload(struct daemon *daemon, const struct command *command,
			     struct str *reply)
{
	(void)command;
	TRY(daemon_reload(daemon));
	reply_ok(reply);
	command_end(reply);
	return NULL;
}

static struct err *do_types_queue(struct daemon *daemon, const struct command *command,
				  struct str *reply)
{
	(void)command;
	TRY(need_session(daemon));
	struct explain_stats stats = session_explain_stats(daemon->session);

	reply_ok(reply);
	command_add_number(reply, "pending", stats.waiting);
	command_add_number(reply, "running", stats.flying);
	command_add_number(reply, "done", stats.sites + stats.answers);
	command_add_number(reply, "failed", stats.failed + stats.dropped);
	command_end(reply);
	return NULL;
}

static const command_fn table[COMMAND_VERBS] = {
	[COMMAND_PING] = do_ping,
	[COMMAND_STATUS] = do_status,
	[COMMAND_ATTACH] = do_attach,
	[COMMAND_DETACH] = do_detach,
	[COMMAND_FLUSH] = do_flush,
	[COMMAND_RELOAD] = do_reload,
	[COMMAND_TYPES_QUEUE] = do_types_queue,
};

void commands_answer(void *ctx, const struct command *command, struct str *reply)
{
	struct err *err = table[command->verb](ctx, command, reply);

	if (!err)
		return;
	reply_error(reply, err);
	err_free(err);
}
