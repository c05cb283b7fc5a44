// SPDX-License-Identifier: Apache-2.0
/*
 * A holding is what one task has of one object. A release takes from the task's own
 * holding first, else from whoever has the object: some things are freed by others.
 */
#include "resource/ledger_impl.h"

#define SECOND 1e9

static struct holder *holder_find(struct object *object, const struct task *task)
{
	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		if (object->holders[i].task == task && !object->holders[i].until_ns)
			return &object->holders[i];
	return NULL;
}

/* A place for a new holder: a free one, else that of the one who let go first. */
static struct holder *holder_new(struct object *object)
{
	struct holder *best = NULL;

	for (unsigned i = 0; i < MAX_HOLDERS; i++) {
		struct holder *holder = &object->holders[i];

		if (!holder->task)
			return holder;
		if (holder->until_ns && (!best || holder->until_ns < best->until_ns))
			best = holder;
	}
	return best;
}

void hold_account(struct ledger *ledger, const struct hold_key *key, struct hold *hold,
		  uint64_t now_ns)
{
	struct cell *cell = cell_of(ledger, key->resource, key->task);

	if (now_ns <= hold->walked_ns)
		return;
	float s = (float)((double)(now_ns - hold->walked_ns) / SECOND);

	key->resource->past[ledger->at].hold_s += s;
	if (cell)
		cell->past[ledger->at].hold_s += s;
	hold->walked_ns = now_ns;
}

/* The balance of resource, cell and object changes by @amount. */
static void balance_add(struct ledger *ledger, const struct hold_key *key, double amount)
{
	struct cell *cell = cell_of(ledger, key->resource, key->task);
	struct object *object = object_of(ledger, key->resource, key->object);

	key->resource->balance += amount;
	if (cell)
		cell->balance += amount;
	if (object)
		object->balance += amount;
}

static void hold_end(struct ledger *ledger, const struct hold_key *key, uint64_t now_ns)
{
	struct hold_key own = *key;
	struct hold *hold = map_find(ledger->holds, &own);
	struct object *object = object_find(ledger, own.resource, own.object);
	struct cell *cell = cell_of(ledger, own.resource, own.task);
	struct holder *holder = object ? holder_find(object, own.task) : NULL;

	hold_account(ledger, &own, hold, now_ns);
	balance_add(ledger, &own, -hold->amount);
	if (holder)
		holder->until_ns = now_ns;
	if (cell && cell->holds && !--cell->holds && own.resource->holders_now)
		own.resource->holders_now--;
	own.task->holds--;
	own.task->doubtful -= hold->is_doubtful;
	map_del(ledger->holds, &own);
}

static void hold_begin(struct ledger *ledger, const struct hold_key *key, uint8_t mode,
		       uint64_t now_ns)
{
	struct resource *resource = key->resource;
	struct object *object = object_of(ledger, resource, key->object);
	struct cell *cell = cell_of(ledger, resource, key->task);
	struct holder *holder = object ? holder_new(object) : NULL;

	if (holder)
		*holder = (struct holder){ key->task, now_ns, 0, mode };
	key->task->holds++;
	if (cell && !cell->holds++)
		resource->holders_now++;
	if (resource->holders_now > resource->holders_max)
		resource->holders_max = resource->holders_now;
}

/* Whoever holds the object, since the task that lets go of it does not. */
static struct task *other_holder(const struct ledger *ledger, struct resource *resource,
				 uint64_t id)
{
	struct object *object = object_find(ledger, resource, id);

	for (unsigned i = 0; object && i < MAX_HOLDERS; i++)
		if (object->holders[i].task && !object->holders[i].until_ns)
			return object->holders[i].task;
	return NULL;
}

/* One piece is nobody else's: its release was not seen. */
static void take_from(struct ledger *ledger, const struct hold_key *key, uint64_t now_ns)
{
	struct task *other = other_holder(ledger, key->resource, key->object);
	struct hold_key old = { key->resource, key->object, other };

	if (key->resource->info.kind == RESOURCE_POOL && other && other != key->task &&
	    map_find(ledger->holds, &old))
		hold_end(ledger, &old, now_ns);
}

