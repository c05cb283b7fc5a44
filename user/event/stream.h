/* SPDX-License-Identifier: Apache-2.0 */
#ifndef EVENT_STREAM_H
#define EVENT_STREAM_H

/*
 * A recorded stream: what crossed the rings, in the order in which it was delivered, so
 * that a replay needs neither the machine nor root.
 *
 *	8 bytes "ASSAYREC", u32 ABI_VERSION, u32 bytes of metadata, metadata (core/wire.h),
 *	then per record: u32 length and the record as in bpf/abi.h. Little-endian.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/cleanup.h"
#include "event/event.h"

#define STREAM_MAX_META	  4096
#define STREAM_MAX_RECORD (32 * 1024) /* the largest record is a tick with its stack */

/* What the recording run knew of itself; plain data, strings NUL-terminated. */
struct stream_meta {
	uint64_t start_ns;	    /* CLOCK_MONOTONIC */
	int64_t realtime_offset_ns; /* CLOCK_REALTIME - CLOCK_MONOTONIC */
	char boot_id[48];	    /* /proc/sys/kernel/random/boot_id */
	char host[72];
	char kernel[128];  /* uname -r */
	char version[32];  /* of the agent */
	char target[256];  /* "all", "pid 1234" */
	char sources[256]; /* "clock 997 Hz" */
	/* No MODULE records of files: a replay identifies what its mappings name. */
	bool is_imported;
};

struct stream_writer;

/**
 * stream_create() - begin a recording on @fd.
 * @fd: open for writing, at its beginning; taken, closed on failure too.
 */
struct err *stream_create(int fd, const struct stream_meta *meta,
			  struct stream_writer **ret_writer);
/* stream_write() - append one record as it came; buffered. ERR_LIMIT beyond
 * STREAM_MAX_RECORD. */
struct err *stream_write(struct stream_writer *writer, const void *data, size_t bytes);
/* stream_flush() - hand everything to the kernel; errors of earlier writes show here. */
struct err *stream_flush(struct stream_writer *writer);
void stream_close(struct stream_writer *writer); /* flushes; NULL is fine */
CLEANUP_DEFINE(stream_close, struct stream_writer *)

struct stream_reader;

/**
 * stream_open() - read a recording.
 * @file: taken, closed on failure too.
 * Errors: ERR_FORMAT when it is no recording, ERR_UNSUPPORTED for another version.
 */
struct err *stream_open(FILE *file, struct stream_meta *ret_meta,
			struct stream_reader **ret_reader);

/**
 * stream_next() - the next record.
 * @ret_event: valid until the next call.
 * @ret_end: true at a clean end; *ret_event is then untouched.
 * Errors: ERR_FORMAT, with the number of good records before it, when the file ends
 * within a record (the recorder died) or a record does not decode. Either ends the
 * reading: repeated calls give the same error.
 */
struct err *stream_next(struct stream_reader *reader, struct event *ret_event,
			bool *ret_end);
/* stream_bytes() - the record that stream_next() decoded last, as it stands in the file. */
const void *stream_bytes(const struct stream_reader *reader, size_t *ret_bytes);
/* stream_count() - good records so far. */
uint64_t stream_count(const struct stream_reader *reader);
void stream_reader_free(struct stream_reader *reader); /* NULL is fine */
CLEANUP_DEFINE(stream_reader_free, struct stream_reader *)

#endif
