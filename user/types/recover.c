// SPDX-License-Identifier: Apache-2.0
/*
 * The door: an address to its function, the function's unit to answers (answer.c). The
 * whole-module pass and the single question run the same code.
 */
#include "types/recover.h"

#include <string.h>

#include "core/intern.h"
#include "core/mem.h"
#include "types/answer.h"
#include "types/keep.h"
#include "types/module.h"
#include "types/skid.h"

static void abstain(struct answer *answer, enum verdict verdict)
{
	answer->verdict = verdict;
	answer->type = answer->path = "";
	answer->confidence = 0;
}

/* Why there is no answer where no function is known. */
static enum verdict without_function(const struct recover *recover, uint64_t va)
{
	if (!recover->dwarf)
		return VERDICT_NO_DEBUG;
	return dwarf_is_assembly(recover->dwarf, va) ? VERDICT_ASSEMBLY
						     : VERDICT_NO_FUNCTION;
}

static uint32_t number_of(struct recover *recover, const struct dwarf_function *function)
{
	size_t count;

	return (uint32_t)(function - dwarf_functions(recover->dwarf, &count));
}

/* The access to charge for a sample at *@va; false when it is not unique. */
static bool undo_skid(struct recover *recover, const struct dwarf_function *function,
		      uint64_t *va)
{
	size_t at;

	if (recover->code.function != function)
		code_load(recover, function);
	at = code_find(&recover->code, *va);
	if (at == SIZE_MAX)
		return true;
	at = skid_access(recover->code.cfg, recover->code.insns.data, at);
	if (at == SIZE_MAX)
		return false;
	*va = recover->code.insns.data[at].va;
	return true;
}

void recover_at(struct recover *recover, uint64_t va, bool skid,
		struct answer *ret_answer)
{
	struct answer answer = { .va = va, .insn_va = va };
	const struct dwarf_function *function = NULL;
	const struct result_record *record;
	uint64_t asked = va;
	uint32_t number;

	if (recover->dwarf)
		function = dwarf_function_at(recover->dwarf, va);
	if (!function) {
		abstain(&answer, without_function(recover, va));
		*ret_answer = answer;
		return;
	}
	number = number_of(recover, function);
	answer_unit(recover, function->unit); /* first: it empties recover->code */
	if (skid && !undo_skid(recover, function, &va)) {
		abstain(&answer, VERDICT_SKID);
		*ret_answer = answer;
		return;
	}
	record = answer_record(recover, number, va);
	if (record)
		answer_fill(recover, number, record, &answer);
	else
		abstain(&answer, VERDICT_NO_MEMORY);
	answer.va = asked;
	*ret_answer = answer;
}

void recover_keep(struct recover *recover, struct str *pack, uint64_t version,
		  uint64_t content)
{
	keep_free(recover->keep);
	recover->keep = keep_new(recover, pack, version, content);
}

void recover_units(const struct recover *recover, uint64_t *ret_units, uint64_t *ret_kept)
{
	*ret_units = recover->units;
	*ret_kept = recover->kept_units;
}

bool recover_kept(struct recover *recover, bool all, size_t limit, struct str *out)
{
	if (!recover->keep)
		return false;
	if (all)
		keep_all(recover->keep);
	return keep_take(recover->keep, limit, out);
}

struct sweep {
	struct recover *recover;
	recover_fn each;
	recover_progress_fn progress;
	void *ctx;
	uint64_t lo, hi; /* the share */
	size_t done, ticks, total;
	struct map *left; /* unit -> parts still to come in this share */
	bool is_stopped;
};

void recover_tick(struct recover *recover)
{
	struct sweep *sweep = recover->sweep;
	size_t done;

	if (!sweep || !sweep->progress)
		return;
	/* A function is looked at twice. */
	done = sweep->done + ++sweep->ticks / 2;
	sweep->progress(sweep->ctx, done < sweep->total ? done : sweep->total,
			sweep->total);
}

static void put(struct sweep *sweep, const struct answer *answer)
{
	if (!sweep->is_stopped && !sweep->each(sweep->ctx, answer))
		sweep->is_stopped = true;
}

/* Bytes of the no-op at the begin of @code as compilers fill gaps with: prefixes, then 90,
 * or 0f 1f with an operand. 0: something else. */
static size_t filler_bytes(const uint8_t *code, size_t room)
{
	static const uint8_t displacements[] = { 0, 1, 4 };
	size_t at = 0;
	uint8_t mode, operand;

	while (at < room && (code[at] == 0x66 || code[at] == 0x2e))
		at++;
	if (at < room && code[at] == 0x90)
		return at + 1;
	if (room - at < 3 || code[at] != 0x0f || code[at + 1] != 0x1f)
		return 0;
	mode = code[at + 2] >> 6;
	operand = code[at + 2] & 7;
	if (mode == 3 || (!mode && operand >= 4))
		return 0;
	at += 3u + (operand == 4) + displacements[mode];
	return at <= room ? at : 0;
}

