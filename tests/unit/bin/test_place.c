// SPDX-License-Identifier: Apache-2.0
/*
 * Prologues and epilogues as gcc makes them for Debian's servers, assembled into this
 * program; the labels inside say where a probe belongs. Sizes are from the assembler.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>

#include "bin/place.h"

#define RDI (1ull << 5)
#define RSI (1ull << 4)

#define BEGIN(name)                                                  \
	".globl " #name "\n.type " #name ", @function\n" #name ":\n" \
	".cfi_startproc\n"
#define END(name)      ".cfi_endproc\n.size " #name ", . - " #name "\n"
#define SITE(name)     ".globl " #name "\n" #name ":\n"
#define PUSH(reg, cfa) "push %" #reg "\n.cfi_def_cfa_offset " #cfa "\n"
#define POP(reg, cfa)  "pop %" #reg "\n.cfi_def_cfa_offset " #cfa "\n"

/* A name stays local to this program's .symtab, which is not stripped. */
asm(".text\n"
    /* the push comes first */
    BEGIN(place_push) PUSH(r15, 16) "mov %rdi, %rbx\nxor %edi, %edi\n" POP(
	    r15, 8) "ret\n" END(place_push)
    /* endbr64, then a push of r12 with its prefix */
    BEGIN(place_endbr) "endbr64\n" SITE(place_endbr_site) PUSH(r12, 16)
	    POP(r12, 8) "ret\n" END(place_endbr)
    /* a load through rdi leaves rdi as it was; the jcc is the first that is emulated */
    BEGIN(place_test) "testb $0x20, 0xe1(%rdi)\n" SITE(
	    place_test_site) "jne 1f\nret\n1: ret\n" END(place_test)
    /* rdi is gone before anything emulated comes */
    BEGIN(place_lost) "mov %rsi, %rdi\n" SITE(place_lost_site) PUSH(rbx, 16)
	    POP(rbx, 8) "ret\n" END(place_lost)
    /* the push is the head of a loop */
    BEGIN(place_loop) "mov $3, %ecx\n1: push %rbx\npop %rbx\ndec %ecx\njnz 1b\nret\n" END(
	    place_loop)
    /* memory that an argument may point to is changed first */
    BEGIN(place_store) "movq $0, (%rsi)\n" SITE(place_store_site) PUSH(rbx, 16)
	    POP(rbx, 8) "ret\n" END(place_store)
    /* frame made before the call that is the first emulated one */
    BEGIN(place_call) "sub $24, %rsp\n.cfi_def_cfa_offset 32\nmov $1, %eax\n" SITE(
	    place_call_site) "call place_push\nadd $24, %rsp\n.cfi_def_cfa_offset 8\n" SITE(place_call_ret) "ret\n" END(place_call)
    /* stack protector, frame pointer, a tail call and a part moved away that returns */
    BEGIN(place_many) PUSH(
	    rbp,
	    16) "mov %rsp, %rbp\n.cfi_def_cfa_register 6\n"
		"sub $16, %rsp\nmov %fs:0x28, %rax\nmov %rax, -8(%rbp)\n"
		"test %rdi, %rdi\nje place_many_cold\ncmp $1, %rdi\nje 2f\n"
		"mov $7, %eax\nmov -8(%rbp), %rdx\nsub %fs:0x28, %rdx\n" SITE(
			place_many_check) "jne 3f\nleave\n.cfi_def_cfa 7, 8\nret\n"
					  ".cfi_def_cfa 6, 16\n2: leave\n.cfi_def_cfa 7, 8\n" SITE(place_many_tail) "jmp place_push\n.cfi_def_cfa 6, 16\n3: call __stack_chk_fail@PLT\n" END(
						  place_many) ".section .text.unlikely\n.type place_many_cold, @function\nplace_many_cold:\n"
							      ".cfi_startproc\n.cfi_def_cfa 6, 16\n.cfi_offset 6, -16\nmov $9, %eax\nleave\n"
							      ".cfi_def_cfa 7, 8\n" SITE(
								      place_many_cold_ret) "ret\n.cfi_endproc\n"
											   ".size place_many_cold, . - place_many_cold\n.text\n"
    /* the check writes what is to be returned: not the place to read it */
    BEGIN(place_result) PUSH(rbx, 16) "mov %fs:0x28, %rdx\nsub %fs:0x28, %rdx\n" SITE(
	    place_result_check) "jne 1f\nmov %ebx, %eax\n" POP(rbx, 8)
	    SITE(place_result_ret) "ret\n.cfi_def_cfa_offset 16\n1: call __stack_chk_fail@PLT\n" END(
		    place_result)
    /* a jump inside joins below the check */
    BEGIN(place_joined) PUSH(
	    rbx,
	    16) "test %rdi, %rdi\nje 2f\n"
		"mov %fs:0x28, %rdx\nsub %fs:0x28, %rdx\njne 1f\n2: " POP(rbx, 8)
			SITE(place_joined_ret) "ret\n.cfi_def_cfa_offset 16\n1: call __stack_chk_fail@PLT\n" END(
				place_joined)
    /* never returns */
    BEGIN(place_never) "1: jmp 1b\n" END(place_never)
    /* a conditional tail call */
    BEGIN(place_conditional) "test %rdi, %rdi\nje place_push\nret\n" END(
	    place_conditional)
    /* two returns */
    BEGIN(place_two) "test %rdi, %rdi\njne 1f\n" SITE(place_two_a) "ret\n1: nop\n" SITE(
	    place_two_b) "ret\n" END(place_two));

