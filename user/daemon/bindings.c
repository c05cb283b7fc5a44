// SPDX-License-Identifier: Apache-2.0
/*
 * A module and a spec whose path fits make a candidate. It tries the variants one by
 * one, each a job, until one does. The module must be known to the worker first, which
 * may take until its debug information was looked for: a candidate waits so long.
 *
 * A plan that does is kept: a module may have several inodes, in containers or one after
 * the other when a package is installed again, and a probe belongs to an inode.
 */
#include "daemon/bindings.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>

#include "core/log.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"
#include "daemon/flight.h"
#include "probe/match.h"
#include "probe/package.h"

#define MAX_TRIES  600 /* pumps in which the worker did not get the module */
#define MAX_INODES 64  /* of one module */

struct candidate {
	struct flight flight; /* while its job is out */
	const struct spec *spec;
	uint64_t module_id;
	char *path, *build_id, *package, *version;
	size_t variant; /* that is tried */
	unsigned tries;
	bool is_flying;
	struct arena *arena;
	struct resolve_request request;
};

struct inode {
	dev_t dev;
	ino_t number;
};

/* A plan in use, and the files it is attached to. */
struct bound {
	uint64_t module_id;
	struct plan *plan;
	VEC(struct inode) inodes;
};

/* The last answer. */
struct known_package {
	char *path, *name, *version;
	time_t read_at; /* mtime of the status file then */
};

struct bindings {
	struct bindings_config config;
	struct known_package package;
	VEC(struct bound) bound;
	VEC(struct spec *) specs;
	VEC(struct candidate *) candidates;
	struct flights flights;
	struct map *seen; /* module id -> nothing */
};

/* Spec files. */

static bool is_known(const struct bindings *bindings, const char *name)
{
	for (size_t i = 0; i < bindings->specs.count; i++) {
		const char *path = bindings->specs.data[i]->path;
		const char *slash = strrchr(path, '/');

		if (!strcmp(slash ? slash + 1 : path, name))
			return true;
	}
	return false;
}

static bool load_file(void *ctx, const char *folder, const char *name)
{
	struct bindings *bindings = ctx;
	CLEANUP(free) char *path = mem_printf("%s/%s", folder, name);
	struct spec *spec;

	if (is_known(bindings, name))
		return false;
	struct err *err = spec_load(path, &spec);

	if (!err) {
		vec_push(&bindings->specs, spec);
		return bindings->specs.count >= BINDINGS_MAX_SPECS;
	}
	log_warn("%s, leaving it out", err->text);
	err_free(err);
	return false;
}

/* Return: @each said that it is enough. */
static bool each_file(bool (*each)(void *ctx, const char *folder, const char *name),
		      void *ctx)
{
	const char *given = getenv("ASSAY_SPEC_PATH");
	const char *at = given && *given ? given : BINDINGS_OWN ":" BINDINGS_SHIPPED;
	bool is_enough = false;

	while (*at && !is_enough) {
		size_t length = strcspn(at, ":");
		CLEANUP(free) char *folder = mem_printf("%.*s", (int)length, at);
		DIR *list = opendir(folder);

		for (struct dirent *entry; list && !is_enough && (entry = readdir(list));)
			if (str_ends(entry->d_name, ".yaml") && *entry->d_name != '.')
				is_enough = each(ctx, folder, entry->d_name);
		if (list)
			closedir(list);
		at += length + (at[length] == ':');
	}
	return is_enough;
}

static bool found_one(void *ctx, const char *folder, const char *name)
{
	(void)ctx;
	(void)folder;
	(void)name;
	return true;
}

bool bindings_any(void)
{
	return each_file(found_one, NULL);
}

struct bindings *bindings_new(const struct bindings_config *config)
{
	struct bindings *bindings = mem_alloc(sizeof(*bindings));

	bindings->config = *config;
	bindings->seen = map_new(sizeof(uint64_t), 1);
	each_file(load_file, bindings);
	return bindings;
}

/* Candidates. */

static void candidate_free(struct candidate *candidate)
{
	free(candidate->path);
	free(candidate->build_id);
	free(candidate->package);
	free(candidate->version);
	arena_free(candidate->arena);
	free(candidate);
}

static void known_package_fini(struct known_package *known)
{
	free(known->path);
	free(known->name);
	free(known->version);
}

