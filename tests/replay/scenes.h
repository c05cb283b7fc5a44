/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_REPLAY_SCENES_H
#define TESTS_REPLAY_SCENES_H

/* Streams made up record by record: what a machine does that a short recording does not
 * show. Each call of a step is one record, 7 ms after the one before. */

#include <string.h>

#include "core/mem.h"
#include "event/event.h"
#include "event/stream.h"
#include "live/live.h"
#include "model/fact.h"

#define SCENE_STEP_NS 7000000ull
#define SCENE_LIB     0x7f0000000000ull
#define SCENE_EXE     0x555555554000ull
#define SCENE_KERNEL  0xffffffff9a000000ull

struct scene {
	struct stream_writer *writer;
	uint64_t now_ns;
};

struct scene_task {
	uint32_t pid;
	uint64_t start_ns;
};

static inline void scene_put(struct scene *scene, struct event *event)
{
	CLEANUP(str_fini) struct str bytes = { 0 };

	event_encode(event, &bytes);
	struct err *err = stream_write(scene->writer, bytes.data, bytes.length);

	if (err)
		abort();
}

static inline struct abi_head scene_head(struct scene *scene, enum abi_kind kind,
					 struct scene_task task)
{
	scene->now_ns += SCENE_STEP_NS;
	return (struct abi_head){ .kind = kind,
				  .time_ns = scene->now_ns,
				  .pid = task.pid,
				  .tid = task.pid,
				  .start_ns = task.start_ns };
}

static inline void scene_life(struct scene *scene, enum abi_task_op op,
			      struct scene_task task, struct scene_task parent,
			      const char *comm)
{
	struct event event = { .path = "" };

	event.task.head = scene_head(scene, ABI_TASK, task);
	event.task.op = op;
	event.task.parent_pid = parent.pid;
	event.task.parent_start_ns = parent.start_ns;
	event.task.cgroup_id = 4242;
	event.task.uid = 1000;
	memcpy(event.task.comm, comm, strlen(comm));
	scene_put(scene, &event);
}

static inline uint64_t scene_map(struct scene *scene, struct scene_task task,
				 uint64_t addr, const char *path, uint64_t inode)
{
	struct event event = { .path = path };

	event.mmap.head = scene_head(scene, ABI_MMAP, task);
	event.mmap.addr = addr;
	event.mmap.length = 0x8000;
	event.mmap.pgoff = 0x1000;
	event.mmap.inode = inode;
	event.mmap.dev_major = 8;
	event.mmap.dev_minor = 1;
	event.mmap.path_bytes = (uint16_t)(strlen(path) + 1);
	scene_put(scene, &event);
	return live_key(&event);
}

static inline void scene_file(struct scene *scene, uint64_t key, uint64_t module_id,
			      const char *path)
{
	struct event event = { .path = path };

	event.module.head = scene_head(scene, ABI_MODULE, (struct scene_task){ 0 });
	event.module.kind = ABI_MODULE_FILE;
	event.module.key = key;
	event.module.module_id = module_id;
	event.module.path_bytes = (uint32_t)strlen(path) + 1;
	event.module.segment_count = module_id != 0;
	event.segments[0] = (struct abi_segment){ 0x1000, 0x2000, 0x7000 };
	scene_put(scene, &event);
}

static inline void scene_kernel(struct scene *scene)
{
	struct event event = { .path = "[kernel]" };

	event.module.head = scene_head(scene, ABI_MODULE, (struct scene_task){ 0 });
	event.module.kind = ABI_MODULE_KERNEL;
	event.module.module_id = 0xbeef;
	event.module.base = SCENE_KERNEL;
	event.module.base_va = 0xffffffff81000000ull;
	event.module.length = 0x100000;
	event.module.path_bytes = sizeof("[kernel]");
	scene_put(scene, &event);
}

static inline void scene_sample(struct scene *scene, struct scene_task task, uint64_t ip)
{
	struct event event = { .path = "" };

	event.access.head = scene_head(scene, ABI_ACCESS, task);
	event.access.ip = ip;
	event.access.period = 1003009;
	event.access.source = ABI_SOURCE_CLOCK;
	scene_put(scene, &event);
}

static inline void scene_tick(struct scene *scene, struct scene_task task, uint64_t ip)
{
	struct event event = { .path = "" };

	event.tick.head = scene_head(scene, ABI_TICK, task);
	event.tick.period_ns = 10000000;
	event.tick.flags = ABI_TICK_USER | ABI_TICK_KERNEL;
	event.tick.regs[16] = ip;
	event.tick.kernel_depth = 2;
	event.tick.kernel_ips[0] = SCENE_KERNEL + 0x111;
	event.tick.kernel_ips[1] = SCENE_KERNEL + 0x999999; /* outside */
	scene_put(scene, &event);
}

