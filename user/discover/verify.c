// SPDX-License-Identifier: Apache-2.0
/*
 * One function decoded, split into blocks and put through the data flow; questions are
 * asked of that. Whatever a value came from, along loads and sums, is its root: an
 * argument or a global.
 */
#include "discover/verify.h"

#include <string.h>

#include "core/mem.h"

#define ROOT_DEPTH 32
#define NO_ROOT	   UINT32_MAX
#define ROOT_OPEN  (UINT32_MAX - 1) /* being looked for, or not yet */
#define STEP_REACH 8		    /* instructions from a load to the store of its sum */
#define BACK_REACH 4 /* call sites farther away from what blocks prove little */

struct verify {
	const struct discover_files *files;
	const struct graph *graph;
	struct insn_decoder *decoder;
	VEC(struct insn) insns;
	struct flow_frame *frames;
	struct cfg *cfg;
	struct flow *flow;
	VEC(uint32_t) roots; /* by node */
	uint32_t function;   /* that all this is of */
};

struct verify *verify_new(const struct discover_files *files, const struct graph *graph,
			  struct insn_decoder *decoder)
{
	struct verify *verify = mem_alloc(sizeof(*verify));

	*verify = (struct verify){ .files = files,
				   .graph = graph,
				   .decoder = decoder,
				   .flow = flow_new(),
				   .function = GRAPH_NONE };
	return verify;
}

void verify_free(struct verify *verify)
{
	if (!verify)
		return;
	vec_fini(&verify->insns);
	free(verify->frames);
	cfg_free(verify->cfg);
	flow_free(verify->flow);
	vec_fini(&verify->roots);
	free(verify);
}

/* Loading. */

static bool read_constant(void *ctx, uint64_t va, unsigned bytes, uint64_t *ret_value)
{
	const struct verify *verify = ctx;
	size_t room;
	const uint8_t *data = elf_bytes_at(verify->files->main, va, &room);

	*ret_value = 0;
	if (!data || room < bytes || bytes > sizeof(*ret_value))
		return false;
	memcpy(ret_value, data, bytes);
	return true;
}

static bool call_returns(void *ctx, const struct insn *insn)
{
	static const char *const never[] = { "abort",
					     "exit",
					     "_exit",
					     "__assert_fail",
					     "__stack_chk_fail",
					     "__cxa_throw",
					     "_Unwind_Resume",
					     "pg_re_throw" };
	const struct verify *verify = ctx;
	uint32_t to = insn->target ? graph_at(verify->graph, insn->target) : GRAPH_NONE;
	const char *name =
		to == GRAPH_NONE ? "" : verify->graph->functions.data[to].symbol->name;
	size_t length = strcspn(name, "@");

	for (size_t i = 0; i < sizeof(never) / sizeof(*never); i++)
		if (strlen(never[i]) == length && !memcmp(never[i], name, length))
			return false;
	return true;
}

static void decode(struct verify *verify, const struct elf_function *symbol)
{
	uint64_t va = symbol->va;
	size_t room;
	const uint8_t *code = elf_bytes_at(verify->files->main, va, &room);

	vec_clear(&verify->insns);
	if (!code)
		return;
	room = room < symbol->bytes ? room : symbol->bytes;
	while (room && verify->insns.count < VERIFY_MAX_INSNS) {
		size_t used = insn_decode(verify->decoder, code, room, va,
					  vec_add(&verify->insns));

		code += used;
		va += used;
		room -= used;
	}
}

static void find_frames(struct verify *verify)
{
	struct flow_frame frame = { .reg = INSN_REG_NONE };
	uint64_t end = 0;

	free(verify->frames);
	verify->frames = mem_array(verify->insns.count + 1, sizeof(*verify->frames));
	for (size_t i = 0; i < verify->insns.count; i++) {
		uint64_t va = verify->insns.data[i].va;

		if (va >= end && verify->files->frames) {
			const struct frame_rule *rule =
				frame_rule_at(verify->files->frames, va);
			bool is_plain = rule && !rule->cfa_expression &&
					rule->cfa_off == flow_bounded(rule->cfa_off);

			frame.reg = is_plain ? rule->cfa_reg : INSN_REG_NONE;
			frame.offset = is_plain ? rule->cfa_off : 0;
			end = rule ? rule->end : va + 1;
		}
		verify->frames[i] = frame;
	}
}

static unsigned all_args(void *ctx, uint32_t insn)
{
	(void)ctx;
	(void)insn;
	return FLOW_MAX_ARGS;
}

