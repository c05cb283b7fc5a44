/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JOB_KEPT_H
#define JOB_KEPT_H

/*
 * What workers found out about the compilation units of a module, kept in one file per
 * module and handed to the next worker, so that a rebuilt program costs what changed in
 * it. The client opens, collects and replaces the file (core/pack.h: entries with a hash
 * each); what is in the entries only the worker knows, and it takes them for hostile.
 *
 * The file is named by where the module lies, its device and its owner, not by what it
 * contains: builds follow each other under one name. A worker that a hostile module has
 * taken over can thus spoil what is kept of modules at its own place only. Entries bear
 * the version of the worker that made them: another one starts anew.
 *
 * Several users at a time are safe: a file is replaced whole, the last one stays, and
 * what another one had added is found out again some time.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "job/job.h"

#define KEPT_SUFFIX ".units"

struct kept;

/**
 * kept_open() - of the module at @path, open as @main_fd; no file yet is no error.
 * A file that is another user's, or that others may write, is left alone and not used.
 */
struct kept *kept_open(const char *folder, const char *path, int main_fd);
void kept_free(struct kept *kept); /* NULL is fine; what was not saved is lost */
CLEANUP_DEFINE(kept_free, struct kept *)

int kept_fd(const struct kept *kept); /* for job_open.pack_fd; -1: nothing yet */
/* kept_take() - what a reply has to keep, if anything. */
void kept_take(struct kept *kept, const struct job_reply *reply);
/* kept_save() - write what was taken since the last time, then evict by cache_evict().
 * What the workers do not replace stays, up to PACK_MAX_BYTES. Errors: ERR_IO. */
struct err *kept_save(struct kept *kept, uint64_t max_bytes);

#endif
