// SPDX-License-Identifier: Apache-2.0
/*
 * Entries of the answer cache: as they are ("r"), and with a header that fits them ("f"),
 * as one has them who can compute a checksum. A bad one hands out nothing.
 */
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/file.h"
#include "core/intern.h"
#include "job/cache.h"

#define FRAME_BYTES 5 /* length and "more" before each payload */

static const struct cache_key key = { 1, 2 };

struct seen {
	bool any, is_last;
};

static void note(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct seen *seen = ctx;

	if (err || seen->is_last)
		abort();
	seen->any = true;
	seen->is_last = !reply->more;
}

static void try_entry(const struct cache_header *header, const uint8_t *data, size_t size)
{
	CLEANUP(close) int fd = memfd_create("entry", MFD_CLOEXEC);
	struct seen seen = { 0 };
	struct err *err = header ? file_write_all(fd, header, sizeof(*header)) : NULL;

	if (err || (err = file_write_all(fd, data, size)))
		abort();
	err = cache_read(fd, &key, note, &seen);
	if (err ? seen.any : !seen.is_last)
		abort();
	err_free(err);
}

/* The checksum goes reply by reply, so it needs their bounds. */
static uint64_t checksum(const uint8_t *data, size_t size)
{
	uint64_t hash = CACHE_MAGIC;
	uint32_t bytes;

	while (size >= FRAME_BYTES) {
		memcpy(&bytes, data, sizeof(bytes));
		if (bytes > size - FRAME_BYTES)
			break;
		hash = hash_bytes(data, bytes + FRAME_BYTES, hash);
		data += bytes + FRAME_BYTES;
		size -= bytes + FRAME_BYTES;
	}
	return hash;
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	if (!size)
		return 0;
	if (data[0] == 'r')
		try_entry(NULL, data + 1, size - 1);
	if (data[0] != 'f')
		return 0;
	struct cache_header header = { .magic = CACHE_MAGIC,
				       .key = key,
				       .bytes = size - 1,
				       .hash = checksum(data + 1, size - 1) };

	try_entry(&header, data + 1, size - 1);
	return 0;
}
