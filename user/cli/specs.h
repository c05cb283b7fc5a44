/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_SPECS_H
#define CLI_SPECS_H

/* Spec files on this machine, and one of them against a binary. */

#include "cli/modfiles.h"
#include "core/str.h"
#include "core/vec.h"
#include "probe/match.h"
#include "probe/plan.h"
#include "probe/spec.h"

#define SPECS_MAX_FILES 1024
#define SPECS_SHIPPED	"/usr/share/assay/spec.d"
#define SPECS_OWN	"/etc/assay/spec.d"

/* Paths of spec files, sorted by name; one of /etc hides the shipped one of that name. */
struct specs {
	VEC(char *) paths;
};

/* specs_find() - in $ASSAY_SPEC_PATH (folders with ':' between) or the two above. */
void specs_find(struct specs *specs);
void specs_fini(struct specs *specs);
static inline void cleanup_specs_fini(struct specs *specs)
{
	specs_fini(specs);
}

/* specs_path() - "nginx" or a path to a path, allocated. ERR_NOT_FOUND. */
struct err *specs_path(const char *word, char **ret_path);

/* One variant against one file. */
struct specs_try {
	const struct spec_variant *variant;
	struct plan *plan; /* NULL: it does not match, or was not asked */
	char *reason;	   /* why it does not do; "" it does */
};

struct specs_result {
	const struct spec *spec;
	char *path; /* of the file */
	char *build_id, *package, *version;
	VEC(struct specs_try) tries;
	int chosen; /* the first that does, or -1 */
};

/**
 * specs_resolve() - every variant until one does.
 * @path: as people know the file; @open_path: how to open it (/proc/PID/root/...).
 */
struct err *specs_resolve(struct job_client *worker, const struct spec *spec,
			  const char *path, const char *open_path,
			  struct specs_result *ret_result);
void specs_result_fini(struct specs_result *result);
static inline void cleanup_specs_result_fini(struct specs_result *result)
{
	specs_result_fini(result);
}

/* specs_is_pid() - a number that is no file here. */
bool specs_is_pid(const char *word);
/* specs_mapped() - paths of the files that a process executes and that the spec may be
 * about, each once, as the process sees them. */
struct err *specs_mapped(const char *pid, const struct spec *spec,
			 struct specs *ret_paths);

#endif
