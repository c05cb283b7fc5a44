/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_CFG_H
#define BIN_CFG_H

/*
 * One function as basic blocks. Jump tables are read (bounded by the compare before the
 * jump where there is one); an indirect jump that stays unresolved has no successors,
 * and its targets, having no predecessors, are entered with nothing known.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bin/insn.h"
#include "core/cleanup.h"

#define CFG_MAX_TABLE	  4096 /* entries of one jump table */
#define CFG_MAX_LOOK_BACK 24   /* instructions from the jump to its table's load */

struct cfg_block {
	uint32_t first, count;	   /* instructions */
	uint32_t succ, succ_count; /* in cfg->succs */
	uint32_t pred, pred_count; /* in cfg->preds */
};

struct cfg {
	struct cfg_block *blocks; /* in order of va; they tile the instructions */
	uint32_t block_count;
	uint32_t entry;			    /* block */
	uint32_t *succs, *preds, *block_of; /* block_of: by instruction */
	uint32_t tables, unresolved;	    /* indirect jumps read, and not */
};

struct cfg_input {
	const struct insn *insns; /* sorted by va; gaps between ranges are fine */
	size_t count;
	uint64_t entry_va;
	void *ctx;
	/* Does the call at @insn come back? NULL: every one does. */
	bool (*returns)(void *ctx, const struct insn *insn);
	/* A constant of @bytes at @va in the file; false when there is none. 8-byte ones
	 * have their relative relocation applied. */
	bool (*read)(void *ctx, uint64_t va, unsigned bytes, uint64_t *ret_value);
};

struct cfg *cfg_build(const struct cfg_input *input);
void cfg_free(struct cfg *cfg); /* NULL is fine */
CLEANUP_DEFINE(cfg_free, struct cfg *)

#endif
