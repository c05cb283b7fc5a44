/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_TASK_H
#define LIVE_TASK_H

/*
 * Processes by (pid, start time). A pid that comes back is another process; the earlier
 * generations are kept behind it until their grace is over, so that late samples still
 * find the address space they were taken in. Threads need no entry: every record
 * names its thread group.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "live/procmap.h"

struct process {
	uint32_t pid;
	uint64_t start_ns; /* 0: only perf's side-band has named it so far */
	uint32_t parent_pid;
	uint64_t parent_start_ns, parent_id, cgroup_id;
	uint32_t uid;
	char comm[ABI_COMM_BYTES + 1];
	uint64_t first_ns;    /* earliest record */
	uint64_t last_ns;     /* latest record */
	uint64_t exec_ns;     /* latest exec; 0 none seen */
	uint64_t exit_ns;     /* 0: lives */
	bool leader_gone;     /* the leader has exited; others may go on */
	bool known;	      /* announced by FORK or SEEN, not guessed from a sample */
	bool charged;	      /* its FACT_PROCESS was put; keep it current */
	bool due;	      /* its FACT_PROCESS is to be put at the next flush */
	uint64_t put_exit_ns; /* @exit_ns when it was put last */
	bool files_asked;     /* every file of the map was asked for */
	uint32_t asked;	      /* how often want_process was called */
	uint64_t asked_ns;
	uint64_t exe_key;
	struct procmap *map;
	struct process *older; /* an earlier owner of the pid */
};

struct tasks;

struct tasks *tasks_new(size_t limit);
void tasks_free(struct tasks *tasks);

/**
 * tasks_find() - the process of a record.
 * @start_ns: 0 when the record does not know: the generation of @time_ns is meant.
 * A generation that was known without its start time gets it here.
 * Return: NULL when there is none.
 */
struct process *tasks_find(struct tasks *tasks, uint32_t pid, uint64_t start_ns,
			   uint64_t time_ns);

/* tasks_put() - find or create; NULL when the table is full. A new generation with a
 * known start ends the earlier ones at @time_ns. */
struct process *tasks_put(struct tasks *tasks, uint32_t pid, uint64_t start_ns,
			  uint64_t time_ns);

/* tasks_reap() - drop those that exited before @before_ns, and those that were neither
 * announced nor charged and not heard of since; @gone sees each first. */
typedef void (*tasks_fn)(void *ctx, struct process *process);
void tasks_reap(struct tasks *tasks, uint64_t before_ns, tasks_fn gone, void *ctx);

/* tasks_reap_idle() - likewise those that nothing was heard of since @before_ns. */
void tasks_reap_idle(struct tasks *tasks, uint64_t before_ns, tasks_fn gone, void *ctx);

void tasks_each(const struct tasks *tasks, tasks_fn each, void *ctx);
size_t tasks_count(const struct tasks *tasks);

/* task_may_ask() - whether to ask for @process now: at once, then after 1, 4, 16... s. */
bool task_may_ask(struct process *process, uint64_t now_ns);

#endif
