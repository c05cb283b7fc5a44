// SPDX-License-Identifier: Apache-2.0
/*
 * libdw runs the call frame program of the FDE that covers an address and gives, for
 * the CFA and each register, a short DWARF expression. Nearly all of them say "register
 * plus offset" or "saved at CFA plus offset" and are reduced to that; what remains an
 * expression (signal trampolines) is evaluated by expression() below, which knows the
 * operations that occur there and bounds its stack and steps.
 *
 * PLT entries state their CFA as rsp + 8 + ((rip & 15) >= 11) * 8: how much is pushed
 * depends on the place in the entry. With the va known it is register + offset again.
 * Linkers that emit no rules for the PLT leave the return address on top of the stack.
 */
#include "bin/frame.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <string.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"

struct frame_ops {
	size_t count;
	Dwarf_Op ops[];
};

struct frame_table {
	const struct elf_file *file;
	Dwarf *debug;	      /* owns debug_cfi */
	Dwarf_CFI *eh_cfi;    /* .eh_frame */
	Dwarf_CFI *debug_cfi; /* .debug_frame */
	struct map *rules;    /* va -> struct frame_rule */
	struct frame_rule last;
	VEC(struct frame_ops *) ops;
};

struct err *frame_open(const struct elf_file *file, const struct elf_file *debug,
		       struct frame_table **ret_table)
{
	struct frame_table *table = mem_alloc(sizeof(*table));
	const struct elf_file *holder = NULL;

	table->file = file;
	table->rules = map_new(sizeof(uint64_t), sizeof(struct frame_rule));
	*ret_table = table;
	if (elf_machine(file) != ELF_X86_64 || elf_is_relocatable(file))
		return NULL;
	table->eh_cfi = dwarf_getcfi_elf(elf_handle(file));
	if (elf_section(file, ".debug_frame"))
		holder = file;
	else if (debug && elf_section(debug, ".debug_frame"))
		holder = debug;
	if (holder)
		table->debug = dwarf_begin_elf(elf_handle(holder), DWARF_C_READ, NULL);
	if (table->debug)
		table->debug_cfi = dwarf_getcfi(table->debug);
	return NULL;
}

static void forget_rules(struct frame_table *table)
{
	map_clear(table->rules);
	table->last = (struct frame_rule){ 0 };
	vec_each(&table->ops, ops)
		free(*ops);
	vec_clear(&table->ops);
}

void frame_close(struct frame_table *table)
{
	if (!table)
		return;
	forget_rules(table);
	vec_fini(&table->ops);
	map_free(table->rules);
	if (table->eh_cfi)
		dwarf_cfi_end(table->eh_cfi);
	if (table->debug)
		dwarf_end(table->debug);
	free(table);
}

static const struct frame_ops *keep_ops(struct frame_table *table, const Dwarf_Op *ops,
					size_t count)
{
	if (count > FRAME_MAX_OPS)
		return NULL;
	struct frame_ops *kept = mem_alloc(sizeof(*kept) + count * sizeof(*ops));

	kept->count = count;
	memcpy(kept->ops, ops, count * sizeof(*ops));
	vec_push(&table->ops, kept);
	return kept;
}

static bool is_breg(const Dwarf_Op *op, unsigned *ret_reg, int64_t *ret_off)
{
	if (op->atom >= DW_OP_breg0 && op->atom <= DW_OP_breg31) {
		*ret_reg = op->atom - DW_OP_breg0;
		*ret_off = (int64_t)op->number;
	} else if (op->atom == DW_OP_bregx) {
		*ret_reg = (unsigned)op->number;
		*ret_off = (int64_t)op->number2;
	} else {
		return false;
	}
	return *ret_reg < FRAME_REGS;
}

static bool is_lit(const Dwarf_Op *op, uint64_t *ret_value)
{
	*ret_value = (uint64_t)op->atom - DW_OP_lit0;
	return op->atom >= DW_OP_lit0 && op->atom <= DW_OP_lit31;
}