/* Code that no function with debug information covers: still counted. */
static void sweep_gap(struct sweep *sweep, uint64_t lo, uint64_t hi)
{
	struct recover *recover = sweep->recover;
	size_t room;

	lo = lo > sweep->lo ? lo : sweep->lo;
	hi = hi < sweep->hi ? hi : sweep->hi;

	const uint8_t *bytes = lo < hi ? elf_bytes_at(recover->main, lo, &room) : NULL;

	if (!bytes)
		return;
	if (room > hi - lo)
		room = hi - lo;
	while (room && !sweep->is_stopped) {
		struct insn insn = { .is_counted = false };
		size_t used = filler_bytes(bytes, room);

		if (!used)
			used = insn_decode(recover->decoder, bytes, room, lo, &insn);
		if (insn.is_counted)
			put(sweep,
			    &(struct answer){
				    .va = insn.va,
				    .insn_va = insn.va,
				    .verdict = without_function(recover, insn.va),
				    .access = insn.mems[0].access,
				    .width = insn.mems[0].width,
				    .is_frame = module_is_frame_access(recover, insn.va),
				    .type = "",
				    .path = "" });
		bytes += used;
		room -= used;
		lo += used;
	}
}

struct part {
	uint64_t lo, hi;
	uint32_t function, range;
};

struct parts {
	struct part *data;
	size_t count, room;
};

static int by_lo(const void *a, const void *b)
{
	const struct part *x = a, *y = b;

	return x->lo < y->lo ? -1 : x->lo > y->lo;
}

static bool is_text(const struct elf_section *section)
{
	return section->type == 1 /* PROGBITS */ && strstr(section->name, "text");
}

static void list_parts(struct recover *recover, struct parts *parts)
{
	size_t count = 0;
	const struct dwarf_function *functions =
		recover->dwarf ? dwarf_functions(recover->dwarf, &count) : NULL;

	for (size_t i = 0; i < count; i++)
		for (uint32_t r = 0; r < functions[i].range_count; r++)
			vec_push(parts, ((struct part){ functions[i].ranges[r].lo,
							functions[i].ranges[r].hi,
							(uint32_t)i, r }));
	if (parts->count)
		qsort(parts->data, parts->count, sizeof(*parts->data), by_lo);
}

static const uint32_t *unit_of(const struct sweep *sweep, const struct part *part)
{
	size_t count;

	return &dwarf_functions(sweep->recover->dwarf, &count)[part->function].unit;
}

/* Code that no function claims is cut where parts of functions begin; the outer shares
 * have no end. */
static void cut_gaps(struct sweep *sweep, const struct parts *parts, uint32_t index,
		     uint32_t count)
{
	size_t first = parts->count * index / count;
	size_t last = parts->count * (index + 1) / count;

	sweep->lo = index ? UINT64_MAX : 0;
	sweep->hi = UINT64_MAX;
	if (index && first < parts->count)
		sweep->lo = parts->data[first].lo;
	if (index + 1 < count && last < parts->count)
		sweep->hi = parts->data[last].lo;
}

struct unit_size {
	uint64_t bytes;
	bool is_dealt;
};

/* Units are dealt out whole, since each has to be analysed as a whole: in order of their
 * first addresses, by bytes of code. */
static void cut_share(struct sweep *sweep, const struct parts *parts, uint32_t index,
		      uint32_t count)
{
	struct map *sizes = map_new(sizeof(uint32_t), sizeof(struct unit_size));
	uint64_t all = 1, before = 0;

	cut_gaps(sweep, parts, index, count);
	for (size_t i = 0; i < parts->count; i++) {
		const struct part *part = &parts->data[i];
		struct unit_size *size = map_put(sizes, unit_of(sweep, part), NULL);

		size->bytes += part->hi - part->lo;
		all += part->hi - part->lo;
	}
	for (size_t i = 0; i < parts->count; i++) {
		const uint32_t *unit = unit_of(sweep, &parts->data[i]);
		struct unit_size *size = map_find(sizes, unit);

		if (!size->is_dealt && before * count / all == index)
			map_put(sweep->left, unit, NULL);
		if (!size->is_dealt)
			before += size->bytes;
		size->is_dealt = true;

		uint32_t *left = map_find(sweep->left, unit);

		if (!left)
			continue;
		sweep->total += !parts->data[i].range;
		++*left;
	}
	map_free(sizes);
}

