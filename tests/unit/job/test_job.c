// SPDX-License-Identifier: Apache-2.0
/*
 * The client against a worker played by the test: one that answers late, in pieces,
 * wrongly, or not at all. The real one is tested in tests/unit/worker.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include "job/channel.h"
#include "job/job.h"
#include "job/message.h"

struct pair {
	struct job_client *client;
	struct channel *peer;
	int peer_fd;
};

struct heard {
	int replies, errors, fd;
	enum err_code code;
	bool more;
};

static void hear(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct heard *heard = ctx;

	if (err) {
		heard->errors++;
		heard->code = err->code;
		err_free(err);
		return;
	}
	heard->replies++;
	heard->more = reply->more;
	if (reply->kind == JOB_DEBUG_FILE)
		heard->fd = reply->fd;
}

static struct pair connect_pair(enum job_class class)
{
	int fds[2];
	struct pair pair;

	assert_int_equal(socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, fds), 0);
	pair.client = job_adopt(class, fds[0]);
	pair.peer = channel_new(fds[1]);
	pair.peer_fd = fds[1];
	return pair;
}

static void disconnect(struct pair *pair)
{
	job_free(pair->client);
	channel_free(pair->peer);
}

/* The next request, as the worker would see it. */
static struct channel_message request(struct pair *pair)
{
	struct channel_message message;
	bool taken = false;

	while (!taken) {
		assert_null(channel_take(pair->peer, &message, &taken));
		if (!taken)
			assert_null(channel_fill(pair->peer, true));
	}
	return message;
}

static void answer(struct pair *pair, struct channel_message message)
{
	assert_null(channel_put(pair->peer, &message));
	assert_null(channel_flush(pair->peer, true));
}

#define NO_FDS                 \
	{                      \
		-1, -1, -1, -1 \
	}

static struct channel_message identity_reply(uint64_t job, struct str *payload)
{
	const struct job_reply reply = { .kind = JOB_IDENTIFY,
					 .identity = { .soname = "x" } };

	str_clear(payload);
	message_put_reply(payload, &reply);
	return (struct channel_message){ .kind = JOB_IDENTIFY,
					 .job = job,
					 .payload = payload->data,
					 .bytes = payload->length,
					 .fds = NO_FDS };
}

static void a_file_travels_with_its_job(void **state)
{
	struct pair pair = connect_pair(JOB_RESOLVE);
	CLEANUP(str_fini) struct str payload = { 0 };
	CLEANUP(close) int fd = memfd_create("file", MFD_CLOEXEC);
	struct heard heard = { 0 };
	char byte;

	(void)state;
	assert_int_equal(write(fd, "x", 1), 1);
	assert_null(job_identify(pair.client, fd, hear, &heard));
	assert_int_equal(job_pending(pair.client), 1);
	struct channel_message message = request(&pair);

	assert_int_equal(message.kind, JOB_IDENTIFY);
	assert_true(message.fds[0] >= 0 && message.fds[1] < 0);
	assert_true(fcntl(message.fds[0], F_GETFD) & FD_CLOEXEC);
	assert_int_equal(pread(message.fds[0], &byte, 1, 0), 1);
	assert_int_equal(byte, 'x');
	channel_message_fini(&message);
	job_pump(pair.client);
	assert_int_equal(heard.replies, 0);
	answer(&pair, identity_reply(message.job, &payload));
	job_pump(pair.client);
	assert_int_equal(heard.replies, 1);
	assert_int_equal(job_pending(pair.client), 0);
	disconnect(&pair);
}

