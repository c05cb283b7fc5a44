// SPDX-License-Identifier: Apache-2.0
/*
 * Two passes over a unit. The first learns which types are stepped through and what
 * pointers point to; the second decides. Both begin with empty tables of types.
 */
#include "types/answer.h"

#include <string.h>

#include "core/mem.h"
#include "types/facts.h"
#include "types/keep.h"

#define MAX_OVERLAP (16u << 20) /* bytes of functions on top of others: damaged */

struct unit_result {
	struct str bytes;
	struct result result;
};

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
	recover->ordinals = mem_array(count + 1, sizeof(*recover->ordinals));
	for (size_t i = 0; i < count; i++) {
		bool is_same = i && order[i].unit == order[i - 1].unit;

		recover->by_unit[i] = order[i].function;
		recover->ordinals[order[i].function] =
			is_same ? recover->ordinals[order[i - 1].function] + 1 : 0;
	}
	free(order);
}

const uint32_t *answer_functions(struct recover *recover, uint32_t unit,
				 size_t *ret_count)
{
	size_t count, lo = 0, hi, end;
	const struct dwarf_function *functions = dwarf_functions(recover->dwarf, &count);

	if (!recover->by_unit)
		sort_by_unit(recover);
	for (hi = count; lo < hi;) {
		size_t middle = lo + (hi - lo) / 2;

		if (functions[recover->by_unit[middle]].unit < unit)
			lo = middle + 1;
		else
			hi = middle;
	}
	for (end = lo; end < count && functions[recover->by_unit[end]].unit == unit;)
		end++;
	*ret_count = end - lo;
	return recover->by_unit + lo;
}

/* Does the data flow of a function, and keeps what it shows about the unit. */
static bool follow(struct recover *recover, const struct dwarf_function *function)
{
	code_load(recover, function);
	return recover->code.cfg->block_count && facts_find(recover);
}

static void learn(struct recover *recover, const uint32_t *functions, size_t count)
{
	size_t all;
	const struct dwarf_function *every = dwarf_functions(recover->dwarf, &all);
	uint64_t done = 0;

	unit_load(recover, recover->unit);
	if (recover->keep)
		keep_types(recover->keep);
	for (size_t i = 0; i < count; i++) {
		const struct dwarf_function *function = &every[functions[i]];

		recover_tick(recover);
		/* Functions on top of each other: damaged, and the work has no bound. */
		if (function->va < done)
			continue;
		done = function->ranges[0].hi;
		if (follow(recover, function))
			facts_vote(recover->facts);
	}
	unit_count_votes(recover->unit);
}

/* What a compiler's code would lack, assembly never had. */
static void blame_assembly(struct recover *recover)
{
	if (dwarf_is_assembly(recover->dwarf, recover->code.function->va))
		vec_each(&recover->code.decisions, decision)
			if (decision->verdict == VERDICT_NO_TYPE)
				decision->verdict = VERDICT_ASSEMBLY;
}

static void decide(struct recover *recover, const struct dwarf_function *function)
{
	if (recover->options.dwarf_only) {
		code_load(recover, function);
		direct_decide(recover, &recover->code);
	} else if (follow(recover, function)) {
		facts_decide(recover->facts);
	} else {
		direct_decide(recover, &recover->code);
	}
	blame_assembly(recover);
	recover->code.is_decided = true;
}

static void find_out(struct recover *recover, uint32_t unit, struct str *out)
{
	CLEANUP(result_writer_free) struct result_writer *writer = result_writer_new();
	size_t all, count;
	const struct dwarf_function *every = dwarf_functions(recover->dwarf, &all);
	const uint32_t *functions = answer_functions(recover, unit, &count);
	uint64_t done = 0, overlap = 0;

	module_enter(recover, unit);
	if (recover->keep)
		keep_begin(recover->keep);
	if (!recover->options.dwarf_only)
		learn(recover, functions, count);
	for (size_t i = 0; i < count; i++) {
		const struct dwarf_function *function = &every[functions[i]];
		uint64_t end = function->ranges[0].hi;

		recover_tick(recover);
		if (function->va < done)
			overlap += end - function->va;
		if (overlap > MAX_OVERLAP) {
			result_skip_function(writer);
			continue;
		}
		done = end > done ? end : done;
		decide(recover, function);
		result_put_function(writer, recover);
		if (recover->keep)
			keep_code(recover->keep);
	}
	result_write(writer, out);
	if (recover->keep)
		keep_end(recover->keep, out);
}

