/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_EXPLAIN_H
#define DAEMON_EXPLAIN_H

/*
 * Addresses that samples named, explained once each: function and line (FACT_FUNCTION,
 * FACT_SITE), type and field (FACT_TYPE, FACT_FIELD, FACT_ANSWER). Facts are watched on
 * their way to the store; batches per module go to the workers.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "daemon/jobs.h"
#include "daemon/modules.h"
#include "model/sink.h"

#define EXPLAIN_MAX_ASKED   262144 /* remembered; then all may be asked again */
#define EXPLAIN_MAX_WAITING 262144 /* not yet sent */
#define EXPLAIN_MAX_MODULES 16384
#define EXPLAIN_BATCH	    512 /* addresses per job */
#define EXPLAIN_FLYING	    8	/* jobs in flight per class */
#define EXPLAIN_POISON	    2	/* workers a module may kill before it is left alone */
#define EXPLAIN_RETRY_NS    2000000000ull

#define EXPLAIN_ANALYSER ANALYSER_VERSION /* stands in every answer */

/**
 * struct explain_config - copied; pointers are borrowed.
 * @no_types: symbols and lines only.
 */
struct explain_config {
	const struct job_source *jobs;
	struct modules *modules;
	struct sink *sink;
	bool no_types;
};

struct explain;
struct explain *explain_new(const struct explain_config *config);
void explain_free(struct explain *explain); /* NULL is fine; before the workers go */
CLEANUP_DEFINE(explain_free, struct explain *)

/* explain_note() - a fact passes on its way to the store: ACCESS wants a symbol and an
 * answer, STACK wants symbols. Others are ignored. */
void explain_note(struct explain *explain, const struct fact *fact);

/* explain_want() - one address, as the store found it without an answer. */
void explain_want(struct explain *explain, uint64_t module_id, uint64_t va, bool skid,
		  bool answer);

/* explain_known() - the store has it already (same analyser version). */
void explain_known(struct explain *explain, uint64_t module_id, uint64_t va, bool skid);

/* explain_pump() - send batches; once per second and after replies. @now_ns: clock_ns()
 * of the caller, for retries. */
void explain_pump(struct explain *explain, uint64_t now_ns);

/* explain_debug_found() - debug information of a module has turned up: ask again. */
void explain_debug_found(struct explain *explain, uint64_t module_id);

/* explain_idle() - nothing waits and nothing flies: all that was seen is explained. */
bool explain_idle(const struct explain *explain);

struct explain_stats {
	size_t waiting, flying, poisoned;
	uint64_t sites, answers, failed, dropped;
};
void explain_stats(const struct explain *explain, struct explain_stats *ret_stats);

#endif
