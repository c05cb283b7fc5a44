/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_PROBES_H
#define DAEMON_PROBES_H

/*
 * The probes of a session: plans into slots, attached and detached through the broker as
 * the governor decides. All probes of a plan that follow requests are one unit; those of
 * one resource are another.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/str.h"
#include "daemon/broker.h"
#include "daemon/hooks.h"
#include "daemon/diagnosis.h"
#include "model/sink.h"
#include "probe/plan.h"

#define PROBES_MAX_FILES    1024
#define PROBES_PUT_NS	    10000000000ull   /* how often FACT_PROBE is put */
#define PROBES_ABANDONED_NS 600000000000ull  /* until probes on a deleted file go */
#define PROBES_CALIBRATE_NS 3600000000000ull /* how often a hit is measured again */

/* Copied; pointers are borrowed for the life of the object. */
struct probes_config {
	struct broker *broker;
	const struct probe_fds *fds;
	struct sink *sink;
	uint64_t run_id;
	double budget;		     /* share of the targets' CPU; 0: GOVERN_BUDGET */
	uint64_t key;		     /* of the fleet's windows */
	bool no_streams;	     /* nobody follows requests over sockets */
	struct diagnosis *diagnosis; /* is told what there is and when it is on */
};

struct probes;
/* probes_new() - calibrates, which takes some 50 ms. */
struct err *probes_new(const struct probes_config *config, struct probes **ret_probes);
void probes_free(struct probes *probes); /* detaches everything; NULL is fine */
CLEANUP_DEFINE(probes_free, struct probes *)

/**
 * probes_add() - attach @plan to the file behind @file_fd, which stays the caller's.
 * A point that the kernel refuses takes its unit with it, which is logged.
 * Errors: ERR_LIMIT.
 */
struct err *probes_add(struct probes *probes, uint64_t module_id, int file_fd,
		       const struct plan *plan);

/* probes_step() - measure, decide, switch: every 100 ms, when called at least so often.
 * @step: since the last call. */
void probes_step(struct probes *probes, const struct hooks_step *step);

/* What happened since the last call, and stands in no record. */
struct probes_gaps {
	uint64_t unread;    /* an expression of the hit could not be read */
	uint64_t untracked; /* there was no room to follow what it began */
};
struct probes_gaps probes_gaps(struct probes *probes);

/* probes_framework() - for live_ops: the spec of a slot; "" unknown. */
const char *probes_framework(const struct probes *probes, uint32_t slot);

/* probes_inside() - the pairs about resources whose function the address lies in. */
typedef void (*probes_inside_fn)(void *ctx, const struct abi_probe *plan, uint32_t slot);
void probes_inside(const struct probes *probes, uint64_t module_id, uint64_t va,
		   probes_inside_fn each, void *ctx);

/* probes_status() - one row per probe. */
void probes_status(const struct probes *probes, struct str *reply);

#endif
