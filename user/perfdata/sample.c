// SPDX-License-Identifier: Apache-2.0
/*
 * One sample: an access, and a tick where it has a call chain or a copy of the stack. The
 * parts stand in the fixed order of perf_event_open(2), each if its bit is set. perf's
 * numbers of x86-64 registers are not DWARF's.
 */
#include <string.h>

#include "perfdata/perfdata_impl.h"

#define READ_ENABLED   1
#define READ_RUNNING   2
#define READ_ID	       4
#define READ_GROUP     8
#define READ_LOST      16
#define BRANCH_INDEX   (1ull << 17) /* PERF_SAMPLE_BRANCH_HW_INDEX */
#define BRANCH_BYTES   24
#define CONTEXT_FIRST  ((uint64_t)-4095) /* an entry of a chain that is a marker */
#define CONTEXT_KERNEL ((uint64_t)-128)
#define CONTEXT_USER   ((uint64_t)-512)
#define REGS_64	       2 /* PERF_SAMPLE_REGS_ABI_64 */
#define PERF_REGS      24
#define SECOND_NS      1000000000ull

/* perf's register number -> DWARF's; -1: has none here. */
static const int8_t dwarf_of[PERF_REGS] = {
	0,  3,	2,  1,	4, 5, 6,  7,  16, -1, -1, -1,
	-1, -1, -1, -1, 8, 9, 10, 11, 12, 13, 14, 15,
};

struct sample {
	uint64_t ip, time_ns, addr, period, weight, data_src;
	uint32_t pid, tid, cpu;
	const unsigned char *chain; /* of u64 */
	uint64_t chain_count;
	bool has_user_regs, has_regs;
	uint64_t user_regs[ABI_REGS], regs[ABI_REGS];
	const unsigned char *stack;
	uint64_t stack_bytes, stack_wanted;
};

static void skip_read(const struct attr *attr, struct bytes *in)
{
	uint64_t format = attr->read_format;
	uint64_t count = 1,
		 each = 8 + (format & READ_ID ? 8 : 0) + (format & READ_LOST ? 8 : 0);

	if (format & READ_GROUP)
		count = take_u64(in);
	take_bytes(in, (format & READ_ENABLED ? 8 : 0) + (format & READ_RUNNING ? 8 : 0));
	if (count > in->size / 8)
		in->bad = true;
	else
		take_bytes(in, count * each);
}

static void take_chain(struct bytes *in, struct sample *sample)
{
	uint64_t count = take_u64(in);

	if (count > in->size / 8) {
		in->bad = true;
		return;
	}
	sample->chain = take_bytes(in, count * 8);
	sample->chain_count = sample->chain ? count : 0;
}

static void skip_branches(const struct attr *attr, struct bytes *in)
{
	uint64_t count = take_u64(in);

	if (attr->branch_type & BRANCH_INDEX)
		take_u64(in);
	if (count > in->size / BRANCH_BYTES)
		in->bad = true;
	else
		take_bytes(in, count * BRANCH_BYTES);
}

static bool take_regs(struct bytes *in, uint64_t mask, uint64_t *regs)
{
	uint64_t abi = take_u64(in);

	if (!abi)
		return false;
	for (; mask; mask &= mask - 1) {
		int reg = __builtin_ctzll(mask);
		uint64_t value = take_u64(in);

		if (reg < PERF_REGS && dwarf_of[reg] >= 0)
			regs[dwarf_of[reg]] = value;
	}
	return abi == REGS_64 && !in->bad;
}

static void take_stack(struct bytes *in, struct sample *sample)
{
	uint64_t bytes = take_u64(in);

	if (!bytes)
		return;
	sample->stack = take_bytes(in, bytes);
	sample->stack_wanted = bytes;
	sample->stack_bytes = take_u64(in);
	if (!sample->stack || sample->stack_bytes > bytes)
		in->bad = true;
}

static void take_head(const struct attr *attr, struct bytes *in, struct sample *sample)
{
	uint64_t type = attr->sample_type;

	if (type & SAMPLE_IDENTIFIER)
		take_u64(in);
	if (type & SAMPLE_IP)
		sample->ip = take_u64(in);
	if (type & SAMPLE_TID) {
		sample->pid = take_u32(in);
		sample->tid = take_u32(in);
	}
	if (type & SAMPLE_TIME)
		sample->time_ns = take_u64(in);
	if (type & SAMPLE_ADDR)
		sample->addr = take_u64(in);
	if (type & SAMPLE_ID)
		take_u64(in);
	if (type & SAMPLE_STREAM_ID)
		take_u64(in);
	if (type & SAMPLE_CPU) {
		sample->cpu = take_u32(in);
		take_u32(in);
	}
	if (type & SAMPLE_PERIOD)
		sample->period = take_u64(in);
}

static void take_tail(const struct attr *attr, struct bytes *in, struct sample *sample)
{
	uint64_t type = attr->sample_type;

	if (type & SAMPLE_READ)
		skip_read(attr, in);
	if (type & SAMPLE_CALLCHAIN)
		take_chain(in, sample);
	if (type & SAMPLE_RAW)
		take_bytes(in, take_u32(in));
	if (type & SAMPLE_BRANCH_STACK)
		skip_branches(attr, in);
	if (type & SAMPLE_REGS_USER)
		sample->has_user_regs = take_regs(in, attr->regs_user, sample->user_regs);
	if (type & SAMPLE_STACK_USER)
		take_stack(in, sample);
	if (type & SAMPLE_WEIGHT)
		sample->weight = take_u64(in);
	else if (type & SAMPLE_WEIGHT_STRUCT)
		sample->weight = (uint32_t)take_u64(in); /* the rest is other latencies */
	if (type & SAMPLE_DATA_SRC)
		sample->data_src = take_u64(in);
	if (type & SAMPLE_TRANSACTION)
		take_u64(in);
	if (type & SAMPLE_REGS_INTR)
		sample->has_regs = take_regs(in, attr->regs_intr, sample->regs);
}

