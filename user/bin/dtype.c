// SPDX-License-Identifier: Apache-2.0
/*
 * A chunked table of types (so that pointers stay valid), a map from content hash to
 * id, and everything else in one arena. Walks into nested types stop at
 * DTYPE_MAX_DEPTH: debug information is foreign, and a struct may claim to contain
 * itself.
 */
#include "bin/dtype_impl.h"

#include <string.h>

#include "core/intern.h"
#include "core/mem.h"

struct dtype *dtype_at(const struct dtypes *types, uint32_t id)
{
	if (id >= types->count)
		id = 0;
	return &types->chunks.data[id / DTYPE_CHUNK][id % DTYPE_CHUNK];
}

static uint32_t append(struct dtypes *types, const struct dtype *type)
{
	if (types->count >= DTYPE_MAX_TYPES)
		return 0;
	if (types->count % DTYPE_CHUNK == 0)
		vec_push(&types->chunks,
			 arena_array(types->arena, DTYPE_CHUNK, sizeof(struct dtype)));
	types->count++;
	*dtype_at(types, types->count - 1) = *type;
	return types->count - 1;
}

struct dtypes *dtypes_new(dtype_fetch_fn fetch, void *ctx)
{
	struct dtypes *types = mem_alloc(sizeof(*types));

	types->arena = arena_new();
	types->by_hash = map_new(sizeof(uint64_t), sizeof(uint32_t));
	types->leaves =
		map_new(sizeof(struct dtype_leaf_key), sizeof(struct dtype_leaves *));
	types->steps = map_new(sizeof(uint32_t), sizeof(struct dtype_steps));
	types->fetch = fetch;
	types->ctx = ctx;
	append(types, &(struct dtype){ .kind = DTYPE_VOID });
	return types;
}

void dtypes_free(struct dtypes *types)
{
	if (!types)
		return;
	vec_fini(&types->chunks);
	map_free(types->by_hash);
	map_free(types->leaves);
	map_free(types->steps);
	arena_free(types->arena);
	free(types);
}

uint32_t dtypes_count(const struct dtypes *types)
{
	return types->count;
}

size_t dtypes_bytes(const struct dtypes *types)
{
	return arena_bytes(types->arena);
}

static uint64_t hash_text_or_null(const char *text, uint64_t seed)
{
	return hash_bytes(text ? text : "", text ? strlen(text) : 0, seed);
}

/* Of what a type refers to, its content: ids depend on who was asked for first. */
static uint64_t hash_of(const struct dtypes *types, uint32_t id)
{
	return id == DTYPE_UNRESOLVED ? id : dtype_at(types, id)->hash;
}

static uint64_t content_hash(const struct dtypes *types, const struct dtype *type)
{
	uint64_t head[] = { type->kind,
			    type->bytes,
			    type->count,
			    (uint64_t)type->is_float | (uint64_t)type->is_variadic << 1,
			    type->member_count,
			    0,
			    0 };
	bool is_struct = type->kind == DTYPE_STRUCT || type->kind == DTYPE_UNION;

	/* The definition of an incomplete type is found later: no part of what it is. */
	if (!is_struct && type->kind != DTYPE_INCOMPLETE)
		head[5] = hash_of(types, type->target);
	if (!type->name)
		head[6] = type->line;

	uint64_t hash = hash_text_or_null(type->name, hash_bytes(head, sizeof(head), 0));

	for (uint32_t i = 0; is_struct && i < type->member_count; i++) {
		const struct dtype_member *member = &type->members[i];
		uint32_t shape[] = { member->offset, member->bits, member->bit };

		hash = hash_text_or_null(member->name,
					 hash_bytes(shape, sizeof(shape), hash));
	}
	for (uint32_t i = 0; type->kind == DTYPE_FUNCTION && i < type->member_count;
	     i++) {
		uint64_t param = hash_of(types, type->params[i]);

		hash = hash_bytes(&param, sizeof(param), hash);
	}
	return hash;
}

static int by_offset(const void *a, const void *b)
{
	const struct dtype_member *x = a, *y = b;

	if (x->offset != y->offset)
		return x->offset < y->offset ? -1 : 1;
	return x->bit < y->bit ? -1 : x->bit > y->bit;
}

