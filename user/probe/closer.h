/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_CLOSER_H
#define PROBE_CLOSER_H

/*
 * Closes the links of uprobes without waiting. The kernel takes the probes out at once,
 * but close() returns only when nobody is in one any more: seconds, where a function with
 * a return probe is called all the time. Each close is a thread of its own, so that none
 * waits behind another.
 */

#include "core/cleanup.h"

#define CLOSER_MAX 256 /* under way; what is beyond is closed at once and waited for */

struct closer;

struct closer *closer_new(void);
/* closer_free() - waits until all is closed. NULL is fine. */
void closer_free(struct closer *closer);
CLEANUP_DEFINE(closer_free, struct closer *)

void closer_close(struct closer *closer, int fd); /* takes @fd */

#endif
