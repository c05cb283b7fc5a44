/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JOB_DEBUGFILE_H
#define JOB_DEBUGFILE_H

/*
 * Where the separate debug information of a file may lie, and whether what was found
 * there belongs to it. Nothing is opened or parsed here: who may open files tries the
 * candidates in order and has each identified by the worker.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"
#include "core/str.h"
#include "model/ids.h"

#define DEBUGFILE_MAX_PATHS 24
#define DEBUGFILE_MAX_BYTES (8ull << 30)
#define DEBUGFILE_ROOT	    "/usr/lib/debug"

/* What is known of a file; names are "" and ids NULL or empty where it has none. */
struct debugfile_query {
	const char *root; /* "" for this system, else like "/proc/PID/root" */
	const char *path; /* of the file, as seen below @root; absolute */
	const struct build_id *id;
	const char *debuglink; /* a file name; one with a '/' is ignored */
	const char *altlink;   /* dwz: relative to the debug file, or absolute */
	const struct build_id *altlink_id;
	const char *debug_path; /* of the debug file that has @altlink, below @root */
};

struct debugfile_paths {
	char *path[DEBUGFILE_MAX_PATHS]; /* best first, each once */
	size_t count;
};

void debugfile_paths_fini(struct debugfile_paths *paths);
static inline void cleanup_debugfile_paths_fini(struct debugfile_paths *paths)
{
	debugfile_paths_fini(paths);
}

/**
 * debugfile_candidates() - for the debug file itself.
 * By build-id; then by .gnu_debuglink beside the file, in .debug/ and below
 * /usr/lib/debug/DIR. Each below @root first, then, by build-id only, on this system,
 * where the same build's debug package may be installed.
 */
void debugfile_candidates(const struct debugfile_query *query,
			  struct debugfile_paths *ret_paths);

/* debugfile_alt_candidates() - for the dwz file that the debug file refers to. */
void debugfile_alt_candidates(const struct debugfile_query *query,
			      struct debugfile_paths *ret_paths);

/* debugfile_matches() - equal build-ids; the candidate's comes from job_identify(). */
bool debugfile_matches(const struct build_id *want, const struct build_id *found);

/**
 * debugfile_check_crc() - for files without a build-id: the checksum of all of @fd
 * against .gnu_debuglink's.
 * Errors: ERR_NOT_FOUND when it is another build's, ERR_IO, ERR_LIMIT.
 */
struct err *debugfile_check_crc(int fd, uint32_t debuglink_crc);

/* debugfile_crc() - of bytes, as .gnu_debuglink wants it; begin with 0. */
uint32_t debugfile_crc(uint32_t crc, const void *bytes, size_t count);

/**
 * debugfile_advice() - the one sentence for a file without debug information.
 * @package: the package that owns the file, NULL when unknown. Allocated.
 */
char *debugfile_advice(const char *path, const struct build_id *id, const char *package);

#endif
