/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_INSN_X86_H
#define BIN_INSN_X86_H

/* The x86-64 decoder behind bin/insn.h; see there. */

#include "bin/insn.h"

struct err *insn_x86_open(struct insn_decoder **ret_decoder);
void insn_x86_close(struct insn_decoder *decoder);
size_t insn_x86_decode(struct insn_decoder *decoder, const uint8_t *code, size_t room,
		       uint64_t va, struct insn *ret_insn);
void insn_x86_text(struct insn_decoder *decoder, struct str *text);
const struct insn_abi *insn_x86_abi(void);

#endif
