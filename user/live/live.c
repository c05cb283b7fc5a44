// SPDX-License-Identifier: Apache-2.0
/*
 * The door. Task and mapping records keep the model of processes and address spaces
 * current; access and tick records are charged against it (sample.c, tick.c). Any
 * record may be missing or late, so nothing here is an error: what cannot be charged
 * is counted.
 *
 * An exec's own mappings are reported before the exec itself (the tracepoint fires when
 * the new image is complete), so an exec forgets only what is clearly older. What is
 * kept too long does no harm: the new image's mappings cover it or lie elsewhere.
 */
#include "live/live.h"

#include <string.h>

#include "core/map.h"
#include "live/live_impl.h"

#define EXEC_WINDOW_NS 100000000ull /* a loaded machine needs that long for an execve */
#define SWEEP_NS       10000000000ull
#define RETRY_NS       250000000ull /* a file that could not be opened; mapped again */
#define IDLE_NS	       60000000000ull
#define MAX_FACTS_PUT  (4 * LIVE_MAX_MODULES)

uint64_t live_process_id(const struct live *live, const struct process *process)
{
	return process_id_of(live->config.boot_id, process->pid, process->start_ns);
}

struct live *live_new(const struct live_config *config, struct sink *sink,
		      const struct live_ops *ops, void *ctx)
{
	struct live *live = mem_alloc(sizeof(*live));

	live->config = *config;
	live->sink = sink;
	live->ops = *ops;
	live->ctx = ctx;
	live->tasks = tasks_new(LIVE_MAX_PROCESSES);
	live->modules = module_table_new(LIVE_MAX_MODULES);
	live->kernel = kernel_new();
	live->aggregate = aggregate_new(&live->config, sink, LIVE_MAX_AGGREGATES);
	live->losses = losses_new(&live->config, sink);
	live->methods = methods_new(sink, config->hash_names, config->names);
	live->spans = spans_new(config->spans_wanted);
	live->modules_put = map_new(sizeof(uint64_t), 1);
	return live;
}

void live_free(struct live *live)
{
	if (!live)
		return;
	tick_free_waiting(live);
	vec_fini(&live->unmapped);
	tasks_free(live->tasks);
	module_table_free(live->modules);
	kernel_free(live->kernel);
	aggregate_free(live->aggregate);
	losses_free(live->losses);
	methods_free(live->methods);
	spans_free(live->spans);
	map_free(live->modules_put);
	free(live);
}

/* Processes. */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

/* The file of the program: named like it, else the lowest mapping of a file. */
static struct module *find_exe(struct live *live, struct process *process)
{
	size_t count, comm = strlen(process->comm);
	const struct range *ranges = procmap_ranges(process->map, &count);
	struct module *lowest = NULL;

	if (process->exe_key)
		return module_table_find(live->modules, process->exe_key);
	for (size_t i = 0; i < count; i++) {
		struct module *module = module_table_find(live->modules, ranges[i].key);

		if (!module || module->path[0] != '/')
			continue;
		if (comm && !strncmp(base_name(module->path), process->comm, comm)) {
			lowest = module;
			break;
		}
		if (!lowest)
			lowest = module;
	}
	if (lowest)
		process->exe_key = lowest->key;
	return lowest;
}

static void put_process(struct live *live, struct process *process)
{
	struct module *exe = find_exe(live, process);
	const char *service = "";

	if (!process->start_ns && process->pid)
		return;
	if (live->ops.service)
		service = live->ops.service(live->ctx, process->pid, process->cgroup_id);
	struct fact fact = {
		.kind = FACT_PROCESS,
		.process = { .run_id = live->config.run_id,
			     .process_id = live_process_id(live, process),
			     .parent_id = process->parent_id,
			     .pid = process->pid,
			     .uid = process->uid,
			     .start_ns = process->start_ns,
			     .end_ns = process->exit_ns,
			     .exe_module_id = exe ? exe->module_id : 0,
			     .cgroup_id = process->cgroup_id,
			     .comm = process->comm,
			     .exe = exe ? exe->path : "",
			     .service = service ? service : "" },
	};

	process->charged = true;
	process->due = false;
	process->put_exit_ns = process->exit_ns;
	sink_put(live->sink, &fact);
}

