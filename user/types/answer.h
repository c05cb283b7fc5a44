/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_ANSWER_H
#define TYPES_ANSWER_H

/*
 * The answers of a unit, found out all at once: what its functions show about its types,
 * then a decision for every instruction, in order of address. They depend on the unit and
 * on what it refers to, never on what was asked before, so they can be kept.
 */

#include "types/result.h"

/* answer_unit() - found out when first asked for; valid until answer_forget(). */
const struct result *answer_unit(struct recover *recover, uint32_t unit);
void answer_forget(struct recover *recover, uint32_t unit);
void answer_forget_all(struct recover *recover);

/* answer_records() - those of a function (dwarf_functions()) in its range @range. */
const struct result_record *answer_records(struct recover *recover, uint32_t function,
					   uint32_t range, size_t *ret_count);
/* answer_record() - of the instruction at @va, NULL when it has no answer. */
const struct result_record *answer_record(struct recover *recover, uint32_t function,
					  uint64_t va);
/* answer_fill() - strings live until answer_forget(). */
void answer_fill(struct recover *recover, uint32_t function,
		 const struct result_record *record, struct answer *ret_answer);

/* answer_functions() - of @unit, by address: indices of dwarf_functions(). */
const uint32_t *answer_functions(struct recover *recover, uint32_t unit,
				 size_t *ret_count);

#endif
