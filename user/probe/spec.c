// SPDX-License-Identifier: Apache-2.0
/*
 * From the file's words to checked structs, all in one arena. Errors name variant,
 * probe and key, so that a line in a file of hundreds is found at once.
 */
#include "probe/spec.h"

#include <stdlib.h>
#include <string.h>

#include "bpf/abi.h"
#include "core/arena.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "model/resource.h"
#include "probe/spec_yaml.h"

_Static_assert(SPEC_MAX_STOPS == ABI_NAME_STOPS, "stops");
_Static_assert(EXPR_MAX_STEPS == ABI_FETCH_DEREFS, "reads");
_Static_assert(EXPR_MAX_CONDITIONS == ABI_PROBE_WHENS, "conditions");

/* The spec itself lives in the arena that it leads to. */
struct spec_memory {
	struct spec spec; /* first */
	struct arena *arena;
};

struct loader {
	struct arena *arena;
	const struct yaml_variant *from;
};

struct verb {
	const char *name;
	uint8_t verb, end; /* @end: may be paired, ends with this one */
	bool is_resource;
};

static const struct verb verbs[] = {
	{ "request", ABI_REQUEST_BEGIN, ABI_REQUEST_END, false },
	{ "request.begin", ABI_REQUEST_BEGIN, 0, false },
	{ "request.end", ABI_REQUEST_END, 0, false },
	{ "client", ABI_CLIENT_BEGIN, ABI_CLIENT_END, false },
	{ "client.begin", ABI_CLIENT_BEGIN, 0, false },
	{ "client.end", ABI_CLIENT_END, 0, false },
	{ "task", ABI_TASK_POP, ABI_TASK_DONE, false },
	{ "task.push", ABI_TASK_PUSH, 0, false },
	{ "task.pop", ABI_TASK_POP, 0, false },
	{ "task.done", ABI_TASK_DONE, 0, false },
	{ "batch", ABI_BATCH_BEGIN, ABI_BATCH_END, false },
	{ "batch.add", ABI_BATCH_ADD, 0, false },
	{ "batch.begin", ABI_BATCH_BEGIN, 0, false },
	{ "batch.end", ABI_BATCH_END, 0, false },
	{ "conn", ABI_CONN_OWN, ABI_CONN_RELEASE, false },
	{ "conn.own", ABI_CONN_OWN, 0, false },
	{ "conn.release", ABI_CONN_RELEASE, 0, false },
	{ "resource.wait", ABI_WAIT_BEGIN, ABI_WAIT_END, true },
	{ "resource.wait.begin", ABI_WAIT_BEGIN, 0, true },
	{ "resource.wait.end", ABI_WAIT_END, 0, true },
	{ "resource.hold", ABI_ACQUIRE, ABI_RELEASE, true },
	{ "resource.acquire", ABI_ACQUIRE, 0, true },
	{ "resource.use", ABI_USE, 0, true },
	{ "resource.release", ABI_RELEASE, 0, true },
	{ "resource.level", ABI_LEVEL, 0, true },
	{ "resource.refuse", ABI_REFUSE, 0, true },
	{ "cost.add", ABI_COST_ADD, 0, false },
	{ "stream.call", ABI_STREAM_CALL, 0, false },
	{ "stream.open", ABI_STREAM_OPEN, 0, false },
	{ "label", ABI_LABEL, 0, false },
};

#define VERBS (sizeof(verbs) / sizeof(verbs[0]))

const char *spec_verb_name(const struct spec_probe *probe)
{
	for (size_t i = 0; i < VERBS; i++)
		if (verbs[i].verb == probe->verb && verbs[i].end == probe->end_verb)
			return verbs[i].name;
	return "";
}

const char *spec_verb_text(unsigned verb)
{
	for (size_t i = 0; i < VERBS; i++)
		if (verbs[i].verb == verb && !verbs[i].end)
			return verbs[i].name;
	return "";
}

