/* SPDX-License-Identifier: Apache-2.0 */
#ifndef RESOURCE_FINDINGS_H
#define RESOURCE_FINDINGS_H

/*
 * Findings over time: the same problem is one finding as long as it goes on, and ends
 * FINDINGS_QUIET_NS after it was seen last. Each is put as a FACT_FINDING when it
 * begins, at most once a second while it changes, and when it ends.
 *
 * JSON of one finding, version FINDINGS_VERSION, is documented in assay-finding(5).
 */

#include "model/sink.h"
#include "resource/diagnose.h"

#define FINDINGS_VERSION  1
#define FINDINGS_MAX	  256
#define FINDINGS_QUIET_NS 5000000000ull
#define FINDINGS_CONFIRM  2 /* times in a row that it must be seen */

struct findings_config {
	uint64_t run_id;
	int64_t realtime_offset_ns;
	struct sink *sink; /* borrowed */
};

struct findings;

struct findings *findings_new(const struct findings_config *config);
void findings_free(struct findings *findings); /* NULL is fine */
CLEANUP_DEFINE(findings_free, struct findings *)

/* findings_update() - diagnose, and put what is new, changed or over; @now_ns monotonic. */
void findings_update(struct findings *findings, const struct ledger *ledger,
		     uint64_t now_ns);

/* finding_json() - @until_ns: 0 while it goes on. Both realtime, like @since_ns. */
struct str;
void finding_json(const struct finding *finding, uint64_t since_ns, uint64_t until_ns,
		  struct str *out);

#endif
