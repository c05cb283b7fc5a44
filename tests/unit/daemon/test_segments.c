// SPDX-License-Identifier: Apache-2.0
/* Where the broker lets a probe be, in files made up for it. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "daemon/segments.h"

/* Code at 0x1000 to 0x1800, data at 0x2000 to 0x2100. */
struct file {
	Elf64_Ehdr head;
	Elf64_Phdr segments[3];
};

static struct file made(void)
{
	struct file file = {
		.head = { .e_phoff = sizeof(Elf64_Ehdr),
			  .e_phentsize = sizeof(Elf64_Phdr),
			  .e_phnum = 3 },
		.segments = { { .p_type = PT_LOAD,
				.p_flags = PF_R | PF_X,
				.p_offset = 0x1000,
				.p_filesz = 0x800 },
			      { .p_type = PT_LOAD,
				.p_flags = PF_R | PF_W,
				.p_offset = 0x2000,
				.p_filesz = 0x100 },
			      { .p_type = PT_NOTE,
				.p_flags = PF_X | PF_W,
				.p_offset = 0,
				.p_filesz = 0x10000 } },
	};

	memcpy(file.head.e_ident, ELFMAG, SELFMAG);
	file.head.e_ident[EI_CLASS] = ELFCLASS64;
	file.head.e_ident[EI_DATA] = ELFDATA2LSB;
	return file;
}

static bool passes(const struct file *file, size_t bytes, uint64_t offset,
		   uint64_t semaphore)
{
	CLEANUP(close) int fd = memfd_create("elf", MFD_CLOEXEC);
	struct attach_point point = { .offset = offset, .semaphore_off = semaphore };

	assert_int_equal(write(fd, file, bytes), bytes);
	struct err *err = segments_check(fd, &point, 1);
	bool is_fine = !err;

	err_free(err);
	return is_fine;
}

static void probes_are_for_code_and_semaphores_for_data(void **state)
{
	struct file file = made();
	size_t all = sizeof(file);

	(void)state;
	assert_true(passes(&file, all, 0x1000, 0));
	assert_true(passes(&file, all, 0x17ff, 0x20fe));
	assert_false(passes(&file, all, 0xfff, 0));
	assert_false(passes(&file, all, 0x1800, 0));
	assert_false(passes(&file, all, 0x2000, 0));
	assert_false(passes(&file, all, UINT64_MAX, 0));
	assert_false(passes(&file, all, 0x1000, 0x20ff));
	assert_false(passes(&file, all, 0x1000, 0x1000));
}

static void a_header_that_lies_is_refused(void **state)
{
	struct file file = made();

	(void)state;
	assert_false(passes(&file, sizeof(file.head) - 1, 0x1000, 0));
	assert_false(passes(&file, sizeof(file) - 1, 0x1000, 0));
	file.head.e_phnum = SEGMENTS_MAX + 1;
	assert_false(passes(&file, sizeof(file), 0x1000, 0));
	file = made();
	file.head.e_phoff = UINT64_MAX - 8;
	assert_false(passes(&file, sizeof(file), 0x1000, 0));
	file = made();
	file.segments[0].p_filesz = UINT64_MAX;
	assert_true(passes(&file, sizeof(file), 0x1000, 0));
	file.head.e_ident[EI_CLASS] = ELFCLASS32;
	assert_false(passes(&file, sizeof(file), 0x1000, 0));
}

static void what_is_no_file_is_refused(void **state)
{
	int ends[2];
	struct attach_point point = { .offset = 0x1000 };

	(void)state;
	assert_int_equal(pipe(ends), 0);
	struct err *err = segments_check(ends[0], &point, 1);

	assert_non_null(err);
	err_free(err);
	err = segments_check(-1, &point, 1);
	assert_non_null(err);
	err_free(err);
	close(ends[0]);
	close(ends[1]);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(probes_are_for_code_and_semaphores_for_data),
		cmocka_unit_test(a_header_that_lies_is_refused),
		cmocka_unit_test(what_is_no_file_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
