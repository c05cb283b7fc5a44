// SPDX-License-Identifier: Apache-2.0
/*
 * Events that no probe told but the walk. A stack says in which function a thread sleeps
 * and not with which arguments: the object is the only one that the resource has, or
 * unknown. What a probe has told of already is left as it is.
 */
#include "resource/ledger_impl.h"

static uint64_t sole_object(const struct ledger *ledger, const struct resource *resource)
{
	struct object **object;
	uint64_t sole = 0;
	size_t pos = 0;

	while ((object = map_next(ledger->objects, &pos, NULL))) {
		if ((*object)->resource != resource || !(*object)->id)
			continue;
		if (sole)
			return 0;
		sole = (*object)->id;
	}
	return sole;
}

static const struct wait *open_wait(const struct task *task,
				    const struct resource *resource)
{
	for (unsigned i = 0; i < task->wait_count; i++)
		if (task->waits[i].resource == resource)
			return &task->waits[i];
	return NULL;
}

/* What @task holds of @resource. */
static struct hold *any_hold(const struct ledger *ledger, const struct resource *resource,
			     const struct task *task, struct hold_key *ret_key)
{
	struct hold *hold;
	const void *key;
	size_t pos = 0;

	while (task->holds && (hold = map_next(ledger->holds, &pos, &key))) {
		const struct hold_key *held = key;

		if (held->task != task || held->resource != resource)
			continue;
		*ret_key = *held;
		return hold;
	}
	return NULL;
}

/* The task sleeps inside its holding: so that goes on, seen or not, until it wakes. */
static void confirm(struct hold *hold, struct task *task)
{
	if (!hold->is_doubtful)
		return;
	hold->is_doubtful = false;
	hold->is_walked = true;
	task->doubtful--;
}

bool walked_counts(const struct ledger *ledger, const struct resource *resource,
		   struct task *task, struct abi_resource *record)
{
	struct hold_key held;
	struct hold *hold;
	const struct wait *wait;

	switch (record->verb) {
	case ABI_WAIT_BEGIN:
		if (open_wait(task, resource))
			return false;
		break;
	case ABI_WAIT_END:
		wait = open_wait(task, resource);
		return wait && wait->is_walked;
	case ABI_ACQUIRE:
		hold = any_hold(ledger, resource, task, &held);
		if (hold)
			confirm(hold, task);
		if (hold)
			return false;
		break;
	case ABI_RELEASE:
		hold = any_hold(ledger, resource, task, &held);
		if (hold)
			record->object = held.object;
		return hold && hold->is_walked;
	default:
		return true;
	}
	if (!record->object)
		record->object = sole_object(ledger, resource);
	return true;
}
