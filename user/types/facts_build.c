// SPDX-License-Identifier: Apache-2.0
/*
 * From a function's code to its data flow with the variables of its scopes attached to
 * the values that are in their registers. A variable speaks where its range begins, at
 * the head of each block, and again after its register got a new value within the
 * range (p++ keeps p in the same register).
 */
#include "types/facts.h"
#include "types/passing.h"
#include "types/survive.h"
#include "types/tls.h"

#include <string.h>

#include "core/mem.h"

static void attach(struct facts *facts, const struct dwarf_var *var)
{
	struct dtypes *types = facts->recover->types;
	struct flow_ref ref = flow_register(facts->flow, var->reg);
	const struct dtype *type = dtype_get(types, var->type);
	int64_t offset;
	uint32_t pointee = seed_pointee(types, var, &offset);
	bool is_scalar = (type->kind == DTYPE_BASE || type->kind == DTYPE_ENUM) &&
			 var->where == DWARF_IN_REGISTER && !var->piece_bytes;

	if (pointee)
		vec_push(&facts->attached, ((struct attached){ ref, offset, pointee }));
	else if (is_scalar && ref.node > 1)
		vec_push(&facts->named, ((struct attached){ ref, 0, var->type }));
	if (is_scalar && type->bytes < 8 && !ref.delta && ref.node > 1)
		facts->flow->nodes.data[ref.node].is_int = true;
}

static void attach_live(struct facts *facts, uint64_t regs)
{
	for (uint8_t reg = 0; reg < INSN_REGS; reg++) {
		const struct seed_list *live = &facts->seed.live[reg];

		if (regs >> reg & 1)
			for (size_t i = 0; i < live->count; i++)
				attach(facts, live->data[i]);
	}
}

static void note_direct(struct facts *facts, const struct insn *insn)
{
	uint32_t access = (uint32_t)facts->flow->accesses.count;

	for (uint8_t i = 0; i < insn->mem_count; i++) {
		uint8_t reg = insn->mems[i].base;

		if (!insn->mems[i].access)
			continue;
		if (reg < INSN_REGS && insn->mems[i].segment == INSN_FLAT) {
			const struct seed_list *live = &facts->seed.live[reg];

			for (size_t k = 0; k < live->count; k++) {
				int64_t offset;
				uint32_t type = seed_pointee(facts->recover->types,
							     live->data[k], &offset);

				if (type && !live->data[k]->piece_bytes)
					vec_push(&facts->direct,
						 ((struct direct){ access, type,
								   offset }));
			}
		}
		access++;
	}
}

static void before(void *ctx, struct flow *flow, uint32_t index, uint64_t changed,
		   bool is_head)
{
	struct facts *facts = ctx;
	const struct insn *insn = &facts->code->insns.data[index];

	(void)flow;
	seed_advance(&facts->seed, insn->va);
	if (is_head) {
		attach_live(facts, UINT64_MAX);
	} else {
		vec_each(&facts->seed.fresh, var)
			if (!(changed >> (*var)->reg & 1))
				attach(facts, *var);
		if (changed)
			attach_live(facts, changed);
	}
	note_direct(facts, insn);
}

static bool find_call(const struct code *code, const struct insn *insn,
		      struct dwarf_proto *ret_proto)
{
	uint64_t return_va = insn->va + insn->bytes;
	size_t lo = 0, hi = code->scopes.calls.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (code->scopes.calls.data[middle].return_va < return_va)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (lo == code->scopes.calls.count ||
	    code->scopes.calls.data[lo].return_va != return_va)
		return false;
	*ret_proto = code->scopes.calls.data[lo].proto;
	return true;
}

bool facts_callee(struct recover *recover, const struct insn *insn,
		  struct dwarf_proto *ret_proto)
{
	return module_callee(recover, insn, ret_proto) ||
	       find_call(&recover->code, insn, ret_proto);
}

