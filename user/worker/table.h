/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_TABLE_H
#define WORKER_TABLE_H

/*
 * The modules that this worker knows, with what was parsed of them so far. Over
 * TABLE_MAX_MODULES, or when memory gets short, the least recently used are forgotten.
 */

#include "bin/frame.h"
#include "bin/symbol.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "job/message.h"
#include "types/recover.h"

#define TABLE_MAX_MODULES 1024

struct table;
struct module;

/* table_new() - @memory_bytes: parsed modules are forgotten above half of it. @version:
 * of what is kept of units; another version's is not used. */
struct table *table_new(uint64_t memory_bytes, uint64_t version);
void table_free(struct table *table); /* NULL is fine */
CLEANUP_DEFINE(table_free, struct table *)

/* table_open() - add or replace a module; takes the descriptors named by @open. */
struct err *table_open(struct table *table, const struct message_open *open, int *fds);

/* table_find() - and mark as used; NULL when it was never opened or is forgotten. The
 * module stays until another one is opened or parsed. */
struct module *table_find(struct table *table, uint64_t module_id);

/* Parsed when first asked for, kept with the module. An error is kept as well. */
struct err *module_symbols(struct module *module, struct symbols **ret_symbols);
struct module_elf {
	const struct elf_file *main, *debug, *alt; /* NULL: none, or damaged; not @main */
};
struct err *module_elf(struct module *module, struct module_elf *ret_elf);
/* module_recover() - NULL without an error for a module that has no file: the kernel. */
struct err *module_recover(struct module *module, struct recover **ret_recover);
/* module_frames() - NULL when the file has no rules or cannot be read. */
struct frame_table *module_frames(struct module *module);

/* table_relieve() - before a job: forget until half of the memory is free again. */
void table_relieve(struct table *table);

#endif
