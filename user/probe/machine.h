/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_MACHINE_H
#define PROBE_MACHINE_H

/* What `assay doctor` asks this machine: one row per thing that we need or could use. */

#include <stddef.h>

#include "core/cleanup.h"
#include "core/err.h"

enum machine_state { MACHINE_OK, MACHINE_WARN, MACHINE_FAIL };

struct machine_row {
	const char *name; /* "kernel", "BTF", "source ibs" */
	enum machine_state state;
	char value[128];
	char advice[256]; /* what to do; "" when there is nothing */
};

#define MACHINE_MAX_ROWS 40

struct machine_report {
	struct machine_row rows[MACHINE_MAX_ROWS];
	size_t count;
};

/* machine_state_name() - "ok", "warn", "fail". */
const char *machine_state_name(enum machine_state state);

/**
 * machine_examine() - ask the running kernel. Loads tiny programs and opens events for a
 * moment; changes nothing. Works without privileges too and then says what it lacks.
 * Return: the worst state; MACHINE_FAIL means that attaching cannot work.
 */
enum machine_state machine_examine(struct machine_report *ret_report);

/* machine_require() - NULL when loader_open() has a chance, else the first row that
 * fails as an error with its advice. */
struct err *machine_require(void);

#endif
