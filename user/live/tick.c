// SPDX-License-Identifier: Apache-2.0
/*
 * A CPU tick on its way to a stack. Kernel frames are mapped here. The user part is
 * unwound by the owner, who needs to know every file of the address space, so a tick
 * waits until all of them are identified; without an owner who can unwind, only the
 * leaf is kept. A tick is never dropped for want of a mapping: its CPU time was spent.
 */
#include "live/live_impl.h"

#include <string.h>

#define REG_IP 16

static uint64_t user_ip(const struct abi_tick *tick)
{
	return tick->flags & ABI_TICK_USER ? tick->regs[REG_IP] : 0;
}

/* Ask for every file that the process maps. */
static void ask_files(struct live *live, struct process *process)
{
	size_t count;
	const struct range *borrowed = procmap_ranges(process->map, &count);

	if (process->files_asked || !count)
		return;
	process->files_asked = true;
	/* Answers may come at once and change the map: walk a copy. */
	struct range *ranges = mem_copy(borrowed, count * sizeof(*ranges));

	for (size_t i = 0; i < count; i++) {
		struct module *module = module_table_find(live->modules, ranges[i].key);

		if (module && module->state == MODULE_NEW)
			live_want_module(live, process, &ranges[i], module);
	}
	free(ranges);
}

static bool range_is_settled(struct live *live, const struct range *range)
{
	struct module *module = module_table_find(live->modules, range->key);

	return !module || module->state != MODULE_ASKED;
}

/* Whether the frames of @tick can be mapped as well as they ever will be. */
static bool is_settled(struct live *live, struct process *process,
		       const struct abi_tick *tick, uint64_t now_ns)
{
	uint64_t ip = user_ip(tick);
	size_t count;

	if (!ip)
		return true;
	const struct range *leaf = procmap_find(process->map, ip);

	if (!leaf) {
		live_want_process(live, process, now_ns);
		leaf = procmap_find(process->map, ip);
	}
	if (live->ops.unwind)
		ask_files(live, process);
	if (!leaf)
		return now_ns > tick->head.time_ns + LIVE_SETTLE_NS;
	struct module *module = module_table_find(live->modules, leaf->key);

	if (module && module->state == MODULE_NEW)
		live_want_module(live, process, leaf, module);
	if (now_ns > tick->head.time_ns + LIVE_IDENTIFY_NS)
		return true;
	const struct range *ranges = procmap_ranges(process->map, &count);

	if (!live->ops.unwind) {
		leaf = procmap_find(process->map, ip);
		return !leaf || range_is_settled(live, leaf);
	}
	for (size_t i = 0; i < count; i++)
		if (!range_is_settled(live, &ranges[i]))
			return false;
	return true;
}

static struct fact_frame user_frame(struct live *live, struct process *process,
				    uint64_t ip)
{
	const struct range *range = procmap_find(process->map, ip);
	struct module *module =
		range ? module_table_find(live->modules, range->key) : NULL;
	struct fact_frame frame = { 0, ip };

	if (module && module->state == MODULE_KNOWN &&
	    module_va(module, ip - range->start + range->pgoff, &frame.va))
		frame.module_id = module->module_id;
	return frame;
}

static size_t kernel_frames(struct live *live, const struct abi_tick *tick,
			    struct fact_frame *frames)
{
	size_t depth = tick->kernel_depth;

	if (depth > ABI_KERNEL_FRAMES)
		depth = ABI_KERNEL_FRAMES;
	for (size_t i = 0; i < depth; i++) {
		frames[i] = (struct fact_frame){ 0, tick->kernel_ips[i] };
		kernel_find(live->kernel, tick->kernel_ips[i], &frames[i].module_id,
			    &frames[i].va);
	}
	return depth;
}

static void put_leaf(struct live *live, struct process *process,
		     const struct abi_tick *tick)
{
	struct fact_frame frames[ABI_KERNEL_FRAMES + 1];
	size_t kernel = kernel_frames(live, tick, frames);
	struct fact_stack stack = {
		.frames = frames,
		.count = kernel,
		.kernel_count = (uint32_t)kernel,
		.complete = !user_ip(tick),
	};

	if (user_ip(tick))
		frames[stack.count++] = user_frame(live, process, user_ip(tick));
	if (!aggregate_tick(live->aggregate, tick, live_process_id(live, process),
			    &stack))
		lose(live, tick->head.time_ns, ABI_TICK, LOSS_LIMIT);
}

