// SPDX-License-Identifier: Apache-2.0
/* One interrupt serves both kinds where the clock is shared, so the higher rate counts. */
#include "daemon/hooks.h"

#include <time.h>
#include <unistd.h>

#include "core/file.h"

#define SECOND_NS 1000000000ull
/* Measured by tools/bench/overhead in a virtual machine, where a timer is dear. */
#define TICK_COST_NS	  18000 /* of one tick with its copy of the stack */
#define ACCESS_COST_NS	  2000
#define INTERRUPT_COST_NS 9600

struct hooks_step hooks_step(struct hooks *hooks, const struct abi_count *counts,
			     uint64_t tick_hz, uint64_t access_hz)
{
	struct timespec own;
	uint64_t now_ns = clock_ns();
	uint64_t ticks = counts[ABI_TICK].seen - hooks->ticks;
	uint64_t accesses = counts[ABI_ACCESS].seen - hooks->accesses;
	uint64_t passed_ns = hooks->since_ns ? now_ns - hooks->since_ns : 0;
	uint64_t hz = access_hz > tick_hz ? access_hz : tick_hz;

	clock_gettime(CLOCK_PROCESS_CPUTIME_ID, &own);
	if (!hooks->cpus)
		hooks->cpus = (uint64_t)sysconf(_SC_NPROCESSORS_ONLN);
	uint64_t interrupts = hz * hooks->cpus * passed_ns / SECOND_NS;
	uint64_t own_ns = (uint64_t)own.tv_sec * SECOND_NS + (uint64_t)own.tv_nsec;
	uint64_t used_ns = hooks->since_ns ? own_ns - hooks->own_ns : 0;

	hooks->own_ns = own_ns;
	hooks->ticks += ticks;
	hooks->accesses += accesses;
	hooks->since_ns = now_ns;
	return (struct hooks_step){
		.target_ns = tick_hz ? ticks * SECOND_NS / tick_hz : 0,
		.fixed_ns = ticks * TICK_COST_NS + accesses * ACCESS_COST_NS +
			    interrupts * INTERRUPT_COST_NS,
		.own_ns = used_ns,
	};
}