/* breg R off; breg16 0; litM; and; litN; ge; litS; shl; plus */
static bool is_plt_cfa(const Dwarf_Op *ops, size_t count, uint64_t va, unsigned *ret_reg,
		       int64_t *ret_off)
{
	unsigned reg, rip;
	int64_t off, zero;
	uint64_t mask, from, shift;

	if (count != 9 || !is_breg(&ops[0], &reg, &off) ||
	    !is_breg(&ops[1], &rip, &zero) || rip != FRAME_RIP || zero != 0 ||
	    !is_lit(&ops[2], &mask) || ops[3].atom != DW_OP_and ||
	    !is_lit(&ops[4], &from) || ops[5].atom != DW_OP_ge ||
	    !is_lit(&ops[6], &shift) || ops[7].atom != DW_OP_shl ||
	    ops[8].atom != DW_OP_plus)
		return false;
	*ret_reg = reg;
	*ret_off = off + ((va & mask) >= from ? (int64_t)1 << shift : 0);
	return true;
}

static bool reduce_cfa(struct frame_table *table, Dwarf_Frame *frame, uint64_t va,
		       struct frame_rule *rule)
{
	Dwarf_Op *ops;
	size_t count;
	unsigned reg;

	if (dwarf_frame_cfa(frame, &ops, &count) || count == 0)
		return false;
	if (count == 1 && is_breg(&ops[0], &reg, &rule->cfa_off)) {
		rule->cfa_reg = (uint8_t)reg;
		return true;
	}
	if (is_plt_cfa(ops, count, va, &reg, &rule->cfa_off)) {
		rule->cfa_reg = (uint8_t)reg;
		rule->va = va;
		rule->end = va + 1;
		return true;
	}
	rule->cfa_expression = true;
	rule->cfa_ops = keep_ops(table, ops, count);
	return rule->cfa_ops;
}

/* What libdw gives for a register starts with call_frame_cfa, except for "in register". */
static struct frame_reg reduce_reg(struct frame_table *table, const Dwarf_Op *ops,
				   size_t count)
{
	bool is_value = count > 0 && ops[count - 1].atom == DW_OP_stack_value;
	size_t body = count - is_value;

	if (count == 1 && ops[0].atom >= DW_OP_reg0 && ops[0].atom <= DW_OP_reg31)
		return (struct frame_reg){ FRAME_REGISTER,
					   { .off = ops[0].atom - DW_OP_reg0 } };
	if (count == 1 && ops[0].atom == DW_OP_regx && ops[0].number < FRAME_REGS)
		return (struct frame_reg){ FRAME_REGISTER,
					   { .off = (int64_t)ops[0].number } };
	if (body >= 1 && body <= 2 && ops[0].atom == DW_OP_call_frame_cfa &&
	    (body == 1 || ops[1].atom == DW_OP_plus_uconst))
		return (struct frame_reg){ is_value ? FRAME_VALUE : FRAME_SAVED,
					   { .off = body == 2 ? (int64_t)ops[1].number
							      : 0 } };
	if (is_value) /* does not occur in what compilers emit */
		return (struct frame_reg){ FRAME_UNDEFINED, { 0 } };
	const struct frame_ops *kept = keep_ops(table, ops, count);

	return (struct frame_reg){ kept ? FRAME_EXPRESSION : FRAME_UNDEFINED,
				   { .ops = kept } };
}

static bool reduce(struct frame_table *table, Dwarf_Frame *frame, uint64_t va,
		   struct frame_rule *rule)
{
	Dwarf_Addr start, end;
	bool is_signal;

