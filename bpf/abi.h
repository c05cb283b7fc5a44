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

#define ABI_VERSION	      2
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
	ABI_MESSAGE,
	ABI_SLEEP,
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
	/* Of imported recordings: events that count no accesses, such as cycles. */
	ABI_SOURCE_CYCLES,  /* lands behind, as the clock does */
	ABI_SOURCE_PRECISE, /* exact: precise_ip was set */
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
	ABI_TICK_ASLEEP = 8, /* no CPU time: the task sleeps, see struct abi_sleep */
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

/*
 * Probes as data. The attach cookie of a uprobe is a slot: its plan is entry @slot of the
 * map `probes`, its counters are the entries slot * cpus + cpu of `probe_counts`.
 */
#define ABI_MAX_SLOTS	   2048
#define ABI_CALIBRATE_SLOT (ABI_MAX_SLOTS - 1) /* passes the filter always */
#define ABI_NO_SLOT	   0xffff	       /* of records that come from no probe */
#define ABI_FETCH_DEREFS   6
#define ABI_PROBE_WHENS	   2
#define ABI_NAME_MAX	   128
#define ABI_NAME_STOPS	   4
#define ABI_WEIGHT_ONE	   1000 /* unit of the sampling weight: every request is seen */
#define ABI_MAX_OPEN_CALLS 8	/* paired calls one inside the other, per task */

enum abi_base {
	ABI_BASE_NONE,	/* no such expression */
	ABI_BASE_REG,	/* @reg; arguments and the return value are registers too */
	ABI_BASE_CONST, /* 0, so that @add is the value */
	ABI_BASE_TLS,	/* the thread pointer, fs base */
	ABI_BASE_TASK,	/* the thread id */
};

enum abi_path_flags { ABI_PATH_SIGNED = 1 /* the last read is sign-extended */ };

/*
 * How to reach a value: start at the base, then @derefs times read at value + offset[i]:
 * 8 bytes, the last time @width. In the end @add is added. Any fault: unknown.
 * Without a dereference, @width cuts the register.
 */
struct abi_path {
	__u8 base;   /* enum abi_base */
	__u8 reg;    /* DWARF number, below ABI_REGS */
	__u8 derefs; /* at most ABI_FETCH_DEREFS */
	__u8 width;  /* 1, 2, 4 or 8 */
	__u32 flags; /* enum abi_path_flags */
	__s32 offset[ABI_FETCH_DEREFS];
	__s64 add;
};
ABI_CHECK(abi_path, 40);

enum abi_fetch_kind {
	ABI_FETCH_INT,
	ABI_FETCH_CSTR,	      /* the value is the address of a NUL-terminated string */
	ABI_FETCH_COUNTED,    /* the address of @length bytes */
	ABI_FETCH_STD_STRING, /* the address of a libstdc++ std::string: pointer, length */
	ABI_FETCH_GRPC_SLICE, /* the address of a grpc_slice: refcounted or inlined */
	ABI_FETCH_KINDS,
};

enum abi_op {
	ABI_OP_NONE,
	ABI_OP_EQ,
	ABI_OP_NE,
	ABI_OP_LT, /* signed, these four */
	ABI_OP_LE,
	ABI_OP_GT,
	ABI_OP_GE,
	ABI_OP_ANY, /* value & operand is not 0 */
	ABI_OPS,
};

/* One expression. Strings are names only; @op belongs to conditions, on integers only. */
struct abi_fetch {
	struct abi_path value;
	struct abi_path length;	   /* COUNTED only */
	__u8 kind;		   /* enum abi_fetch_kind */
	__u8 op;		   /* enum abi_op */
	__u16 max_bytes;	   /* strings: longer ones are cut; 0: ABI_NAME_MAX */
	__u8 stop[ABI_NAME_STOPS]; /* strings end before the first of these; 0: unused */
	__s64 operand;
};
ABI_CHECK(abi_fetch, 96);

