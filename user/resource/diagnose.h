/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RESOURCE_DIAGNOSE_H
#define RESOURCE_DIAGNOSE_H

/*
 * The ledger's quantities to findings, by a table of rules. A rule names a fault class,
 * the kinds of resources it is about, who suffers, who causes it and which trend must be
 * there. A finding needs a victim that loses over DIAGNOSE_LOSS of its time and a
 * culprit at over twice its fair share: equals that saturate something are none.
 */

#include "resource/ledger.h"

#define DIAGNOSE_LOSS	 0.2
#define DIAGNOSE_WINDOW	 5  /* buckets that are looked at */
#define DIAGNOSE_LONG	 12 /* ... when the probes are on in windows only */
#define DIAGNOSE_PARTIES 8
#define DIAGNOSE_TEXTS	 8
#define DIAGNOSE_TEXT	 256

struct party {
	char label[DIAGNOSE_TEXT];
	char request[ABI_NAME_MAX + 1]; /* that it serves, or served last; "" unknown */
	char name[ABI_NAME_MAX + 1];	/* its address */
	uint32_t pid, tid;		/* 0: a kind of request, no task */
	uint64_t key;
	enum resource_key kind; /* of @key */
	double share; /* culprits: of the blame; victims: of its time that is lost */
	uint64_t lost_ms;
	uint64_t count;
};

struct finding {
	enum fault_class class;
	double score;
	uint64_t since_ns; /* CLOCK_MONOTONIC */
	uint32_t app;
	const struct resource_info *resource; /* borrowed from the ledger */
	char object[ABI_NAME_MAX + 1];
	struct party culprits[DIAGNOSE_PARTIES], victims[DIAGNOSE_PARTIES];
	size_t culprit_count, victim_count;
	char chain[DIAGNOSE_TEXTS][DIAGNOSE_TEXT];
	char evidence[DIAGNOSE_TEXTS][DIAGNOSE_TEXT];
	size_t chain_count, evidence_count;
	const char *function; /* where it is seen; "" unknown */
	double coverage;      /* share of the time in which its probes were on */
	uint64_t lost;	      /* events that the ledger could not take */
	bool is_part; /* of another finding that was told before: it is none of its own */
	bool is_inferred; /* the culprit is known by its oldest transaction only */
};

/* diagnose() - after ledger_walk() said so. @each borrows the finding during the call;
 * in order of falling score; at last those that are part of another one. */
typedef void (*diagnose_fn)(void *ctx, const struct finding *finding);
void diagnose(const struct ledger *ledger, diagnose_fn each, void *ctx);

#endif
