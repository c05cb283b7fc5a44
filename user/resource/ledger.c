// SPDX-License-Identifier: Apache-2.0
/*
 * Intervals are accounted for when they end and, while they last, at every walk: so a
 * wait that never ends costs its task from the first walk on, like any other.
 */
#include "resource/ledger.h"

#include <stdlib.h>
#include <string.h>

#include "resource/ledger_impl.h"

#define SECOND 1e9

struct ledger *ledger_new(void)
{
	struct ledger *ledger = mem_alloc(sizeof(*ledger));

	ledger->infos = map_new(sizeof(uint64_t), sizeof(struct resource_info));
	ledger->resources = map_new(2 * sizeof(uint64_t), sizeof(void *));
	ledger->tasks = map_new(3 * sizeof(uint64_t), sizeof(void *));
	ledger->cells = map_new(2 * sizeof(uint64_t), sizeof(void *));
	ledger->objects = map_new(2 * sizeof(uint64_t), sizeof(void *));
	ledger->holds = map_new(sizeof(struct hold_key), sizeof(struct hold));
	ledger->methods = map_new(2 * sizeof(uint64_t), sizeof(void *));
	ledger->apps = map_new(sizeof(uint32_t), sizeof(struct app));
	ledger->keys = map_new(2 * sizeof(uint64_t), sizeof(void *));
	ledger->edges = map_new(sizeof(struct edge_key), sizeof(struct edge));
	ledger->switched = map_new(sizeof(uint64_t), sizeof(struct coverage));
	return ledger;
}

static void free_each(struct map *map)
{
	void **value;
	size_t pos = 0;

	while ((value = map_next(map, &pos, NULL)))
		free(*value);
	map_free(map);
}

void ledger_free(struct ledger *ledger)
{
	if (!ledger)
		return;
	free_each(ledger->resources);
	free_each(ledger->tasks);
	free_each(ledger->cells);
	free_each(ledger->objects);
	free_each(ledger->methods);
	map_free(ledger->infos);
	map_free(ledger->holds);
	map_free(ledger->apps);
	map_free(ledger->keys);
	map_free(ledger->edges);
	map_free(ledger->switched);
	vec_fini(&ledger->pending);
	for (unsigned i = 0; i < ABI_MAX_SLOTS; i++)
		free(ledger->places[i]);
	free(ledger);
}

void ledger_declare(struct ledger *ledger, const struct resource_info *info)
{
	bool is_new;
	struct resource_info *own = map_put(ledger->infos, &info->resource_id, &is_new);

	if (is_new)
		*own = *info;
}

void ledger_place(struct ledger *ledger, uint32_t slot, const char *function)
{
	if (slot >= ABI_MAX_SLOTS)
		return;
	/* Resources may still point to the text of a slot that is given anew. */
	if (!ledger->places[slot])
		ledger->places[slot] = mem_strdup(function);
}

/* Names of the application are bytes: what is no printable ASCII becomes a dot. */
static void set_name(char *to, const char *name, size_t bytes)
{
	size_t used = bytes < ABI_NAME_MAX ? bytes : ABI_NAME_MAX;

	for (size_t i = 0; i < used; i++)
		to[i] = name[i] >= ' ' && name[i] < 0x7f ? name[i] : '.';
	to[used] = 0;
}

/* Coverage. */

const struct coverage *coverage_of(const struct ledger *ledger, uint64_t resource_id)
{
	return map_find(ledger->switched, &resource_id);
}

/* Seconds of @from..@to in which the requests' probes were on the last time. */
static double covered(const struct ledger *ledger, uint64_t from_ns, uint64_t to_ns)
{
	const struct coverage *requests = coverage_of(ledger, 0);

	if (!requests || !requests->on_ns)
		return requests ? 0 : (double)(to_ns - from_ns) / SECOND;
	uint64_t off_ns = requests->off_ns ?: to_ns;

	if (from_ns < requests->on_ns)
		from_ns = requests->on_ns;
	if (to_ns > off_ns)
		to_ns = off_ns;
	return to_ns > from_ns ? (double)(to_ns - from_ns) / SECOND : 0;
}

/* Waits. */

