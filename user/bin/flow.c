// SPDX-License-Identifier: Apache-2.0
/*
 * SSA on the fly: a block looks up what it does not define in its only predecessor, or
 * makes a phi there; the phis' operands are filled in when all blocks are done, which
 * asks for more phis until none is missing. Phis whose operands are all one value are
 * then replaced by it. A register that an instruction clobbers becomes a node only when
 * somebody reads it (FLOW_LAZY).
 */
#include "bin/flow_impl.h"

#include <string.h>

#include "core/mem.h"

uint32_t flow_node_new(struct flow *flow, uint8_t kind, uint32_t insn)
{
	struct flow_node node = { .kind = kind, .insn = insn, .multiple = 1 };

	if (flow->nodes.count >= FLOW_MAX_NODES) {
		flow->impl->is_full = true;
		return FLOW_NODE_FRAME;
	}
	vec_push(&flow->nodes, node);
	return (uint32_t)flow->nodes.count - 1;
}

struct flow *flow_new(void)
{
	struct flow *flow = mem_alloc(sizeof(*flow));

	flow->impl = mem_alloc(sizeof(*flow->impl));
	flow->impl->defs = map_new(sizeof(uint64_t), sizeof(struct flow_ref));
	return flow;
}

void flow_free(struct flow *flow)
{
	if (!flow)
		return;
	vec_fini(&flow->nodes);
	vec_fini(&flow->terms);
	vec_fini(&flow->accesses);
	vec_fini(&flow->stores);
	vec_fini(&flow->narrow);
	vec_fini(&flow->calls);
	vec_fini(&flow->compares);
	vec_fini(&flow->returns);
	vec_fini(&flow->reloads);
	vec_fini(&flow->impl->outs);
	vec_fini(&flow->impl->blocks);
	vec_fini(&flow->impl->work);
	vec_fini(&flow->impl->touched);
	vec_fini(&flow->impl->taken);
	vec_fini(&flow->impl->copies);
	vec_fini(&flow->impl->forms);
	map_free(flow->impl->defs);
	free(flow->impl);
	free(flow);
}

/* ---- state of the block being walked */

void flow_put(struct flow *flow, uint32_t loc, struct flow_ref ref)
{
	struct flow_impl *impl = flow->impl;

	if (loc >= FLOW_LOCS)
		return;
	if (impl->epochs[loc] != impl->epoch) {
		impl->epochs[loc] = impl->epoch;
		vec_push(&impl->touched, loc);
	}
	impl->state[loc] = ref;
	if (loc < INSN_REGS)
		impl->changed |= 1ull << loc;
}

static struct flow_ref wake(struct flow *flow, struct flow_ref ref, uint32_t loc)
{
	if (ref.node != FLOW_LAZY)
		return ref;

	uint32_t node = flow_node_new(flow, FLOW_UNKNOWN, (uint32_t)ref.delta);

	/* delta's upper half says that the clobbering value was arithmetic */
	flow->nodes.data[node].is_int = ref.delta >> 32 && loc < INSN_REG_VEC;
	return (struct flow_ref){ node, 0 };
}

static uint64_t def_key(uint32_t block, uint32_t loc)
{
	return (uint64_t)block << 32 | loc;
}

static struct flow_ref *out_entry(struct flow_impl *impl, uint32_t block, uint32_t loc)
{
	const struct flow_block *b = &impl->blocks.data[block];

	for (uint32_t i = b->first; i < b->first + b->count; i++)
		if (impl->outs.data[i].loc == loc)
			return &impl->outs.data[i].ref;
	return NULL;
}

/* A stack or frame register that the unwind rules tie to the CFA. */
static bool frame_register(const struct flow_impl *impl, uint32_t insn, uint32_t loc,
			   struct flow_ref *ret_ref)
{
	const struct flow_frame *frame = &impl->in->frames[insn];

	if (frame->reg != loc)
		return false;
	*ret_ref = (struct flow_ref){ FLOW_NODE_FRAME, -frame->offset };
	return true;
}

