/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JOB_MESSAGE_H
#define JOB_MESSAGE_H

/*
 * The payloads of requests and replies, written and read with core/wire.h. Every count
 * is bounded before anything is allocated for it. What is decoded lives in the arena
 * that the caller gives; strings and stack bytes stay in the message.
 */

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"
#include "core/wire.h"
#include "job/job.h"

#define MESSAGE_MAX_VAS	    65536
#define MESSAGE_MAX_RANGES  65536
#define MESSAGE_MAX_STACK   (1024 * 1024)
#define MESSAGE_MAX_ANSWERS 8192
#define MESSAGE_MAX_TYPES   8192
#define MESSAGE_MAX_FIELDS  262144
#define MESSAGE_MAX_TEXT    4096 /* of an error */

/* Kinds on the wire besides those of enum job_kind. */
enum message_kind {
	MESSAGE_OPEN = 32, /* no reply */
	MESSAGE_ERROR,	   /* the reply of a job that failed */
	MESSAGE_READY,	   /* the worker is inside its sandbox; job 0 */
};

/* Exit statuses of the worker. */
enum message_exit { MESSAGE_EXIT_CPU = 40, MESSAGE_EXIT_MEMORY, MESSAGE_EXIT_SANDBOX };

struct message_unwind {
	const struct job_range *ranges;
	size_t range_count;
	struct job_stack stack;
};

struct message_sites {
	uint64_t module_id;
	const struct job_site *sites;
	size_t count;
};

struct message_vas {
	uint64_t module_id;
	const uint64_t *vas;
	size_t count;
};

struct message_open { /* bit set: the descriptor travels, in this order */
	uint64_t module_id, slide;
	bool has_main, has_debug, has_alt, has_kallsyms, has_pack;
	bool keeps;
};

struct message_fetch {
	const char *urls;
	struct build_id id;
};

/* Writers append to @out; readers give ERR_FORMAT for anything they do not like. */
void message_put_open(struct str *out, const struct message_open *open);
void message_put_vas(struct str *out, const struct message_vas *vas);
void message_put_unwind(struct str *out, const struct message_unwind *unwind);
void message_put_sites(struct str *out, const struct message_sites *sites);
void message_put_fetch(struct str *out, const struct message_fetch *fetch);

struct err *message_read_open(struct wire *in, struct message_open *ret_open);
struct err *message_read_vas(struct wire *in, struct arena *arena,
			     struct message_vas *ret_vas);
struct err *message_read_unwind(struct wire *in, struct arena *arena,
				struct message_unwind *ret_unwind);
struct err *message_read_sites(struct wire *in, struct arena *arena,
			       struct message_sites *ret_sites);
struct err *message_read_fetch(struct wire *in, struct message_fetch *ret_fetch);

void message_put_error(struct str *out, const struct err *err);
struct err *message_read_error(struct wire *in); /* the error itself, never NULL */

/* Replies; DEBUG_FILE has no payload. SITES and MODULE share their format. */
void message_put_reply(struct str *out, const struct job_reply *reply);
struct err *message_read_reply(struct wire *in, struct arena *arena, enum job_kind kind,
			       struct job_reply *ret_reply);

#endif
