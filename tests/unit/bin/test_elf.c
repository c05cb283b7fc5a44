// SPDX-License-Identifier: Apache-2.0
/* Truth: what the loader mapped (dl_iterate_phdr, dlsym), and files made by binutils. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <gnu/libc-version.h>
#include <link.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>

#include "bin/elf.h"
#include "core/file.h"
#include "core/mem.h"

#define SELF "/proc/self/exe"

static struct elf_file *open_fd(int fd)
{
	struct elf_file *file = NULL;
	struct err *err = elf_open(fd, &file);

	if (err)
		fail_msg("%s", err->text);
	return file;
}

/* A private copy of this program, to be damaged. */
static int copy_self(const char *path)
{
	char *text;
	size_t bytes;
	int fd = memfd_create("copy", MFD_CLOEXEC);

	assert_null(file_read(path, 64 << 20, &text, &bytes));
	assert_null(file_write_all(fd, text, bytes));
	free(text);
	return fd;
}

/* This program as objcopy rewrites it. Return -1 when there is no objcopy. */
static int rewritten(const char *option)
{
	char from[4096], to[] = "/tmp/assay-test-XXXXXX", line[8192];
	ssize_t length = readlink(SELF, from, sizeof(from) - 1);
	int fd = mkstemp(to);

	assert_true(length > 0 && fd >= 0);
	from[length] = 0;
	close(fd);
	snprintf(line, sizeof(line), "objcopy %s '%s' %s 2>/dev/null", option, from, to);
	fd = system(line) == 0 ? open(to, O_RDONLY | O_CLOEXEC) : -1;
	unlink(to);
	return fd;
}

int exported_for_the_test(void);
int exported_for_the_test(void)
{
	return 42;
}

static void segments_are_those_that_the_loader_mapped(void **state)
{
	CLEANUP(close) int fd = open(SELF, O_RDONLY);
	CLEANUP(elf_close) struct elf_file *file = open_fd(fd);
	size_t count, own_count = 0;
	const struct elf_segment *segments = elf_segments(file, &count);
	Dl_info info;

	(void)state;
	assert_true(dladdr((void *)exported_for_the_test, &info));
	const ElfW(Ehdr) *header = info.dli_fbase;
	const ElfW(Phdr) *own = (const void *)((const char *)header + header->e_phoff);

	assert_int_equal(count, header->e_phnum);
	for (size_t i = 0; i < count; i++) {
		assert_int_equal(segments[i].va, own[i].p_vaddr);
		assert_int_equal(segments[i].file_bytes, own[i].p_filesz);
		assert_int_equal(segments[i].can_exec, (own[i].p_flags & PF_X) != 0);
		own_count += own[i].p_type == PT_LOAD && (own[i].p_flags & PF_X);
	}
	assert_int_equal(own_count, 1);
	assert_int_equal(elf_machine(file), ELF_X86_64);
	assert_true(elf_is_executable(file));
	assert_int_equal(elf_entry(file), header->e_entry);
}

static void code_bytes_are_those_in_memory(void **state)
{
	CLEANUP(close) int fd = open(SELF, O_RDONLY);
	CLEANUP(elf_close) struct elf_file *file = open_fd(fd);
	Dl_info info;
	size_t room;

	(void)state;
	assert_true(dladdr((void *)exported_for_the_test, &info));
	uint64_t va = (uint64_t)exported_for_the_test - (uint64_t)info.dli_fbase;

	assert_true(elf_is_code(file, va));
	assert_string_equal(elf_section_at(file, va)->name, ".text");
	const uint8_t *code = elf_bytes_at(file, va, &room);

	assert_true(room >= 6);
	assert_memory_equal(code, (void *)exported_for_the_test, 6);
}

static void a_function_is_found_at_each_of_its_bytes(void **state)
{
	CLEANUP(close) int fd = open(SELF, O_RDONLY);
	CLEANUP(elf_close) struct elf_file *file = open_fd(fd);
	CLEANUP(elf_functions_free) struct elf_functions *functions = NULL;
	Dl_info info;

	(void)state;
	assert_null(elf_functions_new(file, NULL, &functions));
	assert_true(dladdr((void *)exported_for_the_test, &info));
	uint64_t va = (uint64_t)exported_for_the_test - (uint64_t)info.dli_fbase;
	const struct elf_function *function = elf_function_at(functions, va);

	assert_non_null(function);
	assert_string_equal(function->name, "exported_for_the_test");
	assert_int_equal(function->va, va);
	assert_true(function->is_sized);
	assert_ptr_equal(elf_function_at(functions, va + function->bytes - 1), function);
	assert_ptr_not_equal(elf_function_at(functions, va + function->bytes), function);
	assert_null(elf_function_at(functions, 1));
	assert_null(elf_function_at(functions, UINT64_MAX));
}

