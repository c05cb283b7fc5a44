// SPDX-License-Identifier: Apache-2.0
/*
 * A table says for each request how its path is made and what must be true of the file.
 * Paths of a container are resolved by openat2(RESOLVE_IN_ROOT): no symbolic link of
 * the container leads out of it.
 */
#include "daemon/hand.h"

#include <elf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/openat2.h>
#include <stdbool.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "bpf/abi.h"
#include "core/cleanup.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

enum takes { TAKES_NOTHING, TAKES_PID, TAKES_RANGE, TAKES_PATH, TAKES_PID_PATH };
enum gives { GIVES_KERNEL_FILE, GIVES_FOLDER, GIVES_ELF };

#define STAT_MAX_BYTES 4096

static const struct {
	enum takes takes;
	enum gives gives;
	const char *format; /* %1: pid, then start and end, or the path */
} rules[OPENS] = {
	[OPEN_STAT] = { TAKES_PID, GIVES_KERNEL_FILE, "/proc/%u/stat" },
	[OPEN_STATUS] = { TAKES_PID, GIVES_KERNEL_FILE, "/proc/%u/status" },
	[OPEN_COMM] = { TAKES_PID, GIVES_KERNEL_FILE, "/proc/%u/comm" },
	[OPEN_CGROUP] = { TAKES_PID, GIVES_KERNEL_FILE, "/proc/%u/cgroup" },
	[OPEN_MAPS] = { TAKES_PID, GIVES_KERNEL_FILE, "/proc/%u/maps" },
	[OPEN_TASK_DIR] = { TAKES_PID, GIVES_FOLDER, "/proc/%u/task" },
	[OPEN_CHILDREN] = { TAKES_RANGE, GIVES_KERNEL_FILE,
			    "/proc/%u/task/%llu/children" },
	[OPEN_PROC_DIR] = { TAKES_NOTHING, GIVES_FOLDER, "/proc" },
	[OPEN_EXE] = { TAKES_PID, GIVES_ELF, "/proc/%u/exe" },
	[OPEN_MAP_FILE] = { TAKES_RANGE, GIVES_ELF, "/proc/%u/map_files/%llx-%llx" },
	[OPEN_ROOT_PATH] = { TAKES_PID_PATH, GIVES_ELF, "/proc/%u/root" },
	[OPEN_KALLSYMS] = { TAKES_NOTHING, GIVES_KERNEL_FILE, "/proc/kallsyms" },
	[OPEN_KERNEL_NOTES] = { TAKES_NOTHING, GIVES_KERNEL_FILE, "/sys/kernel/notes" },
	[OPEN_MODULES] = { TAKES_NOTHING, GIVES_KERNEL_FILE, "/proc/modules" },
	[OPEN_KMOD_NOTES] = { TAKES_PATH, GIVES_KERNEL_FILE,
			      "/sys/module/%s/notes/.note.gnu.build-id" },
	[OPEN_KMOD_FILE] = { TAKES_PATH, GIVES_ELF, "/lib/modules/%s/%s" },
	[OPEN_DEBUG_PATH] = { TAKES_PATH, GIVES_ELF, "%s" },
};

static bool has_parent_step(const char *path)
{
	for (const char *at = path; (at = strstr(at, "..")); at += 2)
		if ((at == path || at[-1] == '/') && (at[2] == 0 || at[2] == '/'))
			return true;
	return false;
}

static struct err *check_path(const struct open_request *request)
{
	const char *path = request->path;
	bool absolute =
		request->what == OPEN_ROOT_PATH || request->what == OPEN_DEBUG_PATH;

	if (!path || !*path || strnlen(path, ABI_PATH_MAX) == ABI_PATH_MAX)
		return err_new(ERR_INVALID, "no path, or too long a path");
	if (has_parent_step(path) || (path[0] == '/') != absolute)
		return err_new(ERR_INVALID, "%s: not a path that may be asked for", path);
	if (request->what == OPEN_KMOD_NOTES && strchr(path, '/'))
		return err_new(ERR_INVALID, "%s: no name of a kernel module", path);
	if (request->what == OPEN_DEBUG_PATH && !str_starts(path, "/usr/lib/debug/") &&
	    !str_starts(path, "/boot/"))
		return err_new(ERR_INVALID, "%s: outside /usr/lib/debug and /boot", path);
	return NULL;
}

