// SPDX-License-Identifier: Apache-2.0
/*
 * Registers put together bit by bit from AMD's PPR for family 19h (IBS Op Data 2 and 3),
 * and data_src words from the kernel's uapi union perf_mem_data_src, as its drivers build
 * them for the data source encodings of PEBS in the SDM.
 */
#include <linux/perf_event.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "probe/pmu_access.h"

#define BIT(n)	      (1ull << (n))
#define LATENCY(n)    ((uint64_t)(n) << 32)
#define MISSED_CACHES (BIT(7) | BIT(20)) /* DcMiss, L2Miss */

struct ibs_case {
	const char *what;
	uint64_t data2, data3;
	bool is_zen4;
	struct memsrc src;
	uint32_t latency;
};

static const struct ibs_case ibs_cases[] = {
	{ "no memory operation", 0, MISSED_CACHES, true, { 0 }, 0 },
	{ "load, L1 hit; the latency field is stale",
	  3,
	  BIT(0) | LATENCY(77),
	  true,
	  { .load = true, .level = MEMSRC_L1 },
	  0 },
	{ "store, L2 hit",
	  0,
	  BIT(1) | BIT(7),
	  true,
	  { .store = true, .level = MEMSRC_L2 },
	  0 },
	{ "load, L2 hit after 14 cycles",
	  0,
	  BIT(0) | BIT(7) | LATENCY(14),
	  true,
	  { .load = true, .level = MEMSRC_L2 },
	  14 },
	{ "load from this CCX's L3, line modified (state 0)",
	  1,
	  BIT(0) | MISSED_CACHES | LATENCY(50),
	  true,
	  { .load = true, .level = MEMSRC_L3, .hitm = true },
	  50 },
	{ "the same, line owned (state 1)",
	  1 | BIT(5),
	  BIT(0) | MISSED_CACHES | LATENCY(50),
	  true,
	  { .load = true, .level = MEMSRC_L3 },
	  50 },
	{ "load from a CCX of another node, modified",
	  5,
	  BIT(0) | MISSED_CACHES | LATENCY(300),
	  true,
	  { .load = true, .level = MEMSRC_REMOTE, .hitm = true },
	  300 },
	{ "load from local memory, translation missed both TLBs",
	  3,
	  BIT(0) | MISSED_CACHES | BIT(2) | BIT(3) | BIT(17) | LATENCY(400),
	  true,
	  { .load = true, .level = MEMSRC_DRAM, .tlb_miss = true },
	  400 },
	{ "translation in the second TLB",
	  3,
	  BIT(0) | MISSED_CACHES | BIT(2) | BIT(17) | LATENCY(400),
	  true,
	  { .load = true, .level = MEMSRC_DRAM },
	  400 },
	{ "load from memory of the other node",
	  3 | BIT(4),
	  BIT(0) | MISSED_CACHES | LATENCY(700),
	  true,
	  { .load = true, .level = MEMSRC_REMOTE },
	  700 },
	{ "load from CXL memory: source 8 lies in DataSrc[4:3]",
	  BIT(6),
	  BIT(0) | MISSED_CACHES | LATENCY(900),
	  true,
	  { .load = true, .level = MEMSRC_REMOTE },
	  900 },
	{ "locked read-modify-write of a line in L1",
	  0,
	  BIT(0) | BIT(1) | BIT(15),
	  true,
	  { .load = true, .store = true, .locked = true, .level = MEMSRC_L1 },
	  0 },
	{ "uncached load: nothing else holds",
	  1,
	  BIT(0) | MISSED_CACHES | BIT(14),
	  true,
	  { .load = true },
	  0 },
	{ "Zen 3: source 2 is a cache of this node",
	  2 | BIT(5),
	  BIT(0) | MISSED_CACHES | LATENCY(60),
	  false,
	  { .load = true, .level = MEMSRC_L3 },
	  60 },
	{ "store that missed: sources are about loads",
	  3,
	  BIT(1) | MISSED_CACHES,
	  true,
	  { .store = true },
	  0 },
};