	if (dwarf_frame_info(frame, &start, &end, &is_signal) != FRAME_RIP)
		return false;
	*rule = (struct frame_rule){ .va = start, .end = end, .is_signal = is_signal };
	if (!reduce_cfa(table, frame, va, rule))
		return false;
	for (int i = 0; i < FRAME_REGS; i++) {
		Dwarf_Op room[3], *ops;
		size_t count;

		if (dwarf_frame_register(frame, i, room, &ops, &count))
			continue;
		if (count)
			rule->regs[i] = reduce_reg(table, ops, count);
		else if (!ops)
			rule->regs[i].save = FRAME_SAME;
	}
	/* The caller's stack pointer is the CFA unless something else is stated. */
	if (rule->regs[FRAME_RSP].save <= FRAME_SAME)
		rule->regs[FRAME_RSP] = (struct frame_reg){ FRAME_VALUE, { 0 } };
	return true;
}

static bool plt_rule(struct frame_table *table, uint64_t va, struct frame_rule *rule)
{
	const struct elf_section *section = elf_section_at(table->file, va);

	if (!section || strncmp(section->name, ".plt", 4) != 0 ||
	    elf_machine(table->file) != ELF_X86_64)
		return false;
	*rule = (struct frame_rule){ .va = va, .end = va + 1, .cfa_reg = FRAME_RSP };
	rule->cfa_off = 8;
	for (int i = 0; i < FRAME_RIP; i++)
		rule->regs[i].save = FRAME_SAME;
	rule->regs[FRAME_RSP] = (struct frame_reg){ FRAME_VALUE, { 0 } };
	rule->regs[FRAME_RIP] = (struct frame_reg){ FRAME_SAVED, { .off = -8 } };
	return true;
}

static bool find_rule(struct frame_table *table, uint64_t va, struct frame_rule *rule)
{
	Dwarf_CFI *sources[] = { table->eh_cfi, table->debug_cfi };

	for (size_t i = 0; i < 2; i++) {
		Dwarf_Frame *frame = NULL;
		bool is_found;

		if (!sources[i] || dwarf_cfi_addrframe(sources[i], va, &frame))
			continue;
		is_found = reduce(table, frame, va, rule);
		free(frame);
		if (is_found)
			return true;
	}
	return plt_rule(table, va, rule);
}

const struct frame_rule *frame_rule_at(struct frame_table *table, uint64_t va)
{
	if (va >= table->last.va && va < table->last.end)
		return &table->last;
	struct frame_rule *cached = map_find(table->rules, &va);

	if (cached) {
		table->last = *cached;
		return &table->last;
	}
	if (map_count(table->rules) >= FRAME_MAX_RULES ||
	    table->ops.count >= FRAME_MAX_RULES)
		forget_rules(table);
	struct frame_rule rule;

	if (!elf_is_code(table->file, va) || !find_rule(table, va, &rule))
		return NULL;
	*(struct frame_rule *)map_put(table->rules, &va, NULL) = rule;
	table->last = rule;
	return &table->last;
}

bool frame_cfa_at(struct frame_table *table, uint64_t va, unsigned *ret_reg,
		  int64_t *ret_off)
{
	const struct frame_rule *rule = frame_rule_at(table, va);

	if (!rule || rule->cfa_expression)
		return false;
	*ret_reg = rule->cfa_reg;
	*ret_off = rule->cfa_off;
	return true;
}

/* The state of a walk: registers with a bit each for "known". */
struct walk {
	const struct frame_range *ranges;
	size_t range_count;
	const struct frame_stack *stack;
	uint64_t regs[FRAME_REGS];
	uint32_t known;
};

static bool walk_read(const struct walk *walk, uint64_t address, uint64_t *ret_value)
{
	uint64_t at = address - walk->stack->regs[FRAME_RSP];

	if (address < walk->stack->regs[FRAME_RSP] || walk->stack->byte_count < 8 ||
	    at > walk->stack->byte_count - 8)
		return false;
	memcpy(ret_value, (const char *)walk->stack->bytes + at, sizeof(*ret_value));
	return true;
}

static bool walk_reg(const struct walk *walk, unsigned reg, uint64_t *ret_value)
{
	if (reg >= FRAME_REGS || !(walk->known >> reg & 1))
		return false;
	*ret_value = walk->regs[reg];
	return true;
}

