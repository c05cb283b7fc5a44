/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_SWEEP_H
#define STORE_SWEEP_H

/*
 * Removes what no sample refers to any more: stacks, sites, functions, answers, types,
 * processes, modules, runs. One pass is many small steps.
 */

#include "store/db.h"

#define SWEEP_MAX_MARKS (2u * 1024 * 1024) /* entries in memory; beyond, no sweep */

struct sweep;

/* sweep_new() - begin a pass at @now_ns (realtime); closed runs without samples go when
 * they ended before @runs_before_ns. */
struct err *sweep_new(struct db *db, uint64_t now_ns, uint64_t runs_before_ns,
		      struct sweep **ret_sweep);
void sweep_free(struct sweep *sweep); /* NULL is fine */
CLEANUP_DEFINE(sweep_free, struct sweep *)

/* sweep_step() - one transaction. @ret_done: the pass is over. @ret_removed: rows. */
struct err *sweep_step(struct sweep *sweep, bool *ret_done, uint64_t *ret_removed);

#endif
