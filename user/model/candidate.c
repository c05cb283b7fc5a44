// SPDX-License-Identifier: Apache-2.0
#include "model/candidate.h"

#include <string.h>

static const char *const names[] = { "wait", "acquire", "use", "release" };

const char *candidate_event_name(enum candidate_event event)
{
	return (unsigned)event < CANDIDATE_EVENTS ? names[event] : "unknown";
}

enum candidate_event candidate_event_named(const char *name)
{
	int event = 0;

	while (event < CANDIDATE_EVENTS && strcmp(names[event], name) != 0)
		event++;
	return (enum candidate_event)event;
}