static void own(struct dtypes *types, struct dtype *type)
{
	if (type->name)
		type->name = arena_strdup(types->arena, type->name);
	if (!type->member_count)
		return;
	if (type->kind == DTYPE_FUNCTION) {
		uint32_t *params =
			arena_array(types->arena, type->member_count, sizeof(*params));

		memcpy(params, type->params, type->member_count * sizeof(*params));
		type->params = params;
		return;
	}

	struct dtype_member *members =
		arena_array(types->arena, type->member_count, sizeof(*members));

	memcpy(members, type->members, type->member_count * sizeof(*members));
	for (uint32_t i = 0; i < type->member_count; i++)
		if (members[i].name)
			members[i].name = arena_strdup(types->arena, members[i].name);
	type->members = members;
	if (type->kind == DTYPE_STRUCT)
		qsort(members, type->member_count, sizeof(*members), by_offset);
}

uint32_t dtype_add(struct dtypes *types, const struct dtype *type)
{
	uint64_t hash = content_hash(types, type);
	bool is_new;
	uint32_t *slot = map_put(types->by_hash, &hash, &is_new);

	if (!is_new)
		return *slot;

	struct dtype copy = *type;

	own(types, &copy);
	copy.hash = hash;
	*slot = append(types, &copy);
	return *slot;
}

void dtype_set_name(struct dtypes *types, uint32_t id, const char *name)
{
	struct dtype *type = dtype_at(types, id);

	if (id && !type->name && name)
		type->name = arena_strdup(types->arena, name);
}

void dtype_set_target(struct dtypes *types, uint32_t id, uint32_t target)
{
	if (id && id < types->count)
		dtype_at(types, id)->target = target;
}

const struct dtype *dtype_get(const struct dtypes *types, uint32_t id)
{
	return dtype_at(types, id);
}

static uint32_t fetch(struct dtypes *types, const struct dtype_ref *ref)
{
	uint32_t id = 0;

	if (!ref->die || !types->fetch || types->depth >= DTYPE_MAX_DEPTH)
		return 0;
	types->depth++;
	id = types->fetch(types->ctx, ref);
	types->depth--;
	return id;
}

uint32_t dtype_target(struct dtypes *types, uint32_t id)
{
	if (dtype_at(types, id)->target == DTYPE_UNRESOLVED) {
		struct dtype_ref ref = dtype_at(types, id)->ref;

		dtype_at(types, id)->target = 0;
		dtype_at(types, id)->target = fetch(types, &ref);
	}
	return dtype_at(types, id)->target;
}

uint32_t dtype_member_type(struct dtypes *types, uint32_t id, uint32_t index)
{
	struct dtype *type = dtype_at(types, id);

	if (type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION)
		return 0;
	if (index >= type->member_count)
		return 0;

	struct dtype_member *member = &type->members[index];

	if (member->type == DTYPE_UNRESOLVED) {
		member->type = 0;
		member->type = fetch(types, &member->ref);
	}
	return dtype_whole(types, member->type);
}

uint32_t dtype_whole(struct dtypes *types, uint32_t id)
{
	if (dtype_at(types, id)->kind != DTYPE_INCOMPLETE)
		return id;

	uint32_t whole = dtype_target(types, id);

	return whole ? whole : id;
}

bool dtype_is_aggregate(const struct dtypes *types, uint32_t id)
{
	uint8_t kind = dtype_at(types, id)->kind;

	return kind == DTYPE_STRUCT || kind == DTYPE_UNION;
}

uint64_t dtype_member_room(struct dtypes *types, uint32_t id, uint32_t index)
{
	const struct dtype *type = dtype_at(types, id);
	const struct dtype_member *member = &type->members[index];
	const struct dtype *inner = dtype_at(types, dtype_member_type(types, id, index));

	if (member->bits)
		return (member->bit + member->bits + 7u) / 8;
	if (type->kind == DTYPE_STRUCT && inner->kind == DTYPE_ARRAY &&
	    index == type->member_count - 1 && inner->count <= 1)
		return DTYPE_MAX_BYTES;
	return inner->bytes;
}

uint64_t dtype_element_bytes(struct dtypes *types, uint32_t id)
{
	return dtype_at(types, dtype_whole(types, dtype_target(types, id)))->bytes;
}

static void raise(struct dtype_leaves *leaves, enum dtype_fit fit)
{
	if (leaves->fit < fit)
		leaves->fit = fit;
}

