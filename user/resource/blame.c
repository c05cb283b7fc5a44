// SPDX-License-Identifier: Apache-2.0
/*
 * Who is waited for. What is known best comes first: a blocker that the spec reads from
 * the lock itself; those who held the object meanwhile in a mode that conflicts; those
 * who stand before in the queue and want it for themselves; and where nothing is known
 * of the object, whoever has the oldest transaction, which is marked as inferred.
 *
 * A blocker that waits itself passes the blame on, hop by hop, to one that does not.
 */
#include "resource/ledger_impl.h"

struct blocker {
	struct task *task;
	uint64_t ns; /* of the interval */
	bool is_inferred;
};

struct blockers {
	struct blocker list[MAX_HOLDERS];
	unsigned count;
};

static void add(struct blockers *to, struct task *task, uint64_t ns, bool is_inferred)
{
	for (unsigned i = 0; i < to->count; i++)
		if (to->list[i].task == task) {
			to->list[i].ns += ns;
			return;
		}
	if (to->count < MAX_HOLDERS)
		to->list[to->count++] = (struct blocker){ task, ns, is_inferred };
}

static struct task *known_task(const struct ledger *ledger, uint32_t pid, uint32_t tid)
{
	struct {
		uint64_t pid, tid, key;
	} id = { pid, tid, 0 };
	struct task **found = map_find(ledger->tasks, &id);

	return found ? *found : NULL;
}

/* The spec's word: the key of a request, a thread of the process, or a process. */
static struct task *told_blocker(struct ledger *ledger, const struct task *task,
				 const struct wait *wait)
{
	uint64_t key[2] = { task->pid, wait->blocker };
	struct task **found = map_find(ledger->keys, key);

	if (!wait->blocker)
		return NULL;
	if (found)
		return *found;
	if (wait->blocker > UINT32_MAX)
		return NULL;
	uint32_t number = (uint32_t)wait->blocker;
	struct task *known = known_task(ledger, task->pid, number);

	if (!known)
		known = known_task(ledger, number, number);
	if (wait->resource->info.resource_id == ABI_GENERIC_LOCK)
		return task_of(ledger, task->pid, number, 0);
	/* Nothing was seen of it, because it does nothing: that is how blockers are. */
	return known ? known : task_of(ledger, number, number, 0);
}

static bool conflicts(uint8_t a, uint8_t b)
{
	return a != ABI_SHARED || b != ABI_SHARED;
}

static bool is_doubtful(const struct ledger *ledger, const struct wait *wait,
			const struct holder *holder)
{
	struct hold_key key = { wait->resource, wait->object, holder->task };
	const struct hold *hold = holder->until_ns ? NULL : map_find(ledger->holds, &key);

	return hold && hold->is_doubtful;
}

/* Those of whom it is known count; where there are none, those who are taken to hold. */
static void held_by(const struct ledger *ledger, const struct task *task,
		    const struct wait *wait, uint64_t from_ns, struct blockers *to)
{
	struct blockers perhaps = { .count = 0 };

	const struct object *object = object_find(ledger, wait->resource, wait->object);

	for (unsigned i = 0; object && i < MAX_HOLDERS; i++) {
		const struct holder *holder = &object->holders[i];
		uint64_t since_ns =
			holder->since_ns > from_ns ? holder->since_ns : from_ns;
		uint64_t until_ns = holder->until_ns ?: ledger->now_ns;

		if (holder->task && holder->task != task && until_ns > since_ns &&
		    conflicts(wait->mode, holder->mode))
			add(is_doubtful(ledger, wait, holder) ? &perhaps : to,
			    holder->task, until_ns - since_ns, false);
	}
	if (!to->count)
		*to = perhaps;
}

static void queued_before(const struct ledger *ledger, const struct task *task,
			  const struct wait *wait, struct blockers *to)
{
	struct task **other;
	size_t pos = 0;

	if (wait->mode != ABI_SHARED)
		return;
	while ((other = map_next(ledger->tasks, &pos, NULL)))
		for (unsigned i = 0; *other != task && i < (*other)->wait_count; i++) {
			const struct wait *ahead = &(*other)->waits[i];

			if (ahead->resource == wait->resource &&
			    ahead->object == wait->object &&
			    ahead->mode == ABI_EXCLUSIVE &&
			    ahead->since_ns <= wait->since_ns)
				add(to, *other, 1, false);
		}
}

