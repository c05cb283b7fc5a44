/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SESSION_H
#define DAEMON_SESSION_H

/*
 * One run: sampling of some targets from a beginning to an end, everything on the way
 * from the kernel's rings to facts. The daemon has one at a time; new settings or a new
 * boot of the probes mean a new one.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/str.h"
#include "daemon/broker.h"
#include "daemon/config.h"
#include "daemon/explain.h"
#include "daemon/workers.h"

#define SESSION_DRAIN_NS     200000000ull /* how often the rings are emptied */
#define SESSION_FLUSH_NS     600000000ull
#define SESSION_WINDOW_NS    100000000ull /* reorder window of the merge */
#define SESSION_MAX_WAITING  65536	  /* records in it */
#define SESSION_MAX_BYTES    (16u << 20)
#define SESSION_MAX_ATTACHED 64

/* All borrowed for the life of the session. */
struct session_config {
	const struct config *config;
	struct broker *broker;
	struct workers *workers;
	struct sink *store;
	const char *record; /* stream file to write; NULL none */
	bool explain;	    /* false: leave symbols and types out */
};

struct session;

/* session_open() - load the probes, watch the target of the settings, begin the run. */
struct err *session_open(const struct session_config *config,
			 struct session **ret_session);

/* session_free() - the run ends here if session_end() did not end it; NULL is fine. */
void session_free(struct session *session);
CLEANUP_DEFINE(session_free, struct session *)

uint64_t session_run_id(const struct session *session);
int session_ring_fd(const struct session *session); /* for EPOLLIN: drain soon */

/* session_drain() - rings to live; every SESSION_DRAIN_NS and when the ring fd fires. */
struct err *session_drain(struct session *session);
/* session_flush() - put what was seen, ask the workers for what is unknown; every
 * SESSION_FLUSH_NS, so that a crash loses less than a second of samples: this interval,
 * the window and a drain. */
struct err *session_flush(struct session *session);

/* session_attach() - one target more, for @for_ns (0: until detached or the end). */
struct err *session_attach(struct session *session, const char *target, uint64_t for_ns);
struct err *session_detach(struct session *session, const char *target);

/* session_quiet() - stop sampling: the probes go, everything read so far is flushed.
 * Workers may still owe answers. */
struct err *session_quiet(struct session *session);
/* session_settled() - no symbol, type or stack is outstanding. */
bool session_settled(const struct session *session);
/* session_end() - put the end of the run. */
void session_end(struct session *session);

/* session_want() - explain an address that an earlier run left behind, if its module is
 * there in this run: explain_want(). */
void session_want(struct session *session, uint64_t module_id, uint64_t va, bool skid,
		  bool answer);
/* session_reset_debug() - look again for debug information that was missing. */
void session_reset_debug(struct session *session);

/* session_target_alive() - false once the process of a pid: target has gone. */
bool session_target_alive(const struct session *session);

/* session_worker_died() - for workers_new(). */
void session_worker_died(struct session *session, enum job_class class);

struct explain_stats session_explain_stats(const struct session *session);

/* session_status() - lines for the control socket: model/command.h, verb status. */
void session_status(struct session *session, struct str *reply);

#endif
