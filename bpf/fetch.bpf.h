/* SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause */
#ifndef ASSAY_FETCH_BPF_H
#define ASSAY_FETCH_BPF_H

/*
 * The interpreter of struct abi_fetch. All that it works on lies in the task's own
 * storage: a per-CPU buffer would not do, because a program at a uprobe may be
 * preempted by another task's, and the BPF stack is too small.
 *
 * Functions that are not static are verified once, each for itself, and not again for
 * every path that leads to them: that is the difference between 2.6 s and some ms. The
 * price: they return int, pointers may be NULL for all the verifier knows, and it
 * forgets what they point to (to a map's value, for example).
 */

#include "bpf/emit.bpf.h"

#define NAME_ROOM   (ABI_NAME_MAX + 8) /* a NUL, and whole words */
#define REGS_ROOM   32		       /* a power of two: the index is masked */
#define FS_OF(task) ((task)->thread.fsbase)

struct open_call {
	__u64 sp; /* at the first instruction of the function */
	__u64 key, object, amount, name_id;
	__u64 begin_ns;
	__u64 span_id;			   /* what the call opened */
	__u64 before_id, before_method_id; /* what the task served before */
	__u32 pair;			   /* 0: over, to be dropped from the top */
	__u16 verb, flags;
	__u32 has_amount, pad;
};

/* What one hit evaluated to. */
struct hit {
	__u64 sp, key, object, amount, name_id, begin_ns, span_id, parent_id;
	__u32 name_bytes;
	__u16 flags, slot;
	__u32 has_amount, pad;
};

struct app_request {
	__u64 method_id, begin_ns, key, parent_id;
	__u64 cpu_ns, probe_ns;
	__u64 off_cpu_ns, in_bytes, out_bytes;
	__u64 end_ns, status;
	__u32 faults, labels;
	__u64 start_ns; /* of the process */
	__u32 pid, weight_milli;
	__s32 refs;
	__u32 is_ended;
	__u16 slot, end_verb;
	__u32 pad;
};

struct task_state {
	__u64 request_id, method_id;
	__u64 cpu_mark; /* the thread's CPU when it began to serve request_id */
	__u64 probe_ns; /* cost of our own hits since then */
	__u64 wall_mark, in_mark, out_mark, fault_mark; /* likewise as cpu_mark */
	__u32 depth;
	__u8 is_counted; /* this thread holds a reference on the request */
	__u8 is_born;	 /* inherited, and no CPU read yet */
	struct open_call calls[ABI_MAX_OPEN_CALLS];
	__u64 regs[REGS_ROOM];
	struct hit hit;
	/* A record is put right in front of its name, so that it is one piece. */
	__u8 record[sizeof(struct abi_span)];
	char name[NAME_ROOM];
};

static __always_inline __u64 path_base(struct task_state *state,
				       const struct abi_path *path)
{
	struct task_struct *task = bpf_get_current_task_btf();

	switch (path->base) {
	case ABI_BASE_REG:
		return state->regs[path->reg & (REGS_ROOM - 1)];
	case ABI_BASE_TLS:
		return FS_OF(task);
	case ABI_BASE_TASK:
		return (__u32)task->pid;
	}
	return 0;
}

static __always_inline __u64 cut(__u64 value, const struct abi_path *path)
{
	__u32 shift = 64 - 8 * (__u32)(path->width & 15);

	if (shift >= 64)
		return value;
	if (path->flags & ABI_PATH_SIGNED)
		return (__s64)(value << shift) >> shift;
	return value << shift >> shift;
}

/* path_read() - 0, or not 0 when memory could not be read. */
__noinline int path_read(struct task_state *state, const struct abi_path *path,
			 __u64 *ret_value)
{
	if (!state || !path || !ret_value)
		return -1;
	__u64 value = path_base(state, path);
	__u32 derefs = path->derefs;

	for (int i = 0; i < ABI_FETCH_DEREFS && i < derefs; i++) {
		const void *at = (void *)(value + (__s64)path->offset[i]);

		if (bpf_probe_read_user(&value, sizeof(value), at)) {
			__u32 width = i + 1 == derefs ? path->width : 8;

			/* The last one may lie at the very end of a mapping. */
			value = 0;
			barrier_var(width);
			if (width > 4 || bpf_probe_read_user(&value, width, at))
				return -1;
		}
	}
	*ret_value = cut(value, path) + path->add;
	return 0;
}

/* Where a string is and how long; @ret_length -1: to its NUL. */
__noinline int text_find(struct task_state *state, const struct abi_fetch *fetch,
			 __u64 *ret_at, __u64 *ret_length)
{
	__u64 at = 0, words[3] = {};

	if (!state || !fetch || !ret_at || !ret_length)
		return -1;

	if (path_read(state, &fetch->value, &at))
		return -1;
	*ret_at = at;
	*ret_length = -1;
	switch (fetch->kind) {
	case ABI_FETCH_COUNTED:
		return path_read(state, &fetch->length, ret_length);
	case ABI_FETCH_STD_STRING:
		if (bpf_probe_read_user(words, 16, (void *)at))
			return -1;
		*ret_at = words[0];
		*ret_length = words[1];
		return 0;
	case ABI_FETCH_GRPC_SLICE: /* refcount; then length, bytes or u8 length, inline */
		if (bpf_probe_read_user(words, sizeof(words), (void *)at))
			return -1;
		*ret_at = words[0] ? words[2] : at + 9;
		*ret_length = words[0] ? words[1] : words[1] & 0xff;
		return 0;
	}
	return 0;
}

