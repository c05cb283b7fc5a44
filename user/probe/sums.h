/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_SUMS_H
#define PROBE_SUMS_H

/*
 * What probes on USE and COST_ADD added up in the kernel, as records: one per thread,
 * resource, object and kind of request, for all hits since the last call. Needs no
 * capability.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "core/err.h"
#include "probe/loader.h"

#define SUMS_MAX_TAKEN 65536 /* per call; the rest waits for the next */

typedef void (*sums_fn)(void *ctx, const struct abi_resource *record);

/**
 * sums_take() - hand the sums that were made up to the last call to @each, and forget
 * them; so when all is over, call it twice.
 * @now_ns: time of the records.
 * Errors: of the kernel; what was handed out before is gone from it all the same.
 */
struct err *sums_take(const struct probe_fds *fds, uint64_t now_ns, sums_fn each,
		      void *ctx);

#endif
