/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_FIELD_H
#define BIN_FIELD_H

/* "->name.sub->more" on a function's argument or result: offsets from its prototype. */

#include "bin/dwarf.h"

#define FIELD_MAX_ARROWS 4

struct field_place {
	uint64_t offsets[FIELD_MAX_ARROWS]; /* one per arrow */
	size_t count;
	uint8_t bytes; /* of what the last one names: 1, 2, 4, 8 */
	bool is_signed;
};

/**
 * field_find() - @type: of the value that the first arrow follows.
 * Errors: ERR_NOT_FOUND, with the step that fails; ERR_INVALID for a bit-field or what
 * is no scalar of 1, 2, 4 or 8 bytes; ERR_FORMAT for a damaged path.
 */
struct err *field_find(struct dwarf_file *file, uint32_t type, const char *path,
		       struct field_place *ret_place);

/* field_base() - type of argument @arg (from 1) or, for 0, of the result of a function. */
struct err *field_base(struct dwarf_file *file, const struct dwarf_function *function,
		       unsigned arg, uint32_t *ret_type);

#endif
