// SPDX-License-Identifier: Apache-2.0
/*
 * The file is the ring's bytes behind a header. A recorder may die at any moment, so
 * there is no index and no trailer: a reader takes what is whole and says where it ended.
 */
#include "event/stream.h"

#include <errno.h>
#include <string.h>

#include "core/mem.h"
#include "core/wire.h"

#define MAGIC	     "ASSAYREC"
#define MAGIC_BYTES  8
#define BUFFER_BYTES (256 * 1024)

struct stream_writer {
	FILE *file;
};

struct stream_reader {
	FILE *file;
	uint64_t count;
	size_t bytes; /* of the record in data[] */
	char *failed; /* text of the error that ended the reading */
	unsigned char data[STREAM_MAX_RECORD];
};

/* One row per string, so that writer and reader cannot disagree about the order. */
static const struct {
	size_t offset, room;
	const char *name;
} strings[] = {
#define STRING(name)                                                   \
	{                                                              \
		offsetof(struct stream_meta, name),                    \
			sizeof(((struct stream_meta *)0)->name), #name \
	}
	STRING(boot_id), STRING(host),	 STRING(kernel),
	STRING(version), STRING(target), STRING(sources),
#undef STRING
};
#define STRING_COUNT (sizeof(strings) / sizeof(strings[0]))

static struct err *write_bytes(FILE *file, const void *data, size_t bytes)
{
	if (fwrite(data, 1, bytes, file) != bytes)
		return err_errno(errno, "write the recording");
	return NULL;
}

static struct err *write_header(FILE *file, const struct stream_meta *meta)
{
	CLEANUP(str_fini) struct str text = { 0 };

	wire_put_u64(&text, meta->start_ns);
	wire_put_u64(&text, (uint64_t)meta->realtime_offset_ns);
	for (size_t i = 0; i < STRING_COUNT; i++)
		wire_put_str(&text, (const char *)meta + strings[i].offset);
	wire_put_u8(&text, meta->is_imported);

	uint32_t numbers[2] = { ABI_VERSION, (uint32_t)text.length };

	TRY(write_bytes(file, MAGIC, MAGIC_BYTES));
	TRY(write_bytes(file, numbers, sizeof(numbers)));
	return write_bytes(file, text.data, text.length);
}

struct err *stream_create(int fd, const struct stream_meta *meta,
			  struct stream_writer **ret_writer)
{
	CLEANUP(stream_close) struct stream_writer *writer = mem_alloc(sizeof(*writer));

	writer->file = fdopen(fd, "w");
	if (!writer->file) {
		int errnum = errno;

		close(fd);
		return err_errno(errnum, "begin the recording");
	}
	setvbuf(writer->file, NULL, _IOFBF, BUFFER_BYTES);
	TRY(write_header(writer->file, meta));
	*ret_writer = take(writer);
	return NULL;
}

struct err *stream_write(struct stream_writer *writer, const void *data, size_t bytes)
{
	if (bytes > STREAM_MAX_RECORD)
		return err_new(ERR_LIMIT, "record of %zu bytes", bytes);
	uint32_t length = (uint32_t)bytes;

	TRY(write_bytes(writer->file, &length, sizeof(length)));
	return write_bytes(writer->file, data, bytes);
}

struct err *stream_flush(struct stream_writer *writer)
{
	if (fflush(writer->file) || ferror(writer->file))
		return err_errno(errno, "write the recording");
	return NULL;
}

void stream_close(struct stream_writer *writer)
{
	if (!writer)
		return;
	if (writer->file)
		fclose(writer->file);
	free(writer);
}

static struct err *read_header(struct stream_reader *reader, uint32_t *ret_bytes)
{
	unsigned char head[MAGIC_BYTES + 8];
	uint32_t numbers[2];