static bool load(struct verify *verify, uint32_t function)
{
	const struct elf_function *symbol =
		verify->graph->functions.data[function].symbol;

	if (verify->function == function)
		return true;
	verify->function = GRAPH_NONE;
	if (symbol->is_plt)
		return false;
	decode(verify, symbol);
	if (!verify->insns.count)
		return false;
	find_frames(verify);
	struct cfg_input blocks = { .insns = verify->insns.data,
				    .count = verify->insns.count,
				    .entry_va = symbol->va,
				    .ctx = verify,
				    .returns = call_returns,
				    .read = read_constant };

	cfg_free(verify->cfg);
	verify->cfg = cfg_build(&blocks);
	struct flow_input input = { .cfg = verify->cfg,
				    .insns = verify->insns.data,
				    .frames = verify->frames,
				    .count = verify->insns.count,
				    .abi = insn_abi(verify->decoder),
				    .ctx = verify,
				    .call_args = all_args };

	if (!verify->cfg || !flow_run(verify->flow, &input))
		return false;
	vec_reserve(&verify->roots, verify->flow->nodes.count + 1);
	verify->roots.count = verify->flow->nodes.count;
	for (size_t i = 0; i < verify->roots.count; i++)
		verify->roots.data[i] = ROOT_OPEN;
	verify->function = function;
	return true;
}

/* Roots. */

static uint32_t arg_of(const struct verify *verify, uint8_t reg)
{
	const struct insn_abi *abi = insn_abi(verify->decoder);

	for (uint32_t i = 0; i < abi->arg_count && i < VERIFY_ARGS; i++)
		if (abi->args[i] == reg)
			return i;
	return NO_ROOT;
}

static uint32_t root_of(struct verify *verify, struct flow_ref ref, unsigned depth);

static uint32_t root_of_terms(struct verify *verify, const struct flow_node *node,
			      unsigned depth)
{
	for (uint32_t i = 0; i < node->term_count; i++) {
		uint32_t root = root_of(
			verify, verify->flow->terms.data[node->term + i].ref, depth + 1);

		if (root != NO_ROOT)
			return root;
	}
	return NO_ROOT;
}

/* A node that is being looked at when one comes back to it has no root that way. */
static uint32_t root_of(struct verify *verify, struct flow_ref ref, unsigned depth)
{
	const struct flow *flow = verify->flow;

	if (ref.node == FLOW_NONE || depth == ROOT_DEPTH)
		return NO_ROOT;
	const struct flow_node *node = &flow->nodes.data[ref.node];
	uint32_t *known = &verify->roots.data[ref.node];

	if (node->kind == FLOW_CONSTANT)
		return elf_section_at(verify->files->main, (uint64_t)ref.delta)
			       ? VERIFY_GLOBAL
			       : NO_ROOT;
	if (*known != ROOT_OPEN)
		return *known;
	*known = NO_ROOT;
	if (node->kind == FLOW_ENTRY)
		*known = arg_of(verify, node->reg);
	else if (node->kind == FLOW_LOAD)
		*known = root_of(verify, flow->accesses.data[node->link].base, depth + 1);
	else if (node->kind == FLOW_PHI || node->kind == FLOW_SUM)
		*known = root_of_terms(verify, node, depth);
	return *known;
}

static uint32_t root_of_access(struct verify *verify, const struct flow_access *access)
{
	if (access->base.node == FLOW_NONE)
		return access->segment == INSN_FLAT ? VERIFY_GLOBAL : NO_ROOT;
	return root_of(verify, access->base, 0);
}

/* Questions. */

/* What was loaded from there goes back there, plus or minus a constant. */
static bool is_step(const struct verify *verify, const struct flow_store *store)
{
	const struct flow *flow = verify->flow;
	const struct flow_access *to = &flow->accesses.data[store->access];

	if (store->value.node == FLOW_NONE || !store->value.delta ||
	    flow->nodes.data[store->value.node].kind != FLOW_LOAD)
		return false;
	const struct flow_access *from =
		&flow->accesses.data[flow->nodes.data[store->value.node].link];

	return from->base.node == to->base.node &&
	       from->base.delta + from->disp == to->base.delta + to->disp;
}

static bool is_sum(const struct insn *insn)
{
	return insn->op == INSN_ADD || insn->op == INSN_SUB || insn->op == INSN_LEA;
}

/* The same for words of less than 8 bytes, whose values the flow does not follow: close
 * together, load, sum, store. */