static void ibs_registers_say_what_the_manual_says(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(ibs_cases) / sizeof(ibs_cases[0]); i++) {
		const struct ibs_case *c = &ibs_cases[i];
		const struct pmu_ibs ibs = { .op_data2 = c->data2,
					     .op_data3 = c->data3,
					     .is_zen4 = c->is_zen4 };
		struct pmu_access got = pmu_access_ibs(&ibs);

		if (got.src.load != c->src.load || got.src.store != c->src.store ||
		    got.src.level != c->src.level || got.src.hitm != c->src.hitm ||
		    got.src.tlb_miss != c->src.tlb_miss ||
		    got.src.locked != c->src.locked || got.latency_cycles != c->latency)
			fail_msg("%s", c->what);
	}
}

static void the_address_counts_only_when_it_is_valid(void **state)
{
	struct pmu_ibs ibs = { .op_data3 = BIT(0) | BIT(17), .linear_address = 0x7f00 };

	(void)state;
	assert_true(pmu_access_ibs(&ibs).has_addr);
	assert_int_equal(pmu_access_ibs(&ibs).addr, 0x7f00);
	ibs.op_data3 = BIT(0);
	assert_false(pmu_access_ibs(&ibs).has_addr);
}

static void words_of_the_kernel_are_understood(void **state)
{
	/* SDM, data source encodings of load latency: 01h L1 hit, 06h L3 hit with the
	 * line modified in another core, 0Ah local memory; dirtied by hand as the
	 * kernel's tables have them. */
	const union perf_mem_data_src l1 = {
		.mem_op = PERF_MEM_OP_LOAD,
		.mem_lvl = PERF_MEM_LVL_L1 | PERF_MEM_LVL_HIT,
		.mem_lvl_num = PERF_MEM_LVLNUM_L1,
		.mem_dtlb = PERF_MEM_TLB_L1 | PERF_MEM_TLB_HIT,
	};
	const union perf_mem_data_src hitm = {
		.mem_op = PERF_MEM_OP_LOAD,
		.mem_lvl = PERF_MEM_LVL_L3 | PERF_MEM_LVL_HIT,
		.mem_lvl_num = PERF_MEM_LVLNUM_L3,
		.mem_snoop = PERF_MEM_SNOOP_HITM,
	};
	const union perf_mem_data_src remote = {
		.mem_op = PERF_MEM_OP_LOAD,
		.mem_lvl = PERF_MEM_LVL_REM_RAM1 | PERF_MEM_LVL_HIT,
		.mem_lvl_num = PERF_MEM_LVLNUM_RAM,
		.mem_remote = PERF_MEM_REMOTE_REMOTE,
		.mem_dtlb = PERF_MEM_TLB_L2 | PERF_MEM_TLB_MISS,
	};
	const union perf_mem_data_src store = {
		.mem_op = PERF_MEM_OP_STORE,
		.mem_lvl = PERF_MEM_LVL_L1 | PERF_MEM_LVL_HIT,
		.mem_lvl_num = PERF_MEM_LVLNUM_L1,
	};

	(void)state;
	struct pmu_access got = pmu_access_data_src(l1.val, 5);

	assert_true(got.src.load && !got.src.store && !got.src.tlb_miss);
	assert_int_equal(got.src.level, MEMSRC_L1);
	assert_int_equal(got.latency_cycles, 5);
	got = pmu_access_data_src(hitm.val, 90);
	assert_true(got.src.hitm);
	assert_int_equal(got.src.level, MEMSRC_L3);
	got = pmu_access_data_src(remote.val, 600);
	assert_true(got.src.tlb_miss && !got.src.hitm);
	assert_int_equal(got.src.level, MEMSRC_REMOTE);
	got = pmu_access_data_src(store.val, 0);
	assert_true(got.src.store && !got.src.load);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ibs_registers_say_what_the_manual_says),
		cmocka_unit_test(the_address_counts_only_when_it_is_valid),
		cmocka_unit_test(words_of_the_kernel_are_understood),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
