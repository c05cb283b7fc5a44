// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One program for all probes: what a hit means stands in its plan. One program and not
 * one per verb, because a uprobe_multi link has one program and attaching and detaching
 * cost per link; the switch over the verbs costs nothing beside the trap.
 */
#include "bpf/context.bpf.h"
#include "bpf/regs.bpf.h"

char LICENSE[] SEC("license") = "Dual BSD/GPL";

const volatile __u32 cpu_count = 1; /* of possible ones: rows per slot */

struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_MAX_SLOTS);
	__type(key, __u32);
	__type(value, struct abi_probe);
} probes SEC(".maps");

/* Mapped by user space; resized to ABI_MAX_SLOTS * cpu_count. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_MAX_SLOTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct abi_probe_count);
} probe_counts SEC(".maps");

static __always_inline bool is_paired(const struct abi_probe *probe)
{
	return probe->flags & ABI_PROBE_PAIRED;
}

static __always_inline struct abi_probe_count *count_at(__u32 slot)
{
	__u32 row = slot * cpu_count + bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&probe_counts, &row);
}

static __noinline void count_dropped(__u32 slot)
{
	struct abi_probe_count *count = count_at(slot);

	if (count)
		__sync_fetch_and_add(&count->dropped, 1);
}

/* Records. */

static __noinline void span_tell(struct task_state *state, const struct abi_probe *probe)
{
	const struct hit *hit = &state->hit;
	struct abi_span *span = span_begin(state, probe->verb);

	span->span_id = hit->span_id;
	span->parent_id = hit->parent_id;
	span->key = hit->key;
	span->amount = hit->amount;
	span->begin_ns = hit->begin_ns;
	span->name_id = hit->name_id;
	span->flags = hit->flags;
	span->slot = hit->slot;
	if (probe->weight_milli)
		span->weight_milli = probe->weight_milli;
	if (record_put(state, ABI_SPAN, 0))
		count_dropped(state->hit.slot);
}

#define RESOURCE_OFFSET (sizeof(struct abi_span) - sizeof(struct abi_resource))

static __always_inline __u64 amount_of(const struct hit *hit,
				       const struct abi_probe *probe)
{
	if (has(&probe->amount) || probe->verb == ABI_WAIT_BEGIN ||
	    probe->verb == ABI_WAIT_END)
		return hit->amount;
	return 1;
}

static __noinline void resource_tell(struct task_state *state,
				     const struct abi_probe *probe)
{
	struct abi_resource *record = (void *)(state->record + RESOURCE_OFFSET);
	const struct hit *hit = &state->hit;

	__builtin_memset(record, 0, sizeof(*record));
	head_fill(&record->head, ABI_RESOURCE, sizeof(*record) + hit->name_bytes,
		  bpf_get_current_task_btf());
	record->head.request_id = state->request_id;
	record->head.method_id = state->method_id;
	record->resource_id = probe->resource_id;
	record->object = hit->object;
	record->amount = amount_of(hit, probe);
	record->key = probe->flags & ABI_PROBE_KEYED ? hit->key : 0;
	record->begin_ns = hit->begin_ns;
	record->name_id = hit->name_id;
	record->verb = probe->verb;
	record->flags = hit->flags;
	record->slot = hit->slot;
	record->name_bytes = hit->name_bytes;
	record->mode = probe->mode;
	record->scope = probe->scope;
	record->temperature = probe->temperature;
	record->count = 1;
	if (record_put(state, ABI_RESOURCE, RESOURCE_OFFSET))
		count_dropped(state->hit.slot);
}

/* Paired calls. */

static __always_inline void calls_trim(struct task_state *state)
{
	for (int i = 0; i < ABI_MAX_OPEN_CALLS; i++) {
		__u32 top = state->depth - 1;

		if (top >= ABI_MAX_OPEN_CALLS || state->calls[top].pair)
			break;
		state->depth = top;
	}
}

/* A call that never returned; what it opened ends here. */
static __noinline void call_left(struct task_state *state, struct open_call *call)
{
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
}

/*
 * Calls whose frame is gone: the stack has shrunk beyond it, or the same function is
 * entered at the same place again. Innermost first.
 */
static __noinline void calls_drop(struct task_state *state, __u64 sp, __u32 pair)
{
	for (int i = ABI_MAX_OPEN_CALLS - 1; i >= 0; i--) {
		struct open_call *call = &state->calls[i];

		if (i >= state->depth || !call->pair)
			continue;
		if (call->sp < sp || (call->sp == sp && call->pair == pair))
			call_left(state, call);
	}
	calls_trim(state);
}