static bool is_short_step(const struct verify *verify, const struct flow_access *to)
{
	const struct flow *flow = verify->flow;

	for (const struct flow_access *from = to;
	     from-- > flow->accesses.data && from->insn + STEP_REACH >= to->insn;) {
		if (!(from->access & ACCESS_LOAD) || from->width != to->width ||
		    from->base.node != to->base.node ||
		    from->base.delta + from->disp != to->base.delta + to->disp)
			continue;
		for (uint32_t i = from->insn + 1; i < to->insn; i++)
			if (is_sum(&verify->insns.data[i]))
				return true;
	}
	return false;
}

static void look_at_accesses(struct verify *verify, struct verify_facts *facts)
{
	vec_each(&verify->flow->accesses, access) {
		uint32_t root = root_of_access(verify, access);

		if (root == NO_ROOT)
			continue;
		if (access->access & ACCESS_LOAD)
			facts->reads |= 1u << root;
		if (access->access & ACCESS_STORE)
			facts->writes |= 1u << root;
		if (access->access == ACCESS_BOTH ||
		    (access->access == ACCESS_STORE && access->width < 8 &&
		     is_short_step(verify, access)))
			facts->counts |= 1u << root;
	}
	vec_each(&verify->flow->stores, store) {
		const struct flow_access *access =
			&verify->flow->accesses.data[store->access];
		uint32_t root = root_of_access(verify, access);
		bool is_value =
			store->value.node != FLOW_NONE &&
			verify->flow->nodes.data[store->value.node].kind != FLOW_CONSTANT;

		if (root != NO_ROOT && is_step(verify, store))
			facts->counts |= 1u << root;
		else if (root != NO_ROOT && is_value)
			facts->links |= 1u << root;
	}
}

static void look_at_calls(const struct verify *verify, struct verify_facts *facts)
{
	vec_each(&verify->flow->calls, call)
		for (uint32_t i = 0; i < call->arg_count && i < VERIFY_ARGS; i++) {
			struct flow_ref ref = call->args[i];
			uint32_t root = NO_ROOT;

			if (ref.node != FLOW_NONE && !ref.delta &&
			    verify->flow->nodes.data[ref.node].kind == FLOW_ENTRY)
				root = arg_of(verify,
					      verify->flow->nodes.data[ref.node].reg);
			/* What lies in its own register still may be there by chance. */
			if (root != NO_ROOT && (root != i || i == 0))
				facts->passed |= 1u << root;
		}
}

/* Return whether @node merges others. */
static bool look_at_value(const struct verify *verify, const struct flow_node *node,
			  struct verify_facts *facts)
{
	uint64_t target;

	switch (node->kind) {
	case FLOW_CALL:
		target = verify->insns.data[verify->flow->calls.data[node->link].insn]
				 .target;
		facts->gives_value = facts->gives_call = true;
		facts->given_by = target ? graph_at(verify->graph, target) : GRAPH_NONE;
		return false;
	case FLOW_LOAD:
		facts->gives_value = facts->gives_load = true;
		return false;
	case FLOW_ENTRY:
	case FLOW_LINEAR:
		facts->gives_value = true;
		return false;
	default:
		return node->kind == FLOW_PHI;
	}
}

/* The last call of a function that returns nothing looks the same: only what surely gives
 * something counts. */
static void look_at_tails(const struct verify *verify, struct verify_facts *facts)
{
	vec_each(&verify->flow->calls, call) {
		uint64_t target = verify->insns.data[call->insn].target;
		uint32_t to = call->node == FLOW_NONE && target
				      ? graph_at(verify->graph, target)
				      : GRAPH_NONE;

		if (to == GRAPH_NONE ||
		    !graph_is_alloc(verify->graph->functions.data[to].symbol->name))
			continue;
		facts->gives_value = facts->gives_call = true;
		facts->given_by = to;
	}
}

static void look_at_results(const struct verify *verify, struct verify_facts *facts)
{
	const struct flow *flow = verify->flow;
	uint8_t *seen = mem_array(flow->nodes.count + 1, 1);
	VEC(uint32_t) queue = { 0 };

	vec_each(&flow->returns, pair)
		if (pair->a.node != FLOW_NONE && !seen[pair->a.node]++)
			vec_push(&queue, pair->a.node);
	for (size_t at = 0; at < queue.count; at++) {
		const struct flow_node *node = &flow->nodes.data[queue.data[at]];

		if (!look_at_value(verify, node, facts))
			continue;
		for (uint32_t i = 0; i < node->term_count; i++) {
			uint32_t next = flow->terms.data[node->term + i].ref.node;

			if (next != FLOW_NONE && !seen[next]++)
				vec_push(&queue, next);
		}
	}
	vec_fini(&queue);
	free(seen);
}

