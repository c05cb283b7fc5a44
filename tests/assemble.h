/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_ASSEMBLE_H
#define TESTS_ASSEMBLE_H

/* Machine code written down as bytes (from GNU as) and decoded at a made-up va. */

#include "bin/insn.h"
#include "core/vec.h"

#define CODE_VA 0x1000

struct code_bytes {
	const char *text; /* what the assembler was given */
	uint8_t bytes[12], count;
};

struct decoded {
	struct insn *data;
	size_t count, room;
};

static inline struct decoded decode_all(struct insn_decoder *decoder,
					const struct code_bytes *code, size_t count)
{
	struct decoded all = { 0 };
	uint64_t va = CODE_VA;

	for (size_t i = 0; i < count; i++) {
		struct insn insn;
		size_t used =
			insn_decode(decoder, code[i].bytes, code[i].count, va, &insn);

		assert_int_equal(used, code[i].count);
		vec_push(&all, insn);
		va += used;
	}
	return all;
}

#endif
