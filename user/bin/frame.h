/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_FRAME_H
#define BIN_FRAME_H

/*
 * Where the canonical frame address is and where the caller's registers were saved, at
 * any va, from .eh_frame and .debug_frame; and a walk over a copied stack with those
 * rules. Registers are numbered as DWARF does on x86-64: rax 0, rdx 1, rcx 2, rbx 3,
 * rsi 4, rdi 5, rbp 6, rsp 7, r8-r15 8-15, return address (rip) 16.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bin/elf.h"
#include "core/cleanup.h"
#include "core/err.h"

#define FRAME_REGS	 17
#define FRAME_RBX	 3
#define FRAME_RBP	 6
#define FRAME_RSP	 7
#define FRAME_RIP	 16
#define FRAME_MAX_DEPTH	 256
#define FRAME_MAX_RULES	 32768 /* cached per module */
#define FRAME_MAX_OPS	 64    /* operations of one expression */
#define FRAME_MAX_RANGES 65536

enum frame_save {
	FRAME_UNDEFINED,  /* lost; for the return address: the root */
	FRAME_SAME,	  /* the register still holds it */
	FRAME_SAVED,	  /* in memory at CFA + off */
	FRAME_VALUE,	  /* it is CFA + off */
	FRAME_REGISTER,	  /* in register @off */
	FRAME_EXPRESSION, /* in memory at the value of an expression */
};

struct frame_ops; /* a DWARF expression, opaque */

/* Rules that hold on [va, end). */
struct frame_rule {
	uint64_t va, end;
	bool is_signal;	     /* a signal trampoline: the caller's ip is exact */
	bool cfa_expression; /* CFA by @cfa_ops, otherwise cfa_reg + cfa_off */
	uint8_t cfa_reg;
	int64_t cfa_off;
	const struct frame_ops *cfa_ops;
	struct frame_reg {
		enum frame_save save;
		union {
			int64_t off;
			const struct frame_ops *ops;
		};
	} regs[FRAME_REGS];
};

struct frame_table;

/**
 * frame_open() - prepare the unwind rules of one module; nothing is parsed yet.
 * @debug: its separate debug file (for .debug_frame), or NULL. Both are borrowed.
 * A module without rules is no error. Errors: ERR_FORMAT for damaged tables.
 */
struct err *frame_open(const struct elf_file *file, const struct elf_file *debug,
		       struct frame_table **ret_table);
void frame_close(struct frame_table *table); /* NULL is fine */
CLEANUP_DEFINE(frame_close, struct frame_table *)

/* frame_rule_at() - NULL where no rule covers @va. Valid until the next call. */
const struct frame_rule *frame_rule_at(struct frame_table *table, uint64_t va);

/**
 * frame_cfa_at() - the CFA at @va as register + offset.
 * The usual expression of PLT entries is reduced to that form too (the va decides).
 * Return false where there is no rule or it is another expression.
 */
bool frame_cfa_at(struct frame_table *table, uint64_t va, unsigned *ret_reg,
		  int64_t *ret_off);

/**
 * frame_digest() - a hash of the rules of the code in [@va, @end), the same wherever the
 * code lies. 0 when they have a form that is not understood. To be taken together with
 * frame_digest_all(): of the rules that cannot be told apart by function.
 */
uint64_t frame_digest(const struct elf_file *file, uint64_t va, uint64_t end);
uint64_t frame_digest_all(const struct elf_file *file, const struct elf_file *debug);

/* One mapping of the process; va = ip - bias. Sorted by @start, not overlapping. */
struct frame_range {
	uint64_t start, end, bias;
	uint64_t id;		   /* the caller's, repeated in the frames; 0 unknown */
	struct frame_table *table; /* NULL: frame pointers only */
};

struct frame_stack {
	uint64_t regs[FRAME_REGS];
	const void *bytes; /* of the stack, from regs[FRAME_RSP] upwards */
	size_t byte_count;
};

/* @va is the leaf's or an interrupted function's own address, and the address of the
 * call (return address - 1) for the others, so that it always lies in the function and
 * on the line that was being executed. Unmapped: @id is 0 and @va a runtime address. */
struct frame_at {
	uint64_t id, va;
};

/**
 * frame_unwind() - walk from the leaf to the root.
 * @ret_frames: room for FRAME_MAX_DEPTH.
 * @ret_complete: the walk ended at the root (an undefined return address, the program's
 *	entry, or a zero frame pointer where there are no rules), not for want of
 *	stack bytes or rules.
 * Modules without rules at an address are walked by frame pointers. Every step must move
 * towards the stack's base, signal frames excepted, so that it ends.
 * Return: frames written, the leaf first.
 */
size_t frame_unwind(const struct frame_range *ranges, size_t range_count,
		    const struct frame_stack *stack, struct frame_at *ret_frames,
		    bool *ret_complete);

#endif
