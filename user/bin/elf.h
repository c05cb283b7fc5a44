/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_ELF_H
#define BIN_ELF_H

/*
 * bin/ - one file on disk, read-only: sections, symbols, unwind rules, DWARF, machine
 * code. It knows no pid, no clock and no sample; every va is in the file's own
 * numbering. All bytes are foreign: sizes are checked against the limits named here,
 * and files are read with pread(), never by mmap (their owner may truncate them).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/ids.h"

#define ELF_MAX_FILE_BYTES    (8ull << 30)
#define ELF_MAX_SECTIONS      65536
#define ELF_MAX_SEGMENTS      256
#define ELF_MAX_SECTION_BYTES (2ull << 30)  /* uncompressed */
#define ELF_MAX_SEGMENT_BYTES (1ull << 30)  /* file bytes of one PT_LOAD */
#define ELF_MAX_NOTE_BYTES    (1024 * 1024) /* of one PT_NOTE */
#define ELF_MAX_SYMBOLS	      (8 * 1024 * 1024)
#define ELF_MAX_PLT	      (1024 * 1024)
#define ELF_MAX_NAME	      4096 /* of a section, debuglink, altlink or soname */

struct elf_file;
struct Elf; /* libelf's; only bin/ looks inside */

enum elf_machine { ELF_OTHER_MACHINE, ELF_X86_64, ELF_AARCH64 };

struct elf_section {
	const char *name;
	size_t index; /* in the section header table */
	uint32_t type, link, info;
	uint64_t flags, va, off, bytes, entry_bytes; /* bytes as stored */
};

enum elf_segment_kind { ELF_LOAD = 1, ELF_NOTE, ELF_DYNAMIC, ELF_TLS, ELF_OTHER_SEGMENT };

struct elf_segment {
	enum elf_segment_kind kind;
	bool can_read, can_write, can_exec;
	uint64_t off, va, file_bytes, mem_bytes, align;
};

/* Names inside the file; "" for none. */
struct elf_link {
	const char *name;
	uint32_t crc;	    /* .gnu_debuglink */
	struct build_id id; /* .gnu_debugaltlink */
};

/**
 * elf_open() - read the headers of an ELF file, 64-bit little-endian.
 * @fd: borrowed until elf_close(); its file position is not used.
 * Errors: ERR_FORMAT (no ELF, 32-bit, big-endian, contradictory headers), ERR_LIMIT.
 */
struct err *elf_open(int fd, struct elf_file **ret_file);
void elf_close(struct elf_file *file); /* NULL is fine */
CLEANUP_DEFINE(elf_close, struct elf_file *)

/* Everything returned below is borrowed until elf_close(). */
struct Elf *elf_handle(const struct elf_file *file);
enum elf_machine elf_machine(const struct elf_file *file);
bool elf_is_relocatable(const struct elf_file *file); /* ET_REL: a kernel module */
bool elf_is_executable(const struct elf_file *file);  /* a program, PIE or not */
uint64_t elf_entry(const struct elf_file *file);

const struct elf_section *elf_sections(const struct elf_file *file, size_t *ret_count);
const struct elf_segment *elf_segments(const struct elf_file *file, size_t *ret_count);
/* elf_section() - the first of that name, NULL when there is none. */
const struct elf_section *elf_section(const struct elf_file *file, const char *name);
/* elf_section_at() - the allocated section that covers @va, NULL when none does. */
const struct elf_section *elf_section_at(const struct elf_file *file, uint64_t va);
/* elf_is_code() - @va lies in an executable PT_LOAD. */
bool elf_is_code(const struct elf_file *file, uint64_t va);

/**
 * elf_data() - bytes of a section, decompressed where libelf can.
 * Errors: ERR_NOT_FOUND for one without bytes (NOBITS), ERR_UNSUPPORTED for a
 * compression that libelf does not know, ERR_LIMIT, ERR_FORMAT.
 */
struct err *elf_data(const struct elf_file *file, const struct elf_section *section,
		     const uint8_t **ret_data, size_t *ret_bytes);

/**
 * elf_bytes_at() - what the loader puts at @va, relocations not applied.
 * Return: bytes from @va to the end of its PT_LOAD's file part, NULL when there are
 * none. Works without section headers. Not for separate debug files.
 */
const uint8_t *elf_bytes_at(const struct elf_file *file, uint64_t va, size_t *ret_room);

/* elf_build_id() - of PT_NOTE, else of a note section; NULL when the file has none. */
const struct build_id *elf_build_id(const struct elf_file *file);
struct elf_link elf_debuglink(const struct elf_file *file);
struct elf_link elf_altlink(const struct elf_file *file);
const char *elf_soname(const struct elf_file *file); /* "" none */

bool elf_has_dwarf(const struct elf_file *file);
bool elf_has_symtab(const struct elf_file *file);
bool elf_has_cfi(const struct elf_file *file);
/**
 * elf_check_debug() - may libdw be let loose on this file?
 * Errors: ERR_UNSUPPORTED when a .debug_* section has a compression that libdw cannot
 * read (the text says which), ERR_FORMAT for string tables that libdw would overrun.
 */
struct err *elf_check_debug(const struct elf_file *file);

struct elf_function {
	uint64_t va, bytes; /* 0 bytes never: up to the next one or the section's end */
	const char *name;   /* as linked (mangled); "foo@plt" for a PLT entry */
	bool is_plt, is_sized; /* is_sized: @bytes is what the symbol says */
};

struct elf_functions;

/**
 * elf_functions_new() - every function of .symtab and .dynsym, and the PLT.
 * @debug: its separate debug file, whose .symtab is used too; may be NULL.
 * Both files are borrowed until elf_functions_free().
 * Shape: sorted by va, one per va, not overlapping unless the symbols themselves do.
 */
struct err *elf_functions_new(const struct elf_file *file, const struct elf_file *debug,
			      struct elf_functions **ret_functions);
void elf_functions_free(struct elf_functions *functions); /* NULL is fine */
CLEANUP_DEFINE(elf_functions_free, struct elf_functions *)

const struct elf_function *elf_functions_all(const struct elf_functions *functions,
					     size_t *ret_count);
/* elf_function_at() - the innermost one that covers @va, NULL when none does. */
const struct elf_function *elf_function_at(const struct elf_functions *functions,
					   uint64_t va);

#endif
