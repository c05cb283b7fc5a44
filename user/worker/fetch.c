// SPDX-License-Identifier: Apache-2.0
/*
 * libdebuginfod takes its settings from the environment and keeps a cache of files. The
 * cache is a private folder that is emptied after every fetch: what is fetched lives on
 * in the descriptor, and who asked decides whether to keep it. The library is loaded by
 * this class only: with libcurl and all that hangs on it, it would make every worker slow
 * to start, and a larger target.
 */
#include "worker/fetch.h"

#include <dlfcn.h>
#include <elfutils/debuginfod.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <glob.h>
#include <stdio.h>
#include <string.h>
#include <sys/file.h>
#include <unistd.h>

#include "core/mem.h"
#include "worker/sandbox.h"

#define CACHE_ENV "DEBUGINFOD_CACHE_PATH"
#define FOLDER	  "/tmp/assay-fetch-"
#define LIBRARY	  "libdebuginfod.so.1"

struct err *fetch_prepare(void)
{
	char folder[] = FOLDER "XXXXXX";

	if (!mkdtemp(folder))
		return err_errno(errno, "create %s", folder);
	/* Held until the end, so that others see that the folder is in use. */
	int fd = open(folder, O_RDONLY | O_DIRECTORY | O_CLOEXEC);

	if (fd < 0 || flock(fd, LOCK_EX))
		return err_errno(errno, "lock %s", folder);
	if (geteuid() == 0 && chown(folder, SANDBOX_UID, SANDBOX_GID) && errno != EPERM)
		return err_errno(errno, "chown %s", folder);
	setenv(CACHE_ENV, folder, 1);
	setenv("DEBUGINFOD_MAXTIME", "600", 1);
	setenv("DEBUGINFOD_MAXSIZE", FETCH_MAX_BYTES, 1);
	setenv("HOME", "/nonexistent", 1);
	return NULL;
}

static int remove_one(const char *path, const struct stat *st, int kind, struct FTW *walk)
{
	(void)st;
	if (walk->level == 0)
		return 0;
	if (kind == FTW_DP)
		rmdir(path);
	else
		unlink(path);
	return 0;
}

/* What workers that were killed have left behind. */
void fetch_tidy(void)
{
	glob_t found;

	if (glob(FOLDER "*", GLOB_NOSORT, NULL, &found))
		return;
	for (size_t i = 0; i < found.gl_pathc; i++) {
		CLEANUP(close)
		int fd = open(found.gl_pathv[i],
			      O_RDONLY | O_DIRECTORY | O_NOFOLLOW | O_CLOEXEC);

		if (fd < 0 || flock(fd, LOCK_EX | LOCK_NB))
			continue;
		nftw(found.gl_pathv[i], remove_one, 16, FTW_DEPTH | FTW_PHYS);
		rmdir(found.gl_pathv[i]);
	}
	globfree(&found);
}

static void empty_cache(void)
{
	const char *folder = getenv(CACHE_ENV);

	if (folder)
		nftw(folder, remove_one, 16, FTW_DEPTH | FTW_PHYS);
}

void fetch_finish(void)
{
	const char *folder = getenv(CACHE_ENV);

	empty_cache();
	if (folder)
		rmdir(folder);
}

/* libcurl would read local files too, if a URL said so. */
static struct err *check_urls(const char *urls)
{
	CLEANUP(free) char *copy = mem_strdup(urls);
	char *rest = copy, *url;
	size_t count = 0;

	while ((url = strsep(&rest, " \t\n"))) {
		if (!*url)
			continue;
		if (!str_starts(url, "http://") && !str_starts(url, "https://"))
			return err_new(ERR_INVALID, "%s: only http and https are fetched",
				       url);
		count++;
	}
	return count ? NULL : err_new(ERR_INVALID, "no debuginfod server is named");
}

static struct err *fetch_error(int code)
{
	switch (code) {
	case -ENOENT:
		return err_new(ERR_NOT_FOUND, "no debuginfod server has it");
	case -EFBIG:
	case -ETIME:
		return err_new(ERR_LIMIT, "debuginfod: %s", strerror(-code));
	}
	return err_errno(-code, "debuginfod");
}

struct fetch_library {
	__typeof__(&debuginfod_begin) begin;
	__typeof__(&debuginfod_find_debuginfo) find;
	__typeof__(&debuginfod_end) end;
};

/* Stays loaded: the second time it is only looked up. */
static struct err *load(struct fetch_library *library)
{
	void *handle = dlopen(LIBRARY, RTLD_NOW);

	if (!handle)
		return err_new(ERR_UNSUPPORTED, LIBRARY
			       " cannot be loaded; install the package libdebuginfod1");
	library->begin = dlsym(handle, "debuginfod_begin");
	library->find = dlsym(handle, "debuginfod_find_debuginfo");
	library->end = dlsym(handle, "debuginfod_end");
	if (!library->begin || !library->find || !library->end)
		return err_new(ERR_UNSUPPORTED, LIBRARY " lacks a function");
	return NULL;
}

struct err *fetch_debug_file(const struct message_fetch *fetch, int *ret_fd)
{
	TRY(check_urls(fetch->urls));
	if (!fetch->id.size)
		return err_new(ERR_INVALID, "debuginfod needs a build-id");
	struct fetch_library library = { 0 };

	TRY(load(&library));
	setenv("DEBUGINFOD_URLS", fetch->urls, 1);
	debuginfod_client *client = library.begin();

	if (!client)
		return err_new(ERR_IO, "libdebuginfod does not start");
	char *path = NULL;
	int fd = library.find(client, fetch->id.bytes, fetch->id.size, &path);

	free(path);
	library.end(client);
	empty_cache();
	if (fd < 0)
		return fetch_error(fd);
	lseek(fd, 0, SEEK_SET);
	*ret_fd = fd;
	return NULL;
}
