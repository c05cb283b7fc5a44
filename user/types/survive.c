// SPDX-License-Identifier: Apache-2.0
/*
 * All instructions of the callee count, reachable or not. What leaves its ranges is a
 * call; an indirect jump may lead anywhere. A function that is being looked at, or lies
 * too deep, counts as one that changes everything, so recursion ends.
 */
#include "types/survive.h"

#define MAX_DEPTH 8

struct callee {
	struct recover *recover;
	const struct dwarf_function *function;
	uint64_t all, changed; /* registers: of the convention, found so far */
	unsigned depth;
};

static uint64_t clobbers_of(struct recover *recover, uint64_t va, uint32_t unit,
			    unsigned depth);

static bool is_inside(const struct dwarf_function *function, uint64_t va)
{
	for (uint32_t i = 0; i < function->range_count; i++)
		if (va >= function->ranges[i].lo && va < function->ranges[i].hi)
			return true;
	return false;
}

static uint64_t effect_of(const struct callee *callee, const struct insn *insn)
{
	switch (insn->op) {
	case INSN_BAD:
		return callee->all;
	case INSN_CALL:
		break;
	case INSN_JUMP:
	case INSN_BRANCH:
		if (insn->target && is_inside(callee->function, insn->target))
			return 0;
		break;
	default:
		return insn->writes & callee->all;
	}
	return insn->target ? clobbers_of(callee->recover, insn->target,
					  callee->function->unit, callee->depth + 1)
			    : callee->all;
}

static void look_at_range(struct callee *callee, const struct dwarf_range *range)
{
	struct recover *recover = callee->recover;
	size_t room;
	const uint8_t *bytes = elf_bytes_at(recover->main, range->lo, &room);
	uint64_t va = range->lo;

	if (!bytes || room < range->hi - range->lo) {
		callee->changed = callee->all;
		return;
	}
	room = range->hi - range->lo;
	while (room && callee->changed != callee->all) {
		struct insn insn;
		size_t used = insn_decode(recover->decoder, bytes, room, va, &insn);

		kernel_rewrite(recover->kernel, &insn);
		callee->changed |= effect_of(callee, &insn);
		bytes += used;
		room -= used;
		va += used;
	}
}

static uint64_t clobbers_of(struct recover *recover, uint64_t va, uint32_t unit,
			    unsigned depth)
{
	struct callee callee = {
		.recover = recover,
		.function = dwarf_function_by_va(recover->dwarf, va),
		.all = insn_abi(recover->decoder)->call_clobbers,
		.depth = depth,
	};
	uint64_t *known;
	bool is_new;

	if (!callee.function || callee.function->unit != unit || depth > MAX_DEPTH)
		return callee.all;
	known = map_put(recover->clobbers, &va, &is_new);
	if (!is_new)
		return *known;
	*known = callee.all;
	for (uint32_t i = 0; i < callee.function->range_count; i++)
		look_at_range(&callee, &callee.function->ranges[i]);
	/* the table may have moved */
	*(uint64_t *)map_put(recover->clobbers, &va, NULL) = callee.changed;
	return callee.changed;
}

uint64_t survive_clobbers(struct recover *recover, const struct insn *insn)
{
	if (!insn->target)
		return insn_abi(recover->decoder)->call_clobbers;
	return clobbers_of(recover, insn->target, recover->code.function->unit, 0);
}
