/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_PLACE_IMPL_H
#define BIN_PLACE_IMPL_H

/* Shared by place.c and place_return.c. */

#include "bin/place.h"
#include "core/vec.h"

struct place_code {
	VEC(struct insn) insns; /* of [va, va + bytes), by a linear sweep */
	VEC(uint64_t) targets;	/* of direct branches and jumps inside, sorted */
	const uint8_t *bytes;
};

struct err *place_decode(const struct place_input *input, struct place_code *code);
void place_code_fini(struct place_code *code);
static inline void cleanup_place_code_fini(struct place_code *code)
{
	place_code_fini(code);
}
bool place_is_target(const struct place_code *code, uint64_t va);
struct place_site place_site_at(const struct place_input *input, const struct insn *insn);

#endif
