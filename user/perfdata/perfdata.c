// SPDX-License-Identifier: Apache-2.0
/*
 * A file has its sections anywhere and the features behind the data; a pipe has all in
 * one row. Both end in the same loop over records. zstd packs records into records: what
 * comes out of these runs through the same loop again.
 *
 * Each CPU's records are sorted, the file is not. perf ends a round when every CPU was
 * drained: nothing that comes later is older than the newest record of the round before.
 */
#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>
#include <zstd.h>

#include "perfdata/perfdata_impl.h"

#define MAGIC		  0x32454c4946524550ull /* "PERFILE2" */
#define MAGIC_SWAPPED	  0x50455246494c4532ull
#define MAGIC_OLD	  "PERFFILE"
#define HEAD_BYTES	  104
#define PIPE_HEAD_BYTES	  16
#define WINDOW_BYTES	  (1024 * 1024) /* of the file in memory */
#define STEP_BYTES	  (1024 * 1024) /* of the file between two steps */
#define UNPACK_BYTES	  (128 * 1024)
#define PENDING_MAX_BYTES (64 * 1024 * 1024) /* unpacked, of one packed record */
#define TICK_NS		  ABI_START_TICK_NS

uint32_t take_u32(struct bytes *in)
{
	uint32_t value = 0;
	const void *from = take_bytes(in, sizeof(value));

	if (from)
		memcpy(&value, from, sizeof(value));
	return value;
}

uint64_t take_u64(struct bytes *in)
{
	uint64_t value = 0;
	const void *from = take_bytes(in, sizeof(value));

	if (from)
		memcpy(&value, from, sizeof(value));
	return value;
}

const void *take_bytes(struct bytes *in, uint64_t size)
{
	if (in->bad || size > in->size - in->at) {
		in->bad = true;
		return NULL;
	}
	const void *from = in->data + in->at;

	in->at += size;
	return from;
}

const char *take_text(struct bytes *in)
{
	const char *text = (const char *)in->data + in->at;
	const char *end = in->bad ? NULL : memchr(text, 0, in->size - in->at);

	if (!end)
		return "";
	in->at += (size_t)(end - text) + 1;
	return text;
}

/* The file. */

struct source {
	int fd;
	uint64_t size, at; /* of the window's first byte */
	size_t held;
	unsigned char *window;
};

/* @bytes at @off, from the window; NULL past the end or on an error. */
static const unsigned char *look(struct source *source, uint64_t off, size_t bytes)
{
	if (off > source->size || bytes > source->size - off || bytes > WINDOW_BYTES)
		return NULL;
	if (off >= source->at && off - source->at + bytes <= source->held)
		return source->window + (off - source->at);
	source->at = off;
	source->held = 0;
	while (source->held < WINDOW_BYTES) {
		ssize_t got =
			pread(source->fd, source->window + source->held,
			      WINDOW_BYTES - source->held, (off_t)(off + source->held));

		if (got < 0 && errno == EINTR)
			continue;
		if (got <= 0)
			break;
		source->held += (size_t)got;
	}
	return bytes <= source->held ? source->window : NULL;
}

/* A section of its own, however large; "" for none. */
static struct err *read_section(struct source *source, uint64_t off, uint64_t bytes,
				struct str *ret_text)
{
	str_clear(ret_text);
	if (bytes > PERFDATA_MAX_SECTION)
		return err_new(ERR_LIMIT, "a section of %" PRIu64 " bytes", bytes);
	if (off > source->size || bytes > source->size - off)
		return err_new(ERR_FORMAT, "it ends before its sections do: it was cut");
	while (ret_text->length < bytes) {
		uint64_t left = bytes - ret_text->length;
		size_t part = left < WINDOW_BYTES ? (size_t)left : WINDOW_BYTES;
		const void *data = look(source, off + ret_text->length, part);

		if (!data)
			return err_new(ERR_IO, "it cannot be read");
		str_add_bytes(ret_text, data, part);
	}
	return NULL;
}

static struct bytes bytes_of(const struct str *text)
{
	return (struct bytes){ (const unsigned char *)str_text(text), text->length, 0,
			       false };
}

/* Handing on. */

static void begin(struct perfdata *perf)
{
	if (perf->has_begun)
		return;
	perf->has_begun = true;
	perf->meta.start_ns = perf->first_ns;
	if (!perf->has_clock && !perf->meta.realtime_offset_ns && perf->seen_max_ns)
		perf->meta.realtime_offset_ns =
			(int64_t)((uint64_t)perf->mtime_ns - perf->seen_max_ns);
	perf->ops->begin(perf->ctx, &perf->meta);
}

