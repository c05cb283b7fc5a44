/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RESOURCE_LEDGER_H
#define RESOURCE_LEDGER_H

/*
 * resource/ - which resource of an application is the problem, who suffers, who is to
 * blame. Pure: events in time order come in, findings go out; it opens no file and asks
 * no kernel.
 *
 *	events -> ledger: wait, hold, use, refusal, balance by (resource, object, task)
 *	       -> rules over them, as data -> findings
 *
 * A *resource* is what a spec declares, once per application: the processes that come
 * from one ancestor of the same command. A *task* is what the spec's key says (a client,
 * a peer), else a thread. Time is cut into buckets of LEDGER_BUCKET_NS, of which the
 * last LEDGER_BUCKETS are kept.
 *
 * Everything is bounded. What has been quiet for all kept buckets is forgotten; what has
 * no room then is counted as lost.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "event/event.h"
#include "model/resource.h"
#include "model/sink.h"

#define LEDGER_BUCKET_NS     1000000000ull
#define LEDGER_BUCKETS	     32
#define LEDGER_MAX_RESOURCES 1024 /* times applications */
#define LEDGER_MAX_TASKS     4096
#define LEDGER_MAX_CELLS     8192  /* (resource, task) */
#define LEDGER_MAX_OBJECTS   32768 /* (resource, object) */
#define LEDGER_MAX_HOLDS     65536 /* (resource, object, task) */
#define LEDGER_MAX_METHODS   2048
#define LEDGER_MAX_APPS	     16384 /* processes whose application is known */
#define LEDGER_MAX_KEYS	     8192  /* keys of open requests */
#define LEDGER_MAX_HOPS	     8	   /* of a chain of waits */

/* Strings are borrowed for as long as the ledger lives. */
struct resource_info {
	uint64_t resource_id;
	const char *spec, *name, *title, *unit, *advice; /* never NULL */
	enum resource_kind kind;
	enum resource_key key;
	uint64_t capacity;  /* 0 unknown */
	uint64_t pinned_by; /* id of the PIN whose holders keep it from shrinking */
	uint64_t feeds;	    /* id of the resource that its growth takes from */
	int64_t stale;	    /* SLOTS: level of a place that is taken and idle */
	bool has_stale;	    /* @stale is given */
	bool names_task;    /* names of its events are the task's, not the object's */
};

struct ledger;

struct ledger *ledger_new(void);
void ledger_free(struct ledger *ledger); /* NULL is fine */
CLEANUP_DEFINE(ledger_free, struct ledger *)

/* ledger_declare() - events of @info->resource_id mean this; the first word counts. */
void ledger_declare(struct ledger *ledger, const struct resource_info *info);

/* ledger_place() - where the probe of @slot sits, for people: "waits in FUNCTION". */
void ledger_place(struct ledger *ledger, uint32_t slot, const char *function);

/**
 * ledger_switch() - the probes of a resource (0: those of requests) were switched on or
 * off at @time_ns. What is open then ends unknown: it is no holding and no wait.
 */
void ledger_switch(struct ledger *ledger, uint64_t resource_id, bool on,
		   uint64_t time_ns);

/* ledger_feed() - TASK, SPAN and RESOURCE events; others are ignored. In time order. */
void ledger_feed(struct ledger *ledger, const struct event *event);

/**
 * ledger_walk() - account for everything that is open, up to @now_ns, and begin new
 * buckets. Events of before @now_ns must have been fed. Call it several times a second.
 * Return: whether a bucket was completed, so that it is time to diagnose.
 */
bool ledger_walk(struct ledger *ledger, uint64_t now_ns);

/* Where the figures of a run go. */
struct ledger_run {
	uint64_t run_id;
	int64_t realtime_offset_ns;
	struct sink *sink; /* borrowed */
};

/* ledger_put() - of every resource the buckets that were completed since the last call,
 * as FACT_RESOURCE_BUCKET. */
void ledger_put(struct ledger *ledger, const struct ledger_run *run);

struct ledger_stats {
	size_t resources, tasks, cells, objects, holds, waits;
	uint64_t events, lost; /* lost: no room, or no such resource */
};
void ledger_stats(const struct ledger *ledger, struct ledger_stats *ret_stats);

#endif
