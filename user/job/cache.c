// SPDX-License-Identifier: Apache-2.0
/*
 * An entry is read twice: first to check all of it, then to hand it out. What a caller
 * gets is thus complete or nothing. A use sets the file's time, which is what "least
 * recently used" goes by.
 */
#include "job/cache.h"

#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <time.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/file.h"
#include "core/intern.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"
#include "job/kept.h"
#include "job/message.h"

#define CHUNK	    (1u << 20)
#define SUFFIX	    ".answers"
#define NEW_PREFIX  ".new-"
#define FRAME_BYTES 5 /* before each payload */

/* ---- names */

static struct err *hash_file(int fd, uint64_t *hash)
{
	CLEANUP(free) char *chunk = mem_alloc(CHUNK);
	uint64_t at = 0;
	ssize_t got;

	while ((got = pread(fd, chunk, CHUNK, (off_t)at))) {
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(errno, "read");
		*hash = hash_bytes(chunk, (size_t)got, *hash);
		at += (uint64_t)got;
	}
	*hash = hash_bytes(&at, sizeof(at), *hash);
	return NULL;
}

struct err *cache_content(const int *fds, size_t count, uint64_t *ret_hash)
{
	uint64_t hash = CACHE_MAGIC;

	for (size_t i = 0; i < count; i++) {
		bool is_there = fds[i] >= 0;

		hash = hash_bytes(&is_there, 1, hash);
		if (is_there)
			TRY(hash_file(fds[i], &hash));
	}
	*ret_hash = hash;
	return NULL;
}

struct err *cache_key_of(const int *fds, size_t count, const char *worker_path,
			 struct cache_key *ret_key)
{
	CLEANUP(free) char *found = NULL;
	struct cache_key key = { .analyser = CACHE_MAGIC };

	TRY(cache_content(fds, count, &key.content));
	if (!worker_path || !*worker_path)
		worker_path = found = job_worker_program();
	CLEANUP(close) int fd = open(worker_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(errno, "%s", worker_path);
	TRY(err_wrap(hash_file(fd, &key.analyser), "%s", worker_path));
	*ret_key = key;
	return NULL;
}

char *cache_folder(void)
{
	const char *given = getenv("XDG_CACHE_HOME"), *home = getenv("HOME");

	if (given && *given == '/')
		return mem_printf("%s/assay", given);
	if (geteuid() == 0)
		return mem_strdup("/var/cache/assay");
	return home && *home == '/' ? mem_printf("%s/.cache/assay", home) : NULL;
}

static char *entry_path(const char *folder, const struct cache_key *key)
{
	return mem_printf("%s/%016llx-%016llx" SUFFIX, folder,
			  (unsigned long long)key->content,
			  (unsigned long long)key->analyser);
}

/* ---- reading */

static struct err *read_at(int fd, void *data, size_t bytes, uint64_t at)
{
	size_t done = 0;

	while (done < bytes) {
		ssize_t got =
			pread(fd, (char *)data + done, bytes - done, (off_t)(at + done));

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(errno, "read");
		if (!got)
			return err_new(ERR_FORMAT, "shorter than it says");
		done += (size_t)got;
	}
	return NULL;
}

struct reading {
	int fd;
	struct cache_header header;
	struct arena *arena;
	uint8_t *frame;
	uint64_t hash;
	bool more;
};

/* One reply at @at; @ret_bytes: of its frame. */
static struct err *read_one(struct reading *reading, uint64_t at,
			    struct job_reply *ret_reply, uint64_t *ret_bytes)
{
	uint64_t left = sizeof(reading->header) + reading->header.bytes - at;
	uint32_t bytes;

	if (left < FRAME_BYTES || !reading->more)
		return err_new(ERR_FORMAT, "bytes that belong to no reply");
	TRY(read_at(reading->fd, reading->frame, FRAME_BYTES, at));
	memcpy(&bytes, reading->frame, sizeof(bytes));
	if (bytes > JOB_MAX_FRAME || bytes > left - FRAME_BYTES)
		return err_new(ERR_LIMIT, "a reply of %u bytes", bytes);
	TRY(read_at(reading->fd, reading->frame + FRAME_BYTES, bytes, at + FRAME_BYTES));
	reading->hash = hash_bytes(reading->frame, bytes + FRAME_BYTES, reading->hash);
	reading->more = reading->frame[4] != 0;
	arena_reset(reading->arena);

	struct wire in = { .data = reading->frame + FRAME_BYTES, .size = bytes };