void bindings_free(struct bindings *bindings)
{
	if (!bindings)
		return;
	known_package_fini(&bindings->package);
	vec_each(&bindings->candidates, candidate)
		if (!(*candidate)->is_flying) /* else the callback frees it */
			candidate_free(*candidate);
	flights_cut(&bindings->flights);
	vec_fini(&bindings->candidates);
	vec_each(&bindings->bound, bound) {
		plan_free(bound->plan);
		vec_fini(&bound->inodes);
	}
	vec_fini(&bindings->bound);
	vec_each(&bindings->specs, spec)
		spec_free(*spec);
	vec_fini(&bindings->specs);
	map_free(bindings->seen);
	free(bindings);
}

bool bindings_wants(const struct bindings *bindings, const char *path)
{
	for (size_t i = 0; i < bindings->specs.count; i++)
		if (match_may(bindings->specs.data[i], path))
			return true;
	return false;
}

/* Reading every package's list of files takes 50 ms; several specs and copies ask for
 * the same one. An upgrade may change the answer, but writes the status file. */
static void find_package(struct bindings *bindings, struct candidate *candidate)
{
	struct known_package *known = &bindings->package;
	struct stat info = { 0 };

	if (!known->path || strcmp(known->path, candidate->path) ||
	    (!stat(PACKAGE_STATUS, &info) && info.st_mtime != known->read_at)) {
		known_package_fini(known);
		known->path = mem_strdup(candidate->path);
		known->read_at = info.st_mtime;
		package_find("", known->path, &known->name, &known->version);
	}
	candidate->package = mem_strdup(known->name);
	candidate->version = mem_strdup(known->version);
}

void bindings_note(struct bindings *bindings, const struct fact *fact)
{
	const struct fact_module *module = &fact->module;
	bool is_new;

	if (fact->kind != FACT_MODULE || !module->module_id ||
	    module->kind != MODULE_FILE || !bindings_wants(bindings, module->path))
		return;
	map_put(bindings->seen, &module->module_id, &is_new);
	if (!is_new || bindings->candidates.count >= BINDINGS_MAX_WAITING)
		return;
	vec_each(&bindings->specs, spec) {
		if (!match_may(*spec, module->path))
			continue;
		struct candidate *candidate = mem_alloc(sizeof(*candidate));

		candidate->spec = *spec;
		candidate->module_id = module->module_id;
		candidate->path = mem_strdup(module->path);
		candidate->build_id =
			str_hex(module->build_id.bytes, module->build_id.size);
		if (match_wants_package(*spec))
			find_package(bindings, candidate);
		vec_push(&bindings->candidates, candidate);
	}
}

static void forget(struct bindings *bindings, struct candidate *candidate)
{
	vec_each(&bindings->candidates, item)
		if (*item == candidate) {
			*item = bindings->candidates.data[--bindings->candidates.count];
			break;
		}
	candidate_free(candidate);
}

static const struct spec_variant *variant_of(const struct candidate *candidate)
{
	return &candidate->spec->variants[candidate->variant];
}

/* A library's file is called by its soname and, often, further numbers behind it. */
static bool cut_number(char *soname)
{
	char *dot = strrchr(soname, '.');

	if (!dot || !strstr(soname, ".so.") || dot[1 + strspn(dot + 1, "0123456789")])
		return false;
	*dot = '\0';
	return true;
}

static bool fits(const struct candidate *candidate, struct str *why)
{
	const char *slash = strrchr(candidate->path, '/');
	CLEANUP(free) char *soname = mem_strdup(slash ? slash + 1 : candidate->path);
	const struct match_module module = {
		.path = candidate->path,
		.soname = soname,
		.package = candidate->package,
		.version = candidate->version,
		.build_id = candidate->build_id,
	};

	if (match_variant(variant_of(candidate), &module, why))
		return true;
	while (cut_number(soname)) {
		CLEANUP(str_fini) struct str again = { 0 };

		if (match_variant(variant_of(candidate), &module, &again))
			return true;
	}
	return false;
}

/* Inodes. */

static bool is_attached(const struct bound *bound, const struct stat *info)
{
	for (size_t i = 0; i < bound->inodes.count; i++)
		if (bound->inodes.data[i].dev == info->st_dev &&
		    bound->inodes.data[i].number == info->st_ino)
			return true;
	return false;
}

static struct err *attach_inode(struct bindings *bindings, struct bound *bound, int fd)
{
	struct stat info;

	if (fstat(fd, &info))
		return err_errno(errno, "what file is it");
	if (is_attached(bound, &info))
		return NULL;
	if (bound->inodes.count >= MAX_INODES)
		return err_new(ERR_LIMIT, "more than %d copies", MAX_INODES);
	vec_push(&bound->inodes, ((struct inode){ info.st_dev, info.st_ino }));
	return probes_add(bindings->config.probes, bound->module_id, fd, bound->plan);
}