const char *spec_by_name(unsigned by)
{
	static const char *const names[] = {
		"", "function", "prefix", "glob", "demangled", "dwarf", "usdt", "offset"
	};

	return by < sizeof(names) / sizeof(names[0]) ? names[by] : "";
}

const char *spec_at_name(unsigned at)
{
	static const char *const names[] = { "entry", "return", "paired" };

	return at < sizeof(names) / sizeof(names[0]) ? names[at] : "";
}

const char *spec_heat_name(unsigned temperature)
{
	static const char *const names[] = { "", "cold", "warm", "hot", "windows" };

	return temperature < sizeof(names) / sizeof(names[0]) ? names[temperature] : "";
}

static bool has_base(const struct expr_chain *chain, uint8_t base)
{
	return chain->base == base;
}

bool spec_uses_result(const struct expr *expr)
{
	return expr->kind && (has_base(&expr->a, EXPR_RET) ||
			      (expr->kind == EXPR_STR && has_base(&expr->b, EXPR_RET)));
}

bool spec_condition_uses_result(const struct expr_condition *condition)
{
	return has_base(&condition->value, EXPR_RET);
}

struct err *spec_each_chain(const struct spec_probe *probe, spec_chain_fn each, void *ctx)
{
	const struct expr *exprs[] = { &probe->key, &probe->object, &probe->amount,
				       &probe->name };

	for (size_t i = 0; i < sizeof(exprs) / sizeof(exprs[0]); i++) {
		if (!exprs[i]->kind)
			continue;
		TRY(each(ctx, &exprs[i]->a));
		if (exprs[i]->kind == EXPR_STR)
			TRY(each(ctx, &exprs[i]->b));
	}
	for (size_t i = 0; i < probe->when.count; i++)
		TRY(each(ctx, &probe->when.conditions[i].value));
	return NULL;
}

static struct err *add_wants(void *ctx, const struct expr_chain *chain)
{
	static const uint8_t args[] = { 5, 4, 1, 2, 8, 9 };
	struct spec_wants *wants = ctx;

	if (chain->base == EXPR_RET) {
		wants->result = true;
		return NULL;
	}
	if (chain->base == EXPR_ARG)
		wants->entry_live |= 1u << args[chain->number - 1];
	else if (chain->base == EXPR_REG)
		wants->entry_live |= 1u << chain->number;
	wants->entry_memory |= chain->step_count > 0;
	return NULL;
}

struct spec_wants spec_wants(const struct spec_probe *probe)
{
	struct spec_wants wants = { 0 };

	err_free(spec_each_chain(probe, add_wants, &wants));
	wants.entry_memory |= probe->name.kind > EXPR_VALUE;
	return wants;
}

static const char *copy(struct loader *loader, const char *text)
{
	return text ? arena_strdup(loader->arena, text) : NULL;
}

static struct err *check_id(const char *what, const char *id)
{
	for (const char *at = id; *at; at++)
		if (!strchr("abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ"
			    "0123456789-_.",
			    *at))
			return err_new(ERR_INVALID,
				       "%s '%s': letters, digits and - _ . only", what,
				       id);
	return NULL;
}

static struct err *load_where(struct loader *loader, const struct yaml_where *from,
			      struct spec_where *where)
{
	const char *given[] = { NULL,	    from->function,  from->prefix,
				from->glob, from->demangled, from->dwarf,
				from->usdt, from->offset };

	*where = (struct spec_where){ .by = 0 };
	for (uint8_t by = SPEC_SYMBOL; by <= SPEC_OFFSET; by++) {
		if (!given[by])
			continue;
		if (where->by)
			return err_new(ERR_INVALID, "both %s and %s are given",
				       spec_by_name(where->by), spec_by_name(by));
		where->by = by;
		where->text = copy(loader, given[by]);
	}
	if (!where->by)
		return err_new(ERR_INVALID, "which code? one of function, prefix, glob, "
					    "demangled, dwarf, usdt or offset is needed");
	if (!*where->text)
		return err_new(ERR_INVALID, "%s: is empty", spec_by_name(where->by));
	if (where->by == SPEC_USDT && !strchr(where->text, ':'))
		return err_new(ERR_INVALID, "usdt: provider:name is expected");
	if (where->by == SPEC_OFFSET && !number_parse(where->text, &where->va))
		return err_new(ERR_INVALID, "offset: no number");
	if ((where->by == SPEC_OFFSET) != (from->size > 0))
		return err_new(ERR_INVALID, "size: goes with offset, and only with it");
	where->bytes = from->size;
	return NULL;
}