static bool binary(unsigned atom, uint64_t a, uint64_t b, uint64_t *ret_value)
{
	switch (atom) {
	case DW_OP_plus:
		*ret_value = a + b;
		return true;
	case DW_OP_minus:
		*ret_value = a - b;
		return true;
	case DW_OP_and:
		*ret_value = a & b;
		return true;
	case DW_OP_or:
		*ret_value = a | b;
		return true;
	case DW_OP_shl:
		*ret_value = b < 64 ? a << b : 0;
		return true;
	case DW_OP_ge:
		*ret_value = (int64_t)a >= (int64_t)b;
		return true;
	}
	return false;
}

/* One operation that pushes without popping, or changes the top in place. */
static bool unary(const struct walk *walk, const Dwarf_Op *op, uint64_t cfa,
		  uint64_t *top, uint64_t *ret_push, bool *ret_pushes)
{
	unsigned reg;
	int64_t off;

	*ret_pushes = true;
	if (is_breg(op, &reg, &off)) {
		if (!walk_reg(walk, reg, ret_push))
			return false;
		*ret_push += (uint64_t)off;
		return true;
	}
	if (is_lit(op, ret_push))
		return true;
	if (op->atom == DW_OP_call_frame_cfa) {
		*ret_push = cfa;
		return true;
	}
	if (op->atom >= DW_OP_const1u && op->atom <= DW_OP_consts) {
		*ret_push = op->number;
		return true;
	}
	*ret_pushes = false;
	if (!top)
		return false;
	if (op->atom == DW_OP_deref)
		return walk_read(walk, *top, top);
	if (op->atom == DW_OP_plus_uconst) {
		*top += op->number;
		return true;
	}
	return op->atom == DW_OP_nop;
}

static bool expression(const struct walk *walk, const struct frame_ops *ops, uint64_t cfa,
		       uint64_t *ret_value)
{
	uint64_t stack[FRAME_MAX_OPS];
	size_t depth = 0;

	for (size_t i = 0; i < ops->count; i++) {
		const Dwarf_Op *op = &ops->ops[i];
		uint64_t value;
		bool pushes;

		if (depth >= 2 && binary(op->atom, stack[depth - 2], stack[depth - 1],
					 &stack[depth - 2])) {
			depth--;
			continue;
		}
		if (!unary(walk, op, cfa, depth ? &stack[depth - 1] : NULL, &value,
			   &pushes))
			return false;
		if (pushes)
			stack[depth++] = value;
	}
	if (depth == 0)
		return false;
	*ret_value = stack[depth - 1];
	return true;
}

static const struct frame_range *range_at(const struct walk *walk, uint64_t ip)
{
	size_t low = 0, high = walk->range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (walk->ranges[middle].start <= ip)
			low = middle + 1;
		else
			high = middle;
	}
	if (low == 0 || ip >= walk->ranges[low - 1].end)
		return NULL;
	return &walk->ranges[low - 1];
}

static bool restore(const struct walk *walk, const struct frame_rule *rule, unsigned reg,
		    uint64_t cfa, uint64_t *ret_value)
{
	const struct frame_reg *how = &rule->regs[reg];
	uint64_t address;

	switch (how->save) {
	case FRAME_UNDEFINED:
		return false;
	case FRAME_SAME:
		return walk_reg(walk, reg, ret_value);
	case FRAME_REGISTER:
		return walk_reg(walk, (unsigned)how->off, ret_value);
	case FRAME_VALUE:
		*ret_value = cfa + (uint64_t)how->off;
		return true;
	case FRAME_SAVED:
		return walk_read(walk, cfa + (uint64_t)how->off, ret_value);
	case FRAME_EXPRESSION:
		return expression(walk, how->ops, cfa, &address) &&
		       walk_read(walk, address, ret_value);
	}
	return false;
}

enum step { STEP_ON, STEP_ROOT, STEP_LOST };

