// SPDX-License-Identifier: Apache-2.0
/*
 * /proc is read, not trusted: a process may vanish between two reads and then simply
 * does not count. Names come from other people, so what goes into a message is cleaned.
 */
#include "cli/target.h"

#include <dirent.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/table.h"
#include "core/file.h"
#include "core/str.h"
#include "core/vec.h"

#define PROC_MAX_FILE  (64 * 1024)
#define LISTED_MATCHES 8

struct candidate {
	uint32_t pid, tgid, parent;
	char state;
	char comm[64];
	char exe[256];	/* file name of the program, "" unknown */
	char line[128]; /* begin of the command line, cleaned */
	bool kernel;	/* has no program: a kernel thread */
};

static char *read_proc(const char *proc, uint32_t pid, const char *name,
		       size_t *ret_bytes)
{
	CLEANUP(free) char *path = mem_printf("%s/%u/%s", proc, pid, name);
	char *text = NULL;
	struct err *err = file_read(path, PROC_MAX_FILE, &text, ret_bytes);

	err_free(err);
	return err ? NULL : text;
}

/* The value of "Key:\tvalue" in a status file; NULL when there is none. */
static const char *status_value(const char *status, const char *key)
{
	size_t length = strlen(key);

	for (const char *line = status; line && *line;) {
		if (!strncmp(line, key, length) && line[length] == ':')
			return line + length + 1 + strspn(line + length + 1, "\t ");
		line = strchr(line, '\n');
		line = line ? line + 1 : NULL;
	}
	return NULL;
}

static void read_exe(const char *proc, struct candidate *found)
{
	CLEANUP(free) char *path = mem_printf("%s/%u/exe", proc, found->pid);
	char target[4096];
	ssize_t length = readlink(path, target, sizeof(target) - 1);

	if (length <= 0)
		return;
	target[length] = 0;
	if (str_ends(target, " (deleted)"))
		target[(size_t)length - strlen(" (deleted)")] = 0;
	const char *slash = strrchr(target, '/');

	snprintf(found->exe, sizeof(found->exe), "%.255s", slash ? slash + 1 : target);
}

static void read_line(const char *proc, struct candidate *found)
{
	size_t bytes = 0;
	CLEANUP(free) char *text = read_proc(proc, found->pid, "cmdline", &bytes);

	if (!text || !bytes) {
		found->kernel = text && found->state != 'Z';
		snprintf(found->line, sizeof(found->line), "%s", found->comm);
		return;
	}
	for (size_t i = 0; i + 1 < bytes; i++)
		if (!text[i])
			text[i] = ' ';
	CLEANUP(free) char *safe = text_safe(text);

	snprintf(found->line, sizeof(found->line), "%.40s%s", safe,
		 strlen(safe) > 40 ? "..." : "");
}

static bool read_candidate(const char *proc, uint32_t pid, struct candidate *ret_found)
{
	CLEANUP(free) char *status = read_proc(proc, pid, "status", NULL);
	struct candidate found = { .pid = pid };

	if (!status)
		return false;
	const char *name = status_value(status, "Name");
	const char *tgid = status_value(status, "Tgid");
	const char *parent = status_value(status, "PPid");
	const char *state = status_value(status, "State");

	if (!name || !tgid || !parent || !state)
		return false;
	snprintf(found.comm, sizeof(found.comm), "%.*s", (int)strcspn(name, "\n"), name);
	found.tgid = (uint32_t)strtoul(tgid, NULL, 10);
	found.parent = (uint32_t)strtoul(parent, NULL, 10);
	found.state = *state;
	read_exe(proc, &found);
	read_line(proc, &found);
	*ret_found = found;
	return true;
}

static struct err *accept(const struct candidate *found, char **ret_target,
			  char **ret_label)
{
	CLEANUP(free) char *comm = text_safe(found->comm);

	if (found->tgid != found->pid)
		return err_new(ERR_INVALID,
			       "%u is a thread of process %u (%s); use that pid",
			       found->pid, found->tgid, comm);
	if (found->state == 'Z')
		return err_new(ERR_NOT_FOUND,
			       "process %u (%s) has ended; its parent %u has not "
			       "collected it yet",
			       found->pid, comm, found->parent);
	if (found->kernel && !*found->exe)
		return err_new(ERR_INVALID,
			       "%u (%s) is a kernel thread; sample the kernel with 'all'",
			       found->pid, comm);
	*ret_target = mem_printf("pid:%u", found->pid);
	*ret_label = mem_printf("%s (pid %u)", comm, found->pid);
	return NULL;
}

