// SPDX-License-Identifier: Apache-2.0
/*
 * The schema. Location keys of probes and needs stand beside the others in the file, so
 * both lists share a macro. libcyaml reports what it dislikes through a log callback,
 * innermost first; the first line with the line number behind it is what people need.
 */
#include "probe/spec_yaml.h"

#include <cyaml/cyaml.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "bpf/abi.h"
#include "core/str.h"
#include "probe/spec.h"

#define TEXT(type, key)                                                              \
	CYAML_FIELD_STRING_PTR(#key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, \
			       key, 1, SPEC_MAX_FILE_BYTES)
#define WORD(type, key) \
	CYAML_FIELD_STRING_PTR(#key, CYAML_FLAG_POINTER, type, key, 1, SPEC_MAX_NAME)
#define CHOICE(type, key, words)                                                   \
	CYAML_FIELD_ENUM(#key, CYAML_FLAG_STRICT | CYAML_FLAG_OPTIONAL, type, key, \
			 words, CYAML_ARRAY_LEN(words))
#define WHERE(type, prefix_, key)                                                    \
	CYAML_FIELD_STRING_PTR(#key, CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL, type, \
			       prefix_ key, 1, SPEC_MAX_FILE_BYTES)

static const cyaml_strval_t at_words[] = { { "entry", SPEC_ENTRY },
					   { "return", SPEC_RETURN },
					   { "paired", SPEC_PAIRED } };
static const cyaml_strval_t mode_words[] = { { "shared", 1 }, { "exclusive", 2 } };
static const cyaml_strval_t scope_words[] = { { "object", 0 },
					      { "task", 1 },
					      { "all", 2 } };
static const cyaml_strval_t heat_words[] = { { "cold", SPEC_COLD },
					     { "warm", SPEC_WARM },
					     { "hot", SPEC_HOT },
					     { "windows", SPEC_WINDOWS } };
static const cyaml_strval_t fails_words[] = { { "return", SPEC_FAILS_RETURN },
					      { "longjmp", SPEC_FAILS_LONGJMP },
					      { "never", SPEC_FAILS_NEVER } };
static const cyaml_strval_t label_words[] = {
	{ "hit", ABI_LABEL_HIT },     { "miss", ABI_LABEL_MISS },
	{ "empty", ABI_LABEL_EMPTY }, { "error", ABI_LABEL_ERROR },
	{ "low", ABI_LABEL_LOW },     { "high", ABI_LABEL_HIGH }
};
static const cyaml_strval_t missing_words[] = { { "skip", SPEC_SKIP_PROBE },
						{ "next", SPEC_SKIP_VARIANT } };

static const cyaml_schema_field_t match_fields[] = {
	TEXT(struct yaml_match, path),	   TEXT(struct yaml_match, soname),
	TEXT(struct yaml_match, package),  TEXT(struct yaml_match, versions),
	TEXT(struct yaml_match, build_id), CYAML_FIELD_END
};

static const cyaml_schema_field_t where_fields[] = {
	TEXT(struct yaml_where, function),
	TEXT(struct yaml_where, prefix),
	TEXT(struct yaml_where, glob),
	TEXT(struct yaml_where, demangled),
	TEXT(struct yaml_where, dwarf),
	TEXT(struct yaml_where, usdt),
	TEXT(struct yaml_where, offset),
	CYAML_FIELD_UINT("size", CYAML_FLAG_OPTIONAL, struct yaml_where, size),
	CYAML_FIELD_END
};

static const cyaml_schema_field_t probe_fields[] = {
	WORD(struct yaml_probe, id),
	WHERE(struct yaml_probe, where., function),
	WHERE(struct yaml_probe, where., prefix),
	WHERE(struct yaml_probe, where., glob),
	WHERE(struct yaml_probe, where., demangled),
	WHERE(struct yaml_probe, where., dwarf),
	WHERE(struct yaml_probe, where., usdt),
	WHERE(struct yaml_probe, where., offset),
	CYAML_FIELD_UINT("size", CYAML_FLAG_OPTIONAL, struct yaml_probe, where.size),
	WORD(struct yaml_probe, verb),
	CHOICE(struct yaml_probe, at, at_words),
	CHOICE(struct yaml_probe, mode, mode_words),
	CHOICE(struct yaml_probe, scope, scope_words),
	CHOICE(struct yaml_probe, temperature, heat_words),
	CHOICE(struct yaml_probe, label, label_words),
	CHOICE(struct yaml_probe, fails_by, fails_words),
	CHOICE(struct yaml_probe, missing, missing_words),
	TEXT(struct yaml_probe, key),
	TEXT(struct yaml_probe, object),
	TEXT(struct yaml_probe, amount),
	TEXT(struct yaml_probe, name),
	TEXT(struct yaml_probe, name_text),
	TEXT(struct yaml_probe, name_stops),
	TEXT(struct yaml_probe, when),
	CYAML_FIELD_BOOL("once", CYAML_FLAG_OPTIONAL, struct yaml_probe, once),
	CYAML_FIELD_BOOL("aside", CYAML_FLAG_OPTIONAL, struct yaml_probe, aside),
	CYAML_FIELD_UINT("name_bytes", CYAML_FLAG_OPTIONAL, struct yaml_probe,
			 name_bytes),
	TEXT(struct yaml_probe, resource),
	TEXT(struct yaml_probe, edge),
	TEXT(struct yaml_probe, instead_of),
	CYAML_FIELD_END
};

static const cyaml_schema_field_t resource_fields[] = {
	WORD(struct yaml_resource, name),
	TEXT(struct yaml_resource, title),
	TEXT(struct yaml_resource, unit),
	TEXT(struct yaml_resource, kind),
	TEXT(struct yaml_resource, key),
	TEXT(struct yaml_resource, names),
	TEXT(struct yaml_resource, pinned_by),
	TEXT(struct yaml_resource, feeds),
	TEXT(struct yaml_resource, advice),
	CYAML_FIELD_UINT("capacity", CYAML_FLAG_OPTIONAL, struct yaml_resource, capacity),
	CYAML_FIELD_INT_PTR("stale", CYAML_FLAG_POINTER | CYAML_FLAG_OPTIONAL,
			    struct yaml_resource, stale),
	CYAML_FIELD_END
};

static const cyaml_schema_value_t match_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_DEFAULT, struct yaml_match, match_fields) };
static const cyaml_schema_value_t where_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_DEFAULT, struct yaml_where, where_fields) };
static const cyaml_schema_value_t probe_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_DEFAULT, struct yaml_probe, probe_fields) };
static const cyaml_schema_value_t resource_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_DEFAULT, struct yaml_resource, resource_fields) };