/* A FORK begins another owner of the pid. */
static uint64_t start_of(struct perfdata *perf, const struct abi_head *head,
			 const void *data)
{
	struct abi_task task;
	bool is_fork = false;
	uint64_t *start = map_find(perf->starts, &head->pid);

	if (head->kind == ABI_TASK) {
		memcpy(&task, data, sizeof(task));
		is_fork = task.op == ABI_TASK_FORK && head->pid == head->tid;
	}
	if (!start && map_count(perf->starts) >= PERFDATA_MAX_PROCESSES)
		return TICK_NS;
	if (!start)
		start = map_put(perf->starts, &head->pid, NULL);
	if (is_fork)
		*start = head->time_ns - head->time_ns % TICK_NS;
	if (!*start)
		*start = TICK_NS;
	return *start;
}

static void deliver(void *ctx, const void *data, size_t bytes)
{
	struct perfdata *perf = ctx;
	struct abi_head head;

	begin(perf);
	memcpy(&head, data, sizeof(head));
	/* Made up by perf for what ran before: as old as the first of the others. */
	if (!head.time_ns)
		head.time_ns = perf->first_ns ?: 1;
	if (head.kind != ABI_MODULE && head.kind != ABI_LOSS)
		head.start_ns = start_of(perf, &head, data);
	str_clear(&perf->given);
	str_add_bytes(&perf->given, &head, sizeof(head));
	str_add_bytes(&perf->given, (const char *)data + sizeof(head),
		      bytes - sizeof(head));
	perf->ops->record(perf->ctx, perf->given.data, bytes);
}

void put_out(struct perfdata *perf)
{
	struct abi_head head;
	struct event event;

	if (perf->nonsense)
		return;
	perf->nonsense = event_decode(perf->out.data, perf->out.length, &event);
	if (perf->nonsense)
		return;
	memcpy(&head, perf->out.data, sizeof(head));
	if (head.time_ns > perf->seen_max_ns)
		perf->seen_max_ns = head.time_ns;
	if (head.time_ns && (!perf->first_ns || head.time_ns < perf->first_ns))
		perf->first_ns = head.time_ns;
	merge_put(perf->merge, perf->out.data, perf->out.length);
}

static void end_round(struct perfdata *perf)
{
	if (perf->round_max_ns)
		merge_run(perf->merge, perf->round_max_ns);
	perf->round_max_ns = perf->seen_max_ns;
}

/* Records. */

struct reading {
	struct perfdata *perf;
	ZSTD_DCtx *zstd;
	struct str pending; /* unpacked; begins with a whole record */
	uint64_t stepped;
};

static struct err *take_attr(struct perfdata *perf, struct bytes body)
{
	uint32_t bytes = 0;

	if (body.size >= 8)
		memcpy(&bytes, body.data + 4, sizeof(bytes));
	struct bytes attr = { take_bytes(&body, bytes), bytes, 0, false };

	if (!attr.data)
		return err_new(ERR_FORMAT, "the description of an event is cut off");
	return attr_add(perf, attr, body);
}

static struct err *take_packed(struct reading *reading, struct bytes body);

static struct err *take_one(struct reading *reading, const struct record_head *head,
			    struct bytes body)
{
	struct perfdata *perf = reading->perf;

	perf->stats.records++;
	switch (head->type) {
	case RECORD_SAMPLE:
		return sample_take(perf, head, body);
	case RECORD_HEADER_ATTR:
		return take_attr(perf, body);
	case RECORD_BUILD_ID:
		build_id_take(perf, head, body);
		return NULL;
	case RECORD_EVENT_UPDATE:
		event_update_take(perf, body);
		return NULL;
	case RECORD_FEATURE: {
		uint64_t feature = take_u64(&body);

		return feature_take(perf, feature,
				    (struct bytes){ body.data + body.at,
						    body.size - body.at, 0, false });
	}
	case RECORD_FINISHED_ROUND:
		end_round(perf);
		return NULL;
	case RECORD_COMPRESSED2:
		take_u64(&body); /* the size without padding, which zstd passes over */
		return take_packed(reading, body);
	case RECORD_COMPRESSED:
		return take_packed(reading, body);
	default:
		side_take(perf, head, body);
		return NULL;
	}
}

static struct err *take_record(struct reading *reading, const struct record_head *head,
			       struct bytes body)
{
	struct err *err = take_one(reading, head, body);

	return err ? err : take(reading->perf->nonsense);
}

/* Whole records at the head of @reading->pending. */
static struct err *take_pending(struct reading *reading)
{
	struct str *pending = &reading->pending;
	size_t at = 0;
	struct err *err = NULL;