static unsigned call_args(void *ctx, uint32_t index)
{
	struct facts *facts = ctx;
	const struct insn *insn = &facts->code->insns.data[index];
	struct dwarf_proto proto;

	if (facts_callee(facts->recover, insn, &proto)) {
		struct passing passing;

		if (proto.is_clone)
			return 0;
		passing_of(facts->recover->types, proto.type, FLOW_MAX_ARGS, &passing);
		return passing.used;
	}
	return insn->target ? 0 : FLOW_MAX_ARGS;
}

static uint64_t call_clobbers(void *ctx, uint32_t index)
{
	struct facts *facts = ctx;

	return survive_clobbers(facts->recover, &facts->code->insns.data[index]);
}

/* The CFA at each instruction, looked up once per rule. */
static void find_frames(struct facts *facts)
{
	const struct code *code = facts->code;
	uint64_t end = 0;
	struct flow_frame frame = { .reg = INSN_REG_NONE };

	facts->frames = mem_array(code->insns.count + 1, sizeof(*facts->frames));
	for (size_t i = 0; i < code->insns.count; i++) {
		uint64_t va = code->insns.data[i].va;

		if (va >= end || (i && code->insns.data[i - 1].va > va)) {
			const struct frame_rule *rule =
				frame_rule_at(facts->recover->frame, va);
			bool is_plain = rule && !rule->cfa_expression &&
					rule->cfa_off == flow_bounded(rule->cfa_off);

			frame.reg = is_plain ? rule->cfa_reg : INSN_REG_NONE;
			frame.offset = is_plain ? rule->cfa_off : 0;
			end = rule ? rule->end : va + 1;
		}
		facts->frames[i] = frame;
	}
}

static int by_node(const void *a, const void *b)
{
	const struct touched *x = a, *y = b;

	if (x->node != y->node)
		return x->node < y->node ? -1 : 1;
	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->width < y->width ? -1 : x->width > y->width;
}

static void find_touched(struct facts *facts)
{
	size_t kept = 0;
	struct touched *all;

	vec_each(&facts->flow->accesses, access)
		if (access->base.node > 1 && access->base.node != FLOW_NONE &&
		    access->index.node == FLOW_NONE)
			vec_push(&facts->touched,
				 ((struct touched){ access->base.node,
						    access->base.delta + access->disp,
						    access->width }));
	all = facts->touched.data;
	if (facts->touched.count)
		qsort(all, facts->touched.count, sizeof(*all), by_node);
	for (size_t i = 0; i < facts->touched.count; i++)
		if (!kept || by_node(&all[kept - 1], &all[i]))
			all[kept++] = all[i];
	facts->touched.count = kept;
}

/* What debug information says: locations, then parameters on entry. */
static void add_seeds(struct facts *facts)
{
	struct recover *recover = facts->recover;
	struct dtypes *types = recover->types;
	const struct elf_function *symbol =
		elf_function_at(recover->symbols, facts->code->function->va);
	const struct insn_abi *abi = insn_abi(recover->decoder);
	struct passing passing;

	vec_each(&facts->attached, attached) {
		struct flow_ref ref = flow_settle(facts->flow, attached->ref);

		facts_add(facts, ref.node,
			  &(struct clue){ .type = attached->type,
					  .offset = attached->offset - ref.delta,
					  .origin = ORIGIN_DWARF,
					  .is_direct = true });
	}
	vec_each(&facts->code->scopes.vars, var) {
		int64_t offset;
		uint32_t pointee;

		if (var->where != DWARF_IS_ENTRY || var->reg >= INSN_REGS)
			continue;
		pointee = seed_pointee(types, var, &offset);
		if (pointee)
			facts_add(facts, facts->flow->entries[var->reg],
				  &(struct clue){ .type = pointee,
						  .offset = offset,
						  .origin = ORIGIN_PARAM,
						  .is_direct = true });
	}
	if (symbol && module_has_own_convention(symbol->name))
		return;
	passing_of(types, facts->proto.type, abi->arg_count, &passing);
	for (uint32_t i = 0; i < passing.used; i++)
		if (passing.is_pointer[i])
			facts_add(facts, facts->flow->entries[abi->args[i]],
				  &(struct clue){ .type = passing.pointee[i],
						  .origin = ORIGIN_PARAM,
						  .is_direct = true });
}

