// SPDX-License-Identifier: Apache-2.0
#include "cli/specs.h"

#include <dirent.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "probe/package.h"

#define SPECS_MODULE 1 /* the only module of our worker */
#define SPECS_MS     60000
#define SPECS_MAPS   (16 * 1024 * 1024) /* bytes of /proc/PID/maps */

static const char *base_name(const char *path)
{
	const char *slash = strrchr(path, '/');

	return slash ? slash + 1 : path;
}

static bool is_hidden(const struct specs *specs, const char *name)
{
	for (size_t i = 0; i < specs->paths.count; i++)
		if (!strcmp(base_name(specs->paths.data[i]), name))
			return true;
	return false;
}

static void add_folder(struct specs *specs, const char *folder)
{
	DIR *list = opendir(folder);

	for (struct dirent *entry; list && (entry = readdir(list));)
		if (str_ends(entry->d_name, ".yaml") && entry->d_name[0] != '.' &&
		    specs->paths.count < SPECS_MAX_FILES &&
		    !is_hidden(specs, entry->d_name))
			vec_push(&specs->paths,
				 mem_printf("%s/%s", folder, entry->d_name));
	if (list)
		closedir(list);
}

static int by_name(const void *left, const void *right)
{
	return strcmp(base_name(*(char *const *)left), base_name(*(char *const *)right));
}

void specs_find(struct specs *specs)
{
	const char *given = getenv("ASSAY_SPEC_PATH");
	const char *at = given && *given ? given : SPECS_OWN ":" SPECS_SHIPPED;

	*specs = (struct specs){ 0 };
	while (*at) {
		size_t length = strcspn(at, ":");
		CLEANUP(free) char *folder = mem_printf("%.*s", (int)length, at);

		add_folder(specs, folder);
		at += length + (at[length] == ':');
	}
	if (specs->paths.count)
		qsort(specs->paths.data, specs->paths.count, sizeof(*specs->paths.data),
		      by_name);
}

void specs_fini(struct specs *specs)
{
	vec_each(&specs->paths, path)
		free(*path);
	vec_fini(&specs->paths);
}

struct err *specs_path(const char *word, char **ret_path)
{
	CLEANUP(specs_fini) struct specs specs = { 0 };
	CLEANUP(free) char *name = mem_printf("%s.yaml", word);

	if (strchr(word, '/') || str_ends(word, ".yaml")) {
		*ret_path = mem_strdup(word);
		return NULL;
	}
	specs_find(&specs);
	vec_each(&specs.paths, path)
		if (!strcmp(base_name(*path), name)) {
			*ret_path = mem_strdup(*path);
			return NULL;
		}
	return err_new(ERR_NOT_FOUND, "there is no spec '%s'; see assay spec list", word);
}

struct asked {
	struct err *err;
	const struct spec *spec;
	const struct spec_variant *variant;
	struct resolve_request request;
	struct plan *plan;
};

static void take_reply(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct asked *asked = ctx;

	asked->err = err ? err
			 : plan_build(asked->spec, asked->variant, &asked->request,
				      &reply->probes, &asked->plan);
}

static struct err *try_variant(struct job_client *worker, const struct spec *spec,
			       struct specs_try *try)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	struct asked asked = { .spec = spec, .variant = try->variant };

	TRY(plan_request(try->variant, arena, &asked.request));
	asked.request.module_id = SPECS_MODULE;
	TRY(job_probes(worker, &asked.request, take_reply, &asked));
	TRY(job_wait(worker, SPECS_MS));
	TRY(asked.err);
	try->plan = asked.plan;
	try->reason = mem_strdup(asked.plan->refusal);
	return NULL;
}

struct soname {
	struct err *err;
	char *text;
};

static void take_soname(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct soname *soname = ctx;

	soname->err = err;
	if (!err)
		soname->text = mem_strdup(reply->identity.soname);
}

static struct err *open_module(struct job_client *worker, const struct modfiles *files)
{
	return job_open(worker, &(struct job_open){ .module_id = SPECS_MODULE,
						    .main_fd = files->main_fd,
						    .debug_fd = files->debug_fd,
						    .alt_fd = files->alt_fd,
						    .kallsyms_fd = -1 });
}

static struct err *try_all(struct job_client *worker, const struct match_module *module,
			   struct specs_result *result)
{
	const struct spec *spec = result->spec;

	for (size_t i = 0; i < spec->variant_count && result->chosen < 0; i++) {
		struct specs_try *try = vec_add(&result->tries);
		CLEANUP(str_fini) struct str why = { 0 };

		*try = (struct specs_try){ .variant = &spec->variants[i] };
		if (!match_variant(try->variant, module, &why)) {
			try->reason = mem_strdup(str_text(&why));
			continue;
		}
		TRY(try_variant(worker, spec, try));
		if (!*try->reason)
			result->chosen = (int)i;
	}
	return NULL;
}

struct err *specs_resolve(struct job_client *worker, const struct spec *spec,
			  const char *path, const char *open_path,
			  struct specs_result *ret_result)
{
	CLEANUP(modfiles_close)
	struct modfiles files = { -1, -1, -1, { { 0 }, 0 }, false, NULL };
	struct soname soname = { NULL, NULL };
	struct match_module module = { .path = path };

	*ret_result = (struct specs_result){ .spec = spec, .chosen = -1 };
	TRY(modfiles_open(worker, open_path, &files));
	TRY(job_identify(worker, files.main_fd, take_soname, &soname));
	TRY(job_wait(worker, SPECS_MS));
	TRY(soname.err);
	ret_result->path = mem_strdup(path);
	ret_result->build_id = str_hex(files.build_id.bytes, files.build_id.size);
	if (match_wants_package(spec))
		package_find("", path, &ret_result->package, &ret_result->version);
	module.soname = soname.text;
	module.build_id = ret_result->build_id;
	module.package = ret_result->package;
	module.version = ret_result->version;
	struct err *err = open_module(worker, &files);

	if (!err)
		err = try_all(worker, &module, ret_result);
	free(soname.text);
	return err;
}

void specs_result_fini(struct specs_result *result)
{
	vec_each(&result->tries, try) {
		plan_free(try->plan);
		free(try->reason);
	}
	vec_fini(&result->tries);
	free(result->path);
	free(result->build_id);
	free(result->package);
	free(result->version);
	*result = (struct specs_result){ .chosen = -1 };
}

bool specs_is_pid(const char *word)
{
	return word[strspn(word, "0123456789")] == '\0' && *word &&
	       access(word, F_OK) != 0;
}

/* The path of one line of /proc/PID/maps that may be executed, or NULL. */
static char *mapped_path(const char *line, size_t length)
{
	const char *path = memchr(line, '/', length);
	const char *rights = memchr(line, ' ', length);

	if (!path || !rights || path - line < 4 || rights[3] != 'x')
		return NULL;
	return mem_printf("%.*s", (int)(length - (size_t)(path - line)), path);
}

struct err *specs_mapped(const char *pid, const struct spec *spec,
			 struct specs *ret_paths)
{
	CLEANUP(free) char *maps = mem_printf("/proc/%s/maps", pid);
	CLEANUP(free) char *text = NULL;

	TRY(file_read(maps, SPECS_MAPS, &text, NULL));
	for (char *line = text; *line;) {
		size_t length = strcspn(line, "\n");
		char *path = mapped_path(line, length);
		bool known = !path || !match_may(spec, path);

		vec_each(&ret_paths->paths, other)
			known |= path && !strcmp(*other, path);
		if (known)
			free(path);
		else
			vec_push(&ret_paths->paths, path);
		line += length + (line[length] == '\n');
	}
	return NULL;
}
