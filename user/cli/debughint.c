// SPDX-License-Identifier: Apache-2.0
/*
 * Debian puts debug information into PACKAGE-dbgsym, in an archive of its own; a few
 * old packages have -dbg instead. With a merged /usr, dpkg may know a file by its old
 * name /lib/..., so both are asked. The path comes from a foreign process: it is an
 * argument of its own behind "--", and its glob characters are escaped.
 */
#include "cli/debughint.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <spawn.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

#define DPKG_QUERY    "/usr/bin/dpkg-query"
#define ANSWER_MAX    4096
#define ANSWER_MS     5000
#define SOURCES_MAX   (256 * 1024)
#define PACKAGE_CHARS "abcdefghijklmnopqrstuvwxyz0123456789+-."

/* "redis-tools:amd64: /usr/bin/x\n" or "a, b: /path" -> the first package. */
char *debughint_package(const char *answer)
{
	size_t length = strspn(answer, PACKAGE_CHARS);

	if (!length || (answer[length] != ':' && answer[length] != ','))
		return NULL;
	if (!strncmp(answer, "libc6", length) && length == 5)
		return mem_strdup("libc6-dbg");
	return mem_printf("%.*s-dbgsym", (int)length, answer);
}

/* Read until the end, the limit or the time is over. */
static void read_answer(int fd, char *answer)
{
	uint64_t end_ns = clock_ns() + ANSWER_MS * 1000000ull;
	size_t filled = 0;

	while (filled < ANSWER_MAX - 1) {
		struct pollfd poller = { .fd = fd, .events = POLLIN };
		uint64_t now = clock_ns();

		if (now >= end_ns ||
		    poll(&poller, 1, (int)((end_ns - now) / 1000000u) + 1) <= 0)
			break;
		ssize_t got = read(fd, answer + filled, ANSWER_MAX - 1 - filled);

		if (got <= 0)
			break;
		filled += (size_t)got;
	}
	answer[filled] = 0;
}

static void ask_dpkg(const char *pattern, char *answer)
{
	char *argv[] = { (char *)DPKG_QUERY, (char *)"-S", (char *)"--", (char *)pattern,
			 NULL };
	char *env[] = { (char *)"LC_ALL=C", (char *)"PATH=/usr/bin:/bin", NULL };
	posix_spawn_file_actions_t actions;
	int pipes[2], status;
	pid_t pid;

	answer[0] = 0;
	if (pipe2(pipes, O_CLOEXEC))
		return;
	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_addopen(&actions, 0, "/dev/null", O_RDONLY, 0);
	posix_spawn_file_actions_adddup2(&actions, pipes[1], 1);
	posix_spawn_file_actions_addopen(&actions, 2, "/dev/null", O_WRONLY, 0);
	if (!posix_spawn(&pid, DPKG_QUERY, &actions, NULL, argv, env)) {
		close(pipes[1]);
		pipes[1] = -1;
		read_answer(pipes[0], answer);
		kill(pid, SIGKILL); /* it has ended, or it had its time */
		waitpid(pid, &status, 0);
	}
	posix_spawn_file_actions_destroy(&actions);
	close(pipes[0]);
	cleanup_close(&pipes[1]);
}

/* dpkg-query takes a glob: only the file itself must match. */
static char *escape_glob(const char *path)
{
	struct str pattern = { 0 };

	for (; *path; path++) {
		if (strchr("*?[]\\", *path))
			str_add_char(&pattern, '\\');
		str_add_char(&pattern, *path);
	}
	return str_take(&pattern);
}

/* Where Debian's packages put programs; dpkg takes a while to say no. */
static bool is_system_path(const char *path)
{
	static const char *const roots[] = { "/usr/", "/bin/", "/sbin/", "/lib" };

	for (size_t i = 0; i < sizeof(roots) / sizeof(*roots); i++)
		if (str_starts(path, roots[i]))
			return !str_starts(path, "/usr/local/");
	return false;
}

static char *package_of(const char *path)
{
	CLEANUP(free) char *pattern = escape_glob(path);
	char answer[ANSWER_MAX];

	if (!is_system_path(path) || access(DPKG_QUERY, X_OK))
		return NULL;
	ask_dpkg(pattern, answer);
	char *package = debughint_package(answer);

	if (!package && str_starts(pattern, "/usr/")) {
		ask_dpkg(pattern + strlen("/usr"), answer);
		package = debughint_package(answer);
	}
	return package;
}

char *debughint(const char *path, const struct build_id *id)
{
	CLEANUP(free) char *package = package_of(path);
	CLEANUP(free) char *hex = str_hex(id->bytes, id->size);
	CLEANUP(free)
	char *who = id->size ? mem_printf("%s (build-id %s)", path, hex)
			     : mem_printf("%s (without a build-id)", path);

	if (package)
		return mem_printf("%s has no debug information: apt-get install %s", who,
				  package);
	return mem_printf("%s has no debug information: build it with -g, or install its "
			  "-dbgsym package",
			  who);
}

static bool mentions_debug(const char *path)
{
	CLEANUP(free) char *text = NULL;
	struct err *err = file_read(path, SOURCES_MAX, &text, NULL);

	err_free(err);
	return !err && (strstr(text, "-debug") || strstr(text, "debian-debug"));
}

static bool archive_enabled(void)
{
	static const char folder[] = "/etc/apt/sources.list.d";
	DIR *list = opendir(folder);
	bool found = mentions_debug("/etc/apt/sources.list");

	for (struct dirent *entry; list && !found && (entry = readdir(list));) {
		CLEANUP(free) char *path = mem_printf("%s/%s", folder, entry->d_name);

		found = entry->d_name[0] != '.' && mentions_debug(path);
	}
	if (list)
		closedir(list);
	return found;
}

/* The value of KEY=value in /etc/os-release. */
static char *release_value(const char *text, const char *key)
{
	const char *at = strstr(text, key);

	if (!at || (at != text && at[-1] != '\n'))
		return NULL;
	at += strlen(key);
	at += *at == '"';
	return mem_printf("%.*s", (int)strspn(at, PACKAGE_CHARS), at);
}

char *debughint_archive(void)
{
	CLEANUP(free) char *text = NULL;
	struct err *err = file_read("/etc/os-release", 64 * 1024, &text, NULL);

	err_free(err);
	if (err || archive_enabled())
		return NULL;
	CLEANUP(free) char *id = release_value(text, "ID=");
	CLEANUP(free) char *name = release_value(text, "VERSION_CODENAME=");

	if (!id || !name || strcmp(id, "debian"))
		return NULL;
	return mem_printf(
		"debug packages are in an archive of their own: put a line 'deb "
		"MIRROR/debian-debug %s-debug main', with your MIRROR, into "
		"/etc/apt/sources.list.d/debug.list and run apt-get update",
		name);
}
