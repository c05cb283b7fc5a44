// SPDX-License-Identifier: Apache-2.0
/*
 * /proc read once, as text. Lines of maps are "start-end perms off maj:min inode path",
 * the path with newlines escaped as \012 and " (deleted)" behind it; stat has the name
 * in parentheses, which may itself hold any character, so it is parsed from the end.
 */
#include "daemon/snapshot.h"

#include <ctype.h>
#include <dirent.h>
#include <inttypes.h>
#include <stdio.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/str.h"
#include "event/event.h"

#define SMALL_BYTES 65536 /* stat, status, cgroup */
#define PF_KTHREAD  0x00200000u
#define DELETED	    " (deleted)"
#define UNIT_BYTES  256

struct snapshot {
	struct snapshot_config config;
	char *cgroup_root;
	struct map *services; /* cgroup id -> char * */
	char unit[UNIT_BYTES];
};

struct snapshot *snapshot_new(const struct snapshot_config *config)
{
	struct snapshot *snapshot = mem_alloc(sizeof(*snapshot));

	snapshot->config = *config;
	snapshot->cgroup_root = mem_strdup(config->cgroup_root);
	snapshot->services = map_new(sizeof(uint64_t), sizeof(char *));
	return snapshot;
}

static void clear_services(struct snapshot *snapshot)
{
	size_t pos = 0;
	char **name;

	while ((name = map_next(snapshot->services, &pos, NULL)))
		free(*name);
	map_clear(snapshot->services);
}

void snapshot_free(struct snapshot *snapshot)
{
	if (!snapshot)
		return;
	clear_services(snapshot);
	map_free(snapshot->services);
	free(snapshot->cgroup_root);
	free(snapshot);
}

/* Parsers. */

static bool copy_comm(const char *open, const char *close, char *comm)
{
	size_t length = (size_t)(close - open - 1);

	memset(comm, 0, ABI_COMM_BYTES);
	memcpy(comm, open + 1, length < ABI_COMM_BYTES ? length : ABI_COMM_BYTES - 1);
	return true;
}

bool snapshot_parse_stat(const char *text, struct snapshot_stat *ret_stat)
{
	const char *open = strchr(text, '('), *close = strrchr(text, ')');
	struct snapshot_stat stat = { 0 };
	uint64_t ticks;

	if (!open || !close || close < open)
		return false;
	copy_comm(open, close, stat.comm);
	/* state ppid pgrp session tty tpgid flags, twelve more, starttime (field 22) */
	if (sscanf(close + 1,
		   " %c %" SCNu32 " %*d %*d %*d %*d %" SCNu32
		   " %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %*s %" SCNu64,
		   &stat.state, &stat.ppid, &stat.flags, &ticks) != 4)
		return false;
	/* The unit of the field is 1/100 s on every architecture. */
	stat.start_ns = ticks * ABI_START_TICK_NS;
	*ret_stat = stat;
	return true;
}

static bool is_octal(char c)
{
	return c >= '0' && c <= '7';
}

/* "\012" to a newline, in place. */
static void unescape(char *path)
{
	char *to = path;

	for (const char *from = path; *from; to++) {
		if (from[0] == '\\' && is_octal(from[1]) && is_octal(from[2]) &&
		    is_octal(from[3])) {
			*to = (char)((from[1] - '0') << 6 | (from[2] - '0') << 3 |
				     (from[3] - '0'));
			from += 4;
		} else {
			*to = *from++;
		}
	}
	*to = 0;
}

bool snapshot_parse_map(char *line, struct snapshot_map *ret_map)
{
	struct snapshot_map map = { .path = "" };
	char perms[5];
	int at = 0;

	if (sscanf(line,
		   "%" SCNx64 "-%" SCNx64 " %4s %" SCNx64 " %" SCNx32 ":%" SCNx32
		   " %" SCNu64 "%n",
		   &map.start, &map.end, perms, &map.pgoff, &map.dev_major,
		   &map.dev_minor, &map.inode, &at) != 7 ||
	    map.end <= map.start || strlen(perms) != 4)
		return false;
	char *path = line + at;

	/* Padded with spaces to a column; a path begins with '/' or '['. */
	while (*path == ' ')
		path++;
	if (str_ends(path, DELETED)) {
		map.deleted = true;
		path[strlen(path) - strlen(DELETED)] = 0;
	}
	unescape(path);
	map.path = path;
	map.executable = perms[2] == 'x';
	*ret_map = map;
	return true;
}

