// SPDX-License-Identifier: Apache-2.0
#include <math.h>
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdlib.h>
#include <time.h>
#include <cmocka.h>

#include "cli/number.h"

struct numbered {
	uint64_t value;
	const char *text;
};

static void check(char *(*format)(uint64_t), const struct numbered *cases, size_t count)
{
	for (size_t i = 0; i < count; i++) {
		char *text = format(cases[i].value);

		assert_string_equal(text, cases[i].text);
		free(text);
	}
}
#define CHECK(format, cases) check(format, cases, sizeof(cases) / sizeof(*cases))

static void counts_have_three_digits_and_a_unit_from_ten_thousand_on(void **state)
{
	static const struct numbered cases[] = {
		{ 0, "0" },
		{ 9999, "9999" },
		{ 10000, "10.0k" },
		{ 12345, "12.3k" },
		{ 123456, "123k" },
		{ 999499, "999k" },
		{ 999500, "1.00M" },
		{ 4567000, "4.57M" },
		{ 18446744073709551615ull, "18.4E" },
	};

	(void)state;
	CHECK(number_count, cases);
}

static void durations_choose_their_unit(void **state)
{
	static const struct numbered cases[] = {
		{ 0, "0 ns" },
		{ 999, "999 ns" },
		{ 1000, "1.00 us" },
		{ 999499, "999 us" },
		{ 999500, "1.00 ms" },
		{ 1250000, "1.25 ms" },
		{ 999600000, "1.00 s" },
		{ 12340000000, "12.3 s" },
		{ 60000000000, "1m 00s" },
		{ 312000000000, "5m 12s" },
		{ 3600000000000, "1h 00m" },
		{ 11100000000000, "3h 05m" },
	};

	(void)state;
	CHECK(number_ns, cases);
}

static void bytes_count_in_powers_of_1024(void **state)
{
	static const struct numbered cases[] = {
		{ 56, "56 B" },		  { 1023, "1023 B" },
		{ 1024, "1.00 KiB" },	  { 8192, "8.00 KiB" },
		{ 12897485, "12.3 MiB" }, { 1073741823, "1.00 GiB" },
	};

	(void)state;
	CHECK(number_bytes, cases);
}

static void a_share_is_never_rounded_to_nothing_or_everything(void **state)
{
	static const struct {
		double ratio;
		const char *text;
	} cases[] = {
		{ 0, "0.0%" },	     { 1, "100.0%" },	   { 0.1234, "12.3%" },
		{ 0.0001, "<0.1%" }, { 0.9999, ">99.9%" }, { NAN, "-" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char *text = number_share(cases[i].ratio);

		assert_string_equal(text, cases[i].text);
		free(text);
	}
}

static void times_are_local(void **state)
{
	(void)state;
	setenv("TZ", "UTC", 1);
	tzset();
	char *text = number_time(1700000000999999999ull);

	assert_string_equal(text, "2023-11-14 22:13:20");
	free(text);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(
			counts_have_three_digits_and_a_unit_from_ten_thousand_on),
		cmocka_unit_test(durations_choose_their_unit),
		cmocka_unit_test(bytes_count_in_powers_of_1024),
		cmocka_unit_test(a_share_is_never_rounded_to_nothing_or_everything),
		cmocka_unit_test(times_are_local),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
