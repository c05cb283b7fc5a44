// SPDX-License-Identifier: Apache-2.0
/*
 * A tick comes with either a copy of the user stack, which the worker unwinds by CFI, or
 * with the frame-pointer walk of a process whose walks have proved right: as long as
 * both come, they are compared. The queue is bounded in number and bytes; what does not
 * fit, or cannot be unwound, keeps its kernel frames and its leaf.
 */
#include "daemon/stacks.h"

#include <string.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"
#include "daemon/flight.h"

#define REG_IP	      16
#define MAX_FRAMES    (ABI_KERNEL_FRAMES + JOB_MAX_FRAMES)
#define MAX_TICK_ROWS 65536
#define MAX_TRIES     2

/* One tick that waits or flies. */
struct queued {
	struct flight flight;
	struct queued *next;
	size_t bytes; /* counted against STACKS_MAX_BYTES */
	struct abi_head head;
	uint64_t process_id, bucket_ns, period_ns;
	struct fact_frame kernel[ABI_KERNEL_FRAMES];
	size_t kernel_count;
	uint64_t walked[ABI_KERNEL_FRAMES]; /* by frame pointers; runtime addresses */
	size_t walked_count;
	struct job_stack stack; /* .bytes is owned */
	struct job_range *ranges;
	size_t range_count;
	unsigned tries;
	bool is_asleep;
};

struct tick_key {
	uint64_t bucket_ns, process_id, stack_id, method_id;
};

struct tick_cell {
	uint64_t samples, cpu_ns;
};

struct agreement {
	uint32_t in_a_row;
	bool told;
};

struct stacks {
	struct stacks_config config;
	struct queued *first, **last; /* waiting, oldest first */
	size_t queued_bytes;
	struct flights flights;
	struct map *known; /* stack ids that were put */
	struct map *ticks; /* tick_key -> tick_cell */
	struct map *agree; /* process id -> agreement */
	struct stacks_stats stats;
};

struct stacks *stacks_new(const struct stacks_config *config)
{
	struct stacks *stacks = mem_alloc(sizeof(*stacks));

	stacks->config = *config;
	stacks->last = &stacks->first;
	stacks->known = map_new(sizeof(uint64_t), 1);
	stacks->ticks = map_new(sizeof(struct tick_key), sizeof(struct tick_cell));
	stacks->agree = map_new(sizeof(uint64_t), sizeof(struct agreement));
	return stacks;
}

static void queued_free(struct queued *queued)
{
	free((void *)queued->stack.bytes);
	free(queued->ranges);
	free(queued);
}

void stacks_free(struct stacks *stacks)
{
	if (!stacks)
		return;
	while (stacks->first) {
		struct queued *next = stacks->first->next;

		queued_free(stacks->first);
		stacks->first = next;
	}
	flights_cut(&stacks->flights);
	map_free(stacks->known);
	map_free(stacks->ticks);
	map_free(stacks->agree);
	free(stacks);
}

/* Results. */

static void put_stack(struct stacks *stacks, const struct fact_stack *stack)
{
	bool is_new;

	if (map_count(stacks->known) >= STACKS_MAX_KNOWN)
		map_clear(stacks->known);
	map_put(stacks->known, &stack->stack_id, &is_new);
	if (is_new)
		sink_put(stacks->config.sink,
			 &(struct fact){ .kind = FACT_STACK, .stack = *stack });
}

static void tell_sleep(struct stacks *stacks, const struct queued *queued,
		       const struct fact_frame *frames, size_t count)
{
	struct stacks_sleep sleep = { queued->head.pid, queued->head.tid,
				      queued->head.time_ns, frames, count };

	if (stacks->config.slept)
		stacks->config.slept(stacks->config.ctx, &sleep);
}

