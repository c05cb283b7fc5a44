/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_EMBED_H
#define CORE_EMBED_H

/* Text files that the build puts into the programs; tables end with a NULL path. */
struct embed {
	const char *path; /* as in the source tree: "schema/report/types.sql" */
	const char *text;
};

extern const struct embed embed_schema[];
extern const struct embed embed_text[];

#endif