static inline void scene_loss(struct scene *scene, enum loss_reason reason)
{
	struct event event = { .path = "" };

	event.loss.head = scene_head(scene, ABI_LOSS, (struct scene_task){ 0 });
	event.loss.kind = ABI_ACCESS;
	event.loss.reason = reason;
	event.loss.lost = 5;
	event.loss.seen = 100;
	scene_put(scene, &event);
}

/* Attach, dlopen, fork without exec, exec, exit, and the pid comes back. */
static inline void scene_lives(struct scene *scene)
{
	struct scene_task init = { 1, 10000000 }, shell = { 200, 5000000000 };
	struct scene_task child = { 201, 6000000000 }, next = { 201, 9000000000 };
	uint64_t prog, lib, other;

	scene_life(scene, ABI_TASK_SEEN, shell, init, "shell");
	prog = scene_map(scene, shell, SCENE_EXE, "/bin/shell", 11);
	scene_sample(scene, shell, SCENE_EXE + 0x10);
	scene_file(scene, prog, 0x5e11, "/bin/shell");
	scene_sample(scene, shell, SCENE_EXE + 0x10);
	lib = scene_map(scene, shell, SCENE_LIB, "/lib/plugin.so", 12);
	scene_file(scene, lib, 0x11b, "/lib/plugin.so");
	scene_sample(scene, shell, SCENE_LIB + 0x20);
	scene_life(scene, ABI_TASK_FORK, child, shell, "shell");
	scene_sample(scene, child, SCENE_LIB + 0x20);
	scene_sample(scene, child, SCENE_EXE + 0x30);
	scene->now_ns += 400000000;
	/* perf names the new image before the tracepoint tells of the exec. */
	other = scene_map(scene, (struct scene_task){ 201, 0 }, SCENE_EXE + 0x40000,
			  "/usr/bin/other", 13);
	scene_life(scene, ABI_TASK_EXEC, child, shell, "other");
	scene_file(scene, other, 0x07e5, "/usr/bin/other");
	scene_sample(scene, child, SCENE_EXE + 0x40040);
	scene_sample(scene, child, SCENE_EXE + 0x30); /* the old image: gone */
	scene_tick(scene, child, SCENE_EXE + 0x40048);
	scene_life(scene, ABI_TASK_EXIT, child, shell, "other");
	scene->now_ns += 1500000000;
	scene_life(scene, ABI_TASK_FORK, next, shell, "shell");
	scene_sample(scene, next, SCENE_EXE + 0x50);
	scene_sample(scene, child, SCENE_EXE + 0x40044); /* late */
	scene_tick(scene, shell, SCENE_EXE + 0x60);
	scene_tick(scene, shell, SCENE_EXE + 0x60);
}

/* Lost forks, generated code, a replaced file, files late and never. */
static inline void scene_troubles(struct scene *scene)
{
	struct scene_task init = { 1, 10000000 }, jit = { 300, 5000000000 };
	struct scene_task lost = { 301, 6000000000 }, two = { 302, 7000000000 };
	uint64_t was, is, late;

	scene_kernel(scene);
	scene_sample(scene, lost, SCENE_EXE + 8); /* nobody announced it */
	scene_life(scene, ABI_TASK_SEEN, lost, init, "lost");
	was = scene_map(scene, lost, SCENE_EXE, "/srv/app (deleted)", 20);
	scene_life(scene, ABI_TASK_SEEN, two, init, "two");
	is = scene_map(scene, two, SCENE_EXE, "/srv/app", 21);
	scene_file(scene, was, 0xaaa, "/srv/app");
	scene_file(scene, is, 0xbbb, "/srv/app");
	scene_sample(scene, lost, SCENE_EXE + 0x10);
	scene_sample(scene, two, SCENE_EXE + 0x10);
	scene_life(scene, ABI_TASK_SEEN, jit, init, "jit");
	scene_map(scene, jit, SCENE_LIB, "//anon", 0);
	scene_sample(scene, jit, SCENE_LIB + 4);
	scene_sample(scene, jit, SCENE_KERNEL + 0x123);
	scene_sample(scene, jit, SCENE_KERNEL + 0x100001);
	scene_sample(scene, jit, 0x1234); /* a wild jump */
	late = scene_map(scene, jit, SCENE_LIB + 0x100000, "/lib/late.so", 22);
	scene_map(scene, jit, SCENE_LIB + 0x200000, "/lib/never.so", 23);
	scene_sample(scene, jit, SCENE_LIB + 0x100010);
	scene_sample(scene, jit, SCENE_LIB + 0x200010);
	scene_loss(scene, LOSS_RING);
	scene->now_ns += 3000000000;
	scene_file(scene, late, 0x1a7e, "/lib/late.so");
	scene_sample(scene, (struct scene_task){ 999, 1000000000 }, SCENE_EXE);
	scene->now_ns += 6000000000;
	scene_life(scene, ABI_TASK_EXIT, jit, init, "jit");
	scene_tick(scene, two, SCENE_EXE + 0x70);
}

#endif
