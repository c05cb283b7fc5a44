// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * The walk over all threads of the targets, some times a second, run by the agent when it
 * reads the iterator: who sleeps where, and how much each process has of what needs no
 * spec. No hook, so the targets pay nothing; waits that never end show like any other.
 *
 * Whether a thread has run since the last walk is told by its context switches. One walk
 * runs at a time, so one buffer for all will do.
 */
#include "bpf/emit.bpf.h"
#include "bpf/regs.bpf.h"

#define PAGE_BYTES    4096
#define STACKS_MAX    16 /* in one walk */
#define COPY_MAX      8192
#define LEVEL_NS      1000000000ull
#define FILES_MAX     4096 /* descriptors of one process that are looked at */
#define PF_KTHREAD    0x00200000
#define SLEEPING      3 /* interruptible or not */
#define UNINTERRUPTED 2
#define SYS_FUTEX     202
#define FUTEX_PRIVATE 128
#define LOCKED_WAITED 2 /* what a mutex of libc holds while somebody waits for it */
#define OWNER_AT      8 /* struct __pthread_mutex_s */
#define TCP_LISTENS   10
#define TCP_IS_OPEN   1
#define S_IFMASK      00170000
#define S_IFSOCKET    0140000
#define MILLI	      1000
#define BITS	      64

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern int CONFIG_HZ __kconfig __weak;

/* What the last walk saw of a thread. */
struct walked {
	__u64 switches, since_ns, object;
	__u64 level_ns; /* of a process: when its levels were told */
	__u32 flags, owner;
	__s32 syscall;
	__u8 is_told, has_stack, pad[2];
};

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct walked);
} walked SEC(".maps");

/* A listening socket is told once a second, whoever of its processes comes first. */
struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 4096);
	__type(key, __u64);
	__type(value, __u64);
} listeners SEC(".maps");

struct walk_buffer {
	struct abi_tick tick;
	__u8 stack[COPY_MAX + PAGE_BYTES];
	__u64 sequence; /* of the walk that @stacks is of */
	__u32 stacks, pad;
};

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct walk_buffer);
} walk_buffer SEC(".maps");

static __always_inline bool is_in_cgroup(struct task_struct *task)
{
	struct cgroup *group = BPF_CORE_READ(task, cgroups, dfl_cgrp);
	__u32 levels = BPF_CORE_READ(group, level);

	for (int i = 1; i < MAX_CGROUP_DEPTH; i++) {
		struct cgroup *above = NULL;

		if (i > levels ||
		    bpf_core_read(&above, sizeof(above), &group->ancestors[i]))
			return false;
		__u64 id = BPF_CORE_READ(above, kn, id);

		if (bpf_map_lookup_elem(&target_cgroups, &id))
			return true;
	}
	return false;
}

static __always_inline bool is_target(struct task_struct *task)
{
	__u32 zero = 0, pid = task->tgid;
	struct abi_filter *now = bpf_map_lookup_elem(&filter, &zero);

	if (!now || !now->flags || pid == now->self_pid || task->flags & PF_KTHREAD ||
	    bpf_map_lookup_elem(&self_pids, &pid))
		return false;
	return now->flags & ABI_FILTER_ALL ||
	       (now->flags & ABI_FILTER_PIDS &&
		bpf_map_lookup_elem(&target_pids, &pid)) ||
	       (now->flags & ABI_FILTER_CGROUP && is_in_cgroup(task));
}

/* Sleep. */

static __always_inline void sleep_tell(struct task_struct *task,
				       const struct walked *seen, __u32 op)
{
	count_seen(ABI_SLEEP);
	struct abi_sleep *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record) {
		count_drop(ABI_SLEEP);
		return;
	}
	head_fill(&record->head, ABI_SLEEP, sizeof(*record), task);
	head_request(&record->head, task);
	record->since_ns = seen->since_ns;
	record->object = seen->object;
	record->op = op;
	record->flags = seen->flags;
	record->syscall = seen->syscall;
	record->owner = seen->owner;
	bpf_ringbuf_submit(record, wakeup_flags());
}

/*
 * A mutex of libc sleeps by FUTEX_WAIT for the value 2. Others do so as well; what tells
 * them apart is an owner that is a thread, which user space can judge.
 */
static __always_inline void sleep_futex(struct task_struct *task, struct walked *seen,
					struct pt_regs *regs)
{
	__u32 op = regs->si & ~FUTEX_PRIVATE;

	seen->object = regs->di;
	if (op || (__u32)regs->dx != LOCKED_WAITED)
		return;
	if (bpf_copy_from_user_task(&seen->owner, sizeof(seen->owner),
				    (void *)(seen->object + OWNER_AT), task, 0))
		seen->owner = 0;
	if (seen->owner && seen->owner != (__u32)task->pid)
		seen->flags |= ABI_SLEEP_LOCK;
}

