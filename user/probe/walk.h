/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_WALK_H
#define PROBE_WALK_H

/*
 * Makes the kernel walk over all threads of the targets, see bpf/walk.bpf.c; what it
 * finds comes through the ring: ABI_SLEEP, ticks marked ASLEEP, levels. The walk runs in
 * this process and is part of its CPU time; it is rarer where it takes longer, so that it
 * costs at most WALK_SHARE of one CPU.
 */

#include "core/cleanup.h"
#include "core/err.h"
#include "probe/loader.h"

#define WALK_SHARE 0.002

struct walk;

/* walk_open() - at most @hz times a second. Borrows @fds. */
struct err *walk_open(const struct probe_fds *fds, uint32_t hz, struct walk **ret_walk);
void walk_free(struct walk *walk); /* NULL is fine */
CLEANUP_DEFINE(walk_free, struct walk *)

/* walk_step() - walk if it is time to; call it often. */
struct err *walk_step(struct walk *walk, uint64_t now_ns);

#endif
