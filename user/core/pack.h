/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_PACK_H
#define CORE_PACK_H

/*
 * A file of entries, each checked on its own: a head, then for each entry its head and
 * its payload, filled up to 8 bytes. What is inside is the business of who puts it there.
 * An entry has two names: one for the very thing it was made from, one for anything that
 * is as good. In the byte order of the machine.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/str.h"
#include "core/vec.h"

#define PACK_MAGIC	 0x31304b4341505341ull /* "ASPACK01": new with the format */
#define PACK_MAX_BYTES	 (256ull << 20)	       /* of a file */
#define PACK_MAX_ENTRIES 262144

#define PACK_ALL 1 /* both names of an entry that says: nothing older stays */

struct pack_head {
	uint64_t magic, version; /* version: of the program that made the entries */
};

struct pack_entry {
	uint64_t exact, key;
	uint64_t hash; /* of the payload, and of the names */
	uint32_t bytes, unused;
};

struct pack_item {
	struct pack_entry entry;
	const uint8_t *data;
};

struct pack {
	uint64_t version;
	VEC(struct pack_item) items;
};

/**
 * pack_read() - the entries of @data, which is borrowed and aligned to 8.
 * One whose bytes do not match its hash is left out; a damaged chain ends there. Return
 * false, and no entries, for what is no pack.
 */
bool pack_read(const void *data, size_t bytes, struct pack *ret_pack);
void pack_fini(struct pack *pack);

/* pack_begin() - the head, into an empty @out; pack_put() - one more entry. */
void pack_begin(struct str *out, uint64_t version);
void pack_put(struct str *out, uint64_t exact, uint64_t key, const void *data,
	      size_t bytes);
/* pack_copy() - the good entries of @data, which is a pack and any address. */
void pack_copy(struct str *out, const void *data, size_t bytes);
/* pack_size() - what an entry of @bytes takes. */
size_t pack_size(size_t bytes);

/**
 * pack_merge() - all of @fresh, then what it does not replace of @old, up to @max_bytes.
 * @old: may be of another version, damaged or NULL: then nothing of it.
 * Return false when @fresh is no pack.
 */
bool pack_merge(const struct str *fresh, const struct str *old, uint64_t max_bytes,
		struct str *out);

#endif
