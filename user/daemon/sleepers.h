/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SLEEPERS_H
#define DAEMON_SLEEPERS_H

/*
 * Who sleeps inside what the spec files name: makes the kernel walk over the threads
 * (probe/walk.h) and tells the diagnosis which waits and holdings a sleeper's stack is in.
 */

#include "core/cleanup.h"
#include "daemon/broker.h"
#include "daemon/diagnosis.h"
#include "daemon/probes.h"
#include "daemon/stacks.h"

struct sleepers_config {
	struct broker *broker; /* borrowed, like all here */
	uint32_t hz;
	struct probes *probes; /* NULL: none, only locks of libc are told */
	struct diagnosis *diagnosis;
};

struct sleepers;

struct sleepers *sleepers_new(const struct sleepers_config *config);
void sleepers_free(struct sleepers *sleepers); /* NULL is fine */
CLEANUP_DEFINE(sleepers_free, struct sleepers *)

/* sleepers_step() - often; a walk that fails is logged and is the last one. */
void sleepers_step(struct sleepers *sleepers);

/* sleepers_place() - the stack of a sleeper was unwound. */
void sleepers_place(struct sleepers *sleepers, const struct stacks_sleep *sleep);

#endif
