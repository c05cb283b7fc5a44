/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_MODULES_IMPL_H
#define DAEMON_MODULES_IMPL_H

/* The state of struct modules, shared by modules.c (files and what waits), debuginfo.c
 * (the search for debug information) and kernel.c. Nobody else includes this. */

#include "core/map.h"
#include "core/vec.h"
#include "daemon/flight.h"
#include "daemon/modules.h"
#include "job/debugfile.h"
#include "job/kept.h"

enum debug_state { DEBUG_SEARCHING, DEBUG_DONE };

enum held_fd { HELD_MAIN, HELD_DEBUG, HELD_ALT, HELD_FDS };

/* How to open a file again: the request that succeeded, and what it must then be. */
struct origin {
	struct open_request request;
	char *path; /* owned; request.path */
	uint64_t inode, size, mtime_ns;
};

/* One identified module. */
struct held {
	uint64_t module_id;
	enum module_kind kind;
	struct build_id build_id;
	char *path;
	uint32_t pid; /* whose root the path was seen in */
	uint64_t start_ns;
	int fd[HELD_FDS];
	struct origin origin[HELD_FDS]; /* what 0: none */
	uint64_t slide;			/* kernel and its modules */
	bool uses_kallsyms;
	bool known[JOB_FETCH]; /* by the worker of that class */
	struct kept *kept;     /* NULL: nothing is kept */
	uint64_t saved_ns;     /* when, the last time */
	uint64_t used;	       /* for LRU */

	/* from identify, for the search */
	bool has_dwarf;
	char *debuglink, *altlink;
	uint32_t debuglink_crc;
	struct build_id altlink_id;
	enum debug_state state;
	bool without_debug;
	char *debug; /* FACT_MODULE.debug */
	struct debugfile_paths candidates;
	size_t candidate;
	bool fetched; /* debuginfod was asked */
};

/* A file to be identified: opened and with the worker, or still to be opened. */
struct ask {
	uint64_t key;
	struct live_file file; /* file.path is owned */
	unsigned tries;
};

/* The context of a job in flight. */
struct errand {
	struct flight flight;
	struct ask ask;	    /* identify of a new file */
	uint64_t module_id; /* ... of a candidate for this module */
	enum held_fd which; /* ... as this file */
	int fd;
	struct origin origin;
	enum module_kind kind;
};

struct modules {
	struct modules_config config;
	struct map *held; /* module id -> struct held * */
	VEC(struct ask) asks;
	size_t flying;		 /* identify jobs of new files */
	VEC(uint64_t) searching; /* module ids whose search waits for a worker */
	struct flights flights;
	int vdso_fd; /* waits for a worker; -1 */
	uint64_t vdso_key;
	size_t open;	/* held modules with a main fd */
	uint64_t clock; /* for LRU */
};

struct errand *errand_new(struct modules *modules);
void errand_free(struct errand *errand);

/* held.c */
struct held *held_find(struct modules *modules, uint64_t module_id);
/* held_add() - NULL when MODULES_MAX is reached; an existing one is returned as is,
 * *ret_new tells. */
struct held *held_add(struct modules *modules, uint64_t module_id, bool *ret_new);
void held_free(struct modules *modules, struct held *held);
/* held_keep() - take @fd and @origin as the module's file @which. */
void held_keep(struct modules *modules, struct held *held, enum held_fd which, int *fd,
	       struct origin *origin);
void origin_fini(struct origin *origin);
/* origin_open() - open @request and note what it was. */
struct err *origin_open(struct modules *modules, const struct open_request *request,
			int *ret_fd, struct origin *ret_origin);

/* debuginfo.c */
void debuginfo_search(struct modules *modules, struct held *held);
void debuginfo_resume(struct modules *modules, struct held *held);

/* modules_identify_vdso() - for kernel.c; takes @fd, the MODULE event follows. */
void modules_identify_vdso(struct modules *modules, int *fd, uint64_t key);

#endif