static __noinline void call_open(struct task_state *state, const struct abi_probe *probe)
{
	struct hit *hit = &state->hit;

	calls_drop(state, hit->sp, probe->pair);
	__u32 at = state->depth;

	if (at >= ABI_MAX_OPEN_CALLS) {
		hit->flags |= ABI_HIT_UNTRACKED;
		count_dropped(hit->slot);
		return;
	}
	struct open_call *call = &state->calls[at];

	call->sp = hit->sp;
	call->key = hit->key;
	call->object = hit->object;
	call->begin_ns = bpf_ktime_get_ns();
	call->span_id = 0;
	call->before_id = state->request_id;
	call->before_method_id = state->method_id;
	call->pair = probe->pair;
	call->verb = probe->verb;
	call->flags = hit->flags;
	state->depth = at + 1;
}

/* The call that this is the return of; it stays in its place, marked as over. */
static __noinline struct open_call *call_close(struct task_state *state, __u64 sp,
					       __u32 pair)
{
	struct open_call *found = NULL;

	for (int i = ABI_MAX_OPEN_CALLS - 1; i >= 0; i--) {
		struct open_call *call = &state->calls[i];

		if (i >= state->depth || !call->pair)
			continue;
		if (call->sp < sp)
			call_left(state, call);
		else if (!found && call->sp == sp && call->pair == pair)
			found = call;
	}
	if (found)
		found->pair = 0;
	calls_trim(state);
	return found;
}

/* The end of a paired call has from its begin what it does not know itself. */
static __always_inline struct open_call *call_end(struct task_state *state,
						  const struct abi_probe *probe)
{
	struct hit *hit = &state->hit;
	struct open_call *call = call_close(state, hit->sp, probe->pair);

	if (!call) {
		hit->flags |= ABI_HIT_NO_BEGIN;
		return NULL;
	}
	if (!has(&probe->key))
		hit->key = call->key;
	if (!has(&probe->object)) {
		hit->object = call->object;
		hit->flags |= call->flags & ABI_HIT_NO_OBJECT;
	}
	hit->begin_ns = call->begin_ns;
	hit->span_id = call->span_id;
	return call;
}

static __always_inline void call_span(struct task_state *state, __u64 span_id)
{
	__u32 top = state->depth - 1;

	if (top < ABI_MAX_OPEN_CALLS)
		state->calls[top].span_id = span_id;
}

/* Keys. */

static __always_inline long key_own(__u32 pid)
{
	__u32 one = 1;

	if (bpf_map_lookup_elem(&key_owners, &pid))
		return 0;
	return bpf_map_update_elem(&key_owners, &pid, &one, BPF_ANY);
}

static __noinline long key_put(struct task_state *state, const struct abi_probe *probe,
			       __u32 space, __u64 id)
{
	struct hit *hit = &state->hit;
	struct name_value value = { .id = id,
				    .method_id = space == SPACE_WORK ? state->method_id
								     : hit->name_id,
				    .begin_ns = bpf_ktime_get_ns() };
	struct name_key key;

	key_fill(&key, probe, space, hit->key);
	if (!key_own(key.pid) && !bpf_map_update_elem(&keys, &key, &value, BPF_ANY))
		return 0;
	hit->flags |= ABI_HIT_UNTRACKED;
	count_dropped(hit->slot);
	return -1;
}

/* key_take() - was it there? If so its value, and it is forgotten. */
static __noinline bool key_take(const struct abi_probe *probe, struct hit *hit,
				__u32 space, struct name_value *ret_value)
{
	struct name_key key;

	key_fill(&key, probe, space, hit->key);
	struct name_value *value = bpf_map_lookup_elem(&keys, &key);

	if (!value)
		return false;
	*ret_value = *value;
	bpf_map_delete_elem(&keys, &key);
	return true;
}

static __always_inline struct name_value *key_find(const struct abi_probe *probe,
						   struct hit *hit, __u32 space)
{
	struct name_key key;

	key_fill(&key, probe, space, hit->key);
	return bpf_map_lookup_elem(&keys, &key);
}

/* Requests. */

static __noinline long request_open(struct task_state *state,
				    const struct abi_probe *probe, __u64 id)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct app_request *fresh = &state->fresh;
	struct hit *hit = &state->hit;

	__builtin_memset(fresh, 0, sizeof(*fresh));
	fresh->method_id = hit->name_id;
	fresh->begin_ns = bpf_ktime_get_ns();
	fresh->key = hit->key;
	fresh->parent_id = hit->parent_id;
	fresh->start_ns = start_of(task);
	fresh->pid = task->tgid;
	fresh->weight_milli = probe->weight_milli ?: ABI_WEIGHT_ONE;
	fresh->refs = 1;
	fresh->slot = hit->slot;
	fresh->end_verb =
		probe->verb == ABI_BATCH_BEGIN ? ABI_BATCH_END : ABI_REQUEST_END;
	if (!bpf_map_update_elem(&requests, &id, fresh, BPF_ANY))
		return 0;
	hit->flags |= ABI_HIT_UNTRACKED;
	count_dropped(hit->slot);
	return -1;
}

