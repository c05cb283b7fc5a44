// SPDX-License-Identifier: Apache-2.0
/*
 * Page faults and hardware breakpoints report instruction and address exactly, and
 * tests/fixture/live_oracle.c prints both and names the field beside the source line: what
 * comes out of the ring must agree with all three.
 */
#include "live_bpf_rig.h"

#define FUNCTION_BYTES 64 /* more than any of the fixture's functions */

struct touch {
	uint64_t object, addr, function;
	char field[64];
};

static bool parse_touch(const char *line, struct touch *ret_touch)
{
	unsigned long long object, addr, function;

	if (sscanf(line, "touch %llx %63s %llx %llx", &object, ret_touch->field, &addr,
		   &function) != 4)
		return false;
	ret_touch->object = object;
	ret_touch->addr = addr;
	ret_touch->function = function;
	return true;
}

/* The source line of @va in the fixture, by binutils; the caller frees it. */
static char *source_line(uint64_t va)
{
	const char *folder = getenv("FIXTURE") ?: ".build/fixture/gcc-O2";
	CLEANUP(free)
	char *command = mem_printf("addr2line -e %s/live_oracle 0x%llx", folder,
				   (unsigned long long)va);
	FILE *pipe = popen(command, "r");
	char place[512] = "", line[512], *colon;

	assert_non_null(fgets(place, sizeof(place), pipe));
	pclose(pipe);
	colon = strrchr(place, ':');
	assert_non_null(colon);
	*colon = 0;
	FILE *source = fopen(place, "r");

	assert_non_null(source);
	for (int n = atoi(colon + 1); n > 0; n--)
		assert_non_null(fgets(line, sizeof(line), source));
	fclose(source);
	return mem_strdup(line);
}

/* Faults of one access: a load of a fresh page, and perhaps a store to it after that. */
static size_t check_touch(const struct rig *rig, const struct touch *touch, uint64_t bias)
{
	CLEANUP(free) char *expected = mem_printf("expect: struct %s ", touch->field);
	size_t seen = 0;

	vec_each(&rig->events, event) {
		const struct abi_access *access = &event->access;

		if (event->head.kind != ABI_ACCESS || access->addr != touch->addr)
			continue;
		assert_int_equal(access->source, ABI_SOURCE_PAGE_FAULT);
		assert_true(access->flags & ABI_ACCESS_ADDR);
		assert_true(access->flags & ABI_ACCESS_REGS);
		assert_false(access->flags & ABI_ACCESS_KERNEL);
		assert_in_range(access->ip, touch->function,
				touch->function + FUNCTION_BYTES);
		assert_int_equal(access->regs[16], access->ip);
		assert_int_equal(access->regs[5],
				 touch->object); /* rdi: first argument */
		CLEANUP(free) char *line = source_line(access->ip - bias);

		if (!strstr(line, expected))
			fail_msg("%s is not in: %s", expected, line);
		seen++;
	}
	return seen;
}

static void page_faults_name_instruction_and_address(void **state)
{
	const struct probe_config config = { .sources = 1u << ABI_SOURCE_PAGE_FAULT };
	struct fixture fixture;
	struct rig rig;
	size_t touches = 0;

	(void)state;
	fixture_start(&fixture, "live_oracle");
	rig_open(&rig, &config);
	rig_target(&rig, fixture.pid);
	fixture_run(&fixture);
	rig_finish(&rig);
	uint64_t bias = fixture_number(&fixture, "bias ");

	vec_each(&fixture.lines, line) {
		struct touch touch;

		if (!parse_touch(*line, &touch))
			continue;
		touches++;
		assert_in_range(check_touch(&rig, &touch, bias), 1, 2);
	}
	assert_int_equal(touches, 7);

	/* The one instruction that has a label faults at that very label. */
	uint64_t label = fixture_number(&fixture, "label ");
	long at =
		rig_find(&rig, 0, e, e->head.kind == ABI_ACCESS && e->access.ip == label);

	assert_true(at >= 0);
	fixture_end(&fixture);
	rig_close(&rig);
}

static void breakpoints_fire_after_the_instruction(void **state)
{
	const struct probe_config config = { .no_access = true, .no_ticks = true };
	struct fixture fixture;
	struct rig rig;
	size_t hits = 0;

	(void)state;
	fixture_start(&fixture, "live_oracle");
	rig_open(&rig, &config);
	const struct loader_watch watch = {
		.tid = (uint32_t)fixture.pid,
		.addr = fixture_number(&fixture, "watch "),
		.bytes = 8,
	};
	struct err *err = loader_watch(rig.loader, &watch);

	if (err) { /* a hypervisor may keep the debug registers to itself */
		print_message("# %s\n", err->text);
		err_free(err);
		fixture_run(&fixture);
		fixture_end(&fixture);
		rig_close(&rig);
		skip();
	}
	rig_target(&rig, fixture.pid);
	fixture_run(&fixture);
	rig_finish(&rig);

	const char *label = NULL;
	vec_each(&fixture.lines, line)
		if (!strncmp(*line, "label ", 6))
			label = *line;
	uint64_t end = strtoull(strrchr(label, ' '), NULL, 16);

	/* stored twice: 42, then 43 (rsi, the second argument) */
	vec_each(&rig.events, event) {
		const struct abi_access *access = &event->access;

		if (event->head.kind != ABI_ACCESS)
			continue;
		assert_int_equal(access->source, ABI_SOURCE_BREAKPOINT);
		assert_int_equal(access->addr, watch.addr);
		assert_int_equal(access->ip, end);
		assert_int_equal(access->regs[4], 42 + hits);
		hits++;
	}
	assert_int_equal(hits, 2);
	fixture_end(&fixture);
	rig_close(&rig);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(page_faults_name_instruction_and_address),
		cmocka_unit_test(breakpoints_fire_after_the_instruction),
	};

	if (rig_skips("live_bpf_oracle"))
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
