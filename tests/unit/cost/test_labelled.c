// SPDX-License-Identifier: Apache-2.0
/* Truth is arithmetic by hand: each request costs another power of two. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include "cost/labelled.h"

static const struct row {
	uint64_t id, parent, cpu_ns;
	const char *name;
	uint32_t labels;
} rows[] = {
	{ 1, 0, 1, "search", PROFILE_LOW | PROFILE_EMPTY },
	{ 2, 1, 2, "index", PROFILE_EMPTY }, /* empty within empty: once */
	{ 3, 1, 4, "read", PROFILE_HIGH },
	{ 4, 3, 8, "disk", 0 }, /* below a high one that a low one asked for */
	{ 5, 0, 16, "buy", PROFILE_HIGH },
	{ 6, 5, 32, "read", PROFILE_HIGH }, /* high for high */
	{ 7, 5, 64, "batch", PROFILE_LOW },
	{ 8, 0, 128, "search", PROFILE_LOW }, /* the same name, but it found some */
};

static struct labelled sum_of(uint32_t mask)
{
	CLEANUP(profile_free) struct profile *profile = profile_new();

	for (size_t i = 0; i < sizeof(rows) / sizeof(*rows); i++) {
		struct profile_span span = { .span_id = rows[i].id,
					     .parent_id = rows[i].parent,
					     .service = "s",
					     .name = rows[i].name,
					     .kind = PROFILE_SERVED,
					     .labels = rows[i].labels & mask,
					     .cpu_ns = rows[i].cpu_ns,
					     .weight = 10 };

		assert_true(profile_add(profile, &span));
	}
	profile_finish(profile);
	return labelled_sum(profile);
}

static void all_below_a_label_counts_once(void **state)
{
	struct labelled sum = sum_of(~0u);

	(void)state;
	assert_int_equal((int)sum.cpu_ns, 2550);
	assert_int_equal((int)sum.empty_ns, 10 * (1 + 2 + 4 + 8));
	assert_int_equal((int)sum.low_for_high_ns, 10 * (4 + 8));
}

static void without_labels_nothing_is_claimed(void **state)
{
	struct labelled sum = sum_of(0);

	(void)state;
	assert_int_equal((int)sum.cpu_ns, 2550);
	assert_int_equal((int)sum.empty_ns, 0);
	assert_int_equal((int)sum.low_for_high_ns, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(all_below_a_label_counts_once),
		cmocka_unit_test(without_labels_nothing_is_claimed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
