/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TEST_RESOURCE_STREAM_H
#define TEST_RESOURCE_STREAM_H

/* Streams of events whose truth is known, and what is found in them. */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>

#include <cmocka.h>

#include "resource/diagnose.h"

#define PID	  100
#define MS	  1000000ull
#define SECOND_NS 1000000000ull
#define BEGIN_NS  (1000 * SECOND_NS)

struct stream {
	struct ledger *ledger;
	uint64_t now_ns;
	struct finding found[8];
	size_t count;
};

static inline struct stream stream_new(void)
{
	return (struct stream){ .ledger = ledger_new(), .now_ns = BEGIN_NS };
}

static inline void cleanup_stream_fini(struct stream *stream)
{
	ledger_free(stream->ledger);
}

static inline void declare(struct stream *stream, uint64_t id, enum resource_kind kind)
{
	struct resource_info info = { .resource_id = id,
				      .spec = "test",
				      .name = "thing",
				      .title = "thing",
				      .unit = "",
				      .advice = "",
				      .kind = kind };

	ledger_declare(stream->ledger, &info);
}

static inline struct event resource_event(const struct stream *stream, uint32_t verb,
					  uint64_t id, uint32_t tid, uint64_t object)
{
	struct event event = { .path = "", .name = "" };

	event.resource.head = (struct abi_head){
		.kind = ABI_RESOURCE, .time_ns = stream->now_ns, .pid = PID, .tid = tid
	};
	event.resource.verb = (uint16_t)verb;
	event.resource.resource_id = id;
	event.resource.object = object;
	event.resource.count = 1;
	event.resource.amount = verb == ABI_WAIT_BEGIN || verb == ABI_WAIT_END ? 0 : 1;
	return event;
}

static inline void tell(struct stream *stream, uint32_t verb, uint64_t id, uint32_t tid,
			uint64_t object)
{
	struct event event = resource_event(stream, verb, id, tid, object);

	ledger_feed(stream->ledger, &event);
}

static inline void take_finding(void *ctx, const struct finding *finding)
{
	struct stream *stream = ctx;

	if (!finding->is_part && stream->count < 8)
		stream->found[stream->count++] = *finding;
}

/* Time passes; the ledger walks, and what is found at the end is kept. */
static inline void pass(struct stream *stream, uint64_t ns)
{
	uint64_t end_ns = stream->now_ns + ns;

	while (stream->now_ns < end_ns) {
		stream->now_ns += 200 * MS < end_ns - stream->now_ns
					  ? 200 * MS
					  : end_ns - stream->now_ns;
		ledger_walk(stream->ledger, stream->now_ns);
	}
}

static inline void look(struct stream *stream)
{
	stream->count = 0;
	diagnose(stream->ledger, take_finding, stream);
}

#endif