static __noinline void request_begin(struct task_state *state,
				     const struct abi_probe *probe)
{
	struct hit *hit = &state->hit;
	__u64 id = id_new(bpf_ktime_get_ns());
	struct name_value old;

	if (is_paired(probe)) {
		hit->parent_id = state->request_id;
	} else if (probe->flags & ABI_PROBE_ONCE) {
		struct name_value *open = key_find(probe, hit, SPACE_REQUEST);

		if (open) {
			context_set(state, open->id, open->method_id);
			return;
		}
	} else if (key_take(probe, hit, SPACE_REQUEST, &old)) {
		__u32 name_bytes = hit->name_bytes;

		request_end(state, old.id, ABI_HIT_LEFT);
		hit->name_bytes = name_bytes;
	}
	hit->span_id = id;
	if (!request_open(state, probe, id) && !is_paired(probe))
		key_put(state, probe, SPACE_REQUEST, id);
	__u32 name_bytes = hit->name_bytes;

	context_set(state, id, hit->name_id);
	hit->name_bytes = name_bytes; /* the end of another request has none */
	if (is_paired(probe))
		call_span(state, id);
	span_tell(state, probe);
}

static __noinline void request_over(struct task_state *state,
				    const struct abi_probe *probe, __u32 space)
{
	struct hit *hit = &state->hit;
	struct name_value value = {};

	if (is_paired(probe)) {
		struct open_call *call = call_end(state, probe);

		if (call) {
			request_end(state, call->span_id, hit->flags);
			context_set(state, call->before_id, call->before_method_id);
			return;
		}
	} else if (key_take(probe, hit, space, &value)) {
		request_end(state, value.id, hit->flags);
		if (is_serving(state, value.id))
			context_set(state, 0, 0);
		return;
	}
	hit->flags |= ABI_HIT_NO_BEGIN;
	span_tell(state, probe);
}

static __noinline void client_begin(struct task_state *state,
				    const struct abi_probe *probe)
{
	struct hit *hit = &state->hit;

	hit->span_id = id_new(bpf_ktime_get_ns());
	hit->parent_id = state->request_id;
	if (is_paired(probe))
		call_span(state, hit->span_id);
	else
		key_put(state, probe, SPACE_CLIENT, hit->span_id);
	span_tell(state, probe);
}

static __noinline void client_end(struct task_state *state, const struct abi_probe *probe)
{
	struct hit *hit = &state->hit;
	struct name_value value = {};

	hit->parent_id = state->request_id;
	if (is_paired(probe)) {
		call_end(state, probe);
	} else if (key_take(probe, hit, SPACE_CLIENT, &value)) {
		hit->span_id = value.id;
		hit->begin_ns = value.begin_ns;
		hit->name_id = value.method_id;
	} else {
		hit->flags |= ABI_HIT_NO_BEGIN;
	}
	span_tell(state, probe);
}

/* Hand-over of work. */

static __noinline void work_unref(struct task_state *state, __u64 id)
{
	struct app_request *request = request_find(id);

	if (request)
		request_leave(state, id, request);
}

static __noinline void task_push(struct task_state *state, const struct abi_probe *probe)
{
	struct app_request *request = request_find(state->request_id);
	struct name_value old;

	/* The same address is new work: what was there before was never taken. */
	if (key_take(probe, &state->hit, SPACE_WORK, &old))
		work_unref(state, old.id);
	if (!request)
		return;
	__sync_fetch_and_add(&request->refs, 1);
	if (key_put(state, probe, SPACE_WORK, state->request_id))
		request_leave(state, state->request_id, request);
}

static __noinline void serve_key(struct task_state *state, const struct abi_probe *probe)
{
	struct name_value *open = key_find(probe, &state->hit, SPACE_REQUEST);

	if (!open)
		state->hit.flags |= ABI_HIT_NO_BEGIN;
	context_set(state, open ? open->id : 0, open ? open->method_id : 0);
}

static __noinline void task_pop(struct task_state *state, const struct abi_probe *probe)
{
	struct name_value work;

	if (!key_take(probe, &state->hit, SPACE_WORK, &work)) {
		serve_key(state, probe);
		return;
	}
	context_set(state, work.id, work.method_id);
	work_unref(state, work.id);
}

