/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_FLOW_H
#define BIN_FLOW_H

/*
 * Data flow of one function: pruned SSA over registers and 8-byte frame slots. A value
 * is (node, delta): node's value plus a constant. Copies, spills and constant offsets
 * leave no nodes behind, so whatever is learnt about a node holds for every pointer
 * derived from it, forwards and backwards. It knows no types; stores through pointers
 * are assumed not to hit spill slots.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bin/cfg.h"
#include "bin/insn.h"
#include "core/cleanup.h"
#include "core/vec.h"

#define FLOW_MAX_NODES (8u << 20)
#define FLOW_MAX_TERMS 4 /* of a linear form */
#define FLOW_MAX_ARGS  6
#define FLOW_NONE      UINT32_MAX

enum flow_kind {
	FLOW_CONSTANT, /* node 0: the value is the delta */
	FLOW_FRAME,    /* node 1: the canonical frame address */
	FLOW_UNKNOWN,
	FLOW_ENTRY,  /* what @reg held on entry */
	FLOW_PHI,    /* one of its terms */
	FLOW_LOAD,   /* 8 bytes by @access */
	FLOW_CALL,   /* result of @call */
	FLOW_SUM,    /* sum of two terms: a pointer and an index, not known which */
	FLOW_DIFF,   /* first term minus the second */
	FLOW_LINEAR, /* an integer made from its terms */
};

struct flow_ref {
	uint32_t node;
	int64_t delta; /* within FLOW_MAX_DELTA unless the node is the constant */
};

/* Larger offsets are clipped: they lead out of every object anyway. */
#define FLOW_MAX_DELTA (1ll << 40)

/* Machine arithmetic wraps; C's must not. */
static inline int64_t flow_plus(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a + (uint64_t)b);
}

static inline int64_t flow_times(int64_t a, int64_t b)
{
	return (int64_t)((uint64_t)a * (uint64_t)b);
}

static inline int64_t flow_bounded(int64_t delta)
{
	return delta > FLOW_MAX_DELTA	 ? FLOW_MAX_DELTA
	       : delta < -FLOW_MAX_DELTA ? -FLOW_MAX_DELTA
					 : delta;
}

struct flow_term {
	struct flow_ref ref;
	int64_t factor;
};

struct flow_node {
	uint8_t kind, reg;
	bool is_int;		   /* surely no pointer */
	uint32_t insn;		   /* where it came from */
	uint32_t link;		   /* access or call */
	uint32_t term, term_count; /* in flow->terms */
	uint32_t multiple; /* the value is a multiple of this; 1 nothing known, 0 zero */
};

/* base + index * scale + disp; FLOW_NONE for a part that is not there. */
struct flow_access {
	struct flow_ref base, index;
	int64_t disp;
	uint32_t insn;
	uint8_t mem, scale, segment, access; /* mem: which operand of the instruction */
	uint16_t width;
};

struct flow_store {
	uint32_t access;
	struct flow_ref value; /* 8 bytes */
};

/* Less than 8 bytes of a register written to the frame. */
struct flow_narrow {
	uint32_t access;
	struct flow_ref value;
};

struct flow_call {
	uint32_t insn, node; /* node: FLOW_NONE for a tail call */
	uint32_t arg_count;
	struct flow_ref args[FLOW_MAX_ARGS], target; /* target: of an indirect call */
};

struct flow_pair {
	struct flow_ref a, b;
	uint32_t insn;
};

/* A load of 8 bytes from the frame gave this value. */
struct flow_reload {
	struct flow_ref value;
	int64_t offset; /* from the CFA */
	uint32_t insn;
};

struct flow {
	VEC(struct flow_node) nodes;
	VEC(struct flow_term) terms;
	VEC(struct flow_access) accesses; /* in order of instructions */
	VEC(struct flow_store) stores;
	VEC(struct flow_narrow) narrow;
	VEC(struct flow_call) calls;
	VEC(struct flow_pair) compares; /* equality or order of two 64-bit values */
	VEC(struct flow_pair) returns;	/* a: the value returned */
	VEC(struct flow_reload) reloads;
	uint32_t entries[INSN_REGS]; /* node of each register on entry */
	struct flow_impl *impl;
};

struct flow_frame {
	int64_t offset; /* CFA = @reg + @offset */
	uint8_t reg;	/* INSN_REG_NONE: unknown */
};

struct flow_input {
	const struct cfg *cfg;
	const struct insn *insns;
	const struct flow_frame *frames; /* by instruction */
	size_t count;
	const struct insn_abi *abi;
	void *ctx;
	/* Called before each instruction, in order of va: what holds there may be asked
	 * with flow_register(). @changed: registers that got a new value in this block
	 * since the last call; @is_head: first of its block. */
	void (*before)(void *ctx, struct flow *flow, uint32_t insn, uint64_t changed,
		       bool is_head);
	/* How many argument registers the call at @insn takes. */
	unsigned (*call_args)(void *ctx, uint32_t insn);
	/* Which registers it may change; NULL: those of the convention. */
	uint64_t (*call_clobbers)(void *ctx, uint32_t insn);
};

struct flow *flow_new(void);
void flow_free(struct flow *flow); /* NULL is fine */
CLEANUP_DEFINE(flow_free, struct flow *)

/* flow_run() - everything in @flow is replaced. Return false past FLOW_MAX_NODES. */
bool flow_run(struct flow *flow, const struct flow_input *input);
/* flow_register() - only inside before(). The node may later turn out to be a copy. */
struct flow_ref flow_register(struct flow *flow, uint8_t reg);
/* flow_settle() - a reference got during the run, in final form. */
struct flow_ref flow_settle(const struct flow *flow, struct flow_ref ref);

/* flow_multiple() - gcd of all values it may have; 1 nothing known, 0 always zero. */
uint64_t flow_multiple(const struct flow *flow, struct flow_ref ref);
/* flow_constant() - the constant part of its linear form. */
int64_t flow_constant(const struct flow *flow, struct flow_ref ref);

#endif
