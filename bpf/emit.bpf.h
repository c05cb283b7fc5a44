/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_EMIT_BPF_H
#define ASSAY_EMIT_BPF_H

/* What every program does: ask the filter, count, fill the head, choose the wake-up. */

#include "bpf/maps.bpf.h"

#define MAX_CGROUP_DEPTH 16

static __always_inline struct abi_count *count_of(__u32 kind)
{
	__u32 zero = 0, cpu = bpf_get_smp_processor_id();
	struct abi_counts *all = bpf_map_lookup_elem(&counts, &zero);

	if (!all || cpu >= ABI_MAX_CPUS || kind >= ABI_KINDS)
		return NULL;
	return &all->cpu[cpu][kind];
}

/* Atomic: a program in task context may be preempted by another of its kind. */
static __always_inline void count_seen(__u32 kind)
{
	struct abi_count *count = count_of(kind);

	if (count)
		__sync_fetch_and_add(&count->seen, 1);
}

static __always_inline int count_drop(__u32 kind)
{
	struct abi_count *count = count_of(kind);

	if (count)
		__sync_fetch_and_add(&count->dropped, 1);
	return 0;
}

static __always_inline bool is_below_target_cgroup(void)
{
	for (int level = 1; level < MAX_CGROUP_DEPTH; level++) {
		__u64 id = bpf_get_current_ancestor_cgroup_id(level);

		if (!id)
			return false;
		if (bpf_map_lookup_elem(&target_cgroups, &id))
			return true;
	}
	return false;
}

/* is_wanted() - does the current process pass the filter? Never the idle task. */
static __always_inline bool is_wanted(void)
{
	__u32 zero = 0, pid = bpf_get_current_pid_tgid() >> 32;
	struct abi_filter *now = bpf_map_lookup_elem(&filter, &zero);

	if (!now || !now->flags || !pid || pid == now->self_pid)
		return false;
	bool wanted = now->flags & ABI_FILTER_ALL;

	if (!wanted && now->flags & ABI_FILTER_PIDS)
		wanted = bpf_map_lookup_elem(&target_pids, &pid);
	if (!wanted && now->flags & ABI_FILTER_CGROUP)
		wanted = is_below_target_cgroup();
	return wanted && !bpf_map_lookup_elem(&self_pids, &pid);
}

static __always_inline __u64 start_of(struct task_struct *task)
{
	__u64 start_ns = task->group_leader->start_boottime;

	return start_ns / ABI_START_TICK_NS * ABI_START_TICK_NS;
}

static __always_inline void head_fill(struct abi_head *head, __u16 kind, __u32 size,
				      struct task_struct *task)
{
	head->kind = kind;
	head->cpu = bpf_get_smp_processor_id();
	head->size = size;
	head->time_ns = bpf_ktime_get_ns();
	head->pid = task->tgid;
	head->tid = task->pid;
	head->start_ns = start_of(task);
	head->request_id = 0;
	head->method_id = 0;
}

static __always_inline void head_request(struct abi_head *head, struct task_struct *task)
{
	struct task_request *request = bpf_task_storage_get(&task_request, task, NULL, 0);

	if (!request)
		return;
	head->request_id = request->request_id;
	head->method_id = request->method_id;
}

/* Waking the reader costs more than the record: only when half of the ring is used. */
static __always_inline __u64 wakeup_flags(void)
{
	__u64 used = bpf_ringbuf_query(&ring, BPF_RB_AVAIL_DATA);
	__u64 size = bpf_ringbuf_query(&ring, BPF_RB_RING_SIZE);

	return used > size / 2 ? BPF_RB_FORCE_WAKEUP : BPF_RB_NO_WAKEUP;
}

#endif
