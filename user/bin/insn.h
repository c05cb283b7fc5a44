/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_INSN_H
#define BIN_INSN_H

/*
 * Machine code reduced to the few operations that data flow needs. One instruction
 * keeps its shape (destination first, at most one memory operand that it computes
 * with; string moves have two); whatever it does beyond its operation is in @writes.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bin/elf.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "model/verdict.h"

#define INSN_ARGS      3
#define INSN_MEMS      2
#define INSN_REGS      33 /* DWARF numbers: 0-15 general, 16 ip, 17-32 vector */
#define INSN_REG_IP    16
#define INSN_REG_VEC   17
#define INSN_REG_NONE  0xff
#define INSN_REG_OTHER 0xfe /* one that is not tracked: mask, x87, segment, ... */

enum insn_op {
	INSN_BAD,	 /* bytes that do not decode: one byte long */
	INSN_OTHER,	 /* only @writes and the memory operands are known */
	INSN_NOP,	 /* also prefetches and hints: no access */
	INSN_MOVE,	 /* [0] = [1]; a load or store when one of them is memory */
	INSN_EXTEND,	 /* [0] = [1] sign- or zero-extended */
	INSN_LEA,	 /* [0] = address of the memory operand */
	INSN_ADD,	 /* [0] = [1] + [2]; the last may be an immediate */
	INSN_SUB,	 /* [0] = [1] - [2] */
	INSN_MUL,	 /* [0] = [1] * [2] */
	INSN_SHIFT_LEFT, /* [0] = [1] << [2] */
	INSN_AND,	 /* [0] = [1] & [2] */
	INSN_NEG,	 /* [0] = -[1] */
	INSN_SELECT,	 /* [0] = some condition ? [1] : [0] */
	INSN_EXCHANGE,	 /* swap [0] and [1] */
	INSN_PUSH,	 /* store [0] below the stack pointer */
	INSN_POP,	 /* load [0] */
	INSN_LEAVE,	 /* drop the frame */
	INSN_COMPARE,	 /* flags of [0] - [1] */
	INSN_TEST,	 /* flags of [0] & [1] */
	INSN_CALL,	 /* @target, or [0] when indirect */
	INSN_JUMP,	 /* likewise */
	INSN_BRANCH,	 /* conditional: @target or the next instruction */
	INSN_RETURN,
	INSN_TRAP,   /* does not come back */
	INSN_STRING, /* moves, fills, scans through rsi and rdi */
	INSN_OPS,
};

enum insn_arg_kind { INSN_NONE, INSN_REG, INSN_IMM, INSN_MEM };

struct insn_arg {
	uint8_t kind;  /* enum insn_arg_kind */
	uint8_t reg;   /* for INSN_REG */
	uint8_t bytes; /* width */
	bool is_high;  /* bits 8-15 of the register: %ah */
	int64_t imm;   /* for INSN_IMM; sign-extended */
};

enum insn_segment { INSN_FLAT, INSN_FS, INSN_GS };

struct insn_mem {
	uint8_t base, index; /* DWARF register, INSN_REG_NONE, base also INSN_REG_IP */
	uint8_t scale;
	uint8_t segment; /* enum insn_segment */
	uint8_t access;	 /* enum access_kind; 0: the address is only computed */
	uint16_t width;	 /* bytes; 0 unknown */
	int64_t disp;	 /* with INSN_REG_IP: the absolute va */
};

enum insn_condition { INSN_COND_OTHER, INSN_COND_ABOVE, INSN_COND_BELOW_EQUAL };

struct insn {
	uint64_t va;
	uint64_t target; /* of a direct call, jump or branch, else 0 */
	uint64_t
		writes; /* registers changed, by bit; calls list only the stack pointer */
	uint8_t bytes, op, arg_count, mem_count, condition;
	bool is_counted;  /* accesses memory by an explicit operand: wants an answer */
	bool is_tail;	  /* for the CFG: a jump that leaves the function */
	bool is_repeated; /* rep prefix */
	struct insn_arg args[INSN_ARGS];
	struct insn_mem mems[INSN_MEMS];
};

struct insn_decoder;

/* insn_decoder_open() - Errors: ERR_UNSUPPORTED for any machine but x86-64. */
struct err *insn_decoder_open(enum elf_machine machine,
			      struct insn_decoder **ret_decoder);
void insn_decoder_close(struct insn_decoder *decoder); /* NULL is fine */
CLEANUP_DEFINE(insn_decoder_close, struct insn_decoder *)

/**
 * insn_decode() - one instruction.
 * @code: @room bytes at @va. Return: bytes used, 1 and INSN_BAD when they do not
 * decode, 0 when @room is 0.
 */
size_t insn_decode(struct insn_decoder *decoder, const uint8_t *code, size_t room,
		   uint64_t va, struct insn *ret_insn);

/* insn_text() - what insn_decode() decoded last, not INSN_BAD, as assembly for people;
 * appended to @text. */
struct str;
void insn_text(struct insn_decoder *decoder, struct str *text);

/* The calling convention, by DWARF number. */
struct insn_abi {
	uint64_t call_clobbers; /* registers that a call may change, by bit */
	const uint8_t *args;	/* integer and pointer arguments in order */
	uint8_t arg_count;
	uint8_t result, stack, frame; /* registers */
};

const struct insn_abi *insn_abi(const struct insn_decoder *decoder);

static inline uint64_t insn_bit(uint8_t reg)
{
	return reg < INSN_REGS ? 1ull << reg : 0;
}

#endif
