/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_PASSING_H
#define TYPES_PASSING_H

/*
 * Which argument register carries a pointer to what, by the System V convention of
 * x86-64 (psABI 3.2.3) for C: structs of up to 16 bytes travel in registers, larger ones
 * in memory; a result too large for registers is written where a hidden first argument
 * points, and comes back in the result register.
 */

#include "bin/dtype.h"
#include "bin/flow.h"

struct passing {
	uint32_t used;			 /* argument registers that hold something */
	uint32_t pointee[FLOW_MAX_ARGS]; /* by register; 0: no pointer */
	bool is_pointer[FLOW_MAX_ARGS];	 /* a void pointer has no pointee but is one */
	uint32_t result;		 /* pointee of the result register */
};

/* passing_of() - of a function type; everything 0 when it is none. @count: registers. */
void passing_of(struct dtypes *types, uint32_t function, uint32_t count,
		struct passing *ret_passing);

#endif
