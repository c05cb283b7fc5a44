// SPDX-License-Identifier: Apache-2.0
/*
 * Ends of requests to rows: every one is added up per bucket, process, method and kind,
 * and some are kept one by one. Which ones depends on the request id alone, so that a
 * request is kept together with its calls, and on how many there were a second ago.
 *
 * What is still done for a request after its response is charged when that work ends: so
 * a request that has some waits for that record, for a while.
 */
#include "live/live_impl.h"

#include <string.h>

#include "core/map.h"
#include "cost/join.h"

#define MAX_CELLS    65536
#define MAX_LATE     65536
#define LATE_NS	     10000000000ull /* how long late work is waited for */
#define JOIN_NS	     1000000000ull  /* ... and a send that asked for it */
#define OPEN_NS	     30000000000ull /* a request is remembered: this to twice of it */
#define MAX_OPEN     131072
#define MAX_DEPTH    64
#define MAX_MESSAGES 2 /* with which a request began: its stream, its bytes */
#define KEPT_BUCKETS 64

struct request_key {
	uint64_t bucket_ns, process_id, method_id, kind;
};

struct late {
	struct fact_span span;
	uint64_t time_ns;
	double weight;	/* of the request */
	bool is_closed; /* waits only for who asked for it */
};

struct open_span {
	uint64_t parent_id, begin_ns;
	struct message messages[MAX_MESSAGES];
	size_t message_count;
};

struct kept {
	uint64_t bucket_ns;
	double keep;
};

struct spans {
	struct map *cells; /* request_key -> fact_request */
	struct map *late;  /* span_id -> struct late */
	/* span_id -> struct open_span: those seen lately and, until all of them are dropped
	 * at once, those seen before. */
	struct map *open, *older;
	uint64_t turned_ns;
	struct join *join;
	struct kept kept[KEPT_BUCKETS];
	uint64_t bucket_ns; /* the one in which spans are counted */
	uint64_t ended;	    /* in it */
	double keep;	    /* the share of spans that is kept now */
	double wanted;	    /* per bucket */
};

struct spans *spans_new(uint64_t wanted)
{
	struct spans *spans = mem_alloc(sizeof(*spans));

	spans->cells = map_new(sizeof(struct request_key), sizeof(struct fact_request));
	spans->open = map_new(sizeof(uint64_t), sizeof(struct open_span));
	spans->older = map_new(sizeof(uint64_t), sizeof(struct open_span));
	spans->join = join_new(0);
	spans->late = map_new(sizeof(uint64_t), sizeof(struct late));
	spans->keep = 1;
	spans->wanted = (double)(wanted ?: LIVE_SPANS);
	return spans;
}

void spans_free(struct spans *spans)
{
	if (!spans)
		return;
	map_free(spans->cells);
	map_free(spans->open);
	map_free(spans->older);
	join_free(spans->join);
	map_free(spans->late);
	free(spans);
}

/*
 * Traces. A request is remembered from its begin until a while after its end, with what
 * it began with; its parent is looked up late, since a send may become known only after
 * what it sent was served.
 */

static struct open_span *open_of(struct spans *spans, uint64_t span_id)
{
	struct open_span *open = span_id ? map_find(spans->open, &span_id) : NULL;

	return open || !span_id ? open : map_find(spans->older, &span_id);
}

static void turn(struct spans *spans, uint64_t now_ns)
{
	struct map *oldest = spans->older;

	map_clear(oldest);
	spans->older = spans->open;
	spans->open = oldest;
	spans->turned_ns = now_ns;
}

/* Where there are many, the oldest are forgotten sooner. */
static void remember(struct spans *spans, uint64_t span_id, const struct open_span *open)
{
	if (map_count(spans->open) >= MAX_OPEN / 2)
		turn(spans, spans->turned_ns);
	*(struct open_span *)map_put(spans->open, &span_id, NULL) = *open;
}

/* Its end was seen: from now on it counts anew. */
static void renew(struct spans *spans, uint64_t span_id)
{
	struct open_span *open = map_find(spans->older, &span_id);

	if (!open)
		return;
	struct open_span copy = *open;

	map_del(spans->older, &span_id);
	remember(spans, span_id, &copy);
}

