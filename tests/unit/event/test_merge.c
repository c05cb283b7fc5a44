// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "bpf/abi.h"
#include "core/vec.h"
#include "event/merge.h"

struct got {
	VEC(struct abi_head) heads;
};

static void note(void *ctx, const void *data, size_t bytes)
{
	struct got *got = ctx;

	assert_int_equal(bytes, sizeof(struct abi_head));
	vec_push(&got->heads, *(const struct abi_head *)data);
}

static void put(struct merge *merge, uint64_t time_ns, uint32_t tid)
{
	struct abi_head head = { .time_ns = time_ns, .tid = tid };

	merge_put(merge, &head, sizeof(head));
}

static void assert_times(struct got *got, const uint64_t *times, size_t count)
{
	assert_int_equal(got->heads.count, count);
	for (size_t i = 0; i < count; i++)
		assert_int_equal(got->heads.data[i].time_ns, times[i]);
	vec_fini(&got->heads);
}

static void sources_are_merged_by_time(void **state)
{
	const struct merge_config config = { .window_ns = 100 };
	struct got got = { 0 };
	CLEANUP(merge_free) struct merge *merge = merge_new(&config, note, &got);

	(void)state;
	for (uint64_t t = 10; t <= 50; t += 10)
		put(merge, t, 1);
	for (uint64_t t = 5; t <= 55; t += 10)
		put(merge, t, 2);
	merge_run(merge, 155);
	assert_times(&got, (uint64_t[]){ 5, 10, 15, 20, 25, 30, 35, 40, 45, 50, 55 }, 11);
}

static void nothing_leaves_before_its_window_is_over(void **state)
{
	const struct merge_config config = { .window_ns = 100 };
	struct got got = { 0 };
	CLEANUP(merge_free) struct merge *merge = merge_new(&config, note, &got);

	(void)state;
	put(merge, 1000, 1);
	put(merge, 1001, 1);
	merge_run(merge, 50); /* less than a window since boot */
	merge_run(merge, 1099);
	assert_int_equal(got.heads.count, 0);
	merge_run(merge, 1100);
	assert_int_equal(got.heads.count, 1);
	merge_flush(merge);
	assert_times(&got, (uint64_t[]){ 1000, 1001 }, 2);
}

static void equal_times_keep_the_order_of_arrival(void **state)
{
	const struct merge_config config = { .window_ns = 100 };
	struct got got = { 0 };
	CLEANUP(merge_free) struct merge *merge = merge_new(&config, note, &got);

	(void)state;
	for (uint32_t i = 0; i < 100; i++)
		put(merge, 7 + i % 2, i);
	merge_flush(merge);
	assert_int_equal(got.heads.count, 100);
	for (uint32_t i = 0; i < 50; i++)
		assert_int_equal(got.heads.data[i].tid, 2 * i);
	vec_fini(&got.heads);
}

static void a_late_record_is_delivered_at_once_and_counted(void **state)
{
	const struct merge_config config = { .window_ns = 10 };
	struct got got = { 0 };
	struct merge_stats stats;
	CLEANUP(merge_free) struct merge *merge = merge_new(&config, note, &got);

	(void)state;
	put(merge, 100, 1);
	merge_run(merge, 110);
	put(merge, 99, 2);
	put(merge, 100, 3); /* equal is not late */
	merge_stats(merge, &stats);
	assert_int_equal(stats.late, 1);
	assert_int_equal(stats.waiting, 1);
	merge_flush(merge);
	assert_times(&got, (uint64_t[]){ 100, 99, 100 }, 3);
}

static void a_full_window_pushes_out_the_oldest_and_counts(void **state)
{
	const struct merge_config by_count = { .window_ns = 1000, .max_records = 3 };
	const struct merge_config by_bytes = { .window_ns = 1000,
					       .max_bytes = 3 * sizeof(struct abi_head) };
	const struct merge_config *configs[] = { &by_count, &by_bytes };

	(void)state;
	for (size_t i = 0; i < 2; i++) {
		struct got got = { 0 };
		struct merge_stats stats;
		CLEANUP(merge_free)
		struct merge *merge = merge_new(configs[i], note, &got);

		for (uint64_t t = 50; t > 0; t -= 10)
			put(merge, t, 0);
		merge_stats(merge, &stats);
		/* 50 40 30 | 20 forces itself out, then 10 is late. */
		assert_int_equal(stats.forced, 1);
		assert_int_equal(stats.late, 1);
		assert_int_equal(stats.waiting, 3);
		assert_int_equal(stats.waiting_bytes, 3 * sizeof(struct abi_head));
		merge_flush(merge);
		assert_times(&got, (uint64_t[]){ 20, 10, 30, 40, 50 }, 5);
	}
}

static void many_shuffled_records_come_out_sorted(void **state)
{
	const struct merge_config config = { .window_ns = 1000000 };
	struct got got = { 0 };
	CLEANUP(merge_free) struct merge *merge = merge_new(&config, note, &got);
	const uint64_t prime = 10007;

	(void)state;
	for (uint64_t i = 0; i < prime; i++) /* a permutation, as prime is one */
		put(merge, i * 4999 % prime, 0);
	merge_flush(merge);
	assert_int_equal(got.heads.count, prime);
	for (uint64_t i = 0; i < prime; i++)
		assert_int_equal(got.heads.data[i].time_ns, i);
	vec_fini(&got.heads);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(sources_are_merged_by_time),
		cmocka_unit_test(nothing_leaves_before_its_window_is_over),
		cmocka_unit_test(equal_times_keep_the_order_of_arrival),
		cmocka_unit_test(a_late_record_is_delivered_at_once_and_counted),
		cmocka_unit_test(a_full_window_pushes_out_the_oldest_and_counts),
		cmocka_unit_test(many_shuffled_records_come_out_sorted),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
