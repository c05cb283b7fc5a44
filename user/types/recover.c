// SPDX-License-Identifier: Apache-2.0
/*
 * The door: an address to its function, the function to decisions, a decision to an
 * answer with names. The whole-module pass and the single question run the same code;
 * the function analysed last is kept, so questions in order of address cost one
 * analysis each.
 */
#include "types/recover.h"

#include <string.h>

#include "core/intern.h"
#include "core/mem.h"
#include "types/facts.h"
#include "types/module.h"
#include "types/skid.h"

#define MAX_FIELDS 65536 /* listed of one type */

/* Does the data flow of a function, and keeps what it shows about the unit. */
static bool follow(struct recover *recover, const struct dwarf_function *function)
{
	code_load(recover, function);
	return recover->code.cfg->block_count && facts_find(recover);
}

struct by_unit {
	uint32_t unit, function;
};

static int compare_units(const void *a, const void *b)
{
	const struct by_unit *x = a, *y = b;

	if (x->unit != y->unit)
		return x->unit < y->unit ? -1 : 1;
	return x->function < y->function ? -1 : x->function > y->function;
}

static void sort_by_unit(struct recover *recover)
{
	size_t count;
	const struct dwarf_function *functions = dwarf_functions(recover->dwarf, &count);
	struct by_unit *order = mem_array(count + 1, sizeof(*order));

	for (size_t i = 0; i < count; i++)
		order[i] = (struct by_unit){ functions[i].unit, (uint32_t)i };
	if (count)
		qsort(order, count, sizeof(*order), compare_units);
	recover->by_unit = mem_array(count + 1, sizeof(*recover->by_unit));
	for (size_t i = 0; i < count; i++)
		recover->by_unit[i] = order[i].function;
	free(order);
}

/* First pass over a unit: which types are stepped through, what pointers point to. */
static void learn(struct recover *recover, uint32_t number)
{
	struct unit *unit = module_unit(recover, number);
	size_t count, lo = 0, hi;
	uint64_t done = 0;
	const struct dwarf_function *functions = dwarf_functions(recover->dwarf, &count);

	if (unit->is_learnt)
		return;
	unit->is_learnt = true;
	unit_load(recover, unit);
	if (!recover->by_unit)
		sort_by_unit(recover);
	for (hi = count; lo < hi;) {
		size_t middle = lo + (hi - lo) / 2;

		if (functions[recover->by_unit[middle]].unit < number)
			lo = middle + 1;
		else
			hi = middle;
	}
	for (; lo < count && functions[recover->by_unit[lo]].unit == number; lo++) {
		const struct dwarf_function *function = &functions[recover->by_unit[lo]];

		/* Functions on top of each other: damaged, and the work has no bound. */
		if (function->va < done)
			continue;
		done = function->ranges[0].hi;
		if (follow(recover, function))
			facts_vote(recover->facts);
	}
	unit_count_votes(unit);
}

static void analyse(struct recover *recover, const struct dwarf_function *function)
{
	if (recover->code.function == function && recover->code.is_decided)
		return;
	if (recover->options.dwarf_only) {
		code_load(recover, function);
		direct_decide(recover, &recover->code);
	} else {
		learn(recover, function->unit);
		if (follow(recover, function))
			facts_decide(recover->facts);
		else
			direct_decide(recover, &recover->code);
	}
	recover->code.is_decided = true;
}

/* Through the stack pointer, or through rbp where that holds the frame. */
static bool is_frame_access(struct recover *recover, uint64_t va)
{
	const struct insn_abi *abi = insn_abi(recover->decoder);
	size_t at = code_find(&recover->code, va), room;
	const struct insn *insn = NULL;
	unsigned cfa_reg;
	int64_t cfa_off;
	struct insn decoded;

	if (at != SIZE_MAX) {
		insn = &recover->code.insns.data[at];
	} else {
		const uint8_t *bytes = elf_bytes_at(recover->main, va, &room);

		if (!bytes || !insn_decode(recover->decoder, bytes, room, va, &decoded))
			return false;
		insn = &decoded;
	}
	if (!insn->mem_count || insn->mems[0].segment != INSN_FLAT)
		return false;
	if (insn->mems[0].base == abi->stack)
		return true;
	return insn->mems[0].base == abi->frame &&
	       frame_cfa_at(recover->frame, va, &cfa_reg, &cfa_off) &&
	       cfa_reg == abi->frame;
}

