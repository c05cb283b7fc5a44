// SPDX-License-Identifier: Apache-2.0
/*
 * Which decoder serves which machine. A second one (arm64) needs only its own
 * insn_MACHINE.c: the operations are the same, registers are DWARF's.
 */
#include "bin/insn_x86.h"

struct err *insn_decoder_open(enum elf_machine machine, struct insn_decoder **ret_decoder)
{
	if (machine != ELF_X86_64)
		return err_new(ERR_UNSUPPORTED, "machine code other than x86-64");
	return insn_x86_open(ret_decoder);
}

void insn_decoder_close(struct insn_decoder *decoder)
{
	insn_x86_close(decoder);
}

size_t insn_decode(struct insn_decoder *decoder, const uint8_t *code, size_t room,
		   uint64_t va, struct insn *ret_insn)
{
	return insn_x86_decode(decoder, code, room, va, ret_insn);
}

const struct insn_abi *insn_abi(const struct insn_decoder *decoder)
{
	(void)decoder;
	return insn_x86_abi();
}

void insn_text(struct insn_decoder *decoder, struct str *text)
{
	insn_x86_text(decoder, text);
}
