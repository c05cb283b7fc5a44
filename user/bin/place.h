/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_PLACE_H
#define BIN_PLACE_H

/*
 * Where to put a breakpoint into a function. The kernel emulates push, nop, direct call,
 * jmp and jcc at a hit (1-2 us); any other instruction is single-stepped (12-20 us).
 *
 * Entry: the first instruction that is emulated, always executed, executed once per call,
 * and at which the arguments wanted are still in their registers.
 *
 * Return: every ret, and every jump that leaves the function with the stack as it was on
 * entry (tail call). A ret is single-stepped; where all that lies between it and the check
 * of the stack protector before it restores registers, the check's jcc takes its place.
 * Code that gcc moved away (".cold") is followed: it has its ret now and then.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bin/elf.h"
#include "bin/frame.h"
#include "bin/insn.h"
#include "core/err.h"

#define PLACE_MAX_BYTES	   (512 * 1024) /* of one function */
#define PLACE_MAX_FRAGMENT 4096		/* instructions of the code moved away */
#define PLACE_MAX_SITES	   64		/* returns of one function */
#define PLACE_MAX_LOOK	   32		/* instructions looked at from the entry on */

enum place_insn {
	PLACE_OTHER,
	PLACE_PUSH,
	PLACE_NOP,
	PLACE_CALL,
	PLACE_JUMP,
	PLACE_BRANCH,
	PLACE_RETURN,
};

struct place_site {
	uint64_t va;
	uint8_t insn;	  /* enum place_insn */
	bool is_emulated; /* by every kernel from 4.x on */
	bool by_frame;	  /* @pushed counts from rbp, not rsp */
	int32_t pushed;	  /* rsp here + this = rsp at the first instruction; -1 unknown */
};

struct place_input {
	const struct elf_file *file;
	struct insn_decoder *decoder;
	struct frame_table *frames;	       /* NULL: none */
	const struct elf_functions *functions; /* for PLT entries and tail calls */
	uint64_t va, bytes;		       /* of the function */
	uint64_t live;	   /* entry: registers wanted, by DWARF number */
	bool reads_memory; /* entry: memory that the function may change is wanted */
	bool needs_result; /* return: rax is wanted */
};

/* place_kind() - of the first instruction of @code, by what kernels emulate. */
enum place_insn place_kind(const uint8_t *code, size_t bytes, bool *ret_is_emulated);

/**
 * place_entry() - never fails for lack of a cheap place: it is then the entry itself.
 * Errors: ERR_NOT_FOUND (no code there), ERR_LIMIT.
 */
struct err *place_entry(const struct place_input *input, struct place_site *ret_site);

/**
 * place_returns() - all of them, in order of va. None: the function never returns.
 * @ret_sites: room for PLACE_MAX_SITES.
 * Errors: ERR_LIMIT; ERR_UNSUPPORTED when some way out cannot be told for sure.
 */
struct err *place_returns(const struct place_input *input, struct place_site *ret_sites,
			  size_t *ret_count);

/* place_throws() - exceptions may pass through this module: it has landing pads. */
bool place_throws(const struct elf_file *file);

#endif
