/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_EXPR_H
#define PROBE_EXPR_H

/*
 * What a spec file says about values, as it is written there: parsed, not yet resolved.
 *
 *	arg1 .. arg6, ret, reg(rdi), 42, 0x2a, tid
 *	arg1+16, *(arg1+16), **(arg1+80)		8 bytes unless told otherwise
 *	u8(E) u16(E) u32(E) s8(E) s16(E) s32(E)		width of the last read, or a cast
 *	arg1->name.sub->more				offsets by DWARF
 *	arg1->name@24					24 where there is no DWARF
 *	cstr(E)  str(POINTER, LENGTH)  grpc_slice(E)  std_string(E)	texts
 *	E == N, E != N, E < N, E <= N, E > N, E >= N, E & N; joined by &&	conditions
 *
 * There are no loops, no calls and no arithmetic between two values: every value is a
 * chain "base, then offset and read, several times", which a BPF program follows in a
 * bounded loop. In a USDT probe argN is the probe's Nth argument, wherever it lives.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define EXPR_MAX_TEXT	    256 /* bytes of one expression */
#define EXPR_MAX_STEPS	    6	/* reads in one chain */
#define EXPR_MAX_NESTING    16	/* parentheses and functions */
#define EXPR_MAX_FIELD	    128 /* bytes of the field path of one chain */
#define EXPR_MAX_CONDITIONS 2
#define EXPR_MAX_ARGS	    6

enum expr_base {
	EXPR_NOTHING,
	EXPR_ARG, /* @number: 1.. */
	EXPR_RET,
	EXPR_REG, /* @number: DWARF register */
	EXPR_CONST,
	EXPR_TID,
};

struct expr_step {
	int64_t offset;	 /* read at value + offset; of a field without DWARF: after '@' */
	bool is_field;	 /* the offset comes from @fields */
	bool has_offset; /* of a field: '@' was given */
	uint8_t bytes;	 /* of the read: 1, 2, 4, 8 */
	bool is_signed;
};

struct expr_chain {
	uint8_t base; /* enum expr_base */
	uint8_t step_count;
	uint8_t cast_bytes; /* of a chain without reads: 0 all, else keep so many */
	bool cast_signed;
	bool has_width; /* of the last read, by the spec's word */
	int64_t number;
	int64_t add; /* after the last read */
	struct expr_step steps[EXPR_MAX_STEPS];
	/* "->name.sub->more": one arrow per field step. "" without fields. They begin at
	 * step @first_field and are adjacent. */
	uint8_t first_field;
	char fields[EXPR_MAX_FIELD];
};

enum expr_kind {
	EXPR_NONE,
	EXPR_VALUE,
	EXPR_CSTR,	 /* NUL-terminated at @a */
	EXPR_STR,	 /* @b bytes at @a */
	EXPR_GRPC_SLICE, /* @a points to a grpc_slice */
	EXPR_STD_STRING, /* @a points to a libstdc++ std::string (C++11 ABI) */
};

struct expr {
	uint8_t kind; /* enum expr_kind */
	struct expr_chain a, b;
};

enum expr_compare {
	EXPR_EQ = 1,
	EXPR_NE,
	EXPR_LT, /* signed */
	EXPR_LE,
	EXPR_GT,
	EXPR_GE,
	EXPR_MASK, /* any of these bits */
};

struct expr_condition {
	struct expr_chain value;
	uint8_t compare; /* enum expr_compare */
	int64_t number;
};

struct expr_when {
	struct expr_condition conditions[EXPR_MAX_CONDITIONS]; /* all must hold */
	size_t count;
};

/**
 * expr_parse() - a value or a text; expr_parse_when() - a condition.
 * Errors: ERR_INVALID and ERR_LIMIT, "column 7: a ')' is missing" (counted from 1).
 */
struct err *expr_parse(const char *text, struct expr *ret_expr);
struct err *expr_parse_when(const char *text, struct expr_when *ret_when);

/* expr_register() - DWARF number of an x86-64 register, -1 for no such name. */
int expr_register(const char *name, size_t length);
const char *expr_register_name(unsigned number); /* "" for no such number */

#endif
