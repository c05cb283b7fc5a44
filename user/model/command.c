// SPDX-License-Identifier: Apache-2.0
/*
 * A line is copied once, cut at its spaces, and each word is decoded where it lies:
 * decoding only shrinks. Nothing is allocated, so a hostile peer costs a bounded copy.
 * Which keys a verb takes is a table; a '!' marks those it cannot do without.
 */
#include "model/command.h"

#include <string.h>

#include "core/cleanup.h"
#include "core/file.h"

#define COMMAND_MAX_KEYS 4

static const struct {
	const char *name;
	const char *keys[COMMAND_MAX_KEYS];
} verbs[COMMAND_VERBS] = {
	[COMMAND_PING] = { "ping", { NULL } },
	[COMMAND_STATUS] = { "status", { NULL } },
	[COMMAND_ATTACH] = { "attach", { "!target", "for_ns", "rate" } },
	[COMMAND_DETACH] = { "detach", { "target", "run" } },
	[COMMAND_FLUSH] = { "flush", { NULL } },
	[COMMAND_RELOAD] = { "reload", { NULL } },
	[COMMAND_TYPES_QUEUE] = { "types-queue", { NULL } },
};

static const char *const codes[] = {
	[ERR_IO] = "io",
	[ERR_NOT_FOUND] = "not-found",
	[ERR_FORMAT] = "format",
	[ERR_LIMIT] = "limit",
	[ERR_PERMISSION] = "permission",
	[ERR_UNSUPPORTED] = "unsupported",
	[ERR_INVALID] = "invalid",
	[ERR_BUSY] = "busy",
	[ERR_CLOSED] = "closed",
};
#define CODES (sizeof(codes) / sizeof(*codes))

static bool is_plain(unsigned char byte)
{
	return byte > ' ' && byte < 0x7f && byte != '%';
}

/* Decode %XX in place. Everything else was checked by copy_line(). */
static struct err *decode(char *word)
{
	char *out = word;

	for (const char *in = word; *in; in++) {
		if (*in != '%') {
			*out++ = *in;
			continue;
		}
		char digits[3] = { in[1], in[1] ? in[2] : 0, 0 };
		unsigned char byte = 0;

		if (str_unhex(digits, &byte, 1) != 1 || !byte)
			return err_new(ERR_FORMAT, "bad %%XX escape");
		*out++ = (char)byte;
		in += 2;
	}
	*out = 0;
	return NULL;
}

static struct err *copy_line(const char *line, size_t bytes, char *ret_text)
{
	if (bytes >= COMMAND_MAX_LINE)
		return err_new(ERR_LIMIT, "line longer than %d bytes",
			       COMMAND_MAX_LINE - 1);
	for (size_t i = 0; i < bytes; i++)
		if (!is_plain((unsigned char)line[i]) && line[i] != ' ' && line[i] != '%')
			return err_new(ERR_FORMAT, "byte 0x%02x in a line",
				       (unsigned char)line[i]);
	memcpy(ret_text, line, bytes);
	ret_text[bytes] = 0;
	return NULL;
}

/* Cut off the first word; *@rest is NULL when nothing follows it. */
static char *next_word(char **rest)
{
	char *word = *rest, *space = strchr(word, ' ');

	if (space)
		*space = 0;
	*rest = space ? space + 1 : NULL;
	return word;
}

static bool is_key(const char *key)
{
	return *key && !key[strspn(key, "abcdefghijklmnopqrstuvwxyz0123456789_")];
}

static struct err *parse_args(char *rest, struct command_args *args)
{
	args->count = 0;
	while (rest) {
		char *key = next_word(&rest), *equals = strchr(key, '=');

		if (!equals)
			return err_new(ERR_FORMAT, "expected key=value");
		*equals = 0;
		if (!is_key(key))
			return err_new(ERR_FORMAT, "bad key");
		if (command_arg(args, key))
			return err_new(ERR_INVALID, "%s given twice", key);
		if (args->count == COMMAND_MAX_ARGS)
			return err_new(ERR_LIMIT, "more than %d words", COMMAND_MAX_ARGS);
		TRY(decode(equals + 1));
		args->list[args->count++] = (struct command_arg){ key, equals + 1 };
	}
	return NULL;
}

static struct err *check_keys(const struct command *command)
{
	const char *const *keys = verbs[command->verb].keys;
	const char *verb = command_verb_name(command->verb);

