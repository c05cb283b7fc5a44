/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_OPENER_H
#define DAEMON_OPENER_H

/*
 * What the daemon may not open itself, named by meaning and never by an arbitrary path
 * of the host. The broker builds the path, opens it read-only and hands the fd over;
 * in tests an opener serves prepared files.
 *
 * All of these are checked by the kernel when they are opened, not when they are
 * read, so an unprivileged reader of the fd sees everything. Two exceptions: files
 * that fail at open only when the process has gone (ESRCH at read), and the listing of
 * OPEN_PROC_DIR, which a hidepid= mount shortens for the daemon.
 */

#include <stdint.h>

#include "core/err.h"

enum open_what {
	OPEN_STAT = 1, /* /proc/PID/stat */
	OPEN_STATUS,   /* /proc/PID/status */
	OPEN_COMM,     /* /proc/PID/comm */
	OPEN_CGROUP,   /* /proc/PID/cgroup */
	OPEN_MAPS,     /* /proc/PID/maps */
	OPEN_TASK_DIR, /* /proc/PID/task, a directory */
	OPEN_CHILDREN, /* /proc/PID/task/TID/children; TID is @start */
	OPEN_PROC_DIR, /* /proc, a directory; no pid */

	OPEN_EXE,	/* /proc/PID/exe */
	OPEN_MAP_FILE,	/* /proc/PID/map_files/START-END, lower-case hex */
	OPEN_ROOT_PATH, /* /proc/PID/root + @path, resolved inside that root */

	OPEN_KALLSYMS,	   /* /proc/kallsyms with addresses */
	OPEN_KERNEL_NOTES, /* /sys/kernel/notes */
	OPEN_MODULES,	   /* /proc/modules with addresses */
	OPEN_KMOD_NOTES,   /* /sys/module/@path/notes/.note.gnu.build-id */
	OPEN_KMOD_FILE,	   /* below /lib/modules/RELEASE/: @path is relative to it */
	OPEN_DEBUG_PATH,   /* host path @path: below /usr/lib/debug or /boot only */
	OPENS,
};

/**
 * struct open_request - one file.
 * @pid: of the /proc entries, else 0.
 * @start_ns: as in abi_head; not 0: the opener checks it *after* opening, from
 *	/proc/PID/stat, so that a pid that came back is ERR_NOT_FOUND.
 * @start, @end: OPEN_MAP_FILE the mapping, OPEN_CHILDREN the thread in @start.
 * @path: see above; absolute for OPEN_ROOT_PATH and OPEN_DEBUG_PATH, never with "..";
 *	"" or NULL otherwise. At most ABI_PATH_MAX bytes.
 */
struct open_request {
	enum open_what what;
	uint32_t pid;
	uint64_t start_ns;
	uint64_t start, end;
	const char *path;
};

/**
 * struct opener - who opens.
 * @open: blocks for as long as one open(2) takes. O_RDONLY | O_CLOEXEC | O_NONBLOCK;
 *	regular files, /proc and /sys entries and the two directories only.
 *	Errors: ERR_NOT_FOUND (also: the process is gone), ERR_PERMISSION, ERR_IO,
 *	ERR_CLOSED when the broker is gone. @ret_fd is the caller's.
 */
struct opener {
	struct err *(*open)(void *ctx, const struct open_request *request, int *ret_fd);
	void *ctx;
};

static inline struct err *opener_open(const struct opener *opener,
				      const struct open_request *request, int *ret_fd)
{
	return opener->open(opener->ctx, request, ret_fd);
}

#endif