/* Put the stack of @queued with these user frames and count the tick. */
static void put_tick(struct stacks *stacks, const struct queued *queued,
		     const struct fact_frame *user, size_t user_count, bool complete)
{
	struct fact_frame frames[MAX_FRAMES];
	struct fact_stack stack = {
		.frames = frames,
		.count = queued->kernel_count + user_count,
		.kernel_count = (uint32_t)queued->kernel_count,
		.complete = complete,
	};

	if (queued->is_asleep) {
		tell_sleep(stacks, queued, user, user_count);
		return;
	}
	memcpy(frames, queued->kernel, queued->kernel_count * sizeof(*frames));
	if (user_count)
		memcpy(frames + queued->kernel_count, user, user_count * sizeof(*frames));
	stack.stack_id = stack_id_of(frames, stack.count, stack.kernel_count);
	struct tick_key key = { queued->bucket_ns, queued->process_id, stack.stack_id,
				queued->head.method_id };

	if (map_count(stacks->ticks) >= MAX_TICK_ROWS)
		stacks_flush(stacks);
	struct tick_cell *cell = map_put(stacks->ticks, &key, NULL);

	cell->samples++;
	cell->cpu_ns += queued->period_ns;
	put_stack(stacks, &stack);
	if (!complete)
		stacks->config.loss(stacks->config.ctx, queued->head.time_ns, 1);
	else
		stacks->stats.complete++;
}

static struct fact_frame map_ip(const struct queued *queued, uint64_t ip)
{
	size_t low = 0, high = queued->range_count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct job_range *range = &queued->ranges[middle];

		if (ip < range->start)
			high = middle;
		else if (ip >= range->end)
			low = middle + 1;
		else if (!range->module_id)
			break;
		else
			return (struct fact_frame){ range->module_id, ip - range->bias };
	}
	return (struct fact_frame){ 0, ip };
}

/* Like the unwinder's frames: callers by the address of their call, not of its return. */
static size_t map_walk(const struct queued *queued, struct fact_frame *frames)
{
	for (size_t i = 0; i < queued->walked_count; i++)
		frames[i] = map_ip(queued, queued->walked[i] - (i > 0));
	return queued->walked_count;
}

/* The leaf is all that is certain. */
static void give_up(struct stacks *stacks, const struct queued *queued)
{
	struct fact_frame leaf = map_ip(queued, queued->stack.regs[REG_IP]);

	put_tick(stacks, queued, &leaf, 1, false);
	stacks->stats.dropped++;
}

static bool same_frame(const struct fact_frame *a, const struct fact_frame *b)
{
	return a->module_id == b->module_id && a->va == b->va;
}

static bool walk_agrees(const struct queued *queued, const struct job_unwound *unwound)
{
	struct fact_frame walked[ABI_KERNEL_FRAMES];
	size_t count = map_walk(queued, walked);

	/* A stack of one frame says nothing about frame pointers. */
	if (!unwound->complete || unwound->count != count || count < 2)
		return false;
	for (size_t i = 0; i < count; i++)
		if (!same_frame(&walked[i], &unwound->frames[i]))
			return false;
	return true;
}

static void compare_walks(struct stacks *stacks, const struct queued *queued,
			  const struct job_unwound *unwound)
{
	struct agreement *agreement = map_find(stacks->agree, &queued->process_id);

	if (!agreement && map_count(stacks->agree) >= STACKS_MAX_FP)
		map_clear(stacks->agree);
	if (!agreement)
		agreement = map_put(stacks->agree, &queued->process_id, NULL);
	if (!walk_agrees(queued, unwound)) {
		agreement->in_a_row = 0;
		return;
	}
	if (++agreement->in_a_row < STACKS_FP_AGREE || agreement->told)
		return;
	agreement->told = true;
	if (stacks->config.fp_ok)
		stacks->config.fp_ok(stacks->config.ctx, queued->head.pid,
				     queued->head.start_ns);
}

static void enqueue(struct stacks *stacks, struct queued *queued)
{
	queued->next = NULL;
	*stacks->last = queued;
	stacks->last = &queued->next;
	stacks->queued_bytes += queued->bytes;
	stacks->stats.queued++;
}

