/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_SYMBOL_H
#define BIN_SYMBOL_H

/*
 * va -> function, source file and line, for people. Names are demangled (C++ and Rust);
 * lines need debug information. The kernel's symbols come from kallsyms.
 */

#include <stddef.h>
#include <stdint.h>

#include "bin/elf.h"
#include "core/cleanup.h"
#include "core/err.h"

#define SYMBOL_MAX_KALLSYMS_BYTES (64 * 1024 * 1024)
#define SYMBOL_MAX_KALLSYMS	  (1024 * 1024) /* symbols of text */
#define SYMBOL_MAX_MANGLED	  4096		/* longer names stay as they are */
#define SYMBOL_MAX_NAME		  8192		/* demangled; longer ones stay mangled */
#define SYMBOL_MAX_PATH		  4096		/* a longer one stays relative */
#define SYMBOL_MAX_UNITS	  (1024 * 1024)
#define SYMBOL_MAX_RANGES	  (4 * 1024 * 1024) /* of all units */

struct symbols;

/* Strings are "" when unknown and live until symbols_free(); numbers are then 0. Files are
 * absolute wherever debug information tells the folder of the build. */
struct symbol {
	const char *function; /* "foo@plt" for a PLT entry */
	uint64_t function_va, function_bytes;
	const char *function_file; /* of the function's first line */
	uint32_t function_line;
	const char *file; /* of the va; an inlined function's may differ */
	uint32_t line;
};

/**
 * symbols_new() - the symbols of one module.
 * @debug: its separate debug file, or NULL. Both are borrowed until symbols_free().
 * Debug information that cannot be read leaves the lines unknown and is no error.
 */
struct err *symbols_new(const struct elf_file *file, const struct elf_file *debug,
			struct symbols **ret_symbols);

/**
 * symbols_kernel() - from kallsyms: "ffffffff81000000 T name [module]" per line.
 * @fd: read to its end from offset 0, not kept.
 * @slide: runtime minus link address; 0 when the va is the runtime address.
 * Errors: ERR_LIMIT, ERR_IO, ERR_PERMISSION when every address is zero.
 */
struct err *symbols_kernel(int fd, uint64_t slide, struct symbols **ret_symbols);

void symbols_free(struct symbols *symbols); /* NULL is fine */
CLEANUP_DEFINE(symbols_free, struct symbols *)

struct symbol symbols_at(struct symbols *symbols, uint64_t va);

#endif