static struct err *load_expr(const char *key, const char *text, bool texts,
			     struct expr *expr)
{
	if (!text)
		return NULL;
	TRY(err_wrap(expr_parse(text, expr), "%s", key));
	if (expr->kind != EXPR_VALUE && !texts)
		return err_new(ERR_INVALID, "%s: a number is needed, not a text", key);
	return NULL;
}

static struct err *load_exprs(const struct yaml_probe *from, struct spec_probe *probe)
{
	TRY(load_expr("key", from->key, false, &probe->key));
	TRY(load_expr("object", from->object, false, &probe->object));
	TRY(load_expr("amount", from->amount, false, &probe->amount));
	TRY(load_expr("name", from->name, true, &probe->name));
	if (probe->name.kind == EXPR_VALUE)
		return err_new(ERR_INVALID, "name: a text is needed: cstr(), str(), "
					    "grpc_slice() or std_string()");
	if (from->when)
		TRY(err_wrap(expr_parse_when(from->when, &probe->when), "when"));
	return NULL;
}

/* "\r\n?": characters, with the usual escapes as YAML single quotes do not have them. */
static struct err *load_stops(const char *text, struct spec_probe *probe)
{
	size_t count = 0;

	for (; text && *text; text++) {
		char c = *text;

		if (c == '\\' && text[1]) {
			text++;
			c = *text == 'n'   ? '\n'
			    : *text == 'r' ? '\r'
			    : *text == 't' ? '\t'
					   : *text;
		}
		if (count == SPEC_MAX_STOPS)
			return err_new(ERR_LIMIT, "name_stops: at most %d characters",
				       SPEC_MAX_STOPS);
		probe->stops[count++] = (uint8_t)c;
	}
	return NULL;
}

static struct err *load_verb(const struct yaml_probe *from, struct spec_probe *probe)
{
	const struct verb *verb = NULL;

	for (size_t i = 0; i < VERBS; i++)
		if (!strcmp(verbs[i].name, from->verb))
			verb = &verbs[i];
	if (!verb)
		return err_new(ERR_INVALID, "verb: there is no '%s'", from->verb);
	/* One moment, the return, of which more is known at the entry. */
	bool is_saved = verb->verb >= ABI_ACQUIRE && verb->verb != ABI_STREAM_CALL &&
			verb->verb != ABI_STREAM_OPEN;

	if (probe->at == SPEC_PAIRED && !verb->end && !is_saved)
		return err_new(ERR_INVALID,
			       "verb: '%s' is one moment; paired probes "
			       "take request, client, task, batch, conn, "
			       "resource.wait or what is done with a resource",
			       from->verb);
	if (probe->at != SPEC_PAIRED && verb->end)
		return err_new(ERR_INVALID,
			       "verb: '%s' has a begin and an end; say "
			       "which, or 'at: paired'",
			       from->verb);
	if (verb->is_resource && !probe->resource)
		return err_new(ERR_INVALID, "resource: is needed with '%s'", from->verb);
	if (!verb->is_resource && probe->resource)
		return err_new(ERR_INVALID, "resource: goes with resource verbs only");
	if (verb->verb == ABI_LEVEL && !probe->amount.kind)
		return err_new(ERR_INVALID, "amount: is needed with 'resource.level'");
	if (verb->verb == ABI_STREAM_OPEN &&
	    !(probe->key.kind && probe->object.kind && probe->amount.kind))
		return err_new(ERR_INVALID, "key, object (the descriptor) and amount "
					    "(the number) are needed with 'stream.open'");
	probe->verb = verb->verb;
	probe->end_verb = verb->end;
	return NULL;
}

