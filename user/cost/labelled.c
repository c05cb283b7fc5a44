// SPDX-License-Identifier: Apache-2.0
/*
 * A row stands behind the one above it, so what holds for a whole sub-tree is handed down
 * in one pass, and own CPU is all that has to be added up.
 */
#include "cost/labelled.h"

#include <stdlib.h>

#include "core/mem.h"

struct under {
	bool empty, low, low_for_high;
};

static struct under under_of(const struct profile_row *row, const struct under *above)
{
	struct under under = above ? *above : (struct under){ 0 };

	under.low_for_high |= under.low && row->labels & PROFILE_HIGH;
	under.low |= !!(row->labels & PROFILE_LOW);
	under.empty |= !!(row->labels & PROFILE_EMPTY);
	return under;
}

struct labelled labelled_sum(const struct profile *profile)
{
	struct labelled sum = { 0 };
	size_t count;
	const struct profile_row *rows = profile_paths(profile, &count);
	CLEANUP(free) struct under *under = mem_array(count + 1, sizeof(*under));

	for (size_t i = 0; i < count; i++) {
		size_t above = rows[i].parent;

		under[i] = under_of(&rows[i], above == SIZE_MAX ? NULL : &under[above]);
		sum.cpu_ns += rows[i].cpu_ns;
		sum.empty_ns += under[i].empty ? rows[i].cpu_ns : 0;
		sum.low_for_high_ns += under[i].low_for_high ? rows[i].cpu_ns : 0;
	}
	return sum;
}
