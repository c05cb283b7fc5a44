// SPDX-License-Identifier: Apache-2.0
/* Notes made by the assembler, as sys/sdt.h makes them; a label says where the nop is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "bin/usdt.h"

asm(".section .stapsdt.base,\"aG\",\"progbits\",.stapsdt.base,comdat\n"
    ".weak _.stapsdt.base\n_.stapsdt.base: .space 1\n.size _.stapsdt.base, 1\n"
    ".data\n.globl usdt_semaphore\nusdt_semaphore: .short 0\n"
    ".text\n.globl usdt_nop\nusdt_nop: nop\nret\n"
    ".section .note.stapsdt,\"\",\"note\"\n.balign 4\n"
    ".4byte 992f-991f, 994f-993f, 3\n991: .asciz \"stapsdt\"\n992: .balign 4\n"
    "993: .8byte usdt_nop, _.stapsdt.base, usdt_semaphore\n"
    ".asciz \"assay\"\n.asciz \"point\"\n.asciz \"-4@%edi 8@-16(%rbp)\"\n"
    "994: .balign 4\n.text\n");

extern char usdt_nop[], usdt_semaphore[];

static int take_base(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uint64_t *)base = info->dlpi_addr;
	return 1;
}

static bool take_note(void *ctx, const struct usdt_note *note)
{
	struct usdt_note *found = ctx;

	if (strcmp(note->name, "point"))
		return true;
	*found = *note;
	return false;
}

static void a_note_leads_to_its_nop_and_semaphore(void **state)
{
	struct usdt_note found = { 0 };
	struct elf_file *file;
	uint64_t base = 0;
	int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	(void)state;
	dl_iterate_phdr(take_base, &base);
	assert_null(elf_open(fd, &file));
	assert_null(usdt_each(file, take_note, &found));
	assert_string_equal(found.provider, "assay");
	assert_int_equal(found.va, (uintptr_t)usdt_nop - base);
	assert_int_equal(found.semaphore_va, (uintptr_t)usdt_semaphore - base);
	assert_string_equal(found.args, "-4@%edi 8@-16(%rbp)");
	elf_close(file);
	close(fd);
}

static void arguments_are_read_as_gcc_writes_them(void **state)
{
	static const struct {
		const char *text;
		struct usdt_arg arg;
	} cases[] = {
		{ "8@%rbx", { USDT_REGISTER, 8, false, 3, 0 } },
		{ "-4@%eax", { USDT_REGISTER, 4, true, 0, 0 } },
		{ "4@%r13d", { USDT_REGISTER, 4, false, 13, 0 } },
		{ "1@%sil", { USDT_REGISTER, 1, false, 4, 0 } },
		{ "8@-144(%rbp)", { USDT_MEMORY, 8, false, 6, -144 } },
		{ "-4@(%r12)", { USDT_MEMORY, 4, true, 12, 0 } },
		{ "8@$-5", { USDT_CONSTANT, 8, false, 0, -5 } },
		{ "8@(%rax,%rdx,8)", { USDT_UNKNOWN, 8, false, 0, 0 } },
		{ "8@counter(%rip)", { USDT_UNKNOWN, 8, false, 0, 0 } },
		{ "3@%rax", { USDT_UNKNOWN, 8, false, 0, 0 } },
		{ "8f@%xmm0", { USDT_UNKNOWN, 8, false, 0, 0 } },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct usdt_arg args[USDT_MAX_ARGS];

		assert_int_equal(usdt_args(cases[i].text, args), 1);
		if (args[0].where != cases[i].arg.where)
			fail_msg("%s", cases[i].text);
		if (args[0].where == USDT_UNKNOWN)
			continue;
		assert_int_equal(args[0].bytes, cases[i].arg.bytes);
		assert_int_equal(args[0].is_signed, cases[i].arg.is_signed);
		assert_int_equal(args[0].reg, cases[i].arg.reg);
		assert_int_equal(args[0].offset, cases[i].arg.offset);
	}
}

static void more_arguments_than_there_is_room_for_are_left_out(void **state)
{
	struct usdt_arg args[USDT_MAX_ARGS];

	(void)state;
	assert_int_equal(usdt_args("", args), 0);
	assert_int_equal(usdt_args("1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al 1@%al "
				   "1@%al 1@%al 1@%al 1@%al 1@%al 1@%al",
				   args),
			 USDT_MAX_ARGS);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_note_leads_to_its_nop_and_semaphore),
		cmocka_unit_test(arguments_are_read_as_gcc_writes_them),
		cmocka_unit_test(more_arguments_than_there_is_room_for_are_left_out),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