	while (!err && pending->length - at >= sizeof(struct record_head)) {
		struct record_head head;

		memcpy(&head, pending->data + at, sizeof(head));
		if (head.size < sizeof(head) || head.type == RECORD_COMPRESSED ||
		    head.type == RECORD_COMPRESSED2)
			return err_new(ERR_FORMAT, "a compressed part is damaged");
		if (head.size > pending->length - at)
			break;
		err = take_record(reading, &head,
				  (struct bytes){ (unsigned char *)pending->data + at +
							  sizeof(head),
						  head.size - sizeof(head), 0, false });
		at += head.size;
	}
	memmove(pending->data, pending->data + at, pending->length - at);
	pending->length -= at;
	return err;
}

static struct err *take_packed(struct reading *reading, struct bytes body)
{
	ZSTD_inBuffer in = { body.data, body.size, body.at };
	CLEANUP(free) char *room = mem_alloc(UNPACK_BYTES);

	if (!reading->zstd)
		reading->zstd = ZSTD_createDCtx();
	for (;;) {
		ZSTD_outBuffer out = { room, UNPACK_BYTES, 0 };
		size_t code = ZSTD_decompressStream(reading->zstd, &out, &in);

		if (ZSTD_isError(code))
			return err_new(ERR_FORMAT, "a compressed part is damaged: %s",
				       ZSTD_getErrorName(code));
		if (reading->pending.length + out.pos > PENDING_MAX_BYTES)
			return err_new(ERR_LIMIT, "a compressed part is too large");
		str_add_bytes(&reading->pending, room, out.pos);
		if (reading->pending.length)
			TRY(take_pending(reading));
		if (in.pos == in.size && out.pos < out.size)
			return NULL;
	}
}

/* Bytes of the file that follow a record without being counted in its size. */
static uint64_t after_record(const struct record_head *head, struct bytes body)
{
	if (head->type == RECORD_AUXTRACE)
		return take_u64(&body);
	if (head->type == RECORD_TRACING_DATA)
		return (take_u32(&body) + 7ull) & ~7ull;
	return 0;
}

static struct err *read_records(struct reading *reading, struct source *source,
				uint64_t off, uint64_t end)
{
	struct perfdata *perf = reading->perf;

	while (off < end) {
		struct record_head head;
		const unsigned char *at = look(source, off, sizeof(head));

		if (!at)
			return err_new(ERR_FORMAT, "it is cut off at %" PRIu64, off);
		memcpy(&head, at, sizeof(head));
		if (head.size < sizeof(head))
			return err_new(ERR_FORMAT, "no record at %" PRIu64, off);
		at = look(source, off, head.size);
		if (!at)
			return err_new(ERR_FORMAT, "it is cut off at %" PRIu64, off);
		struct bytes body = { at + sizeof(head), head.size - sizeof(head), 0,
				      false };
		uint64_t more = after_record(&head, body);

		TRY(err_wrap(take_record(reading, &head, body), "at %" PRIu64, off));
		off += head.size;
		off = more > source->size - off ? source->size : off + more;
		perf->stats.bytes = off;
		if (off - reading->stepped < STEP_BYTES)
			continue;
		reading->stepped = off;
		TRY(perf->ops->step(perf->ctx, &perf->stats));
	}
	return NULL;
}

/* The header of a file. */

struct section {
	uint64_t off, bytes;
};

static struct section take_section(struct bytes *in)
{
	uint64_t off = take_u64(in);

	return (struct section){ off, take_u64(in) };
}

static struct err *read_attrs(struct perfdata *perf, struct source *source,
			      const struct section *attrs, uint64_t each)
{
	CLEANUP(str_fini) struct str text = { 0 };
	CLEANUP(str_fini) struct str ids = { 0 };

	if (each <= sizeof(struct section) || each > attrs->bytes)
		return err_new(ERR_FORMAT, "it describes no events");
	TRY(read_section(source, attrs->off, attrs->bytes, &text));
	struct bytes in = bytes_of(&text);

	while (in.size - in.at >= each) {
		uint64_t bytes = each - sizeof(struct section);
		struct bytes attr = { take_bytes(&in, bytes), bytes, 0, false };
		struct section at = take_section(&in);

		TRY(read_section(source, at.off, at.bytes, &ids));
		TRY(attr_add(perf, attr, bytes_of(&ids)));
	}
	return NULL;
}

/* Where the features are follows the data, one section for each bit that is set. */
static struct err *read_features(struct perfdata *perf, struct source *source,
				 const struct section *data, const uint64_t *bits)
{
	uint64_t off = data->off + data->bytes;
	CLEANUP(str_fini) struct str text = { 0 };

	for (unsigned feature = 0; feature < FEATURES; feature++) {
		if (!(bits[feature / 64] >> feature % 64 & 1))
			continue;
		const unsigned char *at = look(source, off, sizeof(struct section));

		if (!at)
			return err_new(ERR_FORMAT,
				       "it ends within its header: the recording was "
				       "killed or is still running");
		struct bytes in = { at, sizeof(struct section), 0, false };
		struct section section = take_section(&in);

		TRY(read_section(source, section.off, section.bytes, &text));
		TRY(feature_take(perf, feature, bytes_of(&text)));
		off += sizeof(struct section);
	}
	return NULL;
}

