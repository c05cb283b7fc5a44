/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_SPEC_YAML_H
#define PROBE_SPEC_YAML_H

/* The file as libcyaml hands it over: strings and words, unchecked. */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

struct yaml_match {
	char *path, *soname, *package, *versions, *build_id;
};

struct yaml_where {
	char *function, *prefix, *glob, *demangled, *dwarf, *usdt, *offset;
	uint32_t size;
};

struct yaml_probe {
	char *id;
	struct yaml_where where;
	char *verb;
	int at, mode, scope, temperature, fails_by, missing, label;
	char *key, *object, *amount, *name, *name_text, *name_stops, *when;
	bool once, aside;
	uint16_t name_bytes;
	char *resource, *edge, *instead_of;
};

struct yaml_resource {
	char *name, *title, *unit, *kind, *key, *names, *pinned_by, *feeds, *advice;
	uint64_t capacity;
	int64_t *stale;
};

struct yaml_variant {
	char *name, *evidence;
	struct yaml_match *match;
	unsigned match_count;
	struct yaml_where *needs;
	unsigned needs_count;
	struct yaml_probe *probes;
	unsigned probes_count;
	struct yaml_resource *resources;
	unsigned resources_count;
};

struct yaml_spec {
	char *spec, *title, *otherwise;
	struct yaml_variant *variants;
	unsigned variants_count;
};

/* spec_yaml_read() - ERR_INVALID with the reader's own words and line. */
struct err *spec_yaml_read(const char *text, size_t bytes, struct yaml_spec **ret_spec);
void spec_yaml_free(struct yaml_spec *spec); /* NULL is fine */

#endif
