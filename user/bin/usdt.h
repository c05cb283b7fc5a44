/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_USDT_H
#define BIN_USDT_H

/*
 * Static probe points (SystemTap notes, .note.stapsdt): a nop, where its arguments are
 * at that moment, and the counter ("semaphore") that must not be 0 for the program to
 * reach the nop or to prepare the arguments.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bin/elf.h"
#include "core/err.h"

#define USDT_MAX_NOTES 65536
#define USDT_MAX_ARGS  12

enum usdt_where { USDT_UNKNOWN, USDT_REGISTER, USDT_MEMORY, USDT_CONSTANT };

struct usdt_arg {
	uint8_t where; /* enum usdt_where */
	uint8_t bytes; /* 1, 2, 4, 8 */
	bool is_signed;
	uint8_t reg;	/* DWARF number; MEMORY: the object is at it + @offset */
	int64_t offset; /* or the constant */
};

struct usdt_note {
	const char *provider, *name, *args; /* borrowed until elf_close() */
	uint64_t va, semaphore_va;	    /* semaphore 0: none */
};

/* usdt_each() - every note; @each returns false to stop. ERR_FORMAT, ERR_LIMIT. */
typedef bool (*usdt_fn)(void *ctx, const struct usdt_note *note);
struct err *usdt_each(const struct elf_file *file, usdt_fn each, void *ctx);

/* usdt_args() - "8@%rbx -4@-144(%rbp) 8@$5". Return: how many; what is no such form is
 * USDT_UNKNOWN. @ret_args: room for USDT_MAX_ARGS. */
size_t usdt_args(const char *text, struct usdt_arg *ret_args);

#endif
