// SPDX-License-Identifier: Apache-2.0
/*
 * Scaling picks the unit after rounding, so that 999,960 is 1.00M and not 1000k.
 */
#include "cli/number.h"

#include <math.h>
#include <stdbool.h>
#include <stddef.h>
#include <time.h>

#include "core/mem.h"

/* Three digits: 1.23, 12.3, 123. */
static char *three_digits(double value, const char *unit)
{
	int places = value < 9.995 ? 2 : value < 99.95 ? 1 : 0;

	return mem_printf("%.*f%s", places, value, unit);
}

static char *scale(double value, double step, const char *const *units, size_t count)
{
	size_t unit = 0;

	while (unit + 1 < count && value >= step - 0.5) {
		value /= step;
		unit++;
	}
	return three_digits(value, units[unit]);
}

char *number_count(uint64_t count)
{
	static const char *const units[] = { "", "k", "M", "G", "T", "P", "E" };

	if (count < 10000)
		return mem_printf("%llu", (unsigned long long)count);
	return scale((double)count, 1000, units, sizeof(units) / sizeof(*units));
}

char *number_share(double ratio)
{
	double percent = ratio * 100;

	if (!isfinite(ratio))
		return mem_strdup("-");
	if (ratio > 0 && percent < 0.05)
		return mem_strdup("<0.1%"); /* not nothing */
	if (ratio < 1 && percent >= 99.95)
		return mem_strdup(">99.9%"); /* not everything */
	return mem_printf("%.1f%%", percent);
}

char *number_ns(uint64_t ns)
{
	uint64_t seconds = ns / 1000000000u;

	if (ns < 1000)
		return mem_printf("%llu ns", (unsigned long long)ns);
	if (ns < 999500)
		return three_digits((double)ns / 1e3, " us");
	if (ns < 999500000)
		return three_digits((double)ns / 1e6, " ms");
	if (seconds < 60)
		return three_digits((double)ns / 1e9, " s");
	if (seconds < 3600)
		return mem_printf("%llum %02llus", (unsigned long long)(seconds / 60),
				  (unsigned long long)(seconds % 60));
	return mem_printf("%lluh %02llum", (unsigned long long)(seconds / 3600),
			  (unsigned long long)(seconds / 60 % 60));
}

char *number_bytes(uint64_t bytes)
{
	static const char *const units[] = { " B",   " KiB", " MiB", " GiB",
					     " TiB", " PiB", " EiB" };

	if (bytes < 1024)
		return mem_printf("%llu B", (unsigned long long)bytes);
	return scale((double)bytes, 1024, units, sizeof(units) / sizeof(*units));
}

char *number_time(uint64_t epoch_ns)
{
	time_t seconds = (time_t)(epoch_ns / 1000000000u);
	struct tm local;
	char text[32];

	if (!localtime_r(&seconds, &local) ||
	    !strftime(text, sizeof(text), "%Y-%m-%d %H:%M:%S", &local))
		return mem_strdup("-");
	return mem_strdup(text);
}
