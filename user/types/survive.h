/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_SURVIVE_H
#define TYPES_SURVIVE_H

/*
 * Registers that a call leaves alone although the calling convention lets it change them.
 * Compilers look into a callee of the same unit and keep values in what it does not use
 * (gcc: -fipa-ra).
 */

#include "types/module.h"

/* survive_clobbers() - what the call or tail jump @insn of recover->code may change, by
 * bit: the convention's set unless the code of the callee, and of all it calls, is in the
 * same unit and shows less. The answer depends on that unit only. */
uint64_t survive_clobbers(struct recover *recover, const struct insn *insn);

#endif
