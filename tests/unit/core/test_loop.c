// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <signal.h>
#include <sys/epoll.h>
#include <unistd.h>

#include "core/loop.h"

/* What the callbacks saw. */
struct seen {
	struct loop *loop;
	int pipe[2], other[2];
	int reads, signals, timers, last_signal, timer_id;
};

static int setup(void **state)
{
	static struct seen seen;

	seen = (struct seen){ 0 };
	*state = &seen;
	return pipe(seen.pipe) || pipe(seen.other) || loop_new(&seen.loop) != NULL;
}

static int teardown(void **state)
{
	struct seen *seen = *state;

	loop_free(seen->loop);
	for (int i = 0; i < 2; i++) {
		close(seen->pipe[i]);
		close(seen->other[i]);
	}
	return 0;
}

static struct err *on_read(void *ctx, int fd, uint32_t events)
{
	struct seen *seen = ctx;
	char byte;

	assert_true(events & EPOLLIN);
	assert_int_equal(read(fd, &byte, 1), 1);
	seen->reads++;
	return NULL;
}

static void a_ready_descriptor_calls_back(void **state)
{
	struct seen *seen = *state;

	assert_null(loop_add_fd(seen->loop, seen->pipe[0], EPOLLIN, on_read, seen));
	assert_null(loop_once(seen->loop, 0));
	assert_int_equal(seen->reads, 0);
	assert_int_equal(write(seen->pipe[1], "ab", 2), 2);
	assert_null(loop_once(seen->loop, -1));
	assert_null(loop_once(seen->loop, -1));
	assert_int_equal(seen->reads, 2);
	loop_del_fd(seen->loop, seen->pipe[0]);
	assert_int_equal(write(seen->pipe[1], "c", 1), 1);
	assert_null(loop_once(seen->loop, 0));
	assert_int_equal(seen->reads, 2);
}

/* Both are ready in one round; whichever runs first removes the other. */
static struct err *remove_both(void *ctx, int fd, uint32_t events)
{
	struct seen *seen = ctx;

	(void)fd;
	(void)events;
	seen->reads++;
	loop_del_fd(seen->loop, seen->pipe[0]);
	loop_del_fd(seen->loop, seen->other[0]);
	return NULL;
}

static void one_removed_by_an_earlier_callback_is_not_called(void **state)
{
	struct seen *seen = *state;

	assert_null(loop_add_fd(seen->loop, seen->pipe[0], EPOLLIN, remove_both, seen));
	assert_null(loop_add_fd(seen->loop, seen->other[0], EPOLLIN, remove_both, seen));
	assert_int_equal(write(seen->pipe[1], "a", 1), 1);
	assert_int_equal(write(seen->other[1], "a", 1), 1);
	assert_null(loop_once(seen->loop, -1));
	assert_int_equal(seen->reads, 1);
}

static struct err *on_signal(void *ctx, int signal)
{
	struct seen *seen = ctx;

	seen->last_signal = signal;
	if (++seen->signals == 2)
		loop_stop(seen->loop);
	return NULL;
}

static void signals_arrive_as_calls_and_the_mask_is_restored(void **state)
{
	struct seen *seen = *state;
	sigset_t before, after;

	sigprocmask(SIG_BLOCK, NULL, &before);
	assert_null(loop_add_signal(seen->loop, SIGUSR1, on_signal, seen));
	assert_null(loop_add_signal(seen->loop, SIGUSR2, on_signal, seen));
	kill(getpid(), SIGUSR1);
	assert_null(loop_once(seen->loop, -1));
	assert_int_equal(seen->last_signal, SIGUSR1);
	kill(getpid(), SIGUSR2);
	assert_null(loop_run(seen->loop));
	assert_int_equal(seen->last_signal, SIGUSR2);
	assert_true(loop_stopped(seen->loop));
	loop_free(seen->loop);
	seen->loop = NULL;
	sigprocmask(SIG_BLOCK, NULL, &after);
	assert_int_equal(sigismember(&after, SIGUSR1), sigismember(&before, SIGUSR1));
	assert_int_equal(sigismember(&after, SIGUSR2), sigismember(&before, SIGUSR2));
}

static struct err *on_timer(void *ctx, uint64_t expirations)
{
	struct seen *seen = ctx;

	assert_true(expirations >= 1);
	if (++seen->timers == 3) {
		loop_del_timer(seen->loop, seen->timer_id);
		loop_stop(seen->loop);
	}
	return NULL;
}

static void a_timer_fires_until_deleted(void **state)
{
	struct seen *seen = *state;

	assert_null(loop_add_timer(seen->loop, 1000000, on_timer, seen, &seen->timer_id));
	assert_null(loop_run(seen->loop));
	assert_int_equal(seen->timers, 3);
}

static struct err *fail_now(void *ctx, int fd, uint32_t events)
{
	(void)ctx;
	(void)events;
	return err_new(ERR_FORMAT, "fd %s", fd >= 0 ? "given" : "absent");
}

static void an_error_of_a_callback_ends_the_run(void **state)
{
	struct seen *seen = *state;

	assert_null(loop_add_fd(seen->loop, seen->pipe[0], EPOLLIN, fail_now, seen));
	assert_int_equal(write(seen->pipe[1], "a", 1), 1);

	struct err *err = loop_run(seen->loop);

	assert_non_null(err);
	assert_string_equal(err->text, "fd given");
	assert_false(loop_stopped(seen->loop));
	err_free(err);
}

static void wrong_arguments_are_errors(void **state)
{
	struct seen *seen = *state;
	struct err *err = loop_add_fd(seen->loop, -1, EPOLLIN, on_read, seen);

	assert_non_null(err);
	err_free(err);
	err = loop_add_signal(seen->loop, 0, on_signal, seen);
	assert_int_equal(err->code, ERR_INVALID);
	err_free(err);
	err = loop_mod_fd(seen->loop, seen->pipe[0], EPOLLIN);
	assert_int_equal(err->code, ERR_NOT_FOUND);
	err_free(err);
	loop_free(NULL);
}

#define TEST(name) cmocka_unit_test_setup_teardown(name, setup, teardown)

int main(void)
{
	const struct CMUnitTest tests[] = {
		TEST(a_ready_descriptor_calls_back),
		TEST(one_removed_by_an_earlier_callback_is_not_called),
		TEST(signals_arrive_as_calls_and_the_mask_is_restored),
		TEST(a_timer_fires_until_deleted),
		TEST(an_error_of_a_callback_ends_the_run),
		TEST(wrong_arguments_are_errors),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
