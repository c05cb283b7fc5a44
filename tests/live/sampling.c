// SPDX-License-Identifier: Apache-2.0
/*
 * How true are samples of the clock? tests/fixture/live_hot.c spends its time in three
 * loads whose addresses and objects it prints, with cheap accesses around them. Every
 * sample in one of the loops is attributed with the skid rule and without it (the
 * instruction at ip itself), and its data address is recomputed from its registers. The
 * floors are far below what was seen; only wrong attributions are held against the rule,
 * silence is not.
 */
#include "live_bpf_rig.h"

#include <fcntl.h>

#include "types/module.h"
#include "types/skid.h"

#define SPOTS	   3
#define MIN_SAMPLE 30 /* fewer say nothing */

struct spot {
	char name[32];
	uint64_t label, block, bytes, stride, offset;
	uint64_t samples, on_right, on_wrong, off_right, off_wrong;
	uint64_t address_right, address_wrong;
};

static void read_spots(const struct fixture *fixture, struct spot *spots)
{
	size_t count = 0;

	vec_each(&fixture->lines, line) {
		unsigned long long label, block, bytes, stride, offset;
		struct spot *spot = &spots[count];

		if (count == SPOTS ||
		    sscanf(*line, "hot %31s %llx %llx %llu %llu %llu", spot->name, &label,
			   &block, &bytes, &stride, &offset) != 6)
			continue;
		spot->label = label;
		spot->block = block;
		spot->bytes = bytes;
		spot->stride = stride;
		spot->offset = offset;
		count++;
	}
	assert_int_equal(count, SPOTS);
}

static bool is_in(const struct dwarf_function *function, uint64_t va)
{
	for (uint32_t i = 0; i < function->range_count; i++)
		if (va >= function->ranges[i].lo && va < function->ranges[i].hi)
			return true;
	return false;
}

static void score_address(struct spot *spot, uint64_t va)
{
	if (va - spot->block < spot->bytes &&
	    (va - spot->block) % spot->stride == spot->offset)
		spot->address_right++;
	else
		spot->address_wrong++;
}

static void score_one(const struct code *code, struct spot *spot, uint64_t bias,
		      const struct abi_access *access)
{
	size_t at = code_find(code, access->ip - bias), found;
	const struct insn *insns = code->insns.data;
	uint64_t va, regs[ABI_REGS];

	for (size_t i = 0; i < ABI_REGS; i++)
		regs[i] = access->regs[i];
	assert_int_not_equal(at, SIZE_MAX);
	spot->samples++;
	if (insns[at].va + bias == spot->label)
		spot->off_right++;
	else if (insns[at].is_counted)
		spot->off_wrong++;
	found = skid_access(code->cfg, insns, at);
	if (found == SIZE_MAX)
		return;
	if (insns[found].va + bias != spot->label) {
		spot->on_wrong++;
		return;
	}
	spot->on_right++;
	if (skid_address(code->cfg, insns, found, at, regs, NULL, &va))
		score_address(spot, va);
}

static void score(struct recover *recover, struct spot *spots, uint64_t bias,
		  const struct abi_access *access)
{
	struct answer answer;

	recover_at(recover, access->ip - bias, false, &answer);
	if (!recover->code.function || !is_in(recover->code.function, access->ip - bias))
		return;
	for (int i = 0; i < SPOTS; i++)
		if (is_in(recover->code.function, spots[i].label - bias))
			score_one(&recover->code, &spots[i], bias, access);
}

static void print_spot(const struct spot *spot)
{
	print_message(
		"# %-6s %4llu samples; skid rule: %llu right, %llu wrong, %llu "
		"silent; without: %llu right, %llu wrong; addresses: %llu right, "
		"%llu wrong\n",
		spot->name, (unsigned long long)spot->samples,
		(unsigned long long)spot->on_right, (unsigned long long)spot->on_wrong,
		(unsigned long long)(spot->samples - spot->on_right - spot->on_wrong),
		(unsigned long long)spot->off_right, (unsigned long long)spot->off_wrong,
		(unsigned long long)spot->address_right,
		(unsigned long long)spot->address_wrong);
}

static struct recover *open_fixture(void)
{
	const char *folder = getenv("FIXTURE") ?: ".build/fixture/gcc-O2";
	CLEANUP(free) char *path = mem_printf("%s/live_hot", folder);
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	struct recover_files files = { fd, -1, -1 };
	struct recover *recover;

	assert_true(fd >= 0);
	assert_ok(recover_open(&files, NULL, &recover));
	assert_non_null(recover->dwarf);
	return recover;
}

static void samples_of_the_clock_name_the_load_that_stalls(void **state)
{
	const struct probe_config config = { .sources = 1u << ABI_SOURCE_CLOCK,
					     .access_hz = 997,
					     .no_ticks = true };
	CLEANUP(recover_close) struct recover *recover = open_fixture();
	struct spot spots[SPOTS] = { 0 }, all = { .name = "all" };
	struct fixture fixture;
	struct rig rig;

	(void)state;
	fixture_start(&fixture, "live_hot");
	rig_open(&rig, &config);
	rig_target(&rig, fixture.pid);
	fixture_run(&fixture);
	rig_finish(&rig);
	read_spots(&fixture, spots);
	uint64_t bias = fixture_number(&fixture, "bias ");

	vec_each(&rig.events, event)
		if (event->head.kind == ABI_ACCESS &&
		    event->head.pid == (uint32_t)fixture.pid &&
		    !(event->access.flags & ABI_ACCESS_KERNEL) &&
		    event->access.flags & ABI_ACCESS_REGS)
			score(recover, spots, bias, &event->access);
	for (int i = 0; i < SPOTS; i++) {
		print_spot(&spots[i]);
		all.samples += spots[i].samples;
		all.on_right += spots[i].on_right;
		all.on_wrong += spots[i].on_wrong;
		all.off_right += spots[i].off_right;
		all.off_wrong += spots[i].off_wrong;
		all.address_right += spots[i].address_right;
		all.address_wrong += spots[i].address_wrong;
	}
	print_spot(&all);
	fixture_end(&fixture);
	rig_close(&rig);
	if (all.samples < MIN_SAMPLE) {
		print_message("# too few samples to judge\n");
		skip();
	}
	assert_true(all.on_right * 2 > all.samples);
	assert_true(all.on_right > all.on_wrong * 2);
	assert_true(all.on_right > all.off_right);
	assert_true(all.address_right >= all.address_wrong * 10);
	assert_true(all.address_right > 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(samples_of_the_clock_name_the_load_that_stalls),
	};

	if (rig_skips("sampling"))
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