/* What is known where: arguments at entries, the result at returns. */
static struct err *check_moment(const struct spec_probe *probe)
{
	struct spec_wants wants = spec_wants(probe);

	if (probe->at == SPEC_ENTRY && wants.result)
		return err_new(ERR_INVALID, "ret is known at the return only; "
					    "say 'at: return' or 'at: paired'");
	if (probe->at == SPEC_RETURN && wants.entry_live)
		return err_new(ERR_INVALID, "arguments and registers are gone at the "
					    "return; say 'at: paired'");
	if (probe->at != SPEC_ENTRY && probe->where.by == SPEC_USDT)
		return err_new(ERR_INVALID, "a USDT probe has no return");
	if (probe->where.by == SPEC_USDT && probe->at == SPEC_ENTRY && wants.result)
		return err_new(ERR_INVALID, "a USDT probe has no result");
	if (probe->at != SPEC_PAIRED)
		return NULL;
	if (!probe->end_verb && probe->name.kind && !spec_uses_result(&probe->name))
		return err_new(ERR_INVALID, "name: the event comes at the return, where "
					    "no argument can be read as text");
	for (size_t i = 0; probe->end_verb && i < probe->when.count; i++)
		if (spec_condition_uses_result(&probe->when.conditions[i]))
			return err_new(ERR_INVALID,
				       "when: the begin has happened when ret is "
				       "known; it cannot depend on it");
	return NULL;
}

static struct err *load_probe(struct loader *loader, const struct yaml_probe *from,
			      struct spec_probe *probe)
{
	TRY(check_id("id", from->id));
	*probe = (struct spec_probe){ .id = copy(loader, from->id),
				      .at = (uint8_t)from->at,
				      .mode = (uint8_t)from->mode,
				      .scope = (uint8_t)from->scope,
				      .temperature = (uint8_t)from->temperature,
				      .fails_by = (uint8_t)from->fails_by,
				      .missing = (uint8_t)from->missing,
				      .name_text = copy(loader, from->name_text),
				      .name_bytes = from->name_bytes,
				      .once = from->once,
				      .aside = from->aside,
				      .label = (uint8_t)from->label,
				      .resource = copy(loader, from->resource),
				      .edge = copy(loader, from->edge),
				      .instead_of = -1 };
	TRY(load_where(loader, &from->where, &probe->where));
	TRY(load_exprs(from, probe));
	TRY(load_stops(from->name_stops, probe));
	TRY(load_verb(from, probe));
	if ((probe->verb == ABI_LABEL) != (probe->label != 0))
		return err_new(ERR_INVALID,
			       "label: goes with the verb label, which needs "
			       "it");
	if (probe->aside && (probe->verb != ABI_REQUEST_BEGIN || probe->end_verb))
		return err_new(ERR_INVALID, "aside: goes with request.begin only");
	if (probe->name.kind && probe->name_text)
		return err_new(ERR_INVALID, "both name and name_text are given");
	if (probe->name_bytes > ABI_NAME_MAX)
		return err_new(ERR_LIMIT, "name_bytes: at most %d", ABI_NAME_MAX);
	return check_moment(probe);
}

static struct err *load_words(const struct yaml_resource *from,
			      struct spec_resource *resource)
{
	int kind = from->kind ? resource_kind_parse(from->kind) : RESOURCE_OTHER;
	int key = from->key ? resource_key_parse(from->key) : KEY_THREAD;
	const char *names = from->names ? from->names : "object";

	if (kind < 0)
		return err_new(ERR_INVALID, "kind: there is no '%s'", from->kind);
	if (key < 0)
		return err_new(ERR_INVALID, "key: there is no '%s'", from->key);
	if (strcmp(names, "object") && strcmp(names, "task"))
		return err_new(ERR_INVALID, "names: is 'object' or 'task'");
	resource->kind = (uint8_t)kind;
	resource->key = (uint8_t)key;
	resource->names_task = !strcmp(names, "task");
	return NULL;
}