static bool is_unit(const char *name, size_t length)
{
	static const char *const kinds[] = { ".service", ".scope", ".socket", ".mount" };

	for (size_t i = 0; i < sizeof(kinds) / sizeof(*kinds); i++) {
		size_t kind = strlen(kinds[i]);

		if (length > kind && !strncmp(name + length - kind, kinds[i], kind))
			return true;
	}
	return false;
}

void snapshot_unit(const char *cgroup_path, char *unit, size_t room)
{
	const char *best = "", *at = cgroup_path;
	size_t best_length = 0;
	bool found = false;

	/* The innermost unit; without one, the last part. */
	while (*at) {
		size_t length = strcspn(at, "/");

		if (length && (!found || is_unit(at, length))) {
			best = at;
			best_length = length;
			found |= is_unit(at, length);
		}
		at += length + (at[length] == '/');
	}
	snprintf(unit, room, "%.*s", (int)(best_length < room ? best_length : room - 1),
		 best);
}

char *snapshot_cgroup_root(void)
{
	CLEANUP(free) char *text = NULL;
	char *save = NULL, *root = NULL;

	err_free(
		file_read("/proc/self/mounts", SNAPSHOT_MAX_CHILDREN_BYTES, &text, NULL));
	if (!text)
		return NULL;
	for (char *line = strtok_r(text, "\n", &save); line && !root;
	     line = strtok_r(NULL, "\n", &save)) {
		char folder[4096], type[64];

		if (sscanf(line, "%*s %4095s %63s", folder, type) != 2 ||
		    strcmp(type, "cgroup2") != 0)
			continue;
		unescape(folder);
		root = mem_strdup(folder);
	}
	return root;
}

/* Reading through the opener. */

static struct err *read_file(struct snapshot *snapshot,
			     const struct open_request *request, size_t max,
			     char **ret_text)
{
	CLEANUP(close) int fd = -1;

	TRY(opener_open(snapshot->config.opener, request, &fd));
	return file_read_fd(fd, max, ret_text, NULL);
}

static struct err *read_stat(struct snapshot *snapshot, uint32_t pid, uint64_t start_ns,
			     struct snapshot_stat *ret_stat)
{
	struct open_request request = { .what = OPEN_STAT, .pid = pid };
	CLEANUP(free) char *text = NULL;

	TRY(read_file(snapshot, &request, SMALL_BYTES, &text));
	if (!snapshot_parse_stat(text, ret_stat))
		return err_new(ERR_FORMAT, "/proc/%u/stat does not parse", pid);
	if (start_ns && ret_stat->start_ns != start_ns)
		return err_new(ERR_NOT_FOUND, "process %u is another one by now", pid);
	return NULL;
}

static uint32_t read_uid(struct snapshot *snapshot, uint32_t pid)
{
	struct open_request request = { .what = OPEN_STATUS, .pid = pid };
	CLEANUP(free) char *text = NULL;
	uint32_t uid = 0;

	err_free(read_file(snapshot, &request, SMALL_BYTES, &text));
	const char *line = text ? strstr(text, "\nUid:") : NULL;

	if (line)
		sscanf(line, "\nUid: %*u %" SCNu32, &uid);
	return uid;
}

/* The cgroup v2 path of a process ("0::/path"), allocated; NULL unknown. */
static char *read_cgroup(struct snapshot *snapshot, uint32_t pid)
{
	struct open_request request = { .what = OPEN_CGROUP, .pid = pid };
	CLEANUP(free) char *text = NULL;
	char *save = NULL;

	err_free(read_file(snapshot, &request, SMALL_BYTES, &text));
	if (!text)
		return NULL;
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save))
		if (str_starts(line, "0::"))
			return mem_strdup(line + 3);
	return NULL;
}

/* A cgroup's id is the inode number of its folder. */
static uint64_t cgroup_id_of(struct snapshot *snapshot, uint32_t pid)
{
	struct stat info;

	if (!snapshot->cgroup_root)
		return 0;
	CLEANUP(free) char *below = read_cgroup(snapshot, pid);

	if (!below)
		return 0;
	CLEANUP(free) char *path = mem_printf("%s%s", snapshot->cgroup_root, below);

	return stat(path, &info) ? 0 : info.st_ino;
}

