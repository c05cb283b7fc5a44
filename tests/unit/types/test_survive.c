// SPDX-License-Identifier: Apache-2.0
/* The registers that each callee of the fixture changes stand in its source. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/mem.h"
#include "types/recover.h"
#include "types/survive.h"

enum { R8 = 1 << 8, R9 = 1 << 9, R10 = 1 << 10, R11 = 1 << 11 };

struct rig {
	int fd;
	struct recover *recover;
};

static int set_up(void **state)
{
	const char *folder = getenv("FIXTURE");
	CLEANUP(free)
	char *path =
		mem_printf("%s/types_calls", folder ? folder : ".build/fixture/gcc-O2");
	struct rig *rig = mem_alloc(sizeof(*rig));
	struct recover_files files = { -1, -1, -1 };

	rig->fd = files.main_fd = open(path, O_RDONLY | O_CLOEXEC);
	assert_true(rig->fd >= 0);
	assert_null(recover_open(&files, NULL, &rig->recover));
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	recover_close(rig->recover);
	close(rig->fd);
	free(rig);
	return 0;
}

static const struct elf_function *named(const struct rig *rig, const char *name)
{
	size_t count;
	const struct elf_function *all = elf_functions_all(rig->recover->symbols, &count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name))
			return &all[i];
	fail_msg("no function %s", name);
	return NULL;
}

/* What the call of @callee in call_all() changes. */
static uint64_t changed_by(const struct rig *rig, const char *callee)
{
	struct recover *recover = rig->recover;
	uint64_t target = named(rig, callee)->va;
	const struct dwarf_function *caller =
		dwarf_function_by_va(recover->dwarf, named(rig, "call_all")->va);

	assert_non_null(caller);
	module_enter(recover, caller->unit);
	code_load(recover, caller);
	vec_each(&recover->code.insns, insn)
		if (insn->op == INSN_CALL && insn->target == target)
			return survive_clobbers(recover, insn);
	fail_msg("no call of %s", callee);
	return 0;
}

static void a_callee_changes_what_its_code_and_its_callees_write(void **state)
{
	const struct rig *rig = *state;
	uint64_t small = changed_by(rig, "small"), outer = changed_by(rig, "outer");

	assert_true(small & R9);
	assert_false(small & (R8 | R10 | R11));
	assert_true((outer & (R8 | R9)) == (R8 | R9));
	assert_false(outer & (R10 | R11));
}

static void what_cannot_be_seen_changes_all_that_it_may(void **state)
{
	static const char *const names[] = { "unknown", "indirect", "again" };
	const struct rig *rig = *state;
	uint64_t all = insn_abi(rig->recover->decoder)->call_clobbers;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		assert_int_equal(changed_by(rig, names[i]), all);
}

static void assembly_is_named_as_the_reason(void **state)
{
	static const char *const names[] = { "hand_named", "hand_unnamed" };
	const struct rig *rig = *state;

	for (size_t i = 0; i < sizeof(names) / sizeof(*names); i++) {
		struct answer answer;

		recover_at(rig->recover, named(rig, names[i])->va, false, &answer);
		assert_int_equal(answer.verdict, VERDICT_ASSEMBLY);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(
			a_callee_changes_what_its_code_and_its_callees_write, set_up,
			tear_down),
		cmocka_unit_test_setup_teardown(
			what_cannot_be_seen_changes_all_that_it_may, set_up, tear_down),
		cmocka_unit_test_setup_teardown(assembly_is_named_as_the_reason, set_up,
						tear_down),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
