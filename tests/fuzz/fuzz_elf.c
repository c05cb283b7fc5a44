// SPDX-License-Identifier: Apache-2.0
/* Any bytes as an ELF file: everything that bin/elf, frame, symbol and discovery read. */
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bin/elf.h"
#include "bin/frame.h"
#include "bin/symbol.h"
#include "core/file.h"
#include "discover/discover.h"

#define MAX_BYTES (1 << 20)

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Both ends of every piece of data are read, for the sanitizers to see. */
static volatile uint8_t touched;

/* Libraries of elfutils 0.188 lose some blocks on damaged files; the worker is bounded in
 * memory and replaced, so only our own leaks count. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libelf.so\nleak:libdw.so\n";
}

static void read_sections(const struct elf_file *file)
{
	size_t count, data_bytes;
	const struct elf_section *sections = elf_sections(file, &count);
	const uint8_t *data;

	for (size_t i = 0; i < count && i < 256; i++) {
		struct err *err = elf_data(file, &sections[i], &data, &data_bytes);

		if (!err && data_bytes)
			touched ^= data[0] ^ data[data_bytes - 1];
		err_free(err);
	}
}

static void read_segments(const struct elf_file *file)
{
	size_t count, room;
	const struct elf_segment *segments = elf_segments(file, &count);

	for (size_t i = 0; i < count; i++) {
		const uint8_t *data = elf_bytes_at(file, segments[i].va, &room);

		if (data)
			touched ^= data[0] ^ data[room - 1];
	}
}

static void unwind(const struct elf_file *file, struct frame_table *table, uint64_t va)
{
	const struct frame_range range = { 0x1000, UINT64_MAX, 0, 1, table };
	struct frame_at frames[FRAME_MAX_DEPTH];
	struct frame_stack stack = { 0 };
	uint64_t words[64];
	unsigned reg;
	int64_t off;
	bool complete;

	for (size_t i = 0; i < 64; i++)
		words[i] = i % 3 ? va + i : 0x7fff0000 + i * 8;
	stack.regs[FRAME_RSP] = stack.regs[FRAME_RBP] = 0x7fff0000;
	stack.regs[FRAME_RIP] = va;
	stack.bytes = words;
	stack.byte_count = sizeof(words);
	frame_unwind(&range, 1, &stack, frames, &complete);
	frame_cfa_at(table, va, &reg, &off);
	elf_section_at(file, va);
}

static void read_names(const struct elf_file *file, uint64_t entry)
{
	CLEANUP(symbols_free) struct symbols *symbols = NULL;
	CLEANUP(elf_functions_free) struct elf_functions *functions = NULL;
	size_t count;

	err_free(symbols_new(file, file, &symbols));
	err_free(elf_functions_new(file, NULL, &functions));
	if (symbols)
		symbols_at(symbols, entry);
	if (!functions || !symbols)
		return;
	const struct elf_function *all = elf_functions_all(functions, &count);

	for (size_t i = 0; i < count && i < 64; i++)
		symbols_at(symbols, all[i].va + all[i].bytes / 2);
}

static void take_candidate(void *ctx, const struct event_candidate *candidate)
{
	(void)ctx;
	touched ^= (uint8_t)strlen(candidate->resource);
}

static void look_for_resources(const struct elf_file *file, struct frame_table *table)
{
	static const struct discover_ops ops = { take_candidate, NULL };

	err_free(discover_run(&(struct discover_files){ file, NULL, table }, &ops, NULL));
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	CLEANUP(elf_close) struct elf_file *file = NULL;
	CLEANUP(frame_close) struct frame_table *table = NULL;
	CLEANUP(close) int fd = memfd_create("fuzz", MFD_CLOEXEC);

	if (size > MAX_BYTES)
		return 0;
	err_free(file_write_all(fd, bytes, size));
	struct err *err = elf_open(fd, &file);

	err_free(err);
	if (!file)
		return 0;
	elf_debuglink(file);
	elf_altlink(file);
	elf_soname(file);
	elf_is_executable(file);
	err_free(elf_check_debug(file));
	read_segments(file);
	if (!frame_open(file, file, &table)) {
		const struct elf_section *text = elf_section(file, ".text");

		for (uint64_t i = 0; text && i < 64; i++)
			unwind(file, table, text->va + i * 7);
		unwind(file, table, elf_entry(file));
	}
	read_names(file, elf_entry(file));
	look_for_resources(file, table);
	read_sections(file);
	return 0;
}
