/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_FACTS_H
#define TYPES_FACTS_H

/*
 * Facts about the values of one function: "node points to byte @offset of a @type".
 * They hang on the nodes of bin/flow, so a pointer and everything derived from it by
 * constants share them; the offset may be negative or lie several elements ahead.
 */

#include "bin/flow.h"
#include "types/module.h"
#include "types/seed.h"
#include "types/unit.h"

#define FACTS_MAX	 12 /* of one node; further ones are dropped */
#define FACTS_MAX_SAME	 4  /* of one type at unrelated offsets */
#define FACTS_MAX_ROUNDS 12
#define CANDIDATES_MAX	 48

/* How a fact was found, most direct first. */
enum origin {
	ORIGIN_DWARF,	/* a variable's location */
	ORIGIN_PARAM,	/* a parameter or a call's result; a global's address */
	ORIGIN_LOAD,	/* the type of the field it was loaded from */
	ORIGIN_SUM,	/* pointer arithmetic; one of a union's pointers; learnt */
	ORIGIN_PHI,	/* merged from predecessors */
	ORIGIN_ARG,	/* passed as such an argument later */
	ORIGIN_STORE,	/* stored into such a field later */
	ORIGIN_BACK,	/* what it merges into has it */
	ORIGIN_COMPARE, /* compared with such a pointer; one of several guesses */
	ORIGIN_LAYOUT,	/* from layouts only */
};

struct clue {
	int64_t offset;
	uint32_t type;
	uint8_t origin;
	bool is_direct; /* may flow backwards through merges */
};

struct clue_set {
	struct clue *data;
	uint8_t count, room;
	uint8_t stamp; /* round of the last change */
};

/* A variable of debug information in a register here. */
struct attached {
	struct flow_ref ref;
	int64_t offset;
	uint32_t type;
};

/* The same, for the base register of one access at its very pc. */
struct direct {
	uint32_t access, type;
	int64_t offset;
};

/* A pointer to the frame was passed as a pointer to @type. */
struct frame_object {
	int64_t offset;
	uint32_t type;
};

/* What is accessed through a node at constant offsets. */
struct touched {
	uint32_t node;
	int64_t offset;
	uint32_t width;
};

/* A load from a void pointer or a union of pointers, to learn from. */
struct asked {
	uint32_t node;
	struct unit_place place;
};

struct facts {
	struct recover *recover;
	struct code *code;
	struct unit *unit;
	struct flow *flow;
	struct seed seed;
	struct arena *arena;
	struct flow_frame *frames;
	struct clue_set *sets; /* by node */
	struct dwarf_proto proto;
	VEC(struct attached) attached;
	VEC(struct attached) named; /* variables that are no pointers; sorted by node */
	VEC(struct direct) direct;  /* in order of accesses */
	VEC(struct frame_object) frame_objects;
	VEC(struct touched) touched; /* sorted by node */
	VEC(struct asked) asked;
	unsigned round;
	bool has_changed, is_merging;
};

/* facts_find() - run the analysis of recover->code; the result is in recover->facts. */
bool facts_find(struct recover *recover);
void facts_free(struct facts *facts); /* NULL is fine */

/* facts_callee() - by what it calls, else by what the call site says. */
bool facts_callee(struct recover *recover, const struct insn *insn,
		  struct dwarf_proto *ret_proto);

void facts_add(struct facts *facts, uint32_t node, const struct clue *fact);

struct seed_point facts_point(const struct facts *facts, uint32_t insn);

/* A possible object behind an address. */
struct candidate {
	uint32_t type;
	int64_t offset; /* of the access in it; not yet checked against its size */
	uint8_t origin;
	bool is_indexed, is_direct;
};

struct candidates {
	struct candidate data[CANDIDATES_MAX];
	size_t count;
};

/* facts_candidates() - for the address base + index * scale + disp of @access. */
void facts_candidates(struct facts *facts, const struct flow_access *access,
		      struct candidates *ret_candidates);

/* facts_unbias() - a constant folded into the index moves the displacement off the
 * array: the offset with it put back, if an array is where it leads. */
int64_t facts_unbias(struct facts *facts, uint32_t type, int64_t offset,
		     const struct flow_access *access);

/* facts_fix() - bring the offset into the type; whole elements may be skipped only where
 * the type is stepped through. Return false when it cannot be. */
bool facts_fix(struct facts *facts, uint32_t *type, int64_t *offset, bool *ret_wrapped);

/* facts_best() - the candidates that a typed load or store goes by, settled. */
void facts_best(struct facts *facts, const struct flow_access *access,
		struct candidates *ret_candidates);

/* facts_fits() - everything touched through @node would fit a @type at offset 0, at least
 * as well as @fit. */
bool facts_fits(struct facts *facts, uint32_t node, uint32_t type, enum dtype_fit fit);
bool facts_is_touched(const struct facts *facts, uint32_t node);
const struct touched *facts_touched(const struct facts *facts, uint32_t node,
				    size_t *ret_count);

/* facts_propagate() - to the fixpoint; facts_propagate.c */
void facts_propagate(struct facts *facts);
/* facts_vote() - tell the unit what pointers turned out to be; facts_learn.c */
void facts_vote(struct facts *facts);
/* facts_load() - what a load through @type at @offset gives; facts_learn.c */
void facts_load(struct facts *facts, uint32_t node, const struct candidate *from);
/* facts_decide() - a decision for every memory instruction; decide.c */
void facts_decide(struct facts *facts);

#endif