static struct err *read_file(struct reading *reading, struct source *source)
{
	const unsigned char *at = look(source, 0, HEAD_BYTES);
	uint64_t features[FEATURES / 64];

	if (!at)
		return err_new(ERR_FORMAT, "it is cut off within its header");
	struct bytes in = { at, HEAD_BYTES, PIPE_HEAD_BYTES, false };
	uint64_t each = take_u64(&in);
	struct section attrs = take_section(&in), data = take_section(&in);

	take_section(&in); /* the names of events, long unused */
	for (size_t i = 0; i < FEATURES / 64; i++)
		features[i] = take_u64(&in);
	TRY(read_attrs(reading->perf, source, &attrs, each));
	/* perf writes the size of the data last of all. */
	bool is_cut = !data.bytes || data.off > source->size ||
		      data.bytes > source->size - data.off;
	struct err *err =
		is_cut ? err_new(ERR_FORMAT, "it is cut off: the recording was killed or "
					     "is still running")
		       : read_features(reading->perf, source, &data, features);
	uint64_t end = is_cut ? source->size : data.off + data.bytes;
	struct err *next = read_records(reading, source, data.off, end);

	if (!err)
		return next;
	err_free(next);
	return err;
}

static struct err *read_any(struct reading *reading, struct source *source)
{
	const unsigned char *at = look(source, 0, PIPE_HEAD_BYTES);
	uint64_t magic, bytes;

	if (!at)
		return err_new(ERR_FORMAT, "no file of perf record: it is too short");
	memcpy(&magic, at, sizeof(magic));
	memcpy(&bytes, at + sizeof(magic), sizeof(bytes));
	if (magic == MAGIC_SWAPPED)
		return err_new(ERR_UNSUPPORTED,
			       "it was recorded on a big-endian machine");
	if (!memcmp(at, MAGIC_OLD, sizeof(magic)))
		return err_new(ERR_UNSUPPORTED,
			       "it was written by a perf from before Linux 2.6.39");
	if (magic != MAGIC)
		return err_new(ERR_FORMAT, "no file of perf record");
	if (bytes == PIPE_HEAD_BYTES)
		return read_records(reading, source, PIPE_HEAD_BYTES, source->size);
	return read_file(reading, source);
}

static void perfdata_init(struct perfdata *perf)
{
	struct merge_config merge = { .max_bytes = PERFDATA_MAX_WAITING };

	perf->ids = map_new(sizeof(uint64_t), sizeof(uint32_t));
	perf->build_ids = map_new(sizeof(uint64_t), sizeof(struct build_id));
	perf->pmus = map_new(sizeof(uint32_t), PERFDATA_EVENT_BYTES);
	perf->starts = map_new(sizeof(uint32_t), sizeof(uint64_t));
	perf->merge = merge_new(&merge, deliver, perf);
}

static void perfdata_fini(struct perfdata *perf)
{
	merge_free(perf->merge);
	map_free(perf->ids);
	map_free(perf->build_ids);
	map_free(perf->pmus);
	map_free(perf->starts);
	vec_fini(&perf->attrs);
	str_fini(&perf->out);
	str_fini(&perf->given);
	err_free(perf->nonsense);
}

struct err *perfdata_read(int fd, const struct perfdata_ops *ops, void *ctx,
			  struct perfdata_stats *ret_stats)
{
	struct perfdata perf = { .ops = ops, .ctx = ctx };
	struct reading reading = { .perf = &perf };
	struct source source = { .fd = fd };
	struct merge_stats merged;
	struct stat info;

	if (fstat(fd, &info))
		return err_errno(errno, "it cannot be read");
	if (!S_ISREG(info.st_mode))
		return err_new(ERR_INVALID, S_ISDIR(info.st_mode)
						    ? "a folder: perf record --threads "
						      "is not supported"
						    : "not a regular file");
	source.size = perf.stats.total = (uint64_t)info.st_size;
	perf.mtime_ns = info.st_mtim.tv_sec * 1000000000ll + info.st_mtim.tv_nsec;
	source.window = mem_alloc(WINDOW_BYTES);
	perfdata_init(&perf);
	struct err *err = read_any(&reading, &source);

	merge_flush(perf.merge);
	if (perf.attrs.count)
		begin(&perf);
	merge_stats(perf.merge, &merged);
	perf.stats.late = merged.late;
	*ret_stats = perf.stats;
	ZSTD_freeDCtx(reading.zstd);
	str_fini(&reading.pending);
	free(source.window);
	perfdata_fini(&perf);
	return err;
}