	*ret_reply = (struct job_reply){ .kind = JOB_MODULE };
	TRY(message_read_reply(&in, reading->arena, JOB_MODULE, ret_reply));
	ret_reply->more = reading->more;
	*ret_bytes = bytes + FRAME_BYTES;
	return NULL;
}

/* @done NULL: only check. */
static struct err *read_all(struct reading *reading, job_done_fn done, void *ctx)
{
	uint64_t at = sizeof(reading->header), bytes = 0;

	reading->hash = CACHE_MAGIC;
	reading->more = true;
	while (at < sizeof(reading->header) + reading->header.bytes) {
		struct job_reply reply;

		TRY(read_one(reading, at, &reply, &bytes));
		at += bytes;
		if (done)
			done(ctx, NULL, &reply);
	}
	if (reading->more || reading->hash != reading->header.hash)
		return err_new(ERR_FORMAT, "incomplete or damaged");
	return NULL;
}

struct err *cache_read(int fd, const struct cache_key *key, job_done_fn done, void *ctx)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	CLEANUP(free) uint8_t *frame = NULL;
	struct reading reading = { .fd = fd, .arena = arena };
	struct stat st;

	if (fstat(fd, &st))
		return err_errno(errno, "stat");
	if (!S_ISREG(st.st_mode) || (uint64_t)st.st_size > CACHE_MAX_ENTRY)
		return err_new(ERR_LIMIT, "no file, or too large a one");
	TRY(read_at(fd, &reading.header, sizeof(reading.header), 0));
	if (reading.header.magic != CACHE_MAGIC ||
	    memcmp(&reading.header.key, key, sizeof(*key)) ||
	    reading.header.bytes != (uint64_t)st.st_size - sizeof(reading.header))
		return err_new(ERR_FORMAT, "not the entry that its name says");
	size_t room = JOB_MAX_FRAME;

	if (reading.header.bytes < room) /* no reply is larger than all of them */
		room = reading.header.bytes;
	reading.frame = frame = mem_alloc(room + FRAME_BYTES);
	TRY(read_all(&reading, NULL, NULL));
	return read_all(&reading, done, ctx);
}

struct handed {
	job_done_fn done;
	void *ctx;
	bool any;
};

static void hand_on(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct handed *handed = ctx;

	handed->any = true;
	handed->done(handed->ctx, err, reply);
}

struct err *cache_load(const char *folder, const struct cache_key *key, job_done_fn done,
		       void *ctx, bool *ret_hit)
{
	CLEANUP(free) char *path = entry_path(folder, key);
	CLEANUP(close)
	int fd = open(path, O_RDONLY | O_NOFOLLOW | O_NONBLOCK | O_CLOEXEC);
	struct handed handed = { done, ctx, false };
	struct stat st;

	*ret_hit = false;
	if (fd < 0 || fstat(fd, &st) || !S_ISREG(st.st_mode) || st.st_uid != geteuid() ||
	    (st.st_mode & (S_IWGRP | S_IWOTH)))
		return NULL;
	struct err *err = cache_read(fd, key, hand_on, &handed);

	if (err && handed.any)
		return err_wrap(err, "%s", path); /* it changed while it was read */
	if (err) {
		err_free(err);
		unlink(path);
		return NULL;
	}
	futimens(fd, NULL);
	*ret_hit = true;
	return NULL;
}

/* ---- writing */

struct cache_writer {
	struct cache_header header;
	char *folder, *temporary; /* NULL once renamed */
	FILE *file;
	struct err *err;
	bool is_complete;
};

struct err *cache_writer_open(const char *folder, const struct cache_key *key,
			      struct cache_writer **ret_writer)
{
	CLEANUP(cache_writer_free)
	struct cache_writer *writer = mem_alloc(sizeof(*writer));
	char *name;
	int fd;

	TRY(file_mkdirs(folder));
	name = mem_printf("%s/" NEW_PREFIX "XXXXXX", folder);
	fd = mkostemp(name, O_CLOEXEC);
	if (fd < 0) {
		struct err *err = err_errno(errno, "create %s", name);

		free(name);
		return err;
	}
	writer->temporary = name;
	writer->folder = mem_strdup(folder);
	writer->header = (struct cache_header){ .key = *key, .hash = CACHE_MAGIC };
	writer->file = fdopen(fd, "w");
	if (!writer->file) {
		struct err *err = err_errno(errno, "open %s", name);

		close(fd);
		return err;
	}
	/* Its place is filled last: until then it is no entry. */
	fwrite(&writer->header, sizeof(writer->header), 1, writer->file);
	*ret_writer = take(writer);
	return NULL;
}

