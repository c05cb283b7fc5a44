/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_MAPS_BPF_H
#define ASSAY_MAPS_BPF_H

/*
 * The maps that several programs share. The .bpf.c files are linked into one object:
 * access.bpf.c defines ASSAY_MAPS and with it the maps, the others declare them. It
 * must be the first file of the link, which the alphabet sees to: the linker of libbpf
 * 1.1 leaves a map at offset 0 when it met the declaration before the definition.
 */

#include "vmlinux.h"
#include <bpf/bpf_core_read.h>
#include <bpf/bpf_helpers.h>
#include <bpf/bpf_tracing.h>

#include "bpf/abi.h"

#ifdef ASSAY_MAPS
#define SHARED
#else
#define SHARED extern
#endif

#define MAX_TARGETS 16384
#define MAX_SELF    1024
#define MAX_CGROUPS 1024

/* Its size is set before loading. */
SHARED struct {
	__uint(type, BPF_MAP_TYPE_RINGBUF);
	__uint(max_entries, 4096);
} ring SEC(".maps");

SHARED struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct abi_counts);
} counts SEC(".maps");

SHARED struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct abi_filter);
} filter SEC(".maps");

/* Sets: pid -> 1. Preallocated, because programs in NMI context read them. */
SHARED struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_TARGETS);
	__type(key, __u32);
	__type(value, __u8);
} target_pids SEC(".maps");

SHARED struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_SELF);
	__type(key, __u32);
	__type(value, __u8);
} self_pids SEC(".maps");

/* Processes whose stacks need no copy: frame pointers lead to the root. */
SHARED struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_TARGETS);
	__type(key, __u32);
	__type(value, __u8);
} fp_ok SEC(".maps");

/* cgroup v2 id -> 1 */
SHARED struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(max_entries, MAX_CGROUPS);
	__type(key, __u64);
	__type(value, __u8);
} target_cgroups SEC(".maps");

/*
 * The clock may serve two kinds of records for one interrupt: every sample is an access,
 * every @tick_every-th a tick as well. 0: ticks have an event of their own.
 */
struct clock_share {
	__u32 tick_every, accesses;
};

SHARED struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct clock_share);
} clock_share SEC(".maps");

/* Slot 0: the program tick. */
SHARED struct {
	__uint(type, BPF_MAP_TYPE_PROG_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} tails SEC(".maps");

/* What a task serves right now; goes away with the task. */
struct task_request {
	__u64 request_id, method_id;
};

SHARED struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_request);
} task_request SEC(".maps");

/* What a task received last from a client: a request that begins was in there. */
struct received {
	__u64 source, target, begin, end; /* as in struct abi_message; empty: not known */
	__u32 taken;			  /* requests that began with it */
	__u32 family;
	__u64 in_bytes, out_bytes; /* ever, by this task */
};

SHARED struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct received);
} received SEC(".maps");

enum role { ROLE_UNKNOWN, ROLE_ACTIVE, ROLE_PASSIVE };

/* A TCP socket for those who know it by its descriptor only. */
struct tcp_end {
	__u64 source, target; /* of the stream from here, of the one to here */
	__u64 read;	      /* passive: bytes received until now */
	__u64 opened;	      /* ... until the last stream was opened */
	__u32 role;
	__u32 has_streams; /* one thread may send what another asked for */
};

/* By the address of the struct sock; written as soon as the streams are known. */
SHARED struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 65536);
	__type(key, __u64);
	__type(value, struct tcp_end);
} tcp_ends SEC(".maps");

#endif
