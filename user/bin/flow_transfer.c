// SPDX-License-Identifier: Apache-2.0
/*
 * What one instruction does to registers and frame slots, by a table over operations.
 * 64-bit moves and additions keep pointers; narrower results are integers, but their
 * linear form is kept, because an index is often computed in 32 bits.
 */
#include "bin/flow_impl.h"

#define NULL_REF ((struct flow_ref){ FLOW_NONE, 0 })
#define SMALL	 4096 /* a constant below is an offset rather than an address */

static struct flow_ref constant(int64_t value)
{
	return (struct flow_ref){ FLOW_NODE_CONSTANT, value };
}

static struct flow_ref unknown(struct flow *flow, bool is_int)
{
	uint32_t node = flow_node_new(flow, FLOW_UNKNOWN, flow->impl->insn);

	flow->nodes.data[node].is_int = is_int;
	return (struct flow_ref){ node, 0 };
}

static struct flow_ref lazy(const struct flow *flow, bool is_int)
{
	return (struct flow_ref){ FLOW_LAZY, (int64_t)is_int << 32 | flow->impl->insn };
}

static struct flow_ref combine(struct flow *flow, uint8_t kind,
			       const struct flow_term *terms, uint32_t count)
{
	uint32_t number = flow_node_new(flow, kind, flow->impl->insn);
	struct flow_node *node = &flow->nodes.data[number];

	if (number <= FLOW_NODE_FRAME)
		return constant(0);
	node->term = (uint32_t)flow->terms.count;
	node->term_count = count;
	node->is_int = kind == FLOW_LINEAR;
	for (uint32_t i = 0; i < count; i++)
		vec_push(&flow->terms, terms[i]);
	return (struct flow_ref){ number, 0 };
}

static struct flow_ref scaled(struct flow *flow, struct flow_ref ref, int64_t factor)
{
	struct flow_term term = { ref, factor };

	return combine(flow, FLOW_LINEAR, &term, 1);
}

static struct flow_ref pair(struct flow *flow, uint8_t kind, struct flow_ref a,
			    struct flow_ref b, int64_t factor)
{
	struct flow_term terms[2] = { { a, 1 }, { b, factor } };

	return combine(flow, kind, terms, 2);
}

/* ---- memory */

/* The slot that holds 8 bytes at CFA + @offset, FLOW_NONE when it is not tracked. */
static uint32_t slot_of(int64_t offset)
{
	if (offset % 8 || offset >= FLOW_SLOTS_ABOVE * 8 ||
	    offset < -FLOW_SLOTS_BELOW * 8)
		return FLOW_NONE;
	return (uint32_t)(INSN_REGS + FLOW_SLOTS_BELOW + offset / 8);
}

static bool frame_offset(const struct flow_access *access, int64_t *ret_offset)
{
	if (access->base.node != FLOW_NODE_FRAME || access->index.node != FLOW_NONE ||
	    access->segment != INSN_FLAT)
		return false;
	*ret_offset = flow_plus(access->base.delta, access->disp);
	return *ret_offset == flow_bounded(*ret_offset);
}

static void kill_slots(struct flow *flow, const struct flow_access *access)
{
	int64_t offset;

	if (!frame_offset(access, &offset))
		return;
	for (int64_t at = (offset >= 0 ? offset : offset - 7) / 8 * 8;
	     at < offset + access->width; at += 8)
		if (slot_of(at) != FLOW_NONE)
			flow_put(flow, slot_of(at), lazy(flow, false));
}

static struct flow_access address_of(struct flow *flow, const struct insn_mem *mem)
{
	struct flow_access access = { .base = NULL_REF,
				      .index = NULL_REF,
				      .disp = mem->disp,
				      .insn = flow->impl->insn,
				      .scale = mem->scale,
				      .segment = mem->segment,
				      .access = mem->access,
				      .width = mem->width };

