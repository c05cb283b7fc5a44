/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DISCOVER_VERIFY_H
#define DISCOVER_VERIFY_H

/* What the machine code of one function does, as far as the four events ask. */

#include "bin/flow.h"
#include "discover/graph.h"

#define VERIFY_ARGS	 6
#define VERIFY_MAX_INSNS 200000 /* of one function */

/* Bits by argument; bit VERIFY_ARGS: memory behind a global. */
#define VERIFY_GLOBAL VERIFY_ARGS

struct verify_facts {
	bool is_known;		     /* the code could be read */
	uint32_t reads, writes;	     /* memory behind them is read or written */
	uint32_t counts;	     /* some word behind them is changed in place */
	uint32_t links;		     /* a pointer is stored behind them */
	uint32_t passed;	     /* handed to another function as it is */
	bool gives_value;	     /* some return has a value that is no constant */
	bool gives_call, gives_load; /* it is what a call gave, or was in memory */
	uint32_t given_by;	     /* the callee, GRAPH_NONE unknown */
	bool has_slow_path;	     /* a call that can block, on one of several paths */
	uint32_t slow_call;	     /* the callee there, or where all paths lead to */
	uint64_t slow_va;
};

struct verify;

struct verify *verify_new(const struct discover_files *files, const struct graph *graph,
			  struct insn_decoder *decoder);
void verify_free(struct verify *verify); /* NULL is fine */
CLEANUP_DEFINE(verify_free, struct verify *)

void verify_function(struct verify *verify, uint32_t function,
		     struct verify_facts *ret_facts);

/* verify_used_after() - call sites in @caller where what was handed to @callee as argument
 * @arg is accessed again right behind the call; and all such call sites. */
struct verify_sites {
	unsigned sites, used;
};
void verify_used_after(struct verify *verify, uint32_t caller, uint32_t callee,
		       unsigned arg, struct verify_sites *sites);

#endif
