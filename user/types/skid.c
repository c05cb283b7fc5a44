// SPDX-License-Identifier: Apache-2.0
/*
 * Both functions walk the same path: backwards in the block of the sample, then, from
 * its head, through the block's only predecessor, one block back and no further.
 */
#include "types/skid.h"

#define NONE	     SIZE_MAX
#define GENERAL_REGS 16

static size_t last_access(const struct insn *insns, size_t first, size_t end)
{
	for (size_t i = end; i-- > first;) {
		if (insns[i].op == INSN_CALL)
			return NONE;
		if (insns[i].is_counted)
			return i;
	}
	return NONE;
}

/* Does the block stop the search although it holds no access? */
static bool has_call(const struct insn *insns, size_t first, size_t end)
{
	for (size_t i = first; i < end; i++)
		if (insns[i].op == INSN_CALL)
			return true;
	return false;
}

static const struct cfg_block *only_pred(const struct cfg *cfg, uint32_t block)
{
	const struct cfg_block *b = &cfg->blocks[block];

	return b->pred_count == 1 && block != cfg->entry
		       ? &cfg->blocks[cfg->preds[b->pred]]
		       : NULL;
}

size_t skid_access(const struct cfg *cfg, const struct insn *insns, size_t at)
{
	uint32_t number = cfg->block_of[at];
	const struct cfg_block *block = &cfg->blocks[number];
	size_t found = last_access(insns, block->first, at);

	if (found != NONE || has_call(insns, block->first, at))
		return found;

	const struct cfg_block *pred = only_pred(cfg, number);

	if (!pred || pred == block)
		return NONE;
	return last_access(insns, pred->first, pred->first + pred->count);
}

/* Registers changed by @access and whatever follows it up to the sample. */
static uint64_t changed(const struct cfg *cfg, const struct insn *insns, size_t access,
			size_t at)
{
	uint32_t from = cfg->block_of[access], to = cfg->block_of[at];
	uint64_t writes = 0;

	if (access == at)
		return 0; /* the sample was taken before it ran */
	if (from == to && access < at) {
		for (size_t i = access; i < at; i++)
			writes |= insns[i].writes;
		return writes;
	}
	if (only_pred(cfg, to) != &cfg->blocks[from])
		return UINT64_MAX;
	for (size_t i = access; i < cfg->blocks[from].first + cfg->blocks[from].count;
	     i++)
		writes |= insns[i].writes;
	for (size_t i = cfg->blocks[to].first; i < at; i++)
		writes |= insns[i].writes;
	return writes;
}

bool skid_address(const struct cfg *cfg, const struct insn *insns, size_t access,
		  size_t at, const uint64_t *regs, const uint64_t *segment_bases,
		  uint64_t *ret_va)
{
	const struct insn_mem *mem = &insns[access].mems[0];
	uint64_t need = 0, va = (uint64_t)mem->disp;

	if (!insns[access].mem_count)
		return false;
	if (mem->base < GENERAL_REGS)
		need |= insn_bit(mem->base);
	else if (mem->base != INSN_REG_NONE && mem->base != INSN_REG_IP)
		return false;
	if (mem->index < GENERAL_REGS)
		need |= insn_bit(mem->index);
	else if (mem->index != INSN_REG_NONE)
		return false;
	if (need & changed(cfg, insns, access, at))
		return false;
	if (mem->segment != INSN_FLAT) {
		if (!segment_bases)
			return false;
		va += segment_bases[mem->segment == INSN_GS];
	}
	if (mem->base < GENERAL_REGS)
		va += regs[mem->base];
	if (mem->index < GENERAL_REGS)
		va += regs[mem->index] * mem->scale;
	*ret_va = va;
	return true;
}