static __noinline void serve_before(struct task_state *state,
				    const struct abi_probe *probe)
{
	struct open_call *call = is_paired(probe) ? call_end(state, probe) : NULL;

	context_set(state, call ? call->before_id : 0, call ? call->before_method_id : 0);
}

/* Batches: a root of their own; who was added stands in the records. */

static __noinline void batch_add(struct task_state *state, const struct abi_probe *probe)
{
	struct hit *hit = &state->hit;
	struct name_value *open = key_find(probe, hit, SPACE_BATCH);

	hit->span_id = open ? open->id : id_new(bpf_ktime_get_ns());
	hit->parent_id = state->request_id;
	if (!open)
		key_put(state, probe, SPACE_BATCH, hit->span_id);
	span_tell(state, probe);
}

static __noinline void batch_begin(struct task_state *state,
				   const struct abi_probe *probe)
{
	struct hit *hit = &state->hit;
	struct name_value *open = key_find(probe, hit, SPACE_BATCH);
	__u64 id = open ? open->id : id_new(bpf_ktime_get_ns());
	__u32 name_bytes = hit->name_bytes;

	hit->span_id = id;
	if (!open && !is_paired(probe))
		key_put(state, probe, SPACE_BATCH, id);
	request_open(state, probe, id);
	context_set(state, id, hit->name_id);
	hit->name_bytes = name_bytes;
	if (is_paired(probe))
		call_span(state, id);
	span_tell(state, probe);
}

/* Resources. */

static __noinline void resource_begin(struct task_state *state,
				      const struct abi_probe *probe)
{
	if (!is_paired(probe))
		key_put(state, probe, SPACE_WAIT, probe->resource_id);
	resource_tell(state, probe);
}

static __noinline void resource_end(struct task_state *state,
				    const struct abi_probe *probe)
{
	struct hit *hit = &state->hit;
	struct name_value value = {};

	if (is_paired(probe))
		call_end(state, probe);
	else if (probe->verb != ABI_WAIT_END)
		; /* the ledger pairs it by object */
	else if (key_take(probe, hit, SPACE_WAIT, &value))
		hit->begin_ns = value.begin_ns;
	else
		hit->flags |= ABI_HIT_NO_BEGIN;
	resource_tell(state, probe);
}

/* Verbs. */

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
	}
}

static __always_inline void verb_task(struct task_state *state,
				      const struct abi_probe *probe)
{
	switch (probe->verb) {
	case ABI_TASK_PUSH:
		task_push(state, probe);
		break;
	case ABI_TASK_POP:
		task_pop(state, probe);
		break;
	case ABI_CONN_OWN:
		serve_key(state, probe);
		break;
	case ABI_TASK_DONE:
	case ABI_CONN_RELEASE:
		serve_before(state, probe);
		break;
	case ABI_WAIT_BEGIN:
		resource_begin(state, probe);
		break;
	default: /* ends, and what has no other end */
		resource_end(state, probe);
	}
}

static __always_inline bool is_at_return(const struct abi_probe *probe)
{
	return probe->flags & ABI_PROBE_RETURN;
}

static __always_inline void hit_run(struct task_state *state,
				    const struct abi_probe *probe)
{
	values_read(state, probe);
	if (is_paired(probe) && !is_at_return(probe))
		call_open(state, probe);
	if (probe->verb <= ABI_CLIENT_END ||
	    (probe->verb >= ABI_BATCH_ADD && probe->verb <= ABI_BATCH_END))
		verb_request(state, probe);
	else
		verb_task(state, probe);
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

static __always_inline int on_hit(struct pt_regs *ctx)
{
	__u32 slot = bpf_get_attach_cookie(ctx);
	struct abi_probe *probe = bpf_map_lookup_elem(&probes, &slot);
	struct abi_probe_count *count = count_at(slot);

	if (!probe || !count)
		return 0;
	__sync_fetch_and_add(&count->hits, 1);
	struct task_state *state = NULL;

	if (probe->verb && (slot == ABI_CALIBRATE_SLOT || is_wanted()))
		state = bpf_task_storage_get(&states, bpf_get_current_task_btf(), NULL,
					     BPF_LOCAL_STORAGE_GET_F_CREATE);
	if (state) {
		REGS_COPY(state->regs, ctx);
		state->probe_ns += probe->cost_ns;
	}
	if (!state || !hit_wanted(state, probe, slot)) {
		__sync_fetch_and_add(&count->skipped, 1);
		return 0;
	}
	hit_run(state, probe);
	if (state->hit.flags & UNREAD)
		__sync_fetch_and_add(&count->unknown, 1);
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
 * A thread that is born while a request is served works for it, until it changes itself.
 * It holds no reference: a pool that grows in a request must not keep it open for ever.
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
		work_unref(state, id);
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
