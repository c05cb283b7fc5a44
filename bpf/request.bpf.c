// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One program for all probes: what a hit means stands in its plan. One program and not
 * one per verb, because a uprobe_multi link has one program and attaching and detaching
 * cost per link; the switch over the verbs costs nothing beside the trap.
 */
#include "bpf/resource.bpf.h"

#include "bpf/regs.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_MAX_SLOTS);
	__type(key, __u32);
	__type(value, struct abi_probe);
} probes SEC(".maps");

static __always_inline void verb_request(struct task_state *state,
					 const struct abi_probe *probe)
{
	switch (probe->verb) {
	case ABI_REQUEST_BEGIN:
		request_begin(state, probe);
		break;
	case ABI_REQUEST_END:
		request_over(state, probe, SPACE_REQUEST);
		break;
	case ABI_CLIENT_BEGIN:
		client_begin(state, probe);
		break;
	case ABI_CLIENT_END:
		client_end(state, probe);
		break;
	case ABI_BATCH_ADD:
		batch_add(state, probe);
		break;
	case ABI_BATCH_BEGIN:
		batch_begin(state, probe);
		break;
	case ABI_BATCH_END:
		request_over(state, probe, SPACE_BATCH);
		break;
	case ABI_TASK_PUSH:
		task_push(state, probe);
		break;
	case ABI_TASK_POP:
		task_pop(state, probe);
		break;
	case ABI_CONN_OWN:
		serve_key(state, probe);
		break;
	case ABI_CONN_RELEASE:
		message_forget();
		/* fall through */
	case ABI_TASK_DONE:
		context_set(state, 0, 0);
		break;
	case ABI_STREAM_CALL:
		stream_call(state, probe);
		break;
	case ABI_STREAM_OPEN:
		stream_open(state, probe);
		break;
	case ABI_LABEL:
		request_label(state, probe);
		break;
	}
}

static __always_inline void verb_resource(struct task_state *state,
					  const struct abi_probe *probe)
{
	if (probe->verb == ABI_WAIT_BEGIN)
		wait_begin(state, probe);
	else if (probe->verb == ABI_WAIT_END)
		wait_end(state, probe);
	else if (probe->flags & ABI_PROBE_SUM)
		resource_sum(state, probe);
	else
		resource_tell(state, probe);
}

static __always_inline void verb_run(struct task_state *state,
				     const struct abi_probe *probe)
{
	if (probe->verb < ABI_WAIT_BEGIN || probe->verb >= ABI_STREAM_CALL)
		verb_request(state, probe);
	else
		verb_resource(state, probe);
}

/* Does the return of such a call give the task back to what it served before? */
static __always_inline bool gives_back(const struct abi_probe *probe)
{
	return probe->verb == ABI_REQUEST_END || probe->verb == ABI_BATCH_END ||
	       probe->verb == ABI_TASK_DONE || probe->verb == ABI_CONN_RELEASE;
}

enum outcome { HIT_RUN, HIT_SKIPPED };

/* A return whose entry was not wanted, or came before we did, is nothing. One whose own
 * condition does not hold ends the call all the same. */
static __always_inline enum outcome return_run(struct task_state *state,
					       const struct abi_probe *probe, bool wanted)
{
	if (wanted)
		values_read(state, probe);
	int place = call_end(state, probe);
	struct open_call *call = call_at(state, place);

	if (!call)
		return HIT_SKIPPED;
	if (!wanted)
		call_left(state, place);
	else if (gives_back(probe))
		serve_before(state, place);
	else
		verb_run(state, probe);
	return wanted ? HIT_RUN : HIT_SKIPPED;
}

static __always_inline enum outcome hit_run(struct task_state *state,
					    const struct abi_probe *probe, bool wanted)
{
	if (is_paired(probe) && probe->flags & ABI_PROBE_RETURN)
		return return_run(state, probe, wanted);
	if (!wanted)
		return HIT_SKIPPED;
	values_read(state, probe);
	if (is_paired(probe))
		call_open(state, probe);
	if (!(probe->flags & ABI_PROBE_SAVE))
		verb_run(state, probe);
	return HIT_RUN;
}

static __always_inline bool hit_wanted(struct task_state *state,
				       const struct abi_probe *probe, __u32 slot)
{
	struct hit *hit = &state->hit;

	hit->sp = (probe->flags & ABI_PROBE_BY_FRAME ? state->regs[6] : state->regs[7]) +
		  (__s64)probe->sp_delta;
	hit->begin_ns = 0;
	hit->span_id = 0;
	hit->parent_id = 0;
	hit->name_bytes = 0;
	hit->flags = 0;
	hit->slot = slot;
	for (int i = 0; i < ABI_PROBE_WHENS; i++)
		if (!when_holds(state, &probe->when[i]))
			return false;
	return true;
}

#define UNREAD                                                                      \
	(ABI_HIT_NO_KEY | ABI_HIT_NO_OBJECT | ABI_HIT_NO_AMOUNT | ABI_HIT_NO_NAME | \
	 ABI_HIT_NO_WHEN)

