/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_DIAGNOSIS_H
#define DAEMON_DIAGNOSIS_H

/*
 * The ledger of a session and what is found in it: probes say what they are and when
 * they are on, live shows the events, findings and figures go to the sink.
 */

#include "core/cleanup.h"
#include "event/event.h"
#include "model/sink.h"
#include "probe/plan.h"

#define DIAGNOSIS_DELAY_NS 300000000ull /* events may still be on their way so long */

struct diagnosis_config {
	uint64_t run_id;
	int64_t realtime_offset_ns;
	struct sink *sink; /* borrowed */
};

struct diagnosis;
struct diagnosis *diagnosis_new(const struct diagnosis_config *config);
void diagnosis_free(struct diagnosis *diagnosis); /* NULL is fine */
CLEANUP_DEFINE(diagnosis_free, struct diagnosis *)

/* diagnosis_declare() - what the probes of @plan are about; copied. */
void diagnosis_declare(struct diagnosis *diagnosis, const struct plan *plan);
/* diagnosis_place() - where the probe of @slot sits. */
void diagnosis_place(struct diagnosis *diagnosis, uint32_t slot, const char *function);
/* diagnosis_switch() - ledger_switch() at this moment. */
void diagnosis_switch(struct diagnosis *diagnosis, uint64_t resource_id, bool on);

void diagnosis_observe(struct diagnosis *diagnosis, const struct event *event);

/* diagnosis_asleep() - where a thread sleeps that the walk has found. */
struct asleep_place;
void diagnosis_asleep(struct diagnosis *diagnosis, const struct asleep_place *place);

/* diagnosis_step() - several times a second. */
void diagnosis_step(struct diagnosis *diagnosis, uint64_t now_ns);

#endif
