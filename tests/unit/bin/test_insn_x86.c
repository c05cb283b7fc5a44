// SPDX-License-Identifier: Apache-2.0
/* Bytes come from GNU as; what they do is in the processor's manual. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "assemble.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP, R8, XMM0 = INSN_REG_VEC };

static const struct {
	struct code_bytes code;
	uint8_t op, access;
	uint16_t width;
	uint64_t writes;
	bool is_counted;
} table[] = {
	{ { "mov 0x10(%rdi,%rsi,4),%eax", { 0x8b, 0x44, 0xb7, 0x10 }, 4 },
	  INSN_MOVE,
	  ACCESS_LOAD,
	  4,
	  1 << RAX,
	  true },
	{ { "mov %rax,(%rdx)", { 0x48, 0x89, 0x02 }, 3 },
	  INSN_MOVE,
	  ACCESS_STORE,
	  8,
	  0,
	  true },
	{ { "add %rax,8(%rdx)", { 0x48, 0x01, 0x42, 0x08 }, 4 },
	  INSN_ADD,
	  ACCESS_BOTH,
	  8,
	  0,
	  true },
	{ { "addl $1,8(%rdx)", { 0x83, 0x42, 0x08, 0x01 }, 4 },
	  INSN_ADD,
	  ACCESS_BOTH,
	  4,
	  0,
	  true },
	{ { "cmpb $0,9(%rax)", { 0x80, 0x78, 0x09, 0x00 }, 4 },
	  INSN_COMPARE,
	  ACCESS_LOAD,
	  1,
	  0,
	  true },
	{ { "movzbl 2(%rcx),%edx", { 0x0f, 0xb6, 0x51, 0x02 }, 4 },
	  INSN_EXTEND,
	  ACCESS_LOAD,
	  1,
	  1 << RDX,
	  true },
	{ { "movups (%rsi),%xmm0", { 0x0f, 0x10, 0x06 }, 3 },
	  INSN_MOVE,
	  ACCESS_LOAD,
	  16,
	  1ull << XMM0,
	  true },
	{ { "movsd (%rsi),%xmm0", { 0xf2, 0x0f, 0x10, 0x06 }, 4 },
	  INSN_MOVE,
	  ACCESS_LOAD,
	  8,
	  1ull << XMM0,
	  true },
	{ { "call *0x18(%rax)", { 0xff, 0x50, 0x18 }, 3 },
	  INSN_CALL,
	  ACCESS_LOAD,
	  8,
	  1 << RSP,
	  true },
	{ { "sete (%rdi)", { 0x0f, 0x94, 0x07 }, 3 },
	  INSN_OTHER,
	  ACCESS_STORE,
	  1,
	  0,
	  true },
	{ { "lock xadd %eax,(%rdi)", { 0xf0, 0x0f, 0xc1, 0x07 }, 4 },
	  INSN_OTHER,
	  ACCESS_BOTH,
	  4,
	  1 << RAX,
	  true },
	{ { "lea 8(%rdi),%rax", { 0x48, 0x8d, 0x47, 0x08 }, 4 },
	  INSN_LEA,
	  0,
	  0,
	  1 << RAX,
	  false },
	{ { "nopw 0(%rax,%rax,1)", { 0x66, 0x0f, 0x1f, 0x44, 0x00, 0x00 }, 6 },
	  INSN_NOP,
	  0,
	  0,
	  0,
	  false },
	{ { "prefetcht0 (%rdi)", { 0x0f, 0x18, 0x0f }, 3 }, INSN_NOP, 0, 0, 0, false },
	{ { "push %rbx", { 0x53 }, 1 }, INSN_PUSH, 0, 0, 1 << RSP, false },
	{ { "pop %rbx", { 0x5b }, 1 }, INSN_POP, 0, 0, 1 << RSP | 1 << RBX, false },
	{ { "ret", { 0xc3 }, 1 }, INSN_RETURN, 0, 0, 0, false },
	{ { "ud2", { 0x0f, 0x0b }, 2 }, INSN_TRAP, 0, 0, 0, false },
	{ { "cqto", { 0x48, 0x99 }, 2 }, INSN_OTHER, 0, 0, 1 << RDX, false },
};

static struct insn_decoder *open_decoder(void)
{
	struct insn_decoder *decoder;

	assert_null(insn_decoder_open(ELF_X86_64, &decoder));
	return decoder;
}

static void operation_access_and_writes_are_the_manuals(void **state)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = open_decoder();

	(void)state;
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++) {
		struct insn insn;

		print_message("%s\n", table[i].code.text);
		assert_int_equal(insn_decode(decoder, table[i].code.bytes,
					     table[i].code.count, CODE_VA, &insn),
				 table[i].code.count);
		assert_int_equal(insn.op, table[i].op);
		assert_int_equal(insn.is_counted, table[i].is_counted);
		assert_int_equal(insn.writes, table[i].writes);
		if (!table[i].is_counted)
			continue;
		assert_int_equal(insn.mems[0].access, table[i].access);
		assert_int_equal(insn.mems[0].width, table[i].width);
	}
}

static void an_operand_has_its_parts(void **state)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = open_decoder();
	struct insn insn;

	(void)state;
	insn_decode(decoder, table[0].code.bytes, table[0].code.count, CODE_VA, &insn);
	assert_int_equal(insn.mems[0].base, RDI);
	assert_int_equal(insn.mems[0].index, RSI);
	assert_int_equal(insn.mems[0].scale, 4);
	assert_int_equal(insn.mems[0].disp, 0x10);
}

static void an_ip_relative_operand_is_an_absolute_address(void **state)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = open_decoder();
	static const uint8_t code[] = { 0x48, 0x8b, 0x05, 0x10, 0, 0, 0 };
	struct insn insn;

	(void)state;
	insn_decode(decoder, code, sizeof(code), CODE_VA, &insn);
	assert_int_equal(insn.mems[0].base, INSN_REG_IP);
	assert_int_equal(insn.mems[0].disp, CODE_VA + 7 + 0x10);
}

static void a_register_cleared_by_itself_is_a_constant(void **state)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = open_decoder();
	static const uint8_t code[] = { 0x31, 0xc0 }; /* xor %eax,%eax */
	struct insn insn;

	(void)state;
	insn_decode(decoder, code, sizeof(code), CODE_VA, &insn);
	assert_int_equal(insn.op, INSN_MOVE);
	assert_int_equal(insn.args[1].kind, INSN_IMM);
	assert_int_equal(insn.args[1].imm, 0);
}

