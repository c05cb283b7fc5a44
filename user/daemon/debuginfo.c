// SPDX-License-Identifier: Apache-2.0
/*
 * Debug information of one module: in the file itself, else the first candidate path
 * whose build-id (or checksum, for files without one) is right, else debuginfod. If the
 * DWARF refers to a dwz file, that one is looked for in the same way. The kernel's own
 * file is found likewise, from kernel.c's candidates. Each candidate is
 * identified by the worker, so a search is a chain of jobs; it can be picked up again
 * when the worker dies.
 */
#include <string.h>
#include <unistd.h>

#include "core/mem.h"
#include "core/str.h"
#include "daemon/modules_impl.h"

#define CRC_MAX_BYTES (256ull << 20) /* larger files are not read to the end for it */

static char *root_of(const struct held *held)
{
	return mem_printf("/proc/%u/root", held->pid);
}

static void finish(struct modules *modules, struct held *held)
{
	debugfile_paths_fini(&held->candidates);
	held->candidate = 0;
	held->state = DEBUG_DONE;
	/* A worker that unwinds with it already knows it without its debug file. */
	memset(held->known, 0, sizeof(held->known));
	held->without_debug = !held->has_dwarf && held->fd[HELD_DEBUG] < 0;
	if (held->uses_kallsyms) {
		held->without_debug =
			false; /* nothing to advise, nor to look for again */
	} else if (held->without_debug) {
		free(held->debug);
		held->debug = debugfile_advice(held->path, &held->build_id, NULL);
	}
	sink_put(modules->config.sink,
		 &(struct fact){ .kind = FACT_MODULE,
				 .module = { .module_id = held->module_id,
					     .build_id = held->build_id,
					     .kind = held->kind,
					     .path = held->path,
					     .debug = held->debug } });
}

static void set_debug(struct held *held, const char *text)
{
	free(held->debug);
	held->debug = mem_strdup(text);
}

/* The file that is being looked for now. */
static enum held_fd wanted(const struct held *held)
{
	return held->has_dwarf || held->fd[HELD_DEBUG] >= 0 ? HELD_ALT : HELD_DEBUG;
}

static void begin_alt(struct modules *modules, struct held *held)
{
	CLEANUP(free) char *root = root_of(held);
	bool from_file = held->has_dwarf;
	struct debugfile_query query = {
		.root = root,
		.path = held->path,
		.id = &held->build_id,
		.altlink = held->altlink,
		.altlink_id = &held->altlink_id,
		.debug_path = from_file ? held->path : held->debug,
	};

	debugfile_paths_fini(&held->candidates);
	held->candidate = 0;
	held->fetched = false;
	if (!held->altlink || !*held->altlink) {
		finish(modules, held);
		return;
	}
	debugfile_alt_candidates(&query, &held->candidates);
	debuginfo_resume(modules, held);
}

static bool is_right(const struct held *held, const struct errand *errand,
		     const struct job_identity *identity)
{
	struct err *err;

	if (errand->which == HELD_ALT)
		return debugfile_matches(&held->altlink_id, &identity->build_id);
	if (!identity->has_dwarf)
		return false;
	if (held->build_id.size)
		return debugfile_matches(&held->build_id, &identity->build_id);
	if (errand->origin.size > CRC_MAX_BYTES)
		return false;
	err = debugfile_check_crc(errand->fd, held->debuglink_crc);
	bool right = !err;

	err_free(err);
	return right;
}

static void accept(struct modules *modules, struct held *held, struct errand *errand,
		   const struct job_identity *identity)
{
	const char *path = errand->origin.path ? errand->origin.path : "debuginfod";

	if (errand->which == HELD_ALT) {
		held_keep(modules, held, HELD_ALT, &errand->fd, &errand->origin);
		finish(modules, held);
		return;
	}
	set_debug(held, path);
	free(held->altlink);
	held->altlink = mem_strdup(identity->altlink);
	held->altlink_id = identity->altlink_id;
	/* vmlinux has its code too: the running one is in no file. */
	held->has_dwarf = held->uses_kallsyms;
	held_keep(modules, held, held->uses_kallsyms ? HELD_MAIN : HELD_DEBUG,
		  &errand->fd, &errand->origin);
	begin_alt(modules, held);
}

static void resume_later(struct modules *modules, const struct held *held)
{
	vec_push(&modules->searching, held->module_id);
}

static void on_candidate(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct errand *errand = ctx;
	struct modules *modules = errand->flight.owner;
	struct held *held = modules ? held_find(modules, errand->module_id) : NULL;

	if (held && err && was_not_begun(err)) {
		held->candidate--;
		resume_later(modules, held);
	} else if (held && reply && is_right(held, errand, &reply->identity)) {
		accept(modules, held, errand, &reply->identity);
	} else if (held) {
		debuginfo_resume(modules, held);
	}
	err_free(err);
	errand_free(errand);
}