/* What could not be read or kept stands in the flags of the record, where there is one. */
static __always_inline void count_gaps(const struct abi_probe *probe,
				       struct abi_probe_count *count, __u32 flags)
{
	bool has_record = probe->verb < ABI_TASK_PUSH || probe->verb > ABI_CONN_RELEASE ||
			  (probe->verb >= ABI_BATCH_ADD && probe->verb <= ABI_BATCH_END);

	if (flags & UNREAD)
		__sync_fetch_and_add(&count->unknown, 1);
	if (probe->flags & (ABI_PROBE_SAVE | ABI_PROBE_SUM) ||
	    probe->verb >= ABI_STREAM_CALL)
		has_record = false;
	if (has_record)
		return;
	/* What a begin saves goes into the record of the end. */
	if (flags & UNREAD && !(probe->flags & ABI_PROBE_SAVE))
		__sync_fetch_and_add(&count->silent_unread, 1);
	if (flags & ABI_HIT_UNTRACKED)
		__sync_fetch_and_add(&count->silent_untracked, 1);
}

static __always_inline int on_hit(struct pt_regs *ctx)
{
	__u32 slot = bpf_get_attach_cookie(ctx);
	struct abi_probe_count *count = count_at(slot);

	if (!count)
		return 0;
	__sync_fetch_and_add(&count->hits, 1);
	if (slot != ABI_CALIBRATE_SLOT && !is_wanted()) {
		__sync_fetch_and_add(&count->foreign, 1);
		return 0;
	}
	struct abi_probe *probe = bpf_map_lookup_elem(&probes, &slot);
	struct task_state *state =
		bpf_task_storage_get(&states, bpf_get_current_task_btf(), NULL,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!probe || !probe->verb || !state)
		return 0;
	REGS_COPY(state->regs, ctx);
	state->probe_ns += probe->cost_ns;
	if (hit_run(state, probe, hit_wanted(state, probe, slot)) == HIT_SKIPPED)
		__sync_fetch_and_add(&count->skipped, 1);
	else
		count_gaps(probe, count, state->hit.flags);
	return 0;
}

SEC("uprobe")
int probe_multi(struct pt_regs *ctx)
{
	return on_hit(ctx);
}

SEC("uprobe")
int probe_perf(struct pt_regs *ctx)
{
	return on_hit(ctx);
}

/*
 * Who is born while a request is served works for it, until it changes itself. A thread
 * holds a reference, so that its work after the response is charged when it ends. One
 * that stays, as when a pool grows, keeps the request open for as long; user space does
 * not wait for ever. A process of its own holds none.
 */
SEC("tp_btf/sched_process_fork")
int BPF_PROG(context_fork, struct task_struct *parent, struct task_struct *child)
{
	struct task_request *tag = bpf_task_storage_get(&task_request, parent, NULL, 0);

	if (!tag || !tag->request_id)
		return 0;
	struct task_request copy = *tag;
	struct task_state *state = bpf_task_storage_get(&states, child, NULL,
							BPF_LOCAL_STORAGE_GET_F_CREATE);

	tag = bpf_task_storage_get(&task_request, child, &copy,
				   BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (!state || !tag)
		return 0;
	struct app_request *request = request_find(copy.request_id);

	if (request && parent->tgid == child->tgid) {
		__sync_fetch_and_add(&request->refs, 1);
		state->is_counted = 1;
	}
	state->request_id = copy.request_id;
	state->method_id = copy.method_id;
	state->is_born = 1;
	return 0;
}

/* What the process that ends had open: nobody will ask for it again. */
static long key_forget(void *map, struct name_key *key, struct name_value *value,
		       __u32 *pid)
{
	struct task_state *state =
		bpf_task_storage_get(&states, bpf_get_current_task_btf(), NULL, 0);

	if (!state || key->pid != *pid)
		return 0;
	__u64 id = value->id;

	if (key->space == SPACE_REQUEST || key->space == SPACE_BATCH)
		request_end(state, id, ABI_HIT_LEFT);
	else if (key->space == SPACE_WORK)
		request_leave(state, id);
	bpf_map_delete_elem(map, key);
	return 0;
}

/*
 * The last of a thread: its open calls never return, and what it served loses it. The
 * thread that forgets the keys of its process may never have met a probe itself; of
 * several that end at once, one does it: the one whose delete succeeds.
 */
SEC("tp_btf/sched_process_exit")
int BPF_PROG(context_exit, struct task_struct *task)
{
	struct task_struct *current = bpf_get_current_task_btf();
	struct task_state *state = bpf_task_storage_get(&states, current, NULL, 0);
	__u32 pid = task->tgid;

	if (state) {
		calls_drop(state, ~0ull, 0);
		context_set(state, 0, 0);
	}
	if (task->signal->live.counter || bpf_map_delete_elem(&key_owners, &pid))
		return 0;
	if (bpf_task_storage_get(&states, current, NULL, BPF_LOCAL_STORAGE_GET_F_CREATE))
		bpf_for_each_map_elem(&keys, key_forget, &pid, 0);
	return 0;
}
