// SPDX-License-Identifier: Apache-2.0
/* Files laid out by hand as perf.data-file-format.txt and perf_event_open(2) have them. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>
#include <sys/mman.h>
#include <unistd.h>
#include <zstd.h>

#include "core/cleanup.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"
#include "event/event.h"
#include "perfdata/perfdata.h"

#define MAGIC	   "PERFILE2"
#define ATTR_BYTES 136
#define HEAD_BYTES 104
#define PID	   700
#define KERNEL	   1
#define USER	   2

enum { MMAP2 = 10, COMM = 3, FORK = 7, SAMPLE = 9, LOST = 2 };
enum { ATTR = 64, ROUND = 68, COMPRESSED = 81 };

/* IP, TID, TIME, ADDR, PERIOD, WEIGHT, DATA_SRC */
#define MEMORY (1ull << 0 | 1 << 1 | 1 << 2 | 1 << 3 | 1 << 8 | 1 << 14 | 1 << 15)
/* IP, TID, TIME, CALLCHAIN, PERIOD */
#define CHAIN (1ull << 0 | 1 << 1 | 1 << 2 | 1 << 5 | 1 << 8)

static void put(struct str *to, uint64_t value, size_t bytes)
{
	str_add_bytes(to, (const char *)&value, bytes);
}

static void put_u64s(struct str *to, size_t count, const uint64_t *values)
{
	for (size_t i = 0; i < count; i++)
		put(to, values[i], 8);
}

#define PUT(to, ...)                                                         \
	put_u64s(to, sizeof((uint64_t[]){ __VA_ARGS__ }) / sizeof(uint64_t), \
		 (uint64_t[]){ __VA_ARGS__ })

static uint64_t ids(uint32_t pid, uint32_t tid)
{
	return (uint64_t)tid << 32 | pid;
}

static void put_record(struct str *to, uint32_t type, uint16_t misc,
		       const struct str *body)
{
	put(to, type, 4);
	put(to, misc, 2);
	put(to, body->length + 8, 2);
	str_add_bytes(to, str_text(body), body->length);
}

/* One event of a software clock (type 1, config 0), 997 Hz. */
static void put_attr(struct str *to, uint64_t sample_type)
{
	size_t end = to->length + ATTR_BYTES;

	put(to, 1, 4);
	put(to, ATTR_BYTES, 4);
	PUT(to, 0, 997, sample_type, 0, 1 << 10 | 1 << 18 /* freq, sample_id_all */);
	while (to->length < end)
		put(to, 0, 1);
}

static void put_mmap2(struct str *to, uint64_t time_ns, const char *path)
{
	CLEANUP(str_fini) struct str body = { 0 };

	PUT(&body, ids(PID, PID), 0x400000, 0x2000, 0x1000, 0, 77, 0);
	put(&body, 5, 4); /* r-x */
	put(&body, 2, 4);
	str_add_bytes(&body, path, strlen(path) + 1);
	while (body.length % 8)
		put(&body, 0, 1);
	PUT(&body, ids(PID, PID), time_ns);
	put_record(to, MMAP2, USER, &body);
}

static void put_memory(struct str *to, uint16_t misc, uint64_t time_ns)
{
	CLEANUP(str_fini) struct str body = { 0 };

	PUT(&body, 0x400123, ids(PID, PID + 1), time_ns, 0x7000, 3, 200, 0x68100142);
	put_record(to, SAMPLE, misc, &body);
}

static void put_round(struct str *to)
{
	CLEANUP(str_fini) struct str body = { 0 };

	put_record(to, ROUND, 0, &body);
}

/* A whole file around records. */
static void make_file(struct str *to, uint64_t sample_type, const struct str *records)
{
	size_t attrs = ATTR_BYTES + 16;

	str_add_bytes(to, MAGIC, 8);
	PUT(to, HEAD_BYTES, attrs, HEAD_BYTES, attrs, HEAD_BYTES + attrs, records->length,
	    0, 0, 0, 0, 0, 0);
	put_attr(to, sample_type);
	PUT(to, 0, 0); /* no ids: there is one event */
	str_add_bytes(to, str_text(records), records->length);
}

