// SPDX-License-Identifier: Apache-2.0
/*
 * Lines of the control socket, as request and as reply. What parses must survive being
 * written and parsed again: the two sides would otherwise understand different things.
 */
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "model/command.h"

static void require(bool truth)
{
	if (!truth)
		abort();
}

static void check_same(const struct command_args *args, const struct command_args *again)
{
	require(args->count == again->count);
	for (size_t i = 0; i < args->count; i++) {
		require(!strcmp(args->list[i].key, again->list[i].key));
		require(!strcmp(args->list[i].value, again->list[i].value));
	}
}

static void add_all(struct str *line, const struct command_args *args)
{
	for (size_t i = 0; i < args->count; i++)
		command_add(line, args->list[i].key, args->list[i].value);
	command_end(line);
}

/* A line that was written differently may be longer than what is allowed. */
static bool fits(const struct str *line)
{
	return line->length <= COMMAND_MAX_LINE;
}

static void try_command(const char *line, size_t bytes)
{
	static struct command command, again;
	CLEANUP(str_fini) struct str text = { 0 };
	struct err *err = command_parse(line, bytes, &command);

	if (err) {
		require(err->text && *err->text);
		err_free(err);
		return;
	}
	command_begin(&text, command.verb);
	add_all(&text, &command.args);
	if (!fits(&text))
		return;
	require(!command_parse(text.data, text.length - 1, &again));
	require(command.verb == again.verb);
	check_same(&command.args, &again.args);
}

static void try_reply(const char *line, size_t bytes)
{
	static struct reply reply, again;
	CLEANUP(str_fini) struct str text = { 0 };
	struct err *err = reply_parse(line, bytes, &reply);

	if (err) {
		err_free(err);
		return;
	}
	if (reply.kind == REPLY_END)
		return;
	if (reply.kind == REPLY_OK) {
		reply_ok(&text);
		add_all(&text, &reply.args);
	} else {
		struct err *said = err_new(reply.code, "%s", reply.message);

		reply_error(&text, said);
		err_free(said);
		require(fits(&text)); /* it is cut, if need be */
	}
	if (!fits(&text))
		return;
	require(!reply_parse(text.data, text.length - 1, &again));
	require(reply.kind == again.kind);
	if (reply.kind == REPLY_OK)
		check_same(&reply.args, &again.args);
	else
		require(reply.code == again.code &&
			!strncmp(reply.message, again.message, strlen(again.message)));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	try_command((const char *)data, size);
	try_reply((const char *)data, size);
	return 0;
}
