/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_LOSSES_H
#define LIVE_LOSSES_H

/*
 * What was lost, per bucket, kind and reason, with the number seen in the same bucket,
 * so that a report can say "1.2% of access records". A loss is often decided seconds
 * after its bucket was put; the row is then put again with the increase only.
 */

#include <stdint.h>

#include "live/live.h"

#define LOSSES_KEPT_NS 16000000000ull /* how long a bucket's counts are remembered */

struct losses;

struct losses *losses_new(const struct live_config *config, struct sink *sink);
void losses_free(struct losses *losses);

/* losses_seen() - one record of @kind arrived. */
void losses_seen(struct losses *losses, uint64_t time_ns, uint32_t kind);

/* losses_add() - @lost records were dropped here, of those counted by losses_seen(). */
void losses_add(struct losses *losses, uint64_t time_ns, uint32_t kind,
		enum loss_reason reason, uint64_t lost);

/* losses_outside() - dropped before they reached us; @seen is the reporter's count. */
void losses_outside(struct losses *losses, uint64_t time_ns, const struct abi_loss *loss);

/* losses_flush() - put every row of buckets that begin before @before_ns (realtime). */
void losses_flush(struct losses *losses, uint64_t before_ns);

/* bucket_of() - begin of the bucket that @time_ns falls into, realtime. */
static inline uint64_t bucket_of(const struct live_config *config, uint64_t time_ns)
{
	uint64_t real_ns = time_ns + (uint64_t)config->realtime_offset_ns;

	return real_ns - real_ns % LIVE_BUCKET_NS;
}

#endif
