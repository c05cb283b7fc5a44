// SPDX-License-Identifier: Apache-2.0
/*
 * A chunked table of types (so that pointers stay valid), a map from content hash to
 * id, and everything else in one arena. Walks into nested types stop at
 * DTYPE_MAX_DEPTH: debug information is foreign, and a struct may claim to contain
 * itself.
 */
#include "bin/dtype.h"

#include <string.h>

#include "core/arena.h"
#include "core/intern.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"

#define CHUNK 1024u

struct leaf_key {
	int64_t offset;
	uint32_t id, bytes;
};

struct dtypes {
	struct arena *arena;
	VEC(struct dtype *) chunks;
	uint32_t count;
	struct map *by_hash, *leaves;
	dtype_fetch_fn fetch;
	void *ctx;
	unsigned depth; /* of fetches in progress */
};

static struct dtype *at(const struct dtypes *types, uint32_t id)
{
	if (id >= types->count)
		id = 0;
	return &types->chunks.data[id / CHUNK][id % CHUNK];
}

static uint32_t append(struct dtypes *types, const struct dtype *type)
{
	if (types->count >= DTYPE_MAX_TYPES)
		return 0;
	if (types->count % CHUNK == 0)
		vec_push(&types->chunks,
			 arena_array(types->arena, CHUNK, sizeof(struct dtype)));
	types->count++;
	*at(types, types->count - 1) = *type;
	return types->count - 1;
}

struct dtypes *dtypes_new(dtype_fetch_fn fetch, void *ctx)
{
	struct dtypes *types = mem_alloc(sizeof(*types));