static struct live_range *unwind_ranges(struct live *live, struct process *process,
					size_t *ret_count)
{
	const struct range *ranges = procmap_ranges(process->map, ret_count);
	struct live_range *out = mem_array(*ret_count, sizeof(*out));

	for (size_t i = 0; i < *ret_count; i++) {
		struct module *module = module_table_find(live->modules, ranges[i].key);

		out[i].start = ranges[i].start;
		out[i].end = ranges[i].end;
		if (module && module->state == MODULE_KNOWN &&
		    module_bias(module, &ranges[i], &out[i].bias))
			out[i].module_id = module->module_id;
	}
	return out;
}

static void unwind(struct live *live, struct process *process, const struct event *event)
{
	struct fact_frame frames[ABI_KERNEL_FRAMES];
	struct live_tick tick = {
		.event = event,
		.process_id = live_process_id(live, process),
		.bucket_ns = bucket_of(&live->config, event->head.time_ns),
		.kernel_frames = frames,
		.kernel_count = kernel_frames(live, &event->tick, frames),
	};
	struct live_range *ranges = unwind_ranges(live, process, &tick.range_count);

	tick.ranges = ranges;
	live->ops.unwind(live->ctx, &tick);
	free(ranges);
}

static void put_tick(struct live *live, struct process *process,
		     const struct event *event)
{
	if (live->ops.unwind && user_ip(&event->tick))
		unwind(live, process, event);
	else if (!(event->tick.flags & ABI_TICK_ASLEEP))
		put_leaf(live, process, &event->tick);
}

static bool keep_tick(struct live *live, const struct event *event)
{
	size_t stack = live->ops.unwind ? event->tick.stack_bytes : 0;
	size_t bytes = sizeof(struct waiting_tick) + stack;

	if (live->tick_bytes + bytes > LIVE_MAX_TICKS)
		return false;
	struct waiting_tick *tick = vec_add(&live->ticks);

	tick->time_ns = event->head.time_ns;
	tick->bytes = bytes;
	tick->event = *event;
	tick->event.path = "";
	tick->stack = stack ? mem_copy(event->stack, stack) : NULL;
	tick->event.stack = tick->stack;
	live->tick_bytes += bytes;
	return true;
}

void tick_feed(struct live *live, const struct event *event)
{
	struct process *process = live_process(live, &event->head);

	if (!process) {
		lose(live, event->head.time_ns, ABI_TICK, LOSS_LIMIT);
		return;
	}
	live_charge(live, process);
	if (is_settled(live, process, &event->tick, event->head.time_ns) ||
	    !keep_tick(live, event))
		put_tick(live, process, event);
}

void tick_retry(struct live *live, uint64_t now_ns)
{
	size_t count = live->ticks.count, kept = 0;

	for (size_t i = 0; i < count; i++) {
		/* Asking may feed records that grow the list. */
		struct waiting_tick tick = live->ticks.data[i];
		struct process *process =
			tasks_find(live->tasks, tick.event.head.pid,
				   tick.event.head.start_ns, tick.time_ns);

		if (process && !is_settled(live, process, &tick.event.tick, now_ns)) {
			live->ticks.data[kept++] = tick;
			continue;
		}
		if (process)
			put_tick(live, process, &tick.event);
		else
			lose(live, tick.time_ns, ABI_TICK, LOSS_NO_PROCESS);
		live->tick_bytes -= tick.bytes;
		free(tick.stack);
	}
	for (size_t i = count; i < live->ticks.count; i++)
		live->ticks.data[kept++] = live->ticks.data[i];
	live->ticks.count = kept;
}

void tick_free_waiting(struct live *live)
{
	vec_each(&live->ticks, tick)
		free(tick->stack);
	vec_fini(&live->ticks);
}
