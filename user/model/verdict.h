/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODEL_VERDICT_H
#define MODEL_VERDICT_H

/*
 * How a memory instruction was answered. An abstention is an answer too: its reason is
 * stored, counted and shown.
 */

#include <stdbool.h>
#include <stdint.h>

/* Bumped when answers change: older ones are asked for again. */
#define ANALYSER_VERSION 2

enum verdict {
	VERDICT_NONE, /* not analysed */

	/* claims, most direct first: the provenance column */
	VERDICT_DWARF,	  /* a variable's location at this very pc */
	VERDICT_GLOBAL,	  /* a global variable by its address */
	VERDICT_LOCAL,	  /* data flow inside the basic block */
	VERDICT_JOIN,	  /* data flow over the whole function */
	VERDICT_CALL,	  /* the type of a call's result or argument */
	VERDICT_BACKWARD, /* a later use decides */
	VERDICT_LAYOUT,	  /* inferred from layouts; the least direct */
	VERDICT_LAST_CLAIM = VERDICT_LAYOUT,

	/* abstentions: the reason column */
	VERDICT_NO_DEBUG,     /* the module has no debug information */
	VERDICT_NO_FUNCTION,  /* no function with debug information covers the address */
	VERDICT_NO_TYPE,      /* nothing known about the base register */
	VERDICT_NOT_STRUCT,   /* typed, but it is no struct: a scalar, a char buffer */
	VERDICT_CONFLICT,     /* facts contradict each other */
	VERDICT_OUT_OF_RANGE, /* the offset lies outside the type */
	VERDICT_STACK,	      /* a spill slot, saved register or outgoing argument */
	VERDICT_CANARY,	      /* the stack protector's guard */
	VERDICT_CONSTANT,     /* constant pool, jump table, GOT */
	VERDICT_ASSEMBLY,     /* hand-written: no compiler, no types */
	VERDICT_NO_MEMORY,    /* not a memory instruction */
	VERDICT_SKID,  /* the sample's instruction has no unique predecessor access */
	VERDICT_LIMIT, /* the function exceeds a limit of the analyser */
	VERDICT_SPILL, /* a spill slot, and the type of the value in it is known */
	VERDICTS,
};

/* verdict_name() - lower-case, as in SQL and reports: "dwarf", "no-type"; never NULL. */
const char *verdict_name(enum verdict verdict);
/* verdict_text() - one sentence for people. */
const char *verdict_text(enum verdict verdict);
bool verdict_is_claim(enum verdict verdict);
enum verdict verdict_parse(const char *name); /* VERDICT_NONE for an unknown name */

enum access_kind { ACCESS_LOAD = 1, ACCESS_STORE = 2, ACCESS_BOTH = 3 };

/**
 * struct answer - (module, va) to type and field, or why not.
 * Strings are borrowed from whoever answered, until its next answer unless it says more.
 */
struct answer {
	uint64_t va;	  /* the address that was asked for */
	uint64_t insn_va; /* the memory instruction: != va only under the skid rule */
	enum verdict verdict;
	enum access_kind access;
	uint32_t width;	       /* bytes accessed, 0 unknown */
	const char *type;      /* "struct robj", "" for an abstention; never NULL */
	uint64_t type_bytes;   /* size of @type */
	int64_t offset;	       /* in the outermost known object */
	const char *path;      /* field path: "a.b[].c"; of a spill what the slot
				  holds: "struct robj *"; "" unknown */
	uint64_t field_offset; /* offset of the named leaf field in @type */
	uint64_t field_bytes;  /* its size */
	double confidence;     /* calibrated on labelled truth; 0 for an abstention */
	bool is_frame;	       /* the address is relative to the stack frame */
};

#endif
