/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_AROUND_H
#define TYPES_AROUND_H

/* Which struct of the unit encloses what is known to be somewhere. */

#include "types/facts.h"

struct around {
	struct unit_place *data;
	size_t count, room;
};

/* around_note() - add a place, once. The caller finishes the vector. */
void around_note(struct around *around, uint32_t type, int64_t offset);

/* around_common() - the only outermost struct that has all of @seen (at least one) in
 * it, @width bytes fitting there. */
bool around_common(struct facts *facts, const struct around *seen, uint32_t width,
		   struct unit_place *ret_place);

/* around_beyond() - the only struct that has one of the candidates inside and still
 * covers the access beyond its end. */
bool around_beyond(struct facts *facts, const struct candidates *found, uint32_t width,
		   struct unit_place *ret_place);

#endif
