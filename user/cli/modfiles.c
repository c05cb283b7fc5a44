// SPDX-License-Identifier: Apache-2.0
/*
 * Files are only opened here; what they are, the worker says. A candidate that is
 * unreadable, another build's, or damaged is passed over: the next one may be right.
 */
#include "cli/modfiles.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/mem.h"
#include "job/debugfile.h"

#define IDENTIFY_MS 30000
#define FETCH_MS    120000

/* A job_identity that outlives the callback; the strings are allocated. */
struct identity {
	struct err *err;
	struct build_id id, alt_id;
	bool is_elf, has_dwarf;
	char *debuglink, *altlink;
	uint32_t crc;
};

static void identity_fini(struct identity *identity)
{
	err_free(identity->err);
	free(identity->debuglink);
	free(identity->altlink);
}

static inline void cleanup_identity_fini(struct identity *identity)
{
	identity_fini(identity);
}

static void take_identity(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct identity *identity = ctx;

	identity->err = err;
	if (err)
		return;
	identity->is_elf = true;
	identity->id = reply->identity.build_id;
	identity->alt_id = reply->identity.altlink_id;
	identity->has_dwarf = reply->identity.has_dwarf;
	identity->debuglink = mem_strdup(reply->identity.debuglink);
	identity->altlink = mem_strdup(reply->identity.altlink);
	identity->crc = reply->identity.debuglink_crc;
}

static struct err *identify(struct job_client *worker, int fd, struct identity *identity)
{
	TRY(job_identify(worker, fd, take_identity, identity));
	TRY(job_wait(worker, IDENTIFY_MS));
	return take(identity->err);
}

static struct err *open_regular(const char *path, int *ret_fd)
{
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
	struct stat info;

	if (fd < 0)
		return err_errno(errno, "%s", path);
	if (fstat(fd, &info))
		return err_errno(errno, "%s", path);
	if (!S_ISREG(info.st_mode))
		return err_new(ERR_FORMAT, "%s: no regular file", path);
	*ret_fd = take_fd(&fd);
	return NULL;
}

static bool is_wanted(const struct identity *want, const struct identity *found, int fd)
{
	if (!found->has_dwarf)
		return false;
	if (want->id.size)
		return debugfile_matches(&want->id, &found->id);
	struct err *err = debugfile_check_crc(fd, want->crc);

	err_free(err);
	return !err;
}

/* The alt file must have the id that the debug file names. */
static void find_alt(struct job_client *worker, const struct debugfile_query *query,
		     struct modfiles *files)
{
	CLEANUP(debugfile_paths_fini) struct debugfile_paths paths = { 0 };

	debugfile_alt_candidates(query, &paths);
	for (size_t i = 0; i < paths.count && files->alt_fd < 0; i++) {
		CLEANUP(identity_fini) struct identity found = { 0 };
		CLEANUP(close) int fd = -1;
		struct err *err = open_regular(paths.path[i], &fd);

		if (!err)
			err = identify(worker, fd, &found);
		if (!err && debugfile_matches(query->altlink_id, &found.id))
			files->alt_fd = take_fd(&fd);
		err_free(err);
	}
}

static void find_alt_of(struct job_client *worker, const struct identity *debug,
			const char *debug_path, struct modfiles *files)
{
	struct debugfile_query query = { .root = "",
					 .path = debug_path,
					 .id = &debug->id,
					 .debuglink = "",
					 .altlink = debug->altlink,
					 .altlink_id = &debug->alt_id,
					 .debug_path = debug_path };

	if (debug->altlink && *debug->altlink)
		find_alt(worker, &query, files);
}

static void find_debug(struct job_client *worker, const char *path,
		       const struct identity *main, struct modfiles *files)
{
	CLEANUP(debugfile_paths_fini) struct debugfile_paths paths = { 0 };
	struct debugfile_query query = { .root = "",
					 .path = path,
					 .id = &main->id,
					 .debuglink = main->debuglink,
					 .altlink = "" };

	debugfile_candidates(&query, &paths);
	for (size_t i = 0; i < paths.count && files->debug_fd < 0; i++) {
		CLEANUP(identity_fini) struct identity found = { 0 };
		CLEANUP(close) int fd = -1;
		struct err *err = open_regular(paths.path[i], &fd);

		if (!err)
			err = identify(worker, fd, &found);
		if (!err && is_wanted(main, &found, fd)) {
			files->debug_fd = take_fd(&fd);
			files->debug_path = mem_strdup(paths.path[i]);
			files->has_dwarf = true;
			find_alt_of(worker, &found, paths.path[i], files);
		}
		err_free(err);
	}
}

struct fetched {
	struct err *err;
	int fd;
};

static void take_fetched(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct fetched *fetched = ctx;

	fetched->err = err;
	if (!err)
		fetched->fd = reply->fd;
}

static void fetch_debug(struct job_client *worker, const struct identity *main,
			struct modfiles *files)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	CLEANUP(job_free) struct job_client *fetcher = NULL;
	CLEANUP(identity_fini) struct identity found = { 0 };
	struct fetched fetched = { .fd = -1 };

	if (!urls || !*urls || !main->id.size)
		return;
	struct err *err = job_spawn(JOB_FETCH, NULL, &fetcher);

	if (!err)
		err = job_debug_file(fetcher, urls, &main->id, take_fetched, &fetched);
	if (!err)
		err = job_wait(fetcher, FETCH_MS);
	if (!err)
		err = take(fetched.err);
	if (!err && fetched.fd >= 0)
		err = identify(worker, fetched.fd, &found);
	if (!err && fetched.fd >= 0 && is_wanted(main, &found, fetched.fd)) {
		files->debug_fd = take_fd(&fetched.fd);
		files->debug_path = mem_strdup("debuginfod");
		files->has_dwarf = true;
	}
	cleanup_close(&fetched.fd);
	err_free(fetched.err);
	err_free(err);
}

struct err *modfiles_open(struct job_client *worker, const char *path,
			  struct modfiles *ret_files)
{
	CLEANUP(identity_fini) struct identity main = { 0 };
	CLEANUP(free) char *real = realpath(path, NULL);
	struct modfiles files = { -1, -1, -1, { { 0 }, 0 }, false, NULL };

	TRY(open_regular(path, &files.main_fd));
	struct err *err = identify(worker, files.main_fd, &main);

	if (err) {
		modfiles_close(&files);
		return err_wrap(err, "%s", path);
	}
	files.build_id = main.id;
	files.has_dwarf = main.has_dwarf;
	if (main.has_dwarf)
		find_alt_of(worker, &main, real ? real : path, &files);
	else
		find_debug(worker, real ? real : path, &main, &files);
	if (!files.has_dwarf)
		fetch_debug(worker, &main, &files);
	*ret_files = files;
	return NULL;
}

void modfiles_close(struct modfiles *files)
{
	cleanup_close(&files->main_fd);
	cleanup_close(&files->debug_fd);
	cleanup_close(&files->alt_fd);
	free(files->debug_path);
	*files = (struct modfiles){ -1, -1, -1, { { 0 }, 0 }, false, NULL };
}
