// SPDX-License-Identifier: Apache-2.0
/*
 * A file is opened by its mapping if possible: map_files is the very inode that is
 * mapped, whatever was renamed over its path since. /proc/PID/exe comes next, then the
 * path below the root of the process, of its parent, of ourselves; those must show the
 * inode or build-id that the mapping had, or they are another file. The worker
 * identifies it; by build-id it is then the same module in every process and after
 * every restart.
 *
 * Descriptors of the least recently used modules are closed; they are opened again from
 * where they came when a job needs them, and checked to be unchanged.
 */
#include "daemon/modules.h"

#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "daemon/config.h"
#include "daemon/modules_impl.h"
#include "event/event.h"
#include "job/cache.h"

#define IDENTIFY_TRIES	2
#define UNNAMED_ID_SEED 7

/* Whether what was opened by name is what the mapping showed. Without an inode the
 * build-id decides, after identification. */
static bool is_mapped_file(const struct live_file *file, const struct origin *origin)
{
	return origin->request.what == OPEN_MAP_FILE || !file->inode ||
	       file->inode == origin->inode;
}

/* Whether this way may be gone at all. */
static bool is_open_to(const struct live_file *file, const struct open_request *way)
{
	bool has_proof = file->inode || file->build_id.size;

	if (way->what == OPEN_MAP_FILE)
		return true;
	if (way->what == OPEN_EXE)
		return has_proof;
	if (file->deleted || file->path[0] != '/' || !way->pid)
		return false;
	return way->pid == file->pid || has_proof;
}

static struct err *open_way(struct modules *modules, const struct live_file *file,
			    const struct open_request *way, int *ret_fd,
			    struct origin *ret_origin)
{
	TRY(origin_open(modules, way, ret_fd, ret_origin));
	if (is_mapped_file(file, ret_origin))
		return NULL;
	close(*ret_fd);
	*ret_fd = -1;
	origin_fini(ret_origin);
	return err_new(ERR_NOT_FOUND, "%s was replaced", file->path);
}

/* A process that lived for milliseconds has gone by now; its parent, or we ourselves,
 * mostly see the same file under the same path. */
static struct err *open_file(struct modules *modules, const struct live_file *file,
			     int *ret_fd, struct origin *ret_origin)
{
	const struct open_request ways[] = {
		{ OPEN_MAP_FILE, file->pid, file->start_ns, file->addr,
		  file->addr + file->length, NULL },
		{ OPEN_EXE, file->pid, file->start_ns, 0, 0, NULL },
		{ OPEN_ROOT_PATH, file->pid, file->start_ns, 0, 0, file->path },
		{ OPEN_ROOT_PATH, file->parent_pid, file->parent_start_ns, 0, 0,
		  file->path },
		{ OPEN_ROOT_PATH, (uint32_t)getpid(), 0, 0, 0, file->path },
	};
	struct err *first = NULL;

	for (size_t i = 0; i < sizeof(ways) / sizeof(*ways); i++) {
		if (!is_open_to(file, &ways[i]))
			continue;
		struct err *err = open_way(modules, file, &ways[i], ret_fd, ret_origin);

		if (!err) {
			err_free(first);
			return NULL;
		}
		if (!first)
			first = take(err);
		err_free(err);
	}
	return first;
}

/* Announcing. */

static void feed_module(struct modules *modules, uint64_t key, const struct held *held,
			const struct job_identity *identity)
{
	struct event event = { .path = held ? held->path : "" };

	event.module = (struct abi_module){
		.head = { .kind = ABI_MODULE, .time_ns = clock_ns() },
		.module_id = held ? held->module_id : 0,
		.key = key,
		.kind = held ? (uint32_t)held->kind : ABI_MODULE_FILE,
	};
	event.module.path_bytes = (uint32_t)strlen(event.path) + 1;
	if (held) {
		event.module.build_id_bytes = held->build_id.size;
		memcpy(event.module.build_id, held->build_id.bytes, held->build_id.size);
	}
	if (held && identity) {
		event.module.segment_count = (uint16_t)identity->segment_count;
		for (size_t i = 0; i < identity->segment_count; i++)
			event.segments[i] = (struct abi_segment){
				.off = identity->segments[i].off,
				.va = identity->segments[i].va,
				.file_bytes = identity->segments[i].file_bytes,
			};
	}
	modules->config.feed(modules->config.ctx, &event);
}

