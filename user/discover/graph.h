/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DISCOVER_GRAPH_H
#define DISCOVER_GRAPH_H

/*
 * Who calls whom, by direct calls and jumps, and from where one gets to a function that
 * can put the thread to sleep.
 */

#include "bin/insn.h"
#include "core/arena.h"
#include "core/vec.h"
#include "discover/discover.h"

#define GRAPH_NONE UINT32_MAX
#define GRAPH_MAX_REACH \
	6 /* calls to a function that blocks; what is farther does not count */
#define GRAPH_MAX_CALLS (1u << 24)

struct graph_function {
	const struct elf_function *symbol; /* a hidden one's name is "" */
	const char *name;		   /* for people */
	uint32_t first_call, call_count;
	uint32_t first_caller, caller_count;
	uint32_t next; /* the call that leads to what blocks; GRAPH_NONE: none does */
	uint8_t reach; /* calls up to there; 0: it blocks itself */
	bool is_read;  /* while it is built */
};

struct graph {
	VEC(struct graph_function) functions; /* by va */
	VEC(uint32_t) calls;		      /* callees, function by function */
	VEC(uint32_t) callers;
};

/* graph_build() - @arena: for names. @ops: for progress. */
struct err *graph_build(const struct discover_files *files,
			const struct elf_functions *symbols, struct insn_decoder *decoder,
			struct arena *arena, const struct discover_ops *ops, void *ctx,
			struct graph *graph);
void graph_fini(struct graph *graph);

/* graph_at() - the function that begins at @va, GRAPH_NONE when none does. */
uint32_t graph_at(const struct graph *graph, uint64_t va);

/* graph_blocks() - does it block, or lead to one that does? */
static inline bool graph_blocks(const struct graph *graph, uint32_t function)
{
	const struct graph_function *at = &graph->functions.data[function];

	return at->reach == 0 || at->next != GRAPH_NONE;
}

/* graph_is_free(), graph_is_alloc() - the C library's, C++'s and the kernel's own. */
bool graph_is_free(const char *name);
bool graph_is_alloc(const char *name);

#endif