static void make_pipe(struct str *to, uint64_t sample_type, const struct str *records)
{
	CLEANUP(str_fini) struct str attr = { 0 };

	str_add_bytes(to, MAGIC, 8);
	PUT(to, 16);
	put_attr(&attr, sample_type);
	put_record(to, ATTR, 0, &attr);
	str_add_bytes(to, str_text(records), records->length);
}

/* What came of it. */
struct result {
	VEC(struct event) events;
	VEC(void *) kept;
	struct perfdata_meta meta;
	struct perfdata_stats stats;
	unsigned begun;
	char *error;
	enum err_code code;
};

static void on_begin(void *ctx, const struct perfdata_meta *meta)
{
	struct result *result = ctx;

	result->meta = *meta;
	result->begun++;
}

static void on_record(void *ctx, const void *data, size_t bytes)
{
	struct result *result = ctx;
	void *copy = mem_copy(data, bytes);
	struct event event;

	vec_push(&result->kept, copy);
	assert_null(event_decode(copy, bytes, &event));
	vec_push(&result->events, event);
}

static struct err *on_step(void *ctx, const struct perfdata_stats *stats)
{
	(void)ctx;
	(void)stats;
	return NULL;
}

static struct result read_bytes(const struct str *file)
{
	static const struct perfdata_ops ops = { on_begin, on_record, on_step };
	struct result result = { .error = NULL };
	CLEANUP(close) int fd = memfd_create("perf.data", MFD_CLOEXEC);

	assert_null(file_write_all(fd, str_text(file), file->length));
	struct err *err = perfdata_read(fd, &ops, &result, &result.stats);

	result.error = err ? mem_strdup(err->text) : NULL;
	result.code = err ? err->code : 0;
	err_free(err);
	return result;
}

static void cleanup_result_fini(struct result *result)
{
	vec_each(&result->kept, copy)
		free(*copy);
	vec_fini(&result->kept);
	vec_fini(&result->events);
	free(result->error);
}

static const struct event *event_at(const struct result *result, size_t at, uint32_t kind)
{
	assert_true(at < result->events.count);
	assert_int_equal(result->events.data[at].head.kind, kind);
	return &result->events.data[at];
}

static void check_access(const struct result *result, size_t at)
{
	const struct event *event = event_at(result, at, ABI_ACCESS);

	assert_int_equal(event->head.pid, PID);
	assert_int_equal(event->head.tid, PID + 1);
	assert_int_equal(event->access.ip, 0x400123);
	assert_int_equal(event->access.addr, 0x7000);
	assert_int_equal(event->access.period, 3);
	assert_int_equal(event->access.weight, 200);
	assert_int_equal(event->access.data_src, 0x68100142);
	assert_int_equal(event->access.source, ABI_SOURCE_CLOCK);
	assert_int_equal(event->access.flags, ABI_ACCESS_ADDR | ABI_ACCESS_WEIGHT);
}

static void a_file_gives_its_mappings_and_samples(void **state)
{
	CLEANUP(str_fini) struct str records = { 0 }, file = { 0 };

	(void)state;
	put_mmap2(&records, 1000, "/opt/app");
	put_memory(&records, USER, 2000);
	put_round(&records);
	make_file(&file, MEMORY, &records);
	CLEANUP(result_fini) struct result result = read_bytes(&file);

	assert_null(result.error);
	assert_int_equal(result.begun, 1);
	assert_int_equal(result.stats.samples, 1);
	assert_int_equal(result.meta.start_ns, 1000);
	const struct event *map = event_at(&result, 0, ABI_MMAP);

	assert_string_equal(map->path, "/opt/app");
	assert_int_equal(map->mmap.addr, 0x400000);
	assert_int_equal(map->mmap.length, 0x2000);
	assert_int_equal(map->mmap.pgoff, 0x1000);
	assert_int_equal(map->mmap.inode, 77);
	check_access(&result, 1);
}

