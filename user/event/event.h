/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EVENT_EVENT_H
#define EVENT_EVENT_H

/*
 * event/ - untrusted bytes in, checked events out; record and replay of the same bytes;
 * several rings merged into one order by time. It knows no process, module or file.
 */

#include <stddef.h>

#include "bpf/abi.h"
#include "core/err.h"
#include "core/str.h"

/**
 * struct event - one checked record.
 * The fixed part is a copy. The tails (@path, @segments, @stack) point into the bytes
 * that were decoded and live as long as those; they are checked, aligned access is not
 * promised: @stack is bytes, @segments was copied.
 */
struct event {
	union {
		struct abi_head head; /* first member of each below */
		struct abi_task task;
		struct abi_mmap mmap;
		struct abi_module module;
		struct abi_access access;
		struct abi_tick tick;
		struct abi_span span;
		struct abi_resource resource;
		struct abi_loss loss;
		struct abi_message message;
		struct abi_sleep sleep;
	};
	const char *path;	    /* MMAP, MODULE: NUL-terminated; "" otherwise */
	const unsigned char *stack; /* TICK: tick.stack_bytes */
	const char *name;	    /* SPAN, RESOURCE: name_bytes, no NUL */
	struct abi_segment segments[ABI_MAX_SEGMENTS]; /* MODULE */
};

/**
 * event_decode() - check one record.
 * @data: @bytes bytes, exactly one record; any alignment.
 * Errors: ERR_FORMAT when kind, size, a count or a missing NUL contradict abi.h.
 */
struct err *event_decode(const void *data, size_t bytes, struct event *ret_event);

/* event_encode() - append the record of @event (head.size is set here) to @out. */
void event_encode(struct event *event, struct str *out);

#endif
