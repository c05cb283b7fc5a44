// SPDX-License-Identifier: Apache-2.0
/* The threads allocate nothing and share nothing but their slots: the process forks. */
#include "probe/closer.h"

#include <limits.h>
#include <pthread.h>
#include <signal.h>
#include <stdatomic.h>
#include <stdbool.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/mem.h"

#define STACK_BYTES (PTHREAD_STACK_MIN + 16384)
#define LOOK_NS	    10000000

struct slot {
	atomic_bool is_busy;
	int fd;
};

struct closer {
	struct slot slots[CLOSER_MAX];
};

struct closer *closer_new(void)
{
	return mem_alloc(sizeof(struct closer));
}

void closer_free(struct closer *closer)
{
	const struct timespec pause = { .tv_nsec = LOOK_NS };

	if (!closer)
		return;
	for (size_t i = 0; i < CLOSER_MAX; i++)
		while (atomic_load(&closer->slots[i].is_busy))
			nanosleep(&pause, NULL);
	free(closer);
}

static void *close_one(void *ctx)
{
	struct slot *slot = ctx;

	close(slot->fd);
	atomic_store(&slot->is_busy, false);
	return NULL;
}

/* Signals are the main thread's. Return false when there is no thread to be had. */
static bool start(struct slot *slot)
{
	pthread_attr_t attr;
	pthread_t thread;
	sigset_t all, before;

	sigfillset(&all);
	if (pthread_attr_init(&attr))
		return false;
	pthread_attr_setdetachstate(&attr, PTHREAD_CREATE_DETACHED);
	pthread_attr_setstacksize(&attr, STACK_BYTES);
	pthread_sigmask(SIG_SETMASK, &all, &before);
	int errnum = pthread_create(&thread, &attr, close_one, slot);

	pthread_sigmask(SIG_SETMASK, &before, NULL);
	pthread_attr_destroy(&attr);
	return !errnum;
}

void closer_close(struct closer *closer, int fd)
{
	for (size_t i = 0; i < CLOSER_MAX; i++) {
		struct slot *slot = &closer->slots[i];

		if (atomic_load(&slot->is_busy))
			continue;
		slot->fd = fd;
		atomic_store(&slot->is_busy, true);
		if (start(slot))
			return;
		atomic_store(&slot->is_busy, false);
		break;
	}
	close(fd);
}
