/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_UNIT_H
#define TYPES_UNIT_H

/*
 * What one compilation unit can see and has shown: its types, which of them are stepped
 * through as arrays, which end in a flexible array, which lie inside which, and what
 * void pointers and unions of pointers in them turned out to point to. An answer
 * depends on the module and its own unit only, so that a single question and the
 * whole-module pass agree.
 */

#include "core/map.h"
#include "types/module.h"

struct unit_place {
	uint32_t type;
	int64_t offset;
};

/* A struct that ends in an array of single elements with no length. */
struct unit_flex {
	uint32_t element, type;
	int64_t offset; /* of the array */
};

/* @inner lies in @outer at @offset. */
struct unit_inner {
	uint32_t inner, outer;
	int64_t offset;
};

struct unit {
	uint32_t number;
	bool has_types, has_containers, is_learnt;
	bool is_frozen; /* learnt all it will: answers must not depend on their order */
	struct map *visible; /* type id -> char */
	struct map *by_name; /* hash of the name -> type id */
	struct map *stepped; /* type id -> char: elements of arrays */
	VEC(struct unit_flex) flex;
	VEC(struct unit_inner) inner; /* sorted by type */
	struct map *votes;	      /* (place, pointee) -> count */
	struct map *learnt;	      /* place -> pointee */
};

struct unit *unit_new(uint32_t number);
void unit_free(struct unit *unit); /* NULL is fine */

/* unit_load() - visible types, stepped ones, flexible headers; once. */
void unit_load(struct recover *recover, struct unit *unit);
/* unit_own() - the unit's own struct of that name where @type is another unit's (or only
 * declared): structs of one name may differ between units. */
uint32_t unit_own(struct recover *recover, struct unit *unit, uint32_t type);
bool unit_sees(const struct unit *unit, uint32_t type);
bool unit_steps(const struct unit *unit, uint32_t type);
void unit_add_step(struct unit *unit, uint32_t type);
/* unit_containers() - where objects of @type lie inside visible ones; built on demand. */
const struct unit_inner *unit_containers(struct recover *recover, struct unit *unit,
					 uint32_t type, size_t *ret_count);

/* unit_vote() - somebody used the pointer at @place as a pointer to @pointee. */
void unit_vote(struct unit *unit, struct unit_place place, uint32_t pointee);
/* unit_count_votes() - keep what at least nine of ten agree on. */
void unit_count_votes(struct unit *unit);
/* unit_pointee() - 0 when nothing was learnt. */
uint32_t unit_pointee(const struct unit *unit, struct unit_place place);

#endif
