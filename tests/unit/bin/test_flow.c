// SPDX-License-Identifier: Apache-2.0
/* Values followed by hand through the assembly beside the bytes. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "assemble.h"
#include "bin/flow.h"
#include "core/mem.h"

enum { RAX, RDX, RCX, RBX, RSI, RDI, RBP, RSP };

struct rig {
	struct insn_decoder *decoder;
	struct decoded all;
	struct cfg *cfg;
	struct flow *flow;
};

/* The CFA is @cfa_offset above the stack pointer at each instruction. */
static void run(struct rig *rig, const struct code_bytes *code, size_t count,
		const int64_t *cfa_offsets)
{
	struct flow_frame *frames = mem_array(count, sizeof(*frames));
	struct cfg_input cfg_input = { .count = count, .entry_va = CODE_VA };
	struct flow_input input = { .frames = frames, .count = count };

	assert_null(insn_decoder_open(ELF_X86_64, &rig->decoder));
	rig->all = decode_all(rig->decoder, code, count);
	cfg_input.insns = rig->all.data;
	rig->cfg = cfg_build(&cfg_input);
	for (size_t i = 0; i < count; i++)
		frames[i] = (struct flow_frame){ cfa_offsets ? cfa_offsets[i] : 8, RSP };
	input.cfg = rig->cfg;
	input.insns = rig->all.data;
	input.abi = insn_abi(rig->decoder);
	rig->flow = flow_new();
	assert_true(flow_run(rig->flow, &input));
	free(frames);
}

static void stop(struct rig *rig)
{
	flow_free(rig->flow);
	cfg_free(rig->cfg);
	vec_fini(&rig->all);
	insn_decoder_close(rig->decoder);
}

static void copies_and_offsets_share_the_root(void **state)
{
	static const struct code_bytes code[] = {
		{ "mov %rdi,%rax", { 0x48, 0x89, 0xf8 }, 3 },
		{ "add $16,%rax", { 0x48, 0x83, 0xc0, 0x10 }, 4 },
		{ "mov -8(%rax),%rdx", { 0x48, 0x8b, 0x50, 0xf8 }, 4 },
		{ "ret", { 0xc3 }, 1 },
	};
	struct rig rig;

	(void)state;
	run(&rig, code, 4, NULL);
	assert_int_equal(rig.flow->accesses.count, 1);
	assert_int_equal(rig.flow->accesses.data[0].base.node, rig.flow->entries[RDI]);
	assert_int_equal(rig.flow->accesses.data[0].base.delta, 16);
	assert_int_equal(rig.flow->accesses.data[0].disp, -8);
	stop(&rig);
}

static void a_spilled_value_comes_back(void **state)
{
	static const struct code_bytes code[] = {
		{ "push %rdi", { 0x57 }, 1 },
		{ "sub $16,%rsp", { 0x48, 0x83, 0xec, 0x10 }, 4 },
		{ "mov %rsi,8(%rsp)", { 0x48, 0x89, 0x74, 0x24, 0x08 }, 5 },
		{ "mov 8(%rsp),%rax", { 0x48, 0x8b, 0x44, 0x24, 0x08 }, 5 },
		{ "mov 16(%rsp),%rdx", { 0x48, 0x8b, 0x54, 0x24, 0x10 }, 5 },
		{ "mov (%rax),%rcx", { 0x48, 0x8b, 0x08 }, 3 },
		{ "mov (%rdx),%rcx", { 0x48, 0x8b, 0x0a }, 3 },
		{ "ret", { 0xc3 }, 1 },
	};
	static const int64_t cfa[] = { 8, 16, 32, 32, 32, 32, 32, 32 };
	struct rig rig;

	(void)state;
	run(&rig, code, 8, cfa);
	assert_int_equal(rig.flow->accesses.count, 5);
	assert_int_equal(rig.flow->accesses.data[3].base.node, rig.flow->entries[RSI]);
	assert_int_equal(rig.flow->accesses.data[4].base.node, rig.flow->entries[RDI]);
	stop(&rig);
}

