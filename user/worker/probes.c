// SPDX-License-Identifier: Apache-2.0
/*
 * Each probe on its own: find the functions or notes, then the sites in each. Debug
 * information is opened only when a probe asks for it, once per job.
 */
#include "worker/probes.h"

#include <string.h>

#include "bin/dwarf.h"
#include "bin/field.h"
#include "bin/names.h"
#include "bin/place.h"
#include "bin/usdt.h"
#include "core/vec.h"

struct finder {
	const struct module_elf *elf;
	struct frame_table *frames;
	struct arena *arena;
	struct elf_functions *functions;
	struct insn_decoder *decoder;
	struct dwarf_file *dwarf;
	bool has_tried_dwarf;
	VEC(struct resolve_target) targets;
	VEC(struct resolve_failure) failures;
	/* The probe under way. */
	const struct resolve_probe *probe;
	uint32_t index;
	size_t first; /* of its targets */
	struct err *err;
};

static const char *keep(struct finder *finder, const char *text)
{
	return arena_strndup(finder->arena, text, strnlen(text, RESOLVE_MAX_TEXT));
}

/* Consumes @err. */
static const char *reason_of(struct finder *finder, struct err *err)
{
	const char *text = keep(finder, err->text);

	err_free(err);
	return text;
}

static struct dwarf_file *open_dwarf(struct finder *finder)
{
	if (finder->has_tried_dwarf)
		return finder->dwarf;
	finder->has_tried_dwarf = true;
	err_free(dwarf_open(finder->elf->main, finder->elf->debug, finder->elf->alt,
			    &finder->dwarf));
	return finder->dwarf;
}

static uint64_t file_offset(const struct finder *finder, uint64_t va)
{
	size_t count;
	const struct elf_segment *segments = elf_segments(finder->elf->main, &count);

	for (size_t i = 0; va && i < count; i++)
		if (segments[i].kind == ELF_LOAD && va >= segments[i].va &&
		    va - segments[i].va < segments[i].file_bytes)
			return va - segments[i].va + segments[i].off;
	return 0;
}

static struct resolve_target *add_target(struct finder *finder, uint64_t va,
					 uint64_t bytes, const char *name)
{
	for (size_t i = finder->first; i < finder->targets.count; i++)
		if (finder->targets.data[i].va == va)
			return NULL;
	if (finder->targets.count - finder->first == RESOLVE_MAX_MATCHES) {
		finder->err = err_new(ERR_LIMIT, "more than %d functions match",
				      RESOLVE_MAX_MATCHES);
		return NULL;
	}
	char *plain = names_demangle(name);
	size_t room;
	const uint8_t *code = elf_bytes_at(finder->elf->main, va, &room);
	bool is_emulated;

	place_kind(code, code ? room : 0, &is_emulated);

	vec_push(&finder->targets,
		 ((struct resolve_target){ .probe = finder->index,
					   .va = va,
					   .bytes = bytes,
					   .off = file_offset(finder, va),
					   .is_emulated = is_emulated,
					   .name = keep(finder, plain ? plain : name),
					   .return_reason = "" }));
	free(plain);
	return &finder->targets.data[finder->targets.count - 1];
}

static bool take_name(void *ctx, const struct names_found *found)
{
	struct finder *finder = ctx;
	uint64_t bytes = found->bytes;
	const struct elf_function *whole = elf_function_at(finder->functions, found->va);

	if (!bytes && whole && whole->va == found->va)
		bytes = whole->bytes;
	if (bytes)
		add_target(finder, found->va, bytes, found->name);
	return !finder->err;
}

static bool take_note(void *ctx, const struct usdt_note *note)
{
	struct finder *finder = ctx;
	struct usdt_arg args[USDT_MAX_ARGS];
	size_t provider = strlen(note->provider);
	const char *text = finder->probe->text;

	if (strncmp(text, note->provider, provider) || text[provider] != ':' ||
	    strcmp(text + provider + 1, note->name))
		return true;
	struct resolve_target *target = add_target(finder, note->va, 1, text);

	if (!target)
		return !finder->err;
	target->semaphore_off = file_offset(finder, note->semaphore_va);
	target->arg_count = usdt_args(note->args, args);
	struct resolve_arg *kept =
		arena_array(finder->arena, target->arg_count, sizeof(*kept));

	for (size_t i = 0; i < target->arg_count; i++)
		kept[i] = (struct resolve_arg){ .where = args[i].where,
						.bytes = args[i].bytes,
						.reg = args[i].reg,
						.is_signed = args[i].is_signed,
						.offset = args[i].offset };
	target->args = kept;
	return true;
}