void cache_writer_put(struct cache_writer *writer, const struct job_reply *reply)
{
	CLEANUP(str_fini) struct str frame = { 0 };

	if (writer->err)
		return;
	wire_put_u32(&frame, 0);
	wire_put_u8(&frame, reply->more);
	message_put_reply(&frame, reply);

	uint32_t bytes = (uint32_t)(frame.length - FRAME_BYTES);

	if (frame.length > JOB_MAX_FRAME + FRAME_BYTES ||
	    writer->header.bytes + frame.length + sizeof(writer->header) >
		    CACHE_MAX_ENTRY) {
		writer->err = err_new(ERR_LIMIT, "the answers are too many to be kept");
		return;
	}
	memcpy(frame.data, &bytes, sizeof(bytes));
	writer->header.hash = hash_bytes(frame.data, frame.length, writer->header.hash);
	writer->header.bytes += frame.length;
	writer->is_complete = !reply->more;
	if (fwrite(frame.data, frame.length, 1, writer->file) != 1)
		writer->err = err_errno(errno, "write %s", writer->temporary);
}

struct err *cache_writer_commit(struct cache_writer *writer, uint64_t max_bytes)
{
	CLEANUP(free) char *path = entry_path(writer->folder, &writer->header.key);

	if (writer->err)
		return take(writer->err);
	if (!writer->is_complete)
		return err_new(ERR_INVALID, "%s: the last reply is missing", path);
	writer->header.magic = CACHE_MAGIC;
	rewind(writer->file);
	if (fwrite(&writer->header, sizeof(writer->header), 1, writer->file) != 1 ||
	    fflush(writer->file))
		return err_errno(errno, "write %s", writer->temporary);
	/* Not fsync()ed: what a power failure leaves half is found damaged. */
	if (rename(writer->temporary, path))
		return err_errno(errno, "rename %s", writer->temporary);
	free(writer->temporary);
	writer->temporary = NULL;
	cache_evict(writer->folder, max_bytes);
	return NULL;
}

void cache_writer_free(struct cache_writer *writer)
{
	if (!writer)
		return;
	if (writer->file)
		fclose(writer->file);
	if (writer->temporary)
		unlink(writer->temporary);
	free(writer->temporary);
	free(writer->folder);
	err_free(writer->err);
	free(writer);
}

/* ---- eviction */

struct kept {
	struct timespec used;
	uint64_t bytes;
	char name[64];
};

static int by_age(const void *a, const void *b)
{
	const struct kept *x = a, *y = b;

	if (x->used.tv_sec != y->used.tv_sec)
		return x->used.tv_sec < y->used.tv_sec ? -1 : 1;
	return x->used.tv_nsec < y->used.tv_nsec ? -1 : x->used.tv_nsec > y->used.tv_nsec;
}

static bool ends_in(const char *name, const char *end)
{
	size_t length = strlen(name), tail = strlen(end);

	return length >= tail && !strcmp(name + length - tail, end);
}

void cache_evict(const char *folder, uint64_t max_bytes)
{
	VEC(struct kept) list = { 0 };
	DIR *dir = opendir(folder);
	uint64_t total = 0;
	struct dirent *entry;

	if (!dir)
		return;
	while (list.count < CACHE_MAX_FILES && (entry = readdir(dir))) {
		struct kept one = { .bytes = 0 };
		struct stat st;
		bool is_new = str_starts(entry->d_name, NEW_PREFIX);

		if ((!is_new && !ends_in(entry->d_name, SUFFIX) &&
		     !ends_in(entry->d_name, KEPT_SUFFIX)) ||
		    strlen(entry->d_name) >= sizeof(one.name) ||
		    fstatat(dirfd(dir), entry->d_name, &st, AT_SYMLINK_NOFOLLOW) ||
		    !S_ISREG(st.st_mode) || st.st_uid != geteuid())
			continue;
		if (is_new) {
			if (st.st_mtime + CACHE_STALE_SECS < time(NULL))
				unlinkat(dirfd(dir), entry->d_name, 0);
			continue;
		}
		strcpy(one.name, entry->d_name);
		one.bytes = (uint64_t)st.st_size;
		one.used = st.st_mtim;
		total += one.bytes;
		vec_push(&list, one);
	}
	if (list.count)
		qsort(list.data, list.count, sizeof(*list.data), by_age);
	for (size_t i = 0; i < list.count && total > max_bytes; i++)
		if (!unlinkat(dirfd(dir), list.data[i].name, 0))
			total -= list.data[i].bytes;
	vec_fini(&list);
	closedir(dir);
}