struct process *live_process(struct live *live, const struct abi_head *head)
{
	struct process *process =
		tasks_put(live->tasks, head->pid, head->start_ns, head->time_ns);

	if (!process)
		return NULL;
	if (head->time_ns > process->last_ns)
		process->last_ns = head->time_ns;
	if (head->time_ns < process->first_ns)
		process->first_ns = head->time_ns;
	return process;
}

void live_charge(struct live *live, struct process *process)
{
	if (process->charged)
		return;
	if (!process->known && process->pid)
		live_want_process(live, process, process->last_ns);
	put_process(live, process);
}

void live_want_process(struct live *live, struct process *process, uint64_t now_ns)
{
	if (process->exit_ns || !live->ops.want_process)
		return;
	if (task_may_ask(process, now_ns))
		live->ops.want_process(live->ctx, process->pid, process->start_ns);
}

static void describe_process(struct process *process, const struct abi_task *task,
			     uint64_t boot_id)
{
	if (task->cgroup_id || task->op != ABI_TASK_EXEC) {
		process->cgroup_id = task->cgroup_id;
		process->uid = task->uid;
	}
	memcpy(process->comm, task->comm, ABI_COMM_BYTES);
	if (!task->parent_pid)
		return;
	process->parent_pid = task->parent_pid;
	process->parent_start_ns = task->parent_start_ns;
	process->parent_id =
		process_id_of(boot_id, task->parent_pid, task->parent_start_ns);
}

static void inherit(struct live *live, struct process *child, const struct abi_task *task)
{
	struct process *parent = tasks_find(live->tasks, task->parent_pid,
					    task->parent_start_ns, task->head.time_ns);
	size_t count;

	if (!parent || parent == child || child->exec_ns >= task->head.time_ns)
		return;
	/* A parent that we know only in part leaves its child in the same state. */
	child->known |= parent->known;
	child->exe_key = child->exe_key ? child->exe_key : parent->exe_key;
	procmap_ranges(child->map, &count);
	if (!count) {
		procmap_unref(child->map);
		child->map = procmap_ref(parent->map);
	} else if (!procmap_under(&child->map, parent->map, LIVE_MAX_MAPPINGS)) {
		lose(live, task->head.time_ns, ABI_MMAP, LOSS_LIMIT);
	}
}

static void on_fork(struct live *live, struct process *process,
		    const struct abi_task *task)
{
	if (task->head.tid != task->head.pid)
		return;
	bool executed = process->exec_ns >= task->head.time_ns;

	inherit(live, process, task);
	if (!executed)
		describe_process(process, task, live->config.boot_id);
}

static void on_exec(struct live *live, struct process *process,
		    const struct abi_task *task)
{
	uint64_t time_ns = task->head.time_ns;

	if (time_ns < process->exec_ns)
		return;
	procmap_forget(&process->map,
		       time_ns > EXEC_WINDOW_NS ? time_ns - EXEC_WINDOW_NS : 0);
	describe_process(process, task, live->config.boot_id);
	process->exec_ns = time_ns;
	process->known = true;
	process->files_asked = false;
	process->asked = 0;
	process->exe_key = 0;
	process->due = process->charged;
	/* A thread that executes takes over from the leader, which exits first. */
	process->leader_gone = false;
	process->exit_ns = 0;
}

/* The leader's exit ends the process, unless other threads are seen to go on; then the
 * last of theirs does. */
static void on_gone(struct live *live, struct process *process,
		    const struct abi_task *task)
{
	bool leader = task->head.tid == task->head.pid;

	if (task->head.time_ns < process->exec_ns || (!leader && !process->leader_gone))
		return;
	process->leader_gone = true;
	if (task->head.time_ns > process->exit_ns)
		process->exit_ns = task->head.time_ns;
	if (leader && (process->charged || process->due))
		put_process(live, process);
}

static void on_seen(struct live *live, struct process *process,
		    const struct abi_task *task)
{
	describe_process(process, task, live->config.boot_id);
	process->known = true;
	process->files_asked = false;
	process->exit_ns = 0;
	process->due = true; /* with its mappings, which follow */
}

