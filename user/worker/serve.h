/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_SERVE_H
#define WORKER_SERVE_H

/* The loop: one request after the other until the client hangs up. */

#include <stdint.h>

#include "core/err.h"
#include "job/job.h"

struct serve_options {
	enum job_class class;
	uint64_t memory_bytes;
	uint32_t cpu_seconds; /* per job */
	uint64_t version;     /* of this program: what is kept bears it */
};

/* serve_catch_limits() - before the sandbox: the end of a job over its limits is told. */
void serve_catch_limits(void);

/* serve() - inside the sandbox; takes @fd. NULL when the client hung up. */
struct err *serve(int fd, const struct serve_options *options);

#endif