static void put_access(struct perfdata *perf, const struct attr *attr,
		       const struct sample *sample, bool is_kernel)
{
	struct abi_access access = {
		.head = { .kind = ABI_ACCESS,
			  .cpu = (uint16_t)sample->cpu,
			  .size = sizeof(access),
			  .time_ns = sample->time_ns,
			  .pid = sample->pid,
			  .tid = sample->tid },
		.ip = sample->ip,
		.addr = sample->addr,
		.data_src = sample->data_src,
		.weight = sample->weight,
		.period = sample->period,
		.source = attr->source,
		.flags = is_kernel ? ABI_ACCESS_KERNEL : 0,
	};
	const uint64_t *regs = sample->has_regs ? sample->regs : NULL;

	/* What the interrupt found in user code are the registers at the sample. */
	if (!regs && sample->has_user_regs && !is_kernel)
		regs = sample->user_regs;
	if (regs && !perf->is_foreign_arch) {
		access.flags |= ABI_ACCESS_REGS;
		memcpy(access.regs, regs, sizeof(access.regs));
	}
	if (attr->sample_type & SAMPLE_ADDR)
		access.flags |= ABI_ACCESS_ADDR;
	if (attr->sample_type & (SAMPLE_WEIGHT | SAMPLE_WEIGHT_STRUCT | SAMPLE_DATA_SRC))
		access.flags |= ABI_ACCESS_WEIGHT;
	str_clear(&perf->out);
	str_add_bytes(&perf->out, &access, sizeof(access));
	put_out(perf);
	perf->stats.samples++;
}

/* Leaf first, as the chain has them; its markers say whose the next ones are. */
static void fill_chain(const struct sample *sample, bool is_kernel, struct abi_tick *tick)
{
	uint64_t context = is_kernel ? CONTEXT_KERNEL : CONTEXT_USER;

	for (uint64_t i = 0; i < sample->chain_count; i++) {
		uint64_t ip;

		memcpy(&ip, sample->chain + i * 8, sizeof(ip));
		if (ip >= CONTEXT_FIRST)
			context = ip;
		else if (context == CONTEXT_KERNEL &&
			 tick->kernel_depth < ABI_KERNEL_FRAMES)
			tick->kernel_ips[tick->kernel_depth++] = ip;
		else if (context == CONTEXT_USER && tick->user_depth < ABI_KERNEL_FRAMES)
			tick->user_ips[tick->user_depth++] = ip;
	}
}

/* Time of CPU that a sample stands for: its period when that is a time, else by rate. */
static uint64_t cpu_ns(const struct attr *attr, const struct sample *sample)
{
	if (attr->source == ABI_SOURCE_CLOCK)
		return sample->period;
	return attr->is_freq && attr->period ? SECOND_NS / attr->period : 0;
}

static void put_tick(struct perfdata *perf, const struct attr *attr,
		     const struct sample *sample, bool is_kernel)
{
	struct abi_tick tick = {
		.head = { .kind = ABI_TICK,
			  .cpu = (uint16_t)sample->cpu,
			  .time_ns = sample->time_ns,
			  .pid = sample->pid,
			  .tid = sample->tid },
		.period_ns = cpu_ns(attr, sample),
		.flags = is_kernel ? ABI_TICK_KERNEL : 0,
	};

	fill_chain(sample, is_kernel, &tick);
	if (sample->has_user_regs && !perf->is_foreign_arch) {
		tick.flags |= ABI_TICK_USER;
		memcpy(tick.regs, sample->user_regs, sizeof(tick.regs));
	} else if (tick.user_depth) {
		tick.flags |= ABI_TICK_USER;
		tick.regs[16] = tick.user_ips[0];
	}
	if (sample->stack && !perf->is_foreign_arch)
		tick.stack_bytes = (uint32_t)(sample->stack_bytes < ABI_STACK_COPY_MAX
						      ? sample->stack_bytes
						      : ABI_STACK_COPY_MAX);
	if (tick.stack_bytes && sample->stack_bytes == sample->stack_wanted)
		tick.flags |= ABI_TICK_CUT;
	tick.head.size = (uint32_t)(sizeof(tick) + tick.stack_bytes);
	str_clear(&perf->out);
	str_add_bytes(&perf->out, &tick, sizeof(tick));
	str_add_bytes(&perf->out, sample->stack, tick.stack_bytes);
	put_out(perf);
}

struct err *sample_take(struct perfdata *perf, const struct record_head *head,
			struct bytes body)
{
	const struct attr *attr = attr_of_sample(perf, &body);
	struct sample sample = { 0 };
	unsigned mode = head->misc & MISC_CPUMODE;

	if (!attr)
		return err_new(ERR_FORMAT, "a sample of an event that is not described");
	sample.period = attr->is_freq ? 1 : attr->period;
	take_head(attr, &body, &sample);
	take_tail(attr, &body, &sample);
	if (body.bad)
		return err_new(ERR_FORMAT, "a sample is shorter than its parts");
	if (mode != MISC_KERNEL && mode != MISC_USER) {
		perf->stats.foreign++;
		return NULL;
	}
	put_access(perf, attr, &sample, mode == MISC_KERNEL);
	if (sample.chain_count || (sample.stack && sample.has_user_regs))
		put_tick(perf, attr, &sample, mode == MISC_KERNEL);
	return NULL;
}
