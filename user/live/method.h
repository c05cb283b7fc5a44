/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_METHOD_H
#define LIVE_METHOD_H

/*
 * What the application calls its requests, and the kinds that are stored. A raw name is
 * seen once, when a request begins, and known by its id from then on; only the normal
 * name (cost/normal.h) leaves this file.
 */

#include <stdint.h>

#include "bpf/abi.h"
#include "core/cleanup.h"
#include "model/sink.h"

#define METHOD_NAMES	 1000  /* kinds of one framework; further ones are "(other)" */
#define METHOD_MAX_KINDS 16384 /* of all frameworks together */
#define METHOD_MAX_RAW	 65536 /* raw names remembered, at least the younger half */

struct methods;

/* @limit: kinds of one framework, those that cost most; 0: METHOD_NAMES. */
struct methods *methods_new(struct sink *sink, bool hash_names, size_t limit);
void methods_free(struct methods *methods); /* NULL is fine */
CLEANUP_DEFINE(methods_free, struct methods *)

/* methods_learn() - @span begins a request named @name; puts a FACT_METHOD when its kind
 * is new. @framework is that of the probe. */
void methods_learn(struct methods *methods, const struct abi_span *span, const char *name,
		   const char *framework);

/* methods_charge() - a request of that stored kind has cost so much. */
void methods_charge(struct methods *methods, uint64_t kind_id, uint64_t cost_ns);
/* methods_turn() - now and then: where names are full, the cheaper ones go. */
void methods_turn(struct methods *methods);

/* methods_kind() - the stored method of a raw id; 0 stays 0, forgotten ones are other. */
uint64_t methods_kind(const struct methods *methods, uint64_t raw_id);

#endif
