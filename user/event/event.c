// SPDX-License-Identifier: Apache-2.0
/*
 * Records come from the kernel's ring or from a file that anybody may have written, so
 * each is copied once, checked against its own claims, and never read raw again. A
 * record is a fixed part (a table row below) and, for some kinds, a counted tail; its
 * size must be exactly the sum.
 */
#include "event/event.h"

#include <stdint.h>
#include <string.h>

/* What the fixed part says about the tail; -1 when a count is beyond its limit. */
typedef long (*tail_bytes_fn)(const struct event *event);
typedef struct err *(*tail_check_fn)(struct event *event, const unsigned char *tail);
typedef void (*tail_put_fn)(const struct event *event, struct str *out);

static struct err *bad(const struct event *event, const char *what)
{
	return err_new(ERR_FORMAT, "record of kind %u, %u bytes: %s", event->head.kind,
		       event->head.size, what);
}

static long no_tail(const struct event *event)
{
	(void)event;
	return 0;
}

static struct err *check_task(struct event *event, const unsigned char *tail)
{
	(void)tail;
	if (event->task.op < ABI_TASK_FORK || event->task.op > ABI_TASK_SEEN)
		return bad(event, "unknown task operation");
	if (!memchr(event->task.comm, 0, ABI_COMM_BYTES))
		return bad(event, "comm has no end");
	return NULL;
}

static struct err *set_path(struct event *event, const unsigned char *path, size_t bytes)
{
	if (memchr(path, 0, bytes) != path + bytes - 1)
		return bad(event, "path is not one NUL-terminated string");
	event->path = (const char *)path;
	return NULL;
}

static long mmap_tail(const struct event *event)
{
	const struct abi_mmap *mmap = &event->mmap;

	if (mmap->path_bytes < 1 || mmap->path_bytes > ABI_PATH_MAX)
		return -1;
	return mmap->build_id_bytes > ABI_BUILD_ID_MAX ? -1 : mmap->path_bytes;
}

static struct err *check_mmap(struct event *event, const unsigned char *tail)
{
	const struct abi_mmap *mmap = &event->mmap;

	if (mmap->addr + mmap->length < mmap->addr)
		return bad(event, "mapping wraps around");
	return set_path(event, tail, mmap->path_bytes);
}

static void put_path(const char *path, size_t bytes, struct str *out)
{
	str_add_bytes(out, path, bytes - 1);
	str_add_char(out, 0);
}

static void put_mmap(const struct event *event, struct str *out)
{
	put_path(event->path, event->mmap.path_bytes, out);
}

static long module_tail(const struct event *event)
{
	const struct abi_module *module = &event->module;

	if (module->path_bytes < 1 || module->path_bytes > ABI_PATH_MAX)
		return -1;
	if (module->build_id_bytes > ABI_BUILD_ID_MAX ||
	    module->segment_count > ABI_MAX_SEGMENTS)
		return -1;
	return (long)(module->segment_count * sizeof(struct abi_segment)) +
	       (long)module->path_bytes;
}

static struct err *check_module(struct event *event, const unsigned char *tail)
{
	const struct abi_module *module = &event->module;
	size_t bytes = module->segment_count * sizeof(struct abi_segment);

	if (module->kind > ABI_MODULE_KMOD) /* 0: it could not be identified */
		return bad(event, "unknown kind of module");
	memcpy(event->segments, tail, bytes);
	return set_path(event, tail + bytes, module->path_bytes);
}

static void put_module(const struct event *event, struct str *out)
{
	str_add_bytes(out, event->segments,
		      event->module.segment_count * sizeof(struct abi_segment));
	put_path(event->path, event->module.path_bytes, out);
}

static struct err *check_access(struct event *event, const unsigned char *tail)
{
	(void)tail;
	if (event->access.source < ABI_SOURCE_CLOCK ||
	    event->access.source >= ABI_SOURCES)
		return bad(event, "unknown source");
	return NULL;
}

static long tick_tail(const struct event *event)
{
	const struct abi_tick *tick = &event->tick;

	if (tick->kernel_depth > ABI_KERNEL_FRAMES ||
	    tick->user_depth > ABI_KERNEL_FRAMES)
		return -1;
	return tick->stack_bytes > ABI_STACK_COPY_MAX ? -1 : (long)tick->stack_bytes;
}

static struct err *check_tick(struct event *event, const unsigned char *tail)
{
	event->stack = tail;
	return NULL;
}

static void put_tick(const struct event *event, struct str *out)
{
	str_add_bytes(out, event->stack, event->tick.stack_bytes);
}

/* The name is the application's: any bytes may come. */
static long span_tail(const struct event *event)
{
	return event->span.name_bytes > ABI_NAME_MAX ? -1 : event->span.name_bytes;
}

static struct err *check_span(struct event *event, const unsigned char *tail)
{
	if (!event->span.verb || event->span.verb >= ABI_VERBS)
		return bad(event, "unknown verb");
	event->name = (const char *)tail;
	return NULL;
}

static void put_span(const struct event *event, struct str *out)
{
	str_add_bytes(out, event->name, event->span.name_bytes);
}