static void on_task(struct live *live, const struct event *event)
{
	static void (*const handlers[])(struct live *, struct process *,
					const struct abi_task *) = {
		[ABI_TASK_FORK] = on_fork,
		[ABI_TASK_EXEC] = on_exec,
		[ABI_TASK_EXIT] = on_gone,
		[ABI_TASK_SEEN] = on_seen,
	};
	const struct abi_task *task = &event->task;
	struct process *process;

	if (task->op < ABI_TASK_FORK || task->op > ABI_TASK_SEEN) {
		lose(live, task->head.time_ns, ABI_TASK, LOSS_FORMAT);
		return;
	}
	/* Nothing is known of it and nothing will be needed. */
	if (task->op == ABI_TASK_EXIT &&
	    !tasks_find(live->tasks, task->head.pid, task->head.start_ns,
			task->head.time_ns))
		return;
	process = live_process(live, &task->head);
	if (!process) {
		lose(live, task->head.time_ns, ABI_TASK, LOSS_LIMIT);
		return;
	}
	handlers[task->op](live, process, task);
}

/* Files. */

static struct live_file file_of(const struct process *process, const struct range *range,
				const struct module *module)
{
	return (struct live_file){
		.key = module->key,
		.pid = process->pid,
		.start_ns = process->start_ns,
		.parent_pid = process->parent_pid,
		.parent_start_ns = process->parent_start_ns,
		.addr = range->start,
		.length = range->end - range->start,
		.inode = module->inode,
		.dev_major = module->dev_major,
		.dev_minor = module->dev_minor,
		.build_id = module->build_id,
		.path = module->path,
		.deleted = module->deleted,
	};
}

void live_want_module(struct live *live, struct process *process,
		      const struct range *range, struct module *module)
{
	struct live_file file = file_of(process, range, module);

	module->state = MODULE_ASKED;
	module->asked_ns = process->last_ns;
	if (live->ops.want_module)
		live->ops.want_module(live->ctx, &file);
}

/* The process we asked through may have gone before its file could be opened. */
static bool may_ask_again(const struct module *module, uint64_t now_ns)
{
	if (module->state == MODULE_IMPOSSIBLE)
		return now_ns > module->asked_ns + RETRY_NS;
	return module->state == MODULE_ASKED &&
	       now_ns > module->asked_ns + LIVE_IDENTIFY_NS;
}

static void want_eagerly(struct live *live, struct process *process,
			 const struct range *range, struct module *module)
{
	struct live_file file = file_of(process, range, module);

	if (module->state == MODULE_NEW)
		live_want_module(live, process, range, module);
	else if (module->state == MODULE_KNOWN && live->ops.mapped)
		live->ops.mapped(live->ctx, &file, module->module_id);
}

static void on_mmap(struct live *live, const struct event *event)
{
	const struct abi_mmap *mmap = &event->mmap;
	uint64_t time_ns = mmap->head.time_ns;
	struct range range = { mmap->addr, mmap->addr + mmap->length, mmap->pgoff, 0,
			       time_ns };
	struct process *process = live_process(live, &mmap->head);

	if (!process || range.end <= range.start) {
		lose(live, time_ns, ABI_MMAP, process ? LOSS_FORMAT : LOSS_LIMIT);
		return;
	}
	/* Late, and of the image before the exec. */
	if (time_ns + EXEC_WINDOW_NS < process->exec_ns)
		return;
	if (!path_is_anonymous(event->path)) {
		range.key = live_key(event);
		struct module *module =
			module_table_put(live->modules, range.key, event->path);

		if (module && module->state <= MODULE_ASKED)
			module_describe(module, event);
		if (module && may_ask_again(module, time_ns))
			module->state = MODULE_NEW;
		if (module && live->ops.eager && live->ops.eager(live->ctx, event->path))
			want_eagerly(live, process, &range, module);
	}
	if (!procmap_add(&process->map, &range, LIVE_MAX_MAPPINGS))
		lose(live, time_ns, ABI_MMAP, LOSS_LIMIT);
	process->files_asked = false;
}