static struct err *load_resources(struct loader *loader, struct spec_variant *variant)
{
	const struct yaml_variant *from = loader->from;
	struct spec_resource *resources =
		arena_array(loader->arena, from->resources_count, sizeof(*resources));

	for (size_t i = 0; i < from->resources_count; i++) {
		const struct yaml_resource *resource = &from->resources[i];

		TRY(check_id("resource", resource->name));
		for (size_t j = 0; j < i; j++)
			if (!strcmp(resources[j].name, resource->name))
				return err_new(ERR_INVALID, "resource %s: is there twice",
					       resource->name);
		resources[i] = (struct spec_resource){
			.name = copy(loader, resource->name),
			.title = copy(loader,
				      resource->title ? resource->title : resource->name),
			.unit = copy(loader, resource->unit),
			.capacity = resource->capacity,
			.pinned_by = copy(loader, resource->pinned_by),
			.feeds = copy(loader, resource->feeds),
			.advice = copy(loader, resource->advice),
			.has_stale = resource->stale,
			.stale = resource->stale ? *resource->stale : 0,
		};
		TRY(err_wrap(load_words(resource, &resources[i]), "resource %s",
			     resource->name));
	}
	variant->resources = resources;
	variant->resource_count = from->resources_count;
	return NULL;
}

static struct err *check_resource(const struct spec_variant *variant,
				  const struct spec_probe *probe)
{
	if (!probe->resource)
		return NULL;
	for (size_t i = 0; i < variant->resource_count; i++)
		if (!strcmp(variant->resources[i].name, probe->resource))
			return NULL;
	return err_new(ERR_INVALID, "resource: '%s' is not in the list of resources",
		       probe->resource);
}

/* Only a probe further up can be stood in for, so there are no circles. */
static struct err *find_instead(const struct spec_variant *variant, const char *id,
				size_t before, int *ret_index)
{
	for (size_t i = 0; i < before; i++)
		if (!strcmp(variant->probes[i].id, id)) {
			*ret_index = (int)i;
			return NULL;
		}
	return err_new(ERR_INVALID, "instead_of: there is no probe '%s' above", id);
}

static struct err *load_probes(struct loader *loader, struct spec_variant *variant)
{
	const struct yaml_variant *from = loader->from;
	struct spec_probe *probes =
		arena_array(loader->arena, from->probes_count, sizeof(*probes));

	variant->probes = probes;
	for (size_t i = 0; i < from->probes_count; i++) {
		const struct yaml_probe *probe = &from->probes[i];
		struct err *err = load_probe(loader, probe, &probes[i]);

		for (size_t j = 0; !err && j < i; j++)
			if (!strcmp(probes[j].id, probe->id))
				err = err_new(ERR_INVALID, "is there twice");
		if (!err)
			err = check_resource(variant, &probes[i]);
		if (!err && probe->instead_of)
			err = find_instead(variant, probe->instead_of, i,
					   &probes[i].instead_of);
		TRY(err_wrap(err, "probe %s", probe->id));
	}
	variant->probe_count = from->probes_count;
	return NULL;
}

static struct err *load_matches(struct loader *loader, struct spec_variant *variant)
{
	const struct yaml_variant *from = loader->from;
	struct spec_match *matches =
		arena_array(loader->arena, from->match_count, sizeof(*matches));