	types->arena = arena_new();
	types->by_hash = map_new(sizeof(uint64_t), sizeof(uint32_t));
	types->leaves = map_new(sizeof(struct leaf_key), sizeof(struct dtype_leaves *));
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

static uint64_t content_hash(const struct dtype *type)
{
	uint64_t head[] = { type->kind,
			    type->bytes,
			    type->count,
			    type->is_float,
			    type->member_count,
			    0,
			    0 };
	bool is_struct = type->kind == DTYPE_STRUCT || type->kind == DTYPE_UNION;

	/* The definition of an incomplete type is found later: no part of what it is. */
	if (!is_struct && type->kind != DTYPE_INCOMPLETE)
		head[5] = type->target;
	if (!type->name)
		head[6] = type->line;

	uint64_t hash = hash_text_or_null(type->name, hash_bytes(head, sizeof(head), 0));

	for (uint32_t i = 0; is_struct && i < type->member_count; i++) {
		const struct dtype_member *member = &type->members[i];
		uint32_t shape[] = { member->offset, member->bits, member->bit };

		hash = hash_text_or_null(member->name,
					 hash_bytes(shape, sizeof(shape), hash));
	}
	if (type->kind == DTYPE_FUNCTION && type->member_count)
		hash = hash_bytes(type->params, type->member_count * sizeof(uint32_t),
				  hash);
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
	uint64_t hash = content_hash(type);
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
	struct dtype *type = at(types, id);

	if (id && !type->name && name)
		type->name = arena_strdup(types->arena, name);
}

void dtype_set_target(struct dtypes *types, uint32_t id, uint32_t target)
{
	if (id && id < types->count)
		at(types, id)->target = target;
}

const struct dtype *dtype_get(const struct dtypes *types, uint32_t id)
{
	return at(types, id);
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
	if (at(types, id)->target == DTYPE_UNRESOLVED) {
		struct dtype_ref ref = at(types, id)->ref;

		at(types, id)->target = 0;
		at(types, id)->target = fetch(types, &ref);
	}
	return at(types, id)->target;
}

uint32_t dtype_member_type(struct dtypes *types, uint32_t id, uint32_t index)
{
	struct dtype *type = at(types, id);

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
	if (at(types, id)->kind != DTYPE_INCOMPLETE)
		return id;

	uint32_t whole = dtype_target(types, id);

	return whole ? whole : id;
}

bool dtype_is_aggregate(const struct dtypes *types, uint32_t id)
{
	uint8_t kind = at(types, id)->kind;

	return kind == DTYPE_STRUCT || kind == DTYPE_UNION;
}

/* Room that a member takes: an array at the end may be flexible, whatever it claims. */
static uint64_t member_room(struct dtypes *types, uint32_t id, uint32_t index)
{
	const struct dtype *type = at(types, id);
	const struct dtype_member *member = &type->members[index];
	const struct dtype *inner = at(types, dtype_member_type(types, id, index));

	if (member->bits)
		return (member->bit + member->bits + 7u) / 8;
	if (type->kind == DTYPE_STRUCT && inner->kind == DTYPE_ARRAY &&
	    index == type->member_count - 1 && inner->count <= 1)
		return DTYPE_MAX_BYTES;
	return inner->bytes;
}

static uint64_t element_bytes(struct dtypes *types, uint32_t id)
{
	return at(types, dtype_whole(types, dtype_target(types, id)))->bytes;
}

struct walk {
	struct dtypes *types;
	struct dtype_leaves *leaves;
	uint32_t bytes;
	unsigned steps;
};

#define MAX_STEPS 4096 /* members looked at for one question */

static void raise(struct dtype_leaves *leaves, enum dtype_fit fit)
{
	if (leaves->fit < fit)
		leaves->fit = fit;
}

static void leaf_found(struct walk *walk, uint32_t id)
{
	if (walk->leaves->count < DTYPE_MAX_LEAVES)
		walk->leaves->types[walk->leaves->count++] = id;
}

static void walk_leaves(struct walk *walk, uint32_t id, uint64_t offset, unsigned depth);

static void walk_array(struct walk *walk, uint32_t id, uint64_t offset, unsigned depth)
{
	const struct dtype *type = at(walk->types, id);
	uint64_t bytes = element_bytes(walk->types, id);

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

static void walk_members(struct walk *walk, uint32_t id, uint64_t offset, unsigned depth)
{
	const struct dtype *type = at(walk->types, id);

	for (uint32_t i = 0; i < type->member_count; i++) {
		const struct dtype_member *member = &type->members[i];

		if (++walk->steps > MAX_STEPS)
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
		if (offset - member->offset >= member_room(walk->types, id, i))
			continue;
		if (member->bits)
			raise(walk->leaves, DTYPE_STARTS);
		else
			walk_leaves(walk, dtype_member_type(walk->types, id, i),
				    offset - member->offset, depth + 1);
	}
}

static void walk_leaves(struct walk *walk, uint32_t id, uint64_t offset, unsigned depth)
{
	const struct dtype *type = at(walk->types, id);

	if (depth > DTYPE_MAX_DEPTH || ++walk->steps > MAX_STEPS)
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
	struct leaf_key key = { .offset = offset, .id = id, .bytes = bytes };
	struct dtype_leaves **found = map_find(types->leaves, &key);

	if (found)
		return *found;

	struct dtype_leaves leaves = { 0 };
	struct walk walk = { .types = types, .leaves = &leaves, .bytes = bytes };

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

/* The member to name at @offset: the best fit; none when several are as good. */
struct choice {
	uint32_t index, equals;
	int rank;
};

static int member_rank(struct dtypes *types, uint32_t id, uint32_t i, uint64_t offset,
		       uint32_t bytes)
{
	const struct dtype_member *member = &at(types, id)->members[i];
	uint64_t into = offset - member->offset;

	if (member->bits) {
		/* exact when nothing but this field lies in the access */
		bool is_all = !into && !(member->bit % 8) && member->bits == bytes * 8;

		return is_all ? DTYPE_EXACT : DTYPE_STARTS;
	}
	return dtype_leaves_at(types, dtype_member_type(types, id, i), (int64_t)into,
			       bytes)
		->fit;
}

static struct choice choose_member(struct dtypes *types, uint32_t id, uint64_t offset,
				   uint32_t bytes)
{
	const struct dtype *type = at(types, id);
	struct choice choice = { .rank = -1 };

	for (uint32_t i = 0; i < type->member_count && i < MAX_STEPS; i++) {
		const struct dtype_member *member = &type->members[i];
		bool is_bit_field = member->bits && member->offset < offset + bytes;

		if (member->offset > offset && !is_bit_field) {
			if (type->kind == DTYPE_STRUCT)
				break;
			continue;
		}
		if (member->offset <= offset &&
		    offset - member->offset >= member_room(types, id, i))
			continue;

		int rank = member->offset > offset
				   ? DTYPE_WITHIN
				   : member_rank(types, id, i, offset, bytes);

		if (rank > choice.rank)
			choice = (struct choice){ .index = i, .equals = 1, .rank = rank };
		else if (rank == choice.rank && type->kind == DTYPE_UNION)
			choice.equals++;
	}
	return choice;
}

static void add_name(struct str *path, const char *name)
{
	if (path->length)
		str_add_char(path, '.');
	str_add(path, name);
}

void dtype_path(struct dtypes *types, uint32_t id, uint64_t offset, uint32_t bytes,
		struct str *path, struct dtype_place *ret_place)
{
	struct dtype_place place = { .bytes = at(types, id)->bytes };
	uint64_t rest = offset;

	for (unsigned depth = 0; depth < DTYPE_MAX_DEPTH; depth++) {
		const struct dtype *type = at(types, id);

		if (type->kind == DTYPE_ARRAY) {
			uint64_t each = element_bytes(types, id);

			if (!each)
				break;
			str_add(path, "[]");
			place.offset += rest / each * each;
			rest %= each;
			id = dtype_whole(types, dtype_target(types, id));
			place.bytes = each;
			continue;
		}
		if (type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION)
			break;

		struct choice choice = choose_member(types, id, rest, bytes);

		if (choice.rank < 0)
			break;
		if (choice.equals > 1) {
			place.is_ambiguous = true;
			break;
		}

		const struct dtype_member *member = &type->members[choice.index];

		if (member->name)
			add_name(path, member->name);
		place.offset += member->offset;
		rest = rest > member->offset ? rest - member->offset : 0;
		id = dtype_member_type(types, id, choice.index);
		place.bytes = at(types, id)->bytes;
		place.is_known = true;
		if (member->bits) {
			place.bytes = (member->bit + member->bits + 7u) / 8;
			break;
		}
	}
	*ret_place = place;
}

void dtype_normal(struct dtypes *types, uint32_t *id, int64_t *offset)
{
	*id = dtype_whole(types, *id);
	for (unsigned depth = 0;
	     depth < DTYPE_MAX_DEPTH && at(types, *id)->kind == DTYPE_ARRAY; depth++) {
		int64_t each = (int64_t)element_bytes(types, *id);

		if (!each)
			return;
		*offset = (*offset % each + each) % each;
		*id = dtype_whole(types, dtype_target(types, *id));
	}
}

bool dtype_covers(struct dtypes *types, uint32_t id, int64_t offset)
{
	const struct dtype *type = at(types, id);

	if (offset < 0)
		return false;
	if ((uint64_t)offset < type->bytes)
		return true;
	if (type->kind != DTYPE_STRUCT || !type->member_count)
		return false;

	/* nested: a struct whose last member ends in a flexible array */
	uint32_t last = type->member_count - 1;
	const struct dtype *inner = at(types, dtype_member_type(types, id, last));

	return inner->kind == DTYPE_ARRAY && inner->count <= 1;
}

static bool contains(struct walk *walk, uint32_t id, int64_t offset,
		     const struct leaf_key *want, unsigned depth)
{
	struct dtypes *types = walk->types;
	const struct dtype *type = at(types, id);

	if (depth > DTYPE_MAX_DEPTH || ++walk->steps > MAX_STEPS || offset < 0)
		return false;
	if (id == want->id && offset == want->offset)
		return true;
	if (type->kind == DTYPE_ARRAY) {
		int64_t each = (int64_t)element_bytes(types, id);

		return each && contains(walk, dtype_whole(types, dtype_target(types, id)),
					offset % each, want, depth + 1);
	}
	if (type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION)
		return false;
	for (uint32_t i = 0; i < type->member_count; i++) {
		const struct dtype_member *member = &type->members[i];

		if (++walk->steps > MAX_STEPS)
			return false;
		if ((int64_t)member->offset > offset) {
			if (type->kind == DTYPE_STRUCT)
				return false;
			continue;
		}
		if (member->bits ||
		    (uint64_t)(offset - member->offset) >= member_room(types, id, i))
			continue;
		if (contains(walk, dtype_member_type(types, id, i),
			     offset - member->offset, want, depth + 1))
			return true;
	}
	return false;
}

bool dtype_contains(struct dtypes *types, uint32_t outer, int64_t offset, uint32_t inner,
		    int64_t inner_offset)
{
	struct walk walk = { .types = types };
	struct leaf_key want = { .id = inner, .offset = inner_offset };

	return contains(&walk, outer, offset, &want, 0);
}

struct each {
	struct dtypes *types;
	struct str path;
	size_t left;
	dtype_leaf_fn each;
	void *ctx;
};

static void each_leaf(struct each *each, uint32_t id, uint64_t offset, unsigned depth)
{
	struct dtypes *types = each->types;
	const struct dtype *type = at(types, id);

	if ((type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION) ||
	    depth >= DTYPE_MAX_DEPTH)
		return;
	for (uint32_t i = 0; i < type->member_count && each->left; i++) {
		const struct dtype_member *member = &type->members[i];
		uint32_t inner = dtype_member_type(types, id, i);
		size_t length = each->path.length;
		uint64_t bytes = member->bits ? member_room(types, id, i)
					      : at(types, inner)->bytes;

		if (member->name)
			add_name(&each->path, member->name);
		if (!member->bits && dtype_is_aggregate(types, inner)) {
			each_leaf(each, inner, offset + member->offset, depth + 1);
		} else {
			if (at(types, inner)->kind == DTYPE_ARRAY)
				str_add(&each->path, "[]");
			each->each(each->ctx, str_text(&each->path),
				   offset + member->offset, bytes);
			each->left--;
		}
		if (each->path.data) {
			each->path.length = length;
			each->path.data[length] = '\0';
		}
	}
}

void dtype_each_leaf(struct dtypes *types, uint32_t id, size_t limit, dtype_leaf_fn each,
		     void *ctx)
{
	struct each walk = { .types = types, .left = limit, .each = each, .ctx = ctx };

	each_leaf(&walk, id, 0, 0);
	str_fini(&walk.path);
}
