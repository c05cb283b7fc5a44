/* SPDX-License-Identifier: Apache-2.0 */
#ifndef MODEL_CANDIDATE_H
#define MODEL_CANDIDATE_H

/* What discovery (discover/) says of a function: an event of a resource, with evidence. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#define CANDIDATE_MAX_EVIDENCE 8

/* gigiprofiler (OSDI '26), section 3. */
enum candidate_event {
	CANDIDATE_WAIT,
	CANDIDATE_ACQUIRE,
	CANDIDATE_USE,
	CANDIDATE_RELEASE,
	CANDIDATE_EVENTS,
};

/* "wait", "acquire", "use", "release"; the second is CANDIDATE_EVENTS for others. */
const char *candidate_event_name(enum candidate_event event);
enum candidate_event candidate_event_named(const char *name);

/* What it is about: an argument, from 0, or: */
#define CANDIDATE_NO_OBJECT (-1)
#define CANDIDATE_RESULT    (-2)

struct event_candidate {
	enum candidate_event event;
	uint64_t va, bytes;
	const char *symbol;   /* as linked */
	const char *function; /* for people */
	const char *resource; /* "lw-lock"; the same for all that belong together */
	int object;
	bool is_verified;  /* the code agrees */
	double confidence; /* 0..1, that it is such an event of such a resource */
	const char *evidence[CANDIDATE_MAX_EVIDENCE];
	size_t evidence_count;
};

#endif
