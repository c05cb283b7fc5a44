// SPDX-License-Identifier: Apache-2.0
/* Truth: this file's own line numbers, and names that were mangled by hand. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>

#include "bin/symbol.h"
#include "core/file.h"

int in_cxx(int x) __asm__("_ZN3foo3barEi");
int in_rust(int x) __asm__("_ZN4core3fmt5Write9write_fmt17h0123456789abcdefE");
int in_new_rust(int x) __asm__("_RNvC7mycrate3run");

enum { CXX_LINE = __LINE__ + 1 };
int __attribute__((noinline)) in_cxx(int x)
{
	return x + 1;
}

int __attribute__((noinline)) in_rust(int x)
{
	return x * 3;
}

int __attribute__((noinline)) in_new_rust(int x)
{
	return x * 5;
}

static volatile int sink;

static inline __attribute__((always_inline)) int inlined(int x)
{
	sink = x * 7;
	return sink;
}
enum { INLINED_LINE = __LINE__ - 3 };

int host_of_inlined(int x);
int __attribute__((noinline)) host_of_inlined(int x)
{
	return inlined(x);
}

struct self {
	int fd;
	struct elf_file *file;
	struct symbols *symbols;
};

static void self_open(struct self *self)
{
	self->fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	assert_null(elf_open(self->fd, &self->file));
	assert_null(symbols_new(self->file, NULL, &self->symbols));
}

static void self_close(struct self *self)
{
	symbols_free(self->symbols);
	elf_close(self->file);
	close(self->fd);
}

static uint64_t va_of(const void *address)
{
	Dl_info info;

	assert_true(dladdr(address, &info));
	return (uint64_t)address - (uint64_t)info.dli_fbase;
}

static void names_are_demangled(void **state)
{
	struct self self;

	(void)state;
	self_open(&self);
	assert_string_equal(symbols_at(self.symbols, va_of((void *)in_cxx)).function,
			    "foo::bar(int)");
	assert_string_equal(symbols_at(self.symbols, va_of((void *)in_rust)).function,
			    "core::fmt::Write::write_fmt");
	assert_string_equal(symbols_at(self.symbols, va_of((void *)in_new_rust)).function,
			    "mycrate::run");
	self_close(&self);
}

static void a_function_begins_on_the_line_of_its_name(void **state)
{
	struct self self;

	(void)state;
	self_open(&self);
	struct symbol symbol = symbols_at(self.symbols, va_of((void *)in_cxx));

	/* Compilers differ: the line of the name or of the brace below it. */
	assert_in_range(symbol.function_line, CXX_LINE, CXX_LINE + 1);
	assert_non_null(strstr(symbol.function_file, "test_symbol.c"));
	assert_int_equal(symbol.function_va, va_of((void *)in_cxx));
	assert_true(symbol.function_bytes > 0);
	self_close(&self);
}

static void an_inlined_line_is_its_own(void **state)
{
	struct self self;
	bool is_seen = false;

	(void)state;
	self_open(&self);
	uint64_t va = va_of((void *)host_of_inlined);
	struct symbol host = symbols_at(self.symbols, va);

	for (uint64_t i = 0; i < host.function_bytes; i++)
		is_seen |= symbols_at(self.symbols, va + i).line == INLINED_LINE;
	assert_true(is_seen);
	self_close(&self);
}

static void a_relative_name_is_joined_with_the_folder_of_the_build(void **state)
{
	struct self self;

	(void)state;
	self_open(&self);
	struct symbol symbol = symbols_at(self.symbols, va_of((void *)in_cxx));

	assert_int_equal(symbol.file[0], '/');
	assert_int_equal(access(symbol.file, R_OK), 0);
	assert_int_equal(symbol.function_file[0], '/');
	assert_int_equal(access(symbol.function_file, R_OK), 0);
	self_close(&self);
}

static void an_address_outside_has_no_name(void **state)
{
	struct self self;

	(void)state;
	self_open(&self);
	for (uint64_t va = 0; va < 64; va++) {
		struct symbol symbol = symbols_at(self.symbols, va);

		assert_string_equal(symbol.function, "");
		assert_string_equal(symbol.file, "");
		assert_int_equal(symbol.line, 0);
	}
	self_close(&self);
}

static struct err *kernel(const char *text, uint64_t slide, struct symbols **ret_symbols)
{
	CLEANUP(close) int fd = memfd_create("kallsyms", MFD_CLOEXEC);

	assert_null(file_write_all(fd, text, strlen(text)));
	return symbols_kernel(fd, slide, ret_symbols);
}

static void kernel_symbols_move_by_the_slide(void **state)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;

	(void)state;
	assert_null(kernel("ffffffff82000010 T beta\n"
			   "ffffffff82000000 T alpha\n"
			   "ffffffff82000000 t alias\n"
			   "ffffffff82000018 D data\n"
			   "ffffffff82000020 T gamma\n"
			   "ffffffffc0000000 t mod_fn\t[mod]\n"
			   "ffffffffc0000100 t mod_end [mod]\n",
			   0x1000000, &symbols));
	struct symbol symbol = symbols_at(symbols, 0xffffffff8100000f);

	assert_string_equal(symbol.function, "alpha");
	assert_int_equal(symbol.function_va, 0xffffffff81000000);
	assert_int_equal(symbol.function_bytes, 16);
	assert_string_equal(symbols_at(symbols, 0xffffffff8100001f).function, "beta");
	assert_string_equal(symbols_at(symbols, 0xffffffffbf000000).function, "mod_fn");
	assert_string_equal(symbols_at(symbols, 0xffffffff80ffffff).function, "");
	/* How far the last one reaches nobody says. */
	assert_string_equal(symbols_at(symbols, 0xffffffffbf000100).function, "");
}

static void a_kernel_that_hides_its_addresses_is_named(void **state)
{
	struct symbols *symbols = NULL;
	struct err *err = kernel("0000000000000000 T alpha\n0000000000000000 T beta\n", 0,
				 &symbols);

	(void)state;
	assert_non_null(err);
	assert_int_equal(err->code, ERR_PERMISSION);
	err_free(err);
	assert_null(symbols);
}

static void odd_kallsyms_lines_are_passed_over(void **state)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;

	(void)state;
	assert_null(
		kernel("\n \nzzz T x\nffffffff81000000\nffffffff81000000 T\n"
		       "ffffffff81000000 T \nffffffff81000000 T ok\nffffffff81000010 T z",
		       0, &symbols));
	assert_string_equal(symbols_at(symbols, 0xffffffff81000001).function, "ok");
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_demangled),
		cmocka_unit_test(a_function_begins_on_the_line_of_its_name),
		cmocka_unit_test(an_inlined_line_is_its_own),
		cmocka_unit_test(a_relative_name_is_joined_with_the_folder_of_the_build),
		cmocka_unit_test(an_address_outside_has_no_name),
		cmocka_unit_test(kernel_symbols_move_by_the_slide),
		cmocka_unit_test(a_kernel_that_hides_its_addresses_is_named),
		cmocka_unit_test(odd_kallsyms_lines_are_passed_over),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
