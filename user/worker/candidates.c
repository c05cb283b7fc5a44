// SPDX-License-Identifier: Apache-2.0
#include "worker/candidates.h"

#include "core/vec.h"
#include "job/message.h"

struct sending {
	struct channel *channel;
	uint64_t job, done, total;
	VEC(struct event_candidate) waiting; /* of the next reply */
	struct err *err;		     /* of the channel */
};

static void send_part(struct sending *sending, bool more)
{
	CLEANUP(str_fini) struct str payload = { 0 };
	struct job_reply reply = { .kind = JOB_DISCOVER,
				   .more = more,
				   .candidates = { sending->waiting.data,
						   sending->waiting.count, sending->done,
						   sending->total } };

	if (sending->err)
		return;
	message_put_reply(&payload, &reply);
	sending->err = channel_put(
		sending->channel, &(struct channel_message){ .kind = JOB_DISCOVER,
							     .job = sending->job,
							     .more = more,
							     .payload = payload.data,
							     .bytes = payload.length,
							     .fds = { -1, -1, -1, -1 } });
	if (!sending->err)
		sending->err = channel_flush(sending->channel, true);
	vec_clear(&sending->waiting);
}

static void on_candidate(void *ctx, const struct event_candidate *candidate)
{
	struct sending *sending = ctx;

	vec_push(&sending->waiting, *candidate);
	if (sending->waiting.count == CANDIDATES_MAX_REPLY)
		send_part(sending, true);
}

static struct err *on_progress(void *ctx, size_t done, size_t total)
{
	struct sending *sending = ctx;

	sending->done = done;
	sending->total = total;
	send_part(sending, true);
	return take(sending->err);
}

struct err *candidates_send(struct channel *channel, uint64_t job,
			    const struct discover_files *files)
{
	static const struct discover_ops ops = { on_candidate, on_progress };
	struct sending sending = { .channel = channel, .job = job };
	struct err *err = discover_run(files, &ops, &sending);

	if (!err)
		send_part(&sending, false);
	vec_fini(&sending.waiting);
	if (err)
		err_free(sending.err);
	return err ? err : sending.err;
}
