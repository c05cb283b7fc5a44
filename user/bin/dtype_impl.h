/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_DTYPE_IMPL_H
#define BIN_DTYPE_IMPL_H

/* Shared by bin/dtype*.c only. */

#include "bin/dtype.h"
#include "core/arena.h"
#include "core/map.h"
#include "core/vec.h"

#define DTYPE_CHUNK 1024u

struct dtype_leaf_key {
	int64_t offset;
	uint32_t id, bytes;
};

struct dtype_steps {
	uint32_t *data;
	size_t count;
};

struct dtypes {
	struct arena *arena;
	VEC(struct dtype *) chunks;
	uint32_t count;
	struct map *by_hash, *leaves, *steps;
	dtype_fetch_fn fetch;
	void *ctx;
	unsigned depth; /* of fetches in progress */
};

struct dtype_walk {
	struct dtypes *types;
	struct dtype_leaves *leaves;
	uint32_t bytes;
	unsigned steps;
};

#define DTYPE_MAX_STEPS 4096 /* members looked at for one question */

struct dtype *dtype_at(const struct dtypes *types, uint32_t id);
/* Room that a member takes: an array at the end may be flexible, whatever it claims. */
uint64_t dtype_member_room(struct dtypes *types, uint32_t id, uint32_t index);
uint64_t dtype_element_bytes(struct dtypes *types, uint32_t id);

#endif
