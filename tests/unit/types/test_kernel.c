// SPDX-License-Identifier: Apache-2.0
/* What each instruction of the fixture means stands in its source. */
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
#include "types/kernel.h"
#include "types/recover.h"

#define R10	   10
#define CODE_INSNS 9

struct rig {
	int fd;
	struct elf_file *file;
	struct elf_functions *functions;
	struct insn_decoder *decoder;
	struct kernel *kernel;
	struct insn before[CODE_INSNS], after[CODE_INSNS];
};

static int open_fixture(const char *build)
{
	const char *folder = getenv("FIXTURE");
	CLEANUP(free)
	char *path = folder ? mem_printf("%s/../%s/types_kernel", folder, build)
			    : mem_printf(".build/fixture/%s/types_kernel", build);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static const struct elf_function *named(const struct rig *rig, const char *name)
{
	size_t count;
	const struct elf_function *all = elf_functions_all(rig->functions, &count);

	for (size_t i = 0; i < count; i++)
		if (!strcmp(all[i].name, name))
			return &all[i];
	fail_msg("no function %s", name);
	return NULL;
}

static int set_up(void **state)
{
	struct rig *rig = mem_alloc(sizeof(*rig));
	size_t room;
	uint64_t va;

	rig->fd = open_fixture("gcc-O2");
	assert_null(elf_open(rig->fd, &rig->file));
	assert_null(elf_functions_new(rig->file, NULL, &rig->functions));
	assert_null(insn_decoder_open(ELF_X86_64, &rig->decoder));
	rig->kernel = kernel_code_new(rig->file, rig->functions, rig->decoder);
	va = named(rig, "kernel_code")->va;
	for (size_t i = 0; i < CODE_INSNS; i++) {
		const uint8_t *code = elf_bytes_at(rig->file, va, &room);

		assert_non_null(code);
		va += insn_decode(rig->decoder, code, room, va, &rig->before[i]);
		rig->after[i] = rig->before[i];
		kernel_rewrite(rig->kernel, &rig->after[i]);
	}
	*state = rig;
	return 0;
}

static int tear_down(void **state)
{
	struct rig *rig = *state;

	kernel_code_free(rig->kernel);
	insn_decoder_close(rig->decoder);
	elf_functions_free(rig->functions);
	elf_close(rig->file);
	close(rig->fd);
	free(rig);
	return 0;
}

static void a_tracing_call_is_patched_away_and_changes_nothing(void **state)
{
	const struct rig *rig = *state;

	assert_int_equal(rig->before[0].op, INSN_CALL);
	assert_int_equal(rig->after[0].op, INSN_NOP);
	assert_int_equal(rig->after[0].writes, 0);
}

static void a_thunk_is_the_indirect_call_or_jump_that_it_stands_for(void **state)
{
	const struct rig *rig = *state;

	assert_int_equal(rig->after[1].op, INSN_CALL);
	assert_int_equal(rig->after[1].target, 0);
	assert_int_equal(rig->after[1].args[0].kind, INSN_REG);
	assert_int_equal(rig->after[1].args[0].reg, R10);
	assert_int_equal(rig->after[7].op, INSN_JUMP);
	assert_int_equal(rig->after[7].target, 0);
	assert_int_equal(rig->after[7].args[0].reg, R10);
	assert_int_equal(rig->before[8].op, INSN_JUMP);
	assert_int_equal(rig->after[8].op, INSN_RETURN);
}

static void a_warning_comes_back_and_a_bug_does_not(void **state)
{
	const struct rig *rig = *state;

	assert_int_equal(rig->after[2].op, INSN_NOP);
	assert_int_equal(rig->after[4].op, INSN_TRAP);
}

static void a_static_key_and_static_cpu_has_go_both_ways(void **state)
{
	const struct rig *rig = *state;

	assert_int_equal(rig->before[3].op, INSN_NOP);
	assert_int_equal(rig->after[3].op, INSN_BRANCH);
	assert_int_equal(rig->after[3].target, rig->after[8].va);
	assert_int_equal(rig->after[5].op, INSN_BRANCH);
	assert_int_equal(rig->after[5].target, rig->after[8].va);
	assert_int_equal(rig->after[6].op, INSN_NOP);
}

struct seen {
	const struct elf_function *counter, *guard;
	size_t fields, guards;
};

static bool look(void *ctx, const struct answer *answer)
{
	struct seen *seen = ctx;

	if (answer->va - seen->counter->va < seen->counter->bytes &&
	    !strcmp(answer->type, "struct counters")) {
		assert_string_equal(answer->path, "bytes");
		assert_int_equal(answer->offset, 8);
		seen->fields++;
	}
	if (answer->va - seen->guard->va < seen->guard->bytes)
		seen->guards += answer->verdict == VERDICT_CANARY;
	return true;
}

static void a_per_cpu_pointer_is_typed_and_the_guard_is_not(void **state)
{
	const struct rig *rig = *state;
	struct recover_files files = { rig->fd, -1, -1 };
	struct seen seen = { named(rig, "count_bytes"), named(rig, "read_guard"), 0, 0 };
	CLEANUP(recover_close) struct recover *recover = NULL;

	assert_null(recover_open(&files, NULL, &recover));
	assert_null(recover_all(recover, look, NULL, &seen));
	assert_int_equal(seen.fields, 1);
	assert_int_equal(seen.guards, 1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_tracing_call_is_patched_away_and_changes_nothing),
		cmocka_unit_test(a_thunk_is_the_indirect_call_or_jump_that_it_stands_for),
		cmocka_unit_test(a_warning_comes_back_and_a_bug_does_not),
		cmocka_unit_test(a_static_key_and_static_cpu_has_go_both_ways),
		cmocka_unit_test(a_per_cpu_pointer_is_typed_and_the_guard_is_not),
	};

	return cmocka_run_group_tests(tests, set_up, tear_down);
}