static uint64_t id_of(const struct job_identity *identity, const struct live_file *file,
		      const struct origin *origin)
{
	uint64_t id = module_id_of(&identity->build_id);
	uint64_t stamp[2] = { origin->size, origin->mtime_ns };

	return id ? id
		  : hash_text(file->path,
			      hash_bytes(stamp, sizeof(stamp), UNNAMED_ID_SEED));
}

static bool same_build(const struct build_id *a, const struct build_id *b)
{
	return a->size == b->size && !memcmp(a->bytes, b->bytes, a->size);
}

static void take_identity(struct held *held, const struct errand *errand,
			  const struct job_identity *identity)
{
	const struct live_file *file = &errand->ask.file;

	held->kind = errand->kind;
	held->build_id = identity->build_id;
	held->path = mem_strdup(file->path);
	held->pid = errand->origin.request.pid;
	held->start_ns = errand->origin.request.start_ns;
	held->has_dwarf = identity->has_dwarf;
	held->debuglink = mem_strdup(identity->debuglink);
	held->debuglink_crc = identity->debuglink_crc;
	held->altlink = mem_strdup(identity->altlink);
	held->altlink_id = identity->altlink_id;
}

static void identified(struct modules *modules, struct errand *errand,
		       const struct job_identity *identity)
{
	const struct live_file *file = &errand->ask.file;
	bool replaced =
		file->build_id.size && !same_build(&file->build_id, &identity->build_id);
	bool is_new = false;
	struct held *held = NULL;

	if (!replaced && identity->segment_count)
		held = held_add(modules, id_of(identity, file, &errand->origin), &is_new);
	if (held && is_new)
		take_identity(held, errand, identity);
	feed_module(modules, errand->ask.key, held, identity);
	if (!held)
		return;
	if (modules->config.opened)
		modules->config.opened(modules->config.ctx, held->module_id, errand->fd);
	if (held->fd[HELD_MAIN] < 0)
		held_keep(modules, held, HELD_MAIN, &errand->fd, &errand->origin);
	if (is_new)
		debuginfo_search(modules, held);
}

/* Asking. */

static void on_identified(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct errand *errand = ctx;
	struct modules *modules = errand->flight.owner;

	if (modules)
		modules->flying--;
	if (modules && reply) {
		identified(modules, errand, &reply->identity);
	} else if (modules && errand->kind == MODULE_VDSO && err->code == ERR_CLOSED) {
		modules_identify_vdso(modules, &errand->fd, errand->ask.key);
	} else if (modules && err->code == ERR_CLOSED &&
		   (was_not_begun(err) || ++errand->ask.tries < IDENTIFY_TRIES)) {
		vec_push(&modules->asks, errand->ask);
		errand->ask.file.path = NULL;
	} else if (modules) {
		feed_module(modules, errand->ask.key, NULL, NULL);
	}
	err_free(err);
	errand_free(errand);
}

/* Hand an open file to the worker. False: no worker, nothing was taken. */
static bool start_identify(struct modules *modules, struct ask *ask, int *fd,
			   struct origin *origin, enum module_kind kind)
{
	struct job_client *client = job_source_client(modules->config.jobs, JOB_RESOLVE);

	if (!client)
		return false;
	struct errand *errand = errand_new(modules);
	struct err *err = job_identify(client, *fd, on_identified, errand);

	if (err) {
		err_free(err);
		errand_free(errand);
		return false;
	}
	modules->flying++;
	errand->ask = *ask;
	ask->file.path = NULL;
	errand->fd = take_fd(fd);
	errand->origin = *origin;
	errand->kind = kind;
	memset(origin, 0, sizeof(*origin));
	return true;
}

/* False: try again later. */
static bool process_ask(struct modules *modules, struct ask *ask)
{
	CLEANUP(close) int fd = -1;
	struct origin origin = { 0 };
	struct err *err = open_file(modules, &ask->file, &fd, &origin);

	if (err) {
		bool again = err->code == ERR_CLOSED;

		err_free(err);
		if (!again)
			feed_module(modules, ask->key, NULL, NULL);
		return !again;
	}
	bool started = start_identify(modules, ask, &fd, &origin, MODULE_FILE);

	origin_fini(&origin);
	return started;
}

void modules_want(struct modules *modules, const struct live_file *file)
{
	struct ask ask = { .key = file->key, .file = *file };

	if (file->key == modules->vdso_key)
		return; /* on its way, or never */
	ask.file.path = mem_strdup(file->path);
	/* vdsos are ours or not at all; the rest of "[...]" never gets here. */
	if (file->path[0] == '[' || modules->asks.count >= MODULES_MAX) {
		feed_module(modules, file->key, NULL, NULL);
		free((char *)ask.file.path);
	} else if (modules->flying >= MODULES_MAX_IDENTIFY ||
		   !process_ask(modules, &ask)) {
		vec_push(&modules->asks, ask);
	} else {
		free((char *)ask.file.path);
	}
}

