/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RESOURCE_ASLEEP_H
#define RESOURCE_ASLEEP_H

/*
 * What the walk over all threads found: who sleeps, since when, for which lock, and
 * inside which functions of a spec. A sleeper inside a wait waits, one inside a holding
 * holds: so waits and holdings that began before any probe was on, or that never end,
 * are in the ledger as long as they last. Where a probe told of it, the probe is right.
 */

#include "resource/ledger.h"

#define ASLEEP_MAX	16384 /* threads */
#define ASLEEP_MAX_ACTS 4     /* of one thread */

/* What somebody does who is inside a function: the resource's wait, else its holding. */
struct asleep_act {
	uint64_t resource_id, object;
	uint64_t blocker; /* waits: thread that is waited for; 0 unknown */
	uint16_t slot;
	uint8_t mode; /* enum abi_mode */
	bool is_hold;
};

struct asleep_place {
	uint32_t pid, tid;
	uint64_t time_ns; /* when it was seen there */
	struct asleep_act acts[ASLEEP_MAX_ACTS];
	size_t count;
};

struct asleep;

struct asleep *asleep_new(struct ledger *ledger); /* borrowed */
void asleep_free(struct asleep *asleep);	  /* NULL is fine */
CLEANUP_DEFINE(asleep_free, struct asleep *)

/* asleep_feed() - SLEEP and TASK events; others are ignored. */
void asleep_feed(struct asleep *asleep, const struct event *event);
/* asleep_place() - where a sleeper is; one that has woken since is forgotten. */
void asleep_place(struct asleep *asleep, const struct asleep_place *place);
/* asleep_walk() - remind the ledger, right before ledger_walk(). */
void asleep_walk(struct asleep *asleep, uint64_t now_ns);

#endif
