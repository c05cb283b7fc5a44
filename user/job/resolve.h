/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JOB_RESOLVE_H
#define JOB_RESOLVE_H

/*
 * The job that turns names of a spec file into places of one module: which functions
 * or USDT notes are meant, where a breakpoint is cheap and sees what is wanted, where
 * the function returns, and at which offsets fields lie.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/arena.h"
#include "core/err.h"
#include "core/str.h"
#include "core/wire.h"

#define RESOLVE_MAX_PROBES  256
#define RESOLVE_MAX_MATCHES 128 /* functions or notes of one probe */
#define RESOLVE_MAX_SITES   65	/* an entry and the returns of one function */
#define RESOLVE_MAX_FIELDS  16	/* field paths of one probe */
#define RESOLVE_MAX_ARROWS  4
#define RESOLVE_MAX_ARGS    12	 /* of a USDT note */
#define RESOLVE_MAX_TEXT    1024 /* of names and reasons */

enum resolve_by {
	RESOLVE_SYMBOL = 1,
	RESOLVE_PREFIX,
	RESOLVE_GLOB,
	RESOLVE_DEMANGLED,
	RESOLVE_DWARF, /* a function of the debug information: static ones too */
	RESOLVE_USDT,  /* "provider:name" */
	RESOLVE_VA,    /* @va, @bytes; for a file known by its build-id */
};

struct resolve_field {
	uint8_t arg;	  /* from 1; 0: the result */
	const char *path; /* "->name.sub->more" */
};

struct resolve_probe {
	uint8_t by; /* enum resolve_by */
	const char *text;
	uint64_t va, bytes;
	bool wants_entry, wants_return; /* neither: only whether it is there */
	bool needs_result;		/* at the return, rax */
	bool reads_memory;		/* at the entry, memory */
	uint32_t live;			/* registers wanted at the entry, by bit */
	const struct resolve_field *fields;
	size_t field_count;
};

enum resolve_insn { /* of the instruction at a site; as place.h has them */
		    RESOLVE_OTHER,
		    RESOLVE_PUSH,
		    RESOLVE_NOP,
		    RESOLVE_CALL,
		    RESOLVE_JUMP,
		    RESOLVE_BRANCH,
		    RESOLVE_RETURN,
		    RESOLVE_INSNS,
};

struct resolve_site {
	uint64_t va, off; /* off: in the file */
	uint8_t insn;	  /* enum resolve_insn */
	bool is_emulated; /* else single-stepped: ten times the cost */
	bool is_return;
	bool by_frame;	/* @pushed counts from rbp */
	int32_t pushed; /* sp here + this = sp at the first instruction; -1 unknown */
};

enum resolve_where {
	RESOLVE_UNKNOWN,
	RESOLVE_REGISTER,
	RESOLVE_MEMORY,
	RESOLVE_CONSTANT
};

struct resolve_arg {   /* of a USDT note */
	uint8_t where; /* enum resolve_where */
	uint8_t bytes, reg;
	bool is_signed;
	int64_t offset; /* MEMORY: from the register; CONSTANT: the value */
};

struct resolve_offsets { /* of one field path */
	uint32_t offsets[RESOLVE_MAX_ARROWS];
	uint8_t count; /* 0: not found, @reason says why */
	uint8_t bytes;
	bool is_signed;
	const char *reason;
};

/* One function or note. */
struct resolve_target {
	uint32_t probe; /* index in the request */
	uint64_t va, bytes, off;
	uint64_t semaphore_off;	   /* USDT: in the file; 0 none */
	bool is_emulated;	   /* the instruction at @va */
	const char *name;	   /* demangled */
	const char *return_reason; /* why returns have no sites; "" they have */
	const struct resolve_site *sites;
	size_t site_count;
	const struct resolve_arg *args;
	size_t arg_count;
	const struct resolve_offsets *fields; /* as asked */
	size_t field_count;
};

struct resolve_failure {
	uint32_t probe;
	const char *reason;
};

struct resolve_reply {
	bool throws; /* the module has landing pads: no uretprobe in it */
	const struct resolve_target *targets; /* by probe */
	size_t target_count;
	const struct resolve_failure *failures; /* probes without any target */
	size_t failure_count;
};

struct resolve_request {
	uint64_t module_id;
	const struct resolve_probe *probes;
	size_t count;
};

/* On the wire. Readers: ERR_FORMAT; strings stay in the message. */
void resolve_put_request(struct str *out, const struct resolve_request *request);
struct err *resolve_read_request(struct wire *in, struct arena *arena,
				 struct resolve_request *ret_request);
void resolve_put_reply(struct str *out, const struct resolve_reply *reply);
struct err *resolve_read_reply(struct wire *in, struct arena *arena,
			       struct resolve_reply *ret_reply);

#endif