struct fixture {
	int fd;
	struct elf_file *file;
	struct elf_functions *functions;
	struct frame_table *frames;
	struct insn_decoder *decoder;
	uint64_t base;
};

static int take_base(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uint64_t *)base = info->dlpi_addr;
	return 1; /* the program itself comes first */
}

static int setup(void **state)
{
	static struct fixture fixture;

	fixture.fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	dl_iterate_phdr(take_base, &fixture.base);
	struct err *err = elf_open(fixture.fd, &fixture.file);

	if (!err)
		err = elf_functions_new(fixture.file, NULL, &fixture.functions);
	if (!err)
		err = frame_open(fixture.file, NULL, &fixture.frames);
	if (!err)
		err = insn_decoder_open(ELF_X86_64, &fixture.decoder);
	*state = &fixture;
	return err != NULL;
}

static int teardown(void **state)
{
	struct fixture *fixture = *state;

	insn_decoder_close(fixture->decoder);
	frame_close(fixture->frames);
	elf_functions_free(fixture->functions);
	elf_close(fixture->file);
	close(fixture->fd);
	return 0;
}

#define VA(fixture, name)                                     \
	({                                                    \
		extern char name[];                           \
		(uint64_t)(uintptr_t) name - (fixture)->base; \
	})

static struct place_input input_for(const struct fixture *fixture, uint64_t va)
{
	const struct elf_function *function = elf_function_at(fixture->functions, va);

	assert_non_null(function);
	assert_int_equal(function->va, va);
	return (struct place_input){ .file = fixture->file,
				     .decoder = fixture->decoder,
				     .frames = fixture->frames,
				     .functions = fixture->functions,
				     .va = va,
				     .bytes = function->bytes,
				     .live = RDI };
}

static struct place_site entry_of(const struct place_input *input)
{
	struct place_site site = { 0 };
	struct err *err = place_entry(input, &site);

	if (err)
		fail_msg("%s", err->text);
	return site;
}

static void a_push_at_the_entry_is_the_place(void **state)
{
	struct place_input input =
		input_for(*state, VA((struct fixture *)*state, place_push));
	struct place_site site = entry_of(&input);

	assert_int_equal(site.va, input.va);
	assert_int_equal(site.insn, PLACE_PUSH);
	assert_true(site.is_emulated);
	assert_int_equal(site.pushed, 0);
}

static void endbr64_is_stepped_over_to_the_push(void **state)
{
	struct fixture *fixture = *state;
	struct place_input input = input_for(fixture, VA(fixture, place_endbr));
	struct place_site site = entry_of(&input);

	assert_int_equal(site.va, VA(fixture, place_endbr_site));
	assert_true(site.is_emulated);
}

