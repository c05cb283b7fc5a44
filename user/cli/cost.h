/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_COST_H
#define CLI_COST_H

/* A database's spans as a profile, for the commands about cost. */

#include "cli/report.h"
#include "cost/profile.h"

struct costs {
	struct profile *profile;
	double window_s; /* from the first request's begin to the last one's end */
	uint64_t first_ns, last_ns;
	bool is_cut;   /* there were more spans than fit */
	bool by_label; /* "get [miss]" is another kind than "get" */
};

/* costs_load() - the error says what to do when there are no requests. */
struct err *costs_load(const char *db_path, const struct report_scope *scope,
		       bool by_label, struct costs *ret_costs);
void costs_fini(struct costs *costs); /* { 0 } is fine */
static inline void cleanup_costs_fini(struct costs *costs)
{
	costs_fini(costs);
}

/* costs_json() - window_s, methods and edges; costs are per call, se of the whole. */
void costs_json(struct output *out, const struct costs *costs);

#endif