/* Once per module and run; the owner puts it again when it knows the debug file. */
static void put_module(struct live *live, const struct event *event)
{
	const struct abi_module *module = &event->module;
	struct fact fact = {
		.kind = FACT_MODULE,
		.module = { .module_id = module->module_id,
			    .kind = (enum module_kind)module->kind,
			    .path = event->path,
			    .debug = "" },
	};
	bool is_new;

	if (map_count(live->modules_put) >= MAX_FACTS_PUT)
		map_clear(live->modules_put);
	map_put(live->modules_put, &module->module_id, &is_new);
	if (!is_new)
		return;
	fact.module.build_id.size = (uint8_t)module->build_id_bytes;
	memcpy(fact.module.build_id.bytes, module->build_id, module->build_id_bytes);
	sink_put(live->sink, &fact);
}

struct exe_walk {
	struct live *live;
	uint64_t key;
};

static void put_if_exe(void *ctx, struct process *process)
{
	struct exe_walk *walk = ctx;

	if (process->charged && process->exe_key == walk->key)
		put_process(walk->live, process);
}

static void on_module_file(struct live *live, const struct event *event)
{
	const struct abi_module *found = &event->module;
	struct module *module = module_table_put(live->modules, found->key, event->path);

	if (!module) {
		lose(live, found->head.time_ns, ABI_MODULE, LOSS_LIMIT);
		return;
	}
	module_identify(module, event);
	if (module->state == MODULE_KNOWN) {
		put_module(live, event);
		tasks_each(live->tasks, put_if_exe,
			   &(struct exe_walk){ live, module->key });
	}
	sample_module_done(live, module);
}

static void on_module(struct live *live, const struct event *event)
{
	const struct abi_module *module = &event->module;

	if (module->kind < ABI_MODULE_FILE || module->kind > ABI_MODULE_KMOD ||
	    module->build_id_bytes > ABI_BUILD_ID_MAX ||
	    module->segment_count > ABI_MAX_SEGMENTS) {
		lose(live, module->head.time_ns, ABI_MODULE, LOSS_FORMAT);
	} else if (module->kind == ABI_MODULE_FILE || module->kind == ABI_MODULE_VDSO) {
		on_module_file(live, event);
	} else if (module->module_id && kernel_add(live->kernel, event)) {
		put_module(live, event);
	} else {
		lose(live, module->head.time_ns, ABI_MODULE, LOSS_LIMIT);
	}
}

static void on_loss(struct live *live, const struct event *event)
{
	losses_outside(live->losses, event->head.time_ns, &event->loss);
}

/* A user-mode sample of another thread: the leader's exit was not the end. */
static void revive(struct live *live, const struct event *event, bool user)
{
	const struct abi_head *head = &event->head;
	struct process *process;

	if (!user || head->tid == head->pid)
		return;
	process = tasks_find(live->tasks, head->pid, head->start_ns, head->time_ns);
	if (!process || !process->leader_gone || head->time_ns <= process->exit_ns)
		return;
	process->exit_ns = 0;
}

static void on_access(struct live *live, const struct event *event)
{
	revive(live, event, !(event->access.flags & ABI_ACCESS_KERNEL));
	sample_feed(live, event);
}

/* Its method travels on with it, to who unwinds: from here on as it is stored. */
static void on_tick(struct live *live, const struct event *event)
{
	revive(live, event, !(event->tick.flags & ABI_TICK_KERNEL));
	if (!event->head.method_id) {
		tick_feed(live, event);
		return;
	}
	struct event stored = *event;

	stored.head.method_id = methods_kind(live->methods, event->head.method_id);
	tick_feed(live, &stored);
}

/* Only observed. */
static void on_sleep(struct live *live, const struct event *event)
{
	(void)live;
	(void)event;
}

