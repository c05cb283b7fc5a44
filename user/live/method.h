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
#include "model/sink.h"

#define METHOD_MAX_KINDS 4096  /* all further ones are the kind "(other)" */
#define METHOD_MAX_RAW	 65536 /* raw names remembered, at least the younger half */

struct methods;

struct methods *methods_new(struct sink *sink, bool hash_names);
void methods_free(struct methods *methods); /* NULL is fine */

/* methods_learn() - @span begins a request named @name; puts a FACT_METHOD when its kind
 * is new. @framework is that of the probe. */
void methods_learn(struct methods *methods, const struct abi_span *span, const char *name,
		   const char *framework);

/* methods_kind() - the stored method of a raw id; 0 stays 0, forgotten ones are other. */
uint64_t methods_kind(const struct methods *methods, uint64_t raw_id);

#endif
