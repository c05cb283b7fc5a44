/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_CONTEXT_BPF_H
#define ASSAY_CONTEXT_BPF_H

/*
 * Which request a task serves, and what that costs. A request lives as long as it is
 * referred to: by being open (1), by every task that serves it, and by all work of its
 * that is queued. Its CPU is charged when a task changes from one request to another:
 * the difference of two readings of the task's own CPU clock.
 */

#include "bpf/record.bpf.h"

#define MAX_REQUESTS 65536

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_REQUESTS);
	__type(key, __u64);
	__type(value, struct app_request);
} requests SEC(".maps");

struct {
	__uint(type, BPF_MAP_TYPE_TASK_STORAGE);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__type(key, int);
	__type(value, struct task_state);
} states SEC(".maps");

const volatile __u64 id_seed; /* random, per load */

/* A bijection of (time, CPU): no two of one load are equal, and never 0 in practice. */
static __always_inline __u64 id_new(__u64 now_ns)
{
	__u64 id = now_ns << 9 | (bpf_get_smp_processor_id() & (ABI_MAX_CPUS - 1));

	id = (id ^ id_seed) * 0x9e3779b97f4a7c15ull;
	return id ^ (id >> 29);
}

/*
 * The task's CPU time, to the ns, without the scheduler's lock: what it had at the last
 * update plus the time since, on the clock without interrupts. Only differences mean
 * something: the two clocks have different origins.
 */
static __always_inline __u64 cpu_of(struct task_struct *task)
{
	__u64 now_ns = bpf_ktime_get_ns(), stolen_ns = 0;

	if (bpf_core_field_exists(task->se.cfs_rq)) {
		struct rq *rq = task->se.cfs_rq->rq;

		stolen_ns = rq->clock - rq->clock_task;
	}
	return task->se.sum_exec_runtime + now_ns - stolen_ns - task->se.exec_start;
}

static __always_inline struct app_request *request_find(__u64 id)
{
	return id ? bpf_map_lookup_elem(&requests, &id) : NULL;
}

/* The end of @request, or that nothing works for it any more. */
__noinline int request_tell(struct task_state *state, __u64 id,
			    struct app_request *request, __u32 verb, __u32 flags)
{
	if (!state || !request)
		return 0;
	state->hit.name_bytes = 0;
	struct abi_span *span = span_begin(state, verb);

	span->head.request_id = id;
	span->head.method_id = request->method_id;
	span->head.pid = request->pid;
	span->head.start_ns = request->start_ns;
	span->span_id = id;
	span->parent_id = request->parent_id;
	span->key = request->key;
	span->begin_ns = request->begin_ns;
	span->cpu_ns = request->cpu_ns;
	span->probe_ns = request->probe_ns;
	span->off_cpu_ns = request->off_cpu_ns;
	span->in_bytes = request->in_bytes;
	span->out_bytes = request->out_bytes;
	span->faults = request->faults;
	span->labels = request->labels;
	span->amount = request->status;
	span->name_id = request->method_id;
	span->weight_milli = request->weight_milli;
	span->flags = flags;
	span->slot = request->slot;
	if (record_put(state, ABI_SPAN, 0))
		count_dropped(request->slot);
	return 0;
}

/* One reference less. */
__noinline int request_leave(struct task_state *state, __u64 id)
{
	struct app_request *request = request_find(id);

	if (!state || !request || __sync_fetch_and_add(&request->refs, -1) != 1)
		return 0;
	request_tell(state, id, request, ABI_TASK_DONE, ABI_HIT_CLOSED);
	bpf_map_delete_elem(&requests, &id);
	return 0;
}

/* Time in which the task served @request, up to its end, and did not run. */
static __always_inline void charge_off_cpu(const struct task_state *state,
					   struct app_request *request, __u64 now_ns,
					   __u64 used_ns)
{
	__u64 until_ns = request->end_ns ?: now_ns;
	__s64 off_ns = until_ns - state->wall_mark - used_ns;

	if (until_ns > state->wall_mark && off_ns > 0)
		__sync_fetch_and_add(&request->off_cpu_ns, off_ns);
}

static __always_inline void charge_rest(struct task_state *state,
					struct app_request *request, __u64 used_ns)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct received *bytes = bpf_task_storage_get(&received, task, NULL, 0);
	__u64 now_ns = bpf_ktime_get_ns(), faults = task->maj_flt + task->min_flt;
	__u64 in_bytes = bytes ? bytes->in_bytes : 0;
	__u64 out_bytes = bytes ? bytes->out_bytes : 0;

	if (state->is_born) {
		state->wall_mark = task->start_time;
		state->fault_mark = 0;
	}
	if (request) {
		charge_off_cpu(state, request, now_ns, used_ns);
		__sync_fetch_and_add(&request->in_bytes, in_bytes - state->in_mark);
		__sync_fetch_and_add(&request->out_bytes, out_bytes - state->out_mark);
		__sync_fetch_and_add(&request->faults, faults - state->fault_mark);
	}
	state->wall_mark = now_ns;
	state->in_mark = in_bytes;
	state->out_mark = out_bytes;
	state->fault_mark = faults;
}

/* Charge what the thread did since the last change to what it served. */
static __always_inline void context_charge(struct task_state *state,
					   struct app_request *request)
{
	struct task_struct *task = bpf_get_current_task_btf();
	__u64 cpu_ns = cpu_of(task);
	__u64 used_ns =
		state->is_born ? task->se.sum_exec_runtime : cpu_ns - state->cpu_mark;

	if (request && (__s64)used_ns > 0) {
		__sync_fetch_and_add(&request->cpu_ns, used_ns);
		__sync_fetch_and_add(&request->probe_ns, state->probe_ns);
	}
	charge_rest(state, request, used_ns);
	state->cpu_mark = cpu_ns;
	state->probe_ns = 0;
	state->is_born = 0;
}

static __always_inline void context_tag(__u64 id, __u64 method_id)
{
	struct task_request *tag =
		bpf_task_storage_get(&task_request, bpf_get_current_task_btf(), NULL,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!tag)
		return;
	tag->request_id = id;
	tag->method_id = method_id;
}

/* The task serves request @id from here on; 0: none. */
__noinline int context_set(struct task_state *state, __u64 id, __u64 method_id)
{
	if (!state)
		return 0;
	struct app_request *new = request_find(id);
	__u64 old_id = state->request_id;
	bool was_counted = state->is_counted;

	context_charge(state, request_find(old_id));
	if (new)
		__sync_fetch_and_add(&new->refs, 1);
	else
		id = method_id = 0;
	state->is_counted = new != NULL;
	state->request_id = id;
	state->method_id = method_id;
	if (was_counted)
		request_leave(state, old_id);
	context_tag(id, method_id);
	return 0;
}

static __always_inline bool is_serving(const struct task_state *state, __u64 id)
{
	return id && state->request_id == id;
}

/* The response is out: what is still done for the request is charged, but it is over. */
__noinline int request_end(struct task_state *state, __u64 id, __u32 flags)
{
	struct app_request *request = request_find(id);

	if (!state || !request || __sync_lock_test_and_set(&request->is_ended, 1))
		return 0;
	if (is_serving(state, id))
		context_charge(state, request);
	request->end_ns = bpf_ktime_get_ns();
	bool is_last = request->refs == 1 + (is_serving(state, id) && state->is_counted);

	request_tell(state, id, request, request->end_verb,
		     flags | (is_last ? ABI_HIT_CLOSED : 0));
	if (is_last)
		bpf_map_delete_elem(&requests, &id);
	else
		request_leave(state, id);
	return 0;
}

#endif