static void descriptors_stay_with_their_own_messages(void **state)
{
	struct pair pair = connect_pair(JOB_RESOLVE);
	int fds[4];

	(void)state;
	for (int i = 0; i < 4; i++) {
		char name = (char)('a' + i);

		fds[i] = memfd_create("file", MFD_CLOEXEC);
		assert_int_equal(write(fds[i], &name, 1), 1);
	}
	assert_null(job_open(pair.client, &(struct job_open){ 1, fds[0], -1, fds[1], -1,
							      0, false, -1 }));
	assert_null(job_open(pair.client,
			     &(struct job_open){ 2, fds[2], -1, -1, -1, 0, false, -1 }));
	assert_null(job_open(pair.client, &(struct job_open){ 3, fds[3], fds[0], fds[1],
							      fds[2], 9, false, -1 }));
	static const char *const want[] = { "ab", "c", "dabc" };

	for (int i = 0; i < 3; i++) {
		struct channel_message message = request(&pair);

		assert_int_equal(message.kind, MESSAGE_OPEN);
		for (size_t j = 0; j < strlen(want[i]); j++) {
			char byte;

			assert_int_equal(pread(message.fds[j], &byte, 1, 0), 1);
			assert_int_equal(byte, want[i][j]);
		}
		if (strlen(want[i]) < CHANNEL_MAX_FDS)
			assert_int_equal(message.fds[strlen(want[i])], -1);
		channel_message_fini(&message);
	}
	for (int i = 0; i < 4; i++)
		close(fds[i]);
	disconnect(&pair);
}

static void a_reply_may_arrive_byte_by_byte(void **state)
{
	struct pair pair = connect_pair(JOB_RESOLVE);
	CLEANUP(str_fini) struct str payload = { 0 }, frame = { 0 };
	CLEANUP(close) int fd = memfd_create("file", MFD_CLOEXEC);
	struct heard heard = { 0 };

	(void)state;
	assert_null(job_identify(pair.client, fd, hear, &heard));
	struct channel_message message = request(&pair);

	channel_message_fini(&message);
	message = identity_reply(message.job, &payload);
	channel_frame(&message, &frame);
	for (size_t i = 0; i < frame.length; i++) {
		assert_int_equal(heard.replies, 0);
		assert_int_equal(send(pair.peer_fd, frame.data + i, 1, 0), 1);
		job_pump(pair.client);
	}
	assert_int_equal(heard.replies, 1);
	disconnect(&pair);
}

static void the_end_of_the_worker_fails_every_job_once(void **state)
{
	struct pair pair = connect_pair(JOB_RESOLVE);
	CLEANUP(str_fini) struct str payload = { 0 };
	CLEANUP(close) int fd = memfd_create("file", MFD_CLOEXEC);
	struct heard first = { 0 }, others = { 0 };

	(void)state;
	assert_null(job_identify(pair.client, fd, hear, &first));
	for (int i = 0; i < 3; i++)
		assert_null(job_identify(pair.client, fd, hear, &others));
	struct channel_message message = request(&pair);

	channel_message_fini(&message);
	/* What it said before it died still counts. */
	answer(&pair, identity_reply(message.job, &payload));
	channel_free(pair.peer);
	pair.peer = NULL;
	for (int i = 0; i < 3; i++)
		job_pump(pair.client);
	assert_int_equal(first.replies, 1);
	assert_int_equal(first.errors, 0);
	assert_int_equal(others.errors, 3);
	assert_int_equal(others.code, ERR_CLOSED);
	assert_false(job_alive(pair.client));
	disconnect(&pair);
}

static void freeing_the_client_fails_its_jobs_first(void **state)
{
	struct pair pair = connect_pair(JOB_RESOLVE);
	CLEANUP(close) int fd = memfd_create("file", MFD_CLOEXEC);
	struct heard heard = { 0 };

	(void)state;
	assert_null(job_identify(pair.client, fd, hear, &heard));
	disconnect(&pair);
	assert_int_equal(heard.errors, 1);
	assert_int_equal(heard.code, ERR_CLOSED);
}

