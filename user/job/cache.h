/* SPDX-License-Identifier: Apache-2.0 */
#ifndef JOB_CACHE_H
#define JOB_CACHE_H

/*
 * Replies of whole-module jobs, kept in files. An answer is a function of the module's
 * files (code, debug information, dwz file) and of the analyser, nothing else; so an
 * entry is named by a hash of every byte of those files and one of the worker program
 * itself. Any rebuilt worker and any changed file is another name, and what bears other
 * names is not looked at; it goes when its turn comes.
 *
 * The files are read and written by the client, never by the worker: one that a hostile
 * module has taken over can spoil the entry of that very module only. What is read back
 * is checked like a worker's reply.
 *
 * An entry: struct cache_header, then for each reply its length (u32), whether more
 * follow (u8), and the payload of job/message.h. In the byte order of the machine.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "job/job.h"

#define CACHE_MAGIC	 0x3145484341435341ull /* "ASCACHE1": new with the format */
#define CACHE_MAX_ENTRY	 (512ull << 20)	       /* bytes; larger results are not kept */
#define CACHE_MAX_BYTES	 (2ull << 30)	       /* of a folder, least recently used go */
#define CACHE_MAX_FILES	 65536		       /* looked at in a folder */
#define CACHE_STALE_SECS 86400 /* an unfinished file so old has lost its writer */

struct cache_key {
	uint64_t content;  /* of the module's files */
	uint64_t analyser; /* of the worker program */
};

struct cache_header {
	uint64_t magic;
	struct cache_key key;
	uint64_t bytes; /* behind the header */
	uint64_t hash;	/* of those, reply by reply */
};

/* cache_content() - a hash of all bytes of @fds, -1 among them: none. Errors: ERR_IO. */
struct err *cache_content(const int *fds, size_t count, uint64_t *ret_hash);

/* cache_key_of() - reads the files to their ends; -1 among @fds: none.
 * @worker_path: NULL as in struct job_options. Errors: ERR_IO. */
struct err *cache_key_of(const int *fds, size_t count, const char *worker_path,
			 struct cache_key *ret_key);

/**
 * cache_load() - hand the replies of an entry to @done, as the job would.
 * @ret_hit: false when there is none, or none to be trusted: it is then removed, and
 *	@done was not called. A file that is another user's is left alone, unread.
 */
struct err *cache_load(const char *folder, const struct cache_key *key, job_done_fn done,
		       void *ctx, bool *ret_hit);
/* cache_read() - the same from an open file; ERR_FORMAT or ERR_LIMIT for a bad one. */
struct err *cache_read(int fd, const struct cache_key *key, job_done_fn done, void *ctx);

/* An entry being written; it takes its place when it is complete. */
struct cache_writer;

/* cache_writer_open() - makes @folder when it is missing. */
struct err *cache_writer_open(const char *folder, const struct cache_key *key,
			      struct cache_writer **ret_writer);
/* cache_writer_put() - one reply, in order; what goes wrong shows in commit. */
void cache_writer_put(struct cache_writer *writer, const struct job_reply *reply);
/* cache_writer_commit() - rename into place, then evict down to @max_bytes. The writer is still to be freed.
 * Errors: ERR_LIMIT (over CACHE_MAX_ENTRY), ERR_IO, ERR_INVALID (the last is missing). */
struct err *cache_writer_commit(struct cache_writer *writer, uint64_t max_bytes);
void cache_writer_free(struct cache_writer *writer); /* NULL is fine; drops the rest */
CLEANUP_DEFINE(cache_writer_free, struct cache_writer *)

/* cache_evict() - remove the least recently used until @max_bytes are left. */
void cache_evict(const char *folder, uint64_t max_bytes);

/* job_worker_program() - what job_spawn() starts unless told otherwise; allocated. */
char *job_worker_program(void);

/* cache_folder() - $XDG_CACHE_HOME/assay; without it /var/cache/assay for root and
 * ~/.cache/assay for others; NULL when there is no home. Allocated. */
char *cache_folder(void);

#endif