static __always_inline void sleep_begin(struct task_struct *task, struct walked *seen,
					__u64 switches)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	seen->switches = switches;
	seen->since_ns = bpf_ktime_get_ns();
	seen->object = 0;
	seen->flags = task->__state & UNINTERRUPTED ? ABI_SLEEP_DISK : 0;
	seen->owner = 0;
	seen->syscall = regs ? (__s32)regs->orig_ax : -1;
	seen->has_stack = 0;
	if (regs && seen->syscall == SYS_FUTEX)
		sleep_futex(task, seen, regs);
}

/* Page by page, because one absent page would fail the whole read. */
static __always_inline __u32 stack_copy(struct walk_buffer *to, struct task_struct *task)
{
	__u64 sp = to->tick.regs[7], done = 0;

	for (int i = 0; i <= COPY_MAX / PAGE_BYTES; i++) {
		__u64 chunk = PAGE_BYTES - ((sp + done) & (PAGE_BYTES - 1));

		if (chunk > COPY_MAX - done)
			chunk = COPY_MAX - done;
		barrier_var(chunk);
		barrier_var(done);
		if (done >= COPY_MAX || !chunk || chunk > PAGE_BYTES)
			break;
		if (bpf_copy_from_user_task(to->stack + done, chunk, (void *)(sp + done),
					    task, 0))
			break;
		done += chunk;
	}
	return done;
}

static __always_inline void tick_clear(struct abi_tick *tick)
{
	__builtin_memset(tick, 0, __builtin_offsetof(struct abi_tick, kernel_ips));
	barrier();
	__builtin_memset(tick->kernel_ips, 0, sizeof(tick->kernel_ips));
	barrier();
	__builtin_memset(tick->user_ips, 0, sizeof(tick->user_ips));
}

/* The stack of a sleeper, for the unwinder. What is over the limit is tried again. */
static __always_inline void sleep_stack(struct task_struct *task, struct walked *seen,
					__u64 sequence)
{
	__u32 zero = 0;
	struct walk_buffer *to = bpf_map_lookup_elem(&walk_buffer, &zero);
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	if (!to || !regs)
		return;
	if (to->sequence != sequence) {
		to->sequence = sequence;
		to->stacks = 0;
	}
	if (to->stacks++ >= STACKS_MAX)
		return;
	seen->has_stack = 1;
	count_seen(ABI_SLEEP);
	tick_clear(&to->tick);
	REGS_COPY(to->tick.regs, regs);
	to->tick.flags = ABI_TICK_USER | ABI_TICK_ASLEEP;
	to->tick.stack_bytes = stack_copy(to, task);
	if (to->tick.stack_bytes == COPY_MAX)
		to->tick.flags |= ABI_TICK_CUT;
	__u64 bytes = to->tick.stack_bytes;

	barrier_var(bytes);
	if (bytes > COPY_MAX)
		bytes = COPY_MAX;
	head_fill(&to->tick.head, ABI_TICK, sizeof(to->tick) + bytes, task);
	head_request(&to->tick.head, task);
	if (bpf_ringbuf_output(&ring, to, sizeof(to->tick) + bytes, wakeup_flags()))
		count_drop(ABI_SLEEP);
}

static __always_inline void walk_sleep(struct task_struct *task, struct walked *seen,
				       __u64 sequence)
{
	bool is_asleep = task->__state & SLEEPING && !task->on_rq;
	__u64 switches = task->nvcsw + task->nivcsw;
	bool is_same = seen->switches == switches;

	if (seen->is_told && !(is_asleep && is_same)) {
		seen->is_told = 0;
		sleep_tell(task, seen, ABI_SLEEP_END);
	}
	if (!is_asleep)
		return;
	if (!is_same)
		sleep_begin(task, seen, switches);
	if (!seen->is_told && (is_same || seen->flags & ABI_SLEEP_LOCK)) {
		seen->is_told = 1;
		sleep_tell(task, seen, ABI_SLEEP_BEGIN);
	}
	if (is_same && !seen->has_stack)
		sleep_stack(task, seen, sequence);
}

/* Levels. */

struct gauge {
	__u32 resource;
	__u64 object, amount;
};

static __always_inline void level_tell(struct task_struct *task,
				       const struct gauge *gauge)
{
	count_seen(ABI_RESOURCE);
	struct abi_resource *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record) {
		count_drop(ABI_RESOURCE);
		return;
	}
	__builtin_memset(record, 0, sizeof(*record));
	head_fill(&record->head, ABI_RESOURCE, sizeof(*record), task);
	record->resource_id = gauge->resource;
	record->object = gauge->object;
	record->amount = gauge->amount;
	record->verb = ABI_LEVEL;
	record->flags = ABI_HIT_WALKED;
	record->slot = ABI_NO_SLOT;
	record->scope = ABI_SCOPE_OBJECT;
	record->count = 1;
	bpf_ringbuf_submit(record, wakeup_flags());
}

