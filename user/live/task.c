// SPDX-License-Identifier: Apache-2.0
/*
 * A hash from pid to the newest generation, each of which points to the one before.
 * Side-band records carry no start time, so a generation may exist before its start
 * is known; the first record that knows it completes the entry.
 */
#include "live/task.h"

#include <string.h>

#include "core/map.h"
#include "core/mem.h"

#define TASK_FIRST_ASK_NS 1000000000ull
#define TASK_MAX_ASKS	  6 /* the last after 1 + 4 + ... + 256 s */

struct tasks {
	struct map *by_pid; /* uint32_t -> struct process * */
	size_t count, limit;
};

struct tasks *tasks_new(size_t limit)
{
	struct tasks *tasks = mem_alloc(sizeof(*tasks));

	tasks->by_pid = map_new(sizeof(uint32_t), sizeof(struct process *));
	tasks->limit = limit;
	return tasks;
}

static void process_free(struct process *process)
{
	procmap_unref(process->map);
	free(process);
}

void tasks_free(struct tasks *tasks)
{
	size_t pos = 0;
	struct process **slot;

	if (!tasks)
		return;
	while ((slot = map_next(tasks->by_pid, &pos, NULL))) {
		while (*slot) {
			struct process *next = (*slot)->older;

			process_free(*slot);
			*slot = next;
		}
	}
	map_free(tasks->by_pid);
	free(tasks);
}

/* The generation that lived at @time_ns; the newest when they all came later. */
static struct process *find_at(struct process *newest, uint64_t time_ns)
{
	for (struct process *p = newest; p; p = p->older)
		if (p->first_ns <= time_ns)
			return p;
	return newest;
}

struct process *tasks_find(struct tasks *tasks, uint32_t pid, uint64_t start_ns,
			   uint64_t time_ns)
{
	struct process **slot = map_find(tasks->by_pid, &pid);
	struct process *unnamed = NULL;

	if (!slot || !*slot)
		return NULL;
	if (!start_ns)
		return find_at(*slot, time_ns);
	for (struct process *p = *slot; p; p = p->older) {
		if (p->start_ns == start_ns)
			return p;
		if (!p->start_ns && !unnamed)
			unnamed = p;
	}
	if (unnamed)
		unnamed->start_ns = start_ns;
	return unnamed;
}

static struct process *create(struct tasks *tasks, uint32_t pid, uint64_t start_ns,
			      uint64_t time_ns)
{
	struct process *process = mem_alloc(sizeof(*process));
	struct process **slot = map_put(tasks->by_pid, &pid, NULL);

	process->pid = pid;
	process->start_ns = start_ns;
	process->first_ns = process->last_ns = time_ns;
	process->map = procmap_new();
	tasks->count++;
	/* A late record of an earlier process must not hide the present one. */
	while (*slot && (*slot)->start_ns > start_ns && start_ns) {
		process->exit_ns = time_ns;
		slot = &(*slot)->older;
	}
	process->older = *slot;
	*slot = process;
	if (start_ns)
		for (struct process *p = process->older; p; p = p->older)
			if (!p->exit_ns)
				p->exit_ns = time_ns;
	return process;
}

struct process *tasks_put(struct tasks *tasks, uint32_t pid, uint64_t start_ns,
			  uint64_t time_ns)
{
	struct process *process = tasks_find(tasks, pid, start_ns, time_ns);

	if (process)
		return process;
	if (tasks->count >= tasks->limit)
		return NULL;
	return create(tasks, pid, start_ns, time_ns);
}

struct reaping {
	struct tasks *tasks;
	uint64_t before_ns;
	bool idle_too;
	tasks_fn gone;
	void *ctx;
};

static bool is_over(const struct reaping *reaping, const struct process *process)
{
	if (process->last_ns >= reaping->before_ns)
		return false;
	/* Side-band tells of everybody's mappings; nobody sampled this one. */
	if (reaping->idle_too || (!process->known && !process->charged))
		return true;
	return process->exit_ns && process->exit_ns < reaping->before_ns;
}

static bool reap_slot(const void *key, void *value, void *ctx)
{
	struct reaping *reaping = ctx;
	struct process **at = value;

	(void)key;
	while (*at) {
		struct process *process = *at;

		if (!is_over(reaping, process)) {
			at = &process->older;
			continue;
		}
		*at = process->older;
		reaping->gone(reaping->ctx, process);
		process_free(process);
		reaping->tasks->count--;
	}
	return !*(struct process **)value;
}

void tasks_reap(struct tasks *tasks, uint64_t before_ns, tasks_fn gone, void *ctx)
{
	struct reaping reaping = { tasks, before_ns, false, gone, ctx };

	map_del_if(tasks->by_pid, reap_slot, &reaping);
}

void tasks_reap_idle(struct tasks *tasks, uint64_t before_ns, tasks_fn gone, void *ctx)
{
	struct reaping reaping = { tasks, before_ns, true, gone, ctx };

	map_del_if(tasks->by_pid, reap_slot, &reaping);
}

void tasks_each(const struct tasks *tasks, tasks_fn each, void *ctx)
{
	size_t pos = 0;
	struct process **slot;

	while ((slot = map_next(tasks->by_pid, &pos, NULL)))
		for (struct process *p = *slot; p; p = p->older)
			each(ctx, p);
}

size_t tasks_count(const struct tasks *tasks)
{
	return tasks->count;
}

bool task_may_ask(struct process *process, uint64_t now_ns)
{
	if (process->asked) {
		uint64_t wait_ns = TASK_FIRST_ASK_NS << (2 * (process->asked - 1));

		if (process->asked >= TASK_MAX_ASKS ||
		    now_ns < process->asked_ns + wait_ns)
			return false;
	}
	process->asked++;
	process->asked_ns = now_ns;
	return true;
}