/* Is it tied at the end of @block? */
static bool is_frame_register(const struct flow *flow, uint32_t block, uint32_t loc,
			      struct flow_ref *ret_ref)
{
	const struct flow_impl *impl = flow->impl;
	const struct cfg_block *b = &impl->in->cfg->blocks[block];

	return (loc == impl->in->abi->stack || loc == impl->in->abi->frame) &&
	       frame_register(impl, b->first + b->count - 1, loc, ret_ref);
}

static struct flow_ref make_phi(struct flow *flow, uint32_t block, uint32_t loc)
{
	struct flow_impl *impl = flow->impl;
	uint64_t key = def_key(block, loc);
	uint32_t node = flow_node_new(flow, FLOW_PHI, impl->in->cfg->blocks[block].first);
	struct flow_ref ref = { node, 0 };

	*(struct flow_ref *)map_put(impl->defs, &key, NULL) = ref;
	vec_push(&impl->work, ((struct flow_pending){ block, loc, node }));
	return ref;
}

static struct flow_ref read_in(struct flow *flow, uint32_t block, uint32_t loc);

/* The value of @loc at the end of a finished block. */
static struct flow_ref read_out(struct flow *flow, uint32_t block, uint32_t loc)
{
	struct flow_impl *impl = flow->impl;
	struct flow_ref *entry = out_entry(impl, block, loc), ref;

	if (entry) {
		ref = wake(flow, *entry, loc);
		/* nodes moved nothing here: outs did not grow */
		*entry = ref;
		return ref;
	}
	if (is_frame_register(flow, block, loc, &ref))
		return ref;
	return read_in(flow, block, loc);
}

/* The value of @loc at the head of @block. */
static struct flow_ref read_in(struct flow *flow, uint32_t block, uint32_t loc)
{
	struct flow_impl *impl = flow->impl;
	const struct cfg *cfg = impl->in->cfg;
	uint64_t start = def_key(block, loc);
	uint32_t steps = 0;

	for (;;) {
		uint64_t key = def_key(block, loc);
		struct flow_ref *known = map_find(impl->defs, &key), ref;
		const struct cfg_block *b = &cfg->blocks[block];

		if (known)
			return *known;

		uint32_t pred = b->pred_count == 1 ? cfg->preds[b->pred] : block;
		bool can_climb = b->pred_count == 1 && block != cfg->entry &&
				 impl->blocks.data[pred].is_done && ++steps < 64;

		if (!can_climb)
			return make_phi(flow, block, loc);
		bool is_found = out_entry(impl, pred, loc) != NULL;

		if (is_found)
			ref = read_out(flow, pred, loc);
		else
			is_found = is_frame_register(flow, pred, loc, &ref);
		if (is_found) {
			*(struct flow_ref *)map_put(impl->defs, &start, NULL) = ref;
			return ref;
		}
		block = pred;
	}
}

struct flow_ref flow_get(struct flow *flow, uint32_t loc)
{
	struct flow_impl *impl = flow->impl;
	struct flow_ref ref;

	if (loc >= FLOW_LOCS)
		return (struct flow_ref){ flow_node_new(flow, FLOW_UNKNOWN, impl->insn),
					  0 };
	if ((loc == impl->in->abi->stack || loc == impl->in->abi->frame) &&
	    frame_register(impl, impl->insn, loc, &ref))
		return ref;
	if (loc == impl->in->abi->stack)
		return (struct flow_ref){ flow_node_new(flow, FLOW_UNKNOWN, impl->insn),
					  0 };
	if (impl->epochs[loc] == impl->epoch) {
		ref = wake(flow, impl->state[loc], loc);
		impl->state[loc] = ref;
		return ref;
	}

	uint64_t changed = impl->changed;

	ref = read_in(flow, impl->block, loc);
	flow_put(flow, loc, ref);
	impl->changed = changed;
	return ref;
}

struct flow_ref flow_register(struct flow *flow, uint8_t reg)
{
	return flow_get(flow, reg);
}

