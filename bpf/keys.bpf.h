/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_KEYS_BPF_H
#define ASSAY_KEYS_BPF_H

/*
 * What the application calls the thing: its key, to what we call it. Per process, spec
 * and kind of thing.
 */

#include "bpf/context.bpf.h"

#define MAX_KEYS      131072
#define MAX_PROCESSES 32768

enum space {
	SPACE_REQUEST = 1,
	SPACE_WORK,
	SPACE_CLIENT,
	SPACE_BATCH,
	SPACE_WAIT,
	SPACE_STREAM
};

struct name_key {
	__u64 key;
	__u32 pid, spec_id, space, pad;
};

struct name_value {
	__u64 id; /* of the request, call or batch */
	__u64 method_id, begin_ns;
};

struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_KEYS);
	__type(key, struct name_key);
	__type(value, struct name_value);
} keys SEC(".maps");

/* Who has keys: the process ids whose end there is something to forget at. */
struct {
	__uint(type, BPF_MAP_TYPE_HASH);
	__uint(map_flags, BPF_F_NO_PREALLOC);
	__uint(max_entries, MAX_PROCESSES);
	__type(key, __u32);
	__type(value, __u32);
} key_owners SEC(".maps");

static __always_inline void key_fill(struct name_key *key, const struct abi_probe *probe,
				     __u32 space, __u64 value)
{
	key->key = value;
	key->pid = bpf_get_current_pid_tgid() >> 32;
	key->spec_id = probe->spec_id;
	key->space = space;
	key->pad = 0;
}

static __always_inline long key_own(__u32 pid)
{
	__u32 one = 1;

	if (bpf_map_lookup_elem(&key_owners, &pid))
		return 0;
	return bpf_map_update_elem(&key_owners, &pid, &one, BPF_ANY);
}

/* key_put() - 0, or not 0 when there was no room. */
__noinline int key_put(struct task_state *state, const struct abi_probe *probe,
		       __u32 space, __u64 id)
{
	if (!state || !probe)
		return -1;
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

/* key_find() - was it there? If so its value. */
__noinline int key_find(const struct abi_probe *probe, __u64 name, __u32 space,
			struct name_value *ret_value)
{
	struct name_key key;

	if (!probe || !ret_value)
		return false;
	key_fill(&key, probe, space, name);
	struct name_value *value = bpf_map_lookup_elem(&keys, &key);

	if (!value)
		return false;
	*ret_value = *value;
	return true;
}

/* key_take() - likewise, and it is forgotten. */
static __always_inline bool key_take(const struct abi_probe *probe, __u64 name,
				     __u32 space, struct name_value *ret_value)
{
	struct name_key key;

	if (!key_find(probe, name, space, ret_value))
		return false;
	key_fill(&key, probe, space, name);
	bpf_map_delete_elem(&keys, &key);
	return true;
}

#endif
