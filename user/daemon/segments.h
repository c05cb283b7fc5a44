/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SEGMENTS_H
#define DAEMON_SEGMENTS_H

/*
 * The broker's policy for probes: where in a file one may be, for a daemon that may have
 * been taken over.
 */

#include <stddef.h>

#include "core/err.h"
#include "probe/attach.h"

#define SEGMENTS_MAX 64 /* program headers; more are refused */

/**
 * segments_check() - is @fd an ELF file of this machine's kind, every offset inside what
 * it maps as executable, and every semaphore inside what it maps as writable?
 * Errors: ERR_INVALID says which is not.
 */
struct err *segments_check(int fd, const struct attach_point *points, size_t count);

#endif