static void retry_vdso(struct modules *modules)
{
	struct ask ask = { .key = modules->vdso_key };
	struct origin origin = { 0 };

	if (modules->vdso_fd < 0)
		return;
	ask.file.path = mem_strdup("[vdso]");
	start_identify(modules, &ask, &modules->vdso_fd, &origin, MODULE_VDSO);
	free((char *)ask.file.path);
}

void modules_identify_vdso(struct modules *modules, int *fd, uint64_t key)
{
	if (modules->vdso_fd >= 0)
		close(modules->vdso_fd);
	modules->vdso_fd = take_fd(fd);
	modules->vdso_key = key;
}

void modules_pump(struct modules *modules)
{
	size_t i = 0;

	retry_vdso(modules);
	for (; i < modules->asks.count && modules->flying < MODULES_MAX_IDENTIFY; i++) {
		/* Copied: an answer may ask for more and move the list. */
		struct ask ask = modules->asks.data[i];

		if (!process_ask(modules, &ask))
			break;
		free((char *)ask.file.path);
	}
	modules->asks.count -= i;
	if (modules->asks.count)
		memmove(modules->asks.data, modules->asks.data + i,
			modules->asks.count * sizeof(struct ask));

	__typeof__(modules->searching) resume = modules->searching;

	memset(&modules->searching, 0, sizeof(modules->searching));
	vec_each(&resume, id) {
		struct held *held = held_find(modules, *id);

		if (held)
			debuginfo_resume(modules, held);
	}
	vec_fini(&resume);
}

/* For jobs. */

static struct err *reopen(struct modules *modules, struct held *held, enum held_fd which)
{
	CLEANUP(close) int fd = -1;
	struct origin origin = { 0 };
	const struct origin *was = &held->origin[which];

	if (held->fd[which] >= 0 || !was->request.what)
		return NULL;
	TRY(origin_open(modules, &was->request, &fd, &origin));
	if (origin.inode != was->inode || origin.size != was->size ||
	    origin.mtime_ns != was->mtime_ns) {
		origin_fini(&origin);
		return err_new(ERR_NOT_FOUND, "%s has changed", held->path);
	}
	held_keep(modules, held, which, &fd, &origin);
	return NULL;
}

static struct err *open_all(struct modules *modules, struct held *held)
{
	TRY(reopen(modules, held, HELD_MAIN));
	if (held->fd[HELD_MAIN] < 0 && !held->uses_kallsyms)
		return err_new(ERR_NOT_FOUND, "%s is gone", held->path);
	/* Names without types are better than nothing. */
	err_free(reopen(modules, held, HELD_DEBUG));
	if (held->fd[HELD_DEBUG] >= 0 || held->has_dwarf)
		err_free(reopen(modules, held, HELD_ALT));
	held->used = ++modules->clock;
	return NULL;
}

char *modules_kept_folder(const struct config *config)
{
	if (!strcmp(config->cache, "off") || !*config->cache)
		return NULL;
	if (strcmp(config->cache, "auto") != 0)
		return mem_strdup(config->cache);
	return *config->user ? mem_strdup("/var/lib/assay/cache") : cache_folder();
}

#define SAVE_NS (30 * 1000000000ull) /* between writes for one module */

/* What was found out about a module in a container must not pass for that of the host's
 * module of the same path: the file's device and owner are part of the name. */
static int open_kept(struct modules *modules, struct held *held)
{
	if (!modules->config.kept_folder || held->fd[HELD_MAIN] < 0)
		return -1;
	kept_free(held->kept);
	held->kept =
		kept_open(modules->config.kept_folder, held->path, held->fd[HELD_MAIN]);
	held->saved_ns = clock_ns();
	return kept_fd(held->kept);
}

static void save_kept(struct modules *modules, struct held *held)
{
	if (held->kept)
		err_free(kept_save(held->kept, modules->config.kept_bytes));
	held->saved_ns = clock_ns();
}

void modules_kept(struct modules *modules, uint64_t module_id,
		  const struct job_reply *reply)
{
	struct held *held = held_find(modules, module_id);

	if (!held || !held->kept)
		return;
	kept_take(held->kept, reply);
	if (clock_ns() - held->saved_ns > SAVE_NS)
		save_kept(modules, held);
}

static struct err *tell_worker(struct modules *modules, struct held *held,
			       enum job_class class)
{
	struct job_client *client = job_source_client(modules->config.jobs, class);
	CLEANUP(close) int kallsyms = -1;