enum abi_verb {
	ABI_REQUEST_BEGIN = 1, /* a request named @name, found again by @key */
	ABI_REQUEST_END,
	ABI_CLIENT_BEGIN, /* a call to elsewhere on behalf of the current request */
	ABI_CLIENT_END,
	ABI_TASK_PUSH, /* the current request hands over work known as @key */
	ABI_TASK_POP,  /* this thread does the work @key from now on */
	ABI_TASK_DONE, /* and no longer; what it did before goes on if the call is paired.
			* As a record, with CLOSED: the last work for a request is over */
	ABI_BATCH_ADD, /* the current request becomes a part of batch @key */
	ABI_BATCH_BEGIN,
	ABI_BATCH_END,
	ABI_CONN_OWN,	  /* this thread serves the request @key until the next change */
	ABI_CONN_RELEASE, /* this thread serves nothing, as at the head of an event loop */
	ABI_WAIT_BEGIN,
	ABI_WAIT_END,
	ABI_ACQUIRE,
	ABI_USE,
	ABI_RELEASE,
	ABI_LEVEL,    /* a gauge */
	ABI_COST_ADD, /* @amount of the thing @name, charged to the current request */
	ABI_REFUSE,   /* an attempt to acquire that got nothing */
	/* Streams that share a connection, as in HTTP/2. */
	ABI_STREAM_CALL, /* the current request makes the call @key */
	ABI_STREAM_OPEN, /* call @key, of either side, is stream @amount of socket @object */
	ABI_LABEL,	 /* the current request gets the labels of @resource_id */
	ABI_VERBS,
};

enum abi_probe_flags {
	ABI_PROBE_RETURN = 1, /* at the return: by uretprobe, or on a ret instruction */
	/*
	 * One of two probes of the same call, which share @pair. The begin saves its key and
	 * object with the stack pointer; the end takes over those it has no expression for.
	 * A call left by longjmp is known by its stack pointer and ends at the next begin.
	 */
	ABI_PROBE_PAIRED = 2,
	ABI_PROBE_BY_FRAME = 8, /* @sp_delta counts from the frame pointer, rbp */
	ABI_PROBE_ONCE = 4,   /* a begin whose key is open already is the same request */
	ABI_PROBE_KEYED = 16, /* the key, here or at the begin, says whose doing it is */
	ABI_PROBE_SAVE = 32,  /* the begin of a pair whose event is told at the return: it
			      * only keeps what is known at the entry; @verb is the end's */
	ABI_PROBE_SUM = 64,   /* USE, COST_ADD: added up in the map `sums`, no record */
	ABI_PROBE_STREAMS =
		128,	       /* requests that begin here come in streams: STREAM_OPEN */
	ABI_PROBE_ASIDE = 256, /* REQUEST_BEGIN: the thread goes on with what it served */
};

enum abi_mode { ABI_MODE_NONE, ABI_SHARED, ABI_EXCLUSIVE };
enum abi_scope { ABI_SCOPE_OBJECT, ABI_SCOPE_TASK, ABI_SCOPE_ALL /* of this task */ };
enum abi_temperature { ABI_HEAT_UNKNOWN, ABI_HEAT_SLOW, ABI_HEAT_WARM, ABI_HEAT_HOT };

/* Zero @verb: the slot is empty, its hits are only counted. No key: the thread's id. */
struct abi_probe {
	__u32 spec_id;	/* keys of one spec do not meet those of another */
	__u32 probe_id; /* of the probe in its spec; goes into records */
	__u32 pair;	/* common to the two probes of a call; PAIRED only */
	__u32 cost_ns;	/* calibrated cost of one hit; user space keeps it up to date */
	__u32 weight_milli; /* of requests that begin here; 0: ABI_WEIGHT_ONE */
	__s16 sp_delta;	    /* sp (or rbp) here + this = sp at the first instruction */
	__u16 flags;	    /* enum abi_probe_flags */
	__u8 verb;	    /* enum abi_verb */
	__u8 mode;	    /* enum abi_mode */
	__u8 scope;	    /* enum abi_scope */
	__u8 temperature;   /* enum abi_temperature */
	__u32 pad;
	__u64 resource_id; /* resource verbs: hash of its name */
	__u64 method_id;   /* without a name expression: hash of a fixed name, or 0 */
	struct abi_fetch key, object, amount, name, when[ABI_PROBE_WHENS];
};
ABI_CHECK(abi_probe, 48 + 6 * 96);