static void wait_account(struct ledger *ledger, struct task *task, struct wait *wait,
			 uint64_t now_ns)
{
	struct cell *cell = cell_of(ledger, wait->resource, task);
	struct sums *all = &wait->resource->past[ledger->at];

	if (now_ns <= wait->walked_ns)
		return;
	float s = (float)((double)(now_ns - wait->walked_ns) / SECOND);

	*(wait->is_walked ? &all->walked_s : &all->wait_s) += s;
	if (cell) {
		struct sums *own = &cell->past[ledger->at];

		*(wait->is_walked ? &own->walked_s : &own->wait_s) += s;
		own->covered_s += (float)covered(ledger, wait->walked_ns, now_ns);
		cell->last_ns = now_ns;
	}
	struct object *object = object_of(ledger, wait->resource, wait->object);

	if (object) {
		object->wait_s[0] += s;
		object->last_ns = now_ns;
	}
	blame_wait(ledger, task, wait, wait->walked_ns, now_ns);
	wait->walked_ns = now_ns;
}

static void wait_begin(struct ledger *ledger, struct resource *resource,
		       struct task *task, const struct abi_resource *record)
{
	/* The same wait again: its end was not seen. */
	for (unsigned i = 0; i < task->wait_count; i++)
		if (task->waits[i].resource == resource)
			task->wait_count = i;
	if (task->wait_count == MAX_WAITS) {
		ledger->lost++;
		return;
	}
	task->waits[task->wait_count++] = (struct wait){
		.resource = resource,
		.object = record->object,
		.blocker = record->amount,
		.since_ns = record->head.time_ns,
		.walked_ns = record->head.time_ns,
		.mode = record->mode,
		.is_walked = record->flags & ABI_HIT_WALKED,
	};
	resource->past[ledger->at].waits++;
	resource->wait_place = place_of(ledger, record->slot);
	struct cell *cell = cell_of(ledger, resource, task);
	struct object *object = object_of(ledger, resource, record->object);

	if (cell) {
		cell->past[ledger->at].fresh += !cell->past[ledger->at].acquires &&
						is_rare(object, record->head.time_ns);
		cell->past[ledger->at].waits++;
		cell->last_ns = record->head.time_ns;
	}
}

static void wait_end(struct ledger *ledger, struct resource *resource, struct task *task,
		     const struct abi_resource *record)
{
	for (unsigned i = task->wait_count; i-- > 0;) {
		if (task->waits[i].resource != resource)
			continue;
		while (task->wait_count > i) {
			struct wait *wait = &task->waits[task->wait_count - 1];

			wait_account(ledger, task, wait, record->head.time_ns);
			task->wait_count--;
		}
		return;
	}
}

/* Seconds in one of the resource's unit. */
static double unit_of(const struct resource *resource)
{
	static const struct {
		const char *name;
		double s;
	} units[] = { { "ns", 1e-9 }, { "us", 1e-6 }, { "ms", 1e-3 } };

	for (size_t i = 0; i < sizeof(units) / sizeof(units[0]); i++)
		if (!strcmp(resource->info.unit, units[i].name))
			return units[i].s;
	return 1;
}

static void use(struct ledger *ledger, struct resource *resource, struct task *task,
		const struct abi_resource *record, bool is_refusal)
{
	struct cell *cell = cell_of(ledger, resource, task);
	struct sums *all = &resource->past[ledger->at];

	uint32_t count = record->count ?: 1;

	all->uses += is_refusal ? 0 : count;
	all->refusals += is_refusal ? count : 0;
	if (is_refusal)
		resource->wait_place = place_of(ledger, record->slot);
	if (!cell)
		return;
	/* A loop says afterwards for how long it served somebody. */
	if (resource->info.kind == RESOURCE_LOOP && !is_refusal) {
		float s = (float)((double)record->amount * unit_of(resource));

		cell->past[ledger->at].hold_s += s;
		all->hold_s += s;
		resource->hold_place = place_of(ledger, record->slot);
	}
	cell->past[ledger->at].uses += is_refusal ? 0 : count;
	cell->past[ledger->at].refusals += is_refusal ? count : 0;
	cell->last_ns = record->head.time_ns;
}