	if (fread(head, 1, sizeof(head), reader->file) != sizeof(head) ||
	    memcmp(head, MAGIC, MAGIC_BYTES) != 0)
		return err_new(ERR_FORMAT, "not a recording of assay");
	memcpy(numbers, head + MAGIC_BYTES, sizeof(numbers));
	if (numbers[0] != ABI_VERSION)
		return err_new(ERR_UNSUPPORTED,
			       "recording of version %u; this program reads version %u",
			       numbers[0], ABI_VERSION);
	if (numbers[1] > STREAM_MAX_META)
		return err_new(ERR_LIMIT, "%u bytes of metadata", numbers[1]);
	*ret_bytes = numbers[1];
	return NULL;
}

static struct err *read_meta(struct stream_reader *reader, struct stream_meta *ret_meta)
{
	struct stream_meta meta = { 0 };
	uint32_t bytes = 0;

	TRY(read_header(reader, &bytes));
	if (fread(reader->data, 1, bytes, reader->file) != bytes)
		return err_new(ERR_FORMAT, "the recording ends in its metadata");

	struct wire wire = { .data = reader->data, .size = bytes };

	meta.start_ns = wire_u64(&wire);
	meta.realtime_offset_ns = (int64_t)wire_u64(&wire);
	for (size_t i = 0; i < STRING_COUNT; i++) {
		const char *text = wire_str(&wire);

		if (strlen(text) >= strings[i].room)
			return err_new(ERR_LIMIT, "metadata: %s is too long",
				       strings[i].name);
		memcpy((char *)&meta + strings[i].offset, text, strlen(text));
	}
	/* Recordings from before there was an import end here. */
	meta.is_imported = wire.pos < wire.size && wire_u8(&wire);
	if (wire.bad)
		return err_new(ERR_FORMAT, "the recording's metadata is damaged");
	*ret_meta = meta;
	return NULL;
}

struct err *stream_open(FILE *file, struct stream_meta *ret_meta,
			struct stream_reader **ret_reader)
{
	CLEANUP(stream_reader_free)
	struct stream_reader *reader = mem_alloc(sizeof(*reader));

	reader->file = file;
	setvbuf(file, NULL, _IOFBF, BUFFER_BYTES);
	TRY(read_meta(reader, ret_meta));
	*ret_reader = take(reader);
	return NULL;
}

static struct err *fail(struct stream_reader *reader, const char *what)
{
	reader->failed = mem_printf("%s after %llu good records", what,
				    (unsigned long long)reader->count);
	return err_new(ERR_FORMAT, "%s", reader->failed);
}

struct err *stream_next(struct stream_reader *reader, struct event *ret_event,
			bool *ret_end)
{
	uint32_t length;

	if (reader->failed)
		return err_new(ERR_FORMAT, "%s", reader->failed);
	size_t got = fread(&length, 1, sizeof(length), reader->file);

	if (ferror(reader->file))
		return err_errno(errno, "read the recording");
	if (!got) {
		*ret_end = true;
		return NULL;
	}
	if (got != sizeof(length))
		return fail(reader, "the recording is cut short");
	if (length > STREAM_MAX_RECORD)
		return fail(reader, "the recording is damaged");
	if (fread(reader->data, 1, length, reader->file) != length)
		return fail(reader, "the recording is cut short");

	struct err *err = event_decode(reader->data, length, ret_event);

	if (err) {
		err_free(fail(reader, err->text));
		return err_wrap(err, "record %llu",
				(unsigned long long)reader->count + 1);
	}
	reader->bytes = length;
	reader->count++;
	*ret_end = false;
	return NULL;
}

const void *stream_bytes(const struct stream_reader *reader, size_t *ret_bytes)
{
	*ret_bytes = reader->bytes;
	return reader->data;
}

uint64_t stream_count(const struct stream_reader *reader)
{
	return reader->count;
}

void stream_reader_free(struct stream_reader *reader)
{
	if (!reader)
		return;
	fclose(reader->file);
	free(reader->failed);
	free(reader);
}
