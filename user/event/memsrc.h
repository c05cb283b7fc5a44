/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EVENT_MEMSRC_H
#define EVENT_MEMSRC_H

/*
 * What the kernel says about one memory access in its data_src word, reduced to what
 * is counted. Source: union perf_mem_data_src of the kernel's uapi (perf_event_open(2),
 * PERF_SAMPLE_DATA_SRC).
 */

#include <stdbool.h>
#include <stdint.h>

enum memsrc_level {
	MEMSRC_UNKNOWN, /* not told, or none of these: a fill buffer, I/O, uncached */
	MEMSRC_L1,
	MEMSRC_L2,
	MEMSRC_L3,     /* also another core's cache of the same node */
	MEMSRC_DRAM,   /* of this node */
	MEMSRC_REMOTE, /* cache or memory of another node */
};

struct memsrc {
	bool load, store;
	bool tlb_miss; /* of every level of the data TLB: the page table was walked */
	bool hitm;     /* the line was modified in another cache */
	bool locked;
	enum memsrc_level level;
};

/* memsrc_decode() - any 64 bits; 0 gives nothing known. */
struct memsrc memsrc_decode(uint64_t data_src);

#endif