static struct err *find_pid(const char *proc, const char *word, char **ret_target,
			    char **ret_label)
{
	struct candidate found;
	uint64_t pid;

	if (!number_parse(word, &pid) || !pid || pid > INT32_MAX)
		return err_new(ERR_INVALID, "'%s' is not a process id", word);
	if (!read_candidate(proc, (uint32_t)pid, &found))
		return err_new(ERR_NOT_FOUND, "no process has the pid %s", word);
	return accept(&found, ret_target, ret_label);
}

struct candidates {
	struct candidate *data;
	size_t count, room; /* for vec.h */
};

/* comm is cut to 15 bytes by the kernel; a longer word may still mean it. */
static bool is_called(const struct candidate *found, const char *name)
{
	if (!strcmp(found->exe, name) || !strcmp(found->comm, name))
		return true;
	return strlen(name) > 15 && strlen(found->comm) == 15 &&
	       !strncmp(found->comm, name, 15);
}

static struct err *find_named(const char *proc, const char *name,
			      struct candidates *matches)
{
	DIR *folder = opendir(proc);

	if (!folder)
		return err_errno(errno, "%s", proc);
	for (struct dirent *entry; (entry = readdir(folder));) {
		struct candidate found;
		uint64_t pid;

		if (!number_parse(entry->d_name, &pid) || pid == (uint64_t)getpid() ||
		    matches->count == TARGET_MAX_MATCHES)
			continue;
		if (read_candidate(proc, (uint32_t)pid, &found) &&
		    found.tgid == found.pid && is_called(&found, name) &&
		    found.state != 'Z')
			vec_push(matches, found);
	}
	closedir(folder);
	return NULL;
}

static const struct candidate *with_pid(const struct candidate *list, size_t count,
					uint32_t pid)
{
	for (size_t i = 0; i < count; i++)
		if (list[i].pid == pid)
			return &list[i];
	return NULL;
}

/* The one whose parent is no match, if it is the only such. */
static const struct candidate *common_root(const struct candidate *list, size_t count)
{
	const struct candidate *root = NULL;

	for (size_t i = 0; i < count; i++) {
		if (with_pid(list, count, list[i].parent))
			continue;
		if (root)
			return NULL;
		root = &list[i];
	}
	return root;
}

static int by_pid(const void *a, const void *b)
{
	const struct candidate *left = a, *right = b;

	return left->pid < right->pid ? -1 : left->pid > right->pid;
}

static struct err *list_matches(const char *name, struct candidate *list, size_t count)
{
	CLEANUP(str_fini) struct str text = { 0 };

	qsort(list, count, sizeof(*list), by_pid);
	for (size_t i = 0; i < count && i < LISTED_MATCHES; i++)
		str_printf(&text, "%s%u (%s)", i ? ", " : "", list[i].pid, list[i].line);
	if (count > LISTED_MATCHES)
		str_printf(&text, " and %zu more", count - LISTED_MATCHES);
	return err_new(ERR_INVALID, "%zu processes are called %s, give a pid: %s", count,
		       name, str_text(&text));
}

static bool is_daemon_word(const char *word)
{
	return !strcmp(word, "all") || str_starts(word, "cgroup:") ||
	       str_starts(word, "service:");
}

struct err *target_find(const char *proc, const char *word, char **ret_target,
			char **ret_label)
{
	if (is_daemon_word(word)) {
		*ret_target = mem_strdup(word);
		*ret_label = mem_strdup(strcmp(word, "all") ? word : "the whole system");
		return NULL;
	}
	if (str_starts(word, "pid:"))
		return find_pid(proc, word + 4, ret_target, ret_label);
	if (*word && !word[strspn(word, "0123456789")])
		return find_pid(proc, word, ret_target, ret_label);

	struct candidates matches = { 0 };
	struct err *err = find_named(proc, word, &matches);
	const struct candidate *root = common_root(matches.data, matches.count);

	if (!err && !matches.count)
		err = err_new(ERR_NOT_FOUND, "no process is called '%s'", word);
	else if (!err && !root)
		err = list_matches(word, matches.data, matches.count);
	else if (!err)
		err = accept(root, ret_target, ret_label);
	vec_fini(&matches);
	return err;
}
