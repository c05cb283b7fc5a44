/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TARGET_H
#define CLI_TARGET_H

/* What people call a process: a pid, a name, or a word of assayd's like service:nginx. */

#include "core/err.h"

#define TARGET_MAX_MATCHES 4096

/**
 * target_find() - a word to what assayd's --target takes.
 * @proc: "/proc"; another folder of that shape in tests.
 * @word: PID, NAME (its comm, or the file name of its program), or all, pid:N,
 *	cgroup:PATH, service:NAME.
 * A NAME that several processes have is fine when one of them is the ancestor of all
 * others: its children are sampled with it.
 * @ret_target: "pid:1234"; @ret_label: "redis-server (pid 1234)". Both allocated.
 * Errors: ERR_NOT_FOUND; ERR_INVALID (several; the text lists them; a kernel thread).
 */
struct err *target_find(const char *proc, const char *word, char **ret_target,
			char **ret_label);

#endif