/* Can one get from the entry to the end without passing block @avoid? */
static bool can_pass_by(const struct verify *verify, uint32_t avoid)
{
	const struct cfg *cfg = verify->cfg;
	uint8_t *seen = mem_array(cfg->block_count, 1);
	VEC(uint32_t) queue = { 0 };
	bool found = false;

	if (cfg->entry != avoid)
		vec_push(&queue, cfg->entry);
	for (size_t at = 0; at < queue.count && !found; at++) {
		const struct cfg_block *block = &cfg->blocks[queue.data[at]];
		const struct insn *last =
			&verify->insns.data[block->first + block->count - 1];

		found = last->op == INSN_RETURN ||
			(last->op == INSN_JUMP && !block->succ_count);
		for (uint32_t i = 0; i < block->succ_count; i++) {
			uint32_t to = cfg->succs[block->succ + i];

			if (to == avoid || seen[to])
				continue;
			seen[to] = 1;
			vec_push(&queue, to);
		}
	}
	vec_fini(&queue);
	free(seen);
	return found;
}

/* The call nearest to what blocks, one that not every path takes before one that does. */
static void look_for_slow_path(const struct verify *verify, struct verify_facts *facts)
{
	uint8_t best = BACK_REACH + 1;

	for (uint32_t i = 0; i < verify->insns.count; i++) {
		const struct insn *insn = &verify->insns.data[i];
		bool leaves = insn->op == INSN_CALL || insn->op == INSN_JUMP;
		uint32_t to = leaves && insn->target
				      ? graph_at(verify->graph, insn->target)
				      : GRAPH_NONE;

		if (to == GRAPH_NONE || !graph_blocks(verify->graph, to))
			continue;
		uint8_t reach = verify->graph->functions.data[to].reach;
		bool is_conditional = reach <= BACK_REACH &&
				      can_pass_by(verify, verify->cfg->block_of[i]);

		if (reach > BACK_REACH ||
		    (facts->has_slow_path && (!is_conditional || reach >= best)) ||
		    (!is_conditional && facts->slow_call != GRAPH_NONE))
			continue;
		best = reach;
		facts->has_slow_path |= is_conditional;
		facts->slow_call = to;
		facts->slow_va = insn->va;
	}
}

void verify_function(struct verify *verify, uint32_t function,
		     struct verify_facts *ret_facts)
{
	*ret_facts =
		(struct verify_facts){ .given_by = GRAPH_NONE, .slow_call = GRAPH_NONE };
	if (!load(verify, function))
		return;
	ret_facts->is_known = true;
	look_at_accesses(verify, ret_facts);
	look_at_calls(verify, ret_facts);
	look_at_results(verify, ret_facts);
	look_at_tails(verify, ret_facts);
	look_for_slow_path(verify, ret_facts);
}

/* Until the next call: what is called may make the thing anew. */
static bool is_used_behind(const struct verify *verify, const struct flow_call *call,
			   struct flow_ref operand)
{
	const struct cfg_block *block =
		&verify->cfg->blocks[verify->cfg->block_of[call->insn]];
	uint32_t end = block->first + block->count;

	for (uint32_t i = call->insn + 1; i < end; i++)
		if (verify->insns.data[i].op == INSN_CALL)
			end = i;
	vec_each(&verify->flow->accesses, access)
		if (access->insn > call->insn && access->insn < end &&
		    access->base.node == operand.node && access->access)
			return true;
	return false;
}

void verify_used_after(struct verify *verify, uint32_t caller, uint32_t callee,
		       unsigned arg, struct verify_sites *sites)
{
	uint64_t va = verify->graph->functions.data[callee].symbol->va;

	if (!load(verify, caller))
		return;
	vec_each(&verify->flow->calls, call) {
		if (verify->insns.data[call->insn].target != va || arg >= call->arg_count)
			continue;
		struct flow_ref operand = call->args[arg];

		if (operand.node == FLOW_NONE ||
		    verify->flow->nodes.data[operand.node].kind <= FLOW_FRAME)
			continue;
		sites->sites++;
		sites->used += is_used_behind(verify, call, operand);
	}
}