	for (size_t i = 0; i < command->args.count; i++) {
		const char *key = command->args.list[i].key;
		bool known = false;

		for (size_t k = 0; k < COMMAND_MAX_KEYS && keys[k]; k++)
			known |= !strcmp(keys[k] + (keys[k][0] == '!'), key);
		if (!known)
			return err_new(ERR_INVALID, "%s takes no %s", verb, key);
	}
	for (size_t k = 0; k < COMMAND_MAX_KEYS && keys[k]; k++)
		if (keys[k][0] == '!' && !command_arg(&command->args, keys[k] + 1))
			return err_new(ERR_INVALID, "%s needs %s=", verb, keys[k] + 1);
	return NULL;
}

struct err *command_parse(const char *line, size_t bytes, struct command *ret_command)
{
	TRY(copy_line(line, bytes, ret_command->text));

	char *rest = ret_command->text, *name = next_word(&rest);
	size_t verb = 0;

	while (verb < COMMAND_VERBS && strcmp(verbs[verb].name, name))
		verb++;
	if (verb == COMMAND_VERBS)
		return err_new(ERR_INVALID, "no such request: '%.32s'", name);
	ret_command->verb = (enum command_verb)verb;
	TRY(parse_args(rest, &ret_command->args));
	return check_keys(ret_command);
}

const char *command_verb_name(enum command_verb verb)
{
	return (unsigned)verb < COMMAND_VERBS ? verbs[verb].name : "unknown";
}

const char *command_arg(const struct command_args *args, const char *key)
{
	for (size_t i = 0; i < args->count; i++)
		if (!strcmp(args->list[i].key, key))
			return args->list[i].value;
	return NULL;
}

struct err *command_number(const struct command_args *args, const char *key,
			   uint64_t *ret_value)
{
	const char *value = command_arg(args, key);

	if (!value)
		return err_new(ERR_INVALID, "%s= is missing", key);
	if (!number_parse(value, ret_value))
		return err_new(ERR_INVALID, "%s=%.32s is not a number", key, value);
	return NULL;
}

static void add_escaped(struct str *out, const char *text, bool keep_spaces)
{
	for (const unsigned char *at = (const unsigned char *)text; *at; at++) {
		if (is_plain(*at) || (keep_spaces && *at == ' '))
			str_add_char(out, (char)*at);
		else
			str_printf(out, "%%%02X", *at);
	}
}

void command_begin(struct str *out, enum command_verb verb)
{
	str_add(out, command_verb_name(verb));
}

void command_add(struct str *out, const char *key, const char *value)
{
	str_printf(out, " %s=", key);
	add_escaped(out, value, false);
}

void command_add_number(struct str *out, const char *key, uint64_t value)
{
	str_printf(out, " %s=%llu", key, (unsigned long long)value);
}

void command_end(struct str *out)
{
	str_add_char(out, '\n');
}

void reply_ok(struct str *out)
{
	str_add(out, "ok");
}

void reply_error(struct str *out, const struct err *err)
{
	CLEANUP(str_fini) struct str text = { 0 };
	bool known = (size_t)err->code < CODES && codes[err->code];
	size_t room;

	str_printf(out, "err %s ", known ? codes[err->code] : codes[ERR_IO]);
	add_escaped(&text, err->text, true);
	room = COMMAND_MAX_LINE - 64;
	if (text.length > room) { /* cut, but never inside an escape */
		text.length = room;
		for (int back = 0; back < 2; back++)
			if (text.data[text.length - 1 - (size_t)back] == '%') {
				text.length -= 1 + (size_t)back;
				break;
			}
	}
	str_add_bytes(out, str_text(&text), text.length);
	str_add_char(out, '\n');
}

void reply_done(struct str *out)
{
	str_add(out, ".\n");
}

static struct err *parse_failure(char *rest, struct reply *reply)
{
	if (!rest)
		return err_new(ERR_FORMAT, "err without a code");
	const char *name = next_word(&rest);

	reply->kind = REPLY_ERR;
	reply->code = ERR_IO; /* a newer daemon may know more codes */
	for (size_t i = 1; i < CODES; i++)
		if (!strcmp(codes[i], name))
			reply->code = (enum err_code)i;
	reply->message = rest ? rest : "";
	return rest ? decode(rest) : NULL;
}

struct err *reply_parse(const char *line, size_t bytes, struct reply *ret_reply)
{
	TRY(copy_line(line, bytes, ret_reply->text));

	char *rest = ret_reply->text;
	const char *word = next_word(&rest);

	ret_reply->args.count = 0;
	if (!strcmp(word, ".") && !rest) {
		ret_reply->kind = REPLY_END;
		return NULL;
	}
	if (!strcmp(word, "ok")) {
		ret_reply->kind = REPLY_OK;
		return parse_args(rest, &ret_reply->args);
	}
	if (!strcmp(word, "err"))
		return parse_failure(rest, ret_reply);
	return err_new(ERR_FORMAT, "neither ok, err nor '.'");
}
