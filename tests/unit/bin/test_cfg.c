// SPDX-License-Identifier: Apache-2.0
/* Blocks and edges drawn by hand from the assembly beside the bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "assemble.h"
#include "bin/cfg.h"

static struct insn_decoder *open_decoder(void)
{
	struct insn_decoder *decoder;

	assert_null(insn_decoder_open(ELF_X86_64, &decoder));
	return decoder;
}

static bool has_edge(const struct cfg *cfg, uint32_t from, uint32_t to)
{
	const struct cfg_block *block = &cfg->blocks[from];
	bool is_succ = false, is_pred = false;

	for (uint32_t i = 0; i < block->succ_count; i++)
		is_succ |= cfg->succs[block->succ + i] == to;
	for (uint32_t i = 0; i < cfg->blocks[to].pred_count; i++)
		is_pred |= cfg->preds[cfg->blocks[to].pred + i] == from;
	assert_int_equal(is_succ, is_pred);
	return is_succ;
}

static void a_loop_has_a_way_back_and_a_way_out(void **state)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = open_decoder();
	static const struct code_bytes code[] = {
		{ "xor %eax,%eax", { 0x31, 0xc0 }, 2 },	     /* block 0 */
		{ "1: add (%rdi),%eax", { 0x03, 0x07 }, 2 }, /* block 1 */
		{ "dec %esi", { 0xff, 0xce }, 2 },
		{ "jne 1b", { 0x75, 0xfa }, 2 },
		{ "ret", { 0xc3 }, 1 }, /* block 2 */
	};
	struct decoded all = decode_all(decoder, code, 5);
	struct cfg_input input = { all.data, all.count, CODE_VA, NULL, NULL, NULL };
	CLEANUP(cfg_free) struct cfg *cfg = cfg_build(&input);

	(void)state;
	assert_int_equal(cfg->block_count, 3);
	assert_int_equal(cfg->blocks[1].first, 1);
	assert_int_equal(cfg->blocks[1].count, 3);
	assert_true(has_edge(cfg, 0, 1));
	assert_true(has_edge(cfg, 1, 1));
	assert_true(has_edge(cfg, 1, 2));
	assert_false(has_edge(cfg, 0, 2));
	assert_int_equal(cfg->blocks[2].succ_count, 0);
	vec_fini(&all);
}

static bool comes_back(void *ctx, const struct insn *insn)
{
	(void)insn;
	return *(bool *)ctx;
}

static void a_call_that_does_not_return_ends_its_block(void **state)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = open_decoder();
	static const struct code_bytes code[] = {
		{ "call abort", { 0xe8, 0, 0, 0, 0 }, 5 },
		{ "ret", { 0xc3 }, 1 },
	};
	struct decoded all = decode_all(decoder, code, 2);

	(void)state;
	for (int returns = 0; returns < 2; returns++) {
		bool answer = returns;
		struct cfg_input input = { all.data, all.count,	 CODE_VA,
					   &answer,  comes_back, NULL };
		CLEANUP(cfg_free) struct cfg *cfg = cfg_build(&input);

		assert_int_equal(cfg->block_count, returns ? 1 : 2);
		assert_int_equal(cfg->blocks[0].succ_count, 0);
	}
	vec_fini(&all);
}

#define TABLE_VA 0x2000

/* Two entries that lead to the returns, then one outside. */
static bool read_offsets(void *ctx, uint64_t va, unsigned bytes, uint64_t *ret_value)
{
	const uint64_t *targets = ctx;
	uint64_t index = (va - TABLE_VA) / 4;

	if (bytes != 4 || va < TABLE_VA || index > 2)
		return false;
	*ret_value = (uint32_t)(targets[index] - TABLE_VA);
	return true;
}

static void a_jump_table_leads_to_its_entries(void **state)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = open_decoder();
	static const struct code_bytes code[] = {
		{ "cmp $1,%edi", { 0x83, 0xff, 0x01 }, 3 },
		{ "ja 3f", { 0x77, 0x14 }, 2 },
		{ "mov %edi,%edi", { 0x89, 0xff }, 2 },
		{ "lea table(%rip),%rdx", { 0x48, 0x8d, 0x15, 0xf2, 0x0f, 0, 0 }, 7 },
		{ "movslq (%rdx,%rdi,4),%rax", { 0x48, 0x63, 0x04, 0xba }, 4 },
		{ "add %rdx,%rax", { 0x48, 0x01, 0xd0 }, 3 },
		{ "jmp *%rax", { 0xff, 0xe0 }, 2 },
		{ "1: ret", { 0xc3 }, 1 },
		{ "2: ret", { 0xc3 }, 1 },
		{ "3: ret", { 0xc3 }, 1 },
	};
	struct decoded all = decode_all(decoder, code, 10);
	uint64_t targets[] = { CODE_VA + 23, CODE_VA + 24, CODE_VA + 25 };
	struct cfg_input input = { all.data, all.count, CODE_VA,
				   targets,  NULL,	read_offsets };
	CLEANUP(cfg_free) struct cfg *cfg = cfg_build(&input);

	(void)state;
	assert_int_equal(all.data[3].mems[0].disp, TABLE_VA);
	assert_int_equal(cfg->tables, 1);
	assert_int_equal(cfg->unresolved, 0);
	assert_int_equal(cfg->block_count, 5);
	assert_true(has_edge(cfg, 1, 2));
	assert_true(has_edge(cfg, 1, 3));
	/* the compare admits two entries: the third is not part of the table */
	assert_false(has_edge(cfg, 1, 4));
	assert_true(has_edge(cfg, 0, 4));
	vec_fini(&all);
}

static void padding_that_nobody_enters_leads_nowhere(void **state)
{
	CLEANUP(insn_decoder_close) struct insn_decoder *decoder = open_decoder();
	static const struct code_bytes code[] = {
		{ "jmp 1f", { 0xeb, 0x04 }, 2 },
		{ "nopl (%rax,%rax,1)", { 0x0f, 0x1f, 0x04, 0x00 }, 4 },
		{ "1: ret", { 0xc3 }, 1 },
	};
	struct decoded all = decode_all(decoder, code, 3);
	struct cfg_input input = { all.data, all.count, CODE_VA, NULL, NULL, NULL };
	CLEANUP(cfg_free) struct cfg *cfg = cfg_build(&input);

	(void)state;
	assert_int_equal(cfg->block_count, 3);
	assert_true(has_edge(cfg, 0, 2));
	assert_false(has_edge(cfg, 1, 2));
	vec_fini(&all);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_loop_has_a_way_back_and_a_way_out),
		cmocka_unit_test(a_call_that_does_not_return_ends_its_block),
		cmocka_unit_test(a_jump_table_leads_to_its_entries),
		cmocka_unit_test(padding_that_nobody_enters_leads_nowhere),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
