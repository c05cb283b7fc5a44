// SPDX-License-Identifier: Apache-2.0
/*
 * Leaders first (entry, branch targets, whatever follows a transfer), then edges, then
 * both directions of the edges as packed lists. Two kinds of jump table are known, as
 * gcc and clang emit them: 4-byte offsets from the table itself, loaded by a sign-
 * extending move with scale 4, and 8-byte addresses with scale 8.
 */
#include "bin/cfg.h"

#include <string.h>

#include "core/mem.h"
#include "core/vec.h"

#define NO_INDEX UINT32_MAX

struct table_jump {
	uint32_t from; /* instruction */
	uint32_t to;   /* likewise */
};

struct build {
	const struct cfg_input *in;
	struct cfg *cfg;
	bool *is_leader;
	VEC(struct table_jump) jumps;
	VEC(uint32_t) leas; /* instructions that load an address relative to ip */
	VEC(struct table_jump) edges; /* blocks */
};

static uint32_t find(const struct cfg_input *in, uint64_t va)
{
	size_t lo = 0, hi = in->count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (in->insns[middle].va < va)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < in->count && in->insns[lo].va == va ? (uint32_t)lo : NO_INDEX;
}

/* The address last loaded into @reg before @at; tables are often hoisted far up. */
static bool loaded_address(const struct build *b, uint8_t reg, uint32_t at,
			   uint64_t *ret_va)
{
	const struct insn *found = NULL;

	vec_each(&b->leas, index) {
		const struct insn *lea = &b->in->insns[*index];

		if (lea->args[0].reg != reg)
			continue;
		if (found && *index > at)
			break;
		found = lea;
	}
	if (found)
		*ret_va = (uint64_t)found->mems[0].disp;
	return found != NULL;
}

/* Entries that the compare before the jump admits; CFG_MAX_TABLE when none is seen. */
static uint32_t table_bound(const struct build *b, uint32_t jump)
{
	uint32_t floor = jump > CFG_MAX_LOOK_BACK ? jump - CFG_MAX_LOOK_BACK : 0;

	for (uint32_t i = jump; i-- > floor;) {
		const struct insn *insn = &b->in->insns[i];

		if (insn->op == INSN_RETURN || insn->op == INSN_CALL)
			break;
		if (insn->op != INSN_BRANCH || (insn->condition != INSN_COND_ABOVE &&
						insn->condition != INSN_COND_BELOW_EQUAL))
			continue;
		for (uint32_t k = i; k-- > (i > 6 ? i - 6 : 0);) {
			const struct insn *compare = &b->in->insns[k];

			if (compare->op == INSN_COMPARE &&
			    compare->args[1].kind == INSN_IMM)
				return compare->args[1].imm >= 0 && compare->args[1].imm <
									    CFG_MAX_TABLE
					       ? (uint32_t)compare->args[1].imm + 1
					       : CFG_MAX_TABLE;
		}
		break;
	}
	return CFG_MAX_TABLE;
}

static bool read_table(struct build *b, uint32_t jump, uint64_t table, unsigned bytes)
{
	uint32_t bound = table_bound(b, jump), count = 0;
	size_t before = b->jumps.count;

	for (; count < bound; count++) {
		uint64_t value;

		if (!b->in->read ||
		    !b->in->read(b->in->ctx, table + (uint64_t)count * bytes, bytes,
				 &value))
			break;

		uint64_t target =
			bytes == 4 ? table + (uint64_t)(int64_t)(int32_t)value : value;
		uint32_t to = find(b->in, target);

		if (to == NO_INDEX)
			break;
		vec_push(&b->jumps, ((struct table_jump){ jump, to }));
	}
	if (count >= 2)
		return true;
	b->jumps.count = before;
	return false;
}

static bool resolve_memory(struct build *b, uint32_t jump, const struct insn_mem *mem)
{
	uint64_t table = (uint64_t)mem->disp;

	if (mem->index == INSN_REG_NONE || mem->scale != 8)
		return false;
	if (mem->base != INSN_REG_NONE) {
		if (!loaded_address(b, mem->base, jump, &table))
			return false;
		table += (uint64_t)mem->disp;
	}
	return read_table(b, jump, table, 8);
}