static struct err *find_by_dwarf(struct finder *finder)
{
	size_t count;
	struct dwarf_file *dwarf = open_dwarf(finder);

	if (!dwarf)
		return err_new(ERR_NOT_FOUND, "there is no debug information");
	const struct dwarf_function *functions = dwarf_functions(dwarf, &count);

	for (size_t i = 0; i < count && !finder->err; i++)
		if (!strcmp(functions[i].name, finder->probe->text))
			add_target(finder, functions[i].va,
				   functions[i].ranges[0].hi - functions[i].va,
				   functions[i].name);
	return NULL;
}

static struct err *find_targets(struct finder *finder)
{
	static const enum names_by by[] = { [RESOLVE_SYMBOL] = NAMES_EXACT,
					    [RESOLVE_PREFIX] = NAMES_PREFIX,
					    [RESOLVE_GLOB] = NAMES_GLOB,
					    [RESOLVE_DEMANGLED] = NAMES_DEMANGLED };
	const struct resolve_probe *probe = finder->probe;

	if (probe->by == RESOLVE_USDT)
		TRY(usdt_each(finder->elf->main, take_note, finder));
	else if (probe->by == RESOLVE_DWARF)
		TRY(find_by_dwarf(finder));
	else if (probe->by != RESOLVE_VA)
		TRY(names_find(finder->elf->main, finder->elf->debug, by[probe->by],
			       probe->text, take_name, finder));
	else if (elf_is_code(finder->elf->main, probe->va))
		add_target(finder, probe->va, probe->bytes, probe->text);
	TRY(take(finder->err));
	if (finder->targets.count > finder->first)
		return NULL;
	if (probe->by == RESOLVE_USDT)
		return err_new(ERR_NOT_FOUND, "there is no USDT probe %s", probe->text);
	if (probe->by == RESOLVE_VA)
		return err_new(ERR_NOT_FOUND, "there is no code at %#llx",
			       (unsigned long long)probe->va);
	return err_new(ERR_NOT_FOUND, "there is no function %s", probe->text);
}

static struct resolve_site site_of(const struct finder *finder,
				   const struct place_site *place, bool is_return)
{
	return (struct resolve_site){ .va = place->va,
				      .off = file_offset(finder, place->va),
				      .insn = place->insn,
				      .is_emulated = place->is_emulated,
				      .is_return = is_return,
				      .by_frame = place->by_frame,
				      .pushed = place->pushed };
}

static struct err *add_sites(struct finder *finder, struct resolve_target *target)
{
	const struct resolve_probe *probe = finder->probe;
	struct place_input input = { .file = finder->elf->main,
				     .decoder = finder->decoder,
				     .frames = finder->frames,
				     .functions = finder->functions,
				     .va = target->va,
				     .bytes = target->bytes,
				     .live = probe->live,
				     .reads_memory = probe->reads_memory,
				     .needs_result = probe->needs_result };
	struct place_site places[PLACE_MAX_SITES], entry;
	struct resolve_site *sites =
		arena_array(finder->arena, RESOLVE_MAX_SITES, sizeof(*sites));
	size_t count = 0;

	target->sites = sites;
	if (probe->wants_entry) {
		TRY(place_entry(&input, &entry));
		sites[target->site_count++] = site_of(finder, &entry, false);
	}
	if (!probe->wants_return)
		return NULL;
	struct err *err = place_returns(&input, places, &count);

	if (err)
		target->return_reason = reason_of(finder, err);
	else if (!count)
		target->return_reason = "the function has no return instruction";
	for (size_t i = 0; i < count; i++)
		sites[target->site_count++] = site_of(finder, &places[i], true);
	return NULL;
}

/* A note's place is its nop. */
static struct err *add_note_site(struct finder *finder, struct resolve_target *target)
{
	size_t room;
	const uint8_t *code = elf_bytes_at(finder->elf->main, target->va, &room);
	struct place_site place = { .va = target->va, .pushed = -1 };
	struct resolve_site *site;

