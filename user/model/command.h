/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODEL_COMMAND_H
#define MODEL_COMMAND_H

/*
 * What `assay` may ask `assayd` over the control socket, and what comes back.
 *
 *	request:  VERB key=value ...\n
 *	reply:    ok key=value ...\n   any number of these
 *	          err CODE text\n      instead, or after some of them
 *	          .\n                  the end; the next request may follow
 *
 * Lines are printable ASCII, words are separated by one space. In a value, a space, a
 * '%' and every byte outside '!'..'~' travels as %XX; the text of an err line keeps its
 * spaces. %00 is refused: what was parsed is a C string.
 * Both sides check everything: the peer may be older, newer or hostile.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/str.h"

#define COMMAND_SOCKET	    "/run/assay/control" /* unless ASSAY_SOCKET says otherwise */
#define COMMAND_MAX_LINE    8192		 /* bytes, the newline included */
#define COMMAND_MAX_ARGS    24
#define COMMAND_MAX_REPLIES 65536 /* lines of one reply */

enum command_verb {
	COMMAND_PING,	/* ok version= pid= */
	COMMAND_STATUS, /* ok what=daemon ..., then ok what=run run= target= ... */
	COMMAND_ATTACH, /* target= [for_ns=] [rate=]; ok run= db= */
	COMMAND_DETACH, /* [target=] [run=]; ok once what it saw is in the database */
	COMMAND_FLUSH,	/* ok once everything seen so far is in the database */
	COMMAND_RELOAD, /* read the settings file again; ok or why not */
	COMMAND_TYPES_QUEUE, /* ok pending= running= done= failed= */
	COMMAND_VERBS,
};

struct command_arg {
	const char *key, *value; /* decoded; inside the line's own @text */
};

/* key=value words of one line, in their order; keys are unique. */
struct command_args {
	struct command_arg list[COMMAND_MAX_ARGS];
	size_t count;
};

struct command {
	enum command_verb verb;
	struct command_args args;
	char text[COMMAND_MAX_LINE]; /* holds keys and values: do not copy the struct */
};

/**
 * command_parse() - one request line, without its newline; NULs may be inside.
 * Errors: ERR_LIMIT (length, number of words), ERR_FORMAT (bytes, escapes, spaces),
 * ERR_INVALID (unknown verb, a key that the verb does not take, twice, or lacks).
 */
struct err *command_parse(const char *line, size_t bytes, struct command *ret_command);

const char *command_verb_name(enum command_verb verb);

/* command_arg() - NULL when the key is absent. */
const char *command_arg(const struct command_args *args, const char *key);
/* command_number() - a decimal or 0x number; ERR_INVALID when absent or anything else. */
struct err *command_number(const struct command_args *args, const char *key,
			   uint64_t *ret_value);

/* Write a line: command_begin(), command_add()..., command_end(). */
void command_begin(struct str *out, enum command_verb verb);
void command_add(struct str *out, const char *key, const char *value);
void command_add_number(struct str *out, const char *key, uint64_t value);
void command_end(struct str *out);

enum reply_kind { REPLY_OK, REPLY_ERR, REPLY_END };

struct reply {
	enum reply_kind kind;
	struct command_args args; /* OK */
	enum err_code code;	  /* ERR */
	const char *message;	  /* ERR; inside @text */
	char text[COMMAND_MAX_LINE];
};

/* reply_parse() - one reply line, without its newline. Errors: as command_parse(). */
struct err *reply_parse(const char *line, size_t bytes, struct reply *ret_reply);

/* Write a reply: reply_ok(), command_add()..., command_end(); at last reply_done(). */
void reply_ok(struct str *out);
void reply_error(struct str *out, const struct err *err); /* the whole line */
void reply_done(struct str *out);

#endif
