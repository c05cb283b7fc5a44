// SPDX-License-Identifier: Apache-2.0
/*
 * Load the object, then open an event per source and CPU and attach a program to each.
 * Everything is owned by descriptors, so the kernel cleans up however this process ends.
 */
#include "probe/loader.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/random.h>
#include <unistd.h>

#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"
#include "assay.skel.h"
#include "probe/machine.h"
#include "probe/pmu.h"
#include "probe/sideband.h"

#define LOG_BYTES	   (1024 * 1024) /* of the verifier, when it refuses a program */
#define TRACE_UPROBE_MULTI 48		 /* BPF_TRACE_UPROBE_MULTI, linux 6.6 */

/* One event on one CPU; its link holds the event's descriptor. */
struct attached {
	struct bpf_link *link;
	int fd; /* owned by the link */
};

struct loader {
	struct assay *skeleton;
	struct bpf_program *access;
	bool is_multi;
	VEC(struct attached) attached;
	VEC(int) leaders; /* of event groups */
	uint32_t cpus[ABI_MAX_CPUS];
	size_t cpu_count;
	bool has_clock; /* the clock is a source of access samples */
	struct probe_fds fds;
	struct str sources;
};

void probe_fds_close(struct probe_fds *fds)
{
	for (size_t i = 0; i < fds->count; i++)
		close(fds->fd[i]);
	fds->count = 0;
}

void loader_close(struct loader *loader)
{
	if (!loader)
		return;
	vec_each(&loader->attached, item)
		bpf_link__destroy(item->link);
	vec_each(&loader->leaders, fd)
		close(*fd);
	for (size_t i = PROBE_FD_SIDEBAND; i < loader->fds.count; i++)
		close(loader->fds.fd[i]);
	vec_fini(&loader->attached);
	vec_fini(&loader->leaders);
	str_fini(&loader->sources);
	assay__destroy(loader->skeleton);
	free(loader);
}

const struct probe_fds *loader_fds(const struct loader *loader)
{
	return &loader->fds;
}

struct err *loader_walk(struct loader *loader, int *ret_fd)
{
	struct bpf_link *link = loader->skeleton->links.walk_task;

	if (!link)
		return err_new(ERR_UNSUPPORTED, "this kernel has no iterator over tasks");
	*ret_fd = bpf_iter_create(bpf_link__fd(link));
	return *ret_fd < 0 ? err_errno(errno, "begin a walk over the threads") : NULL;
}

const char *loader_sources(const struct loader *loader)
{
	return str_text(&loader->sources);
}

/* Settings. */

static struct err *check(struct probe_config *config)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);

	config->access_hz = config->access_hz ?: PROBE_ACCESS_HZ;
	config->tick_hz = config->tick_hz ?: PROBE_TICK_HZ;
	config->ring_bytes = config->ring_bytes ?: PROBE_RING_BYTES;
	config->stack_bytes = config->stack_bytes ?: PROBE_STACK_BYTES;
	if (config->access_hz > PROBE_MAX_HZ || config->tick_hz > PROBE_MAX_HZ)
		return err_new(ERR_LIMIT, "more than %d samples per second and CPU",
			       PROBE_MAX_HZ);
	if (config->ring_bytes < page || config->ring_bytes > PROBE_MAX_RING ||
	    config->ring_bytes & (config->ring_bytes - 1))
		return err_new(ERR_INVALID,
			       "ring of %zu bytes is no power of two from "
			       "%zu to %u",
			       config->ring_bytes, page, PROBE_MAX_RING);
	if (config->stack_bytes > ABI_STACK_COPY_MAX)
		return err_new(ERR_LIMIT, "stack copy of more than %d bytes",
			       ABI_STACK_COPY_MAX);
	if (config->self_count > PROBE_MAX_SELF)
		return err_new(ERR_LIMIT, "%zu processes of our own", config->self_count);
	return NULL;
}

/* The object. */