	if (!code || !elf_is_code(finder->elf->main, target->va))
		return err_new(ERR_FORMAT, "the USDT note points to no code");
	place.insn = (uint8_t)place_kind(code, room, &place.is_emulated);
	site = arena_array(finder->arena, 1, sizeof(*site));
	*site = site_of(finder, &place, false);
	target->sites = site;
	target->site_count = 1;
	return NULL;
}

static struct err *find_field(struct finder *finder, const struct resolve_target *target,
			      const struct resolve_field *field,
			      struct resolve_offsets *offsets)
{
	const struct dwarf_function *function;
	struct dwarf_file *dwarf = open_dwarf(finder);
	struct field_place place;
	uint32_t type;

	if (!dwarf)
		return err_new(ERR_NOT_FOUND, "there is no debug information");
	function = dwarf_function_by_va(dwarf, target->va);
	if (!function)
		return err_new(ERR_NOT_FOUND,
			       "the debug information lacks this function");
	TRY(field_base(dwarf, function, field->arg, &type));
	TRY(field_find(dwarf, type, field->path, &place));
	for (size_t i = 0; i < place.count; i++)
		offsets->offsets[i] = (uint32_t)place.offsets[i];
	offsets->count = (uint8_t)place.count;
	offsets->bytes = place.bytes;
	offsets->is_signed = place.is_signed;
	return NULL;
}

static void add_fields(struct finder *finder, struct resolve_target *target)
{
	const struct resolve_probe *probe = finder->probe;
	struct resolve_offsets *offsets =
		arena_array(finder->arena, probe->field_count, sizeof(*offsets));

	for (size_t i = 0; i < probe->field_count; i++) {
		struct err *err =
			find_field(finder, target, &probe->fields[i], &offsets[i]);

		offsets[i].reason = err ? reason_of(finder, err) : "";
	}
	target->fields = offsets;
	target->field_count = probe->field_count;
}

static struct err *resolve_probe(struct finder *finder)
{
	TRY(find_targets(finder));
	for (size_t i = finder->first; i < finder->targets.count; i++) {
		struct resolve_target *target = &finder->targets.data[i];

		if (finder->probe->by == RESOLVE_USDT)
			TRY(add_note_site(finder, target));
		else
			TRY(add_sites(finder, target));
		add_fields(finder, target);
	}
	return NULL;
}

static struct err *find_all(struct finder *finder, const struct resolve_request *request)
{
	TRY(insn_decoder_open(elf_machine(finder->elf->main), &finder->decoder));
	TRY(elf_functions_new(finder->elf->main, finder->elf->debug, &finder->functions));
	for (size_t i = 0; i < request->count; i++) {
		finder->probe = &request->probes[i];
		finder->index = (uint32_t)i;
		finder->first = finder->targets.count;
		struct err *err = resolve_probe(finder);

		if (!err)
			continue;
		finder->targets.count = finder->first;
		vec_push(&finder->failures,
			 ((struct resolve_failure){ finder->index,
						    reason_of(finder, err) }));
	}
	return NULL;
}

static void *copy_of(struct arena *arena, const void *data, size_t count, size_t size)
{
	void *copy = arena_array(arena, count, size);

	if (count)
		memcpy(copy, data, count * size);
	return copy;
}

struct err *probes_find(const struct module_elf *elf, struct frame_table *frames,
			const struct resolve_request *request, struct arena *arena,
			struct resolve_reply *ret_reply)
{
	struct finder finder = { .elf = elf, .frames = frames, .arena = arena };
	struct err *err = find_all(&finder, request);

	if (!err)
		*ret_reply = (struct resolve_reply){
			.throws = place_throws(elf->main),
			.targets =
				copy_of(arena, finder.targets.data, finder.targets.count,
					sizeof(*finder.targets.data)),
			.target_count = finder.targets.count,
			.failures = copy_of(arena, finder.failures.data,
					    finder.failures.count,
					    sizeof(*finder.failures.data)),
			.failure_count = finder.failures.count,
		};
	vec_fini(&finder.targets);
	vec_fini(&finder.failures);
	dwarf_close(finder.dwarf);
	elf_functions_free(finder.functions);
	insn_decoder_close(finder.decoder);
	return err;
}
