// SPDX-License-Identifier: Apache-2.0
/*
 * An access record on its way to (module, va). It may have to wait twice: for its
 * process or mapping to turn up (records are lost or late), and for its file to be
 * identified. Both waits end; what is not charged by then is counted with the reason.
 */
#include "live/live_impl.h"

/* What became of a sample. */
enum outcome { DONE, WAIT_MAPPING };

static void lose_sample(struct live *live, const struct sample *sample,
			enum loss_reason reason)
{
	lose(live, sample->time_ns, ABI_ACCESS, reason);
	live->stats.access_unmapped++;
}

static void charge(struct live *live, const struct sample *sample, uint64_t module_id,
		   uint64_t va)
{
	if (!aggregate_access(live->aggregate, sample, module_id, va))
		lose_sample(live, sample, LOSS_LIMIT);
}

/* @sample->place is a file offset now, and @module is identified or will never be. */
static void charge_file(struct live *live, const struct sample *sample,
			const struct module *module)
{
	uint64_t va;

	if (module->state != MODULE_KNOWN)
		lose_sample(live, sample,
			    path_is_memory(module->path) ? LOSS_ANONYMOUS
							 : LOSS_NO_MODULE);
	else if (module_va(module, sample->place, &va))
		charge(live, sample, module->module_id, va);
	else
		lose_sample(live, sample, LOSS_NO_MAPPING);
}

static void wait_for_module(struct live *live, struct module *module,
			    const struct sample *sample)
{
	if (live->waiting >= LIVE_MAX_WAITING) {
		lose_sample(live, sample, LOSS_LIMIT);
		return;
	}
	vec_push(&module->waiting, *sample);
	live->waiting++;
}

static void in_range(struct live *live, struct process *process,
		     const struct range *range, struct sample *sample)
{
	uint64_t key = range->key;
	struct module *module = module_table_find(live->modules, key);

	sample->place = sample->place - range->start + range->pgoff;
	if (!key) {
		lose_sample(live, sample, LOSS_ANONYMOUS);
		return;
	}
	if (!module) {
		lose_sample(live, sample, LOSS_LIMIT);
		return;
	}
	if (module->state == MODULE_NEW)
		live_want_module(live, process, range, module);
	if (module->state == MODULE_ASKED)
		wait_for_module(live, module, sample);
	else
		charge_file(live, sample, module);
}

static enum outcome place_sample(struct live *live, struct process *process,
				 struct sample *sample, uint64_t now_ns)
{
	uint64_t module_id, va;

	if (sample->flags & ABI_ACCESS_KERNEL || ip_is_kernel(sample->place)) {
		if (kernel_find(live->kernel, sample->place, &module_id, &va))
			charge(live, sample, module_id, va);
		else
			lose_sample(live, sample, LOSS_NO_MAPPING);
		return DONE;
	}
	const struct range *range = procmap_find(process->map, sample->place);

	if (!range) {
		live_want_process(live, process, now_ns);
		range = procmap_find(process->map, sample->place);
	}
	if (!range)
		return WAIT_MAPPING;
	in_range(live, process, range, sample);
	return DONE;
}

void sample_feed(struct live *live, const struct event *event)
{
	const struct abi_access *access = &event->access;
	struct process *process = live_process(live, &event->head);
	struct sample sample = {
		.time_ns = access->head.time_ns,
		.place = access->ip,
		.method_id = methods_kind(live->methods, access->head.method_id),
		.period = access->period,
		.weight = access->weight,
		.data_src = access->data_src,
		.pid = access->head.pid,
		.source = access->source,
		.flags = access->flags,
	};

	live->stats.access_samples++;
	if (!process) {
		lose_sample(live, &sample, LOSS_LIMIT);
		return;
	}
	live_charge(live, process);
	sample.start_ns = process->start_ns;
	sample.process_id = live_process_id(live, process);
	if (place_sample(live, process, &sample, sample.time_ns) == DONE)
		return;
	if (live->waiting >= LIVE_MAX_WAITING) {
		lose_sample(live, &sample, LOSS_LIMIT);
		return;
	}
	vec_push(&live->unmapped, sample);
	live->waiting++;
}

void sample_module_done(struct live *live, struct module *module)
{
	live->waiting -= module->waiting.count;
	vec_each(&module->waiting, sample)
		charge_file(live, sample, module);
	vec_fini(&module->waiting);
}

static void retry_unmapped(struct live *live, uint64_t now_ns)
{
	size_t count = live->unmapped.count, kept = 0;

	/* The owner's answer may feed records, and those may append to the list. */
	for (size_t i = 0; i < count; i++) {
		struct sample sample = live->unmapped.data[i];
		struct process *process = tasks_find(live->tasks, sample.pid,
						     sample.start_ns, sample.time_ns);
		bool over = now_ns > sample.time_ns + LIVE_SETTLE_NS;

		if (process && place_sample(live, process, &sample, now_ns) == DONE) {
			live->waiting--;
		} else if (!process || over) {
			lose_sample(live, &sample,
				    process && process->known ? LOSS_NO_MAPPING
							      : LOSS_NO_PROCESS);
			live->waiting--;
		} else {
			live->unmapped.data[kept++] = sample;
		}
	}
	for (size_t i = count; i < live->unmapped.count; i++)
		live->unmapped.data[kept++] = live->unmapped.data[i];
	live->unmapped.count = kept;
}

static void expire_module(struct live *live, struct module *module, uint64_t now_ns)
{
	size_t kept = 0;

	vec_each(&module->waiting, sample) {
		if (now_ns <= sample->time_ns + LIVE_IDENTIFY_NS) {
			module->waiting.data[kept++] = *sample;
			continue;
		}
		lose_sample(live, sample, LOSS_NO_MODULE);
		live->waiting--;
	}
	module->waiting.count = kept;
}

void sample_retry(struct live *live, uint64_t now_ns)
{
	size_t pos = 0;
	struct module *module;

	retry_unmapped(live, now_ns);
	while ((module = module_table_next(live->modules, &pos)))
		if (module->waiting.count)
			expire_module(live, module, now_ns);
}
