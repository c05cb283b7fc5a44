/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_RESULT_H
#define TYPES_RESULT_H

/*
 * The answers of one compilation unit, with the layouts of the types they name, as one
 * block of bytes that refers to nothing outside: addresses count from the begin of the
 * function's range, names are in a table. What was just found out and what was kept from
 * an earlier run are read in the same way.
 */

#include "types/module.h"

#define RESULT_MAX_FIELDS 65536 /* listed of one type */

struct result_head {
	uint32_t functions, records, places, types, fields, text_bytes;
};

struct result_function {
	uint32_t first, count; /* records, sorted by range and address */
};

struct result_record {
	uint32_t rel; /* from the begin of the range */
	uint16_t range, width;
	uint32_t place; /* 0: none */
	float confidence;
	uint8_t verdict, access, is_frame, unused;
};

struct result_place {
	int64_t offset;
	uint64_t field_offset, field_bytes;
	uint32_t type, path;
};

struct result_type {
	uint64_t id, bytes;
	uint32_t name, first_field, fields, unused;
};

struct result_field {
	uint64_t offset, bytes;
	uint32_t path, unused;
};

/* Opened bytes; all pointers lead into them. */
struct result {
	struct result_head head;
	const struct result_function *functions;
	const struct result_record *records;
	const struct result_place *places;
	const struct result_type *types;
	const struct result_field *fields;
	const char *text;
};

/* result_open() - @bytes are borrowed and aligned to 8. Every count and index is checked;
 * false when one does not fit. */
bool result_open(const void *bytes, size_t size, struct result *ret_result);

struct result_writer;
struct result_writer *result_writer_new(void);
void result_writer_free(struct result_writer *writer); /* NULL is fine */
CLEANUP_DEFINE(result_writer_free, struct result_writer *)
/* result_put_function() - what recover->code has; the functions of a unit in turn. */
void result_put_function(struct result_writer *writer, struct recover *recover);
/* result_skip_function() - one without answers. */
void result_skip_function(struct result_writer *writer);
/* result_write() - append the bytes to @out, which is empty. */
void result_write(struct result_writer *writer, struct str *out);

#endif