static char *make_path(const struct open_request *request)
{
	unsigned pid = request->pid;
	struct utsname name;

	switch (request->what) {
	case OPEN_CHILDREN:
		return mem_printf("/proc/%u/task/%llu/children", pid,
				  (unsigned long long)request->start);
	case OPEN_MAP_FILE:
		return mem_printf("/proc/%u/map_files/%llx-%llx", pid,
				  (unsigned long long)request->start,
				  (unsigned long long)request->end);
	case OPEN_KMOD_NOTES:
		return mem_printf("/sys/module/%s/notes/.note.gnu.build-id",
				  request->path);
	case OPEN_KMOD_FILE:
		uname(&name);
		return mem_printf("/lib/modules/%s/%s", name.release, request->path);
	case OPEN_DEBUG_PATH:
		return mem_strdup(request->path);
	default:
		break;
	}
	if (rules[request->what].takes == TAKES_NOTHING)
		return mem_strdup(rules[request->what].format);
	return mem_printf("/proc/%u/%s", pid,
			  strrchr(rules[request->what].format, '/') + 1);
}

struct err *hand_path(const struct open_request *request, char **ret_path)
{
	if ((unsigned)request->what >= OPENS || !rules[request->what].format)
		return err_new(ERR_INVALID, "unknown kind of file %d",
			       (int)request->what);
	enum takes takes = rules[request->what].takes;

	if (takes != TAKES_NOTHING && takes != TAKES_PATH && !request->pid)
		return err_new(ERR_INVALID, "no process id");
	if (takes == TAKES_PATH || takes == TAKES_PID_PATH)
		TRY(check_path(request));
	*ret_path = make_path(request);
	return NULL;
}

static int open_in_root(const char *root, const char *path)
{
	struct open_how how = { .flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY,
				.resolve = RESOLVE_IN_ROOT | RESOLVE_NO_MAGICLINKS };
	CLEANUP(close) int folder = open(root, O_PATH | O_DIRECTORY | O_CLOEXEC);

	if (folder < 0)
		return -1;
	return (int)syscall(SYS_openat2, folder, path, &how, sizeof(how));
}

/* The start time of the process as its stat file has it, in the unit of abi_head. */
static struct err *check_start(const struct open_request *request)
{
	CLEANUP(free) char *path = mem_printf("/proc/%u/stat", request->pid);
	CLEANUP(free) char *text = NULL;
	unsigned long long ticks = 0;

	TRY(file_read(path, STAT_MAX_BYTES, &text, NULL));
	char *after = strrchr(
		text, ')'); /* comm may hold anything but is the only such field */

	/* Field 22, counted from 3 behind the comm. */
	for (int field = 2; after && field < 22; field++)
		after = strchr(after + 1, ' ');
	if (after)
		ticks = strtoull(after + 1, NULL, 10);
	if (ticks * (1000000000ull / (unsigned)sysconf(_SC_CLK_TCK)) != request->start_ns)
		return err_new(ERR_NOT_FOUND, "process %u is another one by now",
			       request->pid);
	return NULL;
}

static struct err *check_file(int fd, enum gives gives)
{
	char magic[SELFMAG];
	struct stat info;

	if (fstat(fd, &info))
		return err_errno(errno, "stat");
	if (gives == GIVES_FOLDER)
		return NULL;
	if (!S_ISREG(info.st_mode))
		return err_new(ERR_INVALID, "not a regular file");
	if (gives == GIVES_ELF &&
	    (pread(fd, magic, SELFMAG, 0) != SELFMAG || memcmp(magic, ELFMAG, SELFMAG)))
		return err_new(ERR_FORMAT, "not an ELF file");
	return NULL;
}

struct err *hand_open(const struct open_request *request, int *ret_fd)
{
	CLEANUP(free) char *path = NULL;

	TRY(hand_path(request, &path));
	int flags = O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY;
	CLEANUP(close)
	int fd = request->what == OPEN_ROOT_PATH ? open_in_root(path, request->path)
						 : open(path, flags);

	if (fd < 0)
		return err_errno(errno, "open %s%s", path,
				 request->what == OPEN_ROOT_PATH ? request->path : "");
	if (request->pid && request->start_ns)
		TRY(check_start(request));
	TRY(err_wrap(check_file(fd, rules[request->what].gives), "%s", path));
	*ret_fd = take_fd(&fd);
	return NULL;
}
