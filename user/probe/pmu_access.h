/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_PMU_ACCESS_H
#define PROBE_PMU_ACCESS_H

/*
 * What one hardware sample says about a memory access, whoever says it. The kernel's
 * data_src word is decoded by event/memsrc; here are AMD's raw IBS registers, as
 * PERF_SAMPLE_RAW and perf.data files carry them.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "event/memsrc.h"

/* The registers of one tagged operation, MSRC001_1033 and up. */
struct pmu_ibs {
	uint64_t op_data;	 /* 1035 */
	uint64_t op_data2;	 /* 1036 */
	uint64_t op_data3;	 /* 1037 */
	uint64_t linear_address; /* 1038 */
	bool is_zen4; /* data sources are five bits wide: CPUID 8000001B EAX[11] */
};

struct pmu_access {
	struct memsrc src;	 /* neither load nor store: no memory access */
	uint32_t latency_cycles; /* of a load that missed L1; 0 unknown */
	uint64_t addr;
	bool has_addr;
};

/* pmu_access_ibs() - pure; any bits. Source: AMD PPR for family 19h, "IBS Op Data". */
struct pmu_access pmu_access_ibs(const struct pmu_ibs *ibs);

/* pmu_access_data_src() - the same from the kernel's words. */
struct pmu_access pmu_access_data_src(uint64_t data_src, uint64_t weight);

#endif
