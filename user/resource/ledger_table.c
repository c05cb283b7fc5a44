// SPDX-License-Identifier: Apache-2.0
/*
 * The ledger's tables: resources, tasks, cells, objects, methods, applications. Entries
 * are allocated one by one, so that pointers to them stay good while maps grow; only
 * table_sweep() frees them, which first drops whatever points to them.
 */
#include <stdlib.h>
#include <string.h>

#include "resource/ledger_impl.h"

#define CROWDED_BUCKETS 4 /* what is quiet for so long goes when room gets scarce */

struct resource_key_pair {
	uint64_t resource_id;
	uint64_t app;
};

struct task_id {
	uint64_t pid, tid, key;
};

struct pair {
	const void *a;
	uint64_t b;
};

static void *lose(struct ledger *ledger)
{
	ledger->lost++;
	return NULL;
}

struct resource *resource_find(const struct ledger *ledger, uint64_t resource_id,
			       uint32_t app)
{
	struct resource_key_pair key = { resource_id, app };
	struct resource **found = map_find(ledger->resources, &key);

	return found ? *found : NULL;
}

struct resource *resource_of(struct ledger *ledger, uint64_t resource_id, uint32_t app)
{
	struct resource_key_pair key = { resource_id, app };
	struct resource **found = map_find(ledger->resources, &key);

	if (found)
		return *found;
	const struct resource_info *info = map_find(ledger->infos, &resource_id);

	if (!info || map_count(ledger->resources) >= LEDGER_MAX_RESOURCES)
		return lose(ledger);
	struct resource *resource = mem_alloc(sizeof(*resource));

	resource->info = *info;
	resource->app = app;
	resource->wait_place = resource->hold_place = "";
	*(struct resource **)map_put(ledger->resources, &key, NULL) = resource;
	return resource;
}

/* A task with a key is the same whichever thread works for it. */
struct task *task_of(struct ledger *ledger, uint32_t pid, uint32_t tid, uint64_t key)
{
	struct task_id id = { key ? app_of(ledger, pid) : pid, key ? 0 : tid, key };
	struct task **found = map_find(ledger->tasks, &id);

	if (found)
		return *found;
	if (map_count(ledger->tasks) >= LEDGER_MAX_TASKS)
		return lose(ledger);
	struct task *task = mem_alloc(sizeof(*task));

	task->app = app_of(ledger, pid);
	task->pid = pid;
	task->tid = tid;
	task->key = key;
	*(struct task **)map_put(ledger->tasks, &id, NULL) = task;
	return task;
}

struct cell *cell_find(const struct ledger *ledger, const struct resource *resource,
		       const struct task *task)
{
	struct pair key = { resource, (uintptr_t)task };
	struct cell **found = map_find(ledger->cells, &key);

	return found ? *found : NULL;
}

struct cell *cell_of(struct ledger *ledger, struct resource *resource, struct task *task)
{
	struct cell *found = cell_find(ledger, resource, task);
	struct pair key = { resource, (uintptr_t)task };

	if (found)
		return found;
	if (map_count(ledger->cells) >= LEDGER_MAX_CELLS)
		return lose(ledger);
	struct cell *cell = mem_alloc(sizeof(*cell));

	cell->resource = resource;
	cell->task = task;
	resource->made[ledger->at]++;
	*(struct cell **)map_put(ledger->cells, &key, NULL) = cell;
	return cell;
}

struct object *object_find(const struct ledger *ledger, const struct resource *resource,
			   uint64_t id)
{
	struct pair key = { resource, id };
	struct object **found = map_find(ledger->objects, &key);

	return found ? *found : NULL;
}

struct object *object_of(struct ledger *ledger, struct resource *resource, uint64_t id)
{
	struct object *found = object_find(ledger, resource, id);
	struct pair key = { resource, id };

	if (found)
		return found;
	if (map_count(ledger->objects) >= LEDGER_MAX_OBJECTS)
		return lose(ledger);
	struct object *object = mem_alloc(sizeof(*object));

	object->resource = resource;
	object->id = id;
	*(struct object **)map_put(ledger->objects, &key, NULL) = object;
	return object;
}

struct method *method_of(struct ledger *ledger, uint32_t app, uint64_t method_id)
{
	uint64_t key[2] = { app, method_id };
	struct method **found = map_find(ledger->methods, key);

	if (found)
		return *found;
	if (map_count(ledger->methods) >= LEDGER_MAX_METHODS)
		return lose(ledger);
	struct method *method = mem_alloc(sizeof(*method));

	method->app = app;
	method->method_id = method_id;
	*(struct method **)map_put(ledger->methods, key, NULL) = method;
	return method;
}

/* Applications. */

uint32_t app_of(const struct ledger *ledger, uint32_t pid)
{
	const struct app *app = map_find(ledger->apps, &pid);

	return app ? app->app : pid;
}

