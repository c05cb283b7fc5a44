/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_SEED_H
#define TYPES_SEED_H

/*
 * Facts from debug information: which variable is in which register, and which object
 * lies in which part of the frame, while one walks a function upwards by va.
 */

#include "types/module.h"

#define SEED_MAX_LIVE	 256  /* variables in one register at a time */
#define SEED_MAX_OBJECTS 8192 /* in one frame */

struct seed {
	const struct dwarf_var **order; /* those in or relative to a register, by lo */
	size_t count, next;
	struct seed_list {
		const struct dwarf_var **data;
		size_t count, room;
	} live[INSN_REGS], fresh, objects;
};

/* Where one is: what is there depends on it. */
struct seed_point {
	uint64_t va;
	int64_t cfa_offset; /* CFA = @cfa_reg + @cfa_offset */
	uint8_t cfa_reg;    /* INSN_REG_NONE: unknown */
};

void seed_init(struct seed *seed, const struct code *code);
void seed_fini(struct seed *seed);

/* seed_advance() - to @va, which never falls. fresh: those that begin to hold there. */
void seed_advance(struct seed *seed, uint64_t va);

/**
 * seed_pointee() - what the register's content points to.
 * @ret_offset: into that type, of the byte which the register itself addresses.
 * Return: type id; 0 when the variable is no pointer (or has several at that piece).
 */
uint32_t seed_pointee(struct dtypes *types, const struct dwarf_var *var,
		      int64_t *ret_offset);

/**
 * seed_object() - the innermost object that covers CFA + @offset at @point.
 * Objects may be described relative to the CFA or to the register that it is computed
 * from, as clang does.
 * @ret_offset: into its type.
 */
const struct dwarf_var *seed_object(const struct seed *seed, struct dtypes *types,
				    const struct seed_point *point, int64_t offset,
				    int64_t *ret_offset);

/* seed_is_part() - the compiler took the object apart, and this is one part: in the frame
 * it is a spilled scalar, no struct lies around it. */
bool seed_is_part(const struct dtypes *types, const struct dwarf_var *var);

#endif
