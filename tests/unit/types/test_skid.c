// SPDX-License-Identifier: Apache-2.0
/*
 * The rule, on assembly whose blocks are plain to see; and addresses recomputed from
 * registers that the test sets.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "assemble.h"
#include "types/skid.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI };

static const struct code_bytes code[] = {
	{ "mov (%rdi),%rax", { 0x48, 0x8b, 0x07 }, 3 },	  /* 0 */
	{ "test %rax,%rax", { 0x48, 0x85, 0xc0 }, 3 },	  /* 1 */
	{ "je 7", { 0x74, 0x0b }, 2 },			  /* 2 */
	{ "add $1,%rsi", { 0x48, 0x83, 0xc6, 0x01 }, 4 }, /* 3: head, one predecessor */
	{ "mov 8(%rax,%rsi,2),%edx", { 0x8b, 0x54, 0x70, 0x08 }, 4 }, /* 4 */
	{ "inc %edx", { 0xff, 0xc2 }, 2 },			      /* 5 */
	{ "ret", { 0xc3 }, 1 },				/* 6: after the sample */
	{ "mov (%rax),%rax", { 0x48, 0x8b, 0x00 }, 3 }, /* 7: not reached by 2 */
	{ "call f", { 0xe8, 0, 0, 0, 0 }, 5 },		/* 8 */
	{ "ret", { 0xc3 }, 1 },				/* 9 */
};

#define COUNT (sizeof(code) / sizeof(*code))

struct rig {
	struct insn_decoder *decoder;
	struct decoded all;
	struct cfg *cfg;
};

static void start(struct rig *rig)
{
	struct cfg_input input = { .count = COUNT, .entry_va = CODE_VA };

	assert_null(insn_decoder_open(ELF_X86_64, &rig->decoder));
	rig->all = decode_all(rig->decoder, code, COUNT);
	input.insns = rig->all.data;
	rig->cfg = cfg_build(&input);
}

static void stop(struct rig *rig)
{
	cfg_free(rig->cfg);
	vec_fini(&rig->all);
	insn_decoder_close(rig->decoder);
}

static void the_access_before_the_sample_is_charged(void **state)
{
	struct rig rig;
	static const struct {
		size_t sample, access;
	} table[] = {
		{ 0, SIZE_MAX }, /* the function's entry */
		{ 1, 0 },
		{ 2, 0 },
		{ 3, 0 }, /* head of a block: the only predecessor's last access */
		{ 4, 0 }, /* nothing before it in its block either */
		{ 5, 4 },
		{ 6, 4 },
		{ 8, 7 },
		{ 9, SIZE_MAX }, /* after a call: the callee's accesses came between */
	};

	(void)state;
	start(&rig);
	for (size_t i = 0; i < sizeof(table) / sizeof(*table); i++)
		assert_int_equal(skid_access(rig.cfg, rig.all.data, table[i].sample),
				 table[i].access);
	stop(&rig);
}

static void the_address_follows_from_registers_that_still_hold(void **state)
{
	struct rig rig;
	uint64_t regs[16] = { [RAX] = 0x5000, [RSI] = 0x10, [RDI] = 0x7000 }, va = 0;

	(void)state;
	start(&rig);
	assert_true(skid_address(rig.cfg, rig.all.data, 4, 5, regs, NULL, &va));
	assert_int_equal(va, 0x5000 + 0x10 * 2 + 8);
	/* across the edge, too */
	assert_true(skid_address(rig.cfg, rig.all.data, 0, 3, regs, NULL, &va));
	assert_int_equal(va, 0x7000);
	stop(&rig);
}

static void a_base_that_was_overwritten_gives_no_address(void **state)
{
	struct rig rig;
	uint64_t regs[16] = { 0 }, va = 0;

	(void)state;
	start(&rig);
	/* mov (%rax),%rax destroys its own base */
	assert_false(skid_address(rig.cfg, rig.all.data, 7, 8, regs, NULL, &va));
	/* but not before it has run */
	assert_true(skid_address(rig.cfg, rig.all.data, 7, 7, regs, NULL, &va));
	/* no straight path between these two */
	assert_false(skid_address(rig.cfg, rig.all.data, 4, 8, regs, NULL, &va));
	stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(the_access_before_the_sample_is_charged),
		cmocka_unit_test(the_address_follows_from_registers_that_still_hold),
		cmocka_unit_test(a_base_that_was_overwritten_gives_no_address),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
