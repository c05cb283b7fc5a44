/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_WORKERS_H
#define DAEMON_WORKERS_H

/*
 * The workers of the daemon: one per class, spawned by the broker when first needed,
 * again after a death, with a back-off. They end with the socket.
 */

#include "core/loop.h"
#include "daemon/broker.h"
#include "daemon/jobs.h"

#define WORKERS_BACKOFF_NS     500000000ull /* after a death, doubling */
#define WORKERS_BACKOFF_MAX_NS 60000000000ull

struct workers;

/* @died: a worker of @class is gone and its jobs have failed. */
struct workers *workers_new(struct loop *loop, struct broker *broker,
			    void (*died)(void *ctx, enum job_class class), void *ctx);
void workers_free(struct workers *workers); /* NULL is fine; pending jobs fail */
CLEANUP_DEFINE(workers_free, struct workers *)

/* workers_allow_fetch() - JOB_FETCH is refused until debuginfod is configured. */
void workers_allow_fetch(struct workers *workers, bool allow);

/* workers_source() - borrowed; for the parts that submit jobs. */
const struct job_source *workers_source(struct workers *workers);

/* workers_pump() - write what was submitted, reap who died. After every round. */
void workers_pump(struct workers *workers);

/* workers_error() - why the last spawn failed, "" when it did not; borrowed. */
const char *workers_error(const struct workers *workers);

#endif
