// SPDX-License-Identifier: Apache-2.0
#include "unit/live/feed.h"

#include "live/kernel.h"

static struct event text(uint64_t id, uint64_t base, uint64_t length)
{
	struct event event = { .path = "" };

	event.module.module_id = id;
	event.module.base = base;
	event.module.length = length;
	return event;
}

static uint64_t id_at(const struct kernel *kernel, uint64_t ip)
{
	uint64_t id = 0, va;

	kernel_find(kernel, ip, &id, &va);
	return id;
}

static void ranges_are_found_in_whatever_order_they_came(void **state)
{
	struct kernel *kernel = kernel_new();

	(void)state;
	for (uint64_t i = 0; i < 100; i++) {
		struct event event = text(i + 1, (i * 37 % 100) << 16, 0x8000);

		assert_true(kernel_add(kernel, &event));
	}
	for (uint64_t i = 0; i < 100; i++) {
		uint64_t base = (i * 37 % 100) << 16;

		assert_int_equal(id_at(kernel, base), i + 1);
		assert_int_equal(id_at(kernel, base + 0x7fff), i + 1);
		assert_int_equal(id_at(kernel, base + 0x8000), 0);
	}
	kernel_free(kernel);
}

static void a_module_loaded_where_another_was_takes_its_place(void **state)
{
	struct kernel *kernel = kernel_new();
	struct event was = text(1, 0x10000, 0x4000), other = text(3, 0x20000, 0x1000);
	struct event is = text(2, 0x13000, 0x4000);

	(void)state;
	kernel_add(kernel, &was);
	kernel_add(kernel, &other);
	kernel_add(kernel, &is);
	assert_int_equal(id_at(kernel, 0x10000), 0);
	assert_int_equal(id_at(kernel, 0x13000), 2);
	assert_int_equal(id_at(kernel, 0x20000), 3);
	kernel_free(kernel);
}

static void the_vsyscall_page_is_user_code(void **state)
{
	(void)state;
	assert_false(ip_is_kernel(0x7fffffffffff));
	assert_true(ip_is_kernel(0xffff800000000000ull));
	assert_false(ip_is_kernel(0xffffffffff600000ull));
	assert_false(ip_is_kernel(0xffffffffff600fffull));
	assert_true(ip_is_kernel(0xffffffffff601000ull));
}

static void the_table_is_bounded(void **state)
{
	struct kernel *kernel = kernel_new();

	(void)state;
	for (uint64_t i = 0; i < KERNEL_MAX_RANGES; i++) {
		struct event event = text(i + 1, i << 16, 0x100);

		assert_true(kernel_add(kernel, &event));
	}
	struct event more = text(9, 1ull << 40, 0x100), empty = text(9, 0x100, 0);

	assert_false(kernel_add(kernel, &more));
	assert_false(kernel_add(kernel, &empty));
	kernel_free(kernel);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ranges_are_found_in_whatever_order_they_came),
		cmocka_unit_test(a_module_loaded_where_another_was_takes_its_place),
		cmocka_unit_test(the_vsyscall_page_is_user_code),
		cmocka_unit_test(the_table_is_bounded),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