static void a_conditional_jump_does_where_no_push_comes_first(void **state)
{
	struct fixture *fixture = *state;
	struct place_input input = input_for(fixture, VA(fixture, place_test));
	struct place_site site = entry_of(&input);

	assert_int_equal(site.va, VA(fixture, place_test_site));
	assert_int_equal(site.insn, PLACE_BRANCH);
}

static void an_argument_overwritten_before_leaves_the_entry_single_stepped(void **state)
{
	struct fixture *fixture = *state;
	struct place_input input = input_for(fixture, VA(fixture, place_lost));
	struct place_site site = entry_of(&input);

	assert_int_equal(site.va, input.va);
	assert_false(site.is_emulated);
	/* Who only wants rsi can have the push. */
	input.live = RSI;
	assert_int_equal(entry_of(&input).va, VA(fixture, place_lost_site));
}

static void the_head_of_a_loop_is_no_place(void **state)
{
	struct fixture *fixture = *state;
	struct place_input input = input_for(fixture, VA(fixture, place_loop));
	struct place_site site = entry_of(&input);

	assert_int_equal(site.va, input.va);
	assert_false(site.is_emulated);
}

static void a_store_before_counts_only_if_memory_is_read(void **state)
{
	struct fixture *fixture = *state;
	struct place_input input = input_for(fixture, VA(fixture, place_store));

	assert_int_equal(entry_of(&input).va, VA(fixture, place_store_site));
	input.reads_memory = true;
	assert_int_equal(entry_of(&input).va, input.va);
}

static void the_frame_made_before_the_place_is_told(void **state)
{
	struct fixture *fixture = *state;
	struct place_input input = input_for(fixture, VA(fixture, place_call));
	struct place_site site = entry_of(&input);

	assert_int_equal(site.va, VA(fixture, place_call_site));
	assert_int_equal(site.pushed, 24);
	assert_false(site.by_frame);
}

static size_t returns_of(const struct place_input *input, struct place_site *sites)
{
	size_t count = 0;
	struct err *err = place_returns(input, sites, &count);

	if (err)
		fail_msg("%s", err->text);
	return count;
}

static void every_ret_is_found(void **state)
{
	struct fixture *fixture = *state;
	struct place_input input = input_for(fixture, VA(fixture, place_two));
	struct place_site sites[PLACE_MAX_SITES];

	assert_int_equal(returns_of(&input, sites), 2);
	assert_int_equal(sites[0].va, VA(fixture, place_two_a));
	assert_int_equal(sites[1].va, VA(fixture, place_two_b));
	assert_false(sites[0].is_emulated);
	assert_int_equal(sites[0].pushed, 0);
}

static bool has_site(const struct place_site *sites, size_t count, uint64_t va)
{
	for (size_t i = 0; i < count; i++)
		if (sites[i].va == va)
			return true;
	return false;
}

static void tail_call_check_and_moved_part_are_all_ways_out(void **state)
{
	struct fixture *fixture = *state;
	struct place_input input = input_for(fixture, VA(fixture, place_many));
	struct place_site sites[PLACE_MAX_SITES];
	size_t count = returns_of(&input, sites);

	assert_int_equal(count, 3);
	assert_true(has_site(sites, count, VA(fixture, place_many_check)));
	assert_true(has_site(sites, count, VA(fixture, place_many_tail)));
	assert_true(has_site(sites, count, VA(fixture, place_many_cold_ret)));
	for (size_t i = 0; i < count; i++)
		if (sites[i].va == VA(fixture, place_many_check)) {
			assert_true(sites[i].is_emulated);
			/* The return address is 8 above the saved rbp. */
			assert_true(sites[i].by_frame);
			assert_int_equal(sites[i].pushed, 8);
		}
}

static void a_check_before_the_result_is_made_is_no_place_to_read_it(void **state)
{
	struct fixture *fixture = *state;
	struct place_input input = input_for(fixture, VA(fixture, place_result));
	struct place_site sites[PLACE_MAX_SITES];

	assert_int_equal(returns_of(&input, sites), 1);
	assert_int_equal(sites[0].va, VA(fixture, place_result_check));
	assert_int_equal(sites[0].pushed, 8);
	input.needs_result = true;
	assert_int_equal(returns_of(&input, sites), 1);
	assert_int_equal(sites[0].va, VA(fixture, place_result_ret));
}

