// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "live/task.h"

#define S 1000000000ull

static void count_gone(void *ctx, struct process *process)
{
	(void)process;
	(*(int *)ctx)++;
}

static void generations_of_a_pid_are_told_apart_by_start(void **state)
{
	struct tasks *tasks = tasks_new(10);

	(void)state;
	struct process *first = tasks_put(tasks, 7, 10 * S, 11 * S);
	struct process *second = tasks_put(tasks, 7, 20 * S, 21 * S);

	assert_ptr_not_equal(first, second);
	assert_ptr_equal(tasks_find(tasks, 7, 10 * S, 30 * S), first);
	assert_ptr_equal(tasks_find(tasks, 7, 20 * S, 30 * S), second);
	assert_int_equal(first->exit_ns, 21 * S);
	assert_int_equal(second->exit_ns, 0);
	/* Without a start time the record's own time decides. */
	assert_ptr_equal(tasks_find(tasks, 7, 0, 15 * S), first);
	assert_ptr_equal(tasks_find(tasks, 7, 0, 22 * S), second);
	assert_null(tasks_find(tasks, 7, 30 * S, 31 * S));
	assert_null(tasks_find(tasks, 8, 0, 31 * S));
	tasks_free(tasks);
}

static void a_late_record_of_an_earlier_owner_does_not_hide_the_present_one(void **state)
{
	struct tasks *tasks = tasks_new(10);

	(void)state;
	struct process *now = tasks_put(tasks, 7, 20 * S, 21 * S);
	struct process *was = tasks_put(tasks, 7, 10 * S, 22 * S);

	assert_true(was->exit_ns > 0);
	assert_int_equal(now->exit_ns, 0);
	assert_ptr_equal(tasks_find(tasks, 7, 0, 23 * S), now);
	tasks_free(tasks);
}

static void a_start_time_learnt_later_completes_the_process(void **state)
{
	struct tasks *tasks = tasks_new(10);

	(void)state;
	struct process *process = tasks_put(tasks, 7, 0, 5 * S);

	assert_ptr_equal(tasks_put(tasks, 7, 4 * S, 6 * S), process);
	assert_int_equal(process->start_ns, 4 * S);
	assert_int_equal(tasks_count(tasks), 1);
	tasks_free(tasks);
}

static void the_table_is_bounded_and_reaped(void **state)
{
	struct tasks *tasks = tasks_new(3);
	int gone = 0;

	(void)state;
	for (uint32_t pid = 1; pid <= 3; pid++)
		tasks_put(tasks, pid, S, 2 * S)->known = true;
	assert_null(tasks_put(tasks, 4, S, 2 * S));
	tasks_find(tasks, 2, S, 0)->exit_ns = 3 * S;
	tasks_reap(tasks, 3 * S, count_gone, &gone);
	assert_int_equal(gone, 0);
	tasks_reap(tasks, 4 * S, count_gone, &gone);
	assert_int_equal(gone, 1);
	assert_null(tasks_find(tasks, 2, S, 0));
	assert_non_null(tasks_put(tasks, 4, S, 2 * S));
	/* 4 was only mentioned; 1 and 3 were announced and live. */
	tasks_reap(tasks, 4 * S, count_gone, &gone);
	assert_int_equal(tasks_count(tasks), 2);
	tasks_reap_idle(tasks, 4 * S, count_gone, &gone);
	assert_int_equal(tasks_count(tasks), 0);
	assert_int_equal(gone, 4);
	tasks_free(tasks);
}

static void asking_backs_off_and_ends(void **state)
{
	struct tasks *tasks = tasks_new(3);
	struct process *process = tasks_put(tasks, 1, S, 2 * S);
	int asked = 0;

	(void)state;
	assert_true(task_may_ask(process, 10 * S));
	assert_false(task_may_ask(process, 10 * S));
	assert_false(task_may_ask(process, 10 * S + S / 2));
	assert_true(task_may_ask(process, 11 * S));
	assert_false(task_may_ask(process, 14 * S));
	assert_true(task_may_ask(process, 15 * S));
	for (uint64_t now = 15; now < 100000; now++)
		asked += task_may_ask(process, now * S);
	assert_int_equal(asked, 3);
	tasks_free(tasks);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(generations_of_a_pid_are_told_apart_by_start),
		cmocka_unit_test(
			a_late_record_of_an_earlier_owner_does_not_hide_the_present_one),
		cmocka_unit_test(a_start_time_learnt_later_completes_the_process),
		cmocka_unit_test(the_table_is_bounded_and_reaped),
		cmocka_unit_test(asking_backs_off_and_ends),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