static int say_nothing(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

/* Puts what machine_require() finds missing before the bare errno. */
static struct err *explain(int errnum, const char *what)
{
	TRY(err_wrap(machine_require(), "%s", what));
	return err_errno(errnum, "%s", what);
}

/* The verifier's verdict is the line before "processed N insns". */
static struct err *refused(int errnum, char *log)
{
	char *end = strstr(log, "\nprocessed ");

	if (!end)
		return explain(errnum, "load the BPF programs");
	*end = 0;
	const char *line = strrchr(log, '\n');

	return err_new(ERR_UNSUPPORTED, "this kernel refuses a BPF program: %.200s",
		       line ? line + 1 : log);
}

static bool kernel_has(const char *function)
{
	struct btf *btf = btf__load_vmlinux_btf();
	bool has = btf && btf__find_by_name_kind(btf, function, BTF_KIND_FUNC) > 0;

	btf__free(btf);
	return has;
}

/* Without these tracepoints (before linux 6.3) nothing is joined across processes. */
static void choose_messages(struct assay *skeleton, bool wanted)
{
	bool has = wanted && kernel_has("__traceiter_sock_send_length");

	bpf_program__set_autoload(skeleton->progs.message_sent, has);
	bpf_program__set_autoload(skeleton->progs.message_received, has);
}

/* The program at uprobes exists twice, because the way to attach it is part of it. */
static void choose_probe(struct loader *loader, const struct probe_config *config)
{
	struct assay *skeleton = loader->skeleton;
	uint64_t seed;

	loader->is_multi =
		!config->no_multi && kernel_has("bpf_uprobe_multi_link_attach");
	bool wanted = !config->no_probes;

	bpf_program__set_autoload(skeleton->progs.probe_multi,
				  wanted && loader->is_multi);
	bpf_program__set_autoload(skeleton->progs.probe_perf,
				  wanted && !loader->is_multi);
	bpf_program__set_autoload(skeleton->progs.context_fork, wanted);
	bpf_program__set_autoload(skeleton->progs.context_exit, wanted);
	choose_messages(skeleton, wanted && !config->no_messages);
	bpf_program__set_autoload(skeleton->progs.walk_task,
				  !config->no_walk && kernel_has("bpf_iter_task"));
	if (loader->is_multi)
		bpf_program__set_expected_attach_type(
			skeleton->progs.probe_multi,
			(enum bpf_attach_type)TRACE_UPROBE_MULTI);
	skeleton->rodata->cpu_count = (__u32)libbpf_num_possible_cpus();
	bpf_map__set_max_entries(skeleton->maps.probe_counts,
				 ABI_MAX_SLOTS * skeleton->rodata->cpu_count);
	if (getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
		seed = (uint64_t)getpid() << 32;
	skeleton->rodata->id_seed = seed;
}

struct loader_probe loader_probe(const struct loader *loader)
{
	const struct assay *skeleton = loader->skeleton;

	return (struct loader_probe){
		.fd = bpf_program__fd(loader->is_multi ? skeleton->progs.probe_multi
						       : skeleton->progs.probe_perf),
		.is_multi = loader->is_multi,
	};
}

static struct err *load(struct loader *loader, const struct probe_config *config)
{
	libbpf_set_print(say_nothing);
	CLEANUP(free) char *log = mem_alloc(LOG_BYTES);
	LIBBPF_OPTS(bpf_object_open_opts, opts, .kernel_log_buf = log,
		    .kernel_log_size = LOG_BYTES);
	struct assay *skeleton = loader->skeleton = assay__open_opts(&opts);

	if (!skeleton)
		return explain(errno, "open the BPF object");
	bool full = kernel_has("bpf_cast_to_kern_ctx");

	loader->access =
		full ? skeleton->progs.access_full : skeleton->progs.access_plain;
	bpf_program__set_autoload(skeleton->progs.access_full, full);
	bpf_program__set_autoload(skeleton->progs.access_plain, !full);
	bpf_map__set_max_entries(skeleton->maps.ring, (__u32)config->ring_bytes);
	skeleton->rodata->stack_bytes = config->stack_bytes;
	choose_probe(loader, config);
	int status = assay__load(skeleton);

	if (status)
		return refused(-status, log);
	status = assay__attach(skeleton);
	if (status)
		return explain(-status, "attach to task events");
	return NULL;
}

static struct err *add_self(struct loader *loader, const struct probe_config *config)
{
	uint8_t one = 1;

	for (size_t i = 0; i < config->self_count; i++)
		if (bpf_map_update_elem(loader->fds.fd[PROBE_FD_SELF_PIDS],
					&config->self_pids[i], &one, BPF_ANY))
			return err_errno(errno, "name the agent's own processes");
	return NULL;
}

static void list_maps(struct loader *loader)
{
	const struct assay *skeleton = loader->skeleton;
	int *fd = loader->fds.fd;

	fd[PROBE_FD_RING] = bpf_map__fd(skeleton->maps.ring);
	fd[PROBE_FD_COUNTS] = bpf_map__fd(skeleton->maps.counts);
	fd[PROBE_FD_FILTER] = bpf_map__fd(skeleton->maps.filter);
	fd[PROBE_FD_TARGET_PIDS] = bpf_map__fd(skeleton->maps.target_pids);
	fd[PROBE_FD_TARGET_CGROUPS] = bpf_map__fd(skeleton->maps.target_cgroups);
	fd[PROBE_FD_SELF_PIDS] = bpf_map__fd(skeleton->maps.self_pids);
	fd[PROBE_FD_FP_OK] = bpf_map__fd(skeleton->maps.fp_ok);
	fd[PROBE_FD_PROBES] = bpf_map__fd(skeleton->maps.probes);
	fd[PROBE_FD_PROBE_COUNTS] = bpf_map__fd(skeleton->maps.probe_counts);
	fd[PROBE_FD_REQUESTS] = bpf_map__fd(skeleton->maps.requests);
	fd[PROBE_FD_KEYS] = bpf_map__fd(skeleton->maps.keys);
	fd[PROBE_FD_SUMS_EVEN] = bpf_map__fd(skeleton->maps.sums_even);
	fd[PROBE_FD_SUMS_ODD] = bpf_map__fd(skeleton->maps.sums_odd);
	fd[PROBE_FD_SUM_SIDE] = bpf_map__fd(skeleton->maps.sum_side);
	loader->fds.count = PROBE_FD_SIDEBAND;
}

/* Events. */

static struct err *attach(struct loader *loader, struct bpf_program *program, int fd,
			  uint64_t cookie)
{
	LIBBPF_OPTS(bpf_perf_event_opts, opts, .bpf_cookie = cookie);
	struct bpf_link *link = bpf_program__attach_perf_event_opts(program, fd, &opts);

	if (!link) {
		int errnum = errno;

		close(fd);
		return err_errno(errnum, "attach a program to a perf event");
	}
	vec_push(&loader->attached, ((struct attached){ link, fd }));
	return NULL;
}

static bool is_online(const struct loader *loader, uint32_t cpu)
{
	for (size_t i = 0; i < loader->cpu_count; i++)
		if (loader->cpus[i] == cpu)
			return true;
	return false;
}

static struct err *open_source(struct loader *loader, const struct pmu_source *source,
			       uint32_t cpu)
{
	int leader = -1;

	if (source->has_leader) {
		leader = pmu_open(&source->leader, -1, (int)cpu, -1);
		if (leader >= 0)
			vec_push(&loader->leaders, leader);
	}
	int fd = pmu_open(&source->attr, -1, (int)cpu, leader);

	if (fd == -ENODEV) /* the CPU went offline since we asked */
		return NULL;
	if (fd < 0)
		return err_errno(-fd, "open %s on CPU %u", source->name, cpu);
	return attach(loader, loader->access, fd, source->source);
}

static struct err *start_source(struct loader *loader, const struct pmu_source *source)
{
	uint32_t cpus[ABI_MAX_CPUS];
	size_t count = pmu_cpus(source->cpus, cpus, ABI_MAX_CPUS);

	if (!source->cpus[0]) {
		count = loader->cpu_count;
		memcpy(cpus, loader->cpus, count * sizeof(*cpus));
	}
	for (size_t i = 0; i < count; i++)
		if (is_online(loader, cpus[i]))
			TRY(open_source(loader, source, cpus[i]));
	return NULL;
}

static void say_source(struct loader *loader, const char *name, uint32_t hz)
{
	if (loader->sources.length)
		str_add(&loader->sources, ", ");
	str_add(&loader->sources, name);
	if (hz)
		str_printf(&loader->sources, " %u Hz", hz);
}

static struct err *start_access(struct loader *loader, const struct probe_config *config)
{
	CLEANUP(free) struct pmu_facts *facts = mem_alloc(sizeof(*facts));
	CLEANUP(free) struct pmu_sources *sources = mem_alloc(sizeof(*sources));

	pmu_gather(facts);
	pmu_candidates(facts, config->access_hz, sources);
	pmu_try(sources);
	TRY(pmu_choose(sources, config->sources));
	for (size_t i = 0; i < sources->count; i++) {
		const struct pmu_source *source = &sources->list[i];

		if (!source->is_used)
			continue;
		TRY(start_source(loader, source));
		loader->has_clock |= source->source == ABI_SOURCE_CLOCK;
		say_source(loader, source->name,
			   source->source == ABI_SOURCE_PAGE_FAULT ? 0
								   : config->access_hz);
	}
	if (!loader->attached.count)
		return explain(EPERM, "no source of access samples");
	return NULL;
}

/* Return: whether the clock of the access samples serves the ticks as well. */
static bool share_clock(struct loader *loader, const struct probe_config *config)
{
	struct assay *skeleton = loader->skeleton;
	uint32_t zero = 0,
		 every = (config->access_hz + config->tick_hz / 2) / config->tick_hz;
	int tick_fd = bpf_program__fd(skeleton->progs.tick);
	int cpus = libbpf_num_possible_cpus();

	if (!loader->has_clock || !every || cpus <= 0)
		return false;
	CLEANUP(free) uint64_t *values = mem_array((size_t)cpus, sizeof(*values));

	for (int i = 0; i < cpus; i++)
		memcpy(&values[i], &every, sizeof(every)); /* struct clock_share */
	if (bpf_map_update_elem(bpf_map__fd(skeleton->maps.tails), &zero, &tick_fd,
				BPF_ANY) ||
	    bpf_map_update_elem(bpf_map__fd(skeleton->maps.clock_share), &zero, values,
				BPF_ANY))
		return false;
	say_source(loader, "tick", config->access_hz / every);
	return true;
}

static struct err *start_ticks(struct loader *loader, uint32_t hz)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_CPU_CLOCK,
		.sample_period = 1000000000ull / hz,
		.exclude_idle = 1,
	};

	for (size_t i = 0; i < loader->cpu_count; i++) {
		int fd = pmu_open(&attr, -1, (int)loader->cpus[i], -1);

		if (fd == -ENODEV)
			continue;
		if (fd < 0)
			return explain(-fd, "open the CPU clock");
		TRY(attach(loader, loader->skeleton->progs.tick, fd, 0));
	}
	say_source(loader, "tick", hz);
	return NULL;
}