const char *snapshot_service(struct snapshot *snapshot, uint32_t pid, uint64_t cgroup_id)
{
	char **known = cgroup_id ? map_find(snapshot->services, &cgroup_id) : NULL;

	if (known)
		return *known;
	CLEANUP(free) char *path = read_cgroup(snapshot, pid);

	snapshot->unit[0] = 0;
	if (!path)
		return snapshot->unit;
	snapshot_unit(path, snapshot->unit, sizeof(snapshot->unit));
	if (!cgroup_id)
		return snapshot->unit;
	if (map_count(snapshot->services) >= SNAPSHOT_MAX_SERVICES)
		clear_services(snapshot);
	*(char **)map_put(snapshot->services, &cgroup_id, NULL) =
		mem_strdup(snapshot->unit);
	return snapshot->unit;
}

/* Feeding. */

static void feed_task(struct snapshot *snapshot, uint32_t pid,
		      const struct snapshot_stat *stat)
{
	struct event event = { .path = "" };
	struct snapshot_stat parent = { 0 };

	if (stat->ppid)
		err_free(read_stat(snapshot, stat->ppid, 0, &parent));
	event.task = (struct abi_task){
		.head = { .kind = ABI_TASK,
			  .time_ns = clock_ns(),
			  .pid = pid,
			  .tid = pid,
			  .start_ns = stat->start_ns },
		.op = ABI_TASK_SEEN,
		.parent_pid = parent.start_ns ? stat->ppid : 0,
		.parent_start_ns = parent.start_ns,
		.cgroup_id = cgroup_id_of(snapshot, pid),
		.uid = read_uid(snapshot, pid),
	};
	memcpy(event.task.comm, stat->comm, ABI_COMM_BYTES);
	snapshot->config.feed(snapshot->config.ctx, &event);
}

static void feed_map(struct snapshot *snapshot, const struct abi_head *head,
		     const struct snapshot_map *map)
{
	struct event event = { .path = map->path };
	size_t bytes = strlen(map->path) + 1;

	if (bytes > ABI_PATH_MAX)
		return;
	event.mmap = (struct abi_mmap){
		.head = *head,
		.addr = map->start,
		.length = map->end - map->start,
		.pgoff = map->pgoff,
		.inode = map->inode,
		.dev_major = map->dev_major,
		.dev_minor = map->dev_minor,
		.flags = ABI_MMAP_SNAPSHOT | (map->deleted ? ABI_MMAP_DELETED : 0),
		.path_bytes = (uint16_t)bytes,
	};
	snapshot->config.feed(snapshot->config.ctx, &event);
}

static struct err *feed_maps(struct snapshot *snapshot, uint32_t pid, uint32_t tid,
			     uint64_t start_ns)
{
	/* The time before the reading: what is mapped meanwhile is younger. */
	struct abi_head head = { .kind = ABI_MMAP,
				 .time_ns = clock_ns(),
				 .pid = pid,
				 .tid = pid,
				 .start_ns = start_ns };
	struct open_request request = { .what = OPEN_MAPS, .pid = tid };
	CLEANUP(free) char *text = NULL;
	size_t count = 0;
	char *save = NULL;

	TRY(read_file(snapshot, &request, SNAPSHOT_MAX_MAPS_BYTES, &text));
	for (char *line = strtok_r(text, "\n", &save); line;
	     line = strtok_r(NULL, "\n", &save)) {
		struct snapshot_map map;

		if (!snapshot_parse_map(line, &map) || !map.executable)
			continue;
		if (++count > SNAPSHOT_MAX_MAPPINGS)
			return err_new(ERR_LIMIT,
				       "process %u has over %d executable mappings", pid,
				       SNAPSHOT_MAX_MAPPINGS);
		feed_map(snapshot, &head, &map);
	}
	return NULL;
}

typedef void (*number_fn)(void *ctx, uint32_t number);

static struct err *each_number(struct snapshot *snapshot,
			       const struct open_request *request, number_fn each,
			       void *ctx)
{
	CLEANUP(close) int fd = -1;
	uint64_t number;

	TRY(opener_open(snapshot->config.opener, request, &fd));
	DIR *folder = fdopendir(fd);

	if (!folder)
		return err_new(ERR_IO, "cannot list processes");
	fd = -1;
	for (struct dirent *entry; (entry = readdir(folder));)
		if (isdigit((unsigned char)entry->d_name[0]) &&
		    number_parse(entry->d_name, &number) && number <= UINT32_MAX)
			each(ctx, (uint32_t)number);
	closedir(folder);
	return NULL;
}

