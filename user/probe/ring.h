/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_RING_H
#define PROBE_RING_H

/*
 * The half without privileges: read the BPF ring and perf's side-band rings, turn the
 * latter into records of bpf/abi.h, read the counters, and steer the filter. Works in a
 * process without capabilities, also under kernel.unprivileged_bpf_disabled=2
 * (kernels from 5.19 on).
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "probe/loader.h"

#define RING_DRAIN_MAX \
	16384 /* records per call and ring, so that no flood holds the loop */

struct ring;

/* ring_open() - map everything. @fds stay the caller's and must outlive the ring. */
struct err *ring_open(const struct probe_fds *fds, struct ring **ret_ring);
void ring_free(struct ring *ring); /* NULL is fine */
CLEANUP_DEFINE(ring_free, struct ring *)

/**
 * ring_fd() - readable when a ring is half full, for epoll; level-triggered. The
 * kernel does not wake anybody for less: drain on a timer (100 ms) as well.
 */
int ring_fd(const struct ring *ring);

/* ring_fn - one record as bpf/abi.h has it, not decoded yet; borrowed during the call. */
typedef void (*ring_fn)(void *ctx, const void *data, size_t bytes);

/**
 * ring_drain() - hand over everything that waits: ABI_TASK, ABI_ACCESS, ABI_TICK from
 * the ring, ABI_MMAP and ABI_LOSS (reason LOSS_SIDEBAND) from the side-band.
 * Each source is nearly sorted by time, all together are not: put them through
 * event/merge. MMAPs come for processes that pass the filter, as far as records of the
 * BPF side or ring_add_pid() named them; their head has no start_ns (perf does not
 * tell): they belong to the process that has the pid at that time.
 * @ret_more: a limit was reached, call again soon; may be NULL.
 */
struct err *ring_drain(struct ring *ring, ring_fn call, void *ctx, bool *ret_more);

/* ring_counts() - since load, summed over CPUs: what programs wanted to emit (seen) and
 * what did not fit (dropped). seen - dropped has been or will be drained. */
void ring_counts(const struct ring *ring, struct abi_count ret_counts[ABI_KINDS]);

/* ring_set_filter() - @flags of enum abi_filter_flags; 0 stops sampling. */
struct err *ring_set_filter(struct ring *ring, uint32_t flags);

/*
 * Targets of ABI_FILTER_PIDS and ABI_FILTER_CGROUP. Children of a target pid join at
 * fork and every target leaves at exit, in the kernel. A target is no longer one of the
 * agent's own. Deleting what is not there is no error.
 */
struct err *ring_add_pid(struct ring *ring, uint32_t pid);
struct err *ring_del_pid(struct ring *ring, uint32_t pid);
struct err *ring_add_cgroup(struct ring *ring, uint64_t cgroup_id);
struct err *ring_del_cgroup(struct ring *ring, uint64_t cgroup_id);
/* ring_add_self() - the agent's own: never sampled, nor what it forks later. */
struct err *ring_add_self(struct ring *ring, uint32_t pid);

/* ring_set_fp_ok() - frame pointers are enough for this process: copy no more stacks. */
struct err *ring_set_fp_ok(struct ring *ring, uint32_t pid, bool is_ok);

#endif
