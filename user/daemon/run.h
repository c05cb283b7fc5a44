/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_RUN_H
#define DAEMON_RUN_H

/* What a run knows of itself: the head of a recording, and its row in the store. */

#include "event/stream.h"
#include "model/sink.h"

/* run_describe() - this machine, now. */
void run_describe(struct stream_meta *ret_meta, const char *target, const char *sources);

/* run_put() - open the run (@end_ns 0) or close it (@end_ns realtime). */
void run_put(struct sink *sink, uint64_t run_id, const struct stream_meta *meta,
	     uint64_t end_ns);

#endif