static void a_loop_pointer_is_one_phi_of_start_and_step(void **state)
{
	static const struct code_bytes code[] = {
		{ "1: mov (%rdi),%eax", { 0x8b, 0x07 }, 2 },
		{ "add $24,%rdi", { 0x48, 0x83, 0xc7, 0x18 }, 4 },
		{ "cmp %rsi,%rdi", { 0x48, 0x39, 0xf7 }, 3 },
		{ "jne 1b", { 0x75, 0xf5 }, 2 },
		{ "ret", { 0xc3 }, 1 },
	};
	struct rig rig;
	uint32_t base;
	const struct flow_node *phi;
	bool has_start = false, has_step = false;

	(void)state;
	run(&rig, code, 5, NULL);
	base = rig.flow->accesses.data[0].base.node;
	phi = &rig.flow->nodes.data[base];
	assert_int_equal(phi->kind, FLOW_PHI);
	for (uint32_t i = 0; i < phi->term_count; i++) {
		struct flow_ref ref = rig.flow->terms.data[phi->term + i].ref;

		has_start |= ref.node == rig.flow->entries[RDI] && !ref.delta;
		has_step |= ref.node == base && ref.delta == 24;
	}
	assert_true(has_start && has_step);
	/* the other operand never changes: no phi is left of it */
	assert_int_equal(rig.flow->compares.data[0].b.node == rig.flow->entries[RSI] ||
				 rig.flow->compares.data[0].a.node ==
					 rig.flow->entries[RSI],
			 1);
	stop(&rig);
}

static void the_divisor_of_an_index_is_known(void **state)
{
	static const struct code_bytes code[] = {
		{ "lea (%rsi,%rsi,2),%rax", { 0x48, 0x8d, 0x04, 0x76 }, 4 },
		{ "shl $3,%rax", { 0x48, 0xc1, 0xe0, 0x03 }, 4 },
		{ "mov 4(%rdi,%rax,1),%edx", { 0x8b, 0x54, 0x07, 0x04 }, 4 },
		{ "ret", { 0xc3 }, 1 },
	};
	struct rig rig;

	(void)state;
	run(&rig, code, 4, NULL);
	assert_int_equal(flow_multiple(rig.flow, rig.flow->accesses.data[0].index), 24);
	assert_int_equal(flow_constant(rig.flow, rig.flow->accesses.data[0].index), 0);
	stop(&rig);
}

static void a_call_forgets_what_it_may_change(void **state)
{
	static const struct code_bytes code[] = {
		{ "mov %rdi,%rbx", { 0x48, 0x89, 0xfb }, 3 },
		{ "call f", { 0xe8, 0, 0, 0, 0 }, 5 },
		{ "mov (%rbx),%rcx", { 0x48, 0x8b, 0x0b }, 3 },
		{ "mov (%rdi),%rcx", { 0x48, 0x8b, 0x0f }, 3 },
		{ "mov (%rax),%rcx", { 0x48, 0x8b, 0x08 }, 3 },
		{ "ret", { 0xc3 }, 1 },
	};
	struct rig rig;
	const struct flow_access *accesses;

	(void)state;
	run(&rig, code, 6, NULL);
	accesses = rig.flow->accesses.data;
	assert_int_equal(accesses[0].base.node, rig.flow->entries[RDI]);
	assert_int_equal(rig.flow->nodes.data[accesses[1].base.node].kind, FLOW_UNKNOWN);
	assert_int_equal(rig.flow->nodes.data[accesses[2].base.node].kind, FLOW_CALL);
	stop(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(copies_and_offsets_share_the_root),
		cmocka_unit_test(a_spilled_value_comes_back),
		cmocka_unit_test(a_loop_pointer_is_one_phi_of_start_and_step),
		cmocka_unit_test(the_divisor_of_an_index_is_known),
		cmocka_unit_test(a_call_forgets_what_it_may_change),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
