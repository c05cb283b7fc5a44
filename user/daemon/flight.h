/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_FLIGHT_H
#define DAEMON_FLIGHT_H

/*
 * What a job in flight points to: embed it first in the job's context. Jobs outlive
 * their owner when the worker answers, or dies, after the owner was freed; the owner
 * cuts every link when it goes, and the callback finds @owner NULL.
 */

#include <stdbool.h>
#include <stddef.h>

#include "core/err.h"
#include "core/str.h"

struct flight {
	struct flight *next, *previous;
	void *owner;
};

struct flights {
	struct flight *first;
};

static inline void flight_begin(struct flights *flights, struct flight *flight,
				void *owner)
{
	flight->owner = owner;
	flight->previous = NULL;
	flight->next = flights->first;
	if (flight->next)
		flight->next->previous = flight;
	flights->first = flight;
}

static inline void flight_end(struct flights *flights, struct flight *flight)
{
	if (!flight->owner)
		return;
	if (flight->next)
		flight->next->previous = flight->previous;
	if (flight->previous)
		flight->previous->next = flight->next;
	else
		flights->first = flight->next;
}

/* flights_cut() - the owner goes. */
static inline void flights_cut(struct flights *flights)
{
	for (struct flight *at = flights->first; at; at = at->next)
		at->owner = NULL;
	flights->first = NULL;
}

/* was_not_begun() - the worker died over another job: this one may simply be repeated. */
static inline bool was_not_begun(const struct err *err)
{
	return err->code == ERR_CLOSED && str_starts(err->text, "not begun");
}

#endif
