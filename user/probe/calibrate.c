// SPDX-License-Identifier: Apache-2.0
/*
 * Two tiny functions of our own get a probe, and are called many times. CPU time and not
 * the clock, because a neighbour's load is no cost of ours; the median of some rounds,
 * because an interrupt may fall into one. The plan evaluates a condition and a key and
 * changes the context, as most do. What a record costs is the difference between a gauge
 * that is told and one whose condition does not hold.
 */
#include "probe/calibrate.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "probe/attach.h"
#include "probe/plan.h"

#define ROUNDS	   7
#define HITS	   500
#define WORK_BYTES (48 * 1024) /* as much as the first level of a data cache */
#define MAX_MAPS   (1024 * 1024)
#define REG_FIRST  5 /* rdi */

#if defined(__x86_64__)
void calibrate_emulated(long arg);
void calibrate_stepped(long arg);

/* Aligned, so that no probe falls on a cache line that is written. */
__asm__(".pushsection .text\n"
	".balign 64\n"
	".globl calibrate_emulated\n.hidden calibrate_emulated\n"
	".type calibrate_emulated, @function\n"
	"calibrate_emulated: nop\n lea 1(%rdi), %rax\n ret\n"
	".size calibrate_emulated, . - calibrate_emulated\n"
	".balign 64\n"
	".globl calibrate_stepped\n.hidden calibrate_stepped\n"
	".type calibrate_stepped, @function\n"
	"calibrate_stepped: lea 1(%rdi), %rax\n ret\n"
	".size calibrate_stepped, . - calibrate_stepped\n"
	".popsection\n");
#else
static void calibrate_emulated(long arg)
{
	(void)arg;
}
#define calibrate_stepped calibrate_emulated
#endif

typedef void (*probed_fn)(long arg);

/* Where in our own file an address lies. */
static struct err *offset_of(probed_fn function, uint64_t *ret_offset)
{
	CLEANUP(free) char *maps = NULL;
	uint64_t at = (uintptr_t)function, start, end, pgoff;

	TRY(file_read("/proc/self/maps", MAX_MAPS, &maps, NULL));
	for (char *line = maps; line && *line; line = strchr(line, '\n')) {
		line += *line == '\n';
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &pgoff) == 3 &&
		    at >= start && at < end) {
			*ret_offset = at - start + pgoff;
			return NULL;
		}
	}
	return err_new(ERR_NOT_FOUND, "calibrate: our own text is not mapped");
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * 1000000000ull + (uint64_t)now.tv_nsec;
}

static int by_size(const void *left, const void *right)
{
	uint64_t a = *(const uint64_t *)left, b = *(const uint64_t *)right;

	return a < b ? -1 : a > b;
}

/* A program does something between two hits, and our code is no longer in the cache. */
static void use_cache(unsigned char *work)
{
	for (size_t i = 0; i < WORK_BYTES; i += 64)
		((volatile unsigned char *)work)[i]++;
}

static uint32_t time_calls(probed_fn function)
{
	CLEANUP(free) unsigned char *work = mem_alloc(WORK_BYTES);
	uint64_t rounds[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin_ns = cpu_ns();

		for (long i = 0; i < HITS; i++) {
			use_cache(work);
			function(i);
		}
		rounds[round] = cpu_ns() - begin_ns;
	}
	qsort(rounds, ROUNDS, sizeof(*rounds), by_size);
	return (uint32_t)(rounds[ROUNDS / 2] / HITS);
}

static struct err *set_plan(const struct loader *loader, const struct abi_probe *plan)
{
	uint32_t slot = CALIBRATE_SLOT;

	if (bpf_map_update_elem(loader_fds(loader)->fd[PROBE_FD_PROBES], &slot, plan,
				BPF_ANY))
		return err_errno(errno, "calibrate: write the plan");
	return NULL;
}