static void functions_are_sorted_and_every_plt_entry_is_named(void **state)
{
	CLEANUP(close) int fd = open("/usr/bin/redis-server", O_RDONLY);
	size_t count, plt = 0, room;

	(void)state;
	if (fd < 0) {
		print_message("skipped: needs /usr/bin/redis-server\n");
		skip();
	}
	CLEANUP(elf_close) struct elf_file *file = open_fd(fd);
	CLEANUP(elf_functions_free) struct elf_functions *functions = NULL;

	assert_null(elf_functions_new(file, NULL, &functions));
	const struct elf_function *all = elf_functions_all(functions, &count);

	for (size_t i = 0; i < count; i++) {
		assert_true(i == 0 || all[i - 1].va < all[i].va);
		assert_true(all[i].bytes > 0);
		plt += all[i].is_plt;
	}
	/* One entry per jump slot, and one at the head that is no function's; .plt.got has
	 * its own. */
	const struct elf_section *slots = elf_section(file, ".rela.plt");
	const struct elf_section *more = elf_section(file, ".plt.got");

	assert_int_equal(plt, slots->bytes / 24 + (more ? more->bytes / 8 : 0));
	/* A call through it must lead to the import of that name. */
	const struct elf_section *section = elf_section(file, ".plt");

	assert_non_null(elf_bytes_at(file, section->va, &room));
	assert_null(elf_function_at(functions, section->va));
	assert_true(strstr(elf_function_at(functions, section->va + 16)->name, "@plt") !=
		    NULL);
}

static void the_build_id_needs_no_section_headers(void **state)
{
	CLEANUP(close) int fd = copy_self(SELF);
	CLEANUP(elf_close) struct elf_file *whole = open_fd(fd);
	ElfW(Ehdr) header;

	(void)state;
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	header.e_shoff = 0;
	header.e_shnum = header.e_shstrndx = 0;
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));

	CLEANUP(elf_close) struct elf_file *bare = open_fd(fd);
	size_t count;

	elf_sections(bare, &count);
	assert_int_equal(count, 0);
	assert_non_null(elf_build_id(bare));
	assert_int_equal(elf_build_id(bare)->size, elf_build_id(whole)->size);
	assert_memory_equal(elf_build_id(bare)->bytes, elf_build_id(whole)->bytes,
			    elf_build_id(bare)->size);
}

static void a_library_tells_its_soname_and_is_no_program(void **state)
{
	Dl_info info;

	(void)state;
	assert_true(dladdr((void *)gnu_get_libc_version, &info));
	CLEANUP(close) int fd = open(info.dli_fname, O_RDONLY);
	CLEANUP(elf_close) struct elf_file *file = open_fd(fd);

	assert_string_equal(elf_soname(file), "libc.so.6");
	assert_false(elf_is_executable(file));
	assert_true(elf_has_cfi(file));
}

static void a_compressed_section_is_read_as_it_was(void **state)
{
	CLEANUP(close) int plain_fd = open(SELF, O_RDONLY);
	CLEANUP(close) int fd = rewritten("--compress-debug-sections=zlib");
	const uint8_t *plain, *packed;
	size_t plain_bytes, packed_bytes;

	(void)state;
	if (fd < 0) {
		print_message("skipped: needs objcopy\n");
		skip();
	}
	CLEANUP(elf_close) struct elf_file *before = open_fd(plain_fd);
	CLEANUP(elf_close) struct elf_file *after = open_fd(fd);
	const struct elf_section *section = elf_section(after, ".debug_info");

	assert_true(section->flags & SHF_COMPRESSED);
	assert_null(elf_check_debug(after));
	assert_null(elf_data(before, elf_section(before, ".debug_info"), &plain,
			     &plain_bytes));
	for (int round = 0; round < 2; round++) {
		assert_null(elf_data(after, section, &packed, &packed_bytes));
		assert_int_equal(packed_bytes, plain_bytes);
		assert_memory_equal(packed, plain, plain_bytes);
	}
}

static void a_stripped_file_has_what_strip_leaves(void **state)
{
	CLEANUP(close) int fd = rewritten("--strip-all");
	CLEANUP(close) int debug_fd = rewritten("--only-keep-debug");
	CLEANUP(elf_functions_free) struct elf_functions *without = NULL, *with = NULL;
	Dl_info info;

	(void)state;
	if (fd < 0 || debug_fd < 0) {
		print_message("skipped: needs objcopy\n");
		skip();
	}
	CLEANUP(elf_close) struct elf_file *file = open_fd(fd);
	CLEANUP(elf_close) struct elf_file *debug = open_fd(debug_fd);

	assert_false(elf_has_dwarf(file) || elf_has_symtab(file));
	assert_true(elf_has_dwarf(debug) && elf_has_symtab(debug));
	assert_false(elf_has_cfi(debug));
	assert_memory_equal(elf_build_id(debug), elf_build_id(file),
			    sizeof(struct build_id));
	assert_true(dladdr((void *)exported_for_the_test, &info));
	uint64_t va = (uint64_t)exported_for_the_test - (uint64_t)info.dli_fbase;

	assert_null(elf_functions_new(file, NULL, &without));
	assert_null(elf_functions_new(file, debug, &with));
	assert_null(elf_function_at(without, va));
	assert_string_equal(elf_function_at(with, va)->name, "exported_for_the_test");
}