static void leaf_found(struct dtype_walk *walk, uint32_t id)
{
	if (walk->leaves->count < DTYPE_MAX_LEAVES)
		walk->leaves->types[walk->leaves->count++] = id;
}

static void walk_leaves(struct dtype_walk *walk, uint32_t id, uint64_t offset,
			unsigned depth);

static void walk_array(struct dtype_walk *walk, uint32_t id, uint64_t offset,
		       unsigned depth)
{
	const struct dtype *type = dtype_at(walk->types, id);
	uint64_t bytes = dtype_element_bytes(walk->types, id);

	if (!bytes || (type->count > 1 && offset >= type->bytes))
		return;

	enum dtype_fit before = walk->leaves->fit;

	walk->leaves->fit = DTYPE_OUTSIDE;
	walk_leaves(walk, dtype_whole(walk->types, dtype_target(walk->types, id)),
		    offset % bytes, depth + 1);
	/* Bytes in a byte array say little: it may hold anything. */
	if (bytes == 1 && type->count != 1)
		walk->leaves->fit = DTYPE_WITHIN;
	else if (walk->leaves->fit < DTYPE_STARTS && walk->bytes > bytes - offset % bytes)
		walk->leaves->fit = DTYPE_STARTS;
	raise(walk->leaves, before);
}

static void walk_members(struct dtype_walk *walk, uint32_t id, uint64_t offset,
			 unsigned depth)
{
	const struct dtype *type = dtype_at(walk->types, id);

	for (uint32_t i = 0; i < type->member_count; i++) {
		const struct dtype_member *member = &type->members[i];

		if (++walk->steps > DTYPE_MAX_STEPS)
			return;
		if (member->offset > offset) {
			/* wide accesses and bit-field units may begin before a member */
			if (member->offset < offset + walk->bytes &&
			    (walk->bytes >= 16 || member->bits))
				raise(walk->leaves, DTYPE_STARTS);
			if (type->kind == DTYPE_STRUCT &&
			    member->offset >= offset + walk->bytes)
				return;
			continue;
		}
		if (member->offset == offset && walk->bytes >= 8)
			raise(walk->leaves, DTYPE_STARTS);
		if (offset - member->offset >= dtype_member_room(walk->types, id, i))
			continue;
		if (member->bits)
			raise(walk->leaves, DTYPE_STARTS);
		else
			walk_leaves(walk, dtype_member_type(walk->types, id, i),
				    offset - member->offset, depth + 1);
	}
}

static void walk_leaves(struct dtype_walk *walk, uint32_t id, uint64_t offset,
			unsigned depth)
{
	const struct dtype *type = dtype_at(walk->types, id);

	if (depth > DTYPE_MAX_DEPTH || ++walk->steps > DTYPE_MAX_STEPS)
		return;
	switch (type->kind) {
	case DTYPE_ARRAY:
		walk_array(walk, id, offset, depth);
		break;
	case DTYPE_STRUCT:
	case DTYPE_UNION:
		walk_members(walk, id, offset, depth);
		break;
	default:
		if (!offset) {
			raise(walk->leaves,
			      type->bytes == walk->bytes ? DTYPE_EXACT
			      : type->bytes > walk->bytes || walk->bytes >= 16
				      ? DTYPE_STARTS
				      : DTYPE_WITHIN);
			leaf_found(walk, id);
		} else if (offset < type->bytes) {
			raise(walk->leaves, DTYPE_STARTS);
		}
	}
}

const struct dtype_leaves *dtype_leaves_at(struct dtypes *types, uint32_t id,
					   int64_t offset, uint32_t bytes)
{
	struct dtype_leaf_key key = { .offset = offset, .id = id, .bytes = bytes };
	struct dtype_leaves **found = map_find(types->leaves, &key);

	if (found)
		return *found;

	struct dtype_leaves leaves = { 0 };
	struct dtype_walk walk = { .types = types, .leaves = &leaves, .bytes = bytes };

	if (offset >= 0)
		walk_leaves(&walk, id, (uint64_t)offset, 0);

	struct dtype_leaves *kept =
		arena_alloc(types->arena, offsetof(struct dtype_leaves, types) +
						  leaves.count * sizeof(leaves.types[0]));

	memcpy(kept, &leaves,
	       offsetof(struct dtype_leaves, types) +
		       leaves.count * sizeof(leaves.types[0]));
	*(struct dtype_leaves **)map_put(types->leaves, &key, NULL) = kept;
	return kept;
}
