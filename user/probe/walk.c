// SPDX-License-Identifier: Apache-2.0
/* An iterator goes over the threads once, so each walk makes a new one of the link. */
#include "probe/walk.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <stdlib.h>
#include <time.h>
#include <unistd.h>

#include "core/mem.h"

#define SECOND_NS 1000000000ull

struct walk {
	int link_fd;
	uint64_t period_ns, next_ns;
};

struct err *walk_open(const struct probe_fds *fds, uint32_t hz, struct walk **ret_walk)
{
	int link_fd = fds->fd[PROBE_FD_WALK];
	int iter_fd = bpf_iter_create(link_fd);

	if (iter_fd < 0)
		return err_errno(errno, "no walk over the threads");
	close(iter_fd);
	*ret_walk = mem_alloc(sizeof(**ret_walk));
	**ret_walk =
		(struct walk){ .link_fd = link_fd, .period_ns = SECOND_NS / (hz ?: 1) };
	return NULL;
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
	char nothing[64];
	int fd = bpf_iter_create(walk->link_fd);
	ssize_t got;

	if (fd < 0)
		return err_errno(errno, "begin a walk over the threads");
	do
		got = read(fd, nothing, sizeof(nothing));
	while (got > 0 || (got < 0 && (errno == EAGAIN || errno == EINTR)));
	int errnum = errno;

	close(fd);
	return got < 0 ? err_errno(errnum, "walk over the threads") : NULL;
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