static struct queued *dequeue(struct stacks *stacks)
{
	struct queued *queued = stacks->first;

	stacks->first = queued->next;
	if (!stacks->first)
		stacks->last = &stacks->first;
	stacks->queued_bytes -= queued->bytes;
	stacks->stats.queued--;
	return queued;
}

static void forget_modules(struct stacks *stacks, const struct queued *queued)
{
	for (size_t i = 0; i < queued->range_count; i++)
		if (queued->ranges[i].module_id)
			modules_forget(stacks->config.modules,
				       queued->ranges[i].module_id, JOB_RESOLVE);
}

static void on_unwound(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct queued *queued = ctx;
	struct stacks *stacks = queued->flight.owner;
	bool again = false;

	if (stacks) {
		flight_end(&stacks->flights, &queued->flight);
		stacks->stats.flying--;
	}
	if (stacks && reply) {
		const struct job_unwound *unwound = &reply->unwound;
		size_t count =
			unwound->count < JOB_MAX_FRAMES ? unwound->count : JOB_MAX_FRAMES;

		stacks->stats.unwound++;
		if (!queued->is_asleep)
			compare_walks(stacks, queued, unwound);
		put_tick(stacks, queued, unwound->frames, count, unwound->complete);
	} else if (stacks) {
		/* A worker that forgot a module, or died over another job. */
		if (err->code == ERR_NOT_FOUND)
			forget_modules(stacks, queued);
		again = was_not_begun(err) ||
			(err->code == ERR_NOT_FOUND && ++queued->tries < MAX_TRIES);
		if (again)
			enqueue(stacks, queued);
		else
			give_up(stacks, queued);
	}
	err_free(err);
	if (!again)
		queued_free(queued);
}

/* Asking. */

static struct queued *copy_tick(const struct live_tick *tick)
{
	const struct abi_tick *from = &tick->event->tick;
	struct queued *queued = mem_alloc(sizeof(*queued));

	queued->head = from->head;
	queued->process_id = tick->process_id;
	queued->bucket_ns = tick->bucket_ns;
	queued->period_ns = from->period_ns;
	queued->kernel_count = tick->kernel_count < ABI_KERNEL_FRAMES ? tick->kernel_count
								      : ABI_KERNEL_FRAMES;
	if (queued->kernel_count)
		memcpy(queued->kernel, tick->kernel_frames,
		       queued->kernel_count * sizeof(struct fact_frame));
	queued->walked_count = from->user_depth < ABI_KERNEL_FRAMES ? from->user_depth
								    : ABI_KERNEL_FRAMES;
	memcpy(queued->walked, from->user_ips, sizeof(queued->walked));
	for (size_t i = 0; i < ABI_REGS; i++)
		queued->stack.regs[i] = from->regs[i];
	queued->is_asleep = from->flags & ABI_TICK_ASLEEP;
	queued->stack.cut = from->flags & ABI_TICK_CUT;
	queued->range_count = tick->range_count;
	queued->ranges = mem_array(tick->range_count, sizeof(struct job_range));
	for (size_t i = 0; i < tick->range_count; i++)
		queued->ranges[i] =
			(struct job_range){ tick->ranges[i].start, tick->ranges[i].end,
					    tick->ranges[i].bias,
					    tick->ranges[i].module_id };
	return queued;
}

/* The process has proved its frame pointers and sends no stack any more. */
static void put_walk(struct stacks *stacks, const struct queued *queued)
{
	struct fact_frame frames[ABI_KERNEL_FRAMES];
	size_t count = map_walk(queued, frames);

	stacks->stats.by_frame_pointer++;
	put_tick(stacks, queued, frames, count, count < ABI_KERNEL_FRAMES);
}

