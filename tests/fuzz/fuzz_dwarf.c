// SPDX-License-Identifier: Apache-2.0
/*
 * Any bytes as an ELF file with DWARF: opening, a few single questions, and a whole
 * pass that stops after a bounded number of answers.
 */
#include <stdint.h>
#include <sys/mman.h>
#include <unistd.h>

#include "bin/elf.h"
#include "core/file.h"
#include "types/recover.h"

#define MAX_BYTES   (1 << 20)
#define MAX_ANSWERS 4096

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size);

/* Libraries of elfutils 0.188 lose some blocks on damaged files; the worker is bounded in
 * memory and replaced, so only our own leaks count. */
const char *__lsan_default_suppressions(void);
const char *__lsan_default_suppressions(void)
{
	return "leak:libelf.so\nleak:libdw.so\n";
}

struct walk {
	struct recover *recover;
	size_t answers;
	struct answer claim;
};

static bool count(void *ctx, const struct answer *answer)
{
	struct walk *walk = ctx;

	if (verdict_is_claim(answer->verdict))
		walk->claim = *answer;
	return ++walk->answers < MAX_ANSWERS;
}

static void analyse(int fd, bool dwarf_only)
{
	CLEANUP(recover_close) struct recover *recover = NULL;
	struct recover_files files = { fd, -1, -1 };
	struct recover_options options = { .dwarf_only = dwarf_only };
	struct walk walk = { 0 };
	struct fact_type type;
	const struct fact_field *fields;
	struct answer answer;
	size_t field_count;
	struct err *err = recover_open(&files, &options, &recover);

	if (!err)
		err = recover_all(recover, count, NULL, &walk);
	if (err) {
		err_free(err);
		return;
	}
	if (!walk.claim.va)
		return;
	recover_at(recover, walk.claim.va, true, &answer);
	recover_type(recover, &walk.claim, &type, &fields, &field_count);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t size)
{
	CLEANUP(close) int fd = memfd_create("input", MFD_CLOEXEC);

	if (fd < 0 || size > MAX_BYTES || file_write_all(fd, bytes, size))
		return 0;
	analyse(fd, false);
	analyse(fd, true);
	return 0;
}
