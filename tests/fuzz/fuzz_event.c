// SPDX-License-Identifier: Apache-2.0
/*
 * Everything that turns foreign bytes into events. The first byte of an input chooses:
 * 'e' one record of a ring, 's' a recorded stream, 'p' one record of perf's side-band, 'd'
 * a whole perf.data.
 */
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/mem.h"
#include "event/event.h"
#include "event/memsrc.h"
#include "event/stream.h"
#include "perfdata/perfdata.h"
#include "probe/sideband.h"

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);

/* A record that decodes must survive being encoded again, byte for byte. */
static void check_same(struct event *event, const void *data, size_t size)
{
	CLEANUP(str_fini) struct str again = { 0 };

	event_encode(event, &again);
	if (again.length != size || memcmp(again.data, data, size) != 0)
		abort();
}

static void fuzz_record(const uint8_t *data, size_t size)
{
	struct event event;
	struct err *err = event_decode(data, size, &event);

	if (err)
		return err_free(err);
	if (event.head.kind == ABI_ACCESS)
		(void)memsrc_decode(event.access.data_src);
	check_same(&event, data, size);
}

static void fuzz_stream(const uint8_t *data, size_t size)
{
	CLEANUP(stream_reader_free) struct stream_reader *reader = NULL;
	CLEANUP(free) void *copy = mem_copy(data, size);
	FILE *file = size ? fmemopen(copy, size, "r") : NULL;
	struct stream_meta meta;
	struct event event;
	bool end = false;

	if (!file)
		return;
	struct err *err = stream_open(file, &meta, &reader);

	while (!err && !end) {
		size_t bytes;

		err = stream_next(reader, &event, &end);
		if (!err && !end)
			check_same(&event, stream_bytes(reader, &bytes), event.head.size);
	}
	err_free(err);
}

/* What the side-band becomes must be a record that we would accept. */
static void fuzz_sideband(const uint8_t *data, size_t size)
{
	CLEANUP(str_fini) struct str out = { 0 };
	struct event event;
	struct err *err = sideband_convert(data, size, &out);

	if (err || !out.length)
		return err_free(err);
	err = event_decode(out.data, out.length, &event);
	/* The kernel makes no mapping that wraps; a fuzzer does. */
	if (err && !strstr(err->text, "wraps"))
		abort();
	err_free(err);
}

static void ignore_begin(void *ctx, const struct perfdata_meta *meta)
{
	(void)ctx;
	(void)meta;
}

/* What a file becomes must be records that replay accepts. */
static void check_record(void *ctx, const void *data, size_t bytes)
{
	struct event event;
	struct err *err = event_decode(data, bytes, &event);

	(void)ctx;
	if (err)
		abort();
}

static struct err *no_step(void *ctx, const struct perfdata_stats *stats)
{
	(void)ctx;
	(void)stats;
	return NULL;
}

static void fuzz_perfdata(const uint8_t *data, size_t size)
{
	static const struct perfdata_ops ops = { ignore_begin, check_record, no_step };
	struct perfdata_stats stats;
	CLEANUP(close) int fd = memfd_create("perf.data", MFD_CLOEXEC);

	if (fd >= 0 && write(fd, data, size) == (ssize_t)size)
		err_free(perfdata_read(fd, &ops, NULL, &stats));
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	switch (data[0]) {
	case 'e':
		fuzz_record(data + 1, size - 1);
		break;
	case 's':
		fuzz_stream(data + 1, size - 1);
		break;
	case 'p':
		fuzz_sideband(data + 1, size - 1);
		break;
	case 'd':
		fuzz_perfdata(data + 1, size - 1);
		break;
	}
	return 0;
}
