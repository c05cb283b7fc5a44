/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_BINDINGS_H
#define DAEMON_BINDINGS_H

/*
 * Spec files to the modules that turn up: which variant does for which file. The worker
 * finds the places, probes/ attaches them.
 */

#include <stdbool.h>

#include "core/cleanup.h"
#include "daemon/jobs.h"
#include "daemon/modules.h"
#include "daemon/probes.h"

#define BINDINGS_SHIPPED     "/usr/share/assay/spec.d"
#define BINDINGS_OWN	     "/etc/assay/spec.d"
#define BINDINGS_MAX_SPECS   256
#define BINDINGS_MAX_WAITING 4096

/* Copied; pointers are borrowed for the life of the object. */
struct bindings_config {
	const struct job_source *jobs;
	struct modules *modules;
	struct probes *probes;
};

/* bindings_any() - is there any spec file at all? */
bool bindings_any(void);

struct bindings;
/* bindings_new() - read the spec files of $ASSAY_SPEC_PATH or the two folders above; one
 * with errors is logged and left out. */
struct bindings *bindings_new(const struct bindings_config *config);
void bindings_free(struct bindings *bindings); /* NULL is fine; before modules, probes */
CLEANUP_DEFINE(bindings_free, struct bindings *)

/* bindings_wants() - a spec may be about a file of this path: identify it at once. */
bool bindings_wants(const struct bindings *bindings, const char *path);

/* bindings_note() - a fact passes on its way to the store: MODULE is what counts. */
void bindings_note(struct bindings *bindings, const struct fact *fact);

/**
 * bindings_file() - a file of @module_id turned up as @file_fd, the caller's: what is bound
 * to the module is attached to this inode too, unless it is already.
 */
void bindings_file(struct bindings *bindings, uint64_t module_id, int file_fd);
/* bindings_has() - is anything bound to the module? */
bool bindings_has(const struct bindings *bindings, uint64_t module_id);

/* bindings_pump() - ask the worker about what waits; every 100 ms. */
void bindings_pump(struct bindings *bindings);

#endif
