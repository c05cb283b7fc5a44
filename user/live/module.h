/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_MODULE_H
#define LIVE_MODULE_H

/*
 * Mapped files by key: what is known of each, from "a mapping named it" to "identified".
 * Samples in a file that is not identified yet wait here as (key, file offset).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/vec.h"
#include "event/event.h"
#include "live/procmap.h"
#include "model/ids.h"

/* What is kept of an access record. @place: its ip, or a file offset once mapped. */
struct sample {
	uint64_t time_ns, start_ns, process_id;
	uint64_t place, method_id, period, weight, data_src;
	uint32_t pid, source, flags;
};

enum module_state {
	MODULE_NEW,	   /* nobody needed it yet */
	MODULE_ASKED,	   /* want_module was called */
	MODULE_KNOWN,	   /* module_id and segments are valid */
	MODULE_IMPOSSIBLE, /* cannot be opened or is no ELF file */
};

struct module {
	uint64_t key;
	enum module_state state;
	uint64_t module_id;
	enum module_kind kind;
	struct abi_segment segments[ABI_MAX_SEGMENTS];
	size_t segment_count;
	char *path; /* as the first mapping had it, without " (deleted)" */
	struct build_id build_id;
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	bool deleted;
	uint64_t asked_ns;
	uint64_t epoch; /* of the last sweep that found it mapped */
	VEC(struct sample) waiting;
};

struct module_table;

struct module_table *module_table_new(size_t limit);
void module_table_free(struct module_table *table);
struct module *module_table_find(const struct module_table *table, uint64_t key);

/* module_table_put() - find or create; NULL when the table is full. */
struct module *module_table_put(struct module_table *table, uint64_t key,
				const char *path);
size_t module_table_count(const struct module_table *table);

/* module_table_next() - walk; @pos is 0 to begin. NULL at the end. */
struct module *module_table_next(const struct module_table *table, size_t *pos);

/* module_table_sweep() - drop what nothing maps and nobody waits for: those whose
 * epoch is not @epoch. An inode number may name another file afterwards. */
void module_table_sweep(struct module_table *table, uint64_t epoch);

/* module_describe() - take over what a mapping says about its file. */
void module_describe(struct module *module, const struct event *mmap);

/* module_identify() - take over a MODULE event; the waiting samples are the caller's
 * business. */
void module_identify(struct module *module, const struct event *event);

/* module_va() - false when no executable segment holds the file offset @off. */
bool module_va(const struct module *module, uint64_t off, uint64_t *ret_va);

/* module_bias() - of one mapping: va = ip - bias. False as above. */
bool module_bias(const struct module *module, const struct range *range,
		 uint64_t *ret_bias);

/* path_is_anonymous() - no file: "//anon", "[heap]", "" and the like. */
bool path_is_anonymous(const char *path);
/* path_is_memory() - a file without a name on disk, where a JIT may keep its code. */
bool path_is_memory(const char *path);

#endif
