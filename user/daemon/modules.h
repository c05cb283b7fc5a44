/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_MODULES_H
#define DAEMON_MODULES_H

/*
 * Files behind mappings: opened through the opener, identified by the worker, announced
 * as MODULE events, kept open (a bounded number) for the jobs to come, and their debug
 * information found. Nothing here reads a byte of them.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "daemon/jobs.h"
#include "daemon/opener.h"
#include "live/live.h"

#define MODULES_MAX	     16384
#define MODULES_MAX_OPEN     256 /* modules whose descriptors are held, up to 3 each */
#define MODULES_MAX_IDENTIFY 128 /* identify jobs in flight; more wait */
#define MODULES_MAX_KMODS    2048
#define MODULES_MAX_TEXT     (32 * 1024 * 1024) /* of kallsyms */

/**
 * struct modules_config - copied; pointers are borrowed for the life of the object.
 * @feed: MODULE events.
 * @sink: FACT_MODULE with @debug once the search has ended.
 * @opened: a file of this module was opened, the module may be known already; @fd is
 *	borrowed. NULL: of no interest.
 * @kept_folder: what workers find out about code is kept there (job/kept.h).
 * @debuginfod_urls: space separated; NULL or "": never ask the network.
 */
struct modules_config {
	const struct opener *opener;
	const struct job_source *jobs;
	struct sink *sink;
	feed_fn feed;
	void (*opened)(void *ctx, uint64_t module_id, int fd);
	void *ctx;
	const char *debuginfod_urls;
	const char *kept_folder; /* NULL: nothing is kept */
	uint64_t kept_bytes;	 /* of that folder */
};

struct modules;
struct modules *modules_new(const struct modules_config *config);
void modules_free(struct modules *modules); /* NULL is fine; before the workers go */
CLEANUP_DEFINE(modules_free, struct modules *)

/* modules_want() - live_ops.want_module; the MODULE event follows now or later. */
void modules_want(struct modules *modules, const struct live_file *file);

/**
 * modules_kernel() - feed the kernel, its modules and the vdso; again after a module
 * was loaded. What cannot be read is left out; the first error is returned to be
 * logged ("kernel: /proc/kallsyms shows no addresses...").
 */
struct err *modules_kernel(struct modules *modules);

/**
 * modules_open() - make @module_id known to the worker of @class, unless it knows it.
 * Errors: ERR_NOT_FOUND: no such module, or its file cannot be opened any more;
 * ERR_BUSY: its debug information is still being looked for, or there is no worker:
 * try again later.
 */
struct err *modules_open(struct modules *modules, uint64_t module_id,
			 enum job_class class);

/* modules_kept_folder() - for struct modules_config, as settings have it; allocated, NULL
 * for none. */
struct config;
char *modules_kept_folder(const struct config *config);

/* modules_kept() - a reply about types came from the worker; what it has to keep is
 * saved some time later, at the latest by modules_free(). */
void modules_kept(struct modules *modules, uint64_t module_id,
		  const struct job_reply *reply);

/* modules_open_code() - the same for unwinding by JOB_RESOLVE: needs the file itself
 * only, so it does not wait for the search for debug information. */
struct err *modules_open_code(struct modules *modules, uint64_t module_id);

/* modules_forget() - the worker of @class said ERR_NOT_FOUND for a module it knew. */
void modules_forget(struct modules *modules, uint64_t module_id, enum job_class class);

/* modules_worker_died() - the worker of @class is gone; the next one knows nothing. */
void modules_worker_died(struct modules *modules, enum job_class class);

/* modules_pump() - start what waits for a worker; call once per second and after a
 * worker was spawned. */
void modules_pump(struct modules *modules);

/* modules_fds() - files of a module for a job elsewhere (analyze by path); borrowed.
 * Return false when they are not held. -1 for what there is not. */
bool modules_fds(struct modules *modules, uint64_t module_id, int *ret_main,
		 int *ret_debug, int *ret_alt);

/* modules_reset_debug() - look again for missing debug information (SIGHUP: somebody
 * installed a -dbgsym package). */
void modules_reset_debug(struct modules *modules);

struct modules_stats {
	size_t known, open, waiting, without_debug;
};
void modules_stats(const struct modules *modules, struct modules_stats *ret_stats);

#endif
