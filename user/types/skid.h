/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_SKID_H
#define TYPES_SKID_H

/*
 * A clock interrupt is taken after the instruction that stalled. Which access it was,
 * and at which data address, from the sample's ip and registers; pure functions.
 */

#include "bin/cfg.h"
#include "bin/insn.h"

/**
 * skid_access() - the access to charge for a sample at instruction @at.
 * The closest memory instruction before @at in its basic block; at the head of a block
 * the last one of the only predecessor. Calls end the search: what ran before the
 * callee did not delay the instruction after it.
 * Return: instruction index, SIZE_MAX when it is not unique.
 */
size_t skid_access(const struct cfg *cfg, const struct insn *insns, size_t at);

/**
 * skid_address() - recompute the data address of the access at @access.
 * @at: the sample's instruction, at or after @access on the straight path between them.
 * @regs: general registers of the sample by DWARF number (16 of them).
 * @segment_bases: of fs and gs, NULL when unknown.
 * Return false when a register it needs has changed since, or is not known.
 */
bool skid_address(const struct cfg *cfg, const struct insn *insns, size_t access,
		  size_t at, const uint64_t *regs, const uint64_t *segment_bases,
		  uint64_t *ret_va);

#endif
