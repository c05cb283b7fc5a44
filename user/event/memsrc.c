// SPDX-License-Identifier: Apache-2.0
/*
 * Two generations of one format live side by side. Old kernels describe the level as a
 * set of bits at 5 (hit or miss, and of what); newer ones add a number at 33, a remote
 * bit at 37 and the distance at 43, and fill in the old bits as far as they fit. The
 * number is believed when it is there.
 */
#include "event/memsrc.h"

enum { OP_LOAD = 0x02, OP_STORE = 0x04 };
enum {
	LEVEL_HIT = 0x02,
	LEVEL_MISS = 0x04,
	LEVEL_L1 = 0x08,
	LEVEL_L2 = 0x20,
	LEVEL_L3 = 0x40,
	LEVEL_LOCAL_RAM = 0x80,
	LEVEL_REMOTE = 0x100 | 0x200 | 0x400 | 0x800, /* RAM and caches, 1 and 2 hops */
};
enum { SNOOP_HITM = 0x10, LOCK_LOCKED = 0x02, TLB_HIT = 0x02, TLB_MISS = 0x04 };
enum {
	NUMBER_UNSET = 0,
	NUMBER_L1 = 1,
	NUMBER_L2 = 2,
	NUMBER_L3 = 3,
	NUMBER_L4 = 4,
	NUMBER_L2_MHB = 5,
	NUMBER_MSC = 6,
	NUMBER_L0 = 7,
	NUMBER_CXL = 9,
	NUMBER_ANY_CACHE = 11,
	NUMBER_RAM = 13,
	NUMBER_PMEM = 14,
	NUMBER_UNKNOWN = 15,
};
enum { HOPS_SAME_NODE = 1 };

static unsigned field(uint64_t data_src, unsigned shift, unsigned bits)
{
	return (unsigned)(data_src >> shift) & ((1u << bits) - 1);
}

static enum memsrc_level by_number(unsigned number, bool remote)
{
	static const enum memsrc_level levels[16] = {
		[NUMBER_L1] = MEMSRC_L1,	[NUMBER_L2] = MEMSRC_L2,
		[NUMBER_L3] = MEMSRC_L3,	[NUMBER_L4] = MEMSRC_L3,
		[NUMBER_L2_MHB] = MEMSRC_L2,	[NUMBER_MSC] = MEMSRC_L3,
		[NUMBER_L0] = MEMSRC_L1,	[NUMBER_CXL] = MEMSRC_REMOTE,
		[NUMBER_RAM] = MEMSRC_DRAM,	[NUMBER_PMEM] = MEMSRC_DRAM,
		[NUMBER_ANY_CACHE] = MEMSRC_L3, [NUMBER_UNKNOWN] = MEMSRC_UNKNOWN,
	};
	enum memsrc_level level = levels[number];

	return remote && level >= MEMSRC_L3 ? MEMSRC_REMOTE : level;
}

static enum memsrc_level by_bits(unsigned bits)
{
	/* "L3 miss" alone tells where the line was not. */
	if (bits & LEVEL_MISS && !(bits & (LEVEL_LOCAL_RAM | LEVEL_REMOTE)))
		return MEMSRC_UNKNOWN;
	if (bits & LEVEL_REMOTE)
		return MEMSRC_REMOTE;
	if (bits & LEVEL_LOCAL_RAM)
		return MEMSRC_DRAM;
	if (bits & LEVEL_L3)
		return MEMSRC_L3;
	if (bits & LEVEL_L2)
		return MEMSRC_L2;
	return bits & LEVEL_L1 ? MEMSRC_L1 : MEMSRC_UNKNOWN;
}

struct memsrc memsrc_decode(uint64_t data_src)
{
	unsigned op = field(data_src, 0, 5);
	unsigned bits = field(data_src, 5, 14);
	unsigned snoop = field(data_src, 19, 5);
	unsigned tlb = field(data_src, 26, 7);
	unsigned number = field(data_src, 33, 4);
	unsigned hops = field(data_src, 43, 3);
	bool remote = field(data_src, 37, 1) && hops != HOPS_SAME_NODE;

	return (struct memsrc){
		.load = op & OP_LOAD,
		.store = op & OP_STORE,
		.tlb_miss = (tlb & TLB_MISS) && !(tlb & TLB_HIT),
		.hitm = snoop & SNOOP_HITM,
		.locked = field(data_src, 24, 2) & LOCK_LOCKED,
		.level = number == NUMBER_UNSET || number == NUMBER_UNKNOWN
				 ? by_bits(bits)
				 : by_number(number, remote),
	};
}
