/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_ABI_H
#define ASSAY_ABI_H

/*
 * Every struct that crosses the ring; the only file that both sides include, and the
 * format of a recorded stream. Little-endian, no hidden padding, zero = unknown. Records
 * that user space makes itself (mappings from perf's side-band or /proc/PID/maps, modules
 * once identified, losses) have the same shape, so that a recorded stream holds all
 * that a replay needs.
 *
 * All times are CLOCK_MONOTONIC ns. A process is (pid, start_ns): pids come back,
 * start times do not. start_ns is the thread group leader's start_boottime rounded
 * down to ABI_START_TICK_NS, the resolution of /proc/PID/stat, so both sources agree.
 */

#ifndef __VMLINUX_H__
#include <linux/types.h>
#endif

#define ABI_VERSION	      1
#define ABI_COMM_BYTES	      16
#define ABI_BUILD_ID_MAX      20
#define ABI_PATH_MAX	      4096
#define ABI_MAX_CPUS	      512
#define ABI_KERNEL_FRAMES     64
#define ABI_STACK_COPY_MAX    (16 * 1024)
#define ABI_MAX_SEGMENTS      16
#define ABI_START_TICK_NS     10000000ull
#define ABI_CHECK(name, size) _Static_assert(sizeof(struct name) == (size), #name)

enum abi_kind {
	ABI_NONE,
	ABI_TASK,
	ABI_MMAP,   /* user space only: perf MMAP2 or one line of /proc/PID/maps */
	ABI_MODULE, /* user space only: what a file turned out to be */
	ABI_ACCESS,
	ABI_TICK,
	ABI_SPAN,
	ABI_RESOURCE,
	ABI_LOSS,
	ABI_KINDS,
};

/* 48 bytes. @request_id is what the task served at that moment, 0 for nothing known. */
struct abi_head {
	__u16 kind; /* enum abi_kind */
	__u16 cpu;
	__u32 size; /* of the whole record, head included */
	__u64 time_ns;
	__u32 pid; /* thread group */
	__u32 tid;
	__u64 start_ns;	  /* of the process; see above */
	__u64 request_id; /* one request of one process */
	__u64 method_id;  /* what kind of request; low-cardinality */
};
ABI_CHECK(abi_head, 48);

enum abi_task_op {
	ABI_TASK_FORK = 1, /* head is the new task; a thread when tid != pid */
	ABI_TASK_EXEC,	   /* the address space starts anew */
	ABI_TASK_EXIT,	   /* the whole process is gone when tid == pid */
	ABI_TASK_SEEN,	   /* user space only: found in /proc at attach */
};

struct abi_task {
	struct abi_head head;
	__u32 op; /* enum abi_task_op */
	__u32 parent_pid;
	__u64 parent_start_ns;
	__u64 cgroup_id; /* cgroup v2 id */
	__u32 uid;
	__u32 exit_code; /* as wait(2) gives it; EXIT only */
	char comm[ABI_COMM_BYTES];
};
ABI_CHECK(abi_task, 96);

enum abi_mmap_flags {
	ABI_MMAP_SNAPSHOT = 1, /* from /proc/PID/maps, not the moment of the mapping */
	ABI_MMAP_DELETED = 2,  /* the path no longer names this file */
};

/* Followed by the path, path_bytes of it, NUL included. */
struct abi_mmap {
	struct abi_head head;
	__u64 addr; /* runtime address */
	__u64 length;
	__u64 pgoff; /* byte offset in the file of @addr */
	__u64 inode; /* 0 when the kernel gave a build-id instead */
	__u32 dev_major, dev_minor;
	__u32 flags; /* enum abi_mmap_flags */
	__u16 build_id_bytes;
	__u16 path_bytes;
	__u8 build_id[ABI_BUILD_ID_MAX];
	__u32 pad;
};
ABI_CHECK(abi_mmap, 120);

enum abi_module_kind {
	ABI_MODULE_FILE = 1, /* an ELF file: executable or shared library */
	ABI_MODULE_VDSO,
	ABI_MODULE_KERNEL,
	ABI_MODULE_KMOD,
};

struct abi_segment {
	__u64 off, va, file_bytes; /* of one executable PT_LOAD */
};

