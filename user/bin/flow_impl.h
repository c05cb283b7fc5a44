/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_FLOW_IMPL_H
#define BIN_FLOW_IMPL_H

/* Shared by bin/flow*.c only. */

#include "bin/flow.h"
#include "core/map.h"

#define FLOW_NODE_CONSTANT 0
#define FLOW_NODE_FRAME	   1
#define FLOW_LAZY	   (UINT32_MAX - 1)

/* Frame slots tracked, by offset from the CFA; beyond them memory is unknown. */
#define FLOW_SLOTS_ABOVE 64
#define FLOW_SLOTS_BELOW 4096
#define FLOW_LOCS	 (INSN_REGS + FLOW_SLOTS_ABOVE + FLOW_SLOTS_BELOW)

struct flow_out {
	uint32_t loc;
	struct flow_ref ref;
};

struct flow_block {
	uint32_t first, count; /* in outs */
	bool is_done;
};

struct flow_pending {
	uint32_t block, loc, node;
};

/* Sum of factor * node, node not linear itself, plus a constant. */
struct flow_form {
	uint32_t nodes[FLOW_MAX_TERMS];
	int64_t factors[FLOW_MAX_TERMS];
	int64_t constant;
	uint32_t count;
	bool is_known;
};

struct flow_impl {
	const struct flow_input *in;
	struct flow_ref state[FLOW_LOCS];
	uint64_t epochs[FLOW_LOCS], epoch; /* whose state is valid in this block */
	uint64_t changed;
	uint32_t block, insn;
	bool is_full;
	VEC(uint32_t) touched;
	VEC(struct flow_out) outs;
	VEC(struct flow_block) blocks;
	VEC(struct flow_pending) work;
	VEC(int64_t) taken;	     /* frame offsets whose address was computed */
	VEC(struct flow_ref) copies; /* by node; FLOW_NONE: it is itself */
	VEC(struct flow_form) forms; /* by node */
	struct map *defs;	     /* (block, loc) -> value at the block's head */
};

uint32_t flow_node_new(struct flow *flow, uint8_t kind, uint32_t insn);
struct flow_ref flow_get(struct flow *flow, uint32_t loc);
void flow_put(struct flow *flow, uint32_t loc, struct flow_ref ref);
void flow_transfer(struct flow *flow, const struct insn *insn); /* flow_transfer.c */
void flow_find_multiples(struct flow *flow);			/* flow_linear.c */

#endif
