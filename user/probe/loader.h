/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_LOADER_H
#define PROBE_LOADER_H

/*
 * probe/ - the only folder that knows libbpf and perf_event_open. It has two halves that
 * meet in an array of file descriptors: loader/ needs privileges (CAP_BPF and
 * CAP_PERFMON, or root), loads the programs and opens the events; ring/ needs none and
 * reads what they emit. pmu/ chooses the sample source, machine/ says what is missing.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "core/cleanup.h"
#include "core/err.h"

#define PROBE_ACCESS_HZ	  199 /* per CPU; prime, so as not to beat with timers */
#define PROBE_TICK_HZ	  99
#define PROBE_MAX_HZ	  10000
#define PROBE_RING_BYTES  (8 * 1024 * 1024)
#define PROBE_STACK_BYTES (8 * 1024)
#define PROBE_MAX_RING	  (512u * 1024 * 1024)
#define PROBE_MAX_SELF	  8

/* Zero is a good default everywhere; the filter selects nothing until it is set. */
struct probe_config {
	uint32_t
		sources; /* 1 << enum abi_source, ...; 0: the best exact one, else clock */
	uint32_t access_hz;	  /* samples per second and CPU; 0: PROBE_ACCESS_HZ */
	uint32_t tick_hz;	  /* 0: PROBE_TICK_HZ */
	size_t ring_bytes;	  /* power of two, at least a page; 0: PROBE_RING_BYTES */
	uint32_t stack_bytes;	  /* user stack copied per tick; 0: PROBE_STACK_BYTES */
	bool no_access, no_ticks; /* leave a whole kind out */
	bool no_probes;		  /* and what serves uprobes */
	bool no_messages;	  /* and what follows requests over sockets */
	bool no_walk;		  /* over the threads */
	bool no_multi;		  /* uprobes one by one even where the kernel has more */
	uint32_t self_pids[PROBE_MAX_SELF]; /* never sampled, nor what they fork */
	size_t self_count;
};

/* What the unprivileged half needs; the order is what travels over the socket. */
enum probe_fd {
	PROBE_FD_RING,
	PROBE_FD_COUNTS,
	PROBE_FD_FILTER,
	PROBE_FD_TARGET_PIDS,
	PROBE_FD_TARGET_CGROUPS,
	PROBE_FD_SELF_PIDS,
	PROBE_FD_FP_OK,
	PROBE_FD_PROBES,       /* slot -> struct abi_probe */
	PROBE_FD_PROBE_COUNTS, /* mapped read-only */
	PROBE_FD_REQUESTS,     /* open requests: see bpf/context.bpf.h */
	PROBE_FD_KEYS,
	PROBE_FD_SUMS_EVEN, /* what SUM probes saw: see probe/sums.h */
	PROBE_FD_SUMS_ODD,
	PROBE_FD_SUM_SIDE,
	PROBE_FD_SIDEBAND, /* from here on: one perf event per online CPU */
	PROBE_FD_MAX = PROBE_FD_SIDEBAND + ABI_MAX_CPUS,
};

/* Every fd from 0 to count - 1 is open. Over SCM_RIGHTS: at most 253 per message. */
struct probe_fds {
	int fd[PROBE_FD_MAX];
	size_t count;
};

void probe_fds_close(struct probe_fds *fds); /* for the half that received them */

struct loader;

/**
 * loader_open() - load the BPF object, open and attach one event per online CPU and
 * source. Sampling begins when ring_set_filter() selects something.
 * CPUs that come online later are not sampled; ones that go offline do no harm.
 * Errors: ERR_PERMISSION names the missing capability or sysctl, ERR_UNSUPPORTED the
 * missing kernel feature; each says what to do.
 */
struct err *loader_open(const struct probe_config *config, struct loader **ret_loader);
/* loader_close() - detach and close everything; NULL is fine. */
void loader_close(struct loader *loader);
CLEANUP_DEFINE(loader_close, struct loader *)

/* loader_pause() - disable (or enable again) every sampling event: no interrupt is taken
 * and nothing is emitted. Side-band and task records go on, so the model stays true. */
struct err *loader_pause(struct loader *loader, bool pause);

/* loader_fds() - borrowed until loader_close(); send duplicates to the other half. */
const struct probe_fds *loader_fds(const struct loader *loader);

/* loader_walk() - a new walk over the threads, for walk_new() (probe/walk.h).
 * Errors: ERR_UNSUPPORTED on a kernel without it, or when none was wanted. */
struct err *loader_walk(struct loader *loader, int *ret_fd);

/* loader_sources() - "clock 997 Hz, tick 99 Hz", for runs and reports; borrowed. */
const char *loader_sources(const struct loader *loader);

/* Which program runs at uprobes, for attach.c. */
struct loader_probe {
	int fd;	       /* borrowed */
	bool is_multi; /* for uprobe_multi links; else for one perf event per probe */
};
struct loader_probe loader_probe(const struct loader *loader);

/* A hardware breakpoint on data: the oracle of the tests. */
struct loader_watch {
	uint32_t tid;
	uint64_t addr;
	uint32_t bytes; /* 1, 2, 4 or 8, aligned */
	bool loads;	/* also on loads; stores always */
};
/* loader_watch() - until loader_close(); the accesses come as ABI_SOURCE_BREAKPOINT. */
struct err *loader_watch(struct loader *loader, const struct loader_watch *watch);

#endif