bool bindings_has(const struct bindings *bindings, uint64_t module_id)
{
	for (size_t i = 0; i < bindings->bound.count; i++)
		if (bindings->bound.data[i].module_id == module_id)
			return true;
	return false;
}

void bindings_file(struct bindings *bindings, uint64_t module_id, int file_fd)
{
	for (size_t i = 0; i < bindings->bound.count; i++) {
		struct bound *bound = &bindings->bound.data[i];

		if (bound->module_id != module_id)
			continue;
		struct err *err = attach_inode(bindings, bound, file_fd);

		if (err)
			log_warn("another copy of what spec %s probes: %s",
				 bound->plan->spec->name, err->text);
		err_free(err);
	}
}

/* Return: it is decided; else the next variant is to be tried. */
static bool use_reply(struct bindings *bindings, struct candidate *candidate,
		      const struct job_reply *reply)
{
	CLEANUP(plan_free) struct plan *plan = NULL;
	int fd, debug_fd, alt_fd;
	struct err *err = plan_build(candidate->spec, variant_of(candidate),
				     &candidate->request, &reply->probes, &plan);

	if (!err && *plan->refusal) {
		log_put(plan->is_meant ? LOG_WARNING : LOG_DEBUG,
			"spec %s, variant %s on %s: %s, leaving it out",
			candidate->spec->name, plan->variant->name, candidate->path,
			plan->refusal);
		return false;
	}
	if (!err && !modules_fds(bindings->config.modules, candidate->module_id, &fd,
				 &debug_fd, &alt_fd))
		err = err_new(ERR_NOT_FOUND, "the file is no longer open");
	if (!err) {
		struct bound bound = { .module_id = candidate->module_id,
				       .plan = take(plan) };

		vec_push(&bindings->bound, bound);
		err = attach_inode(bindings,
				   &bindings->bound.data[bindings->bound.count - 1], fd);
	}
	if (err)
		log_warn("spec %s on %s: %s, leaving it out", candidate->spec->name,
			 candidate->path, err->text);
	err_free(err);
	return true;
}

static void on_reply(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct candidate *candidate = ctx;
	struct bindings *bindings = candidate->flight.owner;

	candidate->is_flying = false;
	flight_end(&bindings->flights, &candidate->flight);
	if (!bindings) {
		err_free(err);
		candidate_free(candidate);
		return;
	}
	if (!err && use_reply(bindings, candidate, reply)) {
		forget(bindings, candidate);
		return;
	}
	if (err && err->code == ERR_NOT_FOUND)
		modules_forget(bindings->config.modules, candidate->module_id,
			       JOB_RESOLVE);
	else
		candidate->variant++;
	err_free(err);
}

/* Return: nothing more will come of it. */
static bool ask(struct bindings *bindings, struct candidate *candidate,
		struct job_client *worker)
{
	arena_free(candidate->arena);
	candidate->arena = arena_new();
	struct err *err = plan_request(variant_of(candidate), candidate->arena,
				       &candidate->request);

	candidate->request.module_id = candidate->module_id;
	if (!err) {
		flight_begin(&bindings->flights, &candidate->flight, bindings);
		candidate->is_flying = true;
		err = job_probes(worker, &candidate->request, on_reply, candidate);
	}
	if (!err)
		return false;
	if (candidate->is_flying)
		flight_end(&bindings->flights, &candidate->flight);
	candidate->is_flying = false;
	log_warn("spec %s on %s: %s", candidate->spec->name, candidate->path, err->text);
	err_free(err);
	return true;
}

/* Return: nothing more will come of it. */
static bool advance(struct bindings *bindings, struct candidate *candidate)
{
	struct job_client *worker = job_source_client(bindings->config.jobs, JOB_RESOLVE);
	CLEANUP(str_fini) struct str why = { 0 };

	if (!worker)
		return false;
	while (candidate->variant < candidate->spec->variant_count &&
	       !fits(candidate, &why))
		candidate->variant++;
	if (candidate->variant == candidate->spec->variant_count) {
		log_debug("spec %s does not apply to %s: %s", candidate->spec->name,
			  candidate->path, str_text(&why));
		return true;
	}
	struct err *err =
		modules_open(bindings->config.modules, candidate->module_id, JOB_RESOLVE);

	if (!err)
		return ask(bindings, candidate, worker);
	err_free(err);
	return ++candidate->tries > MAX_TRIES;
}

void bindings_pump(struct bindings *bindings)
{
	for (size_t i = bindings->candidates.count; i-- > 0;) {
		struct candidate *candidate = bindings->candidates.data[i];

		if (!candidate->is_flying && advance(bindings, candidate))
			forget(bindings, candidate);
	}
}