static void level(struct ledger *ledger, struct resource *resource, struct task *task,
		  const struct abi_resource *record)
{
	struct object *object = object_of(ledger, resource, record->object);
	int64_t now = (int64_t)record->amount;

	if (resource->info.kind != RESOURCE_SLOTS) {
		hold_set(ledger, resource, task, record);
		return;
	}
	resource->hold_place = place_of(ledger, record->slot);
	if (!object)
		return;
	if (!object->level_ns || object->level != now)
		object->level_ns = record->head.time_ns;
	object->level = now;
	object->level_pid = record->head.pid;
	object->last_ns = record->head.time_ns;
}

/* Events. */

static void learn_names(struct ledger *ledger, const struct event *event,
			struct resource *resource, struct task *task)
{
	const struct abi_resource *record = &event->resource;
	struct object *object;

	if (resource->info.names_task) {
		if (record->name_bytes)
			set_name(task->name, event->name, record->name_bytes);
		return;
	}
	object = record->name_bytes ? object_of(ledger, resource, record->object) : NULL;
	if (object && !*object->name)
		set_name(object->name, event->name, record->name_bytes);
}

/* What nobody holds, but all leave behind: only how much there is counts. */
static void log_add(struct ledger *ledger, struct resource *resource, struct task *task,
		    const struct abi_resource *record)
{
	bool is_growth = record->verb == ABI_ACQUIRE;
	struct cell *cell = cell_of(ledger, resource, task);
	struct object *object = object_of(ledger, resource, record->object);
	double amount = (double)record->amount;

	resource->grown += is_growth ? amount : -amount;
	resource->past[ledger->at].acquires += is_growth;
	resource->past[ledger->at].releases += !is_growth;
	if (is_growth)
		resource->hold_place = place_of(ledger, record->slot);
	if (object) {
		object->balance += is_growth ? amount : -amount;
		object->last_ns = record->head.time_ns;
	}
	if (!cell)
		return;
	cell->past[ledger->at].acquires += is_growth;
	cell->past[ledger->at].releases += !is_growth;
	cell->last_ns = record->head.time_ns;
}

static void on_resource(struct ledger *ledger, const struct event *event)
{
	struct abi_resource record = event->resource;
	struct event named = *event;
	struct resource *resource =
		resource_of(ledger, record.resource_id, app_of(ledger, record.head.pid));
	bool is_place = resource && resource->info.kind == RESOURCE_SLOTS;
	struct task *task = task_of(ledger, record.head.pid, record.head.tid,
				    is_place ? 0 : record.key);

	if (!resource || !task)
		return;
	/* What has a name and no number is known by its name. */
	if (!record.object && !resource->info.names_task)
		record.object = record.name_id;
	/* A place has two coordinates. */
	if (is_place)
		record.object |= record.key << 32;
	named.resource.object = record.object;
	task->last_ns = record.head.time_ns;
	if (record.key && !is_place)
		task->kind = resource->info.key;
	learn_names(ledger, &named, resource, task);
	if (resource->info.kind == RESOURCE_LOG &&
	    (record.verb == ABI_ACQUIRE || record.verb == ABI_RELEASE)) {
		log_add(ledger, resource, task, &record);
		return;
	}
	if (record.flags & ABI_HIT_WALKED) {
		if (!walked_counts(ledger, resource, task, &record))
			return;
	} else if (record.verb == ABI_WAIT_BEGIN || record.verb == ABI_ACQUIRE)
		hold_forget(ledger, task, record.head.time_ns);
	switch (record.verb) {
	case ABI_WAIT_BEGIN:
		wait_begin(ledger, resource, task, &record);
		break;
	case ABI_WAIT_END:
		wait_end(ledger, resource, task, &record);
		break;
	case ABI_ACQUIRE:
		hold_acquire(ledger, resource, task, &record);
		break;
	case ABI_RELEASE:
		if (record.scope == ABI_SCOPE_OBJECT)
			hold_release(ledger, resource, task, &record);
		else
			hold_release_all(ledger, resource, task, record.head.time_ns);
		break;
	case ABI_USE:
	case ABI_REFUSE:
		use(ledger, resource, task, &record, record.verb == ABI_REFUSE);
		break;
	case ABI_LEVEL:
		level(ledger, resource, task, &record);
		break;
	}
}

static void busy_account(struct ledger *ledger, struct task *task, uint64_t now_ns)
{
	if (!task->request_ns || now_ns <= task->walked_ns)
		return;
	task->busy_s[ledger->at] += (float)((double)(now_ns - task->walked_ns) / SECOND);
	task->walked_ns = now_ns;
}

