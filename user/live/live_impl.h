/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_LIVE_IMPL_H
#define LIVE_LIVE_IMPL_H

/* The state of struct live, shared by live.c (processes, files), sample.c (access
 * records) and tick.c. Nobody else includes this. */

#include "live/aggregate.h"
#include "live/kernel.h"
#include "live/live.h"
#include "live/losses.h"
#include "live/method.h"
#include "live/module.h"
#include "live/task.h"

struct waiting_tick {
	uint64_t time_ns;
	size_t bytes;
	struct event event;   /* its tails are not valid */
	unsigned char *stack; /* copy; NULL when there is none */
};

struct live {
	struct live_config config;
	struct sink *sink;
	struct live_ops ops;
	void *ctx;
	struct tasks *tasks;
	struct module_table *modules;
	struct kernel *kernel;
	struct aggregate *aggregate;
	struct losses *losses;
	struct methods *methods;
	struct spans *spans;
	struct map *modules_put;     /* module ids whose FACT_MODULE was put */
	VEC(struct sample) unmapped; /* wait for a process or a mapping */
	size_t waiting;		     /* samples in all lists */
	VEC(struct waiting_tick) ticks;
	size_t tick_bytes;
	uint64_t epoch, swept_ns;
	struct live_stats stats;
};

static inline void lose(struct live *live, uint64_t time_ns, uint32_t kind,
			enum loss_reason reason)
{
	losses_add(live->losses, time_ns, kind, reason, 1);
}

/* live.c: the process of a record, created when it is the first; NULL: no room. */
struct process *live_process(struct live *live, const struct abi_head *head);
/* live.c: @process is charged with something: its fact must be there. */
void live_charge(struct live *live, struct process *process);
uint64_t live_process_id(const struct live *live, const struct process *process);
/* live.c: ask the owner; the answer may be there on return. */
void live_want_process(struct live *live, struct process *process, uint64_t now_ns);
void live_want_module(struct live *live, struct process *process,
		      const struct range *range, struct module *module);

/* sample.c */
void sample_feed(struct live *live, const struct event *event);
void sample_module_done(struct live *live, struct module *module);
void sample_retry(struct live *live, uint64_t now_ns);

/* span.c: requests, one by one and added up. */
struct spans *spans_new(uint64_t wanted); /* 0: LIVE_SPANS */
void spans_free(struct spans *spans);	  /* NULL is fine */
void span_feed(struct live *live, const struct event *event);
void resource_feed(struct live *live, const struct event *event);
void message_feed(struct live *live, const struct event *event);
void span_flush(struct live *live, uint64_t now_ns, uint64_t before_bucket_ns);

/* tick.c */
void tick_feed(struct live *live, const struct event *event);
void tick_retry(struct live *live, uint64_t now_ns);
void tick_free_waiting(struct live *live);

#endif
