/* SPDX-License-Identifier: Apache-2.0 */
#ifndef WORKER_SANDBOX_H
#define WORKER_SANDBOX_H

/*
 * worker/ - the program that parses foreign files. Before it reads a byte it gives up
 * its user, its rights, its memory beyond a limit and all system calls but a few.
 * It knows no pid, opens no path and has no clock but its own CPU time.
 */

#include <stdint.h>

#include "core/err.h"
#include "job/job.h"

#define SANDBOX_UID	   65534 /* nobody */
#define SANDBOX_GID	   65534
#define SANDBOX_MAX_FDS	   4352
#define SANDBOX_FETCH_FILE (4ull << 30) /* RLIMIT_FSIZE of JOB_FETCH; 0 for the others */

/**
 * sandbox_enter() - no way back.
 * Root becomes nobody; who is not root stays who he is. JOB_FETCH keeps the network and
 * may write files: it is held by its user, rlimits and a list of forbidden calls.
 * The others may call nothing but what an allow list names; the rest gives EPERM.
 */
struct err *sandbox_enter(enum job_class class, uint64_t memory_bytes);

/* sandbox_allow_cpu() - SIGXCPU after @seconds of CPU from now. */
void sandbox_allow_cpu(uint32_t seconds);

/* sandbox_cpu_ns() - used by this process so far. */
uint64_t sandbox_cpu_ns(void);

#endif
