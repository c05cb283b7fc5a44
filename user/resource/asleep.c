// SPDX-License-Identifier: Apache-2.0
/*
 * Acts are repeated to the ledger as long as the thread sleeps, because the ledger drops
 * what is open when the probes of a resource are switched; it ignores what it has.
 */
#include "resource/asleep.h"

#include <stdlib.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"

struct thread {
	uint32_t pid, tid;
};

struct sleeper {
	struct abi_head head;
	uint64_t since_ns;
	struct asleep_act acts[ASLEEP_MAX_ACTS];
	size_t count;
};

struct asleep {
	struct ledger *ledger;
	struct map *sleepers; /* struct thread -> struct sleeper */
};

struct asleep *asleep_new(struct ledger *ledger)
{
	struct asleep *asleep = mem_alloc(sizeof(*asleep));

	asleep->ledger = ledger;
	asleep->sleepers = map_new(sizeof(struct thread), sizeof(struct sleeper));
	return asleep;
}

void asleep_free(struct asleep *asleep)
{
	if (!asleep)
		return;
	map_free(asleep->sleepers);
	free(asleep);
}

static void tell(struct asleep *asleep, const struct sleeper *sleeper,
		 const struct asleep_act *act, uint64_t time_ns, bool is_begin)
{
	struct event event = { .resource = { .head = sleeper->head } };
	struct abi_resource *record = &event.resource;

	record->head.kind = ABI_RESOURCE;
	record->head.size = sizeof(*record);
	record->head.time_ns = time_ns;
	record->resource_id = act->resource_id;
	record->object = act->object;
	record->amount = act->is_hold ? 1 : act->blocker;
	record->begin_ns = is_begin ? 0 : sleeper->since_ns;
	record->flags = ABI_HIT_WALKED;
	record->slot = act->slot;
	record->mode = act->mode;
	record->scope = ABI_SCOPE_OBJECT;
	record->count = 1;
	if (act->is_hold)
		record->verb = is_begin ? ABI_ACQUIRE : ABI_RELEASE;
	else
		record->verb = is_begin ? ABI_WAIT_BEGIN : ABI_WAIT_END;
	ledger_feed(asleep->ledger, &event);
}

static void wake(struct asleep *asleep, const struct thread *thread, uint64_t time_ns)
{
	struct thread key = *thread;
	const struct sleeper *sleeper = map_find(asleep->sleepers, &key);

	if (!sleeper)
		return;
	for (size_t i = 0; i < sleeper->count; i++)
		tell(asleep, sleeper, &sleeper->acts[i], time_ns, false);
	map_del(asleep->sleepers, &key);
}

static bool is_known(const struct sleeper *sleeper, const struct asleep_act *act)
{
	for (size_t i = 0; i < sleeper->count; i++)
		if (sleeper->acts[i].resource_id == act->resource_id &&
		    sleeper->acts[i].is_hold == act->is_hold)
			return true;
	return false;
}

static void add(struct asleep *asleep, struct sleeper *sleeper,
		const struct asleep_act *act, uint64_t time_ns)
{
	if (sleeper->count == ASLEEP_MAX_ACTS || is_known(sleeper, act))
		return;
	sleeper->acts[sleeper->count++] = *act;
	tell(asleep, sleeper, act, time_ns, true);
}

static void fall_asleep(struct asleep *asleep, const struct event *event)
{
	const struct abi_sleep *sleep = &event->sleep;
	struct thread thread = { sleep->head.pid, sleep->head.tid };
	struct asleep_act lock = { .resource_id = ABI_GENERIC_LOCK,
				   .object = sleep->object,
				   .blocker = sleep->owner,
				   .slot = ABI_NO_SLOT,
				   .mode = ABI_EXCLUSIVE };

	wake(asleep, &thread, sleep->head.time_ns);
	if (map_count(asleep->sleepers) >= ASLEEP_MAX)
		return;
	struct sleeper *sleeper = map_put(asleep->sleepers, &thread, NULL);

	*sleeper = (struct sleeper){ .head = sleep->head, .since_ns = sleep->since_ns };
	if (sleep->flags & ABI_SLEEP_LOCK)
		add(asleep, sleeper, &lock, sleep->head.time_ns);
}

static void process_gone(struct asleep *asleep, const struct abi_head *head)
{
	VEC(struct thread) gone = { 0 };
	const void *key;
	size_t pos = 0;

	while (map_next(asleep->sleepers, &pos, &key)) {
		const struct thread *thread = key;

		if (thread->pid == head->pid &&
		    (head->tid == head->pid || head->tid == thread->tid))
			vec_push(&gone, *thread);
	}
	vec_each(&gone, thread)
		wake(asleep, thread, head->time_ns);
	vec_fini(&gone);
}

void asleep_feed(struct asleep *asleep, const struct event *event)
{
	struct thread thread = { event->head.pid, event->head.tid };

	if (event->head.kind == ABI_TASK && event->task.op == ABI_TASK_EXIT)
		process_gone(asleep, &event->head);
	if (event->head.kind != ABI_SLEEP)
		return;
	if (event->sleep.op == ABI_SLEEP_BEGIN)
		fall_asleep(asleep, event);
	else
		wake(asleep, &thread, event->head.time_ns);
}

void asleep_place(struct asleep *asleep, const struct asleep_place *place)
{
	struct thread thread = { place->pid, place->tid };
	struct sleeper *sleeper = map_find(asleep->sleepers, &thread);

	if (!sleeper || sleeper->since_ns > place->time_ns)
		return;
	for (size_t i = 0; i < place->count; i++)
		add(asleep, sleeper, &place->acts[i], place->time_ns);
}

void asleep_walk(struct asleep *asleep, uint64_t now_ns)
{
	const struct sleeper *sleeper;
	size_t pos = 0;

	while ((sleeper = map_next(asleep->sleepers, &pos, NULL)))
		for (size_t i = 0; i < sleeper->count; i++)
			tell(asleep, sleeper, &sleeper->acts[i], now_ns, true);
}
