/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_RESOURCE_BPF_H
#define ASSAY_RESOURCE_BPF_H

/*
 * The verbs about resources. Who holds what is for user space to tell: here only the two
 * ends of a wait meet. What comes often and only counts is added up and fetched later.
 */

#include "bpf/serve.bpf.h"

#define MAX_SUMS 16384

struct sum_map {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_SUMS);
	__type(key, struct abi_sum_key);
	__type(value, struct abi_sum);
};

/* Two, of which user space empties the one that is not in use: an addition under way
 * while a sum is taken would be lost. */
struct sum_map sums_even SEC(".maps"), sums_odd SEC(".maps");

/* Of what is in use: 0 even, 1 odd. */
struct {
	__uint(type, BPF_MAP_TYPE_ARRAY);
	__uint(max_entries, 1);
	__type(key, __u32);
	__type(value, __u32);
} sum_side SEC(".maps");

static __always_inline void sum_fill(struct abi_sum_key *key, struct task_state *state,
				     const struct abi_probe *probe)
{
	struct task_struct *task = bpf_get_current_task_btf();

	key->resource_id = probe->resource_id;
	key->object = state->hit.object;
	key->key = probe->flags & ABI_PROBE_KEYED ? state->hit.key : 0;
	key->method_id = state->method_id;
	key->name_id = state->hit.name_id;
	key->start_ns = start_of(task);
	key->pid = task->tgid;
	key->tid = task->pid;
	key->slot = state->hit.slot;
	key->pad = 0;
	key->verb = probe->verb;
	key->mode = probe->mode;
	key->scope = probe->scope;
	key->temperature = probe->temperature;
}

static __always_inline long sum_add(void *map, const struct abi_sum_key *key,
				    __u64 amount)
{
	struct abi_sum *sum = bpf_map_lookup_elem(map, key);

	if (sum) {
		__sync_fetch_and_add(&sum->amount, amount);
		__sync_fetch_and_add(&sum->count, 1);
		return 0;
	}
	struct abi_sum first = { amount, 1, bpf_ktime_get_ns() };

	return bpf_map_update_elem(map, key, &first, BPF_NOEXIST);
}

/* Where there is no room, the event goes its way alone. */
__noinline int resource_sum(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct abi_sum_key key;
	__u32 zero = 0, *side = bpf_map_lookup_elem(&sum_side, &zero);
	__u64 amount = amount_of(&state->hit, probe);

	sum_fill(&key, state, probe);
	if (side && *side ? !sum_add(&sums_odd, &key, amount)
			  : !sum_add(&sums_even, &key, amount))
		return 0;
	return resource_tell(state, probe);
}

__noinline int wait_begin(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	if (!is_paired(probe))
		key_put(state, probe, SPACE_WAIT, probe->resource_id);
	return resource_tell(state, probe);
}

__noinline int wait_end(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct name_value value = {};

	if (is_paired(probe))
		; /* it has all from its begin */
	else if (key_take(probe, state->hit.key, SPACE_WAIT, &value))
		state->hit.begin_ns = value.begin_ns;
	else
		no_begin(state);
	return resource_tell(state, probe);
}

#endif
