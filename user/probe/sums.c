// SPDX-License-Identifier: Apache-2.0
/*
 * A hit looks its sum up and then adds to it; who takes the sum between the two loses the
 * hit. So there are two tables: what is taken was in use until the last call, then the
 * tables change places. A batch may be smaller than asked for; ENOENT says that the table
 * was walked to its end.
 */
#include "probe/sums.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>

#include "core/mem.h"

#define BATCH 1024

static struct abi_resource record_of(const struct abi_sum_key *key,
				     const struct abi_sum *sum, uint64_t now_ns)
{
	return (struct abi_resource){
		.head = { .kind = ABI_RESOURCE,
			  .size = sizeof(struct abi_resource),
			  .time_ns = now_ns,
			  .pid = key->pid,
			  .tid = key->tid,
			  .start_ns = key->start_ns,
			  .method_id = key->method_id },
		.resource_id = key->resource_id,
		.object = key->object,
		.amount = sum->amount,
		.begin_ns = sum->begin_ns,
		.key = key->key,
		.name_id = key->name_id,
		.verb = key->verb,
		.slot = key->slot,
		.mode = key->mode,
		.scope = key->scope,
		.temperature = key->temperature,
		.count = sum->count > UINT32_MAX ? UINT32_MAX : (uint32_t)sum->count,
	};
}

static struct err *take_all(int map_fd, uint64_t now_ns, sums_fn each, void *ctx)
{
	CLEANUP(free) struct abi_sum_key *keys = mem_array(BATCH, sizeof(*keys));
	CLEANUP(free) struct abi_sum *sums = mem_array(BATCH, sizeof(*sums));
	uint64_t at = 0; /* where the kernel goes on; its own number */

	for (size_t taken = 0; taken < SUMS_MAX_TAKEN;) {
		__u32 count = BATCH;
		int status = bpf_map_lookup_and_delete_batch(
			map_fd, taken ? &at : NULL, &at, keys, sums, &count, NULL);

		if (status && status != -ENOENT)
			return err_errno(-status, "read the sums of probes");
		for (__u32 i = 0; i < count; i++) {
			struct abi_resource record =
				record_of(&keys[i], &sums[i], now_ns);

			each(ctx, &record);
		}
		taken += count;
		if (status)
			break;
	}
	return NULL;
}

struct err *sums_take(const struct probe_fds *fds, uint64_t now_ns, sums_fn each,
		      void *ctx)
{
	int side_fd = fds->fd[PROBE_FD_SUM_SIDE];
	__u32 zero = 0, side = 0;

	if (bpf_map_lookup_elem(side_fd, &zero, &side))
		return err_errno(errno, "which sums of probes are in use");
	TRY(take_all(fds->fd[side ? PROBE_FD_SUMS_EVEN : PROBE_FD_SUMS_ODD], now_ns, each,
		     ctx));
	side = !side;
	if (bpf_map_update_elem(side_fd, &zero, &side, BPF_ANY))
		return err_errno(errno, "let the sums of probes change places");
	return NULL;
}
