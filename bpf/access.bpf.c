// SPDX-License-Identifier: GPL-2.0-only OR BSD-2-Clause
/*
 * One program for every source of access samples; the attach cookie says which
 * (enum abi_source). Latency and level need the kernel's own sample, which kernels from
 * 6.2 on hand out; the loader picks access_full there and access_plain elsewhere.
 */
#define ASSAY_MAPS
#include "bpf/emit.bpf.h"
#include "bpf/regs.bpf.h"

#define SAMPLE_ADDR	  (1ull << 3) /* PERF_SAMPLE_*: what the PMU's driver filled in */
#define SAMPLE_WEIGHT	  (1ull << 14 | 1ull << 24)
#define SAMPLE_DATA_SRC	  (1ull << 15)
#define REGS_EXACT	  (1ull << 3) /* PERF_EFLAGS_EXACT: the ip is the instruction */
#define MEM_OP_LOAD_STORE 6	      /* PERF_MEM_OP_LOAD | PERF_MEM_OP_STORE */

char LICENSE[] SEC("license") = "Dual BSD/GPL";

extern void *bpf_cast_to_kern_ctx(void *ctx) __ksym __weak;

/* Hardware sampling at times loses the instruction: what is left would mislead. */
static __always_inline bool is_astray(struct bpf_perf_event_data *ctx, __u32 source)
{
	return source >= ABI_SOURCE_IBS && source <= ABI_SOURCE_PEBS_STORE &&
	       !(ctx->regs.flags & REGS_EXACT);
}

static __always_inline void base_fill(struct abi_access *record,
				      struct bpf_perf_event_data *ctx, __u32 source)
{
	struct task_struct *task = bpf_get_current_task_btf();

	head_fill(&record->head, ABI_ACCESS, sizeof(*record), task);
	head_request(&record->head, task);
	record->source = source;
	record->ip = ctx->regs.ip;
	record->period = ctx->sample_period;
	record->addr = ctx->addr;
	record->weight = 0;
	record->data_src = 0;
	REGS_COPY(record->regs, &ctx->regs);
	record->flags = (__s64)record->ip < 0 ? ABI_ACCESS_KERNEL : 0;
	if (source != ABI_SOURCE_IBS) /* whose registers are those of the interrupt */
		record->flags |= ABI_ACCESS_REGS;
}

/* Does not return when this sample of the clock is a tick as well. */
static __always_inline void clock_tick(struct bpf_perf_event_data *ctx, __u32 source)
{
	__u32 zero = 0;
	struct clock_share *share = source == ABI_SOURCE_CLOCK
					    ? bpf_map_lookup_elem(&clock_share, &zero)
					    : NULL;

	if (!share || !share->tick_every || ++share->accesses < share->tick_every)
		return;
	share->accesses = 0;
	bpf_tail_call(ctx, &tails, 0);
}

SEC("perf_event")
int access_plain(struct bpf_perf_event_data *ctx)
{
	__u32 source = bpf_get_attach_cookie(ctx);

	if (!is_wanted())
		return 0;
	count_seen(ABI_ACCESS);
	if (is_astray(ctx, source))
		return count_drop(ABI_ACCESS);
	struct abi_access *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record) {
		count_drop(ABI_ACCESS);
		clock_tick(ctx, source);
		return 0;
	}
	base_fill(record, ctx, source);
	if (source != ABI_SOURCE_CLOCK && record->addr)
		record->flags |= ABI_ACCESS_ADDR;
	bpf_ringbuf_submit(record, wakeup_flags());
	clock_tick(ctx, source);
	return 0;
}

/* What software events bring is not marked in sample_flags. */
static __always_inline void details_fill(struct abi_access *record,
					 struct perf_sample_data *data, __u32 source)
{
	__u64 has = data->sample_flags;

	if (source == ABI_SOURCE_PAGE_FAULT || source == ABI_SOURCE_BREAKPOINT ||
	    has & SAMPLE_ADDR)
		record->flags |= ABI_ACCESS_ADDR;
	if (!(has & SAMPLE_DATA_SRC))
		return;
	record->flags |= ABI_ACCESS_WEIGHT;
	record->data_src = data->data_src.val;
	if (has & SAMPLE_WEIGHT)
		record->weight = data->weight.full;
}

SEC("perf_event")
int access_full(struct bpf_perf_event_data *ctx)
{
	__u32 source = bpf_get_attach_cookie(ctx);

	if (!is_wanted())
		return 0;
	struct bpf_perf_event_data_kern *kern = bpf_cast_to_kern_ctx(ctx);
	struct perf_sample_data *data = kern->data;

	/* IBS samples every kind of operation. */
	if (source == ABI_SOURCE_IBS && data->sample_flags & SAMPLE_DATA_SRC &&
	    !(data->data_src.val & MEM_OP_LOAD_STORE))
		return 0;
	count_seen(ABI_ACCESS);
	if (is_astray(ctx, source))
		return count_drop(ABI_ACCESS);
	struct abi_access *record = bpf_ringbuf_reserve(&ring, sizeof(*record), 0);

	if (!record) {
		count_drop(ABI_ACCESS);
		clock_tick(ctx, source);
		return 0;
	}
	base_fill(record, ctx, source);
	details_fill(record, data, source);
	bpf_ringbuf_submit(record, wakeup_flags());
	clock_tick(ctx, source);
	return 0;
}