struct files_walk {
	struct task_struct *task;
	struct file **files;
	__u32 room, open;
	__u64 unread_ms;
};

static __always_inline void listener_look(struct files_walk *walk, struct sock *sk)
{
	__u64 key = (__u64)sk, now_ns = bpf_ktime_get_ns();
	__u64 *told_ns = bpf_map_lookup_elem(&listeners, &key);
	struct gauge gauge = { ABI_GENERIC_BACKLOG,
			       BPF_CORE_READ(sk, __sk_common.skc_num),
			       BPF_CORE_READ(sk, sk_ack_backlog) };

	if (told_ns && now_ns - *told_ns < LEVEL_NS / 2)
		return;
	bpf_map_update_elem(&listeners, &key, &now_ns, BPF_ANY);
	level_tell(walk->task, &gauge);
}

static __always_inline void socket_look(struct files_walk *walk, struct sock *sk)
{
	__u8 state = BPF_CORE_READ(sk, __sk_common.skc_state);
	__u16 family = BPF_CORE_READ(sk, __sk_common.skc_family);

	if (state == TCP_LISTENS)
		listener_look(walk, sk);
	if (state != TCP_IS_OPEN || (family != 2 && family != 10) || !CONFIG_HZ ||
	    BPF_CORE_READ(sk, sk_protocol) != 6)
		return;
	struct tcp_sock *tcp = (void *)sk;
	__u32 next = BPF_CORE_READ(tcp, rcv_nxt), copied = BPF_CORE_READ(tcp, copied_seq);
	__u32 last = BPF_CORE_READ((struct inet_connection_sock *)sk, icsk_ack.lrcvtime);
	__u64 ms = (__u64)((__u32)bpf_jiffies64() - last) * MILLI / (__u32)CONFIG_HZ;

	if ((__s32)(next - copied) > 0 && ms > walk->unread_ms)
		walk->unread_ms = ms;
}

static long file_look(__u32 at, void *ctx)
{
	struct files_walk *walk = ctx;
	struct file *file = NULL;

	if (at >= walk->room)
		return 1;
	if (bpf_probe_read_kernel(&file, sizeof(file), walk->files + at) || !file)
		return 0;
	walk->open++;
	if ((BPF_CORE_READ(file, f_inode, i_mode) & S_IFMASK) != S_IFSOCKET)
		return 0;
	struct socket *socket = BPF_CORE_READ(file, private_data);
	struct sock *sk = BPF_CORE_READ(socket, sk);

	if (sk)
		socket_look(walk, sk);
	return 0;
}

static __always_inline void walk_files(struct task_struct *task)
{
	struct files_walk walk = {
		.task = task,
		.files = BPF_CORE_READ(task, files, fdt, fd),
		.room = BPF_CORE_READ(task, files, fdt, max_fds),
	};

	if (!walk.files)
		return;
	bpf_loop(FILES_MAX, file_look, &walk, 0);
	struct gauge open = { ABI_GENERIC_FILES, 0, walk.open };
	struct gauge unread = { ABI_GENERIC_UNREAD, 0, walk.unread_ms };

	level_tell(task, &open);
	level_tell(task, &unread);
}

static __always_inline void walk_levels(struct task_struct *task)
{
	struct mm_struct *mm = BPF_CORE_READ(task, mm);
	__u64 pages = 0;

	if (!mm)
		return;
	/* File pages, anonymous ones, and those of shared memory (3); 2 is swap. */
	for (int i = 0; i < 4; i++)
		if (i != 2)
			pages += BPF_CORE_READ(mm, rss_stat[i].count);
	struct gauge memory = { ABI_GENERIC_MEMORY, 0, pages * PAGE_BYTES };
	struct gauge mapped = { ABI_GENERIC_MAPPED, 0,
				BPF_CORE_READ(mm, total_vm) * PAGE_BYTES };
	struct gauge threads = { ABI_GENERIC_THREADS, 0,
				 BPF_CORE_READ(task, signal, nr_threads) };

	level_tell(task, &memory);
	level_tell(task, &mapped);
	level_tell(task, &threads);
	walk_files(task);
}

SEC("iter.s/task")
int walk_task(struct bpf_iter__task *ctx)
{
	struct task_struct *task = ctx->task;

	if (!task || !is_target(task))
		return 0;
	struct walked *seen =
		bpf_task_storage_get(&walked, task, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!seen)
		return 0;
	walk_sleep(task, seen, ctx->meta->session_id);
	__u64 now_ns = bpf_ktime_get_ns();

	if (task->pid != task->tgid || now_ns - seen->level_ns < LEVEL_NS)
		return 0;
	seen->level_ns = now_ns;
	walk_levels(task);
	return 0;
}
