/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_CALLS_BPF_H
#define ASSAY_CALLS_BPF_H

/*
 * Paired calls: from the entry of a function to its return, which may never come. Each
 * task has a small stack of them, ordered by stack pointer, innermost last.
 */

#include "bpf/context.bpf.h"

static __always_inline bool is_paired(const struct abi_probe *probe)
{
	return probe->flags & ABI_PROBE_PAIRED;
}

static __always_inline void calls_trim(struct task_state *state)
{
	for (int i = 0; i < ABI_MAX_OPEN_CALLS; i++) {
		__u32 top = state->depth - 1;

		if (top >= ABI_MAX_OPEN_CALLS || state->calls[top].pair)
			break;
		state->depth = top;
	}
}

static __always_inline struct open_call *call_at(struct task_state *state, int place)
{
	__u64 at = place & (ABI_MAX_OPEN_CALLS - 1); /* for the verifier's sake */

	barrier_var(at);
	return place < 0 ? NULL : &state->calls[at & (ABI_MAX_OPEN_CALLS - 1)];
}

/* A call that never returned, or not in the way that counts: what it opened ends. */
__noinline int call_left(struct task_state *state, int place)
{
	if (!state)
		return 0;
	struct open_call *call = call_at(state, place);

	if (!call)
		return 0;
	call->pair = 0;
	switch (call->verb) {
	case ABI_REQUEST_BEGIN:
	case ABI_BATCH_BEGIN:
		request_end(state, call->span_id, ABI_HIT_LEFT);
		/* fall through */
	case ABI_TASK_POP:
	case ABI_CONN_OWN:
		context_set(state, call->before_id, call->before_method_id);
	}
	return 0;
}

/*
 * Calls whose frame is gone: the stack has shrunk beyond it, or the same function is
 * entered at the same place again. Innermost first.
 */
__noinline int calls_drop(struct task_state *state, __u64 sp, __u32 pair)
{
	if (!state)
		return 0;
	for (int i = ABI_MAX_OPEN_CALLS - 1; i >= 0; i--) {
		struct open_call *call = &state->calls[i];

		if (i >= state->depth || !call->pair)
			continue;
		if (call->sp < sp || (call->sp == sp && call->pair == pair))
			call_left(state, i);
	}
	calls_trim(state);
	return 0;
}

__noinline int call_open(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct hit *hit = &state->hit;

	calls_drop(state, hit->sp, probe->pair);
	__u32 at = state->depth;

	if (at >= ABI_MAX_OPEN_CALLS) {
		hit->flags |= ABI_HIT_UNTRACKED;
		return count_dropped(hit->slot);
	}
	struct open_call *call = &state->calls[at];

	call->sp = hit->sp;
	call->key = hit->key;
	call->object = hit->object;
	call->amount = hit->amount;
	call->has_amount = hit->has_amount;
	call->name_id = hit->name_id;
	call->begin_ns = bpf_ktime_get_ns();
	call->span_id = 0;
	call->before_id = state->request_id;
	call->before_method_id = state->method_id;
	call->pair = probe->pair;
	call->verb = probe->flags & ABI_PROBE_SAVE ? 0 : probe->verb;
	call->flags = hit->flags;
	state->depth = at + 1;
	return 0;
}

/*
 * call_close() - the call that this is the return of. Return: its place, where it stays
 * to be read, marked as over; or -1.
 */
__noinline int call_close(struct task_state *state, __u64 sp, __u32 pair)
{
	int found = -1;

	if (!state)
		return -1;
	for (int i = ABI_MAX_OPEN_CALLS - 1; i >= 0; i--) {
		struct open_call *call = &state->calls[i];

		if (i >= state->depth || !call->pair)
			continue;
		if (call->sp < sp)
			call_left(state, i);
		else if (found < 0 && call->sp == sp && call->pair == pair)
			found = i;
	}
	if (found >= 0 && found < ABI_MAX_OPEN_CALLS)
		state->calls[found].pair = 0;
	calls_trim(state);
	return found;
}

/*
 * call_end() - the end of a paired call has from its begin what it does not know itself.
 * Return: the place of the call, or -1: no begin, so no end either.
 */
__noinline int call_end(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return -1;
	struct hit *hit = &state->hit;
	int place = call_close(state, hit->sp, probe->pair);
	struct open_call *call = call_at(state, place);

	if (!call)
		return -1;
	if (!has(&probe->key)) {
		hit->key = call->key;
		hit->flags |= call->flags & ABI_HIT_NO_KEY;
	}
	if (!has(&probe->object)) {
		hit->object = call->object;
		hit->flags |= call->flags & ABI_HIT_NO_OBJECT;
	}
	if (!has(&probe->amount)) {
		hit->amount = call->amount;
		hit->has_amount = call->has_amount;
		hit->flags |= call->flags & ABI_HIT_NO_AMOUNT;
	}
	if (!has(&probe->name) && !hit->name_id)
		hit->name_id = call->name_id;
	hit->begin_ns = call->begin_ns;
	hit->span_id = call->span_id;
	return place;
}

static __always_inline void call_span(struct task_state *state, __u64 span_id)
{
	__u32 top = state->depth - 1;

	if (top < ABI_MAX_OPEN_CALLS)
		state->calls[top].span_id = span_id;
}

#endif