static void a_pipe_gives_the_same(void **state)
{
	CLEANUP(str_fini) struct str records = { 0 }, file = { 0 };

	(void)state;
	put_mmap2(&records, 1000, "/opt/app");
	put_memory(&records, USER, 2000);
	make_pipe(&file, MEMORY, &records);
	CLEANUP(result_fini) struct result result = read_bytes(&file);

	assert_null(result.error);
	event_at(&result, 0, ABI_MMAP);
	check_access(&result, 1);
}

/* Records may be cut anywhere by the packing. */
static void packed_records_are_unpacked(void **state)
{
	CLEANUP(str_fini) struct str plain = { 0 }, records = { 0 }, file = { 0 };
	char room[4096];
	ZSTD_CCtx *zstd = ZSTD_createCCtx();

	(void)state;
	put_mmap2(&plain, 1000, "/opt/app");
	put_memory(&plain, USER, 2000);
	for (size_t at = 0; at < plain.length;) {
		CLEANUP(str_fini) struct str body = { 0 };
		size_t part = plain.length - at < 37 ? plain.length - at : 37;
		ZSTD_inBuffer in = { str_text(&plain) + at, part, 0 };
		ZSTD_outBuffer out = { room, sizeof(room), 0 };

		assert_int_equal(ZSTD_compressStream2(zstd, &out, &in, ZSTD_e_flush), 0);
		str_add_bytes(&body, room, out.pos);
		put_record(&records, COMPRESSED, 0, &body);
		at += part;
	}
	ZSTD_freeCCtx(zstd);
	make_file(&file, MEMORY, &records);
	CLEANUP(result_fini) struct result result = read_bytes(&file);

	assert_null(result.error);
	event_at(&result, 0, ABI_MMAP);
	check_access(&result, 1);
}

static void records_come_out_in_the_order_of_time(void **state)
{
	CLEANUP(str_fini) struct str records = { 0 }, file = { 0 };

	(void)state;
	put_memory(&records, USER, 5000);
	put_memory(&records, USER, 3000);
	put_round(&records);
	put_memory(&records, USER, 4000); /* of another CPU: not too late yet */
	put_memory(&records, USER, 6000);
	put_round(&records);
	make_file(&file, MEMORY, &records);
	CLEANUP(result_fini) struct result result = read_bytes(&file);

	assert_null(result.error);
	assert_int_equal(result.events.count, 4);
	assert_int_equal(result.stats.late, 0);
	for (size_t i = 0; i < 4; i++)
		assert_int_equal(result.events.data[i].head.time_ns, 3000 + i * 1000);
}

static void a_chain_becomes_a_tick(void **state)
{
	CLEANUP(str_fini) struct str records = { 0 }, file = { 0 }, body = { 0 };

	(void)state;
	PUT(&body, 0xffffffff81000010, ids(PID, PID), 1000, 1003009, 5, (uint64_t)-128,
	    0xffffffff81000010, (uint64_t)-512, 0x400100, 0x400200);
	put_record(&records, SAMPLE, KERNEL, &body);
	make_file(&file, CHAIN, &records);
	CLEANUP(result_fini) struct result result = read_bytes(&file);

	assert_null(result.error);
	assert_int_equal(event_at(&result, 0, ABI_ACCESS)->access.flags,
			 ABI_ACCESS_KERNEL);
	const struct abi_tick *tick = &event_at(&result, 1, ABI_TICK)->tick;

	assert_int_equal(tick->kernel_depth, 1);
	assert_int_equal(tick->kernel_ips[0], 0xffffffff81000010);
	assert_int_equal(tick->user_depth, 2);
	assert_int_equal(tick->user_ips[1], 0x400200);
	assert_int_equal(tick->period_ns, 1003009); /* a clock's period is its time */
}

