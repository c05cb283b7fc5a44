/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_AGENT_H
#define CLI_AGENT_H

/*
 * One sampling without a daemon: `assayd --oneshot` as a child process. Its messages are
 * held back until it is ready, so that a start that fails is one line, and passed on
 * afterwards.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/loop.h"

struct agent_config {
	const char *target;  /* "pid:1234"; NULL with @replay */
	const char *db;	     /* NULL: assayd's own default */
	const char *record;  /* stream to write, or NULL */
	const char *replay;  /* stream to read instead of sampling, or NULL */
	const char *symfs;   /* with @replay: where its files are; NULL: / */
	const char *pidfile; /* or NULL */
	uint64_t for_ns;     /* 0: until told to end */
	uint64_t rate_hz;    /* 0: assayd's default */
	bool background;     /* outlives us */
	bool quiet;
};

struct agent;

/* agent_program() - path of assayd: in the build folder, or as installed. Allocated. */
char *agent_program(void);

/**
 * agent_start() - fork, exec, wait until sampling is live.
 * Errors: ERR_NOT_FOUND (no assayd), else what assayd said last before it ended.
 */
struct err *agent_start(const struct agent_config *config, struct agent **ret_agent);
/* agent_free() - a foreground agent that still runs is ended first. NULL is fine. */
void agent_free(struct agent *agent);
CLEANUP_DEFINE(agent_free, struct agent *)

uint64_t agent_run_id(const struct agent *agent); /* 0: it did not say */
int agent_pid(const struct agent *agent);

/* agent_watch() - pass messages on, and stop @loop when the agent has ended. */
struct err *agent_watch(struct agent *agent, struct loop *loop);
bool agent_ended(const struct agent *agent);

/* agent_end() - ask it to flush and end; from the third call on it is killed. */
void agent_end(struct agent *agent);

/* agent_result() - after it ended: NULL, or what went wrong. */
struct err *agent_result(struct agent *agent);

#endif
