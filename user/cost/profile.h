/* SPDX-License-Identifier: Apache-2.0 */
#ifndef COST_PROFILE_H
#define COST_PROFILE_H

/*
 * Spans to a profile: joined to trees, merged by path, summed up by weight.
 *
 * Every kept trace stands for 1 / p of its kind, so a sum over all requests is estimated
 * by the sum of w * x. Its variance, with traces kept one by one, is that of w * (w - 1)
 * * x^2 (Horvitz and Thompson); of a ratio, that of the residuals (x - R * n). x is what
 * one trace holds of the thing in question: a trace is the unit that is drawn, not a
 * span. That is the error of not having kept the others: it is 0 where all were kept.
 * The error of a mean is never below that of its sample: also when all were kept, the
 * requests seen stand for those to come.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"

#define PROFILE_MAX_SPANS 4000000
#define PROFILE_MAX_DEPTH 64 /* deeper spans are charged to the last node */

/* As in the column span.labels. */
enum { PROFILE_EMPTY = 4, PROFILE_LOW = 16, PROFILE_HIGH = 32 };

enum profile_kind { PROFILE_SERVED = 1, PROFILE_CALL, PROFILE_BATCH };

struct profile_span {
	uint64_t span_id, parent_id; /* parent_id may name one that is not there */
	const char *service, *name;  /* borrowed for the call */
	enum profile_kind kind;
	uint32_t labels; /* those of another label are of another kind; 0: all are one */
	uint64_t duration_ns, cpu_ns; /* without the probes' own cost */
	uint64_t off_cpu_ns, in_bytes, out_bytes, faults;
	double weight; /* of the whole trace: that of its root counts */
};

/* A sum over requests with its standard error; a mean is per call. */
struct estimate {
	double value, error;
};

/* One kind of request, or one path of kinds from a root down to it. */
struct profile_row {
	const char *service, *name; /* borrowed until profile_free() */
	size_t parent; /* path rows: index of the row above; SIZE_MAX: none */
	unsigned depth;
	uint32_t labels;
	bool is_root;		       /* method rows: most of its calls had no parent */
	bool is_call;		       /* asked of somebody who was not watched */
	uint64_t sampled;	       /* spans */
	struct estimate calls;	       /* how many there were */
	struct estimate self_ns;       /* CPU of a call, mean */
	struct estimate transitive_ns; /* and of all that it asked for */
	struct estimate duration_ns;
	struct estimate off_cpu_ns, in_bytes, out_bytes, faults; /* its own */
	double cpu_ns;	       /* all its own CPU: calls * self */
	double transitive_sum; /* all, of outermost calls of this kind */
};

struct profile_edge { /* who asks whom; indices of method rows */
	size_t parent, child;
	struct estimate calls;
};

/* Which root pays for a method: its share of the method's own CPU. */
struct profile_payer {
	size_t method, root;
	double cpu_ns, calls;
};

struct profile;

struct profile *profile_new(void);
void profile_free(struct profile *profile); /* NULL is fine */
CLEANUP_DEFINE(profile_free, struct profile *)

/* profile_add() - false when there are PROFILE_MAX_SPANS. In any order. */
bool profile_add(struct profile *profile, const struct profile_span *span);

/* profile_finish() - all spans are there: assemble, merge, sum up. Once. */
void profile_finish(struct profile *profile);

/* Rows, by transitive cost; paths so that each row follows the one above it. */
const struct profile_row *profile_methods(const struct profile *profile, size_t *count);
const struct profile_row *profile_paths(const struct profile *profile, size_t *count);
const struct profile_edge *profile_edges(const struct profile *profile, size_t *count);
const struct profile_payer *profile_payers(const struct profile *profile, size_t *count);

struct profile_stats {
	size_t spans, roots;
	size_t lost_parents; /* spans whose parent is named but not there: roots too */
	size_t loops;	     /* spans in a circle of parents: left out */
};
struct profile_stats profile_stats(const struct profile *profile);

#endif
