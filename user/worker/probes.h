/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_PROBES_H
#define WORKER_PROBES_H

/* The job PROBES; see job/resolve.h. */

#include "bin/frame.h"
#include "core/arena.h"
#include "job/resolve.h"
#include "worker/table.h"

/**
 * probes_find() - what cannot be found is a failure in the reply, not an error.
 * @frames: may be NULL. The reply lives in @arena and borrows strings from @elf.
 * Errors: ERR_UNSUPPORTED for a machine whose code is not understood, ERR_FORMAT.
 */
struct err *probes_find(const struct module_elf *elf, struct frame_table *frames,
			const struct resolve_request *request, struct arena *arena,
			struct resolve_reply *ret_reply);

#endif