	held->used = ++modules->clock;
	if (!client)
		return err_new(ERR_BUSY, "no worker");
	if (held->known[class])
		return NULL;
	TRY(open_all(modules, held));
	if (held->uses_kallsyms)
		TRY(opener_open(modules->config.opener,
				&(struct open_request){ .what = OPEN_KALLSYMS },
				&kallsyms));
	bool keeps = class == JOB_ANALYZE && kallsyms < 0 && modules->config.kept_folder;
	struct job_open open = { .module_id = held->module_id,
				 .main_fd = held->fd[HELD_MAIN],
				 .debug_fd = held->fd[HELD_DEBUG],
				 .alt_fd = held->fd[HELD_ALT],
				 .kallsyms_fd = kallsyms,
				 .slide = held->slide,
				 .keeps = keeps,
				 .pack_fd = -1 };

	if (keeps) {
		save_kept(modules, held);
		open.pack_fd = open_kept(modules, held);
	}
	TRY(job_open(client, &open));
	held->known[class] = true;
	return NULL;
}

struct err *modules_open(struct modules *modules, uint64_t module_id,
			 enum job_class class)
{
	struct held *held = held_find(modules, module_id);

	if (!held || class >= JOB_FETCH)
		return err_new(ERR_NOT_FOUND, "no such module");
	if (held->state == DEBUG_SEARCHING)
		return err_new(ERR_BUSY, "%s is not ready", held->path);
	return tell_worker(modules, held, class);
}

struct err *modules_open_code(struct modules *modules, uint64_t module_id)
{
	struct held *held = held_find(modules, module_id);

	if (!held)
		return err_new(ERR_NOT_FOUND, "no such module");
	return tell_worker(modules, held, JOB_RESOLVE);
}

void modules_forget(struct modules *modules, uint64_t module_id, enum job_class class)
{
	struct held *held = held_find(modules, module_id);

	if (held && class < JOB_FETCH)
		held->known[class] = false;
}

void modules_worker_died(struct modules *modules, enum job_class class)
{
	size_t pos = 0;
	struct held **slot;

	if (class >= JOB_FETCH)
		return;
	while ((slot = map_next(modules->held, &pos, NULL)))
		(*slot)->known[class] = false;
}

bool modules_fds(struct modules *modules, uint64_t module_id, int *ret_main,
		 int *ret_debug, int *ret_alt)
{
	struct held *held = held_find(modules, module_id);

	if (!held || held->fd[HELD_MAIN] < 0)
		return false;
	*ret_main = held->fd[HELD_MAIN];
	*ret_debug = held->fd[HELD_DEBUG];
	*ret_alt = held->fd[HELD_ALT];
	return true;
}

void modules_reset_debug(struct modules *modules)
{
	size_t pos = 0;
	struct held **slot;

	while ((slot = map_next(modules->held, &pos, NULL))) {
		struct held *held = *slot;

		if (!held->without_debug || held->state != DEBUG_DONE)
			continue;
		held->fetched = false;
		memset(held->known, 0, sizeof(held->known));
		debuginfo_search(modules, held);
	}
}

struct modules *modules_new(const struct modules_config *config)
{
	struct modules *modules = mem_alloc(sizeof(*modules));

	modules->config = *config;
	modules->vdso_fd = -1;
	modules->held = map_new(sizeof(uint64_t), sizeof(struct held *));
	return modules;
}

void modules_free(struct modules *modules)
{
	size_t pos = 0;
	struct held **slot;

	if (!modules)
		return;
	flights_cut(&modules->flights);
	while ((slot = map_next(modules->held, &pos, NULL))) {
		save_kept(modules, *slot);
		held_free(modules, *slot);
	}
	map_free(modules->held);
	if (modules->vdso_fd >= 0)
		close(modules->vdso_fd);
	vec_each(&modules->asks, ask)
		free((char *)ask->file.path);
	vec_fini(&modules->asks);
	vec_fini(&modules->searching);
	free(modules);
}

void modules_stats(const struct modules *modules, struct modules_stats *ret_stats)
{
	struct modules_stats stats = {
		.known = map_count(modules->held),
		.open = modules->open,
		.waiting = modules->asks.count + modules->flying,
	};
	size_t pos = 0;
	struct held **slot;

	while ((slot = map_next(modules->held, &pos, NULL))) {
		stats.waiting += (*slot)->state == DEBUG_SEARCHING;
		stats.without_debug += (*slot)->without_debug;
	}
	*ret_stats = stats;
}