/* A worker that was taken over may say anything. */
static void whatever_contradicts_the_format_ends_the_worker(void **state)
{
	CLEANUP(str_fini) struct str good = { 0 };
	CLEANUP(close) int fd = memfd_create("file", MFD_CLOEXEC);

	(void)state;
	for (int what = 0; what < 8; what++) {
		struct pair pair = connect_pair(JOB_RESOLVE);
		struct heard heard = { 0 };
		const unsigned char huge[16] = { 0xff, 0xff, 0xff, 0x7f, 1 };

		assert_null(job_identify(pair.client, fd, hear, &heard));
		struct channel_message message = request(&pair);

		channel_message_fini(&message);
		message = identity_reply(message.job, &good);
		switch (what) {
		case 0: /* no such job */
			message.job += 99;
			break;
		case 1: /* another kind of reply */
			message.kind = JOB_UNWIND;
			break;
		case 2: /* unknown kind */
			message.kind = 999;
			break;
		case 3: /* a stream where one reply is due */
			message.more = true;
			break;
		case 4: /* a descriptor nobody asked for */
			message.fds[0] = fd;
			break;
		case 5: /* too short */
			message.bytes--;
			break;
		case 6: /* empty error */
			message.kind = MESSAGE_ERROR;
			message.bytes = 0;
			break;
		}
		if (what == 7) /* larger than a message may be */
			assert_int_equal(send(pair.peer_fd, huge, sizeof(huge), 0), 16);
		else
			answer(&pair, message);
		job_pump(pair.client);
		assert_int_equal(heard.replies, 0);
		assert_int_equal(heard.errors, 1);
		/* A broken error is an error all the same; all else ends the worker. */
		if (what != 6)
			assert_false(job_alive(pair.client));
		disconnect(&pair);
	}
}

static void only_a_fetch_job_brings_a_file_back(void **state)
{
	struct pair pair = connect_pair(JOB_FETCH);
	CLEANUP(close) int fd = memfd_create("file", MFD_CLOEXEC);
	const struct build_id id = { { 1, 2 }, 2 };
	struct heard heard = { 0 };

	(void)state;
	assert_null(job_debug_file(pair.client, "http://x", &id, hear, &heard));
	struct channel_message message = request(&pair);

	answer(&pair, (struct channel_message){ .kind = JOB_DEBUG_FILE,
						.job = message.job,
						.fds = { fd, -1, -1, -1 } });
	job_pump(pair.client);
	assert_int_equal(heard.replies, 1);
	assert_true(heard.fd > 2);
	close(heard.fd);
	disconnect(&pair);

	pair = connect_pair(JOB_RESOLVE);
	struct err *err = job_debug_file(pair.client, "http://x", &id, hear, &heard);

	assert_non_null(err);
	err_free(err);
	disconnect(&pair);
}

static void requests_wait_when_the_worker_does_not_read(void **state)
{
	struct pair pair = connect_pair(JOB_RESOLVE);
	static uint64_t vas[MESSAGE_MAX_VAS];
	struct heard heard = { 0 };
	struct err *err = NULL;
	int started = 0;

	(void)state;
	while (!err && started < JOB_MAX_PENDING) {
		err = job_symbols(pair.client, 1, vas, MESSAGE_MAX_VAS, hear, &heard);
		started += !err;
	}
	/* Half a megabyte each: the limit on bytes comes before that on jobs. */
	assert_non_null(err);
	assert_int_equal(err->code, ERR_LIMIT);
	err_free(err);
	assert_true(job_wants_write(pair.client));
	for (int i = 0; i < started; i++) {
		struct channel_message message;
		bool taken = false;

		while (!taken) {
			assert_null(channel_take(pair.peer, &message, &taken));
			if (!taken) {
				job_pump(pair.client);
				assert_null(channel_fill(pair.peer, false));
			}
		}
		assert_int_equal(message.kind, JOB_SYMBOLS);
		assert_int_equal(message.bytes, 12 + sizeof(vas));
	}
	assert_false(job_wants_write(pair.client));
	disconnect(&pair);
	assert_int_equal(heard.errors, started);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_travels_with_its_job),
		cmocka_unit_test(descriptors_stay_with_their_own_messages),
		cmocka_unit_test(a_reply_may_arrive_byte_by_byte),
		cmocka_unit_test(the_end_of_the_worker_fails_every_job_once),
		cmocka_unit_test(freeing_the_client_fails_its_jobs_first),
		cmocka_unit_test(whatever_contradicts_the_format_ends_the_worker),
		cmocka_unit_test(only_a_fetch_job_brings_a_file_back),
		cmocka_unit_test(requests_wait_when_the_worker_does_not_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
