/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_RECOVER_H
#define TYPES_RECOVER_H

/*
 * types/ - machine instruction to struct type and field: a pure function of
 * (module, va). No pid, no clock, no samples; those meet the answers in a SQL view.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "model/fact.h"

struct recover;

/* The files of one module; -1 for none. All borrowed, read with pread() only. */
struct recover_files {
	int main_fd;  /* has .text */
	int debug_fd; /* separate debug information; -1: in main_fd */
	int alt_fd;   /* dwz file that the debug information refers to */
};

struct recover_options {
	bool dwarf_only; /* no data flow: the locations that DWARF states, nothing else */
};

/**
 * recover_open() - prepare a module.
 * A module without debug information is no error: every answer is then NO_DEBUG.
 * Errors: ERR_FORMAT, ERR_LIMIT, ERR_UNSUPPORTED (architecture).
 */
struct err *recover_open(const struct recover_files *files,
			 const struct recover_options *options,
			 struct recover **ret_recover);
void recover_close(struct recover *recover); /* NULL is fine */
CLEANUP_DEFINE(recover_close, struct recover *)

/**
 * recover_keep() - use what was kept of an earlier run, and note what to keep of this one.
 * @pack: as recover_kept() gave it then; anything else is as good as nothing. Taken.
 * @version: of the analyser; what another one found out is not used.
 * @content: a hash of the module's files.
 */
struct str;
void recover_keep(struct recover *recover, struct str *pack, uint64_t version,
		  uint64_t content);
/**
 * recover_kept() - what was found out since the last call, in parts of up to @limit bytes.
 * @all: the first call after a whole pass: now and then what was used goes with it, and
 *	the rest is dropped.
 * Return false: nothing more.
 */
bool recover_kept(struct recover *recover, bool all, size_t limit, struct str *out);

/* recover_units() - compilation units answered so far, and of them those kept. */
void recover_units(const struct recover *recover, uint64_t *ret_units,
		   uint64_t *ret_kept);

/**
 * recover_at() - answer one address.
 * @skid: @va is where a clock interrupt landed. The access is the closest memory
 *	instruction before it in its basic block; at the head of a block the last one
 *	of the only predecessor, else VERDICT_SKID.
 * @ret_answer: strings live until the next recover_*() call on this module.
 */
void recover_at(struct recover *recover, uint64_t va, bool skid,
		struct answer *ret_answer);

/* One call per memory instruction of .text, ascending; return false to stop. */
typedef bool (*recover_fn)(void *ctx, const struct answer *answer);

/* recover_progress_fn: @done of @total functions, called now and then. */
typedef void (*recover_progress_fn)(void *ctx, size_t done, size_t total);

struct err *recover_all(struct recover *recover, recover_fn each,
			recover_progress_fn progress, void *ctx);

/**
 * recover_share() - the share @index of @count of the same: whole compilation units,
 * about as much code in each share. All shares together give what recover_all() gives,
 * each answer once and each share ascending; @done and @total of @progress are functions
 * of the share.
 * Errors: as recover_all(); ERR_INVALID when @index is not below @count.
 */
struct err *recover_share(struct recover *recover, uint32_t index, uint32_t count,
			  recover_fn each, recover_progress_fn progress, void *ctx);

/**
 * recover_type() - layout of a type by the name an answer gave.
 * Leaf fields in order of offset, arrays as one field "a[]", bit-fields "a:3@5" (width
 * and first bit), anonymous members dropped.
 * @ret_fields: borrowed until recover_close(). Return false when the name is unknown.
 */
bool recover_type(struct recover *recover, const struct answer *answer,
		  struct fact_type *ret_type, const struct fact_field **ret_fields,
		  size_t *ret_count);

#endif
