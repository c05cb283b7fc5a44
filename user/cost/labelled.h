/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COST_LABELLED_H
#define COST_LABELLED_H

/* What labels of requests say about where CPU goes. */

#include "cost/profile.h"

/* Weighted sums over all kept traces, of profile_paths(). */
struct labelled {
	double cpu_ns;	 /* of all requests */
	double empty_ns; /* by requests that found nothing, and all that they asked */
	double low_for_high_ns; /* by high requests, and all below, that a low one asked */
};

/* labelled_sum() - each path is counted once, also where an empty one asks another. */
struct labelled labelled_sum(const struct profile *profile);

#endif
