// SPDX-License-Identifier: Apache-2.0
/*
 * What debug information alone says about an access: the variable whose location is
 * the base register at this very pc, the object in the frame, the global at the
 * address. No data flow. Of several variables in one register the one whose type
 * contains the others' wins, then the better fit, then the innermost scope.
 */
#include "bin/flow.h"
#include "types/module.h"
#include "types/seed.h"

struct pick {
	bool is_found, is_scalar, is_outside;
	uint32_t type;
	int64_t offset;
	int rank;
	uint8_t verdict;
};

bool candidate_settle(struct dtypes *types, uint32_t *type, int64_t *offset)
{
	dtype_normal(types, type, offset);
	return dtype_covers(types, *type, *offset);
}

static void consider(struct dtypes *types, struct pick *pick, uint32_t type,
		     int64_t offset, uint32_t width, int rank)
{
	const struct dtype *shape = dtype_get(types, type);

	if (!type || !shape->bytes)
		return;
	if (!candidate_settle(types, &type, &offset)) {
		pick->is_outside = true;
		return;
	}
	if (!dtype_is_aggregate(types, type)) {
		pick->is_scalar = true;
		return;
	}
	rank += 256 * (int)dtype_leaves_at(types, type, offset, width)->fit;
	if (pick->is_found) {
		if (dtype_contains(types, pick->type, pick->offset, type, offset))
			return;
		if (!dtype_contains(types, type, offset, pick->type, pick->offset) &&
		    rank < pick->rank)
			return;
	}
	pick->is_found = true;
	pick->type = type;
	pick->offset = offset;
	pick->rank = rank;
}

static void consider_register(struct recover *recover, const struct seed *seed,
			      const struct insn_mem *mem, struct pick *pick)
{
	const struct seed_list *live = &seed->live[mem->base];

	for (size_t i = 0; i < live->count; i++) {
		int64_t offset;
		uint32_t type = seed_pointee(recover->types, live->data[i], &offset);

		consider(recover->types, pick, type, offset + mem->disp, mem->width,
			 live->data[i]->depth);
	}
	pick->verdict = pick->is_found	   ? VERDICT_DWARF
			: pick->is_scalar  ? VERDICT_NOT_STRUCT
			: pick->is_outside ? VERDICT_OUT_OF_RANGE
					   : VERDICT_NO_TYPE;
}

static void consider_global(struct recover *recover, uint64_t va, uint32_t width,
			    struct pick *pick)
{
	uint64_t offset;
	const struct dwarf_global *global = dwarf_global_at(recover->dwarf, va, &offset);

	if (global)
		consider(recover->types, pick, global->type, (int64_t)offset, width, 0);
	pick->verdict = pick->is_found			  ? VERDICT_GLOBAL
			: global			  ? VERDICT_NOT_STRUCT
			: module_is_writable(recover, va) ? VERDICT_NO_TYPE
							  : VERDICT_CONSTANT;
}

static void consider_segment(struct recover *recover, const struct insn_mem *mem,
			     struct pick *pick)
{
	bool is_plain = mem->base == INSN_REG_NONE && mem->index == INSN_REG_NONE;
	const struct dwarf_global *global = NULL;
	uint64_t offset = 0;

	pick->verdict = VERDICT_NO_TYPE;
	if (is_plain && mem->disp == CANARY_DISP) {
		pick->verdict = VERDICT_CANARY;
		return;
	}
	if (mem->segment == INSN_FS && is_plain)
		global = dwarf_tls_at(recover->dwarf,
				      (uint64_t)mem->disp + recover->tls_bytes, &offset);
	else if (mem->segment == INSN_GS && mem->index == INSN_REG_NONE &&
		 (mem->base == INSN_REG_NONE || mem->base == INSN_REG_IP))
		global = dwarf_global_at(recover->dwarf, (uint64_t)mem->disp, &offset);
	if (!global)
		return;
	consider(recover->types, pick, global->type, (int64_t)offset, mem->width, 0);
	pick->verdict = pick->is_found ? VERDICT_GLOBAL : VERDICT_NOT_STRUCT;
}

static void consider_frame(struct recover *recover, const struct seed *seed,
			   const struct seed_point *point, const struct insn_mem *mem,
			   struct pick *pick)
{
	int64_t into;
	const struct dwarf_var *object = seed_object(
		seed, recover->types, point, mem->disp - point->cfa_offset, &into);

	if (object && seed_is_part(recover->types, object))
		object = NULL;
	if (object)
		consider(recover->types, pick, object->type, into, mem->width, 0);
	pick->verdict = pick->is_found ? VERDICT_DWARF
			: object       ? VERDICT_NOT_STRUCT
				       : VERDICT_STACK;
}

static void decide(struct recover *recover, const struct seed *seed, uint64_t va,
		   const struct insn_mem *mem, struct pick *pick)
{
	unsigned cfa_reg = INSN_REG_NONE;
	int64_t cfa_offset = 0;
	const struct insn_abi *abi = insn_abi(recover->decoder);

	if (mem->segment != INSN_FLAT) {
		consider_segment(recover, mem, pick);
	} else if (mem->base == INSN_REG_IP || mem->base == INSN_REG_NONE) {
		consider_global(recover, (uint64_t)mem->disp, mem->width, pick);
	} else if ((mem->base == abi->stack || mem->base == abi->frame) &&
		   frame_cfa_at(recover->frame, va, &cfa_reg, &cfa_offset) &&
		   cfa_reg == mem->base && cfa_offset == flow_bounded(cfa_offset)) {
		consider_frame(recover, seed,
			       &(struct seed_point){ va, cfa_offset, (uint8_t)cfa_reg },
			       mem, pick);
	} else if (mem->base == abi->stack) {
		pick->verdict = VERDICT_STACK;
	} else if (mem->base < INSN_REGS) {
		consider_register(recover, seed, mem, pick);
	} else {
		pick->verdict = VERDICT_NO_TYPE;
	}
}

void direct_decide(struct recover *recover, struct code *code)
{
	struct seed seed;

	seed_init(&seed, code);
	vec_each(&code->insns, insn) {
		struct pick pick = { 0 };

		seed_advance(&seed, insn->va);
		if (!insn->is_counted)
			continue;
		for (unsigned i = 0; i < insn->mem_count && !pick.is_found; i++) {
			pick = (struct pick){ 0 };
			decide(recover, &seed, insn->va, &insn->mems[i], &pick);
		}

		struct decision decision = {
			.va = insn->va,
			.offset = pick.is_found ? pick.offset : 0,
			.type = pick.is_found ? pick.type : 0,
			.confidence = pick.is_found ? 0.99f : 0,
			.width = insn->is_repeated ? 0 : insn->mems[0].width,
			.verdict = pick.verdict,
			.access = insn->mems[0].access,
		};

		vec_push(&code->decisions, decision);
	}
	seed_fini(&seed);
}
