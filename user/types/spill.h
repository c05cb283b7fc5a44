/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_SPILL_H
#define TYPES_SPILL_H

/*
 * What lies in the spill slots of a function. The compiler puts a register's value into
 * the frame and takes it back; no variable of debug information is there, but often the
 * value's type is known all the same. Such an access stays an abstention: what it reads
 * or writes is the compiler's, not the program's.
 */

#include "types/facts.h"

/* Of a decision with VERDICT_SPILL: @type is the value's type, or what it points to. */
#define SPILL_VALUE   0 /* decision.offset */
#define SPILL_POINTER 1

/* spill_decide() - VERDICT_STACK becomes VERDICT_SPILL where the value is known. */
void spill_decide(struct facts *facts);

/* spill_text() - append "struct robj *" or "int"; return false when it has no name. */
bool spill_text(struct recover *recover, const struct decision *decision,
		struct str *out);

#endif
