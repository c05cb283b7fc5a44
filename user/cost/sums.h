/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COST_SUMS_H
#define COST_SUMS_H

/* Weighted sums over traces and their second moments: see cost/profile.h. */

#include <stddef.h>

#include "cost/profile.h"

enum sum_what {
	SUM_SELF,
	SUM_TRANSITIVE,
	SUM_DURATION,
	SUM_OFF_CPU,
	SUM_IN,
	SUM_OUT,
	SUM_FAULTS,
	SUMS
};

struct sums {
	size_t trace; /* the one that @open is about */
	double weight;
	double open_calls, open[SUMS]; /* in it */
	double calls, total[SUMS];     /* weighted */
	double unseen;		       /* w (w - 1) n^2: the variance of calls */
	double calls2, cross[SUMS], square[SUMS]; /* w^2 times n n, n x, x x */
	size_t spans;
};

/* sums_add() - a span of trace @trace; traces come one after the other. */
void sums_add(struct sums *sums, size_t trace, double weight, const double values[SUMS]);
/* sums_close() - the last trace is over; may be called again. */
void sums_close(struct sums *sums);

struct estimate sums_calls(const struct sums *sums);
struct estimate sums_mean(const struct sums *sums, enum sum_what what);

#endif