struct numbers {
	VEC(uint32_t) list;
};

static void add_number(void *ctx, uint32_t number)
{
	struct numbers *numbers = ctx;

	if (numbers->list.count < SNAPSHOT_MAX_PROCESSES)
		vec_push(&numbers->list, number);
}

/* Some thread of @pid that still has an address space; @pid when there is none. */
static uint32_t living_thread(struct snapshot *snapshot, uint32_t pid)
{
	struct open_request request = { .what = OPEN_TASK_DIR, .pid = pid };
	struct numbers tids = { 0 };
	uint32_t found = pid;

	err_free(each_number(snapshot, &request, add_number, &tids));
	vec_each(&tids.list, tid) {
		struct snapshot_stat stat;
		struct err *err = read_stat(snapshot, *tid, 0, &stat);

		if (!err && stat.state != 'Z' && stat.state != 'X') {
			found = *tid;
			break;
		}
		err_free(err);
	}
	vec_fini(&tids.list);
	return found;
}

struct err *snapshot_process(struct snapshot *snapshot, uint32_t pid, uint64_t start_ns,
			     uint64_t *ret_start_ns)
{
	struct snapshot_stat stat;

	TRY(read_stat(snapshot, pid, start_ns, &stat));
	feed_task(snapshot, pid, &stat);
	if (ret_start_ns)
		*ret_start_ns = stat.start_ns;
	if (stat.flags & PF_KTHREAD)
		return NULL;
	uint32_t tid = stat.state == 'Z' ? living_thread(snapshot, pid) : pid;

	return feed_maps(snapshot, pid, tid, stat.start_ns);
}

/* Sets of processes. */

static bool has_pid(const struct snapshot_pids *pids, uint32_t pid)
{
	vec_each(&pids->list, known)
		if (known->pid == pid)
			return true;
	return false;
}

static struct err *add_process(struct snapshot *snapshot, uint32_t pid,
			       struct snapshot_pids *pids)
{
	struct snapshot_pid found = { pid, 0 };

	if (pids->list.count >= SNAPSHOT_MAX_PROCESSES)
		return err_new(ERR_LIMIT, "over %d processes", SNAPSHOT_MAX_PROCESSES);
	struct err *err = snapshot_process(snapshot, pid, 0, &found.start_ns);

	/* Fed in part is better than not watched at all. */
	if (found.start_ns)
		vec_push(&pids->list, found);
	return err;
}

static void add_children(struct snapshot *snapshot, uint32_t pid, uint32_t tid,
			 struct snapshot_pids *pids)
{
	struct open_request request = { .what = OPEN_CHILDREN, .pid = pid, .start = tid };
	CLEANUP(free) char *text = NULL;
	char *save = NULL;
	uint64_t child;

	err_free(read_file(snapshot, &request, SNAPSHOT_MAX_CHILDREN_BYTES, &text));
	if (!text)
		return;
	for (char *word = strtok_r(text, " \n", &save); word;
	     word = strtok_r(NULL, " \n", &save))
		if (number_parse(word, &child) && child <= UINT32_MAX &&
		    !has_pid(pids, (uint32_t)child))
			err_free(add_process(snapshot, (uint32_t)child, pids));
}

struct err *snapshot_tree(struct snapshot *snapshot, uint32_t pid,
			  struct snapshot_pids *pids)
{
	size_t first = pids->list.count;
	struct err *err = add_process(snapshot, pid, pids);

	if (pids->list.count == first)
		return err;
	/* The list grows while it is walked: children of children. */
	for (size_t i = first; i < pids->list.count; i++) {
		uint32_t parent = pids->list.data[i].pid;
		struct open_request request = { .what = OPEN_TASK_DIR, .pid = parent };
		struct numbers tids = { 0 };

		err_free(each_number(snapshot, &request, add_number, &tids));
		vec_each(&tids.list, tid)
			add_children(snapshot, parent, *tid, pids);
		vec_fini(&tids.list);
	}
	return err;
}

struct err *snapshot_all(struct snapshot *snapshot, struct snapshot_pids *pids)
{
	struct open_request request = { .what = OPEN_PROC_DIR };
	struct numbers all = { 0 };

	TRY(each_number(snapshot, &request, add_number, &all));
	vec_each(&all.list, pid)
		err_free(add_process(snapshot, *pid, pids));
	vec_fini(&all.list);
	return NULL;
}