static struct err *start_sideband(struct loader *loader)
{
	struct perf_event_attr attr;

	sideband_attr(&attr);
	for (size_t i = 0; i < loader->cpu_count; i++) {
		int fd = pmu_open(&attr, -1, (int)loader->cpus[i], -1);

		if (fd == -ENODEV)
			continue;
		if (fd < 0)
			return explain(-fd, "open perf's side-band");
		loader->fds.fd[loader->fds.count++] = fd;
	}
	return NULL;
}

struct err *loader_open(const struct probe_config *config, struct loader **ret_loader)
{
	struct probe_config settings = *config;

	TRY(check(&settings));
	CLEANUP(loader_close) struct loader *loader = mem_alloc(sizeof(*loader));

	TRY(load(loader, &settings));
	list_maps(loader);
	TRY(add_self(loader, &settings));
	loader->cpu_count = pmu_online(loader->cpus, ABI_MAX_CPUS);
	TRY(start_sideband(loader));
	if (!settings.no_access)
		TRY(start_access(loader, &settings));
	if (!settings.no_ticks && !share_clock(loader, &settings))
		TRY(start_ticks(loader, settings.tick_hz));
	*ret_loader = take(loader);
	return NULL;
}

struct err *loader_pause(struct loader *loader, bool pause)
{
	unsigned long request = pause ? PERF_EVENT_IOC_DISABLE : PERF_EVENT_IOC_ENABLE;

	vec_each(&loader->attached, item)
		if (ioctl(item->fd, request, 0))
			return err_errno(errno, "%s sampling",
					 pause ? "pause" : "resume");
	return NULL;
}

struct err *loader_watch(struct loader *loader, const struct loader_watch *watch)
{
	struct perf_event_attr attr = {
		.size = sizeof(attr),
		.type = PERF_TYPE_BREAKPOINT,
		.bp_type = watch->loads ? HW_BREAKPOINT_RW : HW_BREAKPOINT_W,
		.bp_addr = watch->addr,
		.bp_len = watch->bytes,
		.sample_period = 1,
		.sample_type = PERF_SAMPLE_ADDR,
		.exclude_kernel = 1,
	};
	int fd = pmu_open(&attr, (int)watch->tid, -1, -1);

	if (fd < 0)
		return err_errno(-fd, "set a breakpoint at 0x%llx in task %u",
				 (unsigned long long)watch->addr, watch->tid);
	return attach(loader, loader->access, fd, ABI_SOURCE_BREAKPOINT);
}
