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

#define MAX_CELLS    65536
#define MAX_METHODS  4096 /* names of requests; all others are one */
#define MAX_LATE     65536
#define LATE_NS	     10000000000ull /* how long late work is waited for */
#define SPANS_WANTED 200.0	    /* per bucket */

struct request_key {
	uint64_t bucket_ns, process_id, method_id, kind;
};

struct late {
	struct fact_span span;
	uint64_t time_ns;
	double weight; /* of the request */
};

struct spans {
	struct map *cells;   /* request_key -> fact_request */
	struct map *methods; /* method_id -> nothing */
	struct map *late;    /* span_id -> struct late */
	uint64_t bucket_ns;  /* the one in which spans are counted */
	uint64_t ended;	     /* in it */
	double keep;	     /* the share of spans that is kept now */
};

struct spans *spans_new(void)
{
	struct spans *spans = mem_alloc(sizeof(*spans));

	spans->cells = map_new(sizeof(struct request_key), sizeof(struct fact_request));
	spans->methods = map_new(sizeof(uint64_t), 1);
	spans->late = map_new(sizeof(uint64_t), sizeof(struct late));
	spans->keep = 1;
	return spans;
}

void spans_free(struct spans *spans)
{
	if (!spans)
		return;
	map_free(spans->cells);
	map_free(spans->methods);
	map_free(spans->late);
	free(spans);
}

/* Methods. */

static void put_method(struct live *live, uint64_t method_id, const char *framework,
		       const char *name)
{
	struct fact fact = { .kind = FACT_METHOD };

	fact.method = (struct fact_method){ method_id, framework, name };
	sink_put(live->sink, &fact);
}

static uint64_t other_method(void)
{
	return hash_text("(other)", 0);
}

/* The application's bytes as text: what is no printable ASCII becomes a dot. */
static void put_named(struct live *live, const struct abi_span *span, const char *name)
{
	const char *framework =
		live->ops.framework ? live->ops.framework(live->ctx, span->slot) : "";
	char text[ABI_NAME_MAX + 1];

	for (size_t i = 0; i < span->name_bytes; i++)
		text[i] = name[i] >= ' ' && name[i] < 0x7f ? name[i] : '.';
	text[span->name_bytes] = 0;
	put_method(live, span->name_id, framework, text);
}

/* The method that @id is counted under. */
static uint64_t method_of(const struct spans *spans, uint64_t id)
{
	return !id || map_find(spans->methods, &id) ? id : other_method();
}

static void learn_method(struct live *live, const struct abi_span *span, const char *name)
{
	struct spans *spans = live->spans;

	if (!span->name_id || map_find(spans->methods, &span->name_id))
		return;
	if (map_count(spans->methods) >= MAX_METHODS) {
		put_method(live, other_method(), "", "(other)");
		return;
	}
	map_put(spans->methods, &span->name_id, NULL);
	if (span->name_bytes)
		put_named(live, span, name);
}

/* Ends. */

static enum request_kind kind_of(uint32_t verb)
{
	if (verb == ABI_CLIENT_END)
		return REQUEST_CLIENT;
	return verb == ABI_BATCH_END ? REQUEST_BATCH : REQUEST_SERVED;
}

static bool is_kept(const struct spans *spans, uint64_t root_id)
{
	double at = (double)(hash_bytes(&root_id, sizeof(root_id), 1) >> 11) /
		    9007199254740992.0;

	return at < spans->keep;
}

/* By what was seen in the last bucket, decide what is kept in this one. */
static void next_bucket(struct spans *spans, uint64_t bucket_ns)
{
	if (bucket_ns == spans->bucket_ns)
		return;
	spans->keep =
		spans->ended > SPANS_WANTED ? SPANS_WANTED / (double)spans->ended : 1;
	spans->bucket_ns = bucket_ns;
	spans->ended = 0;
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
	uint64_t root_id = done->span.parent_id ?: done->span.span_id;

	if (!add_up(live, &done->span, done->weight))
		lose(live, done->time_ns, ABI_SPAN, LOSS_LIMIT);
	if (!is_kept(spans, root_id))
		return;
	fact.span.weight = done->weight / spans->keep;
	sink_put(live->sink, &fact);
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
	struct late done = {
		.time_ns = time_ns,
		.weight = (double)span->weight_milli / ABI_WEIGHT_ONE,
		.span = { .run_id = live->config.run_id,
			  .bucket_ns = bucket_of(&live->config, time_ns),
			  .span_id = span->span_id,
			  .parent_id = span->parent_id,
			  .process_id = live_process_id(live, process),
			  .method_id = method_of(spans, span->name_id),
			  .kind = kind_of(span->verb),
			  .tid = span->head.tid,
			  .flags = span->flags,
			  .begin_ns = span->begin_ns +
				      (uint64_t)live->config.realtime_offset_ns,
			  .duration_ns = time_ns - span->begin_ns,
			  .cpu_ns = span->cpu_ns,
			  .probe_ns = span->probe_ns },
	};

	next_bucket(spans, done.span.bucket_ns);
	spans->ended++;
	if (span->flags & ABI_HIT_LEFT)
		lose(live, time_ns, ABI_SPAN, LOSS_NO_END);
	if (span->verb == ABI_CLIENT_END || span->flags & ABI_HIT_CLOSED ||
	    map_count(spans->late) >= MAX_LATE)
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
	late->span.cpu_ns = span->cpu_ns;
	late->span.probe_ns = span->probe_ns;
	late->span.flags |= ABI_HIT_CLOSED;
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
		learn_method(live, span, event->name);
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
	if (late->time_ns + LATE_NS > flush->before_ns)
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
	map_del_if(live->spans->cells, put_cell, &cells);
}
