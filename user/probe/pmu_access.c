// SPDX-License-Identifier: Apache-2.0
/*
 * IBS tells misses level by level: DcMiss, then L2Miss, then for loads where the data
 * came from. Everything behind a miss bit that is not set is meaningless, and so is all
 * of it for an uncached access. Erratum 1293 of Zen 3 (software prefetches may claim an
 * L2 hit) is not handled: such operations are no accesses of the program's data types.
 */
#include "probe/pmu_access.h"

/* IbsOpData3 */
#define LOAD		(1ull << 0)
#define STORE		(1ull << 1)
#define DTLB_L1_MISS	(1ull << 2)
#define DTLB_L2_MISS	(1ull << 3)
#define DC_MISS		(1ull << 7)
#define DC_UNCACHED	(1ull << 14)
#define DC_LOCKED	(1ull << 15)
#define DC_LINEAR_VALID (1ull << 17)
#define L2_MISS		(1ull << 20)
#define DC_MISS_LATENCY 32 /* 16 bits from here */

/* IbsOpData2: DataSrc[2:0] at bit 0, DataSrc[4:3] at bit 6 */
#define REMOTE_NODE	(1ull << 4)
#define CACHE_HIT_STATE (1ull << 5) /* 0: the line was Modified, 1: Owned */

enum old_source { OLD_CACHE = 2, OLD_DRAM = 3, OLD_REMOTE_CACHE = 4 };
enum zen4_source {
	ZEN4_SAME_CCX = 1,
	ZEN4_NEAR_CCX = 2,
	ZEN4_DRAM = 3,
	ZEN4_FAR_CCX = 5,
	ZEN4_PMEM = 6,
	ZEN4_EXTENSION = 8, /* CXL */
};

static enum memsrc_level memory_level(const struct pmu_ibs *ibs)
{
	return ibs->op_data2 & REMOTE_NODE ? MEMSRC_REMOTE : MEMSRC_DRAM;
}

static enum memsrc_level level_zen4(const struct pmu_ibs *ibs, bool *ret_cache)
{
	switch ((ibs->op_data2 & 7) | (ibs->op_data2 >> 6 & 3) << 3) {
	case ZEN4_SAME_CCX:
	case ZEN4_NEAR_CCX:
		*ret_cache = true;
		return MEMSRC_L3;
	case ZEN4_FAR_CCX:
		*ret_cache = true;
		return MEMSRC_REMOTE;
	case ZEN4_EXTENSION:
		return MEMSRC_REMOTE;
	case ZEN4_DRAM:
	case ZEN4_PMEM:
		return memory_level(ibs);
	default:
		return MEMSRC_UNKNOWN;
	}
}

static enum memsrc_level level_old(const struct pmu_ibs *ibs, bool *ret_cache)
{
	switch (ibs->op_data2 & 7) {
	case OLD_CACHE:
		*ret_cache = true;
		return MEMSRC_L3;
	case OLD_REMOTE_CACHE:
		return MEMSRC_REMOTE;
	case OLD_DRAM:
		return memory_level(ibs);
	default:
		return MEMSRC_UNKNOWN;
	}
}

static void set_level(const struct pmu_ibs *ibs, struct memsrc *src)
{
	bool is_cache = false;

	if (ibs->op_data3 & DC_UNCACHED)
		return;
	if (!(ibs->op_data3 & DC_MISS)) {
		src->level = MEMSRC_L1;
		return;
	}
	if (!(ibs->op_data3 & L2_MISS)) {
		src->level = MEMSRC_L2;
		return;
	}
	if (!src->load || src->store) /* IbsOpData2 is about loads */
		return;
	src->level =
		ibs->is_zen4 ? level_zen4(ibs, &is_cache) : level_old(ibs, &is_cache);
	src->hitm = is_cache && !(ibs->op_data2 & CACHE_HIT_STATE);
}

struct pmu_access pmu_access_ibs(const struct pmu_ibs *ibs)
{
	struct pmu_access access = { .src = { .load = ibs->op_data3 & LOAD,
					      .store = ibs->op_data3 & STORE } };

	if (!access.src.load && !access.src.store)
		return access;
	set_level(ibs, &access.src);
	access.src.locked = ibs->op_data3 & DC_LOCKED;
	if (ibs->op_data3 & DC_LINEAR_VALID) {
		access.addr = ibs->linear_address;
		access.has_addr = true;
		access.src.tlb_miss =
			ibs->op_data3 & DTLB_L1_MISS && ibs->op_data3 & DTLB_L2_MISS;
	}
	if (access.src.load && ibs->op_data3 & DC_MISS)
		access.latency_cycles = ibs->op_data3 >> DC_MISS_LATENCY & 0xffff;
	return access;
}

struct pmu_access pmu_access_data_src(uint64_t data_src, uint64_t weight)
{
	return (struct pmu_access){
		.src = memsrc_decode(data_src),
		.latency_cycles = weight > UINT32_MAX ? UINT32_MAX : (uint32_t)weight,
	};
}