static void on_request_begin(struct ledger *ledger, const struct event *event,
			     struct task *task)
{
	const struct abi_span *span = &event->span;
	uint64_t key[2] = { span->head.pid, span->key };

	hold_forget(ledger, task, span->head.time_ns);
	task->request_ns = task->walked_ns = span->head.time_ns;
	if (span->name_bytes)
		set_name(task->text, event->name, span->name_bytes);
	if (span->key &&
	    (map_find(ledger->keys, key) || map_count(ledger->keys) < LEDGER_MAX_KEYS))
		*(struct task **)map_put(ledger->keys, key, NULL) = task;
	struct method *method = method_of(ledger, task->app, span->name_id);

	if (method) {
		memcpy(method->text, task->text, sizeof(method->text));
		method->last_ns = span->head.time_ns;
	}
}

static void on_request_end(struct ledger *ledger, const struct event *event,
			   struct task *task)
{
	const struct abi_span *span = &event->span;

	busy_account(ledger, task, span->head.time_ns);
	task->request_ns = 0;
	if (!span->begin_ns || span->head.time_ns < span->begin_ns ||
	    span->flags & ABI_HIT_LEFT)
		return;
	struct method *method = method_of(ledger, task->app, span->name_id);

	if (!method)
		return;
	method->count[ledger->at]++;
	method->total_s[ledger->at] +=
		(float)((double)(span->head.time_ns - span->begin_ns) / SECOND);
	method->last_ns = span->head.time_ns;
}

static void on_span(struct ledger *ledger, const struct event *event)
{
	const struct abi_head *head = &event->head;
	bool is_begin = event->span.verb == ABI_REQUEST_BEGIN;

	if (!is_begin && event->span.verb != ABI_REQUEST_END)
		return;
	struct task *task = task_of(ledger, head->pid, head->tid, 0);

	if (!task)
		return;
	task->last_ns = head->time_ns;
	if (is_begin)
		on_request_begin(ledger, event, task);
	else
		on_request_end(ledger, event, task);
}

/* A thread that is gone waits for nothing, and what it held is free. */
static void task_gone(struct ledger *ledger, const struct abi_head *head)
{
	struct {
		uint64_t pid, tid, key;
	} id = { head->pid, head->tid, 0 };
	struct task **task = map_find(ledger->tasks, &id);

	if (!task)
		return;
	hold_release_all(ledger, NULL, *task, head->time_ns);
	(*task)->wait_count = 0;
	(*task)->request_ns = 0;
}

static void on_task(struct ledger *ledger, const struct event *event)
{
	switch (event->task.op) {
	case ABI_TASK_EXIT:
		task_gone(ledger, &event->head);
		break;
	default:
		app_learn(ledger, &event->task);
	}
}

/* Switches. */

static bool is_of_resource(const struct resource *resource, uint64_t resource_id)
{
	return resource->info.resource_id == resource_id;
}

/*
 * Whether a holding goes on is not known while nobody looks. It is taken to, until its
 * task does something anew, or until somebody else gets the same piece of a pool.
 */
static void doubt(const struct hold_key *key, struct hold *hold)
{
	enum resource_kind kind = key->resource->info.kind;

	if (hold->is_gauge || kind == RESOURCE_POOL || kind == RESOURCE_PIN ||
	    kind == RESOURCE_BUFFER)
		return;
	key->task->doubtful += !hold->is_doubtful;
	hold->is_doubtful = true;
}

static void forget_open(struct ledger *ledger, uint64_t resource_id, uint64_t now_ns)
{
	struct hold *hold;
	struct task **task;
	const void *key;
	size_t pos = 0;

	while ((task = map_next(ledger->tasks, &pos, NULL))) {
		for (unsigned i = 0; i < (*task)->wait_count; i++)
			if (is_of_resource((*task)->waits[i].resource, resource_id))
				(*task)->wait_count = i;
		if (!resource_id) {
			busy_account(ledger, *task, now_ns);
			(*task)->request_ns = 0;
		}
	}
	pos = 0;
	while ((hold = map_next(ledger->holds, &pos, &key)))
		if (is_of_resource(((const struct hold_key *)key)->resource, resource_id))
			doubt(key, hold);
}

