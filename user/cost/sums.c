// SPDX-License-Identifier: Apache-2.0
/*
 * The residuals x - R n of a ratio R are not known until all is summed up; but their
 * squares are x x - 2 R n x + R R n n, so three sums do.
 */
#include "cost/sums.h"

#include <math.h>
#include <string.h>

void sums_close(struct sums *sums)
{
	double w = sums->weight, n = sums->open_calls;

	if (n == 0)
		return;
	sums->calls += w * n;
	sums->unseen += w * (w - 1) * n * n;
	sums->calls2 += w * w * n * n;
	for (int i = 0; i < SUMS; i++) {
		double x = sums->open[i];

		sums->total[i] += w * x;
		sums->cross[i] += w * w * n * x;
		sums->square[i] += w * w * x * x;
	}
	sums->open_calls = 0;
	memset(sums->open, 0, sizeof(sums->open));
}

void sums_add(struct sums *sums, size_t trace, double weight, const double values[SUMS])
{
	if (sums->trace != trace)
		sums_close(sums);
	sums->trace = trace;
	sums->weight = weight;
	sums->open_calls++;
	for (int i = 0; i < SUMS; i++)
		sums->open[i] += values[i];
	sums->spans++;
}

struct estimate sums_calls(const struct sums *sums)
{
	return (struct estimate){ sums->calls, sqrt(fmax(sums->unseen, 0)) };
}

struct estimate sums_mean(const struct sums *sums, enum sum_what what)
{
	if (sums->calls == 0)
		return (struct estimate){ 0, 0 };
	double r = sums->total[what] / sums->calls;
	double residual =
		sums->square[what] - 2 * r * sums->cross[what] + r * r * sums->calls2;

	return (struct estimate){ r, sqrt(fmax(residual, 0)) / sums->calls };
}
