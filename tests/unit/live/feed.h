/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_UNIT_LIVE_FEED_H
#define TESTS_UNIT_LIVE_FEED_H

/*
 * A made-up machine for the tests of live/: short functions that feed one record each,
 * a sink that keeps the facts, and an owner that notes what was asked of it.
 */

#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "core/vec.h"
#include "live/live.h"

#define MS   1000000ull
#define S    1000000000ull
#define BOOT 77ull

struct kept {
	struct fact fact;
	char path[64]; /* of a module or exe; a method's name */
	struct fact_frame frames[8];
};

struct asked {
	uint32_t pid;
	uint64_t start_ns, key;
	uint64_t addr, length;
	bool deleted;
	char path[64];
};

struct machine {
	struct sink sink;
	VEC(struct kept) facts;
	VEC(struct asked) processes, modules;
	VEC(struct live_range) ranges; /* of the last unwind */
	size_t unwinds, kernel_frames;
	uint32_t observed[ABI_KINDS];
	struct live *live;
	uint64_t now_ns;
	/* Called from within want_process or want_module, to answer at once. */
	void (*answer)(struct machine *machine);
};

static inline void machine_put(struct sink *sink, const struct fact *fact)
{
	struct machine *machine = (struct machine *)sink;
	struct kept kept = { .fact = *fact };

	if (fact->kind == FACT_MODULE)
		snprintf(kept.path, sizeof(kept.path), "%s", fact->module.path);
	if (fact->kind == FACT_PROCESS)
		snprintf(kept.path, sizeof(kept.path), "%s", fact->process.exe);
	if (fact->kind == FACT_METHOD)
		snprintf(kept.path, sizeof(kept.path), "%s", fact->method.name);
	if (fact->kind == FACT_STACK)
		for (size_t i = 0; i < fact->stack.count && i < 8; i++)
			kept.frames[i] = fact->stack.frames[i];
	vec_push(&machine->facts, kept);
}

static inline void machine_want_process(void *ctx, uint32_t pid, uint64_t start_ns)
{
	struct machine *machine = ctx;

	vec_push(&machine->processes,
		 ((struct asked){ .pid = pid, .start_ns = start_ns }));
	if (machine->answer)
		machine->answer(machine);
}

static inline void machine_want_module(void *ctx, const struct live_file *file)
{
	struct machine *machine = ctx;
	struct asked asked = { .pid = file->pid,
			       .start_ns = file->start_ns,
			       .key = file->key,
			       .addr = file->addr,
			       .length = file->length,
			       .deleted = file->deleted };

	snprintf(asked.path, sizeof(asked.path), "%s", file->path);
	vec_push(&machine->modules, asked);
	if (machine->answer)
		machine->answer(machine);
}

static inline void machine_unwind(void *ctx, const struct live_tick *tick)
{
	struct machine *machine = ctx;

	machine->unwinds++;
	machine->kernel_frames = tick->kernel_count;
	vec_clear(&machine->ranges);
	for (size_t i = 0; i < tick->range_count; i++)
		vec_push(&machine->ranges, tick->ranges[i]);
}

static inline void machine_observe(void *ctx, const struct event *event)
{
	struct machine *machine = ctx;

	machine->observed[event->head.kind]++;
}

static inline struct machine *machine_new(bool unwinds)
{
	struct live_config config = { .run_id = 1, .boot_id = BOOT };
	struct live_ops ops = { .want_process = machine_want_process,
				.want_module = machine_want_module,
				.observe = machine_observe,
				.unwind = unwinds ? machine_unwind : NULL };
	struct machine *machine = mem_alloc(sizeof(*machine));

	machine->sink.put = machine_put;
	machine->live = live_new(&config, &machine->sink, &ops, machine);
	machine->now_ns = 100 * S;
	return machine;
}

static inline void machine_free(struct machine *machine)
{
	live_free(machine->live);
	vec_fini(&machine->facts);
	vec_fini(&machine->processes);
	vec_fini(&machine->modules);
	vec_fini(&machine->ranges);
	free(machine);
}
CLEANUP_DEFINE(machine_free, struct machine *)

/* Every record is 1 ms after the one before. */
static inline struct abi_head head_of(struct machine *machine, enum abi_kind kind,
				      uint32_t pid, uint64_t start_ns)
{
	machine->now_ns += MS;
	return (struct abi_head){ .kind = kind,
				  .time_ns = machine->now_ns,
				  .pid = pid,
				  .tid = pid,
				  .start_ns = start_ns };
}

static inline struct event task_event(struct machine *machine, enum abi_task_op op,
				      uint32_t pid, uint64_t start_ns, const char *comm)
{
	struct event event = { .path = "" };

	event.task.head = head_of(machine, ABI_TASK, pid, start_ns);
	event.task.op = op;
	memcpy(event.task.comm, comm, strlen(comm));
	return event;
}

static inline void task(struct machine *machine, enum abi_task_op op, uint32_t pid,
			uint64_t start_ns, const char *comm)
{
	struct event event = task_event(machine, op, pid, start_ns, comm);

	live_feed(machine->live, &event);
}

