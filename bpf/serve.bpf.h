/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_SERVE_BPF_H
#define ASSAY_SERVE_BPF_H

/* The verbs about requests: begin and end, calls to elsewhere, work handed over, batches. */

#include "bpf/calls.bpf.h"
#include "bpf/keys.bpf.h"
#include "bpf/stream.bpf.h"

/* An end without a begin: counted, and told so that the loss stands in its bucket. */
static __always_inline void no_begin(struct task_state *state)
{
	struct abi_probe_count *count = count_at(state->hit.slot);

	state->hit.flags |= ABI_HIT_NO_BEGIN;
	if (count)
		__sync_fetch_and_add(&count->unpaired, 1);
}

/* Requests. */

__noinline int request_open(struct task_state *state, const struct abi_probe *probe,
			    __u64 id)
{
	if (!state || !probe)
		return -1;
	struct task_struct *task = bpf_get_current_task_btf();
	struct hit *hit = &state->hit;
	struct app_request fresh = {
		.method_id = hit->name_id,
		.begin_ns = bpf_ktime_get_ns(),
		.key = hit->key,
		.parent_id = hit->parent_id,
		.start_ns = start_of(task),
		.pid = task->tgid,
		.weight_milli = probe->weight_milli ?: ABI_WEIGHT_ONE,
		.refs = 1,
		.slot = hit->slot,
		.end_verb =
			probe->verb == ABI_BATCH_BEGIN ? ABI_BATCH_END : ABI_REQUEST_END,
	};

	if (!bpf_map_update_elem(&requests, &id, &fresh, BPF_ANY))
		return 0;
	hit->flags |= ABI_HIT_UNTRACKED;
	count_dropped(hit->slot);
	return -1;
}

/* The task serves the new request; its begin is told, with its name. */
__noinline int request_start(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct hit *hit = &state->hit;
	__u32 name_bytes = hit->name_bytes;

	if (!(probe->flags & ABI_PROBE_ASIDE))
		context_set(state, hit->span_id, hit->name_id);
	hit->name_bytes = name_bytes; /* the end of another request has none */
	if (is_paired(probe))
		call_span(state, hit->span_id);
	return span_tell(state, probe);
}

static __always_inline void request_got(__u64 id, __u64 bytes)
{
	struct app_request *request = request_find(id);

	if (request)
		request->in_bytes += bytes;
}

__noinline int request_begin(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct hit *hit = &state->hit;
	__u64 id = id_new(bpf_ktime_get_ns());
	struct name_value open = {};

	if (is_paired(probe)) {
		hit->parent_id = state->request_id;
	} else if (probe->flags & ABI_PROBE_ONCE) {
		if (key_find(probe, hit->key, SPACE_REQUEST, &open))
			return context_set(state, open.id, open.method_id);
	} else if (key_take(probe, hit->key, SPACE_REQUEST, &open)) {
		__u32 name_bytes = hit->name_bytes;

		request_end(state, open.id, ABI_HIT_LEFT);
		hit->name_bytes = name_bytes;
	}
	hit->span_id = id;
	if (!request_open(state, probe, id) && !is_paired(probe))
		key_put(state, probe, SPACE_REQUEST, id);
	request_start(state, probe);
	if (probe->flags & ABI_PROBE_STREAMS)
		stream_take(state, probe, id);
	else if (!hit->parent_id)
		request_got(id, message_take(id));
	return 0;
}

/* What the application says of its request. */
__noinline int request_label(struct task_state *state, const struct abi_probe *probe)
{
	struct app_request *request = state ? request_find(state->request_id) : NULL;

	if (request && probe)
		request->labels |= (__u32)probe->resource_id;
	return 0;
}

__noinline int request_over(struct task_state *state, const struct abi_probe *probe,
			    __u32 space)
{
	if (!state || !probe)
		return 0;
	struct hit *hit = &state->hit;
	struct name_value value = {};

	if (!key_take(probe, hit->key, space, &value)) {
		no_begin(state);
		return span_tell(state, probe);
	}
	struct app_request *request = request_find(value.id);

	if (request && hit->has_amount && !(hit->flags & ABI_HIT_NO_AMOUNT)) {
		request->status = hit->amount;
		request->labels |= ABI_LABEL_STATUS;
	}
	request_end(state, value.id, hit->flags);
	if (is_serving(state, value.id))
		context_set(state, 0, 0);
	return 0;
}

__noinline int client_begin(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct hit *hit = &state->hit;

	hit->span_id = id_new(bpf_ktime_get_ns());
	hit->parent_id = state->request_id;
	if (is_paired(probe))
		call_span(state, hit->span_id);
	else
		key_put(state, probe, SPACE_CLIENT, hit->span_id);
	return span_tell(state, probe);
}

__noinline int client_end(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct hit *hit = &state->hit;
	struct name_value value = {};

	hit->parent_id = state->request_id;
	if (is_paired(probe)) {
		; /* it has all from its begin */
	} else if (key_take(probe, hit->key, SPACE_CLIENT, &value)) {
		hit->span_id = value.id;
		hit->begin_ns = value.begin_ns;
		hit->name_id = value.method_id;
	} else {
		no_begin(state);
	}
	return span_tell(state, probe);
}

/* Hand-over of work. */

__noinline int task_push(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct name_value old = {};

	/* The same address is new work: what was there before was never taken. */
	if (key_take(probe, state->hit.key, SPACE_WORK, &old))
		request_leave(state, old.id);
	struct app_request *request = request_find(state->request_id);

	if (!request)
		return 0;
	__sync_fetch_and_add(&request->refs, 1);
	if (key_put(state, probe, SPACE_WORK, state->request_id))
		request_leave(state, state->request_id);
	return 0;
}

__noinline int serve_key(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct name_value open = {};

	if (!key_find(probe, state->hit.key, SPACE_REQUEST, &open))
		state->hit.flags |= ABI_HIT_NO_BEGIN;
	return context_set(state, open.id, open.method_id);
}

__noinline int task_pop(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct name_value work = {};

	if (!key_take(probe, state->hit.key, SPACE_WORK, &work))
		return serve_key(state, probe);
	context_set(state, work.id, work.method_id);
	return request_leave(state, work.id);
}

/* Batches: a root of their own; who was added stands in the records. */

__noinline int batch_add(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct hit *hit = &state->hit;
	struct name_value open = {};
	bool is_open = key_find(probe, hit->key, SPACE_BATCH, &open);

	hit->span_id = is_open ? open.id : id_new(bpf_ktime_get_ns());
	hit->parent_id = state->request_id;
	if (!is_open)
		key_put(state, probe, SPACE_BATCH, hit->span_id);
	return span_tell(state, probe);
}

__noinline int batch_begin(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct hit *hit = &state->hit;
	struct name_value open = {};
	bool is_open = key_find(probe, hit->key, SPACE_BATCH, &open);

	hit->span_id = is_open ? open.id : id_new(bpf_ktime_get_ns());
	if (!is_open && !is_paired(probe))
		key_put(state, probe, SPACE_BATCH, hit->span_id);
	request_open(state, probe, hit->span_id);
	return request_start(state, probe);
}

/* The return of a paired call: what it opened ends, and what was before goes on. */
__noinline int serve_before(struct task_state *state, int place)
{
	if (!state)
		return 0;
	struct open_call *call = call_at(state, place);

	if (!call)
		return context_set(state, 0, 0);
	if (call->span_id)
		request_end(state, call->span_id, state->hit.flags);
	return context_set(state, call->before_id, call->before_method_id);
}

#endif