	if (mem->base == INSN_REG_IP) {
		access.base = constant(mem->disp);
		access.disp = 0;
		return access;
	}
	if (mem->base < INSN_REGS)
		access.base = flow_get(flow, mem->base);
	else if (mem->base != INSN_REG_NONE)
		access.base = unknown(flow, false);
	if (mem->index < INSN_REGS)
		access.index = flow_get(flow, mem->index);
	else if (mem->index != INSN_REG_NONE)
		access.index = unknown(flow, true); /* vector gathers */
	if (access.index.node == FLOW_NODE_CONSTANT) {
		access.disp = flow_plus(access.disp,
					flow_times(access.index.delta, mem->scale));
		access.index = NULL_REF;
	}
	if (access.base.node == FLOW_NONE && mem->segment == INSN_FLAT) {
		access.base = constant(access.index.node == FLOW_NONE ? access.disp : 0);
		if (access.index.node == FLOW_NONE)
			access.disp = 0;
	}
	if (access.base.node != FLOW_NODE_CONSTANT)
		access.disp = flow_bounded(access.disp);
	return access;
}

/* Record the memory operands; the last one is what a load or store uses. */
static void record_accesses(struct flow *flow, const struct insn *insn)
{
	for (uint8_t i = 0; i < insn->mem_count; i++) {
		if (!insn->mems[i].access)
			continue;

		struct flow_access access = address_of(flow, &insn->mems[i]);

		access.mem = i;
		vec_push(&flow->accesses, access);
	}
}

static struct flow_access *last_access(struct flow *flow)
{
	return &flow->accesses.data[flow->accesses.count - 1];
}

static struct flow_ref load(struct flow *flow, unsigned bytes)
{
	const struct flow_access *access = last_access(flow);
	int64_t offset;

	if (bytes == 8 && frame_offset(access, &offset) && slot_of(offset) != FLOW_NONE) {
		struct flow_ref value = flow_get(flow, slot_of(offset));

		vec_push(&flow->reloads,
			 ((struct flow_reload){ value, offset, flow->impl->insn }));
		return value;
	}
	if (bytes != 8)
		return unknown(flow, bytes < 8);

	uint32_t node = flow_node_new(flow, FLOW_LOAD, flow->impl->insn);

	flow->nodes.data[node].link = (uint32_t)flow->accesses.count - 1;
	return (struct flow_ref){ node, 0 };
}

static void store(struct flow *flow, struct flow_ref value, unsigned bytes)
{
	const struct flow_access *access = last_access(flow);
	int64_t offset;

	kill_slots(flow, access);
	if (bytes != 8)
		return;
	vec_push(&flow->stores,
		 ((struct flow_store){ (uint32_t)flow->accesses.count - 1, value }));
	if (frame_offset(access, &offset) && slot_of(offset) != FLOW_NONE)
		flow_put(flow, slot_of(offset), value);
}

static struct flow_ref value_of(struct flow *flow, const struct insn_arg *arg)
{
	if (arg->kind == INSN_IMM)
		return constant(arg->imm);
	if (arg->kind == INSN_MEM)
		return load(flow, arg->bytes);
	if (arg->kind == INSN_REG && arg->reg < INSN_REGS && !arg->is_high)
		return flow_get(flow, arg->reg);
	return unknown(flow, true);
}

static void assign(struct flow *flow, const struct insn_arg *arg, struct flow_ref ref)
{
	if (arg->kind == INSN_REG)
		flow_put(flow, arg->reg < INSN_REGS ? arg->reg : FLOW_NONE, ref);
	else if (arg->kind == INSN_MEM)
		store(flow, ref, arg->bytes);
}

static bool is_register(const struct insn_arg *arg)
{
	return arg->kind == INSN_REG && arg->reg < INSN_REGS;
}

/* ---- operations */

static void do_clobber(struct flow *flow, const struct insn *insn)
{
	for (uint8_t reg = 0; reg < INSN_REGS; reg++)
		if (insn->writes >> reg & 1 && reg != flow->impl->in->abi->stack)
			flow_put(flow, reg, lazy(flow, true));
	if (insn->mem_count && insn->mems[0].access & ACCESS_STORE)
		kill_slots(flow, last_access(flow));
}

