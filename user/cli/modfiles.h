/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_MODFILES_H
#define CLI_MODFILES_H

/* A binary and the files with its debug information, opened and identified. */

#include "core/cleanup.h"
#include "job/job.h"

struct modfiles {
	int main_fd, debug_fd, alt_fd; /* -1: none */
	struct build_id build_id;
	bool has_dwarf;	  /* in the file itself or in a separate one */
	char *debug_path; /* of the separate one; "debuginfod"; NULL */
};

/**
 * modfiles_open() - open @path, let @worker identify it, look for its debug file and for
 * the dwz file that this refers to; at last ask DEBUGINFOD_URLS when that is set.
 * Without any debug information it is no error: @has_dwarf is false.
 * Errors: the file's own; ERR_FORMAT when it is no ELF file.
 */
struct err *modfiles_open(struct job_client *worker, const char *path,
			  struct modfiles *ret_files);
void modfiles_close(struct modfiles *files);
static inline void cleanup_modfiles_close(struct modfiles *files)
{
	modfiles_close(files);
}

#endif