void hold_acquire(struct ledger *ledger, struct resource *resource, struct task *task,
		  const struct abi_resource *record)
{
	struct hold_key key = { resource, record->object, task };
	struct cell *cell = cell_of(ledger, resource, task);
	struct object *object = object_of(ledger, resource, record->object);
	struct sums *all = &resource->past[ledger->at];
	uint64_t now_ns = record->head.time_ns;
	bool is_fresh = is_rare(object, now_ns);
	bool is_new;

	if (object)
		object->last_ns = now_ns;
	if (!map_find(ledger->holds, &key) &&
	    map_count(ledger->holds) >= LEDGER_MAX_HOLDS) {
		ledger->lost++;
		return;
	}
	struct hold *hold = map_put(ledger->holds, &key, &is_new);

	if (is_new)
		take_from(ledger, &key, now_ns);
	hold = map_put(ledger->holds, &key, NULL); /* it may have moved */
	if (is_new)
		*hold = (struct hold){
			0, now_ns,	 now_ns,
			0, record->mode, .is_walked = record->flags & ABI_HIT_WALKED
		};
	hold->amount += (double)record->amount;
	hold->count++;
	if (is_new)
		hold_begin(ledger, &key, record->mode, now_ns);
	balance_add(ledger, &key, (double)record->amount);
	resource->acquired += (double)record->amount;
	resource->hold_place = place_of(ledger, record->slot);
	all->acquires++;
	all->fresh += is_fresh;
	if (cell) {
		cell->past[ledger->at].acquires++;
		cell->past[ledger->at].fresh += is_fresh;
		cell->acquired += (double)record->amount;
		cell->last_ns = now_ns;
	}
}

static void count_release(struct ledger *ledger, struct resource *resource,
			  struct task *task, double amount)
{
	struct cell *cell = cell_of(ledger, resource, task);

	resource->released += amount;
	resource->past[ledger->at].releases++;
	if (cell) {
		cell->past[ledger->at].releases++;
		cell->released += amount;
	}
}

void hold_release(struct ledger *ledger, struct resource *resource, struct task *task,
		  const struct abi_resource *record)
{
	struct hold_key key = { resource, record->object, task };
	struct hold *hold = map_find(ledger->holds, &key);

	if (!hold) {
		key.task = other_holder(ledger, resource, record->object);
		hold = key.task ? map_find(ledger->holds, &key) : NULL;
	}
	if (!hold)
		return; /* acquired before we came */
	count_release(ledger, resource, key.task, (double)record->amount);
	bool is_over = record->begin_ns ? hold->count <= 1
					: hold->amount <= (double)record->amount;

	if (!is_over) {
		hold->count -= hold->count > 1;
		hold->amount -= (double)record->amount;
		balance_add(ledger, &key, -(double)record->amount);
		return;
	}
	hold_end(ledger, &key, record->head.time_ns);
}

/* @task does something anew: what it held when nobody looked is over. */
void hold_forget(struct ledger *ledger, struct task *task, uint64_t now_ns)
{
	VEC(struct hold_key) mine = { 0 };
	const struct hold *hold;
	const void *key;
	size_t pos = 0;

	if (!task->doubtful)
		return;
	while ((hold = map_next(ledger->holds, &pos, &key)))
		if (((const struct hold_key *)key)->task == task && hold->is_doubtful)
			vec_push(&mine, *(const struct hold_key *)key);
	vec_each(&mine, held)
		hold_end(ledger, held, now_ns);
	vec_fini(&mine);
}

/* All that @task holds of @resource, of everything when that is NULL. */
void hold_release_all(struct ledger *ledger, struct resource *resource, struct task *task,
		      uint64_t now_ns)
{
	VEC(struct hold_key) mine = { 0 };
	const void *key;
	size_t pos = 0;

	if (!task->holds)
		return;
	while (map_next(ledger->holds, &pos, &key)) {
		const struct hold_key *held = key;

		if (held->task == task && (!resource || held->resource == resource))
			vec_push(&mine, *held);
	}
	vec_each(&mine, held) {
		const struct hold *hold = map_find(ledger->holds, held);

		count_release(ledger, held->resource, task, hold->amount);
		hold_end(ledger, held, now_ns);
	}
	vec_fini(&mine);
}

/* A gauge of what a task has: as if the difference was acquired or released. */
void hold_set(struct ledger *ledger, struct resource *resource, struct task *task,
	      const struct abi_resource *record)
{
	struct hold_key key = { resource, record->object, task };
	const struct hold *hold = map_find(ledger->holds, &key);
	double before = hold ? hold->amount : 0, now = (double)record->amount;
	struct abi_resource change = *record;

	change.amount = (uint64_t)(now > before ? now - before : before - now);
	change.begin_ns = 0;
	if (now > before)
		hold_acquire(ledger, resource, task, &change);
	else if (hold && now < before)
		hold_release(ledger, resource, task, &change);
	struct hold *after = map_find(ledger->holds, &key);

	if (after)
		after->is_gauge = true;
}