#define LIST(key, entry, min, max, more)                                             \
	CYAML_FIELD_SEQUENCE(#key, CYAML_FLAG_POINTER | (more), struct yaml_variant, \
			     key, &entry, min, max)

static const cyaml_schema_field_t variant_fields[] = {
	WORD(struct yaml_variant, name),
	TEXT(struct yaml_variant, evidence),
	LIST(match, match_value, 1, SPEC_MAX_MATCHES, 0),
	LIST(needs, where_value, 0, SPEC_MAX_NEEDS, CYAML_FLAG_OPTIONAL),
	LIST(probes, probe_value, 1, SPEC_MAX_PROBES, 0),
	LIST(resources, resource_value, 0, SPEC_MAX_RESOURCES, CYAML_FLAG_OPTIONAL),
	CYAML_FIELD_END
};

static const cyaml_schema_value_t variant_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_DEFAULT, struct yaml_variant, variant_fields) };

static const cyaml_schema_field_t spec_fields[] = {
	WORD(struct yaml_spec, spec), TEXT(struct yaml_spec, title),
	TEXT(struct yaml_spec, otherwise),
	CYAML_FIELD_SEQUENCE("variants", CYAML_FLAG_POINTER, struct yaml_spec, variants,
			     &variant_value, 1, SPEC_MAX_VARIANTS),
	CYAML_FIELD_END
};

static const cyaml_schema_value_t spec_value = { CYAML_VALUE_MAPPING(
	CYAML_FLAG_POINTER, struct yaml_spec, spec_fields) };

__attribute__((format(printf, 3, 0))) static void take_line(cyaml_log_t level, void *ctx,
							    const char *fmt, va_list ap)
{
	struct str *log = ctx;
	char line[512];

	if (level < CYAML_LOG_ERROR)
		return;
	int length = vsnprintf(line, sizeof(line), fmt, ap);

	while (length > 0 && length < (int)sizeof(line) && line[length - 1] == '\n')
		line[--length] = '\0';
	const char *text = str_starts(line, "Load: ") ? line + 6 : line;

	/* The first two lines: what, and where; the outer places follow. */
	if (log->length > 300 || !strcmp(text, "Backtrace:"))
		return;
	str_printf(log, "%s%s", log->length ? "; " : "", text + strspn(text, " "));
}

static const cyaml_config_t *config_for(cyaml_config_t *config, struct str *log)
{
	*config = (cyaml_config_t){ .log_fn = take_line,
				    .log_ctx = log,
				    .log_level = CYAML_LOG_ERROR,
				    .mem_fn = cyaml_mem,
				    .flags = CYAML_CFG_NO_ALIAS };
	return config;
}

struct err *spec_yaml_read(const char *text, size_t bytes, struct yaml_spec **ret_spec)
{
	CLEANUP(str_fini) struct str log = { 0 };
	cyaml_config_t config;
	cyaml_data_t *data = NULL;
	cyaml_err_t status =
		cyaml_load_data((const uint8_t *)text, bytes, config_for(&config, &log),
				&spec_value, &data, NULL);

	if (status != CYAML_OK)
		return err_new(ERR_INVALID, "%s%s%s", cyaml_strerror(status),
			       log.length ? ": " : "", str_text(&log));
	if (!data)
		return err_new(ERR_INVALID, "the file is empty");
	*ret_spec = data;
	return NULL;
}

void spec_yaml_free(struct yaml_spec *spec)
{
	CLEANUP(str_fini) struct str log = { 0 };
	cyaml_config_t config;

	if (spec)
		cyaml_free(config_for(&config, &log), &spec_value, spec, 0);
}