/* One cache line. */
struct abi_probe_count {
	__u64 hits;	/* all */
	__u64 foreign;	/* the process is none of ours */
	__u64 skipped;	/* a condition did not hold, at the begin for the end of a pair */
	__u64 unknown;	/* some expression could not be read */
	__u64 dropped;	/* no room in the ring or in a map */
	__u64 unpaired; /* end of a call or key whose begin was not seen */
	/* Of unknown, and of what had no room in a map: hits that make no record to say so. */
	__u64 silent_unread, silent_untracked;
};
ABI_CHECK(abi_probe_count, 64);

/* The maps `sums_even`, `sums_odd`: what SUM probes saw, until it is taken away. */
struct abi_sum_key {
	__u64 resource_id, object;
	__u64 key; /* of a KEYED probe, else 0 */
	__u64 method_id, name_id;
	__u64 start_ns;
	__u32 pid, tid;
	__u16 slot, pad;
	__u8 verb, mode, scope, temperature;
};
ABI_CHECK(abi_sum_key, 64);

struct abi_sum {
	__u64 amount, count, begin_ns; /* of the first hit */
};

enum abi_hit_flags {
	ABI_HIT_NO_KEY = 1, /* wanted, but could not be read */
	ABI_HIT_NO_OBJECT = 2,
	ABI_HIT_NO_AMOUNT = 4,
	ABI_HIT_NO_NAME = 8,
	ABI_HIT_NO_WHEN = 16,	 /* the condition could not be read; taken to hold */
	ABI_HIT_NAME_CUT = 32,	 /* the name was longer, or ended at a stop */
	ABI_HIT_NO_BEGIN = 64,	 /* an end whose begin was not seen */
	ABI_HIT_LEFT = 128,	 /* the call never returned: longjmp or exception */
	ABI_HIT_CLOSED = 256,	 /* nothing works for this request any more */
	ABI_HIT_UNTRACKED = 512, /* a map was full: what follows is unattributed */
	ABI_HIT_WALKED = 1024,	 /* no probe: the walk found a thread asleep in there */
};

/* Followed by the name, name_bytes of it, no NUL. @head.request_id: see @verb. */
struct abi_span {
	struct abi_head head;
	__u64 span_id;	 /* REQUEST: the request; CLIENT: the call; BATCH: the batch */
	__u64 parent_id; /* the request on whose behalf, 0: none */
	__u64 key;
	__u64 begin_ns; /* ends: of the begin; 0: not seen */
	__u64 cpu_ns;	/* ends: CPU of the request until now, by all threads */
	__u64 probe_ns; /* of that, the calibrated cost of our own probes */
	__u64 amount;	/* of ends: the status that the application gave it */
	__u64 name_id;	/* abi_name_id(), or method_id of the plan */
	/* Of ends, until now: */
	__u64 off_cpu_ns;	   /* that threads which served it did not run */
	__u64 in_bytes, out_bytes; /* by sockets, those of streams not counted */
	__u32 faults;		   /* pages */
	__u32 labels;		   /* enum abi_label */
	__u32 weight_milli;
	__u16 verb;  /* enum abi_verb */
	__u16 flags; /* enum abi_hit_flags */
	__u16 slot;
	__u16 name_bytes;
	__u32 pad;
};
ABI_CHECK(abi_span, 48 + 112);

/* What can be said of a request, by its spec. */
enum abi_label {
	ABI_LABEL_HIT = 1,  /* a cache had it */
	ABI_LABEL_MISS = 2, /* ... had not */
	ABI_LABEL_EMPTY = 4,
	ABI_LABEL_ERROR = 8,
	ABI_LABEL_LOW = 16, /* priority */
	ABI_LABEL_HIGH = 32,
	ABI_LABEL_STATUS = 64, /* @amount is known */
};

