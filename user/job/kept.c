// SPDX-License-Identifier: Apache-2.0
#include "job/kept.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "core/file.h"
#include "core/intern.h"
#include "core/mem.h"
#include "core/pack.h"
#include "core/str.h"
#include "job/cache.h"

struct kept {
	char *folder, *path;
	int fd;		  /* -1: none */
	struct str fresh; /* a pack */
	uint64_t version; /* of @fresh */
};

static int open_own(const char *path)
{
	CLEANUP(close)
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct stat st;

	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)) || (uint64_t)st.st_size > PACK_MAX_BYTES)
		return -1;
	futimens(fd, NULL); /* used: others go first */
	return take_fd(&fd);
}

struct kept *kept_open(const char *folder, const char *path, int main_fd)
{
	struct kept *kept = mem_alloc(sizeof(*kept));
	struct stat st = { .st_size = 0 };
	uint64_t place[2] = { 0 };

	if (!fstat(main_fd, &st)) {
		place[0] = st.st_dev;
		place[1] = st.st_uid;
	}
	kept->folder = mem_strdup(folder);
	kept->path = mem_printf(
		"%s/%016llx" KEPT_SUFFIX, folder,
		(unsigned long long)hash_text(path, hash_bytes(place, sizeof(place), 0)));
	kept->fd = open_own(kept->path);
	return kept;
}

void kept_free(struct kept *kept)
{
	if (!kept)
		return;
	if (kept->fd >= 0)
		close(kept->fd);
	str_fini(&kept->fresh);
	free(kept->folder);
	free(kept->path);
	free(kept);
}

int kept_fd(const struct kept *kept)
{
	return kept->fd;
}

void kept_take(struct kept *kept, const struct job_reply *reply)
{
	const uint8_t *bytes = reply->sites.kept;
	size_t count = reply->sites.kept_bytes;
	struct pack_head head;

	if (count < sizeof(head) || kept->fresh.length + count > PACK_MAX_BYTES)
		return;
	memcpy(&head, bytes, sizeof(head));
	if (head.magic != PACK_MAGIC ||
	    (kept->fresh.length && head.version != kept->version))
		return;
	kept->version = head.version;
	if (!kept->fresh.length)
		pack_begin(&kept->fresh, head.version);
	/* A part that is not whole must not hide those behind it. */
	pack_copy(&kept->fresh, bytes, count);
}

/* Not fsync()ed: what a power failure leaves half is found damaged. */
static struct err *replace(const struct kept *kept, const struct str *bytes)
{
	CLEANUP(free) char *name = mem_printf("%s/.new-XXXXXX", kept->folder);
	CLEANUP(close) int fd = mkostemp(name, O_CLOEXEC);
	struct err *err;

	if (fd < 0)
		return err_errno(errno, "create %s", name);
	err = file_write_all(fd, bytes->data, bytes->length);
	if (!err && rename(name, kept->path))
		err = err_errno(errno, "rename %s", name);
	if (err)
		unlink(name);
	return err;
}

struct err *kept_save(struct kept *kept, uint64_t max_bytes)
{
	CLEANUP(str_fini) struct str old = { 0 };
	CLEANUP(str_fini) struct str all = { 0 };
	int fd;

	if (!kept->fresh.length)
		return NULL;
	/* Another one may have saved meanwhile. */
	fd = open_own(kept->path);
	if (fd >= 0) {
		if (kept->fd >= 0)
			close(kept->fd);
		kept->fd = fd;
		err_free(file_pread(fd, PACK_MAX_BYTES, &old.data, &old.length));
	}
	if (!pack_merge(&kept->fresh, &old, PACK_MAX_BYTES, &all))
		return err_new(ERR_FORMAT, "the worker gave no pack");
	str_clear(&kept->fresh);
	TRY(file_mkdirs(kept->folder));
	TRY(replace(kept, &all));
	cache_evict(kept->folder, max_bytes);
	return NULL;
}
