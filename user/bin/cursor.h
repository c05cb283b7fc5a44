/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_CURSOR_H
#define BIN_CURSOR_H

/*
 * A place in bytes that came from a file, and their end. What would read beyond the end
 * gives 0 and sets is_bad, which stays set: one check after many reads is enough.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

struct cursor {
	const uint8_t *at, *end;
	bool is_bad;
};

/* cursor_fixed() - a little-endian number of @bytes, up to 8. */
static inline uint64_t cursor_fixed(struct cursor *in, unsigned bytes)
{
	uint64_t value = 0;

	if ((size_t)(in->end - in->at) < bytes) {
		in->is_bad = true;
		in->at = in->end;
		return 0;
	}
	memcpy(&value, in->at, bytes);
	in->at += bytes;
	return value;
}

/* cursor_uleb() - ULEB128 (DWARF 5, 7.6); bits beyond 64 are dropped. */
static inline uint64_t cursor_uleb(struct cursor *in)
{
	uint64_t value = 0;

	for (unsigned shift = 0; in->at < in->end; shift += 7) {
		uint8_t byte = *in->at++;

		if (shift < 64)
			value |= (uint64_t)(byte & 0x7f) << shift;
		if (!(byte & 0x80))
			return value;
	}
	in->is_bad = true;
	return 0;
}

#endif