static void note_narrow(struct flow *flow, const struct insn_arg *from, unsigned bytes)
{
	int64_t offset;

	if (bytes < 8 && is_register(from) && !from->is_high &&
	    frame_offset(last_access(flow), &offset))
		vec_push(&flow->narrow,
			 ((struct flow_narrow){ (uint32_t)flow->accesses.count - 1,
						flow_get(flow, from->reg) }));
}

static void do_move(struct flow *flow, const struct insn *insn)
{
	const struct insn_arg *to = &insn->args[0], *from = &insn->args[1];
	unsigned bytes = to->kind == INSN_MEM	   ? to->bytes
			 : from->kind == INSN_MEM  ? from->bytes
			 : from->kind == INSN_IMM  ? to->bytes
			 : to->bytes < from->bytes ? to->bytes
						   : from->bytes;

	if (to->kind == INSN_MEM) {
		note_narrow(flow, from, bytes);
		store(flow, bytes == 8 ? value_of(flow, from) : NULL_REF, bytes);
		return;
	}
	if (!is_register(to))
		return;
	if (from->kind == INSN_IMM && bytes >= 4)
		assign(flow, to,
		       constant(bytes == 4 ? (int64_t)(uint32_t)from->imm : from->imm));
	else if (bytes == 8 || (bytes >= 16 && is_register(from)))
		assign(flow, to, value_of(flow, from));
	else if (bytes == 4 && is_register(from) && from->reg < INSN_REG_VEC &&
		 to->reg < INSN_REG_VEC)
		assign(flow, to, scaled(flow, flow_get(flow, from->reg), 1));
	else
		assign(flow, to, lazy(flow, bytes < 8));
}

static void do_extend(struct flow *flow, const struct insn *insn)
{
	const struct insn_arg *from = &insn->args[1];

	if (is_register(from) && from->bytes >= 4)
		assign(flow, &insn->args[0], scaled(flow, flow_get(flow, from->reg), 1));
	else
		assign(flow, &insn->args[0], lazy(flow, true));
}

static void do_lea(struct flow *flow, const struct insn *insn)
{
	struct flow_access at = address_of(flow, &insn->mems[0]);
	struct flow_ref base = at.base, ref;
	bool has_base = base.node != FLOW_NONE &&
			!(base.node == FLOW_NODE_CONSTANT && !base.delta);
	bool has_index = at.index.node != FLOW_NONE;

	if (insn->args[0].bytes < 8 && (has_base || has_index)) {
		struct flow_term terms[3];
		uint32_t count = 0;

		if (has_base)
			terms[count++] = (struct flow_term){ base, 1 };
		if (has_index)
			terms[count++] = (struct flow_term){ at.index, at.scale };
		terms[count++] = (struct flow_term){ constant(at.disp), 1 };
		assign(flow, &insn->args[0], combine(flow, FLOW_LINEAR, terms, count));
		return;
	}
	if (!has_index)
		ref = has_base ? base : constant(0);
	else if (!has_base)
		ref = scaled(flow, at.index, at.scale);
	else if (base.node == at.index.node && base.delta == at.index.delta)
		ref = scaled(flow, base, 1 + at.scale);
	else
		ref = pair(flow, FLOW_SUM, base, at.index, at.scale);
	ref.delta = flow_plus(ref.delta, at.disp);
	if (ref.node == FLOW_NODE_FRAME)
		vec_push(&flow->impl->taken, ref.delta);
	assign(flow, &insn->args[0], ref);
}

static void do_add(struct flow *flow, const struct insn *insn)
{
	const struct insn_arg *to = &insn->args[0], *by = &insn->args[2];
	bool is_sub = insn->op == INSN_SUB;
	struct flow_ref x, y, ref;

	if (to->kind == INSN_MEM) {
		kill_slots(flow, last_access(flow));
		return;
	}
	if (!is_register(to) || to->bytes < 4 || to->reg == flow->impl->in->abi->stack) {
		do_clobber(flow, insn);
		return;
	}
	x = flow_get(flow, to->reg);
	y = value_of(flow, by);
	if (to->bytes < 8) {
		ref = pair(flow, FLOW_LINEAR, x, y, is_sub ? -1 : 1);
	} else if (y.node == FLOW_NODE_CONSTANT &&
		   (by->kind == INSN_IMM ||
		    (x.node && y.delta > -SMALL && y.delta < SMALL))) {
		ref = x;
		ref.delta = flow_plus(ref.delta, flow_times(y.delta, is_sub ? -1 : 1));
	} else if (is_sub) {
		ref = pair(flow, FLOW_DIFF, x, y, -1);
	} else if (x.node == y.node && x.delta == y.delta) {
		ref = scaled(flow, x, 2);
	} else {
		ref = pair(flow, FLOW_SUM, x, y, 1);
	}
	assign(flow, to, ref);
}

