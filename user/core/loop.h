/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_LOOP_H
#define CORE_LOOP_H

/*
 * One thread, one epoll: file descriptors, signals (signalfd) and periodic timers
 * (timerfd) call back. A callback that returns an error ends loop_run() with it.
 */

#include <stdbool.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"

struct loop;

typedef struct err *(*loop_fd_fn)(void *ctx, int fd, uint32_t events);
typedef struct err *(*loop_signal_fn)(void *ctx, int signal);
typedef struct err *(*loop_timer_fn)(void *ctx, uint64_t expirations);

struct err *loop_new(struct loop **ret_loop);
void loop_free(struct loop *loop); /* NULL is fine; restores the signal mask */
CLEANUP_DEFINE(loop_free, struct loop *)

/* loop_add_fd() - @events are EPOLLIN, ...; the fd stays the caller's. */
struct err *loop_add_fd(struct loop *loop, int fd, uint32_t events, loop_fd_fn call,
			void *ctx);
struct err *loop_mod_fd(struct loop *loop, int fd, uint32_t events);
void loop_del_fd(struct loop *loop, int fd);

/* loop_add_signal() - block @signal for this process and hand it to @call. */
struct err *loop_add_signal(struct loop *loop, int signal, loop_signal_fn call,
			    void *ctx);

/* loop_add_timer() - every @period_ns, first after one period. Return the id in @ret_id. */
struct err *loop_add_timer(struct loop *loop, uint64_t period_ns, loop_timer_fn call,
			   void *ctx, int *ret_id);
void loop_del_timer(struct loop *loop, int id);

/* loop_run() - until loop_stop() or an error. */
struct err *loop_run(struct loop *loop);
/* loop_once() - wait at most @timeout_ms (-1 for ever) and dispatch what is ready. */
struct err *loop_once(struct loop *loop, int timeout_ms);
void loop_stop(struct loop *loop);
bool loop_stopped(const struct loop *loop);

#endif
