// SPDX-License-Identifier: Apache-2.0
/*
 * A service is the cgroup that systemd made for its unit, wherever below the mount that
 * is; its id is the inode number of that folder.
 */
#include "daemon/select.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

#define PROCS_MAX_BYTES (4 * 1024 * 1024)

static struct err *open_cgroups(int *ret_fd)
{
	CLEANUP(free) char *root = snapshot_cgroup_root();

	if (!root)
		return err_new(ERR_UNSUPPORTED,
			       "no cgroup v2 is mounted here: use pid: or all");
	int fd = open(root, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(errno, "open %s", root);
	*ret_fd = fd;
	return NULL;
}

/* A folder called @name, searched for below @folder_fd. Return: its fd or -1. */
static int find_unit(int folder_fd, const char *name, int depth)
{
	int found = openat(folder_fd, name, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (found >= 0 || depth == SELECT_MAX_DEPTH)
		return found;
	DIR *folder =
		fdopendir(openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (!folder)
		return -1;
	for (struct dirent *entry; found < 0 && (entry = readdir(folder));) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		CLEANUP(close)
		int below = openat(folder_fd, entry->d_name,
				   O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

		if (below >= 0)
			found = find_unit(below, name, depth + 1);
	}
	closedir(folder);
	return found;
}

static struct err *open_target(const struct target *target, int *ret_fd)
{
	CLEANUP(close) int root = -1;

	TRY(open_cgroups(&root));
	if (target->kind == TARGET_CGROUP) {
		const char *path = target->name + strspn(target->name, "/");

		*ret_fd = openat(root, *path ? path : ".",
				 O_RDONLY | O_DIRECTORY | O_CLOEXEC);
		return *ret_fd < 0 ? err_errno(errno, "cgroup %s", target->name) : NULL;
	}
	*ret_fd = find_unit(root, target->name, 0);
	if (*ret_fd < 0 && !strchr(target->name, '.')) {
		CLEANUP(free) char *unit = mem_printf("%s.service", target->name);

		*ret_fd = find_unit(root, unit, 0);
	}
	return *ret_fd < 0
		       ? err_new(ERR_NOT_FOUND, "no running service '%s'", target->name)
		       : NULL;
}

static void snapshot_procs(struct snapshot *snapshot, int folder_fd)
{
	CLEANUP(close) int fd = openat(folder_fd, "cgroup.procs", O_RDONLY | O_CLOEXEC);
	CLEANUP(free) char *text = NULL;
	struct err *err = fd < 0 ? NULL : file_read_fd(fd, PROCS_MAX_BYTES, &text, NULL);
	char *save = NULL;

	err_free(err);
	for (char *line = text ? strtok_r(text, "\n", &save) : NULL; line;
	     line = strtok_r(NULL, "\n", &save))
		err_free(snapshot_process(snapshot, (uint32_t)strtoul(line, NULL, 10), 0,
					  NULL));
}

/* Every process at or below a cgroup; those that go meanwhile are no error. */
static void snapshot_cgroup(struct snapshot *snapshot, int folder_fd, int depth)
{
	snapshot_procs(snapshot, folder_fd);
	if (depth == SELECT_MAX_DEPTH)
		return;
	DIR *folder =
		fdopendir(openat(folder_fd, ".", O_RDONLY | O_DIRECTORY | O_CLOEXEC));

	if (!folder)
		return;
	for (struct dirent *entry; (entry = readdir(folder));) {
		if (entry->d_type != DT_DIR || entry->d_name[0] == '.')
			continue;
		CLEANUP(close)
		int below = openat(folder_fd, entry->d_name,
				   O_RDONLY | O_DIRECTORY | O_CLOEXEC | O_NOFOLLOW);

		if (below >= 0)
			snapshot_cgroup(snapshot, below, depth + 1);
	}
	closedir(folder);
}

static struct err *add_tree(struct ring *ring, struct snapshot *snapshot, uint32_t pid)
{
	struct snapshot_pids pids = { 0 };

	TRY(ring_add_pid(ring, pid));
	struct err *err = snapshot_tree(snapshot, pid, &pids);

	vec_each(&pids.list, entry) {
		if (!err)
			err = ring_add_pid(ring, entry->pid);
	}
	vec_fini(&pids.list);
	if (err && err->code == ERR_NOT_FOUND) {
		err_free(err);
		err = err_new(ERR_NOT_FOUND, "no process %u", pid);
	}
	return err;
}

static struct err *add_cgroup(struct ring *ring, struct snapshot *snapshot,
			      const struct target *target)
{
	CLEANUP(close) int fd = -1;
	struct stat info;

	TRY(open_target(target, &fd));
	if (fstat(fd, &info))
		return err_errno(errno, "stat cgroup %s", target->name);
	TRY(ring_add_cgroup(ring, info.st_ino));
	snapshot_cgroup(snapshot, fd, 0);
	return NULL;
}

struct err *select_add(struct ring *ring, struct snapshot *snapshot,
		       const struct target *target)
{
	struct snapshot_pids pids = { 0 };
	struct err *err;

	switch (target->kind) {
	case TARGET_PID:
		return add_tree(ring, snapshot, target->pid);
	case TARGET_CGROUP:
	case TARGET_SERVICE:
		return add_cgroup(ring, snapshot, target);
	case TARGET_ALL:
		break;
	}
	err = snapshot_all(snapshot, &pids);
	vec_fini(&pids.list);
	return err;
}

struct err *select_del(struct ring *ring, const struct target *target)
{
	CLEANUP(close) int fd = -1;
	struct stat info;

	if (target->kind == TARGET_PID)
		return ring_del_pid(ring, target->pid);
	if (target->kind == TARGET_ALL)
		return NULL;
	TRY(open_target(target, &fd));
	if (fstat(fd, &info))
		return err_errno(errno, "stat cgroup %s", target->name);
	return ring_del_cgroup(ring, info.st_ino);
}