/*
 * Likewise; the name is the object's or, for COST_ADD, the thing's. @amount: 1 where the
 * probe has none, but for waits: there it is the key of the one who is waited for, or 0.
 */
struct abi_resource {
	struct abi_head head;
	__u64 resource_id;
	__u64 object;
	__u64 amount;
	__u64 begin_ns; /* WAIT_END, and RELEASE of a paired call: of the begin */
	__u64 key;	/* whose doing: of a KEYED probe; 0: the thread's */
	__u64 name_id;
	__u16 verb;
	__u16 flags;
	__u16 slot;
	__u16 name_bytes;
	__u8 mode;
	__u8 scope;
	__u8 temperature;
	__u8 pad;
	__u32 count; /* USE, COST_ADD: hits added up in @amount, since @begin_ns; else 1 */
};
ABI_CHECK(abi_resource, 48 + 64);

enum abi_side { ABI_SENT = 1, ABI_RECEIVED };
enum abi_family { ABI_TCP = 1, ABI_UNIX, ABI_STREAM, ABI_BEFORE_STREAM };

/*
 * Bytes from a client to a server, as one side sees them. SENT: for request @span_id.
 * RECEIVED: request @span_id began with these, as the @ordinal-th of them (from 0). A
 * connection is known by its two streams; no address, so it is the same on both sides of
 * a NAT. @source, @target: of the sender's and of the other stream; TCP: the number of
 * its first byte, UNIX: the socket's cookie. STREAM: as TCP, but @begin is the number of
 * one of the streams that share the connection. BEFORE_STREAM: bytes as TCP, all since
 * the stream before was opened, the rest of which may come first.
 */
struct abi_message {
	struct abi_head head;
	__u64 span_id;
	__u64 source, target;
	__u64 begin, end; /* bytes [begin, end) of the stream @source */
	__u32 ordinal;
	__u8 side, family;
	__u16 pad;
};
ABI_CHECK(abi_message, 48 + 48);

/*
 * The walk: every some 100 ms all threads of the targets are looked at, which costs them
 * nothing. A thread that waits for a lock is told at once, any other that was asleep the
 * last time already and has not run since; its stack comes as a tick marked ASLEEP.
 */
enum abi_sleep_op { ABI_SLEEP_BEGIN = 1, ABI_SLEEP_END /* it has run since */ };

enum abi_sleep_flags {
	ABI_SLEEP_LOCK = 1, /* @object is a mutex of libc, locked by thread @owner */
	ABI_SLEEP_DISK = 2, /* uninterruptible: storage, mostly */
};

struct abi_sleep {
	struct abi_head head;
	__u64 since_ns; /* first seen asleep */
	__u64 object;	/* futexes: its address */
	__u32 op;	/* enum abi_sleep_op */
	__u32 flags;	/* enum abi_sleep_flags */
	__s32 syscall;	/* number, -1 none */
	__u32 owner;	/* 0 unknown */
};
ABI_CHECK(abi_sleep, 48 + 32);

/* Resources that need no spec; all others have a hash for an id. */
enum abi_generic {
	ABI_GENERIC_LOCK = 1, /* a mutex of libc; object: its address */
	ABI_GENERIC_MEMORY,   /* LEVEL: resident bytes of a process */
	ABI_GENERIC_MAPPED,   /* LEVEL: bytes of address space */
	ABI_GENERIC_THREADS,  /* LEVEL */
	ABI_GENERIC_FILES,    /* LEVEL: open descriptors */
	ABI_GENERIC_BACKLOG,  /* LEVEL: connections not accepted yet; object: port */
	ABI_GENERIC_UNREAD,   /* LEVEL: ms that the oldest bytes wait in a TCP socket */
	ABI_GENERICS,
};

/* One word after the other, the last one padded with zeros. */
static inline __u64 abi_name_word(__u64 id, __u64 word)
{
	id = (id ^ word) * 0x9e3779b97f4a7c15ull;
	return id ^ (id >> 32);
}

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