static inline void fork_of(struct machine *machine, uint32_t parent,
			   uint64_t parent_start, uint32_t pid, uint64_t start_ns)
{
	struct event event = task_event(machine, ABI_TASK_FORK, pid, start_ns, "child");

	event.task.parent_pid = parent;
	event.task.parent_start_ns = parent_start;
	live_feed(machine->live, &event);
}

static inline struct event mmap_event(struct machine *machine, uint32_t pid,
				      uint64_t start_ns, uint64_t addr, uint64_t length)
{
	struct event event = { .path = "" };

	event.mmap.head = head_of(machine, ABI_MMAP, pid, start_ns);
	event.mmap.addr = addr;
	event.mmap.length = length;
	event.mmap.dev_major = 8;
	return event;
}

/* Map @path, whose inode is @inode, from file offset @pgoff. Return its key. */
static inline uint64_t map_file(struct machine *machine, uint32_t pid, uint64_t start_ns,
				uint64_t addr, uint64_t length, uint64_t pgoff,
				const char *path, uint64_t inode)
{
	struct event event = mmap_event(machine, pid, start_ns, addr, length);

	event.mmap.pgoff = pgoff;
	event.mmap.inode = inode;
	event.path = path;
	live_feed(machine->live, &event);
	return live_key(&event);
}

/* The file of @key has one executable segment. */
static inline void module_is(struct machine *machine, uint64_t key, uint64_t module_id,
			     const char *path, struct abi_segment segment)
{
	struct event event = { .path = path };

	event.module.head = head_of(machine, ABI_MODULE, 0, 0);
	event.module.kind = ABI_MODULE_FILE;
	event.module.key = key;
	event.module.module_id = module_id;
	event.module.segment_count = module_id != 0;
	event.segments[0] = segment;
	live_feed(machine->live, &event);
}

static inline void kernel_is(struct machine *machine, uint64_t module_id, uint64_t base,
			     uint64_t length, uint64_t base_va, enum abi_module_kind kind)
{
	struct event event = { .path = "[kernel]" };

	event.module.head = head_of(machine, ABI_MODULE, 0, 0);
	event.module.kind = kind;
	event.module.module_id = module_id;
	event.module.base = base;
	event.module.length = length;
	event.module.base_va = base_va;
	live_feed(machine->live, &event);
}

static inline struct event sample_event(struct machine *machine, uint32_t pid,
					uint64_t start_ns, uint64_t ip)
{
	struct event event = { .path = "" };

	event.access.head = head_of(machine, ABI_ACCESS, pid, start_ns);
	event.access.ip = ip;
	event.access.period = 1000;
	event.access.source = ABI_SOURCE_CLOCK;
	return event;
}

static inline void sample(struct machine *machine, uint32_t pid, uint64_t start_ns,
			  uint64_t ip)
{
	struct event event = sample_event(machine, pid, start_ns, ip);

	live_feed(machine->live, &event);
}

/* Time passes. */
static inline void pass(struct machine *machine, uint64_t ns)
{
	machine->now_ns += ns;
	live_flush(machine->live, machine->now_ns);
}

/* Everything that was charged to (module, va), of all processes when @pid is 0. */
static inline uint64_t samples_at(const struct machine *machine, uint32_t pid,
				  uint64_t start_ns, uint64_t module_id, uint64_t va)
{
	uint64_t samples = 0;

	vec_each(&machine->facts, kept) {
		const struct fact_access *access = &kept->fact.access;

		if (kept->fact.kind == FACT_ACCESS && access->module_id == module_id &&
		    access->va == va &&
		    (!pid || access->process_id == process_id_of(BOOT, pid, start_ns)))
			samples += access->samples;
	}
	return samples;
}

static inline uint64_t lost(const struct machine *machine, uint32_t kind,
			    enum loss_reason reason)
{
	uint64_t count = 0;

	vec_each(&machine->facts, kept)
		if (kept->fact.kind == FACT_LOSS && kept->fact.loss.kind == kind &&
		    kept->fact.loss.reason == reason)
			count += kept->fact.loss.lost;
	return count;
}

/* The latest row of a process; NULL when there is none. */
static inline const struct kept *process_row(const struct machine *machine, uint32_t pid,
					     uint64_t start_ns)
{
	const struct kept *found = NULL;

	vec_each(&machine->facts, kept)
		if (kept->fact.kind == FACT_PROCESS && kept->fact.process.pid == pid &&
		    kept->fact.process.start_ns == start_ns)
			found = kept;
	return found;
}

#define PID    10
#define START  (50 * S)
#define LIB    0x7f0000000000ull
#define EXE    0x555555554000ull
#define KERNEL 0xffffffff9a000000ull

/* One executable segment as linkers make them: file 0x1000 at va 0x1000. */
__attribute__((unused)) static const struct abi_segment plain = { 0x1000, 0x1000,
								  0x8000 };

/* A process with one identified program at EXE. */
static inline uint64_t a_program(struct machine *machine)
{
	task(machine, ABI_TASK_SEEN, PID, START, "prog");
	uint64_t key = map_file(machine, PID, START, EXE, 0x8000, 0x1000, "/bin/prog", 5);

	module_is(machine, key, 100, "/bin/prog", plain);
	return key;
}

#endif