static bool resolve_register(struct build *b, uint32_t jump)
{
	uint32_t floor = jump > CFG_MAX_LOOK_BACK ? jump - CFG_MAX_LOOK_BACK : 0;
	uint8_t reg = b->in->insns[jump].args[0].reg;
	uint64_t table;

	for (uint32_t i = jump; i-- > floor;) {
		const struct insn *insn = &b->in->insns[i];
		const struct insn_mem *mem = &insn->mems[0];

		if (insn->op == INSN_MOVE && insn->mem_count && mem->scale == 8 &&
		    insn->args[0].kind == INSN_REG && insn->args[0].reg == reg)
			return resolve_memory(b, jump, mem);
		if (insn->op == INSN_EXTEND && insn->mem_count && mem->scale == 4 &&
		    mem->index != INSN_REG_NONE && mem->width == 4) {
			if (!loaded_address(b, mem->base, jump, &table))
				return false;
			return read_table(b, jump, table + (uint64_t)mem->disp, 4);
		}
	}
	return false;
}

static void resolve_jumps(struct build *b)
{
	for (uint32_t i = 0; i < b->in->count; i++) {
		const struct insn *insn = &b->in->insns[i];

		if (insn->op == INSN_LEA && insn->mems[0].base == INSN_REG_IP)
			vec_push(&b->leas, i);
	}
	for (uint32_t i = 0; i < b->in->count; i++) {
		const struct insn *insn = &b->in->insns[i];
		bool is_known = false;

		if (insn->op != INSN_JUMP || insn->target)
			continue;
		if (insn->args[0].kind == INSN_MEM)
			is_known = resolve_memory(b, i, &insn->mems[0]);
		else if (insn->args[0].kind == INSN_REG)
			is_known = resolve_register(b, i);
		b->cfg->tables += is_known;
		b->cfg->unresolved += !is_known;
	}
}

/* Where control may go after the last instruction of a block. */
enum end { FALLS, BRANCHES, JUMPS, STOPS };

static enum end end_of(const struct build *b, const struct insn *insn)
{
	switch (insn->op) {
	case INSN_BRANCH:
		return BRANCHES;
	case INSN_JUMP:
		return JUMPS;
	case INSN_RETURN:
	case INSN_TRAP:
	case INSN_BAD:
		return STOPS;
	case INSN_CALL:
		return b->in->returns && !b->in->returns(b->in->ctx, insn) ? STOPS
									   : FALLS;
	default:
		return FALLS;
	}
}

static void find_leaders(struct build *b)
{
	const struct cfg_input *in = b->in;

	for (uint32_t i = 0; i < in->count; i++) {
		const struct insn *insn = &in->insns[i];
		enum end end = end_of(b, insn);

		if (!i || insn->va != in->insns[i - 1].va + in->insns[i - 1].bytes)
			b->is_leader[i] = true;
		if (insn->va == in->entry_va)
			b->is_leader[i] = true;
		if (end != FALLS && i + 1 < in->count)
			b->is_leader[i + 1] = true;
		if ((end == BRANCHES || end == JUMPS) && insn->target) {
			uint32_t to = find(in, insn->target);

			if (to != NO_INDEX)
				b->is_leader[to] = true;
		}
	}
	vec_each(&b->jumps, jump)
		b->is_leader[jump->to] = true;
}

static void make_blocks(struct build *b)
{
	struct cfg *cfg = b->cfg;
	uint32_t count = 0;

	for (size_t i = 0; i < b->in->count; i++)
		count += b->is_leader[i];
	cfg->blocks = mem_array(count + 1, sizeof(*cfg->blocks));
	cfg->block_of = mem_array(b->in->count + 1, sizeof(*cfg->block_of));
	for (uint32_t i = 0; i < b->in->count; i++) {
		if (b->is_leader[i])
			cfg->blocks[cfg->block_count++].first = i;
		cfg->blocks[cfg->block_count - 1].count++;
		cfg->block_of[i] = cfg->block_count - 1;
		if (b->in->insns[i].va == b->in->entry_va)
			cfg->entry = cfg->block_count - 1;
	}
}

static void add_edge(struct build *b, uint32_t from, uint32_t to)
{
	vec_push(&b->edges, ((struct table_jump){ from, to }));
}

