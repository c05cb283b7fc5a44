// SPDX-License-Identifier: Apache-2.0
/* Complete buckets as facts; what did not happen is no row. */
#include "resource/ledger_impl.h"

#define SECOND 1e9

/* The bucket @back before the current one. */
static void put_bucket(const struct ledger *ledger, const struct ledger_run *run,
		       unsigned back)
{
	unsigned at = bucket_back(ledger, back);
	uint64_t begin_ns = ledger->bucket_ns - back * LEDGER_BUCKET_NS +
			    (uint64_t)run->realtime_offset_ns;

	struct resource **each;
	size_t pos = 0;

	while ((each = map_next(ledger->resources, &pos, NULL))) {
		const struct resource *resource = *each;
		const struct sums *sums = &resource->past[at];
		struct fact fact = { .kind = FACT_RESOURCE_BUCKET };

		fact.resource_bucket = (struct fact_resource_bucket){
			.run_id = run->run_id,
			.bucket_ns = begin_ns - begin_ns % LEDGER_BUCKET_NS,
			.resource_id = resource->info.resource_id,
			.pid = resource->app,
			.wait_ns = (uint64_t)((double)(sums->wait_s + sums->walked_s) *
					      SECOND),
			.hold_ns = (uint64_t)((double)sums->hold_s * SECOND),
			.waits = sums->waits,
			.acquires = sums->acquires,
			.releases = sums->releases,
			.uses = sums->uses,
			.refusals = sums->refusals,
			.balance = (double)resource->balances[at],
			.holders = resource->holders_now,
			.on_ns = (uint64_t)((double)resource->on_s[at] * SECOND),
		};
		sink_put(run->sink, &fact);
	}
}

void ledger_put(struct ledger *ledger, const struct ledger_run *run)
{
	for (; ledger->unput; ledger->unput--)
		put_bucket(ledger, run, ledger->unput);
}
