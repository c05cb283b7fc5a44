/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_STREAM_BPF_H
#define ASSAY_STREAM_BPF_H

/*
 * Many calls on one connection, as in HTTP/2: whoever finds the time sends what all have
 * asked for, so the sender's context says nothing, but both sides know a call by the
 * number of its stream. A client that shares no connection may know nothing of streams:
 * for it the server also tells which bytes came since the stream before was opened.
 */

#include "bpf/keys.bpf.h"
#include "bpf/message.bpf.h"

/* A stream that was opened by the other side, until its request begins. */
struct stream_in {
	__u64 source, target, number;
	__u64 begin, end; /* bytes */
};

struct {
	__uint(type, BPF_MAP_TYPE_LRU_HASH);
	__uint(max_entries, 16384);
	__type(key, struct name_key);
	__type(value, struct stream_in);
} streams_in SEC(".maps");

/* What is no socket has no entry in tcp_ends. */
static __always_inline struct tcp_end *end_of_fd(__u64 fd)
{
	struct task_struct *task = bpf_get_current_task_btf();
	struct file **files = BPF_CORE_READ(task, files, fdt, fd);
	__u32 room = BPF_CORE_READ(task, files, fdt, max_fds);
	struct file *file = NULL;

	if (fd >= room || bpf_probe_read_kernel(&file, sizeof(file), files + fd) || !file)
		return NULL;
	struct socket *socket = BPF_CORE_READ(file, private_data);
	__u64 sk = socket ? (__u64)BPF_CORE_READ(socket, sk) : 0;

	return sk ? bpf_map_lookup_elem(&tcp_ends, &sk) : NULL;
}

__noinline int stream_call(struct task_state *state, const struct abi_probe *probe)
{
	struct name_key key;

	if (!state || !probe)
		return 0;
	if (request_find(state->request_id))
		return key_put(state, probe, SPACE_STREAM, state->request_id);
	key_fill(&key, probe, SPACE_STREAM, state->hit.key);
	bpf_map_delete_elem(&keys, &key);
	return 0;
}

/* A call that is tried again opens another stream. */
static __always_inline void stream_out(const struct abi_probe *probe,
				       const struct tcp_end *end, const struct hit *hit)
{
	struct received message = { end->source,     end->target, hit->amount,
				    hit->amount + 1, 0,		  ABI_STREAM };
	struct name_value call = {};

	if (key_find(probe, hit->key, SPACE_STREAM, &call))
		message_tell(&message, call.id, ABI_SENT, 0);
}

__noinline int stream_open(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	const struct hit *hit = &state->hit;
	struct tcp_end *end = end_of_fd(hit->object);
	struct name_key key;

	if (!end)
		return 0;
	end->has_streams = 1;
	if (end->role == ROLE_ACTIVE) {
		stream_out(probe, end, hit);
		return 0;
	}
	struct stream_in in = { end->target, end->source, hit->amount, end->opened,
				end->read };

	end->opened = in.end;
	key_fill(&key, probe, SPACE_STREAM, hit->key);
	bpf_map_update_elem(&streams_in, &key, &in, BPF_ANY);
	return 0;
}

/* Request @span_id begins, which is what the stream was opened for. */
__noinline int stream_take(struct task_state *state, const struct abi_probe *probe,
			   __u64 span_id)
{
	struct name_key key;

	if (!state || !probe)
		return 0;
	key_fill(&key, probe, SPACE_STREAM, state->hit.key);
	struct stream_in *in = bpf_map_lookup_elem(&streams_in, &key);

	if (!in)
		return 0;
	struct received message = { in->source,	    in->target, in->number,
				    in->number + 1, 0,		ABI_STREAM };

	message_tell(&message, span_id, ABI_RECEIVED, 0);
	message.begin = in->begin;
	message.end = in->end;
	message.family = ABI_BEFORE_STREAM;
	if (in->end > in->begin)
		message_tell(&message, span_id, ABI_RECEIVED, 0);
	bpf_map_delete_elem(&streams_in, &key);
	return 0;
}

#endif