static void on_begin(struct live *live, const struct abi_span *span)
{
	struct open_span open = { .parent_id = span->parent_id,
				  .begin_ns = span->head.time_ns };

	if (span->span_id)
		remember(live->spans, span->span_id, &open);
}

static struct message message_of(const struct live *live, const struct abi_message *from)
{
	static const uint64_t realms[] = { [ABI_STREAM] = 1, [ABI_BEFORE_STREAM] = 0 };
	bool is_local = from->family == ABI_UNIX;

	return (struct message){
		.source = from->source,
		.target = from->target,
		.begin = from->begin,
		.end = from->end,
		.realm = is_local ? live->config.boot_id : realms[from->family],
		.has_rest = from->family == ABI_BEFORE_STREAM,
	};
}

void message_feed(struct live *live, const struct event *event)
{
	struct message message = message_of(live, &event->message);
	struct open_span *open = open_of(live->spans, event->message.span_id);

	if (event->message.side == ABI_SENT) {
		join_sent(live->spans->join, &message, event->message.span_id);
	} else if (open && !open->parent_id && open->message_count < MAX_MESSAGES) {
		open->messages[open->message_count++] = message;
		open->parent_id = join_sender(live->spans->join, &message);
	}
}

static uint64_t parent_of(struct spans *spans, uint64_t span_id)
{
	struct open_span *open = open_of(spans, span_id);

	if (!open)
		return 0;
	for (size_t i = 0; !open->parent_id && i < open->message_count; i++)
		open->parent_id = join_sender(spans->join, &open->messages[i]);
	return open->parent_id;
}

/* The parent of the parent of ... ; @ret_begin_ns: when it began, 0 unknown. */
static uint64_t root_of(struct spans *spans, uint64_t span_id, uint64_t *ret_begin_ns)
{
	for (int depth = 0; depth < MAX_DEPTH; depth++) {
		uint64_t parent_id = parent_of(spans, span_id);

		if (!parent_id)
			break;
		span_id = parent_id;
	}
	struct open_span *open = open_of(spans, span_id);

	*ret_begin_ns = open ? open->begin_ns : 0;
	return span_id;
}

/* Ends. */

static enum request_kind kind_of(uint32_t verb)
{
	if (verb == ABI_CLIENT_END)
		return REQUEST_CLIENT;
	return verb == ABI_BATCH_END ? REQUEST_BATCH : REQUEST_SERVED;
}

/* The share that was kept when the root began: one answer for all spans of a trace. */
static double keep_of(const struct spans *spans, uint64_t bucket_ns)
{
	const struct kept *kept = &spans->kept[bucket_ns / LIVE_BUCKET_NS % KEPT_BUCKETS];

	return kept->bucket_ns == bucket_ns ? kept->keep : spans->keep;
}

static bool is_kept(double keep, uint64_t root_id)
{
	double at = (double)(hash_bytes(&root_id, sizeof(root_id), 1) >> 11) /
		    9007199254740992.0;

	return at < keep;
}

/* By what was seen in the last bucket, decide what is kept in this one. */
static void next_bucket(struct spans *spans, uint64_t bucket_ns)
{
	if (bucket_ns == spans->bucket_ns)
		return;
	spans->keep = (double)spans->ended > spans->wanted
			      ? spans->wanted / (double)spans->ended
			      : 1;
	spans->bucket_ns = bucket_ns;
	spans->ended = 0;
	spans->kept[bucket_ns / LIVE_BUCKET_NS % KEPT_BUCKETS] =
		(struct kept){ bucket_ns, spans->keep };
}