static void apply_switch(struct ledger *ledger, const struct pending_switch *change)
{
	struct coverage *coverage = map_put(ledger->switched, &change->resource_id, NULL);

	if (coverage->on == change->on && coverage->since_ns)
		return;
	coverage->on = change->on;
	coverage->since_ns = change->time_ns;
	if (change->on) {
		coverage->on_ns = change->time_ns;
		coverage->off_ns = 0;
	} else {
		coverage->off_ns = change->time_ns;
		forget_open(ledger, change->resource_id, change->time_ns);
	}
}

static void apply_switches(struct ledger *ledger, uint64_t now_ns)
{
	while (ledger->pending_at < ledger->pending.count &&
	       ledger->pending.data[ledger->pending_at].time_ns <= now_ns)
		apply_switch(ledger, &ledger->pending.data[ledger->pending_at++]);
	if (ledger->pending_at == ledger->pending.count)
		ledger->pending_at = vec_clear(&ledger->pending);
}

void ledger_switch(struct ledger *ledger, uint64_t resource_id, bool on, uint64_t time_ns)
{
	vec_push(&ledger->pending, ((struct pending_switch){ resource_id, time_ns, on }));
}

static void walk_open(struct ledger *ledger, uint64_t now_ns)
{
	struct task **task;
	struct hold *hold;
	const void *key;
	size_t pos = 0;

	while ((task = map_next(ledger->tasks, &pos, NULL))) {
		for (unsigned i = 0; i < (*task)->wait_count; i++)
			wait_account(ledger, *task, &(*task)->waits[i], now_ns);
		busy_account(ledger, *task, now_ns);
	}
	pos = 0;
	while ((hold = map_next(ledger->holds, &pos, &key)))
		hold_account(ledger, key, hold, now_ns);
}

/* The buckets that are over at @now_ns. After a pause of the agent itself those between
 * are empty. */
static void advance(struct ledger *ledger, uint64_t now_ns)
{
	if (now_ns < ledger->bucket_ns)
		return;
	uint64_t over = (now_ns - ledger->bucket_ns) / LEDGER_BUCKET_NS;

	for (uint64_t i = 0; i < over && i < LEDGER_BUCKETS; i++) {
		walk_open(ledger, ledger->bucket_ns + LEDGER_BUCKET_NS);
		bucket_close(ledger);
		ledger->bucket_ns += LEDGER_BUCKET_NS;
	}
	if (over > LEDGER_BUCKETS)
		ledger->bucket_ns += (over - LEDGER_BUCKETS) * LEDGER_BUCKET_NS;
}

void ledger_feed(struct ledger *ledger, const struct event *event)
{
	static void (*const handlers[ABI_KINDS])(struct ledger *,
						 const struct event *) = {
		[ABI_TASK] = on_task,
		[ABI_SPAN] = on_span,
		[ABI_RESOURCE] = on_resource,
	};

	if (event->head.kind >= ABI_KINDS || !handlers[event->head.kind])
		return;
	apply_switches(ledger, event->head.time_ns);
	if (!ledger->bucket_ns)
		ledger->bucket_ns = ledger->first_ns = event->head.time_ns;
	/* Each event is in the bucket of its own time, as the windows of probes are. */
	advance(ledger, event->head.time_ns);
	if (event->head.time_ns > ledger->now_ns)
		ledger->now_ns = event->head.time_ns;
	ledger->events++;
	handlers[event->head.kind](ledger, event);
}

/* Walk. */

bool ledger_walk(struct ledger *ledger, uint64_t now_ns)
{
	apply_switches(ledger, now_ns);
	if (!ledger->bucket_ns)
		return false;
	if (now_ns > ledger->now_ns)
		ledger->now_ns = now_ns;
	advance(ledger, now_ns);
	walk_open(ledger, now_ns);
	return ledger->unput > 0;
}

void ledger_stats(const struct ledger *ledger, struct ledger_stats *ret_stats)
{
	struct task **task;
	size_t pos = 0;

	*ret_stats = (struct ledger_stats){
		.resources = map_count(ledger->resources),
		.tasks = map_count(ledger->tasks),
		.cells = map_count(ledger->cells),
		.objects = map_count(ledger->objects),
		.holds = map_count(ledger->holds),
		.events = ledger->events,
		.lost = ledger->lost,
	};
	while ((task = map_next(ledger->tasks, &pos, NULL)))
		ret_stats->waits += (*task)->wait_count;
}
