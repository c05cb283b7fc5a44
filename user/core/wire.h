/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_WIRE_H
#define CORE_WIRE_H

/*
 * Flat messages between our own processes: little-endian integers, counted strings.
 * The reader never trusts the writer: past the end every read gives 0 or "" and sets
 * @bad, which the caller checks once at the end.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/str.h"

#define WIRE_MAX_STRING (64 * 1024)

void wire_put_u8(struct str *out, uint8_t value);
void wire_put_u32(struct str *out, uint32_t value);
void wire_put_u64(struct str *out, uint64_t value);
void wire_put_double(struct str *out, double value);
void wire_put_bytes(struct str *out, const void *bytes, size_t length); /* counted */
void wire_put_str(struct str *out, const char *text); /* NULL travels as "" */

struct wire {
	const unsigned char *data;
	size_t size, pos;
	bool bad;
};

uint8_t wire_u8(struct wire *wire);
uint32_t wire_u32(struct wire *wire);
uint64_t wire_u64(struct wire *wire);
double wire_double(struct wire *wire);
/* wire_bytes() - borrowed from the message; NULL and 0 past the end. */
const void *wire_bytes(struct wire *wire, size_t *ret_length);
/* wire_str() - NUL-terminated inside the message, borrowed; "" past the end. */
const char *wire_str(struct wire *wire);
/* wire_count() - a u32 that must be at most @limit and leave room for @each bytes apiece. */
uint32_t wire_count(struct wire *wire, uint32_t limit, size_t each);

#endif