static void sweep_part(struct sweep *sweep, const struct part *part)
{
	struct recover *recover = sweep->recover;
	const uint32_t *unit = unit_of(sweep, part);
	uint32_t *left = map_find(sweep->left, unit);
	const struct result_record *records;
	struct answer answer;
	size_t count;

	if (!left)
		return;
	records = answer_records(recover, part->function, part->range, &count);
	for (size_t i = 0; i < count; i++) {
		answer_fill(recover, part->function, &records[i], &answer);
		put(sweep, &answer);
	}
	sweep->ticks = 0;
	sweep->done += !part->range;
	if (sweep->progress && !part->range)
		sweep->progress(sweep->ctx, sweep->done, sweep->total);
	if (*left && !--*left)
		answer_forget(recover, *unit);
}

static void sweep_section(struct sweep *sweep, const struct parts *parts, size_t *next,
			  const struct elf_section *section)
{
	uint64_t at = section->va, end = at + section->bytes;

	while (*next < parts->count && parts->data[*next].lo < at)
		++*next;
	for (; *next < parts->count && parts->data[*next].lo < end; ++*next) {
		const struct part *part = &parts->data[*next];

		if (sweep->is_stopped)
			break;
		if (part->lo < at)
			continue; /* overlaps the one before */
		sweep_gap(sweep, at, part->lo);
		sweep_part(sweep, part);
		at = part->hi;
	}
	sweep_gap(sweep, at, end);
}

struct err *recover_share(struct recover *recover, uint32_t index, uint32_t count,
			  recover_fn each, recover_progress_fn progress, void *ctx)
{
	struct sweep sweep = {
		.recover = recover, .each = each, .progress = progress, .ctx = ctx
	};
	struct parts parts = { 0 };
	size_t section_count, next = 0;
	const struct elf_section *sections = elf_sections(recover->main, &section_count);

	if (index >= count)
		return err_new(ERR_INVALID, "share %u of %u", index, count);
	sweep.left = map_new(sizeof(uint32_t), sizeof(uint32_t));
	list_parts(recover, &parts);
	cut_share(&sweep, &parts, index, count);
	recover->sweep = &sweep;
	for (size_t s = 0; s < section_count && !sweep.is_stopped; s++)
		if (is_text(&sections[s]) && sections[s].va)
			sweep_section(&sweep, &parts, &next, &sections[s]);
	recover->sweep = NULL;
	vec_fini(&parts);
	map_free(sweep.left);
	return NULL;
}

struct err *recover_all(struct recover *recover, recover_fn each,
			recover_progress_fn progress, void *ctx)
{
	return recover_share(recover, 0, 1, each, progress, ctx);
}

/* The fields as facts, once per layout: a job asks for the same ones again and again. */
static const struct fact_field *fields_of(struct recover *recover,
					  const struct result *result,
					  const struct result_type *type)
{
	const struct result_field *fields = result->fields + type->first_field;
	uint64_t hash = type->id;
	struct fact_field **known, *made;
	bool is_new;

	for (uint32_t i = 0; i < type->fields; i++) {
		uint64_t place[] = { fields[i].offset, fields[i].bytes };

		hash = hash_text(result->text + fields[i].path,
				 hash_bytes(place, sizeof(place), hash));
	}
	known = map_put(recover->fields, &hash, &is_new);
	if (!is_new)
		return *known;
	*known = made = arena_array(recover->arena, type->fields + 1, sizeof(*made));
	for (uint32_t i = 0; i < type->fields; i++)
		made[i] = (struct fact_field){
			.type_id = type->id,
			.offset = fields[i].offset,
			.bytes = fields[i].bytes,
			.path = arena_strdup(recover->arena,
					     result->text + fields[i].path),
		};
	return made;
}

bool recover_type(struct recover *recover, const struct answer *answer,
		  struct fact_type *ret_type, const struct fact_field **ret_fields,
		  size_t *ret_count)
{
	const struct dwarf_function *function;
	const struct result_record *record;

	if (!verdict_is_claim(answer->verdict) || !recover->dwarf)
		return false;
	function = dwarf_function_at(recover->dwarf, answer->insn_va);
	if (!function)
		return false;
	record = answer_record(recover, number_of(recover, function), answer->insn_va);
	if (!record || !record->place)
		return false;

	const struct result *result = answer_unit(recover, function->unit);
	const struct result_type *type =
		&result->types[result->places[record->place].type];

	*ret_fields = fields_of(recover, result, type);
	*ret_count = type->fields;
	*ret_type = (struct fact_type){ .type_id = type->id,
					.name = arena_strdup(recover->arena,
							     result->text + type->name),
					.bytes = type->bytes };
	return true;
}
