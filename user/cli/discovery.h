/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_DISCOVERY_H
#define CLI_DISCOVERY_H

/* The candidates of one binary, held, filtered and written down. */

#include "core/cleanup.h"
#include "core/err.h"
#include "model/candidate.h"
#include "model/ids.h"

#define DISCOVERY_VERSION 1 /* of its JSON */

struct discovery;

struct discovery *discovery_new(void);
void discovery_free(struct discovery *discovery); /* NULL is fine */
CLEANUP_DEFINE(discovery_free, struct discovery *)

void discovery_add(struct discovery *discovery, const struct event_candidate *candidate);
const struct event_candidate *discovery_all(const struct discovery *discovery,
					    size_t *ret_count);

/* What somebody else thinks of one of them; NULL and a negative confidence: nothing. */
struct discovery_opinion {
	double confidence;
	const char *event, *resource, *note;
};
/* discovery_judge() - Errors: ERR_INVALID for an event that there is not. */
struct err *discovery_judge(struct discovery *discovery, size_t id,
			    const struct discovery_opinion *opinion);

struct discovery_filter {
	double min_confidence;
	const char *resource; /* NULL: all */
};
/* discovery_filter() - drop the others; the most certain come first. */
void discovery_filter(struct discovery *discovery, const struct discovery_filter *filter);

/* discovery_object() - "arg1", "result", "-". discovery_evidence() - "; " between them. */
const char *discovery_object(const struct event_candidate *candidate);
char *discovery_evidence(const struct event_candidate *candidate);

/**
 * discovery_write_spec() - as a spec file that `assay spec check` takes.
 * @binary: what it matches, with its build-id where it has one.
 * Errors: ERR_INVALID when @path is there; ERR_NOT_FOUND when there is nothing to write.
 */
struct err *discovery_write_spec(const struct discovery *discovery, const char *binary,
				 const struct build_id *build_id, const char *path);

#endif