/* ns per call of @function while it has a probe with @plan. */
static struct err *time_probed(const struct loader *loader, probed_fn function,
			       bool is_return, const struct abi_probe *plan,
			       uint32_t *ret_ns)
{
	CLEANUP(close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);
	struct attach_point point = { .slot = CALIBRATE_SLOT };
	struct attach_request request = { .file_fd = fd,
					  .pid = (uint32_t)getpid(),
					  .is_return = is_return,
					  .points = &point,
					  .count = 1 };
	CLEANUP(attach_close) struct attachment *attachment = NULL;

	if (fd < 0)
		return err_errno(errno, "calibrate: open our own file");
	TRY(set_plan(loader, plan));
	TRY(offset_of(function, &point.offset));
	TRY(attach_open(loader, &request, &attachment));
	*ret_ns = time_calls(function);
	return NULL;
}

static uint32_t over(uint32_t ns, uint32_t bare_ns)
{
	return ns > bare_ns ? ns - bare_ns : 1;
}

static struct err *measure_kinds(const struct loader *loader,
				 const struct abi_probe *plan,
				 struct calibration *ret_cost)
{
	for (int kind = 0; kind < CALIBRATE_RECORD; kind++) {
		probed_fn function = kind == CALIBRATE_STEPPED ? calibrate_stepped
							       : calibrate_emulated;
		uint32_t bare_ns = time_calls(function), ns;

		TRY(time_probed(loader, function, kind == CALIBRATE_RETURN, plan, &ns));
		ret_cost->hit_ns[kind] = over(ns, bare_ns);
	}
	return NULL;
}

static struct err *measure_record(const struct loader *loader,
				  const struct abi_probe *plan,
				  struct calibration *ret_cost)
{
	struct abi_probe gauge = *plan;
	uint32_t told_ns, silent_ns;

	gauge.verb = ABI_LEVEL;
	TRY(time_probed(loader, calibrate_emulated, false, &gauge, &told_ns));
	gauge.when[0].op = ABI_OP_LT;
	TRY(time_probed(loader, calibrate_emulated, false, &gauge, &silent_ns));
	ret_cost->hit_ns[CALIBRATE_RECORD] = over(told_ns, silent_ns);
	return NULL;
}

struct err *calibrate_run(const struct loader *loader, struct calibration *ret_cost)
{
	static const struct abi_path arg = { .base = ABI_BASE_REG,
					     .reg = REG_FIRST,
					     .width = 8 };
	const struct abi_probe plan = { .verb = ABI_CONN_RELEASE,
					.key = { .value = arg },
					.when[0] = { .value = arg, .op = ABI_OP_GE } };

#if !defined(__x86_64__)
	return err_new(ERR_UNSUPPORTED, "calibrate: not on this kind of CPU");
#endif
	struct err *err = measure_kinds(loader, &plan, ret_cost);

	if (!err)
		err = measure_record(loader, &plan, ret_cost);
	if (!err)
		err = set_plan(loader, &(struct abi_probe){ 0 });
	return err;
}

/* Does a hit make a record? Changes of context do only when they end something. */
static bool is_told(const struct abi_probe *plan)
{
	switch (plan->verb) {
	case ABI_TASK_PUSH:
	case ABI_TASK_POP:
	case ABI_TASK_DONE:
	case ABI_CONN_OWN:
	case ABI_CONN_RELEASE:
		return false;
	}
	return plan->verb && !(plan->flags & (ABI_PROBE_SAVE | ABI_PROBE_SUM));
}

uint32_t calibration_hit_ns(const struct calibration *calibration, unsigned cost,
			    const struct abi_probe *plan)
{
	static const enum calibrate_kind kinds[] = {
		[PLAN_EMULATED] = CALIBRATE_EMULATED,
		[PLAN_STEPPED] = CALIBRATE_STEPPED,
		[PLAN_TRAMPOLINE] = CALIBRATE_RETURN,
	};
	uint32_t record_ns = is_told(plan) ? calibration->hit_ns[CALIBRATE_RECORD] : 0;

	return calibration->hit_ns[kinds[cost]] + record_ns;
}

const char *calibrate_kind_name(enum calibrate_kind kind)
{
	static const char *const names[] = { "emulated", "stepped", "return", "record" };

	return names[kind];
}
