// SPDX-License-Identifier: Apache-2.0
/*
 * Straight from the entry: at each instruction the registers wanted are still what the
 * caller put there as long as nothing before has written one, no path has left and none
 * has joined. What the kernel emulates is decided by bytes, as the kernel does it
 * (arch/x86/kernel/uprobes.c): push of a register, the one-byte nop, call/jmp/jcc with
 * a displacement. Long nops are emulated by the newest kernels only and are passed over.
 */
#include "bin/place.h"

#include <stdlib.h>

#include "bin/place_impl.h"

enum place_insn place_kind(const uint8_t *code, size_t bytes, bool *ret_is_emulated)
{
	uint8_t op = bytes ? code[0] : 0, second = bytes > 1 ? code[1] : 0;

	*ret_is_emulated = true;
	if (op >= 0x50 && op <= 0x57)
		return PLACE_PUSH;
	if (op == 0x41 && second >= 0x50 && second <= 0x57)
		return PLACE_PUSH;
	if (op == 0x90)
		return PLACE_NOP;
	if (op == 0xe8)
		return PLACE_CALL;
	if (op == 0xe9 || op == 0xeb)
		return PLACE_JUMP;
	if ((op >= 0x70 && op <= 0x7f) || (op == 0x0f && (second & 0xf0) == 0x80))
		return PLACE_BRANCH;
	*ret_is_emulated = false;
	if (op == 0xc3 || op == 0xc2 || (op == 0xf3 && second == 0xc3))
		return PLACE_RETURN;
	return PLACE_OTHER;
}

static int compare_va(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

bool place_is_target(const struct place_code *code, uint64_t va)
{
	return code->targets.count &&
	       bsearch(&va, code->targets.data, code->targets.count,
		       sizeof(*code->targets.data), compare_va);
}

void place_code_fini(struct place_code *code)
{
	vec_fini(&code->insns);
	vec_fini(&code->targets);
}

struct err *place_decode(const struct place_input *input, struct place_code *code)
{
	size_t room, pos = 0;

	code->bytes = elf_bytes_at(input->file, input->va, &room);
	if (!code->bytes || !elf_is_code(input->file, input->va))
		return err_new(ERR_NOT_FOUND, "there is no code at %#llx",
			       (unsigned long long)input->va);
	if (input->bytes > PLACE_MAX_BYTES)
		return err_new(ERR_LIMIT, "the function has %llu bytes, the limit is %d",
			       (unsigned long long)input->bytes, PLACE_MAX_BYTES);
	if (room > input->bytes)
		room = input->bytes;
	while (pos < room) {
		struct insn *insn = vec_add(&code->insns);

		pos += insn_decode(input->decoder, code->bytes + pos, room - pos,
				   input->va + pos, insn);
		if ((insn->op == INSN_BRANCH || insn->op == INSN_JUMP) && insn->target)
			vec_push(&code->targets, insn->target);
	}
	if (code->targets.count)
		qsort(code->targets.data, code->targets.count,
		      sizeof(*code->targets.data), compare_va);
	return NULL;
}

struct place_site place_site_at(const struct place_input *input, const struct insn *insn)
{
	struct place_site site = { .va = insn->va, .pushed = -1 };
	size_t room;
	const uint8_t *code = elf_bytes_at(input->file, insn->va, &room);
	unsigned reg;
	int64_t off;

	site.insn = (uint8_t)place_kind(code, code ? room : 0, &site.is_emulated);
	if (insn->va == input->va || site.insn == PLACE_RETURN)
		site.pushed = 0;
	else if (input->frames && frame_cfa_at(input->frames, insn->va, &reg, &off) &&
		 (reg == FRAME_RSP || reg == FRAME_RBP) && off >= 8 && off < INT32_MAX) {
		site.pushed = (int32_t)off - 8;
		site.by_frame = reg == FRAME_RBP;
	}
	return site;
}

/* A store anywhere but into the frame may be to what an argument points to. */
static bool may_change_memory(const struct insn *insn)
{
	for (unsigned i = 0; i < insn->mem_count; i++) {
		const struct insn_mem *mem = &insn->mems[i];

		if ((mem->access & ACCESS_STORE) && mem->base != FRAME_RSP &&
		    mem->base != FRAME_RBP)
			return true;
	}
	return insn->op == INSN_STRING;
}

/* Bytes of stack that a straight line of these has taken; -1 once it cannot be told. */
static int32_t track_stack(const struct insn *insn, int32_t pushed)
{
	if (pushed < 0)
		return -1;
	if (insn->op == INSN_PUSH)
		return pushed + 8;
	if (!(insn->writes & insn_bit(FRAME_RSP)))
		return pushed;
	if (insn->op == INSN_SUB && insn->args[2].kind == INSN_IMM &&
	    insn->args[2].imm >= 0 && insn->args[2].imm < INT32_MAX - pushed)
		return pushed + (int32_t)insn->args[2].imm;
	return -1;
}

/* Nothing behind @insn is sure to be reached from it, or with the same values. */
static bool ends_prologue(const struct place_input *input, const struct insn *insn)
{
	switch (insn->op) {
	case INSN_BAD:
	case INSN_CALL:
	case INSN_JUMP:
	case INSN_BRANCH:
	case INSN_RETURN:
	case INSN_TRAP:
		return true;
	}
	return (insn->writes & input->live) ||
	       (input->reads_memory && may_change_memory(insn));
}

struct err *place_entry(const struct place_input *input, struct place_site *ret_site)
{
	CLEANUP(place_code_fini) struct place_code code = { .bytes = NULL };

	TRY(place_decode(input, &code));
	if (!code.insns.count)
		return err_new(ERR_NOT_FOUND, "the function has no code");
	int32_t pushed = 0;

	*ret_site = place_site_at(input, &code.insns.data[0]);
	for (size_t i = 0; i < code.insns.count && i < PLACE_MAX_LOOK; i++) {
		const struct insn *insn = &code.insns.data[i];

		if (i && place_is_target(&code, insn->va))
			break;
		struct place_site site = place_site_at(input, insn);

		site.pushed = pushed;
		site.by_frame = false;
		if (site.is_emulated) {
			*ret_site = site;
			break;
		}
		if (ends_prologue(input, insn))
			break;
		pushed = track_stack(insn, pushed);
	}
	return NULL;
}

bool place_throws(const struct elf_file *file)
{
	return elf_section(file, ".gcc_except_table");
}