static void a_check_that_some_path_goes_around_is_no_place(void **state)
{
	struct fixture *fixture = *state;
	struct place_input input = input_for(fixture, VA(fixture, place_joined));
	struct place_site sites[PLACE_MAX_SITES];

	assert_int_equal(returns_of(&input, sites), 1);
	assert_int_equal(sites[0].va, VA(fixture, place_joined_ret));
}

static void a_function_that_never_returns_has_no_places(void **state)
{
	struct fixture *fixture = *state;
	struct place_site sites[PLACE_MAX_SITES];
	size_t count = 99;
	struct place_input input = input_for(fixture, VA(fixture, place_never));
	struct err *err = place_returns(&input, sites, &count);

	/* Or it cannot be told: a jump to its own entry may be a tail call. */
	if (err)
		assert_int_equal(err->code, ERR_UNSUPPORTED);
	else
		assert_int_equal(count, 0);
	err_free(err);
}

static void a_conditional_tail_call_is_said_to_be_undecidable(void **state)
{
	struct fixture *fixture = *state;
	struct place_site sites[PLACE_MAX_SITES];
	size_t count;
	struct place_input input = input_for(fixture, VA(fixture, place_conditional));
	struct err *err = place_returns(&input, sites, &count);

	assert_non_null(err);
	assert_int_equal(err->code, ERR_UNSUPPORTED);
	err_free(err);
}

/* arch/x86/kernel/uprobes.c: what branch_setup_xol_ops and push_setup_xol_ops take. */
static void what_is_emulated_is_what_the_kernel_emulates(void **state)
{
	static const struct {
		uint8_t code[4];
		bool emulated;
	} cases[] = {
		{ { 0x55 }, true },		 /* push %rbp */
		{ { 0x41, 0x57 }, true },	 /* push %r15 */
		{ { 0x6a, 0x01 }, false },	 /* push $1 */
		{ { 0x90 }, true },		 /* nop */
		{ { 0x0f, 0x1f, 0x00 }, false }, /* long nop: newest kernels only */
		{ { 0xe8 }, true },		 /* call */
		{ { 0xe9 }, true },		 /* jmp */
		{ { 0xeb }, true },
		{ { 0x74 }, true }, /* je */
		{ { 0x0f, 0x85 }, true },
		{ { 0xff, 0x25 }, false }, /* jmp *mem */
		{ { 0xc3 }, false },	   /* ret */
		{ { 0xf3, 0x0f, 0x1e, 0xfa }, false },
		{ { 0x66, 0x90 }, false },
		{ { 0x5d }, false }, /* pop */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		bool emulated;

		place_kind(cases[i].code, 4, &emulated);
		if (emulated != cases[i].emulated)
			fail_msg("case %zu", i);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_push_at_the_entry_is_the_place),
		cmocka_unit_test(endbr64_is_stepped_over_to_the_push),
		cmocka_unit_test(a_conditional_jump_does_where_no_push_comes_first),
		cmocka_unit_test(
			an_argument_overwritten_before_leaves_the_entry_single_stepped),
		cmocka_unit_test(the_head_of_a_loop_is_no_place),
		cmocka_unit_test(a_store_before_counts_only_if_memory_is_read),
		cmocka_unit_test(the_frame_made_before_the_place_is_told),
		cmocka_unit_test(every_ret_is_found),
		cmocka_unit_test(tail_call_check_and_moved_part_are_all_ways_out),
		cmocka_unit_test(
			a_check_before_the_result_is_made_is_no_place_to_read_it),
		cmocka_unit_test(a_check_that_some_path_goes_around_is_no_place),
		cmocka_unit_test(a_function_that_never_returns_has_no_places),
		cmocka_unit_test(a_conditional_tail_call_is_said_to_be_undecidable),
		cmocka_unit_test(what_is_emulated_is_what_the_kernel_emulates),
	};

	return cmocka_run_group_tests(tests, setup, teardown);
}
