/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_SNAPSHOT_H
#define DAEMON_SNAPSHOT_H

/*
 * Processes that were there before us, or whose records were lost: /proc/PID read
 * through the opener and turned into the events that the kernel would have sent,
 * TASK_SEEN and one MMAP (with ABI_MMAP_SNAPSHOT) per executable mapping.
 */

#include <stdbool.h>

#include "core/cleanup.h"
#include "core/vec.h"
#include "daemon/jobs.h"
#include "daemon/opener.h"

#define SNAPSHOT_MAX_MAPS_BYTES	    (16 * 1024 * 1024) /* of one /proc/PID/maps */
#define SNAPSHOT_MAX_MAPPINGS	    65536	       /* executable ones, per process */
#define SNAPSHOT_MAX_PROCESSES	    65536
#define SNAPSHOT_MAX_CHILDREN_BYTES (1024 * 1024)
#define SNAPSHOT_MAX_SERVICES	    8192 /* cached cgroup names */

/**
 * struct snapshot_config - copied by snapshot_new().
 * @opener: borrowed for the life of the snapshot.
 * @feed: called for every event while a snapshot_*() function runs.
 * @cgroup_root: where cgroup v2 is mounted ("/sys/fs/cgroup"), for cgroup ids; NULL:
 *	cgroup_id stays 0. See snapshot_cgroup_root().
 */
struct snapshot_config {
	const struct opener *opener;
	feed_fn feed;
	void *ctx;
	const char *cgroup_root;
};

struct snapshot_pid {
	uint32_t pid;
	uint64_t start_ns;
};
struct snapshot_pids {
	VEC(struct snapshot_pid) list;
};

struct snapshot;
struct snapshot *snapshot_new(const struct snapshot_config *config);
void snapshot_free(struct snapshot *snapshot); /* NULL is fine */
CLEANUP_DEFINE(snapshot_free, struct snapshot *)

/**
 * snapshot_process() - feed one process. live_ops.want_process.
 * @start_ns: 0, or the process must have started then.
 * @ret_start_ns: may be NULL.
 * A zombie leader is read through one of its living threads. Kernel threads are fed
 * without mappings.
 * Errors: ERR_NOT_FOUND when it is gone or another one; ERR_PERMISSION; ERR_LIMIT when
 * maps is too large (what fits was fed).
 */
struct err *snapshot_process(struct snapshot *snapshot, uint32_t pid, uint64_t start_ns,
			     uint64_t *ret_start_ns);

/**
 * snapshot_tree() - feed @pid and all that descend from it.
 * @pids: appended to, parents before children; the caller vec_fini()s the list.
 * A child forked while we walk is found by its fork record: set the kernel's filter to
 * @pid before this call and to the whole list after it.
 */
struct err *snapshot_tree(struct snapshot *snapshot, uint32_t pid,
			  struct snapshot_pids *pids);

/* snapshot_all() - feed every process of the machine; those that go meanwhile are no
 * error. */
struct err *snapshot_all(struct snapshot *snapshot, struct snapshot_pids *pids);

/**
 * snapshot_service() - the systemd unit of a cgroup, for live_ops.service.
 * @cgroup_id: cache key; the name is read once from /proc/@pid/cgroup. 0: not cached.
 * Return: "nginx.service", a scope, or the last part of the cgroup's path; "" unknown.
 * Valid until the next call.
 */
const char *snapshot_service(struct snapshot *snapshot, uint32_t pid, uint64_t cgroup_id);

/* snapshot_cgroup_root() - mount point of cgroup v2 from /proc/self/mounts, allocated;
 * NULL when there is none. */
char *snapshot_cgroup_root(void);

/* The parsers, apart from /proc; for tests and for attach by service. */

struct snapshot_stat {
	char comm[16];
	char state; /* R S D Z ... */
	uint32_t ppid;
	uint32_t flags; /* PF_*: 0x200000 is a kernel thread */
	uint64_t start_ns;
};
/* snapshot_parse_stat() - one line of /proc/PID/stat; comm may hold anything. */
bool snapshot_parse_stat(const char *text, struct snapshot_stat *ret_stat);

struct snapshot_map {
	uint64_t start, end, pgoff, inode;
	uint32_t dev_major, dev_minor;
	bool executable, deleted;
	const char *path; /* unescaped, in the caller's buffer; "" for anonymous */
};
/* snapshot_parse_map() - one line of /proc/PID/maps, which is changed in place. */
bool snapshot_parse_map(char *line, struct snapshot_map *ret_map);

/* snapshot_unit() - the unit that a cgroup path belongs to; @unit has @room bytes. */
void snapshot_unit(const char *cgroup_path, char *unit, size_t room);

#endif