/* Addresses of thread-local variables. */
static void add_tls(struct facts *facts)
{
	const struct dwarf_global *global;
	uint64_t at, offset;

	for (uint32_t i = 2; i < facts->flow->nodes.count; i++) {
		if (facts->flow->nodes.data[i].kind != FLOW_SUM ||
		    !tls_address(facts, (struct flow_ref){ i, 0 }, false, &at))
			continue;
		global = dwarf_tls_at(facts->recover->dwarf, at, &offset);
		if (global)
			facts_add(facts, i,
				  &(struct clue){ .type = global->type,
						  .offset = (int64_t)offset,
						  .origin = ORIGIN_PARAM,
						  .is_direct = true });
	}
}

/* A pointer variable in the frame, read back. */
static void add_reloads(struct facts *facts)
{
	struct dtypes *types = facts->recover->types;

	vec_each(&facts->flow->reloads, reload) {
		int64_t into;
		struct seed_point point = facts_point(facts, reload->insn);
		const struct dwarf_var *object =
			seed_object(&facts->seed, types, &point, reload->offset, &into);

		if (!object)
			continue;

		const struct dtype_leaves *leaves =
			dtype_leaves_at(types, object->type, into, 8);

		for (uint32_t i = 0; i < leaves->count; i++)
			if (dtype_get(types, leaves->types[i])->kind == DTYPE_POINTER)
				facts_add(
					facts, reload->value.node,
					&(struct clue){ .type = dtype_target(
								types, leaves->types[i]),
							.offset = -reload->value.delta,
							.origin = ORIGIN_DWARF,
							.is_direct = true });
	}
}

static void clear(struct facts *facts)
{
	seed_fini(&facts->seed);
	memset(&facts->seed, 0, sizeof(facts->seed));
	free(facts->frames);
	facts->frames = NULL;
	arena_reset(facts->arena);
	vec_clear(&facts->attached);
	vec_clear(&facts->named);
	vec_clear(&facts->direct);
	vec_clear(&facts->frame_objects);
	vec_clear(&facts->touched);
	vec_clear(&facts->asked);
}

static struct facts *facts_new(struct recover *recover)
{
	struct facts *facts = mem_alloc(sizeof(*facts));

	facts->recover = recover;
	facts->code = &recover->code;
	facts->flow = flow_new();
	facts->arena = arena_new();
	return facts;
}

void facts_free(struct facts *facts)
{
	if (!facts)
		return;
	clear(facts);
	vec_fini(&facts->attached);
	vec_fini(&facts->named);
	vec_fini(&facts->direct);
	vec_fini(&facts->frame_objects);
	vec_fini(&facts->touched);
	vec_fini(&facts->asked);
	flow_free(facts->flow);
	arena_free(facts->arena);
	free(facts);
}

bool facts_find(struct recover *recover)
{
	struct facts *facts = recover->facts;
	struct code *code = &recover->code;

	if (!facts)
		facts = recover->facts = facts_new(recover);
	clear(facts);
	facts->unit = module_unit(recover, code->function->unit);
	facts->proto = dwarf_proto(recover->dwarf, code->function);
	facts->round = 0;
	seed_init(&facts->seed, code);
	find_frames(facts);

	struct flow_input input = {
		.cfg = code->cfg,
		.insns = code->insns.data,
		.frames = facts->frames,
		.count = code->insns.count,
		.abi = insn_abi(recover->decoder),
		.ctx = facts,
		.before = before,
		.call_args = call_args,
		.call_clobbers = call_clobbers,
	};

	if (!flow_run(facts->flow, &input))
		return false;
	facts->sets =
		arena_array(facts->arena, facts->flow->nodes.count, sizeof(*facts->sets));
	find_touched(facts);
	add_seeds(facts);
	add_tls(facts);
	add_reloads(facts);
	facts_propagate(facts);
	return true;
}
