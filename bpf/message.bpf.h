/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_MESSAGE_BPF_H
#define ASSAY_MESSAGE_BPF_H

/* Which bytes between processes belong to which request: see struct abi_message. */

#include "bpf/emit.bpf.h"

/* message_tell() - @message is one of @side, with @ordinal. */
static __always_inline void message_tell(const struct received *message, __u64 span_id,
					 __u8 side, __u32 ordinal)
{
	struct abi_message *record;

	count_seen(ABI_MESSAGE);
	record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);
	if (!record) {
		count_drop(ABI_MESSAGE);
		return;
	}
	__builtin_memset(record, 0, sizeof(*record));
	head_fill(&record->head, ABI_MESSAGE, sizeof(*record),
		  bpf_get_current_task_btf());
	record->span_id = span_id;
	record->source = message->source;
	record->target = message->target;
	record->begin = message->begin;
	record->end = message->end;
	record->ordinal = ordinal;
	record->side = side;
	record->family = message->family;
	bpf_ringbuf_submit(record, wakeup_flags());
}

/* Request @span_id, which nobody in this process asked for, begins. Return: bytes that
 * were received for it before. */
static __always_inline __u64 message_take(__u64 span_id)
{
	struct received *last =
		bpf_task_storage_get(&received, bpf_get_current_task_btf(), NULL, 0);

	if (!last || last->end <= last->begin)
		return 0;
	message_tell(last, span_id, ABI_RECEIVED, last->taken);
	return last->taken++ ? 0 : last->end - last->begin;
}

/* The task has sent or received @bytes. */
static __always_inline void message_count(__u64 in_bytes, __u64 out_bytes)
{
	struct received *last =
		bpf_task_storage_get(&received, bpf_get_current_task_btf(), NULL,
				     BPF_LOCAL_STORAGE_GET_F_CREATE);

	if (!last)
		return;
	last->in_bytes += in_bytes;
	last->out_bytes += out_bytes;
}

/* The task turns to something else: what it received before is done with. */
static __always_inline void message_forget(void)
{
	struct received *last =
		bpf_task_storage_get(&received, bpf_get_current_task_btf(), NULL, 0);

	if (last)
		last->end = 0;
}

#endif
