/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SELECT_H
#define DAEMON_SELECT_H

/*
 * What is watched: a target of the settings or of a command, turned into the kernel's
 * filter and into a snapshot of the processes that are there already.
 */

#include "daemon/config.h"
#include "daemon/snapshot.h"
#include "probe/ring.h"

#define SELECT_MAX_DEPTH 32 /* folders below the cgroup mount */

/**
 * select_add() - watch @target from now on.
 * The filter is set before the snapshot is taken, so that nothing falls between: a
 * process that starts meanwhile is announced by its own records.
 * Errors: ERR_NOT_FOUND names what is not there.
 */
struct err *select_add(struct ring *ring, struct snapshot *snapshot,
		       const struct target *target);

/* select_del() - stop watching; children that joined go when they end. */
struct err *select_del(struct ring *ring, const struct target *target);

#endif
