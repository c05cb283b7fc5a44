/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_AGGREGATE_H
#define LIVE_AGGREGATE_H

/*
 * Mapped samples added up per bucket, process, module, address, method and source;
 * ticks per bucket, process, stack and method. Put in a stable order.
 */

#include <stdbool.h>
#include <stdint.h>

#include "live/live.h"
#include "live/module.h"

#define AGGREGATE_MAX_STACKS 65536 /* remembered as put; then all may be put again */

struct aggregate;

struct aggregate *aggregate_new(const struct live_config *config, struct sink *sink,
				size_t limit);
void aggregate_free(struct aggregate *aggregate);

/* aggregate_access() - false when LIVE_MAX_AGGREGATES cells are open. */
bool aggregate_access(struct aggregate *aggregate, const struct sample *sample,
		      uint64_t module_id, uint64_t va);

/* aggregate_tick() - put the stack if it is new and count the tick; false as above. */
bool aggregate_tick(struct aggregate *aggregate, const struct abi_tick *tick,
		    uint64_t process_id, struct fact_stack *stack);

/* aggregate_flush() - put and forget the buckets that begin before @before_ns. */
void aggregate_flush(struct aggregate *aggregate, uint64_t before_ns);

size_t aggregate_count(const struct aggregate *aggregate);

#endif
