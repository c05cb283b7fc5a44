// SPDX-License-Identifier: Apache-2.0
#include "probe/walk.h"

#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"

#define SECOND_NS 1000000000ull

struct walk {
	walk_begin_fn begin;
	void *ctx;
	uint64_t period_ns, next_ns;
};

struct walk *walk_new(walk_begin_fn begin, void *ctx, uint32_t hz)
{
	struct walk *walk = mem_alloc(sizeof(*walk));

	*walk = (struct walk){ .begin = begin,
			       .ctx = ctx,
			       .period_ns = SECOND_NS / (hz ? hz : 1) };
	return walk;
}

void walk_free(struct walk *walk)
{
	free(walk);
}

static uint64_t cpu_ns(void)
{
	struct timespec now;

	clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
	return (uint64_t)now.tv_sec * SECOND_NS + (uint64_t)now.tv_nsec;
}

static struct err *walk_once(const struct walk *walk)
{
	CLEANUP(close) int fd = -1;
	char nothing[64];
	ssize_t got;

	TRY(walk->begin(walk->ctx, &fd));
	do
		got = read(fd, nothing, sizeof(nothing));
	while (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)));
	return got < 0 ? err_errno(errno, "walk over the threads") : NULL;
}

struct err *walk_step(struct walk *walk, uint64_t now_ns)
{
	if (now_ns < walk->next_ns)
		return NULL;
	uint64_t before_ns = cpu_ns();
	struct err *err = walk_once(walk);
	uint64_t rest_ns = (uint64_t)((double)(cpu_ns() - before_ns) / WALK_SHARE);

	walk->next_ns = now_ns + (rest_ns > walk->period_ns ? rest_ns : walk->period_ns);
	return err;
}
