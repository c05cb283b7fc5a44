/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PERFDATA_IMPL_H
#define PERFDATA_IMPL_H

#include <stdbool.h>

#include "bpf/abi.h"
#include "core/map.h"
#include "core/str.h"
#include "core/vec.h"
#include "event/event.h"
#include "event/merge.h"
#include "model/ids.h"
#include "perfdata/perfdata.h"

/* PERF_RECORD_*: those of the kernel, and from 64 on those of perf itself. */
enum record_type {
	RECORD_MMAP = 1,
	RECORD_LOST = 2,
	RECORD_COMM = 3,
	RECORD_EXIT = 4,
	RECORD_FORK = 7,
	RECORD_SAMPLE = 9,
	RECORD_MMAP2 = 10,
	RECORD_LOST_SAMPLES = 13,
	RECORD_KSYMBOL = 17,
	RECORD_HEADER_ATTR = 64,
	RECORD_TRACING_DATA = 66,
	RECORD_BUILD_ID = 67,
	RECORD_FINISHED_ROUND = 68,
	RECORD_AUXTRACE = 71,
	RECORD_EVENT_UPDATE = 78,
	RECORD_FEATURE = 80,
	RECORD_COMPRESSED = 81,
	RECORD_COMPRESSED2 = 83,
};

/* Numbers of the features in the header. */
enum feature {
	FEATURE_BUILD_ID = 2,
	FEATURE_HOSTNAME = 3,
	FEATURE_OSRELEASE = 4,
	FEATURE_VERSION = 5,
	FEATURE_ARCH = 6,
	FEATURE_EVENT_DESC = 12,
	FEATURE_PMU_MAPPINGS = 16,
	FEATURE_SAMPLE_TIME = 21,
	FEATURE_CLOCK_DATA = 29,
	FEATURES = 256,
};

/* PERF_SAMPLE_*. */
enum sample_bit {
	SAMPLE_IP = 1 << 0,
	SAMPLE_TID = 1 << 1,
	SAMPLE_TIME = 1 << 2,
	SAMPLE_ADDR = 1 << 3,
	SAMPLE_READ = 1 << 4,
	SAMPLE_CALLCHAIN = 1 << 5,
	SAMPLE_ID = 1 << 6,
	SAMPLE_CPU = 1 << 7,
	SAMPLE_PERIOD = 1 << 8,
	SAMPLE_STREAM_ID = 1 << 9,
	SAMPLE_RAW = 1 << 10,
	SAMPLE_BRANCH_STACK = 1 << 11,
	SAMPLE_REGS_USER = 1 << 12,
	SAMPLE_STACK_USER = 1 << 13,
	SAMPLE_WEIGHT = 1 << 14,
	SAMPLE_DATA_SRC = 1 << 15,
	SAMPLE_IDENTIFIER = 1 << 16,
	SAMPLE_TRANSACTION = 1 << 17,
	SAMPLE_REGS_INTR = 1 << 18,
	SAMPLE_WEIGHT_STRUCT = 1 << 24,
};

/* The low bits of a record's misc. */
enum misc {
	MISC_CPUMODE = 7,
	MISC_KERNEL = 1,
	MISC_USER = 2,
	MISC_MMAP_DATA = 1 << 13,
	MISC_COMM_EXEC = 1 << 13,
	MISC_BUILD_ID = 1 << 14,
	MISC_BUILD_ID_SIZE = 1 << 15,
};

struct record_head {
	uint32_t type;
	uint16_t misc, size;
};

/* Bytes that are read in order, never past their end: then 0, and @bad. */
struct bytes {
	const unsigned char *data;
	size_t size, at;
	bool bad;
};

uint32_t take_u32(struct bytes *in);
uint64_t take_u64(struct bytes *in);
const void *take_bytes(struct bytes *in, uint64_t size); /* NULL past the end */
/* take_text() - up to the end at most; "" when there is no NUL. */
const char *take_text(struct bytes *in);

struct attr {
	uint32_t type,
		config_type; /* PERF_TYPE_*; the second after PMU names are known */
	uint64_t config, period, sample_type, read_format, flags, branch_type;
	uint64_t regs_user, regs_intr; /* masks of registers */
	bool is_freq;
	unsigned precise;
	enum abi_source source;
	char name[PERFDATA_EVENT_BYTES];
};

struct build_id_of {
	struct build_id id;
};

struct perfdata {
	const struct perfdata_ops *ops;
	void *ctx;
	struct perfdata_stats stats;
	struct perfdata_meta meta;
	bool has_begun, has_clock, is_foreign_arch;
	bool has_build_ids; /* some event asked for them in its mappings */
	VEC(struct attr) attrs;
	struct map *ids;       /* id of an event -> index of its attr */
	struct map *build_ids; /* hash of a path -> struct build_id */
	struct map *pmus;      /* PMU type -> its name, char[PERFDATA_EVENT_BYTES] */
	struct map *starts;    /* pid -> start_ns */
	struct merge *merge;
	uint64_t round_max_ns, seen_max_ns, first_ns;
	int64_t mtime_ns;
	struct str out;	      /* one record under construction */
	struct str given;     /* one on its way out */
	struct err *nonsense; /* why @out is no record */
};

/* Of attr.c: what an event is. */
struct err *attr_add(struct perfdata *perf, struct bytes attr, struct bytes ids);
const struct attr *attr_of_sample(const struct perfdata *perf, const struct bytes *body);
struct err *feature_take(struct perfdata *perf, uint64_t feature, struct bytes in);
void build_id_take(struct perfdata *perf, const struct record_head *head,
		   struct bytes body);
void event_update_take(struct perfdata *perf, struct bytes body);
/* The source of an attr depends on names that may come after it. */
void attrs_settle(struct perfdata *perf);
const struct build_id *build_id_of_path(const struct perfdata *perf, const char *path);

/* Of side.c: everything but samples. */
void side_take(struct perfdata *perf, const struct record_head *head, struct bytes body);

/* Of sample.c. */
struct err *sample_take(struct perfdata *perf, const struct record_head *head,
			struct bytes body);

/* Of perfdata.c: hand on what is in @perf->out, or say in @perf->nonsense why not. */
void put_out(struct perfdata *perf);

#endif