static void end_block(struct flow *flow)
{
	struct flow_impl *impl = flow->impl;
	struct flow_block *block = &impl->blocks.data[impl->block];

	block->first = (uint32_t)impl->outs.count;
	vec_each(&impl->touched, loc)
		vec_push(&impl->outs, ((struct flow_out){ *loc, impl->state[*loc] }));
	block->count = (uint32_t)impl->touched.count;
	block->is_done = true;
}

/* ---- completing phis */

static void fill_phi(struct flow *flow, const struct flow_pending *pending)
{
	const struct cfg *cfg = flow->impl->in->cfg;
	const struct cfg_block *block = &cfg->blocks[pending->block];
	VEC(struct flow_ref) refs = { 0 };

	if (pending->block == cfg->entry && pending->loc < INSN_REGS)
		vec_push(&refs, ((struct flow_ref){ flow->entries[pending->loc], 0 }));
	else if (pending->block == cfg->entry || !block->pred_count)
		vec_push(&refs,
			 ((struct flow_ref){
				 flow_node_new(flow, FLOW_UNKNOWN, block->first), 0 }));
	for (uint32_t i = 0; i < block->pred_count; i++)
		vec_push(&refs,
			 read_out(flow, cfg->preds[block->pred + i], pending->loc));

	struct flow_node *node = &flow->nodes.data[pending->node];

	node->term = (uint32_t)flow->terms.count;
	node->term_count = (uint32_t)refs.count;
	vec_each(&refs, ref)
		vec_push(&flow->terms, ((struct flow_term){ *ref, 1 }));
	vec_fini(&refs);
}

/* Follow copies; the chain is short because they are resolved as they are made. */
static struct flow_ref follow(const struct flow_impl *impl, struct flow_ref ref)
{
	unsigned steps = 0;

	while (ref.node < impl->copies.count &&
	       impl->copies.data[ref.node].node != FLOW_NONE && ++steps < 4096) {
		ref.delta = flow_plus(ref.delta, impl->copies.data[ref.node].delta);
		ref.node = impl->copies.data[ref.node].node;
	}
	if (ref.node != FLOW_NODE_CONSTANT)
		ref.delta = flow_bounded(ref.delta);
	return ref;
}

struct flow_ref flow_settle(const struct flow *flow, struct flow_ref ref)
{
	return follow(flow->impl, ref);
}

/* The one value that all operands but itself have. */
static bool is_copy(struct flow *flow, uint32_t number, struct flow_ref *ret_ref)
{
	const struct flow_node *node = &flow->nodes.data[number];
	struct flow_ref only = { FLOW_NONE, 0 };

	for (uint32_t i = 0; i < node->term_count; i++) {
		struct flow_term *term = &flow->terms.data[node->term + i];

		term->ref = follow(flow->impl, term->ref);
		if (term->ref.node == number && !term->ref.delta)
			continue;
		if (only.node == FLOW_NONE)
			only = term->ref;
		else if (only.node != term->ref.node || only.delta != term->ref.delta)
			return false;
	}
	*ret_ref = only;
	return only.node != FLOW_NONE && only.node != number;
}

#define MAX_ROUNDS 12

static void drop_copies(struct flow *flow)
{
	struct flow_impl *impl = flow->impl;
	bool has_changed = true;

	vec_reserve(&impl->copies, flow->nodes.count);
	impl->copies.count = flow->nodes.count;
	for (size_t i = 0; i < flow->nodes.count; i++)
		impl->copies.data[i] = (struct flow_ref){ FLOW_NONE, 0 };
	for (unsigned round = 0; round < MAX_ROUNDS && has_changed; round++) {
		has_changed = false;
		for (uint32_t i = 2; i < flow->nodes.count; i++) {
			struct flow_ref only;

			if (flow->nodes.data[i].kind != FLOW_PHI ||
			    impl->copies.data[i].node != FLOW_NONE ||
			    !is_copy(flow, i, &only))
				continue;
			impl->copies.data[i] = only;
			has_changed = true;
		}
	}
}

