/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_LAYOUT_H
#define CLI_LAYOUT_H

/*
 * A struct as rows: its fields in order, what lies on top of each other (unions), and
 * between them the bytes and bits that nothing uses. No samples, no printing.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/vec.h"

#define LAYOUT_LINE_BYTES 64

struct layout_field {
	const char *path;	/* without the suffix of a bit-field */
	uint64_t offset, bytes; /* of a bit-field: the bytes that it touches */
	uint32_t bits, bit;	/* of a bit-field: width, and first bit from @offset */
};

enum layout_kind {
	LAYOUT_FIELD,
	LAYOUT_OVERLAY, /* a field that shares bytes with one before: a union */
	LAYOUT_HOLE,	/* between fields */
	LAYOUT_PADDING, /* behind the last one */
};

struct layout_row {
	enum layout_kind kind;
	size_t field;	 /* index; of FIELD and OVERLAY */
	uint64_t offset; /* byte in which it begins */
	uint64_t bits;	 /* size, in bits */
	uint64_t line;	 /* cache line of @offset, for a type at the start of one */
	uint64_t last_line;
};

struct layout_rows {
	VEC(struct layout_row) rows;
};

/* layout_kind_name() - "field", "union", "hole", "padding"; never NULL. */
const char *layout_kind_name(enum layout_kind kind);

/* layout_parse() - the path of a leaf field as stored, "flags:3@5" for bit-fields; cuts
 * the suffix off @path, which the caller owns, and stores it in @field. */
void layout_parse(char *path, struct layout_field *field);

/**
 * layout_draw() - @fields sorted by offset and bit, of a type of @bytes.
 * Holes are split where they begin or end inside a byte, so that whole bytes are told
 * from bits. @ret_rows: appended to.
 */
void layout_draw(const struct layout_field *fields, size_t count, uint64_t bytes,
		 struct layout_rows *ret_rows);

#endif