void stacks_unwind(struct stacks *stacks, const struct live_tick *tick)
{
	struct queued *queued = copy_tick(tick);
	size_t bytes = tick->event->tick.stack_bytes;

	queued->bytes =
		sizeof(*queued) + bytes + queued->range_count * sizeof(struct job_range);
	if (!bytes && queued->walked_count) {
		put_walk(stacks, queued);
	} else if (!bytes || stacks->stats.queued >= STACKS_MAX_QUEUED ||
		   stacks->queued_bytes + queued->bytes > STACKS_MAX_BYTES) {
		give_up(stacks, queued);
	} else {
		queued->stack.bytes = mem_copy(tick->event->stack, bytes);
		queued->stack.byte_count = bytes;
		enqueue(stacks, queued);
		return;
	}
	queued_free(queued);
}

/* False: some module is not ready, try later. One that cannot be opened is left out. */
static bool open_modules(struct stacks *stacks, struct queued *queued)
{
	for (size_t i = 0; i < queued->range_count; i++) {
		struct job_range *range = &queued->ranges[i];

		if (!range->module_id)
			continue;
		struct err *err =
			modules_open_code(stacks->config.modules, range->module_id);

		if (!err)
			continue;
		bool later = err->code == ERR_BUSY || err->code == ERR_LIMIT ||
			     err->code == ERR_CLOSED;

		err_free(err);
		if (later)
			return false;
	}
	return true;
}

void stacks_pump(struct stacks *stacks)
{
	while (stacks->first && stacks->stats.flying < STACKS_FLYING) {
		struct job_client *client =
			job_source_client(stacks->config.jobs, JOB_RESOLVE);

		if (!client || !open_modules(stacks, stacks->first))
			return;
		struct queued *queued = dequeue(stacks);
		struct err *err = job_unwind(client, queued->ranges, queued->range_count,
					     &queued->stack, on_unwound, queued);

		if (!err) {
			flight_begin(&stacks->flights, &queued->flight, stacks);
			stacks->stats.flying++;
			continue;
		}
		bool later = err->code == ERR_LIMIT || err->code == ERR_CLOSED;

		err_free(err);
		/* A frame that no message can hold fails for ever. */
		if (later && ++queued->tries < 16) {
			enqueue(stacks, queued);
			return;
		}
		give_up(stacks, queued);
		queued_free(queued);
	}
}

static int by_key(const void *a, const void *b)
{
	const uint64_t *x = a, *y = b;

	for (size_t i = 0; i < sizeof(struct tick_key) / sizeof(uint64_t); i++)
		if (x[i] != y[i])
			return x[i] < y[i] ? -1 : 1;
	return 0;
}

void stacks_flush(struct stacks *stacks)
{
	VEC(struct tick_key) keys = { 0 };
	const void *key;
	size_t pos = 0;

	while (map_next(stacks->ticks, &pos, &key))
		vec_push(&keys, *(const struct tick_key *)key);
	if (keys.count)
		qsort(keys.data, keys.count, sizeof(struct tick_key), by_key);
	vec_each(&keys, k) {
		const struct tick_cell *cell = map_find(stacks->ticks, k);
		struct fact fact = {
			.kind = FACT_TICK,
			.tick = { .run_id = stacks->config.run_id,
				  .bucket_ns = k->bucket_ns,
				  .process_id = k->process_id,
				  .stack_id = k->stack_id,
				  .method_id = k->method_id,
				  .samples = cell->samples,
				  .cpu_ns = cell->cpu_ns },
		};

		sink_put(stacks->config.sink, &fact);
	}
	vec_fini(&keys);
	map_clear(stacks->ticks);
}

void stacks_drain(struct stacks *stacks)
{
	while (stacks->first) {
		struct queued *queued = dequeue(stacks);

		give_up(stacks, queued);
		queued_free(queued);
	}
	/* What flies may still answer; whoever waits for it calls stacks_flush() after. */
	stacks_flush(stacks);
}

void stacks_stats(const struct stacks *stacks, struct stacks_stats *ret_stats)
{
	*ret_stats = stacks->stats;
}
