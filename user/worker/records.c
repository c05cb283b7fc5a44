// SPDX-License-Identifier: Apache-2.0
#include "worker/records.h"

#include "core/wire.h"
#include "job/message.h"
#include "perfdata/perfdata.h"

struct sending {
	struct channel *channel;
	uint64_t job;
	struct str out; /* records of the next reply */
	struct perfdata_meta meta;
	struct err *err; /* of the channel */
};

static void send_part(struct sending *sending, const struct perfdata_stats *stats,
		      const char *damage, bool more)
{
	CLEANUP(str_fini) struct str payload = { 0 };
	const struct perfdata_meta *meta = &sending->meta;
	struct job_reply reply = {
		.kind = JOB_RECORDS,
		.more = more,
		.records = { .data = sending->out.data,
			     .bytes = sending->out.length,
			     .done = stats->bytes,
			     .total = stats->total,
			     .samples = stats->samples,
			     .foreign = stats->foreign,
			     .lost = stats->lost,
			     .late = stats->late,
			     .start_ns = meta->start_ns,
			     .realtime_offset_ns = meta->realtime_offset_ns,
			     .host = meta->host,
			     .kernel = meta->kernel,
			     .arch = meta->arch,
			     .version = meta->version,
			     .events = meta->events,
			     .damage = damage },
	};

	if (sending->err)
		return;
	message_put_reply(&payload, &reply);
	sending->err = channel_put(
		sending->channel, &(struct channel_message){ .kind = JOB_RECORDS,
							     .job = sending->job,
							     .more = more,
							     .payload = payload.data,
							     .bytes = payload.length,
							     .fds = { -1, -1, -1, -1 } });
	if (!sending->err)
		sending->err = channel_flush(sending->channel, true);
	str_clear(&sending->out);
}

static void on_begin(void *ctx, const struct perfdata_meta *meta)
{
	struct sending *sending = ctx;

	sending->meta = *meta;
}

static void on_record(void *ctx, const void *data, size_t bytes)
{
	struct sending *sending = ctx;

	wire_put_bytes(&sending->out, data, bytes);
	/* A long round comes at once, between two steps. */
	if (sending->out.length >= RECORDS_REPLY_BYTES)
		send_part(sending, &(struct perfdata_stats){ 0 }, "", true);
}

static struct err *on_step(void *ctx, const struct perfdata_stats *stats)
{
	struct sending *sending = ctx;

	send_part(sending, stats, "", true);
	return take(sending->err);
}

struct err *records_send(struct channel *channel, uint64_t job, int fd)
{
	static const struct perfdata_ops ops = { on_begin, on_record, on_step };
	struct sending sending = { .channel = channel, .job = job };
	struct perfdata_stats stats = { 0 };
	struct err *err = perfdata_read(fd, &ops, &sending, &stats);

	if (err && (err->code == ERR_CLOSED || !stats.records)) {
		err_free(sending.err);
		str_fini(&sending.out);
		return err;
	}
	send_part(&sending, &stats, err ? err->text : "", false);
	err_free(err);
	str_fini(&sending.out);
	return sending.err;
}
