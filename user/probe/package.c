// SPDX-License-Identifier: Apache-2.0
/*
 * /var/lib/dpkg/info/NAME[:ARCH].list has one path per line, as packaged: perhaps /lib/x
 * for what is /usr/lib/x on a merged system. Versions are in /var/lib/dpkg/status.
 */
#include "probe/package.h"

#include <dirent.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

static bool has_line(const char *text, const char *line)
{
	size_t length = strlen(line);

	for (const char *at = text; (at = strstr(at, line)); at += length)
		if ((at == text || at[-1] == '\n') && (at[length] == '\n' || !at[length]))
			return true;
	return false;
}

static bool owns(const char *list, const char *path)
{
	CLEANUP(free) char *text = NULL;
	struct err *err = file_read(list, PACKAGE_MAX_LIST, &text, NULL);

	if (err) {
		err_free(err);
		return false;
	}
	return has_line(text, path) ||
	       (str_starts(path, "/usr/") && has_line(text, path + strlen("/usr")));
}

static char *find_name(const char *root, const char *path)
{
	CLEANUP(free) char *folder = mem_printf("%s/var/lib/dpkg/info", root);
	DIR *list = opendir(folder);
	char *name = NULL;
	size_t count = 0;

	for (struct dirent *entry;
	     list && !name && count < PACKAGE_MAX_LISTS && (entry = readdir(list));) {
		if (!str_ends(entry->d_name, ".list"))
			continue;
		count++;
		CLEANUP(free) char *file = mem_printf("%s/%s", folder, entry->d_name);

		if (owns(file, path))
			name = mem_printf("%.*s",
					  (int)strcspn(entry->d_name, ":") <
							  (int)strlen(entry->d_name) - 5
						  ? (int)strcspn(entry->d_name, ":")
						  : (int)strlen(entry->d_name) - 5,
					  entry->d_name);
	}
	if (list)
		closedir(list);
	return name;
}

/* The value of "Version: " in the paragraph that begins with "Package: NAME". */
static char *find_version(const char *root, const char *name)
{
	static const char key[] = "\nVersion: ";
	CLEANUP(free) char *path = mem_printf("%s/var/lib/dpkg/status", root);
	CLEANUP(free) char *head = mem_printf("Package: %s\n", name);
	CLEANUP(free) char *text = NULL;
	struct err *err = file_read(path, PACKAGE_MAX_STATUS, &text, NULL);
	const char *at = err ? NULL : text;

	err_free(err);
	while (at && (at = strstr(at, head)) && at != text && at[-1] != '\n')
		at++;
	const char *version = at ? strstr(at, key) : NULL;
	const char *end = at ? strstr(at, "\n\n") : NULL;

	if (!version || (end && version > end))
		return NULL;
	version += strlen(key);
	return mem_printf("%.*s", (int)strcspn(version, "\n"), version);
}

void package_find(const char *root, const char *path, char **ret_name, char **ret_version)
{
	char *name = find_name(root, path);
	char *version = name ? find_version(root, name) : NULL;

	*ret_name = name ? name : mem_strdup("");
	*ret_version = version ? version : mem_strdup("");
}
