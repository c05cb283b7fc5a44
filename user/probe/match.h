/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_MATCH_H
#define PROBE_MATCH_H

/* Is a file one that a variant of a spec is about? */

#include <stdbool.h>

#include "core/str.h"
#include "probe/spec.h"

/* What is known of a file; NULL or "" what is not. */
struct match_module {
	const char *path; /* as its process sees it */
	const char *soname;
	const char *package, *version; /* that owns it, as the package manager says */
	const char *build_id;	       /* lower-case hexadecimal */
};

/* match_may() - by path alone: is it worth identifying this file at all? */
bool match_may(const struct spec *spec, const char *path);

/**
 * match_variant() - does one of its matches hold?
 * @why: when none does, what the one that came closest lacked; appended.
 */
bool match_variant(const struct spec_variant *variant, const struct match_module *module,
		   struct str *why);

/* match_wants_package() - the answer depends on the package: somebody should ask. */
bool match_wants_package(const struct spec *spec);

/* match_versions() - by the rules of Debian policy 5.6.12: <0, 0, >0. */
int match_versions(const char *left, const char *right);

/* match_in_range() - "7.0 .. 7.1": from the first on, below the second; either may be
 * missing; one version alone means just that. */
bool match_in_range(const char *version, const char *range);

#endif
