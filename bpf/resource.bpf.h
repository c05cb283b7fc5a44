/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_RESOURCE_BPF_H
#define ASSAY_RESOURCE_BPF_H

/*
 * The verbs about resources. Who holds what is for user space to tell: here only the two
 * ends of a wait meet. What comes often and only counts is added up and fetched later.
 */

#include "bpf/serve.bpf.h"

#define MAX_SUMS 16384

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_SUMS);
	__type(key, struct abi_sum_key);
	__type(value, struct abi_sum);
} sums SEC(".maps");

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

/* Where there is no room, the event goes its way alone. */
__noinline int resource_sum(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct abi_sum_key key;
	__u64 amount = amount_of(&state->hit, probe);

	sum_fill(&key, state, probe);
	struct abi_sum *sum = bpf_map_lookup_elem(&sums, &key);

	if (sum) {
		__sync_fetch_and_add(&sum->amount, amount);
		__sync_fetch_and_add(&sum->count, 1);
		return 0;
	}
	struct abi_sum first = { amount, 1, bpf_ktime_get_ns() };

	if (!bpf_map_update_elem(&sums, &key, &first, BPF_NOEXIST))
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
