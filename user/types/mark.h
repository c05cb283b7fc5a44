/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_MARK_H
#define TYPES_MARK_H

/*
 * What the answers of a unit hang on, so that those kept from another build can be told
 * to hold for this one. Three parts:
 *
 * - the key: what debug information says about the unit (bin/dwarf's digest), how its
 *   functions lie, their names and unwind rules. Nothing that moves when other units
 *   change;
 * - its code, without the fields that hold addresses of something else (masks);
 * - what the analysis asked about the rest of the module: the prototype and name behind
 *   each call, the variable at each address, jump tables, and definitions of structs that
 *   the unit only declares. Asked again, all answers must be the same. Types of others
 *   count by their shape where the unit has one of that shape itself, which is then the
 *   one used; otherwise with everything that can be reached from them.
 *
 * An address that was asked for is found again by its distance from the closest field in
 * the code that leads there.
 */

#include "types/module.h"

#define MARK_VERSION 1

struct mark_head {
	uint64_t code, answers; /* hashes: of the code, of what was asked */
	uint32_t masks, asked, data, shapes, names, unused;
};

enum mark_mask_kind { MARK_RELATIVE = 1, MARK_SHORT, MARK_ABSOLUTE4, MARK_ABSOLUTE8 };

struct mark_mask {
	uint32_t rel;	   /* of the field, from the begin of its part */
	uint16_t part;	   /* range of a function, counted over the unit */
	uint8_t kind, end; /* end: bytes from the field to the end of the instruction */
};

#define MARK_TLS  UINT32_MAX
#define MARK_NONE (UINT32_MAX - 1)

struct mark_asked {
	int64_t distance; /* from what the mask leads to, or the address itself */
	uint32_t mask, unused;
};

/* Of a kept unit; opened bytes. */
struct mark {
	struct mark_head head;
	const struct mark_mask *masks;
	const struct mark_asked *asked;
	const uint64_t *data;	/* sizes of the unit's own variables */
	const uint64_t *shapes; /* of its own types, sorted */
	const uint64_t *names;	/* hashes: of structs that are declared only */
};

/* mark_open() - of what mark_end() wrote; every count and index is checked. */
bool mark_open(const void *bytes, size_t size, struct mark *ret_mark);

struct marker;
struct marker *marker_new(struct recover *recover);
void marker_free(struct marker *marker); /* NULL is fine */

/* marker_key() - begin with @unit; false when its answers cannot be kept. */
bool marker_key(struct marker *marker, uint32_t unit, uint64_t *ret_key);
/* marker_holds() - is @mark true of the unit of the last marker_key()? */
bool marker_holds(struct marker *marker, const struct mark *mark);

/* While the unit is worked on: before the first function, when its types are loaded,
 * behind each function that was decided, and at the end, which leaves the unit.
 * Return of marker_end(): false when the unit cannot be kept. */
void marker_begin(struct marker *marker);
void marker_types(struct marker *marker);
void marker_code(struct marker *marker);
bool marker_end(struct marker *marker, struct str *out);

#endif