static bool add_up(struct live *live, const struct fact_span *span, double weight)
{
	struct spans *spans = live->spans;
	struct request_key key = { span->bucket_ns, span->process_id, span->method_id,
				   span->kind };
	struct fact_request *cell = map_find(spans->cells, &key);

	if (!cell && map_count(spans->cells) >= MAX_CELLS)
		return false;
	if (!cell)
		cell = map_put(spans->cells, &key, NULL);
	cell->requests++;
	cell->weight += weight;
	cell->weight2 += weight * weight;
	cell->duration_ns += span->duration_ns;
	if (span->duration_ns > cell->max_duration_ns)
		cell->max_duration_ns = span->duration_ns;
	cell->cpu_ns += span->cpu_ns;
	cell->probe_ns += span->probe_ns;
	cell->unfinished += !!(span->flags & ABI_HIT_LEFT);
	return true;
}

static void finish(struct live *live, const struct late *done)
{
	struct spans *spans = live->spans;
	struct fact fact = { .kind = FACT_SPAN, .span = done->span };
	bool is_call = done->span.kind == REQUEST_CLIENT;
	uint64_t own_id = is_call ? done->span.parent_id : done->span.span_id,
		 begin_ns = 0;
	uint64_t root_id =
		own_id ? root_of(spans, own_id, &begin_ns) : done->span.span_id;
	double keep =
		begin_ns ? keep_of(spans, bucket_of(&live->config, begin_ns))
			 : keep_of(spans, done->span.begin_ns -
						  done->span.begin_ns % LIVE_BUCKET_NS);

	if (!add_up(live, &done->span, done->weight))
		lose(live, done->time_ns, ABI_SPAN, LOSS_LIMIT);
	if (!is_kept(keep, root_id))
		return;
	if (!is_call)
		fact.span.parent_id = parent_of(spans, own_id) ?: done->span.parent_id;
	fact.span.trace_id = root_id;
	fact.span.weight = done->weight / keep;
	sink_put(live->sink, &fact);
}

static void add_usage(struct fact_span *fact, const struct abi_span *span)
{
	fact->cpu_ns = span->cpu_ns;
	fact->probe_ns = span->probe_ns;
	fact->off_cpu_ns = span->off_cpu_ns;
	fact->in_bytes = span->in_bytes;
	fact->out_bytes = span->out_bytes;
	fact->faults = span->faults;
	fact->labels = span->labels;
	fact->status = span->labels & ABI_LABEL_STATUS ? (int64_t)span->amount : 0;
}

/* Began with bytes that nobody is known to have sent: yet. */
static bool may_get_parent(struct spans *spans, uint64_t span_id)
{
	struct open_span *open = open_of(spans, span_id);

	return open && open->message_count && !parent_of(spans, span_id);
}

static void on_end(struct live *live, const struct abi_span *span)
{
	struct spans *spans = live->spans;
	struct process *process = live_process(live, &span->head);
	uint64_t time_ns = span->head.time_ns;

	if (span->flags & ABI_HIT_NO_BEGIN || !span->begin_ns || !process) {
		lose(live, time_ns, ABI_SPAN, process ? LOSS_NO_BEGIN : LOSS_LIMIT);
		return;
	}
	live_charge(live, process);
	methods_charge(live->methods, methods_kind(live->methods, span->name_id),
		       span->cpu_ns + 1);
	struct late done = {
		.time_ns = time_ns,
		.weight = (double)span->weight_milli / ABI_WEIGHT_ONE,
		.span = { .run_id = live->config.run_id,
			  .bucket_ns = bucket_of(&live->config, time_ns),
			  .span_id = span->span_id,
			  .parent_id = span->parent_id,
			  .process_id = live_process_id(live, process),
			  .method_id = methods_kind(live->methods, span->name_id),
			  .kind = kind_of(span->verb),
			  .tid = span->head.tid,
			  .flags = span->flags,
			  .begin_ns = span->begin_ns +
				      (uint64_t)live->config.realtime_offset_ns,
			  .duration_ns = time_ns - span->begin_ns },
	};

	add_usage(&done.span, span);

	next_bucket(spans, done.span.bucket_ns);
	spans->ended++;
	if (span->flags & ABI_HIT_LEFT)
		lose(live, time_ns, ABI_SPAN, LOSS_NO_END);
	renew(spans, span->span_id);
	done.is_closed = span->verb == ABI_CLIENT_END || span->flags & ABI_HIT_CLOSED;
	if (map_count(spans->late) >= MAX_LATE ||
	    (done.is_closed && !may_get_parent(spans, span->span_id)))
		finish(live, &done);
	else
		*(struct late *)map_put(spans->late, &span->span_id, NULL) = done;
}

