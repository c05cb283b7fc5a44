// SPDX-License-Identifier: Apache-2.0
/*
 * A watch is registered in epoll by its fd, and looked up by fd when it fires: a watch
 * removed by an earlier callback of the same round is then simply not found.
 */
#include "core/loop.h"

#include <errno.h>
#include <signal.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/signalfd.h>
#include <sys/timerfd.h>
#include <unistd.h>

#include "core/map.h"
#include "core/mem.h"

#define LOOP_BATCH 32

enum watch_kind { WATCH_FD, WATCH_TIMER };

struct watch {
	enum watch_kind kind;
	loop_fd_fn fd_call;
	loop_timer_fn timer_call;
	void *ctx;
};

struct signal_call {
	loop_signal_fn call;
	void *ctx;
};

struct loop {
	int epoll_fd, signal_fd;
	struct map *watches; /* fd -> struct watch */
	sigset_t signals, old_mask;
	struct signal_call on_signal[NSIG];
	bool stopped;
};

struct err *loop_new(struct loop **ret_loop)
{
	struct loop *loop = mem_alloc(sizeof(*loop));

	loop->signal_fd = -1;
	sigemptyset(&loop->signals);
	sigprocmask(SIG_BLOCK, NULL, &loop->old_mask);
	loop->watches = map_new(sizeof(int), sizeof(struct watch));
	loop->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (loop->epoll_fd < 0) {
		int errnum = errno;

		loop_free(loop);
		return err_errno(errnum, "epoll_create1");
	}
	*ret_loop = loop;
	return NULL;
}

void loop_free(struct loop *loop)
{
	if (!loop)
		return;
	size_t pos = 0;
	const void *key;

	for (struct watch *watch; (watch = map_next(loop->watches, &pos, &key));)
		if (watch->kind == WATCH_TIMER)
			close(*(const int *)key);
	map_free(loop->watches);
	if (loop->signal_fd >= 0) {
		close(loop->signal_fd);
		sigprocmask(SIG_SETMASK, &loop->old_mask, NULL);
	}
	if (loop->epoll_fd >= 0)
		close(loop->epoll_fd);
	free(loop);
}

static struct err *add_watch(struct loop *loop, int fd, uint32_t events,
			     const struct watch *watch)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return err_errno(errno, "epoll_ctl add %d", fd);
	*(struct watch *)map_put(loop->watches, &fd, NULL) = *watch;
	return NULL;
}

struct err *loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn call,
			void *ctx)
{
	struct watch watch = { .kind = WATCH_FD, .fd_call = call, .ctx = ctx };

	return add_watch(loop, fd, events, &watch);
}

struct err *loop_mod_fd(struct loop *loop, int fd, uint32_t events)
{
	struct epoll_event event = { .events = events, .data.fd = fd };

	if (epoll_ctl(loop->epoll_fd, EPOLL_CTL_MOD, fd, &event))
		return err_errno(errno, "epoll_ctl mod %d", fd);
	return NULL;
}

void loop_del_fd(struct loop *loop, int fd)
{
	if (map_del(loop->watches, &fd))
		epoll_ctl(loop->epoll_fd, EPOLL_CTL_DEL, fd, NULL);
}

static struct err *signal_ready(void *ctx, int fd, uint32_t events)
{
	struct loop *loop = ctx;
	struct signalfd_siginfo info;

	(void)events;
	while (read(fd, &info, sizeof(info)) == sizeof(info)) {
		struct signal_call *on =
			info.ssi_signo < NSIG ? &loop->on_signal[info.ssi_signo] : NULL;

		if (on && on->call)
			TRY(on->call(on->ctx, (int)info.ssi_signo));
	}
	return NULL;
}

struct err *loop_add_signal(struct loop *loop, int signal, loop_signal_fn call, void *ctx)
{
	if (signal <= 0 || signal >= NSIG)
		return err_new(ERR_INVALID, "signal %d", signal);
	loop->on_signal[signal] = (struct signal_call){ call, ctx };
	sigaddset(&loop->signals, signal);
	if (sigprocmask(SIG_BLOCK, &loop->signals, NULL))
		return err_errno(errno, "sigprocmask");

	int fd = signalfd(loop->signal_fd, &loop->signals, SFD_CLOEXEC | SFD_NONBLOCK);

	if (fd < 0)
		return err_errno(errno, "signalfd");
	if (loop->signal_fd >= 0)
		return NULL;
	loop->signal_fd = fd;
	return loop_add_fd(loop, fd, EPOLLIN, signal_ready, loop);
}

struct err *loop_add_timer(struct loop *loop, uint64_t period_ns, loop_timer_fn call,
			   void *ctx, int *ret_id)
{
	int fd = timerfd_create(CLOCK_MONOTONIC, TFD_CLOEXEC | TFD_NONBLOCK);

	if (fd < 0)
		return err_errno(errno, "timerfd_create");
	struct timespec period = { .tv_sec = (time_t)(period_ns / 1000000000u),
				   .tv_nsec = (long)(period_ns % 1000000000u) };
	struct itimerspec spec = { .it_interval = period, .it_value = period };
	struct watch watch = { .kind = WATCH_TIMER, .timer_call = call, .ctx = ctx };
	struct err *err = timerfd_settime(fd, 0, &spec, NULL)
				  ? err_errno(errno, "timerfd_settime")
				  : add_watch(loop, fd, EPOLLIN, &watch);

	if (err) {
		close(fd);
		return err;
	}
	if (ret_id)
		*ret_id = fd;
	return NULL;
}

void loop_del_timer(struct loop *loop, int id)
{
	loop_del_fd(loop, id);
	close(id);
}

static struct err *dispatch(struct loop *loop, int fd, uint32_t events)
{
	struct watch *found = map_find(loop->watches, &fd);

	if (!found)
		return NULL;
	struct watch watch = *found; /* the callback may change the map */

	if (watch.kind == WATCH_FD)
		return watch.fd_call(watch.ctx, fd, events);
	uint64_t expirations = 0;

	if (read(fd, &expirations, sizeof(expirations)) != sizeof(expirations))
		return NULL;
	return watch.timer_call(watch.ctx, expirations);
}

struct err *loop_once(struct loop *loop, int timeout_ms)
{
	struct epoll_event ready[LOOP_BATCH];
	int count = epoll_wait(loop->epoll_fd, ready, LOOP_BATCH, timeout_ms);

	if (count < 0 && errno != EINTR)
		return err_errno(errno, "epoll_wait");
	for (int i = 0; i < count && !loop->stopped; i++)
		TRY(dispatch(loop, ready[i].data.fd, ready[i].events));
	return NULL;
}

struct err *loop_run(struct loop *loop)
{
	while (!loop->stopped)
		TRY(loop_once(loop, -1));
	return NULL;
}

void loop_stop(struct loop *loop)
{
	loop->stopped = true;
}

bool loop_stopped(const struct loop *loop)
{
	return loop->stopped;
}