static long resource_tail(const struct event *event)
{
	return event->resource.name_bytes > ABI_NAME_MAX ? -1
							 : event->resource.name_bytes;
}

static struct err *check_resource(struct event *event, const unsigned char *tail)
{
	if (event->resource.verb < ABI_WAIT_BEGIN || event->resource.verb >= ABI_VERBS)
		return bad(event, "unknown verb");
	event->name = (const char *)tail;
	return NULL;
}

static void put_resource(const struct event *event, struct str *out)
{
	str_add_bytes(out, event->name, event->resource.name_bytes);
}

static struct err *check_loss(struct event *event, const unsigned char *tail)
{
	(void)tail;
	if (event->loss.kind >= ABI_KINDS)
		return bad(event, "loss of an unknown kind");
	return NULL;
}

static struct err *check_message(struct event *event, const unsigned char *tail)
{
	const struct abi_message *message = &event->message;

	(void)tail;
	if (message->side < ABI_SENT || message->side > ABI_RECEIVED)
		return bad(event, "unknown side");
	if (message->family < ABI_TCP || message->family > ABI_BEFORE_STREAM)
		return bad(event, "unknown family");
	if (message->begin >= message->end)
		return bad(event, "message of no bytes");
	return NULL;
}

static struct err *check_sleep(struct event *event, const unsigned char *tail)
{
	(void)tail;
	if (event->sleep.op < ABI_SLEEP_BEGIN || event->sleep.op > ABI_SLEEP_END)
		return bad(event, "neither begin nor end of a sleep");
	return NULL;
}

struct shape {
	size_t fixed_bytes; /* 0: no such record in this version */
	tail_bytes_fn tail_bytes;
	tail_check_fn check;
	tail_put_fn put;
};

static const struct shape shapes[ABI_KINDS] = {
	[ABI_TASK] = { sizeof(struct abi_task), no_tail, check_task, NULL },
	[ABI_MMAP] = { sizeof(struct abi_mmap), mmap_tail, check_mmap, put_mmap },
	[ABI_MODULE] = { sizeof(struct abi_module), module_tail, check_module,
			 put_module },
	[ABI_ACCESS] = { sizeof(struct abi_access), no_tail, check_access, NULL },
	[ABI_TICK] = { sizeof(struct abi_tick), tick_tail, check_tick, put_tick },
	[ABI_SPAN] = { sizeof(struct abi_span), span_tail, check_span, put_span },
	[ABI_RESOURCE] = { sizeof(struct abi_resource), resource_tail, check_resource,
			   put_resource },
	[ABI_LOSS] = { sizeof(struct abi_loss), no_tail, check_loss, NULL },
	[ABI_MESSAGE] = { sizeof(struct abi_message), no_tail, check_message, NULL },
	[ABI_SLEEP] = { sizeof(struct abi_sleep), no_tail, check_sleep, NULL },
};

static const struct shape *shape_find(uint32_t kind)
{
	return kind < ABI_KINDS && shapes[kind].fixed_bytes ? &shapes[kind] : NULL;
}

struct err *event_decode(const void *data, size_t bytes, struct event *ret_event)
{
	struct event event = { .path = "" };

	if (bytes < sizeof(event.head))
		return err_new(ERR_FORMAT, "record of %zu bytes has no head", bytes);
	memcpy(&event.head, data, sizeof(event.head));

	const struct shape *shape = shape_find(event.head.kind);

	if (!shape)
		return bad(&event, "unknown kind");
	if (event.head.size != bytes || bytes < shape->fixed_bytes)
		return bad(&event, "not the size of its kind");
	if (event.head.cpu >= ABI_MAX_CPUS)
		return bad(&event, "unlikely CPU number");
	memcpy(&event, data, shape->fixed_bytes);

	long tail = shape->tail_bytes(&event);

	if (tail < 0)
		return bad(&event, "a count exceeds its limit");
	if (bytes != shape->fixed_bytes + (size_t)tail)
		return bad(&event, "its counts contradict its size");
	TRY(shape->check(&event, (const unsigned char *)data + shape->fixed_bytes));
	*ret_event = event;
	return NULL;
}

/* Longer paths are cut: the kernel cannot name such a file either. */
static uint32_t path_bytes(const char *path)
{
	return (uint32_t)strnlen(path, ABI_PATH_MAX - 1) + 1;
}

void event_encode(struct event *event, struct str *out)
{
	const struct shape *shape = shape_find(event->head.kind);

	if (!shape)
		return;
	if (!event->path)
		event->path = "";
	if (event->head.kind == ABI_MMAP)
		event->mmap.path_bytes = (__u16)path_bytes(event->path);
	if (event->head.kind == ABI_MODULE)
		event->module.path_bytes = path_bytes(event->path);

	long tail = shape->tail_bytes(event);

	if (tail <
	    0) /* a bug of ours: nothing rather than a record that cannot be read */
		return;
	event->head.size = (__u32)(shape->fixed_bytes + (size_t)tail);
	str_add_bytes(out, event, shape->fixed_bytes);
	if (shape->put)
		shape->put(event, out);
}