/* Names and fields of a decision. */
static void spell(struct recover *recover, const struct decision *decision,
		  struct answer *answer)
{
	struct dtype_place place = { 0 };

	answer->insn_va = decision->va;
	answer->verdict = decision->verdict;
	answer->access = decision->access;
	answer->width = decision->width;
	answer->is_frame = is_frame_access(recover, decision->va);
	answer->type = answer->path = "";
	if (!verdict_is_claim(answer->verdict))
		return;
	answer->confidence = decision->confidence;
	answer->type = dwarf_type_name(recover->dwarf, decision->type, &recover->name);
	answer->type_bytes = dtype_get(recover->types, decision->type)->bytes;
	answer->offset = decision->offset;
	str_clear(&recover->path);
	dtype_path(recover->types, decision->type, (uint64_t)decision->offset,
		   decision->width ? decision->width : 1, &recover->path, &place);
	answer->path = str_text(&recover->path);
	answer->field_offset = place.offset;
	answer->field_bytes = place.bytes;
}

static void abstain(struct answer *answer, enum verdict verdict)
{
	answer->verdict = verdict;
	answer->type = answer->path = "";
	answer->confidence = 0;
}

static const struct decision *decision_at(const struct code *code, uint64_t va)
{
	size_t lo = 0, hi = code->decisions.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (code->decisions.data[middle].va < va)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (lo == code->decisions.count || code->decisions.data[lo].va != va)
		return NULL;
	return &code->decisions.data[lo];
}

void recover_at(struct recover *recover, uint64_t va, bool skid,
		struct answer *ret_answer)
{
	struct answer answer = { .va = va, .insn_va = va };
	const struct dwarf_function *function = NULL;
	const struct decision *decision;
	size_t at;

	if (!recover->dwarf)
		abstain(&answer, VERDICT_NO_DEBUG);
	else if (!(function = dwarf_function_at(recover->dwarf, va)))
		abstain(&answer, VERDICT_NO_FUNCTION);
	if (!function) {
		*ret_answer = answer;
		return;
	}
	analyse(recover, function);
	at = code_find(&recover->code, va);
	if (at != SIZE_MAX && skid) {
		at = skid_access(recover->code.cfg, recover->code.insns.data, at);
		if (at == SIZE_MAX) {
			abstain(&answer, VERDICT_SKID);
			*ret_answer = answer;
			return;
		}
		va = recover->code.insns.data[at].va;
	}
	decision = decision_at(&recover->code, va);
	if (decision)
		spell(recover, decision, &answer);
	else
		abstain(&answer, VERDICT_NO_MEMORY);
	*ret_answer = answer;
}

/* Code that no function with debug information covers: still counted. */
struct sweep {
	struct recover *recover;
	recover_fn each;
	recover_progress_fn progress;
	void *ctx;
	uint64_t lo, hi; /* the share */
	size_t done, total;
	bool is_stopped;
	VEC(struct decision) later; /* of cold parts, behind the current function */
};

static void put(struct sweep *sweep, const struct decision *decision)
{
	struct answer answer = { .va = decision->va };

	spell(sweep->recover, decision, &answer);
	if (!sweep->is_stopped && !sweep->each(sweep->ctx, &answer))
		sweep->is_stopped = true;
}

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
		struct insn insn;
		size_t used = insn_decode(recover->decoder, bytes, room, lo, &insn);

		if (insn.is_counted)
			put(sweep, &(struct decision){
					   .va = insn.va,
					   .verdict = recover->dwarf ? VERDICT_NO_FUNCTION
								     : VERDICT_NO_DEBUG,
					   .access = insn.mems[0].access,
					   .width = insn.mems[0].width });
		bytes += used;
		room -= used;
		lo += used;
	}
}

