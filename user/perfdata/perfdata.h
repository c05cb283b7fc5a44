/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERFDATA_PERFDATA_H
#define PERFDATA_PERFDATA_H

/*
 * perfdata/ - a file that `perf record` wrote, as records of bpf/abi.h in time order: what
 * replay reads. Untrusted bytes; it belongs into the sandbox. Files and pipes (`perf
 * record -o -`), zstd-compressed ones too, of little-endian machines.
 *
 * Source: the kernel's tools/perf/Documentation/perf.data-file-format.txt and
 * perf_event_open(2).
 *
 *	SAMPLE	an access; with a call chain, or a copy of the user stack, a tick as well
 *	MMAP, MMAP2, COMM, FORK, EXIT	as the agent's own records
 *	kernel maps, KSYMBOL	modules of the kernel
 *	LOST, LOST_SAMPLES	losses
 *
 * Times are those of the file: of its clock, if it names one, else near CLOCK_MONOTONIC.
 * A process has no start time there; it gets that of its FORK, or the earliest tick.
 */

#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define PERFDATA_MAX_ATTRS     1024
#define PERFDATA_MAX_IDS       (1 << 20)
#define PERFDATA_MAX_BUILD_IDS 65536
#define PERFDATA_MAX_SECTION   (64 * 1024 * 1024)  /* of one feature, or of all ids */
#define PERFDATA_MAX_WAITING   (128 * 1024 * 1024) /* bytes that wait for older ones */
#define PERFDATA_MAX_PROCESSES 1048576
#define PERFDATA_EVENT_BYTES   64

/* What the file says of itself; "" and 0 for what it does not. NUL-terminated. */
struct perfdata_meta {
	char host[72], kernel[128], arch[32], version[32];
	char events[256];	    /* "cycles:P 4000 Hz, cpu/mem-loads/" */
	uint64_t start_ns;	    /* of the first sample */
	int64_t realtime_offset_ns; /* realtime - the file's clock */
};

struct perfdata_stats {
	uint64_t bytes, total; /* read so far, and of the file */
	uint64_t records;      /* of the file */
	uint64_t samples;      /* handed on as accesses */
	uint64_t foreign;      /* of guests and hypervisors: left out */
	uint64_t lost;	       /* as the file says that perf lost them */
	uint64_t late;	       /* out of order by more than what may wait */
};

/**
 * struct perfdata_ops - who takes it.
 * @begin: once, before the first record.
 * @record: one record as in bpf/abi.h; borrowed.
 * @step: now and then; an error ends the reading and is returned.
 */
struct perfdata_ops {
	void (*begin)(void *ctx, const struct perfdata_meta *meta);
	void (*record)(void *ctx, const void *data, size_t bytes);
	struct err *(*step)(void *ctx, const struct perfdata_stats *stats);
};

/**
 * perfdata_read() - all of @fd, a regular file.
 * Errors: ERR_FORMAT with the offset for a file that is cut off or damaged; what came
 * before was handed on. ERR_UNSUPPORTED for another byte order or an old format;
 * ERR_LIMIT.
 */
struct err *perfdata_read(int fd, const struct perfdata_ops *ops, void *ctx,
			  struct perfdata_stats *ret_stats);

#endif