static void a_string_move_has_two_operands_and_says_rep(void **state)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = open_decoder();
	static const uint8_t code[] = { 0xf3, 0x48, 0xa5 }; /* rep movsq */
	struct insn insn;

	(void)state;
	insn_decode(decoder, code, sizeof(code), CODE_VA, &insn);
	assert_int_equal(insn.op, INSN_STRING);
	assert_true(insn.is_repeated);
	assert_int_equal(insn.mem_count, 2);
	assert_int_equal(insn.mems[0].access, ACCESS_STORE);
	assert_int_equal(insn.mems[1].access, ACCESS_LOAD);
	assert_int_equal(insn.writes, 1 << RDI | 1 << RSI | 1 << RCX);
}

static void what_does_not_decode_is_one_bad_byte(void **state)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = open_decoder();
	static const uint8_t code[] = { 0x06, 0x06 };
	struct insn insn;

	(void)state;
	assert_int_equal(insn_decode(decoder, code, 2, CODE_VA, &insn), 1);
	assert_int_equal(insn.op, INSN_BAD);
	assert_int_equal(insn_decode(decoder, code, 0, CODE_VA, &insn), 0);
}

static void another_machine_is_refused(void **state)
{
	struct insn_decoder *decoder;
	struct err *err = insn_decoder_open(ELF_AARCH64, &decoder);

	(void)state;
	assert_non_null(err);
	assert_int_equal(err->code, ERR_UNSUPPORTED);
	err_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(operation_access_and_writes_are_the_manuals),
		cmocka_unit_test(an_operand_has_its_parts),
		cmocka_unit_test(an_ip_relative_operand_is_an_absolute_address),
		cmocka_unit_test(a_register_cleared_by_itself_is_a_constant),
		cmocka_unit_test(a_string_move_has_two_operands_and_says_rep),
		cmocka_unit_test(what_does_not_decode_is_one_bad_byte),
		cmocka_unit_test(another_machine_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