struct part {
	uint64_t lo, hi;
	uint32_t function;
	bool is_first; /* has the entry: the function is analysed here */
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

static int by_va(const void *a, const void *b)
{
	const struct decision *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

/* Analyse a function; emit what lies in [lo, hi), keep the rest for its turn. */
static void sweep_function(struct sweep *sweep, const struct part *part,
			   const struct dwarf_function *function)
{
	analyse(sweep->recover, function);
	vec_each(&sweep->recover->code.decisions, decision) {
		if (decision->va >= part->lo && decision->va < part->hi)
			put(sweep, decision);
		else if (part->is_first)
			vec_push(&sweep->later, *decision);
	}
	if (part->is_first && sweep->later.count)
		qsort(sweep->later.data, sweep->later.count, sizeof(*sweep->later.data),
		      by_va);
}

static bool sweep_later(struct sweep *sweep, const struct part *part)
{
	struct decision key = { .va = part->lo };
	size_t lo = 0, hi = sweep->later.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (by_va(&sweep->later.data[middle], &key) < 0)
			lo = middle + 1;
		else
			hi = middle;
	}
	if (lo == sweep->later.count || sweep->later.data[lo].va >= part->hi)
		return false;
	for (; lo < sweep->later.count && sweep->later.data[lo].va < part->hi; lo++)
		put(sweep, &sweep->later.data[lo]);
	return true;
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
							(uint32_t)i, !r }));
	if (parts->count)
		qsort(parts->data, parts->count, sizeof(*parts->data), by_lo);
}

/* Shares are cut where parts of functions begin; the outer ones have no end. */
static void cut_share(struct sweep *sweep, const struct parts *parts, uint32_t index,
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
	for (size_t i = first; i < last; i++)
		sweep->total += parts->data[i].is_first;
}

static void sweep_part(struct sweep *sweep, const struct part *part)
{
	size_t count;
	const struct dwarf_function *functions =
		dwarf_functions(sweep->recover->dwarf, &count);

	if (part->lo < sweep->lo || part->lo >= sweep->hi)
		return;
	if (part->is_first || !sweep_later(sweep, part))
		sweep_function(sweep, part, &functions[part->function]);
	sweep->done += part->is_first;
	if (sweep->progress && part->is_first)
		sweep->progress(sweep->ctx, sweep->done, sweep->total);
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
	list_parts(recover, &parts);
	cut_share(&sweep, &parts, index, count);
	for (size_t s = 0; s < section_count && !sweep.is_stopped; s++)
		if (is_text(&sections[s]) && sections[s].va)
			sweep_section(&sweep, &parts, &next, &sections[s]);
	vec_fini(&parts);
	vec_fini(&sweep.later);
	return NULL;
}

struct err *recover_all(struct recover *recover, recover_fn each,
			recover_progress_fn progress, void *ctx)
{
	return recover_share(recover, 0, 1, each, progress, ctx);
}

struct field_list {
	struct arena *arena;
	VEC(struct fact_field) fields;
	uint64_t type_id;
};

static void add_field(void *ctx, const char *path, uint64_t offset, uint64_t bytes)
{
	struct field_list *list = ctx;

	vec_push(&list->fields,
		 ((struct fact_field){ .type_id = list->type_id,
				       .offset = offset,
				       .bytes = bytes,
				       .path = arena_strdup(list->arena, path) }));
}

bool recover_type(struct recover *recover, const struct answer *answer,
		  struct fact_type *ret_type, const struct fact_field **ret_fields,
		  size_t *ret_count)
{
	const struct decision *decision;
	const struct dtype *type;
	struct answer again;
	bool is_new;

	if (!verdict_is_claim(answer->verdict))
		return false;
	recover_at(recover, answer->insn_va, false, &again);
	decision = decision_at(&recover->code, answer->insn_va);
	if (!decision || !decision->type)
		return false;
	type = dtype_get(recover->types, decision->type);

	const char *name =
		dwarf_type_name(recover->dwarf, decision->type, &recover->name);
	uint32_t key = decision->type;
	struct type_fields *known = map_put(recover->fields, &key, &is_new);

	*ret_type = (struct fact_type){ .type_id = type->hash ^ hash_text(name, 0),
					.name = arena_strdup(recover->arena, name),
					.bytes = type->bytes };
	if (is_new) {
		struct field_list list = { .arena = recover->arena,
					   .type_id = ret_type->type_id };

		dtype_each_leaf(recover->types, decision->type, MAX_FIELDS, add_field,
				&list);
		known->fields = arena_array(recover->arena, list.fields.count + 1,
					    sizeof(*known->fields));
		if (list.fields.count)
			memcpy(known->fields, list.fields.data,
			       list.fields.count * sizeof(*known->fields));
		known->count = list.fields.count;
		vec_fini(&list.fields);
	}
	*ret_fields = known->fields;
	*ret_count = known->count;
	return true;
}