const struct result *answer_unit(struct recover *recover, uint32_t unit)
{
	struct unit_result **slot = map_find(recover->results, &unit), *fresh;
	size_t count;

	if (slot)
		return &(*slot)->result;
	fresh = mem_alloc(sizeof(*fresh));
	answer_functions(recover, unit, &count);
	recover->units++;
	if (recover->keep && keep_find(recover->keep, unit, &fresh->result))
		recover->kept_units++;
	else
		find_out(recover, unit, &fresh->bytes);
	/* What we wrote we can read. */
	if (fresh->bytes.length &&
	    !result_open(fresh->bytes.data, fresh->bytes.length, &fresh->result))
		fresh->result = (struct result){ .functions = NULL };
	*(struct unit_result **)map_put(recover->results, &unit, NULL) = fresh;
	return &fresh->result;
}

static void result_free(struct unit_result *result)
{
	str_fini(&result->bytes);
	free(result);
}

void answer_forget(struct recover *recover, uint32_t unit)
{
	struct unit_result **slot = map_find(recover->results, &unit);

	if (!slot)
		return;
	result_free(*slot);
	map_del(recover->results, &unit);
}

void answer_forget_all(struct recover *recover)
{
	struct unit_result **slot;
	size_t pos = 0;

	while (recover->results && (slot = map_next(recover->results, &pos, NULL)))
		result_free(*slot);
	if (recover->results)
		map_clear(recover->results);
}

/* The function's own records, and the unit's result in @ret_result. */
static const struct result_record *records_of(struct recover *recover, uint32_t function,
					      size_t *ret_count)
{
	size_t all;
	const struct dwarf_function *every = dwarf_functions(recover->dwarf, &all);
	const struct result *result = answer_unit(recover, every[function].unit);
	uint32_t ordinal = recover->ordinals[function];

	*ret_count = 0;
	if (ordinal >= result->head.functions)
		return NULL;
	*ret_count = result->functions[ordinal].count;
	return result->records + result->functions[ordinal].first;
}

const struct result_record *answer_records(struct recover *recover, uint32_t function,
					   uint32_t range, size_t *ret_count)
{
	size_t count, first = 0, end;
	const struct result_record *records = records_of(recover, function, &count);

	while (first < count && records[first].range < range)
		first++;
	for (end = first; end < count && records[end].range == range;)
		end++;
	*ret_count = end - first;
	return records + first;
}

const struct result_record *answer_record(struct recover *recover, uint32_t function,
					  uint64_t va)
{
	size_t all, count;
	const struct dwarf_function *at =
		&dwarf_functions(recover->dwarf, &all)[function];

	for (uint32_t r = 0; r < at->range_count; r++) {
		if (va < at->ranges[r].lo || va >= at->ranges[r].hi)
			continue;

		const struct result_record *records =
			answer_records(recover, function, r, &count);

		for (size_t i = 0; i < count; i++)
			if (records[i].rel == va - at->ranges[r].lo)
				return &records[i];
	}
	return NULL;
}

void answer_fill(struct recover *recover, uint32_t function,
		 const struct result_record *record, struct answer *answer)
{
	size_t all;
	const struct dwarf_function *at =
		&dwarf_functions(recover->dwarf, &all)[function];
	const struct result *result = answer_unit(recover, at->unit);
	uint64_t va = record->range < at->range_count
			      ? at->ranges[record->range].lo + record->rel
			      : 0;

	*answer = (struct answer){ .va = va,
				   .insn_va = va,
				   .verdict = record->verdict,
				   .access = record->access,
				   .width = record->width,
				   .is_frame = record->is_frame,
				   .confidence = record->confidence,
				   .type = "",
				   .path = "" };
	if (!record->place)
		return;

	const struct result_place *place = &result->places[record->place];
	const struct result_type *type = &result->types[place->type];

	answer->type = result->text + type->name;
	answer->type_bytes = type->bytes;
	answer->offset = place->offset;
	answer->path = result->text + place->path;
	answer->field_offset = place->field_offset;
	answer->field_bytes = place->field_bytes;
}
