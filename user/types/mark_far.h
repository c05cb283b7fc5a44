/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_MARK_FAR_H
#define TYPES_MARK_FAR_H

/* For types/mark.c: what one unit may ask about the rest of its module, as hashes. */

#include "types/module.h"

struct mark_far;

/* The structs that answers led to, in order; they belong to the answers. */
struct mark_far_set {
	struct map *met;
	struct dwarf_reach types;
};
void mark_far_set_fini(struct mark_far_set *set);

struct mark_far *mark_far_new(struct recover *recover);
void mark_far_free(struct mark_far *far); /* NULL is fine */

/* mark_far_begin() - leaves the unit that is entered; its types end. */
void mark_far_begin(struct mark_far *far, struct mark_far_set *set);
/* mark_far_at() - function, symbol and variable at @va, and what memory it is in. */
uint64_t mark_far_at(struct mark_far *far, struct mark_far_set *set, uint64_t va);
uint64_t mark_far_tls(struct mark_far *far, struct mark_far_set *set, uint64_t offset);
uint64_t mark_far_name(struct mark_far *far, struct mark_far_set *set, uint64_t name);
/* mark_far_end() - @hash and all types met; those in @shapes count by their shape. */
bool mark_far_end(struct mark_far *far, const struct mark_far_set *set,
		  const uint64_t *shapes, size_t count, uint64_t hash,
		  uint64_t *ret_hash);

#endif