static void settle_all(struct flow *flow)
{
	const struct flow_impl *impl = flow->impl;

	vec_each(&flow->terms, term)
		term->ref = follow(impl, term->ref);
	vec_each(&flow->accesses, access) {
		access->base = follow(impl, access->base);
		access->index = follow(impl, access->index);
	}
	vec_each(&flow->stores, store)
		store->value = follow(impl, store->value);
	vec_each(&flow->narrow, narrow)
		narrow->value = follow(impl, narrow->value);
	vec_each(&flow->calls, call) {
		for (uint32_t i = 0; i < call->arg_count; i++)
			call->args[i] = follow(impl, call->args[i]);
		call->target = follow(impl, call->target);
	}
	vec_each(&flow->compares, pair) {
		pair->a = follow(impl, pair->a);
		pair->b = follow(impl, pair->b);
	}
	vec_each(&flow->returns, pair)
		pair->a = follow(impl, pair->a);
	vec_each(&flow->reloads, reload)
		reload->value = follow(impl, reload->value);
	for (size_t i = 0; i < flow->nodes.count; i++)
		if (impl->copies.data[i].node != FLOW_NONE)
			flow->nodes.data[i].term_count = 0;
}

static void reset(struct flow *flow, const struct flow_input *input)
{
	struct flow_impl *impl = flow->impl;

	vec_clear(&flow->nodes);
	vec_clear(&flow->terms);
	vec_clear(&flow->accesses);
	vec_clear(&flow->stores);
	vec_clear(&flow->narrow);
	vec_clear(&flow->calls);
	vec_clear(&flow->compares);
	vec_clear(&flow->returns);
	vec_clear(&flow->reloads);
	vec_clear(&impl->outs);
	vec_clear(&impl->work);
	vec_clear(&impl->taken);
	vec_clear(&impl->copies);
	map_clear(impl->defs);
	vec_reserve(&impl->blocks, input->cfg->block_count);
	impl->blocks.count = input->cfg->block_count;
	if (impl->blocks.count)
		memset(impl->blocks.data, 0,
		       impl->blocks.count * sizeof(*impl->blocks.data));
	impl->in = input;
	impl->is_full = false;
	flow_node_new(flow, FLOW_CONSTANT, 0);
	flow_node_new(flow, FLOW_FRAME, 0);
	for (uint8_t reg = 0; reg < INSN_REGS; reg++) {
		flow->entries[reg] = flow_node_new(flow, FLOW_ENTRY, 0);
		flow->nodes.data[flow->entries[reg]].reg = reg;
	}
}

static void walk_block(struct flow *flow, uint32_t number)
{
	struct flow_impl *impl = flow->impl;
	const struct cfg_block *block = &impl->in->cfg->blocks[number];

	impl->block = number;
	impl->epoch++;
	impl->changed = 0;
	vec_clear(&impl->touched);
	for (uint32_t i = block->first; i < block->first + block->count; i++) {
		uint64_t changed = impl->changed;

		impl->insn = i;
		impl->changed = 0;
		if (impl->in->before)
			impl->in->before(impl->in->ctx, flow, i, changed,
					 i == block->first);
		impl->changed = 0;
		flow_transfer(flow, &impl->in->insns[i]);
	}
	end_block(flow);
}

bool flow_run(struct flow *flow, const struct flow_input *input)
{
	struct flow_impl *impl = flow->impl;

	reset(flow, input);
	for (uint32_t i = 0; i < input->cfg->block_count && !impl->is_full; i++)
		walk_block(flow, i);
	/* fill_phi() appends to the list it works on */
	for (size_t i = 0; i < impl->work.count && !impl->is_full; i++) {
		struct flow_pending pending = impl->work.data[i];

		fill_phi(flow, &pending);
	}
	if (impl->is_full)
		return false;
	drop_copies(flow);
	settle_all(flow);
	flow_find_multiples(flow);
	return true;
}