/* A child of the same command belongs to its parent's application. */
void app_learn(struct ledger *ledger, const struct abi_task *task)
{
	uint32_t pid = task->head.pid, parent_pid = task->parent_pid;
	const struct app *parent = map_find(ledger->apps, &parent_pid);
	uint32_t app = pid;

	if (task->head.tid != pid)
		return;
	if (parent && !strncmp(parent->comm, task->comm, ABI_COMM_BYTES))
		app = parent->app;
	if (!map_find(ledger->apps, &pid) && map_count(ledger->apps) >= LEDGER_MAX_APPS) {
		ledger->lost++;
		return;
	}
	struct app *own = map_put(ledger->apps, &pid, NULL);

	own->app = app;
	memcpy(own->comm, task->comm, ABI_COMM_BYTES);
}

/* Sweep. */

struct sweep {
	struct ledger *ledger;
	uint64_t before_ns;
};

static bool is_old_cell(const void *key, void *value, void *ctx)
{
	struct sweep *sweep = ctx;
	struct cell *cell = *(struct cell **)value;

	(void)key;
	if (cell->last_ns >= sweep->before_ns || cell->holds || cell->task->wait_count)
		return false;
	free(cell);
	return true;
}

static bool is_old_object(const void *key, void *value, void *ctx)
{
	struct sweep *sweep = ctx;
	struct object *object = *(struct object **)value;

	(void)key;
	if (object->last_ns >= sweep->before_ns || object->level_ns)
		return false;
	for (unsigned i = 0; i < MAX_HOLDERS; i++)
		if (object->holders[i].task && !object->holders[i].until_ns)
			return false;
	free(object);
	return true;
}

static bool is_old_method(const void *key, void *value, void *ctx)
{
	struct sweep *sweep = ctx;
	struct method *method = *(struct method **)value;

	(void)key;
	if (method->last_ns >= sweep->before_ns)
		return false;
	free(method);
	return true;
}

static bool is_idle_task(const struct task *task, const struct sweep *sweep)
{
	return task->last_ns < sweep->before_ns && !task->wait_count && !task->holds &&
	       !task->request_ns;
}

/* Everything that names a task which is about to go. */
static void forget_task(struct ledger *ledger, const struct task *task)
{
	struct object **object;
	struct cell **cell;
	size_t pos = 0;

	while ((object = map_next(ledger->objects, &pos, NULL)))
		for (unsigned i = 0; i < MAX_HOLDERS; i++)
			if ((*object)->holders[i].task == task)
				(*object)->holders[i] = (struct holder){ 0 };
	pos = 0;
	while ((cell = map_next(ledger->cells, &pos, NULL)))
		if ((*cell)->task == task)
			(*cell)->task = NULL;
}

static bool is_orphan(const void *key, void *value, void *ctx)
{
	struct cell *cell = *(struct cell **)value;

	(void)key;
	(void)ctx;
	if (cell->task)
		return false;
	free(cell);
	return true;
}

static bool is_idle_key(const void *key, void *value, void *ctx)
{
	(void)key;
	return is_idle_task(*(struct task **)value, ctx);
}

static bool is_idle_edge(const void *key, void *value, void *ctx)
{
	const struct edge_key *edge = key;

	(void)value;
	return is_idle_task(edge->waiter, ctx) || is_idle_task(edge->blocker, ctx);
}

static void sweep_tasks(struct ledger *ledger, struct sweep *sweep)
{
	VEC(struct task_id) gone = { 0 };
	struct task **task;
	struct resource **resource;
	const void *key;
	size_t pos = 0;

	map_del_if(ledger->keys, is_idle_key, sweep);
	map_del_if(ledger->edges, is_idle_edge, sweep);
	while ((task = map_next(ledger->tasks, &pos, &key)))
		if (is_idle_task(*task, sweep))
			vec_push(&gone, *(const struct task_id *)key);
	vec_each(&gone, id) {
		struct task *old = *(struct task **)map_find(ledger->tasks, id);
		size_t at = 0;

		forget_task(ledger, old);
		while ((resource = map_next(ledger->resources, &at, NULL)))
			if ((*resource)->pinner == old)
				(*resource)->pinner = NULL;
		map_del(ledger->tasks, id);
		free(old);
	}
	map_del_if(ledger->cells, is_orphan, NULL);
	vec_fini(&gone);
}

void table_sweep(struct ledger *ledger)
{
	bool is_crowded = map_count(ledger->tasks) > LEDGER_MAX_TASKS / 2 ||
			  map_count(ledger->cells) > LEDGER_MAX_CELLS / 2 ||
			  map_count(ledger->objects) > LEDGER_MAX_OBJECTS / 2;
	uint64_t age_ns =
		(is_crowded ? CROWDED_BUCKETS : LEDGER_BUCKETS) * LEDGER_BUCKET_NS;
	struct sweep sweep = { ledger, ledger->now_ns - age_ns };

	if (ledger->now_ns < ledger->first_ns + age_ns)
		return;
	map_del_if(ledger->cells, is_old_cell, &sweep);
	map_del_if(ledger->objects, is_old_object, &sweep);
	map_del_if(ledger->methods, is_old_method, &sweep);
	sweep_tasks(ledger, &sweep);
}