/* Followed by segment_count abi_segments, then the path, path_bytes, NUL included. */
struct abi_module {
	struct abi_head head;
	__u64 module_id; /* hash of the build-id; of (path, size, mtime) without one */
	__u64 key;	 /* what the mappings said: see live/module_key() */
	__u64 base;	 /* kernel and its modules: runtime address of va @base_va */
	__u64 base_va;
	__u64 length; /* kernel and its modules: bytes of text from @base */
	__u32 kind;   /* enum abi_module_kind */
	__u16 build_id_bytes;
	__u16 segment_count;
	__u8 build_id[ABI_BUILD_ID_MAX];
	__u32 path_bytes;
};
ABI_CHECK(abi_module, 120);

enum abi_source {
	ABI_SOURCE_CLOCK = 1, /* cpu-clock: lands after the stalled instruction (skid) */
	ABI_SOURCE_IBS,	      /* AMD IBS op: exact */
	ABI_SOURCE_PEBS_LOAD, /* Intel mem-loads: exact */
	ABI_SOURCE_PEBS_STORE,
	ABI_SOURCE_PAGE_FAULT, /* exact, address given */
	ABI_SOURCE_BREAKPOINT, /* after the access, address given; oracle of the tests */
	ABI_SOURCES,
};

enum abi_access_flags {
	ABI_ACCESS_KERNEL = 1, /* @ip is a kernel address */
	ABI_ACCESS_REGS = 2,   /* @regs are the registers at @ip */
	ABI_ACCESS_ADDR = 4,   /* @addr is valid */
	ABI_ACCESS_WEIGHT = 8, /* @weight and @data_src are valid */
};

/* DWARF register numbers of x86-64, then the return address column: rip. */
#define ABI_REGS 17

struct abi_access {
	struct abi_head head;
	__u64 ip;
	__u64 addr;
	__u64 data_src; /* union perf_mem_data_src */
	__u64 weight;	/* cycles of latency */
	__u64 period;	/* events (or ns of CPU) that this sample stands for */
	__u32 source;	/* enum abi_source */
	__u32 flags;	/* enum abi_access_flags */
	__u64 regs[ABI_REGS];
};
ABI_CHECK(abi_access, 232);

enum abi_tick_flags {
	ABI_TICK_KERNEL = 1, /* the tick found the task in the kernel */
	ABI_TICK_USER = 2,   /* @regs are the user registers */
	ABI_TICK_CUT = 4,    /* the stack was larger than the copy */
};

/* Followed by stack_bytes of the user stack from regs[7] (rsp) upwards. */
struct abi_tick {
	struct abi_head head;
	__u64 period_ns;
	__u32 flags; /* enum abi_tick_flags */
	__u16 kernel_depth;
	__u16 user_depth; /* frames that the frame-pointer walk found, in user_ips */
	__u32 stack_bytes;
	__u32 pad;
	__u64 regs[ABI_REGS];
	__u64 kernel_ips[ABI_KERNEL_FRAMES]; /* leaf first */
	__u64 user_ips[ABI_KERNEL_FRAMES];
};
ABI_CHECK(abi_tick, 48 + 24 + 136 + 512 + 512);

/* User space only: lost records since the last one of this kind and reason. */
struct abi_loss {
	struct abi_head head;
	__u32 kind;   /* enum abi_kind of what was lost */
	__u32 reason; /* enum loss_reason of model/fact.h */
	__u64 lost;
	__u64 seen; /* of that kind, lost ones included, in the same time */
};
ABI_CHECK(abi_loss, 72);

/* The one value of the map `counts`; mapped read-only by user space, one row per CPU. */
struct abi_count {
	__u64 seen, dropped;
};
struct abi_counts {
	struct abi_count cpu[ABI_MAX_CPUS][ABI_KINDS];
};

/* The one value of the map `filter`; user space writes it. Zero selects nothing. */
enum abi_filter_flags {
	ABI_FILTER_ALL = 1,    /* every process */
	ABI_FILTER_PIDS = 2,   /* those in the map `target_pids`; children join by fork */
	ABI_FILTER_CGROUP = 4, /* those below the cgroups in the map `target_cgroups` */
};
struct abi_filter {
	__u32 flags;
	__u32 self_pid; /* the agent itself is never sampled */
};

#endif
