// SPDX-License-Identifier: Apache-2.0
#include "resource/trend.h"

#define UP_SHARE   0.7f	      /* of the steps */
#define KEEPS_UP   (1 / 3.0f) /* growth of the second half to that of the first */
#define LEAST_GAIN 1.3f	      /* end to begin */

bool trend_grows(const float *values, size_t count, float least)
{
	size_t up = 0, middle = count / 2;

	if (count < TREND_LEAST)
		return false;
	for (size_t i = 1; i < count; i++)
		up += values[i] > values[i - 1];
	float first = values[middle] - values[0];
	float second = values[count - 1] - values[middle];

	if (values[count - 1] - values[0] < least ||
	    values[count - 1] < values[0] * LEAST_GAIN)
		return false;
	return (float)up >= UP_SHARE * (float)(count - 1) && second > first * KEEPS_UP;
}

/* The split with the largest variance between its parts. */
size_t trend_change(const float *values, size_t count)
{
	double total = 0, before = 0, best = 0;
	size_t at = 0;

	for (size_t i = 0; i < count; i++)
		total += (double)values[i];
	for (size_t i = 1; i < count; i++) {
		before += (double)values[i - 1];
		double gap = before / (double)i - (total - before) / (double)(count - i);
		double weight = gap * gap * (double)i * (double)(count - i);

		if (weight > best) {
			best = weight;
			at = i;
		}
	}
	return at;
}
