/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_DTYPE_H
#define BIN_DTYPE_H

/*
 * Types of one module, interned: a type is a small id, and identical structs of
 * different compilation units are one id (by kind, name, size, members' names and
 * offsets). Typedefs and qualifiers are gone; an untagged struct bears the name of its
 * typedef. Whoever reads the debug information puts types in; what a member or a
 * pointer refers to is fetched through a callback the first time somebody asks, so a
 * unit that mentions one pointer does not drag in a thousand types.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/str.h"
#include "core/vec.h"

#define DTYPE_MAX_TYPES	  (8u << 20)
#define DTYPE_MAX_MEMBERS 65536
#define DTYPE_MAX_DEPTH	  24 /* of nesting that any walk follows */
#define DTYPE_MAX_BYTES	  (1ull << 40)

enum dtype_kind {
	DTYPE_VOID, /* id 0; also what cannot be told */
	DTYPE_BASE,
	DTYPE_ENUM,
	DTYPE_POINTER,
	DTYPE_FUNCTION,
	DTYPE_ARRAY, /* all dimensions at once */
	DTYPE_STRUCT,
	DTYPE_UNION,
	DTYPE_INCOMPLETE, /* declared only; target: the definition, 0 when there is none */
};

/* Where the debug information describes a type; opaque here. */
struct dtype_ref {
	const void *die, *unit;
};

struct dtype_member {
	const char *name; /* NULL for an anonymous member and for a base class */
	uint32_t offset;  /* bytes; of a bit-field: of the first byte it touches */
	uint16_t bits;	  /* width of a bit-field, 0: an ordinary member */
	uint16_t bit;	  /* its first bit, counted from @offset */
	uint32_t type;	  /* DTYPE_UNRESOLVED until dtype_member_type() */
	struct dtype_ref ref;
};

#define DTYPE_UNRESOLVED UINT32_MAX

struct dtype {
	uint8_t kind; /* enum dtype_kind */
	bool is_float, is_untagged, is_noreturn, is_variadic;
	const char *name; /* "struct robj", "dictEntry", "int"; NULL when it has none */
	uint64_t bytes;
	uint64_t count;	 /* elements of an array; 0 of a flexible one */
	uint32_t target; /* pointee, element, result; DTYPE_UNRESOLVED until asked */
	uint32_t member_count; /* members; parameters of a function */
	uint32_t line;
	union {
		struct dtype_member *members; /* sorted by offset */
		const uint32_t *params;
	};
	struct dtype_ref ref; /* of the target */
	uint64_t hash;
};

struct dtypes;

/* dtype_fetch_fn - the id of the type described at @ref; 0 when it is void or broken. */
typedef uint32_t (*dtype_fetch_fn)(void *ctx, const struct dtype_ref *ref);

struct dtypes *dtypes_new(dtype_fetch_fn fetch, void *ctx);
void dtypes_free(struct dtypes *types); /* NULL is fine */
CLEANUP_DEFINE(dtypes_free, struct dtypes *)
uint32_t dtypes_count(const struct dtypes *types);
size_t dtypes_bytes(const struct dtypes *types);

/**
 * dtype_add() - intern @type; names and arrays are copied.
 * An equal type that is there already is returned instead.
 */
uint32_t dtype_add(struct dtypes *types, const struct dtype *type);
/* dtype_set_name() - for an untagged struct that a typedef names; the first one stays. */
void dtype_set_name(struct dtypes *types, uint32_t id, const char *name);
void dtype_set_target(struct dtypes *types, uint32_t id, uint32_t target);

/* dtype_get() - valid until dtypes_free(). An unknown id is void. */
const struct dtype *dtype_get(const struct dtypes *types, uint32_t id);
/* dtype_target() - pointee, element, result or definition, fetched when need be. */
uint32_t dtype_target(struct dtypes *types, uint32_t id);
uint32_t dtype_member_type(struct dtypes *types, uint32_t id, uint32_t index);
/* dtype_whole() - @id, or the definition of an incomplete type. */
uint32_t dtype_whole(struct dtypes *types, uint32_t id);
bool dtype_is_aggregate(const struct dtypes *types, uint32_t id); /* struct or union */

/* How well an access fits what lies at an offset, worst first. */
enum dtype_fit {
	DTYPE_OUTSIDE, /* beyond the type, or padding */
	DTYPE_WITHIN,  /* inside an object, but not at the start of a leaf */
	DTYPE_STARTS,  /* a leaf starts or covers it; widths differ */
	DTYPE_EXACT,   /* a leaf starts there and has this width */
};

#define DTYPE_MAX_LEAVES 12

struct dtype_leaves {
	enum dtype_fit fit;
	uint32_t count; /* leaf types that start at the offset; unions have several */
	uint32_t types[DTYPE_MAX_LEAVES];
};

/* dtype_leaves_at() - cached. @bytes: width of the access. */
const struct dtype_leaves *dtype_leaves_at(struct dtypes *types, uint32_t id,
					   int64_t offset, uint32_t bytes);

/**
 * struct dtype_place - the field path at an offset.
 * Stops at a union whose members all fit equally: @is_ambiguous.
 */
struct dtype_place {
	uint64_t offset, bytes; /* of the named field, in the outermost type */
	bool is_ambiguous, is_known;
};

void dtype_path(struct dtypes *types, uint32_t id, uint64_t offset, uint32_t bytes,
		struct str *path, struct dtype_place *ret_place);

/* dtype_normal() - an array and an offset into it become its element and the rest. */
void dtype_normal(struct dtypes *types, uint32_t *id, int64_t *offset);
/* dtype_covers() - @offset lies in the type, or in its flexible array at the end. */
bool dtype_covers(struct dtypes *types, uint32_t id, int64_t offset);
/* dtype_contains() - an @outer at @offset has an @inner at byte @inner_offset there. */
bool dtype_contains(struct dtypes *types, uint32_t outer, int64_t offset, uint32_t inner,
		    int64_t inner_offset);

/* dtype_innermost() - the smallest struct or union (@only_unions: union) around the
 * offset; the type itself when nothing smaller is. */
void dtype_innermost(struct dtypes *types, bool only_unions, uint32_t *id,
		     int64_t *offset);
/* dtype_in_array() - @offset lies in an array member of the struct, at any depth. */
bool dtype_in_array(struct dtypes *types, uint32_t id, int64_t offset);
/* dtype_array_near() - bring @offset into the closest array member that an index with this
 * @step runs through, at most some elements away; false when there is none. */
bool dtype_array_near(struct dtypes *types, uint32_t id, int64_t *offset, uint64_t step);
/* dtype_array_steps() - sizes of the elements of all arrays inside, cached. */
const uint32_t *dtype_array_steps(struct dtypes *types, uint32_t id, size_t *ret_count);

/* dtype_leaf_fn - one leaf field in order of offset: "a.b[]"; of a bit-field with width
 * and first bit: "flags:3@5". */
typedef void (*dtype_leaf_fn)(void *ctx, const char *path, uint64_t offset,
			      uint64_t bytes);
/* dtype_each_leaf() - up to @limit. */
void dtype_each_leaf(struct dtypes *types, uint32_t id, size_t limit, dtype_leaf_fn each,
		     void *ctx);

#endif
