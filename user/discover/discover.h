/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DISCOVER_DISCOVER_H
#define DISCOVER_DISCOVER_H

/*
 * discover/ - which resources a program defines for itself, and by which functions it
 * waits for, acquires, uses and releases them: gigiprofiler's four events (OSDI '26,
 * section 3) from the binary alone. Names propose (words.h); the machine code must then
 * agree (verify.h), or the candidate loses:
 *
 *	WAIT	a call that can block lies on a path that not every call takes
 *	ACQUIRE	what was got flows to the result, or into memory where it is found again
 *	USE	memory behind the operand is accessed
 *	RELEASE	memory behind the operand changes or it is handed to another release, and
 *		callers do not touch it afterwards
 *
 * Works on .dynsym alone; more symbols give more candidates.
 */

#include <stddef.h>
#include <stdint.h>

#include "bin/elf.h"
#include "bin/frame.h"
#include "core/err.h"
#include "model/candidate.h"

#define DISCOVER_MAX_FUNCTIONS	(1u << 20)
#define DISCOVER_MAX_CANDIDATES 16384

struct discover_files {
	const struct elf_file *main, *debug; /* debug: NULL none */
	struct frame_table *frames;	     /* NULL: none */
};

struct discover_ops {
	void (*candidate)(void *ctx,
			  const struct event_candidate *candidate); /* borrowed */
	/* Now and then, and at the end while strings still live; an error ends it and is
	 * returned. NULL: nobody cares. */
	struct err *(*progress)(void *ctx, size_t done, size_t total);
};

/**
 * discover_run() - all candidates, the most certain first.
 * Errors: ERR_UNSUPPORTED (architecture), ERR_LIMIT, ERR_NOT_FOUND without a symbol.
 */
struct err *discover_run(const struct discover_files *files,
			 const struct discover_ops *ops, void *ctx);

#endif
