// SPDX-License-Identifier: Apache-2.0
/*
 * perf's side-band: PERF_RECORD_MMAP2 and PERF_RECORD_LOST become records of bpf/abi.h. The event is opened with
 * sample_id_all and PERF_SAMPLE_TID | TIME, so each record ends with pid, tid and time.
 * Format: perf_event_open(2), the kernel's uapi linux/perf_event.h.
 */
#include <linux/perf_event.h>
#include <stdbool.h>
#include <string.h>
#include <time.h>
#include <unistd.h>

#include "core/str.h"
#include "event/event.h"
#include "model/fact.h"
#include "probe/sideband.h"

#define DELETED " (deleted)"

/*
 * 1500 mappings or so between two drains. What is mapped beyond
 * kernel.perf_event_mlock_kb (516 per CPU) a process without privileges would not get.
 */
#define RING_BYTES (256 * 1024)

/* What PERF_SAMPLE_TID | PERF_SAMPLE_TIME appends. */
struct trailer {
	__u32 pid, tid;
	__u64 time_ns;
};

struct mmap2 {
	struct perf_event_header header;
	__u32 pid, tid;
	__u64 addr, length, pgoff;
	__u32 major, minor;
	__u64 inode, generation;
	__u32 prot, flags;
	/* char filename[], padded to 8 with zeroes; struct trailer */
};
_Static_assert(sizeof(struct mmap2) == 72, "as the kernel has it");

struct lost {
	struct perf_event_header header;
	__u64 id, lost;
	struct trailer trailer;
};

size_t sideband_bytes(void)
{
	return RING_BYTES + (size_t)sysconf(_SC_PAGESIZE);
}

void sideband_attr(struct perf_event_attr *ret_attr)
{
	*ret_attr = (struct perf_event_attr){
		.size = sizeof(*ret_attr),
		.type = PERF_TYPE_SOFTWARE,
		.config = PERF_COUNT_SW_DUMMY,
		.sample_type = PERF_SAMPLE_TID | PERF_SAMPLE_TIME,
		.sample_id_all = 1,
		.mmap = 1,
		.mmap2 = 1,
		.use_clockid = 1,
		.clockid = CLOCK_MONOTONIC,
		.watermark = 1,
		.wakeup_watermark = RING_BYTES / 2,
	};
}

static struct err *bad(const char *what)
{
	return err_new(ERR_FORMAT, "perf side-band: %s", what);
}

/* The kernel marks an unlinked file in its name only. */
static bool cut_deleted(char *path)
{
	if (path[0] != '/' || !str_ends(path, DELETED))
		return false;
	path[strlen(path) - strlen(DELETED)] = 0;
	return true;
}

static struct err *convert_mmap(const unsigned char *data, size_t bytes, struct str *out)
{
	struct mmap2 record;
	struct trailer trailer;
	char path[ABI_PATH_MAX];

	if (bytes < sizeof(record) + sizeof(trailer))
		return bad("short mapping");
	size_t room = bytes - sizeof(record) - sizeof(trailer);

	memcpy(&record, data, sizeof(record));
	memcpy(&trailer, data + bytes - sizeof(trailer), sizeof(trailer));
	size_t length = strnlen((const char *)data + sizeof(record), room);

	if (length == room || length >= sizeof(path))
		return bad("mapping without a path");
	memcpy(path, data + sizeof(record), length + 1);
	struct event event = {
		.mmap = {
			.head = { .kind = ABI_MMAP,
				  .time_ns = trailer.time_ns,
				  .pid = record.pid,
				  .tid = record.tid },
			.addr = record.addr,
			.length = record.length,
			.pgoff = record.pgoff,
			.inode = record.inode,
			.dev_major = record.major,
			.dev_minor = record.minor,
			.flags = cut_deleted(path) ? ABI_MMAP_DELETED : 0,
		},
		.path = path,
	};

	event_encode(&event, out);
	return NULL;
}

static struct err *convert_lost(const unsigned char *data, size_t bytes, struct str *out)
{
	struct lost record;

	if (bytes < sizeof(record))
		return bad("short loss");
	memcpy(&record, data, sizeof(record));
	struct event event = {
		.loss = {
			.head = { .kind = ABI_LOSS, .time_ns = record.trailer.time_ns },
			.kind = ABI_MMAP,
			.reason = LOSS_SIDEBAND,
			.lost = record.lost,
			.seen = record.lost,
		},
	};

	event_encode(&event, out);
	return NULL;
}

struct err *sideband_convert(const void *data, size_t bytes, struct str *out)
{
	struct perf_event_header header;

	if (bytes < sizeof(header))
		return bad("record without a header");
	memcpy(&header, data, sizeof(header));
	if (header.size != bytes)
		return bad("record of another size than it says");
	switch (header.type) {
	case PERF_RECORD_MMAP2:
		/* Data mappings and the kernel's own are not what we asked for. */
		if (header.misc & PERF_RECORD_MISC_MMAP_DATA ||
		    (header.misc & PERF_RECORD_MISC_CPUMODE_MASK) ==
			    PERF_RECORD_MISC_KERNEL)
			return NULL;
		return convert_mmap(data, bytes, out);
	case PERF_RECORD_LOST:
		return convert_lost(data, bytes, out);
	default:
		return NULL;
	}
}
