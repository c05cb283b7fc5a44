// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * Task lifecycle. EXEC is emitted where the kernel renames the task: the old address
 * space is gone by then and nothing of the new program is mapped yet, whereas
 * sched_process_exec fires after the new mappings were announced.
 */
#include "bpf/emit.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct change {
	struct task_struct *task, *parent;
	const char *comm;
	__u32 op, tid, exit_code;
};

static __always_inline int task_emit(const struct change *change)
{
	struct task_struct *task = change->task;

	count_seen(ABI_TASK);
	struct abi_task *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record)
		return count_drop(ABI_TASK);
	head_fill(&record->head, ABI_TASK, sizeof(*record), task);
	record->head.tid = change->tid;
	record->op = change->op;
	record->parent_pid = change->parent->tgid;
	record->parent_start_ns = start_of(change->parent);
	record->cgroup_id = task->cgroups->dfl_cgrp->kn->id;
	record->uid = task->real_cred->uid.val;
	record->exit_code = change->exit_code;
	__builtin_memset(record->comm, 0, sizeof(record->comm));
	bpf_probe_read_kernel_str(record->comm, sizeof(record->comm), change->comm);
	bpf_ringbuf_submit(record, wakeup_flags());
	return 0;
}

/* A child is what its parent is: a target, or a part of the agent. */
static __always_inline void join(void *set, __u32 parent, __u32 child)
{
	__u8 one = 1;

	if (!bpf_map_lookup_elem(set, &parent))
		return;
	if (bpf_map_update_elem(set, &child, &one, BPF_ANY)) {
		count_seen(ABI_TASK);
		count_drop(ABI_TASK);
	}
}

SEC("tp_btf/sched_process_fork")
int BPF_PROG(task_fork, struct task_struct *parent, struct task_struct *child)
{
	struct change change = {
		.task = child,
		.parent = parent,
		.comm = child->comm,
		.op = ABI_TASK_FORK,
		.tid = child->pid,
	};

	if (child->tgid == child->pid) {
		join(&target_pids, parent->tgid, child->tgid);
		join(&self_pids, parent->tgid, child->tgid);
		join(&fp_ok, parent->tgid, child->tgid);
	}
	return is_wanted() ? task_emit(&change) : 0;
}

static __always_inline int emit_exec(struct task_struct *task, const char *comm)
{
	__u32 pid = task->tgid;
	struct change change = {
		.task = task,
		.parent = task->real_parent,
		.comm = comm,
		.op = ABI_TASK_EXEC,
		.tid = task->pid,
	};

	bpf_map_delete_elem(&fp_ok, &pid);
	return is_wanted() ? task_emit(&change) : 0;
}

SEC("tp_btf/task_rename")
int BPF_PROG(task_exec, struct task_struct *task, const char *comm)
{
	if (!bpf_core_field_exists(task->in_execve) ||
	    !BPF_CORE_READ_BITFIELD(task, in_execve))
		return 0;
	return emit_exec(task, comm);
}

/* For a kernel that no longer marks a task in exec: late is better than never. */
SEC("tp_btf/sched_process_exec")
int BPF_PROG(task_exec_late, struct task_struct *task)
{
	return bpf_core_field_exists(task->in_execve) ? 0 : emit_exec(task, task->comm);
}

/* Only the end of a whole process is told, by whichever thread is the last. */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(task_exit, struct task_struct *task)
{
	__u32 pid = task->tgid;
	struct change change = {
		.task = task,
		.parent = task->real_parent,
		.comm = task->comm,
		.op = ABI_TASK_EXIT,
		.tid = pid,
		.exit_code = task->signal->group_exit_code ?: task->exit_code,
	};

	if (task->signal->live.counter)
		return 0;
	if (is_wanted())
		task_emit(&change);
	bpf_map_delete_elem(&target_pids, &pid);
	bpf_map_delete_elem(&self_pids, &pid);
	bpf_map_delete_elem(&fp_ok, &pid);
	return 0;
}
