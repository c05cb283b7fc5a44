/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_LIVE_H
#define LIVE_LIVE_H

/*
 * live/ - what runs now: processes, their address spaces, the modules mapped there.
 * It is fed events in time order and puts facts; it opens no file and asks no kernel.
 * What it lacks it asks its owner for through live_ops, and the answer comes back as
 * events (TASK_SEEN, MMAP with SNAPSHOT, MODULE), so a recorded stream replays alone.
 */

#include <stdbool.h>

#include "core/cleanup.h"
#include "event/event.h"
#include "model/sink.h"

#define LIVE_MAX_PROCESSES  65536
#define LIVE_MAX_MAPPINGS   65536 /* per process */
#define LIVE_MAX_MODULES    16384
#define LIVE_MAX_AGGREGATES 262144 /* open (bucket, process, module, va, ...) cells */
#define LIVE_BUCKET_NS	    1000000000ull
#define LIVE_SPANS	    200		  /* kept per bucket, about */
#define LIVE_IDENTIFY_NS    5000000000ull /* how long samples wait for a module */
#define LIVE_SETTLE_NS	    2000000000ull /* ... for a process or mapping to turn up */
#define LIVE_GRACE_NS	    5000000000ull /* a process is kept after its exit */
#define LIVE_MAX_WAITING    65536	  /* samples that wait for either */
#define LIVE_MAX_TICKS	    (16 * 1024 * 1024) /* bytes of ticks that wait */

struct live;

/* A file as mappings describe it, to be opened and identified by the owner. */
struct live_file {
	uint64_t key; /* to be repeated in the MODULE event */
	uint32_t pid; /* a process that maps it */
	uint64_t start_ns;
	uint32_t parent_pid; /* its parent, which may outlive it; 0 unknown */
	uint64_t parent_start_ns;
	uint64_t addr,
		length; /* of that mapping: /proc/PID/map_files/addr-(addr+length) */
	uint64_t inode;
	uint32_t dev_major, dev_minor;
	struct build_id build_id; /* when the kernel gave it */
	const char *path;	  /* as the process sees it: below /proc/PID/root */
	bool deleted;
};

/* One mapping of a process, for the unwinder. */
struct live_range {
	uint64_t start, end; /* runtime addresses */
	uint64_t bias;	     /* va = ip - bias (mod 2^64) */
	uint64_t module_id;  /* 0: not identified (yet) */
};

/* A tick whose user stack wants unwinding; everything is borrowed during the call. */
struct live_tick {
	const struct event *event;
	uint64_t process_id, bucket_ns;
	const struct live_range *ranges; /* sorted; executable mappings only */
	size_t range_count;
	const struct fact_frame *kernel_frames; /* leaf first, already mapped */
	size_t kernel_count;
};

/* The answers may come within the call itself or at any time later, or never. */
struct live_ops {
	/* A process that nobody announced: read /proc and feed TASK_SEEN and MMAPs. */
	void (*want_process)(void *ctx, uint32_t pid, uint64_t start_ns);
	/* Open, identify, feed a MODULE with the same key (module_id 0: impossible). */
	void (*want_module)(void *ctx, const struct live_file *file);
	/* Unwind; the owner puts FACT_STACK and FACT_TICK. NULL: leaf frames only. */
	void (*unwind)(void *ctx, const struct live_tick *tick);
	/* The service that a cgroup belongs to, for people; borrowed. NULL: none. */
	const char *(*service)(void *ctx, uint32_t pid, uint64_t cgroup_id);
	/* Is a file of this path to be identified as soon as it is mapped? NULL: no. */
	bool (*eager)(void *ctx, const char *path);
	/* An eager file that is identified was mapped again: perhaps as another inode, as
	 * after an upgrade. NULL: of no interest. */
	void (*mapped)(void *ctx, const struct live_file *file, uint64_t module_id);
	/* The spec that a probe's slot belongs to: "redis"; borrowed. NULL: none. */
	const char *(*framework)(void *ctx, uint32_t slot);
	/* TASK, SPAN, RESOURCE and SLEEP events, in the order in which live took them: for who
	 * keeps a model of requests and resources. Borrowed. NULL: nobody. */
	void (*observe)(void *ctx, const struct event *event);
};

struct live_config {
	uint64_t run_id, boot_id;
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	bool hash_names;	    /* of requests: store no text, only its hash */
	uint64_t names;		    /* kinds of one framework; 0: METHOD_NAMES */
	uint64_t spans_wanted;	    /* kept per bucket, about; 0: LIVE_SPANS */
};

struct live *live_new(const struct live_config *config, struct sink *sink,
		      const struct live_ops *ops, void *ctx);
void live_free(struct live *live); /* NULL is fine */
CLEANUP_DEFINE(live_free, struct live *)

/* live_feed() - the one door for events; in time order as far as that is possible. */
void live_feed(struct live *live, const struct event *event);

/* live_flush() - put the facts of every bucket that began before @now_ns, with losses;
 * UINT64_MAX: everything, for good. A bucket is put in parts, one per flush; the store
 * adds equal rows. So a crash loses one flush interval and no more. */
void live_flush(struct live *live, uint64_t now_ns);

/* live_loss() - something was lost outside: counted in the bucket of @time_ns. */
void live_loss(struct live *live, uint64_t time_ns, uint32_t kind,
	       enum loss_reason reason, uint64_t lost, uint64_t seen);

struct live_stats {
	size_t processes, modules, mappings, aggregates;
	uint64_t events, access_samples, access_unmapped;
};
void live_stats(const struct live *live, struct live_stats *ret_stats);

/* live_key() - what identifies a mapped file before it was opened: the build-id when
 * the kernel gave one, else device, inode and path. Never 0. */
uint64_t live_key(const struct event *mmap);

#endif