static void do_multiply(struct flow *flow, const struct insn *insn)
{
	const struct insn_arg *to = &insn->args[0], *x = &insn->args[1],
			      *y = &insn->args[2];
	int64_t factor = insn->op == INSN_SHIFT_LEFT ? 1ll << (y->imm & 31) : y->imm;

	if (!is_register(to) || y->kind != INSN_IMM || to->bytes < 4) {
		do_clobber(flow, insn);
	} else if (is_register(x)) {
		assign(flow, to, scaled(flow, flow_get(flow, x->reg), factor));
	} else {
		struct flow_ref ref = unknown(flow, true);

		if (factor > 0 && factor < INT32_MAX)
			flow->nodes.data[ref.node].multiple = (uint32_t)factor;
		assign(flow, to, ref);
	}
}

static void do_negate(struct flow *flow, const struct insn *insn)
{
	if (is_register(&insn->args[0]) && insn->args[0].bytes >= 4)
		assign(flow, &insn->args[0],
		       scaled(flow, flow_get(flow, insn->args[0].reg), -1));
	else
		do_clobber(flow, insn);
}

static void do_select(struct flow *flow, const struct insn *insn)
{
	const struct insn_arg *to = &insn->args[0];

	if (!is_register(to) || to->bytes < 8) {
		do_clobber(flow, insn);
		return;
	}

	struct flow_ref other = value_of(flow, &insn->args[1]);

	assign(flow, to, pair(flow, FLOW_PHI, flow_get(flow, to->reg), other, 1));
}

static void do_exchange(struct flow *flow, const struct insn *insn)
{
	const struct insn_arg *a = &insn->args[0], *b = &insn->args[1];

	if (is_register(a) && is_register(b) && a->bytes == 8) {
		struct flow_ref x = flow_get(flow, a->reg), y = flow_get(flow, b->reg);

		assign(flow, a, y);
		assign(flow, b, x);
		return;
	}
	do_clobber(flow, insn);
	/* what memory held may well be a pointer */
	for (unsigned i = 0; i < 2; i++)
		if (is_register(&insn->args[i]))
			assign(flow, &insn->args[i], lazy(flow, insn->args[i].bytes < 8));
}

static bool stack_top(struct flow *flow, int64_t *ret_offset)
{
	const struct flow_frame *frame = &flow->impl->in->frames[flow->impl->insn];

	if (frame->reg != flow->impl->in->abi->stack)
		return false;
	*ret_offset = -frame->offset;
	return true;
}

static void do_push(struct flow *flow, const struct insn *insn)
{
	int64_t top;
	struct flow_ref value = value_of(flow, &insn->args[0]);

	if (stack_top(flow, &top) && slot_of(top - 8) != FLOW_NONE)
		flow_put(flow, slot_of(top - 8), value);
}

static void do_pop(struct flow *flow, const struct insn *insn)
{
	int64_t top;

	if (!is_register(&insn->args[0]) ||
	    insn->args[0].reg == flow->impl->in->abi->stack)
		return;
	if (stack_top(flow, &top) && slot_of(top) != FLOW_NONE)
		assign(flow, &insn->args[0], flow_get(flow, slot_of(top)));
	else
		assign(flow, &insn->args[0], lazy(flow, false));
}

static void do_leave(struct flow *flow, const struct insn *insn)
{
	(void)insn;
	flow_put(flow, flow->impl->in->abi->frame, lazy(flow, false));
}

