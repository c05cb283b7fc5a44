/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_RECORD_BPF_H
#define ASSAY_RECORD_BPF_H

/* What a hit evaluated to, into the ring; and what every probe counts. */

#include "bpf/fetch.bpf.h"

#define RESOURCE_OFFSET (sizeof(struct abi_span) - sizeof(struct abi_resource))

const volatile __u32 cpu_count = 1; /* of possible ones: rows per slot */

/* Mapped by user space; resized to ABI_MAX_SLOTS * cpu_count. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, ABI_MAX_SLOTS);
	__uint(map_flags, BPF_F_MMAPABLE);
	__type(key, __u32);
	__type(value, struct abi_probe_count);
} probe_counts SEC(".maps");

static __always_inline struct abi_probe_count *count_at(__u32 slot)
{
	__u32 row = slot * cpu_count + bpf_get_smp_processor_id();

	return bpf_map_lookup_elem(&probe_counts, &row);
}

__noinline int count_dropped(__u32 slot)
{
	struct abi_probe_count *count = count_at(slot);

	if (count)
		__sync_fetch_and_add(&count->dropped, 1);
	return 0;
}

/* Hand out state->record, which holds a span or a resource of @bytes at its end. */
static __always_inline long record_put(struct task_state *state, __u32 kind, __u64 offset)
{
	__u64 bytes = sizeof(state->record) - offset + state->hit.name_bytes;

	count_seen(kind);
	barrier_var(bytes);
	if (bytes > sizeof(state->record) + ABI_NAME_MAX - offset)
		return -1;
	if (!bpf_ringbuf_output(&ring, state->record + offset, bytes, wakeup_flags()))
		return 0;
	count_drop(kind);
	return -1;
}

static __always_inline struct abi_span *span_begin(struct task_state *state, __u32 verb)
{
	struct abi_span *span = (void *)state->record;

	__builtin_memset(span, 0, sizeof(*span));
	head_fill(&span->head, ABI_SPAN, sizeof(*span) + state->hit.name_bytes,
		  bpf_get_current_task_btf());
	span->head.request_id = state->request_id;
	span->head.method_id = state->method_id;
	span->verb = verb;
	span->name_bytes = state->hit.name_bytes;
	span->weight_milli = ABI_WEIGHT_ONE;
	return span;
}

__noinline int span_tell(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
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
		count_dropped(hit->slot);
	return 0;
}

static __always_inline __u64 amount_of(const struct hit *hit,
				       const struct abi_probe *probe)
{
	if (hit->has_amount || probe->verb == ABI_WAIT_BEGIN ||
	    probe->verb == ABI_WAIT_END)
		return hit->amount;
	return 1;
}

__noinline int resource_tell(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
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
		count_dropped(hit->slot);
	return 0;
}

#endif
