/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_KERNEL_H
#define TYPES_KERNEL_H

/*
 * What code of the Linux kernel stands for: it is patched at boot and compiled against
 * side channels, so the instructions in the file are not those that their author meant.
 * Indirect calls and returns go through thunks (user code built with
 * -mindirect-branch=thunk, too), tracing calls are patched away, warnings come back from
 * their ud2, and a no-op or jump of a static key goes both ways.
 */

#include "bin/elf.h"
#include "bin/insn.h"

struct kernel;

/* kernel_code_new() - @file and @decoder are borrowed until kernel_code_free(). A file without
 * such code costs a look at its symbols. Tables that do not make sense are ignored. */
struct kernel *kernel_code_new(const struct elf_file *file,
			       const struct elf_functions *functions,
			       struct insn_decoder *decoder);
void kernel_code_free(struct kernel *kernel); /* NULL is fine */

/* kernel_code_is_plain() - kernel_rewrite() leaves everything as it is. */
bool kernel_code_is_plain(const struct kernel *kernel);

/* kernel_rewrite() - turn @insn into what it stands for; most stay as they are. */
void kernel_rewrite(const struct kernel *kernel, struct insn *insn);

#endif
