// SPDX-License-Identifier: Apache-2.0
/*
 * Two tiny functions of our own get a probe, and are called many times. CPU time and not
 * the clock, because a neighbour's load is no cost of ours; the median of some rounds,
 * because an interrupt may fall into one. The plan evaluates a condition and a key and
 * changes the context, as most do, but emits nothing.
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

#define ROUNDS	  7
#define HITS	  500
#define MAX_MAPS  (1024 * 1024)
#define REG_FIRST 5 /* rdi */

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

static uint32_t time_calls(probed_fn function)
{
	uint64_t rounds[ROUNDS];

	for (int round = 0; round < ROUNDS; round++) {
		uint64_t begin_ns = cpu_ns();

		for (long i = 0; i < HITS; i++)
			function(i);
		rounds[round] = cpu_ns() - begin_ns;
	}
	qsort(rounds, ROUNDS, sizeof(*rounds), by_size);
	return (uint32_t)(rounds[ROUNDS / 2] / HITS);
}

static struct err *measure(const struct loader *loader, int exe_fd,
			   enum calibrate_kind kind, uint32_t *ret_ns)
{
	probed_fn function =
		kind == CALIBRATE_STEPPED ? calibrate_stepped : calibrate_emulated;
	struct attach_point point = { .slot = CALIBRATE_SLOT };
	struct attach_request request = { .file_fd = exe_fd,
					  .pid = (uint32_t)getpid(),
					  .is_return = kind == CALIBRATE_RETURN,
					  .points = &point,
					  .count = 1 };
	CLEANUP(attach_close) struct attachment *attachment = NULL;
	uint32_t bare_ns = time_calls(function);

	TRY(offset_of(function, &point.offset));
	TRY(attach_open(loader, &request, &attachment));
	uint32_t ns = time_calls(function);

	*ret_ns = ns > bare_ns ? ns - bare_ns : 1;
	return NULL;
}

static struct err *measure_all(const struct loader *loader, struct calibration *ret_cost)
{
	CLEANUP(close) int fd = open("/proc/self/exe", O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(errno, "calibrate: open our own file");
	for (int kind = 0; kind < CALIBRATE_KINDS; kind++)
		TRY(measure(loader, fd, (enum calibrate_kind)kind,
			    &ret_cost->hit_ns[kind]));
	return NULL;
}

static struct err *set_plan(const struct probe_fds *fds, const struct abi_probe *plan)
{
	uint32_t slot = CALIBRATE_SLOT;

	if (bpf_map_update_elem(fds->fd[PROBE_FD_PROBES], &slot, plan, BPF_ANY))
		return err_errno(errno, "calibrate: write the plan");
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
	const struct probe_fds *fds = loader_fds(loader);

#if !defined(__x86_64__)
	return err_new(ERR_UNSUPPORTED, "calibrate: not on this kind of CPU");
#endif
	TRY(set_plan(fds, &plan));
	struct err *err = measure_all(loader, ret_cost);

	if (!err)
		err = set_plan(fds, &(struct abi_probe){ 0 });
	return err;
}

const char *calibrate_kind_name(enum calibrate_kind kind)
{
	static const char *const names[] = { "emulated", "stepped", "return" };

	return names[kind];
}
