/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_JOBS_H
#define DAEMON_JOBS_H

/*
 * Where the daemon's parts get their worker from. Workers die; whoever owns them
 * (worker.c) spawns the next one, so a part asks for the client each time and never
 * keeps it.
 */

#include "job/job.h"

/**
 * struct job_source - the workers of the daemon.
 * @client: the living worker of @class, spawned when needed; NULL when there is none
 *	and cannot be one right now (just died, back-off, JOB_FETCH not configured).
 */
struct job_source {
	struct job_client *(*client)(void *ctx, enum job_class class);
	void *ctx;
};

static inline struct job_client *job_source_client(const struct job_source *jobs,
						   enum job_class class)
{
	return jobs->client(jobs->ctx, class);
}

/* feed_fn - an event made by the daemon itself: to the recorder, then to live_feed(). */
struct event;
typedef void (*feed_fn)(void *ctx, struct event *event);

#endif