/* The oldest transaction of the application that began before the wait did. */
static void oldest_pin(const struct ledger *ledger, const struct task *task,
		       const struct wait *wait, struct blockers *to)
{
	const struct hold *hold;
	struct task *oldest = NULL;
	uint64_t oldest_ns = wait->since_ns;
	const void *key;
	size_t pos = 0;

	if (wait->resource->info.kind != RESOURCE_LOCK)
		return;
	while ((hold = map_next(ledger->holds, &pos, &key))) {
		const struct hold_key *held = key;

		if (held->resource->info.kind != RESOURCE_PIN ||
		    held->task->app != task->app || held->task == task ||
		    held->task->wait_count || hold->since_ns >= oldest_ns)
			continue;
		oldest = held->task;
		oldest_ns = hold->since_ns;
	}
	if (oldest)
		add(to, oldest, 1, true);
}

static void direct(struct ledger *ledger, const struct task *task,
		   const struct wait *wait, uint64_t from_ns, struct blockers *to)
{
	struct task *told = told_blocker(ledger, task, wait);

	to->count = 0;
	if (told && told != task) {
		add(to, told, 1, false);
		return;
	}
	held_by(ledger, task, wait, from_ns, to);
	if (!to->count)
		queued_before(ledger, task, wait, to);
	if (!to->count)
		oldest_pin(ledger, task, wait, to);
}

static const struct blocker *strongest(const struct blockers *from,
				       struct task *const *seen, unsigned seen_count)
{
	const struct blocker *best = NULL;

	for (unsigned i = 0; i < from->count; i++) {
		const struct blocker *one = &from->list[i];
		bool is_seen = false;

		for (unsigned j = 0; j < seen_count; j++)
			is_seen |= seen[j] == one->task;
		if (is_seen)
			continue;
		/* One that waits itself is a worse answer than one that does not. */
		if (!best || (best->task->wait_count && !one->task->wait_count) ||
		    (!best->task->wait_count == !one->task->wait_count &&
		     one->ns > best->ns))
			best = one;
	}
	return best;
}

static void put_edge(struct ledger *ledger, const struct task *waiter,
		     const struct wait *wait, const struct blocker *blocker, double s)
{
	struct edge_key key = { waiter, blocker->task };

	if (!map_find(ledger->edges, &key) && map_count(ledger->edges) >= LEDGER_MAX_KEYS)
		return;
	struct edge *edge = map_put(ledger->edges, &key, NULL);

	edge->resource = wait->resource;
	edge->object = wait->object;
	edge->wait_s[0] += (float)s;
	edge->is_inferred = blocker->is_inferred;
}

/* From @first on, to the one that waits for nobody. */
static struct task *root_of(struct ledger *ledger, struct task *waiter,
			    struct task *first, const struct resource **ret_last)
{
	struct task *seen[LEDGER_MAX_HOPS + 1] = { waiter, first };
	struct task *at = first;

	for (unsigned hops = 2; hops <= LEDGER_MAX_HOPS && at->wait_count; hops++) {
		const struct wait *wait = &at->waits[at->wait_count - 1];
		struct blockers next;

		direct(ledger, at, wait, wait->since_ns, &next);
		const struct blocker *best = strongest(&next, seen, hops);

		if (!best)
			break;
		*ret_last = wait->resource;
		at = seen[hops] = best->task;
	}
	return at;
}

void blame_wait(struct ledger *ledger, struct task *task, const struct wait *wait,
		uint64_t from_ns, uint64_t to_ns)
{
	struct blockers found;
	double s = (double)(to_ns - from_ns) / 1e9, total = 0;

	direct(ledger, task, wait, from_ns, &found);
	for (unsigned i = 0; i < found.count; i++)
		total += (double)found.list[i].ns;
	for (unsigned i = 0; i < found.count; i++) {
		const struct blocker *one = &found.list[i];
		const struct resource *last = wait->resource;
		struct task *root = root_of(ledger, task, one->task, &last);
		double part = s * (double)one->ns / total;
		struct cell *cell = cell_of(ledger, wait->resource, root);

		put_edge(ledger, task, wait, one, part);
		if (cell) {
			cell->past[ledger->at].blame_s += (float)part;
			cell->last_ns = to_ns;
		}
		root->last_ns = to_ns;
		if (last == wait->resource)
			continue;
		wait->resource->through[ledger->at] += (uint32_t)(part * 1000);
		wait->resource->through_what = last;
	}
}