struct stop_search {
	const struct task_state *state;
	const struct abi_fetch *fetch;
	__u32 bytes, end;
};

/* Is the byte at @at a stop? Then that is the end; 1 leaves the loop. */
static long stop_here(__u32 at, struct stop_search *search)
{
	if (at >= ABI_NAME_MAX || at >= search->bytes)
		return 1;
	__u8 byte = search->state->name[at];

	for (int i = 0; i < ABI_NAME_STOPS; i++)
		if (byte && search->fetch->stop[i] == byte)
			return 1;
	search->end = at + 1;
	return 0;
}

/* End the name at the first stop, with zeros behind it up to a whole word. */
__noinline int text_stop(struct task_state *state, const struct abi_fetch *fetch,
			 __u32 bytes)
{
	struct stop_search search = { state, fetch, bytes, 0 };

	if (!state || !fetch)
		return 0;
	bpf_loop(ABI_NAME_MAX, stop_here, &search, 0);
	if (search.end >= ABI_NAME_MAX || search.end >= bytes)
		return search.end;
	__u64 *word = (void *)(state->name + (search.end & (ABI_NAME_MAX - 8)));

	*word &= (1ull << 8 * (search.end & 7)) - 1;
	state->hit.flags |= ABI_HIT_NAME_CUT;
	return search.end;
}

/* From the seed in name_id, so that frameworks may use the same names. */
__noinline int text_id(struct task_state *state)
{
	if (!state)
		return -1;
	__u32 bytes = state->hit.name_bytes;
	__u64 id = state->hit.name_id + bytes, word;

	for (__u32 i = 0; i < ABI_NAME_MAX / 8 && i * 8 < bytes; i++) {
		__builtin_memcpy(&word, state->name + i * 8, sizeof(word));
		id = abi_name_word(id, word);
	}
	state->hit.name_id = id;
	return 0;
}

/* text_read() - into state->name; 0, or not 0 when it could not be read. */
__noinline int text_read(struct task_state *state, const struct abi_fetch *fetch)
{
	if (!state || !fetch)
		return -1;
	__u64 at = 0, length = 0, room = fetch->max_bytes;

	if (text_find(state, fetch, &at, &length))
		return -1;
	if (!room || room > ABI_NAME_MAX)
		room = ABI_NAME_MAX;
	__builtin_memset(state->name, 0, sizeof(state->name));
	if (length == (__u64)-1) {
		long got = bpf_probe_read_user_str(state->name, room + 1, (void *)at);

		if (got < 0)
			return -1;
		length = got ? got - 1 : 0;
		if (length == room)
			state->hit.flags |= ABI_HIT_NAME_CUT;
	} else {
		if (length > room) {
			length = room;
			state->hit.flags |= ABI_HIT_NAME_CUT;
		}
		barrier_var(length);
		if (length > ABI_NAME_MAX)
			return -1;
		if (bpf_probe_read_user(state->name, length, (void *)at))
			return -1;
	}
	if (fetch->stop[0])
		length = text_stop(state, fetch, length);
	state->hit.name_bytes = length;
	return 0;
}

static __always_inline bool holds(__u32 op, __s64 value, __s64 operand)
{
	switch (op) {
	case ABI_OP_EQ:
		return value == operand;
	case ABI_OP_NE:
		return value != operand;
	case ABI_OP_LT:
		return value < operand;
	case ABI_OP_LE:
		return value <= operand;
	case ABI_OP_GT:
		return value > operand;
	case ABI_OP_GE:
		return value >= operand;
	case ABI_OP_ANY:
		return value & operand;
	}
	return true;
}

/* when_holds() - what cannot be read is taken to hold, and marked. */
__noinline int when_holds(struct task_state *state, const struct abi_fetch *when)
{
	__u64 value = 0;

	if (!state || !when)
		return false;

	if (when->value.base == ABI_BASE_NONE)
		return true;
	if (path_read(state, &when->value, &value)) {
		state->hit.flags |= ABI_HIT_NO_WHEN;
		return true;
	}
	return holds(when->op, value, when->operand);
}

static __always_inline bool has(const struct abi_fetch *fetch)
{
	return fetch->value.base != ABI_BASE_NONE;
}

__noinline int values_read(struct task_state *state, const struct abi_probe *probe)
{
	if (!state || !probe)
		return 0;
	struct hit *hit = &state->hit;

	hit->key = 0;
	hit->object = 0;
	hit->amount = 0;
	hit->has_amount = has(&probe->amount);
	if (!has(&probe->key))
		hit->key = (__u32)bpf_get_current_pid_tgid();
	else if (path_read(state, &probe->key.value, &hit->key))
		hit->flags |= ABI_HIT_NO_KEY;
	if (has(&probe->object) && path_read(state, &probe->object.value, &hit->object))
		hit->flags |= ABI_HIT_NO_OBJECT;
	if (has(&probe->amount) && path_read(state, &probe->amount.value, &hit->amount))
		hit->flags |= ABI_HIT_NO_AMOUNT;
	hit->name_id = probe->method_id;
	hit->name_bytes = 0;
	if (!has(&probe->name))
		return 0;
	if (text_read(state, &probe->name)) {
		hit->flags |= ABI_HIT_NO_NAME;
	} else {
		hit->name_id = (__u64)probe->spec_id << 32;
		text_id(state);
	}
	return 0;
}

#endif
