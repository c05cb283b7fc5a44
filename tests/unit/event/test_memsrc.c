// SPDX-License-Identifier: Apache-2.0
/*
 * Words put together from the kernel's own macros' arithmetic: op at bit 0, level 5, snoop
 * 19, lock 24, TLB 26, level number 33, remote 37, snoopx 38, block 40, hops 43.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "event/memsrc.h"

#define OP(x)	  ((uint64_t)(x))
#define LVL(x)	  ((uint64_t)(x) << 5)
#define SNOOP(x)  ((uint64_t)(x) << 19)
#define LOCK(x)	  ((uint64_t)(x) << 24)
#define TLB(x)	  ((uint64_t)(x) << 26)
#define NUM(x)	  ((uint64_t)(x) << 33)
#define REMOTE	  (1ull << 37)
#define SNOOPX(x) ((uint64_t)(x) << 38)
#define HOPS(x)	  ((uint64_t)(x) << 43)

enum { LOAD = 2, STORE = 4, HIT = 2, MISS = 4, L1 = 8, LFB = 0x10, L2 = 0x20, L3 = 0x40 };

static const struct {
	const char *what;
	uint64_t word;
	struct memsrc expect;
} words[] = {
	{ "nothing at all", 0, { 0 } },
	/* PERF_MEM_NA: every field says "not available". */
	{ "not available",
	  OP(1) | LVL(1) | SNOOP(1) | LOCK(1) | TLB(1) | NUM(15),
	  { 0 } },
	{ "Intel: load, L1 hit, TLB hit, old and new level",
	  OP(LOAD) | LVL(L1 | HIT) | SNOOP(2) | TLB(2 | 8 | 0x10) | NUM(1),
	  { .load = true, .level = MEMSRC_L1 } },
	{ "Intel: load, fill buffer",
	  OP(LOAD) | LVL(LFB | HIT) | SNOOP(2) | NUM(12),
	  { .load = true, .level = MEMSRC_UNKNOWN } },
	{ "Intel: load, L3 hit, modified in another core",
	  OP(LOAD) | LVL(L3 | HIT) | SNOOP(0x10) | TLB(2 | 8 | 0x10) | NUM(3),
	  { .load = true, .level = MEMSRC_L3, .hitm = true } },
	{ "Intel: load, local RAM, TLB miss (walk)",
	  OP(LOAD) | LVL(0x80 | HIT) | TLB(4 | 0x10) | NUM(13),
	  { .load = true, .level = MEMSRC_DRAM, .tlb_miss = true } },
	{ "Intel: load, RAM of another socket",
	  OP(LOAD) | LVL(0x100 | HIT) | NUM(13) | REMOTE,
	  { .load = true, .level = MEMSRC_REMOTE } },
	{ "Intel: locked store, L1",
	  OP(STORE) | LVL(L1 | HIT) | LOCK(2) | NUM(1),
	  { .store = true, .level = MEMSRC_L1, .locked = true } },
	{ "AMD: load, cache of another complex, same node",
	  OP(LOAD) | NUM(11) | REMOTE | HOPS(1),
	  { .load = true, .level = MEMSRC_L3 } },
	{ "AMD: load, cache of another node, modified",
	  OP(LOAD) | SNOOP(0x10) | NUM(11) | REMOTE | HOPS(2),
	  { .load = true, .level = MEMSRC_REMOTE, .hitm = true } },
	{ "AMD: load, L2 of the DTLB hit",
	  OP(LOAD) | TLB(2 | 0x10) | NUM(2),
	  { .load = true, .level = MEMSRC_L2 } },
	{ "AMD: load and store in one (lock add)",
	  OP(LOAD | STORE) | NUM(1),
	  { .load = true, .store = true, .level = MEMSRC_L1 } },
	{ "old kernel: L2 by bits alone",
	  OP(LOAD) | LVL(L2 | HIT),
	  { .load = true, .level = MEMSRC_L2 } },
	{ "old kernel: L3 miss without a place",
	  OP(LOAD) | LVL(L3 | MISS),
	  { .load = true, .level = MEMSRC_UNKNOWN } },
	{ "old kernel: L3 miss, remote cache",
	  OP(LOAD) | LVL(L3 | MISS | 0x400),
	  { .load = true, .level = MEMSRC_REMOTE } },
	{ "CXL memory", OP(LOAD) | NUM(9), { .load = true, .level = MEMSRC_REMOTE } },
	{ "snoop forward does not mean modified",
	  OP(LOAD) | SNOOPX(1) | NUM(3),
	  { .load = true, .level = MEMSRC_L3 } },
};

static void words_of_both_generations_are_understood(void **state)
{
	(void)state;
	for (size_t i = 0; i < sizeof(words) / sizeof(*words); i++) {
		struct memsrc got = memsrc_decode(words[i].word);
		const struct memsrc *expect = &words[i].expect;

		if (got.load != expect->load || got.store != expect->store ||
		    got.tlb_miss != expect->tlb_miss || got.hitm != expect->hitm ||
		    got.locked != expect->locked || got.level != expect->level)
			fail_msg("%s: level %d instead of %d, or a flag", words[i].what,
				 got.level, expect->level);
	}
}

static void any_word_gives_some_level(void **state)
{
	uint64_t random = 88172645463325252ull;

	(void)state;
	for (int i = 0; i < 100000; i++) {
		random ^= random << 13;
		random ^= random >> 7;
		random ^= random << 17;
		assert_in_range(memsrc_decode(random).level, MEMSRC_UNKNOWN,
				MEMSRC_REMOTE);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(words_of_both_generations_are_understood),
		cmocka_unit_test(any_word_gives_some_level),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