static void make_edges(struct build *b)
{
	const struct cfg_input *in = b->in;
	struct cfg *cfg = b->cfg;

	for (uint32_t k = 0; k < cfg->block_count; k++) {
		uint32_t last = cfg->blocks[k].first + cfg->blocks[k].count - 1;
		const struct insn *insn = &in->insns[last];
		enum end end = end_of(b, insn);
		bool falls = end == FALLS || end == BRANCHES;

		if (falls && last + 1 < in->count &&
		    in->insns[last + 1].va == insn->va + insn->bytes)
			add_edge(b, k, k + 1);
		if ((end == BRANCHES || end == JUMPS) && insn->target) {
			uint32_t to = find(in, insn->target);

			if (to != NO_INDEX)
				add_edge(b, k, cfg->block_of[to]);
		}
	}
	vec_each(&b->jumps, jump)
		add_edge(b, cfg->block_of[jump->from], cfg->block_of[jump->to]);
}

static int by_from(const void *a, const void *b)
{
	const struct table_jump *x = a, *y = b;

	if (x->from != y->from)
		return x->from < y->from ? -1 : 1;
	return x->to < y->to ? -1 : x->to > y->to;
}

/* Padding that aligns the next block: nothing jumps there, and nothing falls in. Its
 * edge would make everything unknown in the block behind it. */
static bool is_padding(const struct build *b, const struct cfg_block *block)
{
	for (uint32_t i = block->first; i < block->first + block->count; i++)
		if (b->in->insns[i].op != INSN_NOP)
			return false;
	return true;
}

static void drop_padding(struct build *b)
{
	struct cfg *cfg = b->cfg;
	bool *is_entered = mem_array(cfg->block_count + 1, sizeof(bool));
	size_t kept = 0;

	is_entered[cfg->entry] = true;
	vec_each(&b->edges, edge)
		is_entered[edge->to] = true;
	for (size_t i = 0; i < b->edges.count; i++) {
		uint32_t from = b->edges.data[i].from;

		if (is_entered[from] || !is_padding(b, &cfg->blocks[from]))
			b->edges.data[kept++] = b->edges.data[i];
	}
	b->edges.count = kept;
	free(is_entered);
}

static void pack_edges(struct build *b)
{
	struct cfg *cfg = b->cfg;
	size_t kept = 0;

	if (b->edges.count)
		qsort(b->edges.data, b->edges.count, sizeof(*b->edges.data), by_from);
	for (size_t i = 0; i < b->edges.count; i++)
		if (!kept || by_from(&b->edges.data[kept - 1], &b->edges.data[i]))
			b->edges.data[kept++] = b->edges.data[i];
	cfg->succs = mem_array(kept + 1, sizeof(*cfg->succs));
	cfg->preds = mem_array(kept + 1, sizeof(*cfg->preds));
	for (size_t i = 0; i < kept; i++) {
		struct cfg_block *from = &cfg->blocks[b->edges.data[i].from];

		if (!from->succ_count++)
			from->succ = (uint32_t)i;
		cfg->succs[i] = b->edges.data[i].to;
		cfg->blocks[b->edges.data[i].to].pred_count++;
	}

	uint32_t at = 0;

	for (uint32_t k = 0; k < cfg->block_count; k++) {
		cfg->blocks[k].pred = at;
		at += cfg->blocks[k].pred_count;
		cfg->blocks[k].pred_count = 0;
	}
	for (size_t i = 0; i < kept; i++) {
		struct cfg_block *to = &cfg->blocks[b->edges.data[i].to];

		cfg->preds[to->pred + to->pred_count++] = b->edges.data[i].from;
	}
}

struct cfg *cfg_build(const struct cfg_input *input)
{
	struct build b = { .in = input, .cfg = mem_alloc(sizeof(struct cfg)) };

	b.is_leader = mem_array(input->count + 1, sizeof(bool));
	resolve_jumps(&b);
	find_leaders(&b);
	make_blocks(&b);
	make_edges(&b);
	drop_padding(&b);
	pack_edges(&b);
	free(b.is_leader);
	vec_fini(&b.jumps);
	vec_fini(&b.leas);
	vec_fini(&b.edges);
	return b.cfg;
}

void cfg_free(struct cfg *cfg)
{
	if (!cfg)
		return;
	free(cfg->blocks);
	free(cfg->block_of);
	free(cfg->succs);
	free(cfg->preds);
	free(cfg);
}
