/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RESOURCE_TREND_H
#define RESOURCE_TREND_H

/* What a series of equally spaced values does; oldest first. Pure arithmetic. */

#include <stdbool.h>
#include <stddef.h>

#define TREND_LEAST 5 /* values, or there is no trend */

/**
 * trend_grows() - does it grow, and still does? Most steps go up, the end is well above
 * the begin by at least @least, and the second half adds at least a third of what the
 * first half did: what flattens out is a cache that fills.
 */
bool trend_grows(const float *values, size_t count, float least);

/* trend_change() - index from which on the mean differs most, weighed by how much there
 * is on both sides; 0: no values, or all the same. */
size_t trend_change(const float *values, size_t count);

#endif
