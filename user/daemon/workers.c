// SPDX-License-Identifier: Apache-2.0
/*
 * A client's callbacks may ask for another client of the same class, so a dead one is
 * only taken down in workers_pump(), never below somebody's feet.
 */
#include "daemon/workers.h"

#include <stdlib.h>
#include <sys/epoll.h>

#include "core/file.h"
#include "core/mem.h"

#define CLASSES (JOB_FETCH + 1)

struct slot {
	struct job_client *client;
	int watched_fd; /* -1: none */
	bool watches_write;
	uint64_t not_before_ns, backoff_ns;
};

struct workers {
	struct loop *loop;
	struct broker *broker;
	void (*died)(void *ctx, enum job_class class);
	void *ctx;
	struct job_source source;
	struct slot slots[CLASSES];
	bool fetch;
	char *error;
};

static struct err *slot_ready(void *ctx, int fd, uint32_t events)
{
	struct workers *workers = ctx;

	(void)fd;
	(void)events;
	workers_pump(workers);
	return NULL;
}

static void note_error(struct workers *workers, struct err *err)
{
	free(workers->error);
	workers->error = err ? mem_strdup(err->text) : NULL;
	err_free(err);
}

static struct err *spawn(struct workers *workers, enum job_class class)
{
	struct slot *slot = &workers->slots[class];
	int fd;

	TRY(broker_worker(workers->broker, class, &fd));
	slot->client = job_adopt(class, fd);
	slot->watched_fd = job_fd(slot->client);
	slot->watches_write = false;
	return loop_add_fd(workers->loop, slot->watched_fd, EPOLLIN, slot_ready, workers);
}

static void back_off(struct slot *slot)
{
	slot->backoff_ns = slot->backoff_ns ? slot->backoff_ns * 2 : WORKERS_BACKOFF_NS;
	if (slot->backoff_ns > WORKERS_BACKOFF_MAX_NS)
		slot->backoff_ns = WORKERS_BACKOFF_MAX_NS;
	slot->not_before_ns = clock_ns() + slot->backoff_ns;
}

static struct job_client *get_client(void *ctx, enum job_class class)
{
	struct workers *workers = ctx;
	struct slot *slot = &workers->slots[class];

	if (slot->client)
		return job_alive(slot->client) ? slot->client : NULL;
	if ((class == JOB_FETCH && !workers->fetch) || clock_ns() < slot->not_before_ns)
		return NULL;
	struct err *err = spawn(workers, class);

	if (err)
		back_off(slot);
	note_error(workers, err);
	return slot->client;
}

static void take_down(struct workers *workers, enum job_class class)
{
	struct slot *slot = &workers->slots[class];
	struct job_client *client = slot->client;

	if (slot->watched_fd >= 0)
		loop_del_fd(workers->loop, slot->watched_fd);
	slot->watched_fd = -1;
	slot->client = NULL;
	back_off(slot);
	job_free(client);
	workers->died(workers->ctx, class);
}

static void watch_writes(struct workers *workers, struct slot *slot)
{
	bool wants = job_wants_write(slot->client);

	if (wants == slot->watches_write || job_fd(slot->client) < 0)
		return;
	slot->watches_write = wants;
	err_free(loop_mod_fd(workers->loop, slot->watched_fd,
			     EPOLLIN | (wants ? EPOLLOUT : 0)));
}

void workers_pump(struct workers *workers)
{
	for (int class = 0; class < CLASSES; class ++) {
		struct slot *slot = &workers->slots[class];

		if (!slot->client)
			continue;
		job_pump(slot->client);
		if (!job_alive(slot->client))
			take_down(workers, (enum job_class) class);
		else
			watch_writes(workers, slot);
	}
}

struct workers *workers_new(struct loop *loop, struct broker *broker,
			    void (*died)(void *ctx, enum job_class class), void *ctx)
{
	struct workers *workers = mem_alloc(sizeof(*workers));

	workers->loop = loop;
	workers->broker = broker;
	workers->died = died;
	workers->ctx = ctx;
	workers->source = (struct job_source){ .client = get_client, .ctx = workers };
	for (int class = 0; class < CLASSES; class ++)
		workers->slots[class].watched_fd = -1;
	return workers;
}

void workers_free(struct workers *workers)
{
	if (!workers)
		return;
	for (int class = 0; class < CLASSES; class ++) {
		struct slot *slot = &workers->slots[class];

		if (slot->watched_fd >= 0)
			loop_del_fd(workers->loop, slot->watched_fd);
		job_free(slot->client);
	}
	free(workers->error);
	free(workers);
}

void workers_allow_fetch(struct workers *workers, bool allow)
{
	workers->fetch = allow;
}

const struct job_source *workers_source(struct workers *workers)
{
	return &workers->source;
}

const char *workers_error(const struct workers *workers)
{
	return workers->error ? workers->error : "";
}
