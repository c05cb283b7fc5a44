/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_OPTIONS_H
#define DAEMON_OPTIONS_H

/* The command line of assayd: what the unit, and `assay attach` for one process, say. */

#include <stdbool.h>

#include "daemon/config.h"

struct options {
	struct config config;
	const char *config_path; /* NULL: none was named and the default does not exist */
	bool oneshot;	    /* no control socket; ends by itself, explains everything */
	uint64_t for_ns;    /* oneshot: how long to sample; 0 until told to stop */
	const char *record; /* stream file to write, NULL none */
	const char *replay; /* stream file to read back instead of sampling, NULL none */
	const char *symfs;  /* folder in which a replay looks for files; NULL: / */
	const char *pidfile;
	int ready_fd; /* "ready RUN_ID\n" goes there once sampling is live; -1 none */
	bool print_config;
};

/* options_parse() - exits by itself for --help, --version and usage errors (status 2). */
struct err *options_parse(int argc, char **argv, struct options *ret_options);
/* options_ready() - tell --ready-fd, if there is one, that run @run_id has begun. */
struct err *options_ready(const struct options *options, uint64_t run_id);
void options_fini(struct options *options);

static inline void cleanup_options_fini(struct options *options)
{
	options_fini(options);
}

#endif