/* The last work for a request is over, and what it cost is known. */
static void on_closed(struct live *live, const struct abi_span *span)
{
	struct late *late = map_find(live->spans->late, &span->span_id);

	if (!late)
		return;
	add_usage(&late->span, span);
	late->span.flags |= ABI_HIT_CLOSED;
	late->is_closed = true;
	if (may_get_parent(live->spans, span->span_id))
		return;
	finish(live, late);
	map_del(live->spans->late, &span->span_id);
}

#define UNREAD                                                                      \
	(ABI_HIT_NO_KEY | ABI_HIT_NO_OBJECT | ABI_HIT_NO_NAME | ABI_HIT_NO_AMOUNT | \
	 ABI_HIT_NO_WHEN)

static void count_flags(struct live *live, const struct abi_head *head, uint32_t flags)
{
	if (flags & UNREAD)
		lose(live, head->time_ns, head->kind, LOSS_UNREAD);
	if (flags & ABI_HIT_UNTRACKED)
		lose(live, head->time_ns, head->kind, LOSS_CONTEXT);
}

/* What they mean is the business of who observes; here they are counted. */
void resource_feed(struct live *live, const struct event *event)
{
	const struct abi_resource *resource = &event->resource;

	count_flags(live, &resource->head, resource->flags);
	if (resource->flags & ABI_HIT_NO_BEGIN)
		lose(live, resource->head.time_ns, ABI_RESOURCE, LOSS_NO_BEGIN);
}

void span_feed(struct live *live, const struct event *event)
{
	const struct abi_span *span = &event->span;

	count_flags(live, &span->head, span->flags);
	switch (span->verb) {
	case ABI_REQUEST_BEGIN:
	case ABI_CLIENT_BEGIN:
	case ABI_BATCH_BEGIN:
		methods_learn(live->methods, span, event->name,
			      live->ops.framework
				      ? live->ops.framework(live->ctx, span->slot)
				      : "");
		if (span->verb != ABI_CLIENT_BEGIN)
			on_begin(live, span);
		break;
	case ABI_REQUEST_END:
	case ABI_CLIENT_END:
	case ABI_BATCH_END:
		on_end(live, span);
		break;
	case ABI_TASK_DONE:
		on_closed(live, span);
		break;
	}
}

/* Flush. */

struct flush {
	struct live *live;
	uint64_t before_ns;
};

static bool finish_old(const void *key, void *value, void *ctx)
{
	struct flush *flush = ctx;
	struct late *late = value;

	(void)key;
	if (late->time_ns + (late->is_closed ? JOIN_NS : LATE_NS) > flush->before_ns)
		return false;
	finish(flush->live, late);
	return true;
}

static bool put_cell(const void *raw, void *value, void *ctx)
{
	const struct request_key *key = raw;
	struct flush *flush = ctx;
	struct fact fact = { .kind = FACT_REQUEST };

	if (key->bucket_ns >= flush->before_ns)
		return false;
	fact.request = *(struct fact_request *)value;
	fact.request.run_id = flush->live->config.run_id;
	fact.request.bucket_ns = key->bucket_ns;
	fact.request.process_id = key->process_id;
	fact.request.method_id = key->method_id;
	fact.request.kind = (enum request_kind)key->kind;
	sink_put(flush->live->sink, &fact);
	return true;
}

void span_flush(struct live *live, uint64_t now_ns, uint64_t before_bucket_ns)
{
	struct flush late = { live, now_ns }, cells = { live, before_bucket_ns };

	map_del_if(live->spans->late, finish_old, &late);
	if (now_ns >= live->spans->turned_ns + OPEN_NS) {
		turn(live->spans, now_ns);
		methods_turn(live->methods);
	}
	map_del_if(live->spans->cells, put_cell, &cells);
}
