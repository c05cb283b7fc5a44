/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_ATTACH_H
#define PROBE_ATTACH_H

/*
 * Probes onto files: the privileged half, in the broker. A probe belongs to an inode, so
 * two copies of a library are two attachments, and a file that a package upgrade
 * replaced is a new one. Links are never pinned: they end with this process, however it
 * ends, and the kernel puts the original instruction back.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "probe/loader.h"

#define ATTACH_MAX_POINTS 512 /* per attachment */

struct attach_point {
	uint64_t offset;	/* in the file, of the first byte of an instruction */
	uint64_t semaphore_off; /* USDT: in the file, counted up meanwhile; 0 none */
	uint32_t slot;
};

struct attach_request {
	int file_fd;	/* what it names is probed; the caller's */
	uint32_t pid;	/* of one process, 0: all that map the file, also later */
	bool is_return; /* uretprobes: an exception that crosses one kills the target */
	const struct attach_point *points;
	size_t count;
};

struct attachment;

/**
 * attach_open() - all points or none.
 * One uprobe_multi link where the kernel has them (6.6), else a perf event per point,
 * which takes about 0.1 s each to remove.
 * Errors: ERR_PERMISSION, ERR_INVALID for an offset outside of executable code,
 * ERR_LIMIT.
 */
struct err *attach_open(const struct loader *loader, const struct attach_request *request,
			struct attachment **ret_attachment);
/* attach_pause() - off, or on again at the same places; on the second time changes nothing.
 * Errors: as attach_open(). */
struct err *attach_pause(struct attachment *attachment, bool pause);
/* attach_close() - returns when no program of ours runs there any more; NULL is fine. */
void attach_close(struct attachment *attachment);
CLEANUP_DEFINE(attach_close, struct attachment *)
/* attach_close_by() - the same without waiting for those that are in a probe right now. */
struct closer;
void attach_close_by(struct attachment *attachment, struct closer *closer);

#endif