static void a_compression_that_libdw_lacks_is_named(void **state)
{
	CLEANUP(close) int fd = copy_self(SELF);
	ElfW(Ehdr) header;
	ElfW(Shdr) section;
	bool has_debug = false;

	(void)state;
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	/* Mark .debug_info as compressed with method 2 by writing such a header over it. */
	CLEANUP(elf_close) struct elf_file *whole = open_fd(fd);
	const struct elf_section *info = elf_section(whole, ".debug_info");

	if (info) {
		off_t at = (off_t)(header.e_shoff + info->index * sizeof(section));
		const ElfW(Chdr)
			chdr = { .ch_type = 2, .ch_size = 1000, .ch_addralign = 1 };

		has_debug = true;
		assert_int_equal(pread(fd, &section, sizeof(section), at),
				 sizeof(section));
		section.sh_flags |= SHF_COMPRESSED;
		assert_int_equal(pwrite(fd, &section, sizeof(section), at),
				 sizeof(section));
		assert_int_equal(
			pwrite(fd, &chdr, sizeof(chdr), (off_t)section.sh_offset),
			sizeof(chdr));
	}
	assert_true(has_debug);
	CLEANUP(elf_close) struct elf_file *file = open_fd(fd);
	struct err *err = elf_check_debug(file);

	assert_non_null(err);
	assert_int_equal(err->code, ERR_UNSUPPORTED);
	assert_non_null(strstr(err->text, "zstd"));
	err_free(err);
	const uint8_t *data;
	size_t bytes;

	err = elf_data(file, elf_section(file, ".debug_info"), &data, &bytes);
	assert_non_null(err);
	assert_int_equal(err->code, ERR_UNSUPPORTED);
	err_free(err);
	assert_null(elf_check_debug(whole));
}

static void what_is_no_elf_file_is_refused(void **state)
{
	static const struct {
		const char *bytes;
		size_t size;
	} cases[] = {
		{ "", 0 },	    { "#!/bin/sh\n", 10 },
		{ "\177ELF", 4 },   { "\177ELF\2\1\1\0\0\0\0\0\0\0\0\0\2\0\76\0", 20 },
		{ "!<arch>\n", 8 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLEANUP(close) int fd = memfd_create("no-elf", MFD_CLOEXEC);
		struct elf_file *file = NULL;

		assert_null(file_write_all(fd, cases[i].bytes, cases[i].size));
		struct err *err = elf_open(fd, &file);

		assert_non_null(err);
		assert_null(file);
		err_free(err);
	}
	CLEANUP(close) int folder = open("/", O_RDONLY | O_DIRECTORY);
	struct elf_file *file = NULL;
	struct err *err = elf_open(folder, &file);

	assert_non_null(err);
	err_free(err);
}

static void another_machine_opens_and_says_so(void **state)
{
	CLEANUP(close) int fd = copy_self(SELF);
	ElfW(Ehdr) header;

	(void)state;
	assert_int_equal(pread(fd, &header, sizeof(header), 0), sizeof(header));
	header.e_machine = EM_AARCH64;
	assert_int_equal(pwrite(fd, &header, sizeof(header), 0), sizeof(header));
	CLEANUP(elf_close) struct elf_file *file = open_fd(fd);

	assert_int_equal(elf_machine(file), ELF_AARCH64);
	assert_non_null(elf_build_id(file));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(segments_are_those_that_the_loader_mapped),
		cmocka_unit_test(code_bytes_are_those_in_memory),
		cmocka_unit_test(a_function_is_found_at_each_of_its_bytes),
		cmocka_unit_test(functions_are_sorted_and_every_plt_entry_is_named),
		cmocka_unit_test(the_build_id_needs_no_section_headers),
		cmocka_unit_test(a_library_tells_its_soname_and_is_no_program),
		cmocka_unit_test(a_compressed_section_is_read_as_it_was),
		cmocka_unit_test(a_stripped_file_has_what_strip_leaves),
		cmocka_unit_test(a_compression_that_libdw_lacks_is_named),
		cmocka_unit_test(what_is_no_elf_file_is_refused),
		cmocka_unit_test(another_machine_opens_and_says_so),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