static void a_fork_begins_another_owner_of_a_pid(void **state)
{
	CLEANUP(str_fini) struct str records = { 0 }, file = { 0 }, fork = { 0 };

	(void)state;
	put_memory(&records, USER, 1000);
	put(&fork, PID, 4);
	put(&fork, 1, 4); /* parent */
	put(&fork, PID, 4);
	put(&fork, 1, 4);
	PUT(&fork, 3000000000, ids(1, 1), 3000000000);
	put_record(&records, FORK, 0, &fork);
	put_memory(&records, USER, 3100000000);
	make_file(&file, MEMORY, &records);
	CLEANUP(result_fini) struct result result = read_bytes(&file);
	uint64_t first = event_at(&result, 0, ABI_ACCESS)->head.start_ns;

	event_at(&result, 1, ABI_TASK);
	assert_true(event_at(&result, 2, ABI_ACCESS)->head.start_ns > first);
}

static void guests_are_counted_and_left_out(void **state)
{
	CLEANUP(str_fini) struct str records = { 0 }, file = { 0 };

	(void)state;
	put_memory(&records, 5 /* a guest's user code */, 1000);
	put_memory(&records, USER, 2000);
	make_file(&file, MEMORY, &records);
	CLEANUP(result_fini) struct result result = read_bytes(&file);

	assert_int_equal(result.stats.foreign, 1);
	assert_int_equal(result.stats.samples, 1);
}

/* At every length: an error or all of it, and what was before the cut is there. */
static void a_cut_file_gives_what_was_before(void **state)
{
	CLEANUP(str_fini) struct str records = { 0 }, file = { 0 };

	(void)state;
	put_mmap2(&records, 1000, "/opt/app");
	put_memory(&records, USER, 2000);
	make_file(&file, MEMORY, &records);
	size_t whole = file.length, second = whole - 8 - 7 * 8;

	for (size_t bytes = 0; bytes < whole; bytes++) {
		file.length = bytes;
		CLEANUP(result_fini) struct result result = read_bytes(&file);

		assert_non_null(result.error);
		assert_int_equal(result.code, ERR_FORMAT);
		assert_int_equal(result.events.count, bytes >= second);
	}
}

/* What replay would refuse is not handed on; what came before is. */
static void a_mapping_that_wraps_is_damage(void **state)
{
	CLEANUP(str_fini) struct str records = { 0 }, file = { 0 };

	(void)state;
	put_memory(&records, USER, 500);
	size_t at = records.length;

	put_mmap2(&records, 1000, "/opt/app");
	memset(records.data + at + 16, 0xff, 8); /* its address */
	put_memory(&records, USER, 2000);
	make_file(&file, MEMORY, &records);
	CLEANUP(result_fini) struct result result = read_bytes(&file);

	assert_int_equal(result.code, ERR_FORMAT);
	assert_non_null(strstr(result.error, "wraps"));
	assert_int_equal(result.events.count, 1);
}

static void what_cannot_be_read_says_why(void **state)
{
	static const struct {
		const char *magic, *why;
		enum err_code code;
	} cases[] = { { "2ELIFREP", "big-endian", ERR_UNSUPPORTED },
		      { "PERFFILE", "2.6.39", ERR_UNSUPPORTED },
		      { "\177ELF\2\1\1", "no file of perf record", ERR_FORMAT } };

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		CLEANUP(str_fini) struct str file = { 0 };

		str_add_bytes(&file, cases[i].magic, 8);
		PUT(&file, HEAD_BYTES);
		CLEANUP(result_fini) struct result result = read_bytes(&file);

		assert_int_equal(result.code, cases[i].code);
		assert_non_null(strstr(result.error, cases[i].why));
		assert_int_equal(result.begun, 0);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_gives_its_mappings_and_samples),
		cmocka_unit_test(a_pipe_gives_the_same),
		cmocka_unit_test(packed_records_are_unpacked),
		cmocka_unit_test(records_come_out_in_the_order_of_time),
		cmocka_unit_test(a_chain_becomes_a_tick),
		cmocka_unit_test(a_fork_begins_another_owner_of_a_pid),
		cmocka_unit_test(guests_are_counted_and_left_out),
		cmocka_unit_test(a_cut_file_gives_what_was_before),
		cmocka_unit_test(a_mapping_that_wraps_is_damage),
		cmocka_unit_test(what_cannot_be_read_says_why),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