void live_feed(struct live *live, const struct event *event)
{
	static void (*const handlers[ABI_KINDS])(struct live *, const struct event *) = {
		[ABI_TASK] = on_task,	      [ABI_MMAP] = on_mmap,
		[ABI_MODULE] = on_module,     [ABI_ACCESS] = on_access,
		[ABI_TICK] = on_tick,	      [ABI_SPAN] = span_feed,
		[ABI_LOSS] = on_loss,	      [ABI_RESOURCE] = resource_feed,
		[ABI_MESSAGE] = message_feed, [ABI_SLEEP] = on_sleep,
	};
	uint32_t kind = event->head.kind;
	bool is_observed = kind == ABI_TASK || kind == ABI_SPAN || kind == ABI_RESOURCE ||
			   kind == ABI_SLEEP;

	live->stats.events++;
	if (kind >= ABI_KINDS || !handlers[kind])
		return;
	losses_seen(live->losses, event->head.time_ns, kind);
	handlers[kind](live, event);
	if (is_observed && live->ops.observe)
		live->ops.observe(live->ctx, event);
}

/* Flush. */

struct sweep {
	struct live *live;
	size_t mappings;
};

static void sweep_process(void *ctx, struct process *process)
{
	struct sweep *sweep = ctx;
	size_t count;
	const struct range *ranges = procmap_ranges(process->map, &count);

	if (!procmap_visit(process->map, sweep->live->epoch))
		return;
	sweep->mappings += count;
	for (size_t i = 0; i < count; i++) {
		struct module *module =
			module_table_find(sweep->live->modules, ranges[i].key);

		if (module)
			module->epoch = sweep->live->epoch;
	}
}

/* Forget files that nobody maps, and count the mappings while at it. */
static void sweep_modules(struct live *live, uint64_t now_ns)
{
	struct sweep sweep = { live, 0 };

	if (now_ns < live->swept_ns + SWEEP_NS &&
	    module_table_count(live->modules) < LIVE_MAX_MODULES)
		return;
	live->swept_ns = now_ns;
	live->epoch++;
	tasks_each(live->tasks, sweep_process, &sweep);
	module_table_sweep(live->modules, live->epoch);
	live->stats.mappings = sweep.mappings;
}

static void forget_process(void *ctx, struct process *process)
{
	struct live *live = ctx;

	/* Its last thread went after the leader, or only its pid's next owner told. */
	if (process->charged && process->exit_ns != process->put_exit_ns)
		put_process(live, process);
}

static void put_if_due(void *ctx, struct process *process)
{
	struct live *live = ctx;

	if (process->due ||
	    (process->charged && !process->exe_key && find_exe(live, process)))
		put_process(live, process);
}

static void reap(struct live *live, uint64_t now_ns)
{
	bool crowded = tasks_count(live->tasks) > LIVE_MAX_PROCESSES / 4 * 3;

	if (now_ns > LIVE_GRACE_NS)
		tasks_reap(live->tasks, now_ns - LIVE_GRACE_NS, forget_process, live);
	/* Exits were lost; one that lives after all is asked for again. */
	if (crowded && now_ns > IDLE_NS)
		tasks_reap_idle(live->tasks, now_ns - IDLE_NS, forget_process, live);
}

void live_flush(struct live *live, uint64_t now_ns)
{
	bool last = now_ns > INT64_MAX;
	/* The bucket of now as well: what is put of it now is added to by what comes. */
	uint64_t before_ns = last ? UINT64_MAX : bucket_of(&live->config, now_ns) + 1;

	sample_retry(live, now_ns);
	tick_retry(live, now_ns);
	tasks_each(live->tasks, put_if_due, live);
	reap(live, now_ns);
	if (!last)
		sweep_modules(live, now_ns);
	aggregate_flush(live->aggregate, before_ns);
	span_flush(live, now_ns, before_ns);
	losses_flush(live->losses, before_ns);
}

void live_loss(struct live *live, uint64_t time_ns, uint32_t kind,
	       enum loss_reason reason, uint64_t lost, uint64_t seen)
{
	struct abi_loss loss = {
		.kind = kind, .reason = reason, .lost = lost, .seen = seen
	};

	losses_outside(live->losses, time_ns, &loss);
}

void live_stats(const struct live *live, struct live_stats *ret_stats)
{
	*ret_stats = live->stats;
	ret_stats->processes = tasks_count(live->tasks);
	ret_stats->modules = module_table_count(live->modules);
	ret_stats->aggregates = aggregate_count(live->aggregate);
}