static enum step step_rule(struct walk *walk, const struct frame_rule *rule)
{
	struct walk caller = *walk;
	uint64_t cfa = 0;

	if (rule->regs[FRAME_RIP].save == FRAME_UNDEFINED)
		return STEP_ROOT;
	if (rule->cfa_expression) {
		if (!expression(walk, rule->cfa_ops, 0, &cfa))
			return STEP_LOST;
	} else {
		if (!walk_reg(walk, rule->cfa_reg, &cfa))
			return STEP_LOST;
		cfa += (uint64_t)rule->cfa_off;
	}
	caller.known = 0;
	for (unsigned i = 0; i < FRAME_REGS; i++)
		if (restore(walk, rule, i, cfa, &caller.regs[i]))
			caller.known |= 1u << i;
	if (!(caller.known >> FRAME_RIP & 1) || !(caller.known >> FRAME_RSP & 1))
		return STEP_LOST;
	if (caller.regs[FRAME_RSP] <= walk->regs[FRAME_RSP] && !rule->is_signal)
		return STEP_LOST;
	*walk = caller;
	return STEP_ON;
}

/* push rbp; mov rsp, rbp: [rbp] is the caller's rbp, [rbp + 8] the return address. The
 * ABI asks that rbp be zero in the outermost frame. */
static enum step step_pointer(struct walk *walk)
{
	uint64_t rbp, next_rbp, rip;

	if (!walk_reg(walk, FRAME_RBP, &rbp))
		return STEP_LOST;
	if (rbp == 0)
		return STEP_ROOT;
	if (rbp < walk->regs[FRAME_RSP] || !walk_read(walk, rbp, &next_rbp) ||
	    !walk_read(walk, rbp + 8, &rip))
		return STEP_LOST;
	walk->regs[FRAME_RBP] = next_rbp;
	walk->regs[FRAME_RSP] = rbp + 16;
	walk->regs[FRAME_RIP] = rip;
	walk->known = 1u << FRAME_RBP | 1u << FRAME_RSP | 1u << FRAME_RIP;
	return STEP_ON;
}

/* The program's entry has no caller; some libcs write it without rules. */
#define ENTRY_BYTES 64

static bool is_entry(const struct frame_range *range, uint64_t va)
{
	uint64_t entry = elf_entry(range->table->file);

	return entry && va - entry < ENTRY_BYTES;
}

static enum step step(struct walk *walk, const struct frame_range *range, uint64_t va,
		      bool *ret_exact)
{
	const struct frame_rule *rule =
		range && range->table ? frame_rule_at(range->table, va) : NULL;

	*ret_exact = rule && rule->is_signal;
	if (rule)
		return step_rule(walk, rule);
	if (range && range->table && is_entry(range, va))
		return STEP_ROOT;
	return step_pointer(walk);
}

size_t frame_unwind(const struct frame_range *ranges, size_t range_count,
		    const struct frame_stack *stack, struct frame_at *ret_frames,
		    bool *ret_complete)
{
	struct walk walk = { .ranges = ranges,
			     .range_count = range_count,
			     .stack = stack,
			     .known = (1u << FRAME_REGS) - 1 };
	bool is_exact = true;
	size_t count = 0;

	memcpy(walk.regs, stack->regs, sizeof(walk.regs));
	*ret_complete = false;
	while (count < FRAME_MAX_DEPTH) {
		uint64_t ip = walk.regs[FRAME_RIP];

		if (ip == 0) { /* a null call, or the ABI's end of the chain */
			*ret_complete = count > 0;
			break;
		}
		ip -= !is_exact;
		const struct frame_range *range = range_at(&walk, ip);
		uint64_t va = range ? ip - range->bias : ip;

		ret_frames[count++] = (struct frame_at){ range ? range->id : 0,
							 range && range->id ? va : ip };
		enum step outcome = step(&walk, range, va, &is_exact);

		if (outcome != STEP_ON) {
			*ret_complete = outcome == STEP_ROOT;
			break;
		}
	}
	return count;
}
