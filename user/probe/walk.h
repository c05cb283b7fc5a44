/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_WALK_H
#define PROBE_WALK_H

/*
 * Makes the kernel walk over all threads of the targets, see bpf/walk.bpf.c; what it
 * finds comes through the ring: ABI_SLEEP, ticks marked ASLEEP, levels. The walk runs in
 * the process that reads it and is part of its CPU time; it is rarer where it takes
 * longer, so that it costs at most WALK_SHARE of one CPU.
 */

#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"

#define WALK_SHARE 0.002

/* An iterator goes over the threads once: each walk needs a new one. */
typedef struct err *(*walk_begin_fn)(void *ctx, int *ret_fd);

struct walk;

/* walk_new() - at most @hz times a second. @begin: loader_walk(), perhaps elsewhere. */
struct walk *walk_new(walk_begin_fn begin, void *ctx, uint32_t hz);
void walk_free(struct walk *walk); /* NULL is fine */
CLEANUP_DEFINE(walk_free, struct walk *)

/* walk_step() - walk if it is time to; call it often. */
struct err *walk_step(struct walk *walk, uint64_t now_ns);

#endif
