// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/file.h"
#include "event/stream.h"

static const struct stream_meta example = {
	.start_ns = 17,
	.realtime_offset_ns = -5,
	.boot_id = "6f1c2f36-0000-4000-8000-000000000001",
	.host = "db1",
	.kernel = "6.1.0-18-amd64",
	.version = "0.1.0",
	.target = "pid 42",
	.sources = "clock 997 Hz",
};

/* Three records of 96 bytes: tasks at 1, 2 and 3 ns. */
static void record(int fd)
{
	CLEANUP(stream_close) struct stream_writer *writer = NULL;
	CLEANUP(str_fini) struct str bytes = { 0 };

	assert_null(stream_create(fd, &example, &writer));
	for (uint64_t i = 1; i <= 3; i++) {
		struct event event = { .task = {
					       .head = { .kind = ABI_TASK, .time_ns = i },
					       .op = ABI_TASK_SEEN } };

		str_clear(&bytes);
		event_encode(&event, &bytes);
		assert_null(stream_write(writer, bytes.data, bytes.length));
	}
	assert_null(stream_flush(writer));
}

/* The recording as bytes; the writer closes the descriptor, so read a duplicate. */
static char *recorded(size_t *ret_bytes)
{
	int fd = memfd_create("recording", 0);
	CLEANUP(close) int again = dup(fd);
	char *text = NULL;

	record(fd);
	assert_int_equal(lseek(again, 0, SEEK_SET), 0);
	assert_null(file_read_fd(again, 1 << 20, &text, ret_bytes));
	return text;
}

static struct err *read_all(char *data, size_t bytes, struct stream_meta *ret_meta,
			    uint64_t *ret_count)
{
	CLEANUP(stream_reader_free) struct stream_reader *reader = NULL;
	struct event event;
	bool end = false;

	*ret_count = 0;
	TRY(stream_open(fmemopen(data, bytes, "r"), ret_meta, &reader));
	while (!end) {
		struct err *err = stream_next(reader, &event, &end);

		*ret_count = stream_count(reader);
		if (err)
			return err;
		if (!end)
			assert_int_equal(event.head.time_ns, *ret_count);
	}
	return NULL;
}

static void what_was_recorded_is_replayed(void **state)
{
	struct stream_meta meta;
	uint64_t count;
	size_t bytes;
	CLEANUP(free) char *data = recorded(&bytes);

	(void)state;
	assert_null(read_all(data, bytes, &meta, &count));
	assert_int_equal(count, 3);
	assert_memory_equal(&meta, &example, sizeof(meta));
}

static void a_cut_tail_gives_what_was_whole_and_says_so(void **state)
{
	size_t bytes;
	CLEANUP(free) char *data = recorded(&bytes);

	(void)state;
	/* Every cut within the last record, whose length and bytes are 4 + 96. */
	for (size_t cut = 1; cut < 100; cut++) {
		struct stream_meta meta;
		uint64_t count;
		struct err *err = read_all(data, bytes - cut, &meta, &count);

		assert_non_null(err);
		assert_int_equal(err->code, ERR_FORMAT);
		assert_non_null(strstr(err->text, "cut short after 2 good records"));
		assert_int_equal(count, 2);
		err_free(err);
	}
}

static void damage_ends_the_reading_for_good(void **state)
{
	CLEANUP(stream_reader_free) struct stream_reader *reader = NULL;
	struct stream_meta meta;
	struct event event;
	bool end = false;
	size_t bytes;
	CLEANUP(free) char *data = recorded(&bytes);

	(void)state;
	data[bytes - 200 + 4] = 99; /* the kind of the second record */
	assert_null(stream_open(fmemopen(data, bytes, "r"), &meta, &reader));
	assert_null(stream_next(reader, &event, &end));
	for (int i = 0; i < 3; i++) {
		struct err *err = stream_next(reader, &event, &end);

		assert_non_null(err);
		assert_int_equal(err->code, ERR_FORMAT);
		err_free(err);
	}
	assert_int_equal(stream_count(reader), 1);
}

static void other_files_and_versions_are_refused(void **state)
{
	struct stream_meta meta;
	uint64_t count;
	size_t bytes;
	CLEANUP(free) char *data = recorded(&bytes);

	(void)state;
	data[8] = ABI_VERSION + 1;
	struct err *err = read_all(data, bytes, &meta, &count);

	assert_int_equal(err->code, ERR_UNSUPPORTED);
	err_free(err);
	data[0] = 'x';
	err = read_all(data, bytes, &meta, &count);
	assert_int_equal(err->code, ERR_FORMAT);
	err_free(err);
}

static void a_huge_length_is_damage_not_an_allocation(void **state)
{
	struct stream_meta meta;
	uint64_t count;
	size_t bytes;
	CLEANUP(free) char *data = recorded(&bytes);

	(void)state;
	memset(data + bytes - 100, 0xff, 4);
	struct err *err = read_all(data, bytes, &meta, &count);

	assert_int_equal(err->code, ERR_FORMAT);
	assert_int_equal(count, 2);
	err_free(err);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(what_was_recorded_is_replayed),
		cmocka_unit_test(a_cut_tail_gives_what_was_whole_and_says_so),
		cmocka_unit_test(damage_ends_the_reading_for_good),
		cmocka_unit_test(other_files_and_versions_are_refused),
		cmocka_unit_test(a_huge_length_is_damage_not_an_allocation),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