/* Takes @fd and @origin when it returns true. */
static bool check_candidate(struct modules *modules, const struct held *held, int *fd,
			    struct origin *origin)
{
	struct job_client *client = job_source_client(modules->config.jobs, JOB_RESOLVE);

	if (!client)
		return false;
	struct errand *errand = errand_new(modules);
	struct err *err = job_identify(client, *fd, on_candidate, errand);

	if (err) {
		err_free(err);
		errand_free(errand);
		return false;
	}
	errand->module_id = held->module_id;
	errand->which = wanted(held);
	errand->fd = take_fd(fd);
	errand->origin = *origin;
	memset(origin, 0, sizeof(*origin));
	return true;
}

static void on_fetched(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct errand *errand = ctx;
	struct modules *modules = errand->flight.owner;
	struct held *held = modules ? held_find(modules, errand->module_id) : NULL;
	CLEANUP(close) int fd = reply ? reply->fd : -1;
	struct origin origin = { 0 };

	/* Counted as a candidate of its own, so that a dead worker can repeat the step. */
	if (held && fd >= 0)
		held->candidate++;
	if (held && err && was_not_begun(err)) {
		held->fetched = false;
		resume_later(modules, held);
	} else if (held && (fd < 0 || !check_candidate(modules, held, &fd, &origin))) {
		debuginfo_resume(modules, held);
	}
	err_free(err);
	errand_free(errand);
}

/* True when the answer is on its way. */
static bool fetch(struct modules *modules, struct held *held)
{
	const struct build_id *id =
		wanted(held) == HELD_ALT ? &held->altlink_id : &held->build_id;
	const char *urls = modules->config.debuginfod_urls;

	/* a kernel's would be a gigabyte that nobody asked for */
	if (!urls || !*urls || held->fetched || !id->size || held->uses_kallsyms)
		return false;
	held->fetched = true;
	struct job_client *client = job_source_client(modules->config.jobs, JOB_FETCH);

	if (!client)
		return false;
	struct errand *errand = errand_new(modules);

	errand->module_id = held->module_id;
	struct err *err = job_debug_file(client, urls, id, on_fetched, errand);

	if (!err)
		return true;
	err_free(err);
	errand_free(errand);
	return false;
}

static struct err *open_candidate(struct modules *modules, const struct held *held,
				  int *ret_fd, struct origin *ret_origin)
{
	const char *path = held->candidates.path[held->candidate];
	CLEANUP(free) char *root = root_of(held);
	struct open_request request = { .what = OPEN_DEBUG_PATH, .path = path };

	if (str_starts(path, root)) {
		request.what = OPEN_ROOT_PATH;
		request.path = path + strlen(root);
		request.pid = held->pid;
		request.start_ns = held->start_ns;
	}
	return origin_open(modules, &request, ret_fd, ret_origin);
}

/* The dwz file was not found: half of the types are missing. */
static void give_up_alt(struct modules *modules, struct held *held)
{
	CLEANUP(free)
	char *text =
		mem_printf("%s, without its dwz file %s", held->debug, held->altlink);

	set_debug(held, text);
	finish(modules, held);
}

void debuginfo_resume(struct modules *modules, struct held *held)
{
	if (held->state == DEBUG_DONE)
		return;
	for (; held->candidate < held->candidates.count; held->candidate++) {
		CLEANUP(close) int fd = -1;
		struct origin origin = { 0 };
		struct err *err = open_candidate(modules, held, &fd, &origin);

		if (err) {
			err_free(err);
			continue;
		}
		bool started = check_candidate(modules, held, &fd, &origin);

		origin_fini(&origin);
		if (started)
			held->candidate++;
		else
			resume_later(modules, held);
		return;
	}
	if (fetch(modules, held))
		return;
	if (wanted(held) == HELD_ALT)
		give_up_alt(modules, held);
	else
		finish(modules, held);
}

void debuginfo_search(struct modules *modules, struct held *held)
{
	CLEANUP(free) char *root = root_of(held);
	struct debugfile_query query = {
		.root = root,
		.path = held->path,
		.id = &held->build_id,
		.debuglink = held->debuglink,
	};

	held->state = DEBUG_SEARCHING;
	if (held->kind == MODULE_VDSO) {
		held->has_dwarf = true; /* it has names, and no types are wanted */
		set_debug(held, "");
		finish(modules, held);
	} else if (held->has_dwarf) {
		set_debug(held, "file");
		begin_alt(modules, held);
	} else {
		debugfile_paths_fini(&held->candidates);
		held->candidate = 0;
		debugfile_candidates(&query, &held->candidates);
		debuginfo_resume(modules, held);
	}
}