	for (size_t i = 0; i < from->match_count; i++) {
		const struct yaml_match *match = &from->match[i];
		uint8_t id[64];

		if (!match->path && !match->soname && !match->package && !match->build_id)
			return err_new(ERR_INVALID, "match: one of path, soname, package "
						    "or build_id is needed");
		if (match->versions && !match->package)
			return err_new(ERR_INVALID, "match: versions of which package?");
		if (match->build_id && str_unhex(match->build_id, id, sizeof(id)) < 4)
			return err_new(ERR_INVALID, "match: build_id is no hexadecimal "
						    "number of at least 4 bytes");
		matches[i] = (struct spec_match){
			.path = copy(loader, match->path),
			.soname = copy(loader, match->soname),
			.package = copy(loader, match->package),
			.versions = copy(loader, match->versions),
			.build_id = copy(loader, match->build_id),
		};
	}
	variant->matches = matches;
	variant->match_count = from->match_count;
	return NULL;
}

/* Offsets mean something in one build only. */
static struct err *check_offsets(const struct spec_variant *variant)
{
	bool has_offset = false;

	for (size_t i = 0; i < variant->probe_count; i++)
		has_offset |= variant->probes[i].where.by == SPEC_OFFSET;
	for (size_t i = 0; has_offset && i < variant->match_count; i++)
		if (!variant->matches[i].build_id)
			return err_new(ERR_INVALID,
				       "probes by offset need a build_id in every match");
	if (has_offset && !variant->evidence)
		return err_new(ERR_INVALID, "probes by offset need 'evidence': how they "
					    "were found");
	return NULL;
}

static struct err *load_variant(struct loader *loader, struct spec_variant *variant)
{
	const struct yaml_variant *from = loader->from;
	struct spec_where *needs =
		arena_array(loader->arena, from->needs_count, sizeof(*needs));

	TRY(check_id("name", from->name));
	variant->name = copy(loader, from->name);
	variant->evidence = copy(loader, from->evidence);
	TRY(load_matches(loader, variant));
	for (size_t i = 0; i < from->needs_count; i++)
		TRY(err_wrap(load_where(loader, &from->needs[i], &needs[i]), "needs"));
	variant->needs = needs;
	variant->need_count = from->needs_count;
	TRY(load_resources(loader, variant));
	TRY(load_probes(loader, variant));
	return check_offsets(variant);
}

static struct err *load_all(struct loader *loader, const struct yaml_spec *from,
			    struct spec *spec)
{
	struct spec_variant *variants =
		arena_array(loader->arena, from->variants_count, sizeof(*variants));

	TRY(check_id("spec", from->spec));
	spec->name = copy(loader, from->spec);
	spec->title = copy(loader, from->title ? from->title : from->spec);
	spec->otherwise = copy(loader, from->otherwise);
	for (size_t i = 0; i < from->variants_count; i++) {
		loader->from = &from->variants[i];
		TRY(err_wrap(load_variant(loader, &variants[i]), "variant %s",
			     loader->from->name));
	}
	spec->variants = variants;
	spec->variant_count = from->variants_count;
	return NULL;
}

struct err *spec_parse(const char *path, const char *text, size_t bytes,
		       struct spec **ret_spec)
{
	struct yaml_spec *yaml = NULL;
	struct spec_memory *memory;
	struct loader loader;

	TRY(err_wrap(spec_yaml_read(text, bytes, &yaml), "%s", path));
	memory = mem_alloc(sizeof(*memory));
	memory->arena = loader.arena = arena_new();
	memory->spec.path = arena_strdup(memory->arena, path);
	struct err *err = load_all(&loader, yaml, &memory->spec);

	spec_yaml_free(yaml);
	if (err) {
		spec_free(&memory->spec);
		return err_wrap(err, "%s", path);
	}
	*ret_spec = &memory->spec;
	return NULL;
}

struct err *spec_load(const char *path, struct spec **ret_spec)
{
	CLEANUP(free) char *text = NULL;
	size_t bytes;

	TRY(file_read(path, SPEC_MAX_FILE_BYTES, &text, &bytes));
	return spec_parse(path, text, bytes, ret_spec);
}

void spec_free(struct spec *spec)
{
	struct spec_memory *memory = (struct spec_memory *)spec;

	if (!memory)
		return;
	arena_free(memory->arena);
	free(memory);
}