static void do_compare(struct flow *flow, const struct insn *insn)
{
	const struct insn_arg *a = &insn->args[0], *b = &insn->args[1];

	if (a->kind == INSN_IMM || b->kind == INSN_IMM || a->bytes != 8 || b->bytes != 8)
		return;

	struct flow_ref x = value_of(flow, a), y = value_of(flow, b);

	vec_push(&flow->compares, ((struct flow_pair){ x, y, flow->impl->insn }));
}

static void clobber_by_call(struct flow *flow)
{
	const struct flow_input *in = flow->impl->in;
	uint64_t changed = in->call_clobbers
				   ? in->call_clobbers(in->ctx, flow->impl->insn)
				   : in->abi->call_clobbers;

	for (uint8_t reg = 0; reg < INSN_REGS; reg++)
		if (changed >> reg & 1)
			flow_put(flow, reg, lazy(flow, false));
}

static void do_call(struct flow *flow, const struct insn *insn)
{
	struct flow_impl *impl = flow->impl;
	const struct insn_abi *abi = impl->in->abi;
	struct flow_call call = { .insn = impl->insn,
				  .node = FLOW_NONE,
				  .target = NULL_REF };
	unsigned count =
		impl->in->call_args ? impl->in->call_args(impl->in->ctx, impl->insn) : 0;

	if (!insn->target)
		call.target = value_of(flow, &insn->args[0]);
	for (unsigned i = 0; i < count && i < FLOW_MAX_ARGS && i < abi->arg_count; i++)
		call.args[call.arg_count++] = flow_get(flow, abi->args[i]);
	if (insn->op == INSN_CALL) {
		call.node = flow_node_new(flow, FLOW_CALL, impl->insn);
		flow->nodes.data[call.node].link = (uint32_t)flow->calls.count;
		clobber_by_call(flow);
		flow_put(flow, abi->result, (struct flow_ref){ call.node, 0 });
		vec_each(&impl->taken, offset)
			if (slot_of(*offset) != FLOW_NONE)
				flow_put(flow, slot_of(*offset), lazy(flow, false));
	}
	vec_push(&flow->calls, call);
}

static void do_jump(struct flow *flow, const struct insn *insn)
{
	const struct cfg *cfg = flow->impl->in->cfg;

	/* a jump out of the function is a call in tail position */
	if (!cfg->blocks[flow->impl->block].succ_count)
		do_call(flow, insn);
}

static void do_return(struct flow *flow, const struct insn *insn)
{
	(void)insn;
	vec_push(&flow->returns,
		 ((struct flow_pair){ flow_get(flow, flow->impl->in->abi->result),
				      NULL_REF, flow->impl->insn }));
}

static void do_nothing(struct flow *flow, const struct insn *insn)
{
	(void)flow;
	(void)insn;
}

typedef void (*transfer_fn)(struct flow *flow, const struct insn *insn);

static const transfer_fn transfers[INSN_OPS] = {
	[INSN_BAD] = do_nothing,    [INSN_OTHER] = do_clobber,
	[INSN_NOP] = do_nothing,    [INSN_MOVE] = do_move,
	[INSN_EXTEND] = do_extend,  [INSN_LEA] = do_lea,
	[INSN_ADD] = do_add,	    [INSN_SUB] = do_add,
	[INSN_MUL] = do_multiply,   [INSN_SHIFT_LEFT] = do_multiply,
	[INSN_AND] = do_clobber,    [INSN_NEG] = do_negate,
	[INSN_SELECT] = do_select,  [INSN_EXCHANGE] = do_exchange,
	[INSN_PUSH] = do_push,	    [INSN_POP] = do_pop,
	[INSN_LEAVE] = do_leave,    [INSN_COMPARE] = do_compare,
	[INSN_TEST] = do_nothing,   [INSN_CALL] = do_call,
	[INSN_JUMP] = do_jump,	    [INSN_BRANCH] = do_nothing,
	[INSN_RETURN] = do_return,  [INSN_TRAP] = do_nothing,
	[INSN_STRING] = do_clobber,
};

void flow_transfer(struct flow *flow, const struct insn *insn)
{
	if (insn->op != INSN_LEA)
		record_accesses(flow, insn);
	transfers[insn->op](flow, insn);
}
