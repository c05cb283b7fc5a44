// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * A tick of the CPU clock: where the time goes, with the kernel's frames, the user
 * frames as far as frame pointers lead, the user registers, and a copy of the user
 * stack for the unwinder unless user space said that frame pointers are enough.
 */
#include "bpf/emit.bpf.h"
#include "bpf/regs.bpf.h"

#define PAGE_BYTES 4096
#define PAGES	   (ABI_STACK_COPY_MAX / PAGE_BYTES)
#define PF_KTHREAD 0x00200000

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 stack_bytes = 8192; /* at most ABI_STACK_COPY_MAX */

/* The slack page lets the verifier see that a page at any offset fits. */
struct scratch {
	struct abi_tick tick;
	__u8 stack[ABI_STACK_COPY_MAX + PAGE_BYTES];
};

struct {
	__uint(type, BPF_MAP_TYPE_PERCPU_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, struct scratch);
} scratch SEC(".maps");

/*
 * How much to copy: to the frame in which the program began, which only the main
 * thread has on its stack; elsewhere until memory ends or the limit.
 */
static __always_inline __u32 stack_room(struct task_struct *task, __u64 sp)
{
	__u64 root = task->mm->start_stack;

	if (sp < root && root - sp < stack_bytes)
		return root - sp;
	return stack_bytes;
}

/*
 * Page by page, because one absent page would fail the whole read. Verifiers before 6.5
 * need the bounds checked right before the use, on values that are not narrowed again.
 */
static __always_inline __u32 stack_copy(struct scratch *to, __u64 sp, __u64 room)
{
	__u64 done = 0;

	for (int i = 0; i <= PAGES; i++) {
		__u64 chunk = PAGE_BYTES - ((sp + done) & (PAGE_BYTES - 1));

		if (chunk > room - done)
			chunk = room - done;
		barrier_var(chunk);
		barrier_var(done);
		if (done >= ABI_STACK_COPY_MAX || !chunk || chunk > PAGE_BYTES)
			break;
		if (bpf_probe_read_user(to->stack + done, chunk, (void *)(sp + done)))
			break;
		done += chunk;
	}
	return done;
}

/* A call of its own, lest the compiler reads context and pt_regs by one instruction. */
static __noinline void regs_at_entry(struct abi_tick *tick, struct task_struct *task)
{
	struct pt_regs *regs = (void *)bpf_task_pt_regs(task);

	REGS_COPY(tick->regs, regs);
}

static __always_inline void user_fill(struct scratch *to, struct task_struct *task,
				      struct bpf_perf_event_data *ctx)
{
	struct abi_tick *tick = &to->tick;
	__u32 pid = task->tgid;

	if (tick->flags & ABI_TICK_KERNEL)
		regs_at_entry(tick, task);
	else
		REGS_COPY(tick->regs, &ctx->regs);
	tick->flags |= ABI_TICK_USER;
	long bytes = bpf_get_stack(ctx, tick->user_ips, sizeof(tick->user_ips),
				   BPF_F_USER_STACK);

	if (bytes > 0)
		tick->user_depth = bytes / sizeof(__u64);
	if (bpf_map_lookup_elem(&fp_ok, &pid))
		return;
	__u32 room = stack_room(task, tick->regs[7]);

	tick->stack_bytes = stack_copy(to, tick->regs[7], room);
	if (tick->stack_bytes == stack_bytes)
		tick->flags |= ABI_TICK_CUT;
}

static __always_inline void kernel_fill(struct abi_tick *tick,
					struct bpf_perf_event_data *ctx)
{
	tick->flags |= ABI_TICK_KERNEL;
	long bytes = bpf_get_stack(ctx, tick->kernel_ips, sizeof(tick->kernel_ips), 0);

	if (bytes > 0)
		tick->kernel_depth = bytes / sizeof(__u64);
}

/* In pieces that must not be joined: the compiler inlines at most 1024 bytes. */
static __always_inline void tick_clear(struct abi_tick *tick)
{
	__builtin_memset(tick, 0, __builtin_offsetof(struct abi_tick, kernel_ips));
	barrier();
	__builtin_memset(tick->kernel_ips, 0, sizeof(tick->kernel_ips));
	barrier();
	__builtin_memset(tick->user_ips, 0, sizeof(tick->user_ips));
}

SEC("perf_event")
int tick(struct bpf_perf_event_data *ctx)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u32 zero = 0;
	struct scratch *to = bpf_map_lookup_elem(&scratch, &zero);

	if (!to || !is_wanted())
		return 0;
	count_seen(ABI_TICK);
	tick_clear(&to->tick);
	struct clock_share *share = bpf_map_lookup_elem(&clock_share, &zero);

	to->tick.period_ns = ctx->sample_period;
	if (share && share->tick_every)
		to->tick.period_ns *= share->tick_every;
	if ((__s64)ctx->regs.ip < 0)
		kernel_fill(&to->tick, ctx);
	if (!(task->flags & PF_KTHREAD))
		user_fill(to, task, ctx);

	__u64 bytes = to->tick.stack_bytes;

	barrier_var(bytes);
	if (bytes > ABI_STACK_COPY_MAX)
		bytes = ABI_STACK_COPY_MAX;
	head_fill(&to->tick.head, ABI_TICK, sizeof(to->tick) + bytes, task);
	head_request(&to->tick.head, task);
	if (bpf_ringbuf_output(&ring, to, sizeof(to->tick) + bytes, wakeup_flags()))
		return count_drop(ABI_TICK);
	return 0;
}
