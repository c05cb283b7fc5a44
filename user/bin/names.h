/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_NAMES_H
#define BIN_NAMES_H

/*
 * Functions by name, every alias of every symbol table. Unlike elf_functions_all(),
 * which keeps one name per va: constructors, for one, go by several.
 */

#include "bin/elf.h"

#define NAMES_MAX_PATTERN 512

enum names_by {
	NAMES_EXACT,
	NAMES_PREFIX,
	NAMES_GLOB,	 /* * ? [] */
	NAMES_DEMANGLED, /* a glob on the C++ or Rust name with its parameters */
};

struct names_found {
	uint64_t va, bytes; /* bytes 0: the symbol has no size */
	const char *name;   /* mangled; borrowed until elf_close() */
};

/* names_find() - @each returns false to stop. @debug: may be NULL. Errors: ERR_LIMIT. */
typedef bool (*names_fn)(void *ctx, const struct names_found *found);
struct err *names_find(const struct elf_file *file, const struct elf_file *debug,
		       enum names_by by, const char *text, names_fn each, void *ctx);

/* names_demangle() - allocated; NULL when it is no mangled name. */
char *names_demangle(const char *mangled);

#endif
