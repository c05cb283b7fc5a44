// SPDX-License-Identifier: Apache-2.0
/*
 * A type as it lies in memory, cache line by cache line, with the samples on each field.
 * The lines are those of a type that starts at one; most allocators do not promise that,
 * which is said below the drawing.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/layout.h"
#include "cli/number.h"
#include "cli/report.h"
#include "core/arena.h"
#include "core/mem.h"
#include "core/str.h"

#define HEAT_WIDTH 10	/* characters for the hottest field */
#define HOT_SHARE  0.8	/* hot lines: the fewest that have this share of the samples */
#define MAX_LINES  4096 /* of a type, for the hot ones */

static const struct option_spec options[] = {
	{ "module", 'm', OPTION_TEXT, "NAME",
	  "the type of this name that this file's code uses", 0, 0 },
	{ "since", 's', OPTION_DURATION, "TIME", "only samples of the last TIME", 0, 0 },
	{ "run", 'r', OPTION_TEXT, "RUN", "only this run; see assay status", 0, 0 },
	{ "min-confidence", 'c', OPTION_TEXT, "C",
	  "only answers at least this sure, 0 to 1", 0, 0 },
	{ 0 },
};

struct heat {
	int64_t samples, loads, stores, dram, remote, tlb_miss, hitm, l1, l2, l3;
	double share, mean_cycles;
};

struct drawing {
	struct arena *arena;
	char *type, *modules;
	uint64_t type_id, bytes;
	size_t candidates;
	VEC(struct layout_field) fields;
	VEC(struct heat) heats; /* of each field */
	VEC(uint64_t) line_samples;
	int64_t samples, unknown, hottest;
};

static void drawing_fini(struct drawing *drawing)
{
	vec_fini(&drawing->fields);
	vec_fini(&drawing->heats);
	vec_fini(&drawing->line_samples);
	arena_free(drawing->arena);
}

static inline void cleanup_drawing_fini(struct drawing *drawing)
{
	drawing_fini(drawing);
}

/* The first one has the most samples. */
static void take_type(void *ctx, const struct report_row *row)
{
	struct drawing *drawing = ctx;

	if (drawing->candidates++)
		return;
	drawing->type = arena_strdup(drawing->arena, row_text(row, "type"));
	drawing->modules = arena_strdup(drawing->arena, row_text(row, "modules"));
	drawing->bytes = (uint64_t)row_integer(row, "bytes");
	drawing->type_id = (uint64_t)row_integer(row, "type_id");
}

static void take_field(void *ctx, const struct report_row *row)
{
	struct drawing *drawing = ctx;
	struct heat heat = { .samples = row_integer(row, "samples"),
			     .loads = row_integer(row, "loads"),
			     .stores = row_integer(row, "stores"),
			     .l1 = row_integer(row, "l1"),
			     .l2 = row_integer(row, "l2"),
			     .l3 = row_integer(row, "l3"),
			     .dram = row_integer(row, "dram"),
			     .remote = row_integer(row, "remote"),
			     .tlb_miss = row_integer(row, "tlb_miss"),
			     .hitm = row_integer(row, "hitm"),
			     .share = row_real(row, "share_of_type"),
			     .mean_cycles = row_real(row, "mean_cycles") };
	struct layout_field field = { .offset =
					      (uint64_t)row_integer(row, "offset_bytes"),
				      .bytes = (uint64_t)row_integer(row, "bytes") };
	uint64_t line = field.offset / LAYOUT_LINE_BYTES;

	drawing->samples += heat.samples;
	if (heat.samples > drawing->hottest)
		drawing->hottest = heat.samples;
	while (line < MAX_LINES && drawing->line_samples.count <= line)
		vec_push(&drawing->line_samples, 0);
	if (line < MAX_LINES)
		drawing->line_samples.data[line] += (uint64_t)heat.samples;
	if (!row_integer(row, "is_field")) {
		drawing->unknown += heat.samples;
		return;
	}
	layout_parse(arena_strdup(drawing->arena, row_text(row, "field")), &field);
	vec_push(&drawing->fields, field);
	vec_push(&drawing->heats, heat);
}

enum cells {
	CELL_KIND,
	CELL_LINE,
	CELL_OFFSET,
	CELL_BIT,
	CELL_BITS,
	CELL_BYTES,
	CELL_SIZE,
	CELL_FIELD,
	CELL_SAMPLES,
	CELL_SHARE,
	CELL_HEAT,
	CELL_LOADS,
	CELL_STORES,
	CELL_CYCLES,
	CELL_L1,
	CELL_L2,
	CELL_L3,
	CELL_DRAM,
	CELL_REMOTE,
	CELL_TLB_MISS,
	CELL_HITM,
	CELLS,
};

static const struct column columns[CELLS] = {
	[CELL_KIND] = { "kind", "KIND", COLUMN_TEXT, COLUMN_MACHINE },
	[CELL_LINE] = { "line", "LINE", COLUMN_NUMBER, COLUMN_MACHINE },
	[CELL_OFFSET] = { "offset_bytes", "OFFSET", COLUMN_NUMBER, 0 },
	[CELL_BIT] = { "bit", "BIT", COLUMN_NUMBER, COLUMN_MACHINE },
	[CELL_BITS] = { "bits", "BITS", COLUMN_NUMBER, COLUMN_MACHINE },
	[CELL_BYTES] = { "bytes", "BYTES", COLUMN_NUMBER, COLUMN_MACHINE },
	[CELL_SIZE] = { "size", "SIZE", COLUMN_TEXT, 0 },
	[CELL_FIELD] = { "field", "FIELD", COLUMN_TEXT, COLUMN_CUT },
	[CELL_SAMPLES] = { "samples", "SAMPLES", COLUMN_COUNT, 0 },
	[CELL_SHARE] = { "share_of_type", "SHARE", COLUMN_SHARE, 0 },
	[CELL_HEAT] = { "heat", "HEAT", COLUMN_TEXT, COLUMN_IF_ANY },
	[CELL_LOADS] = { "loads", "LOADS", COLUMN_COUNT, COLUMN_IF_ANY },
	[CELL_STORES] = { "stores", "STORES", COLUMN_COUNT, COLUMN_IF_ANY },
	[CELL_CYCLES] = { "mean_cycles", "CYCLES", COLUMN_NUMBER, COLUMN_IF_ANY },
	[CELL_L1] = { "l1", "L1", COLUMN_COUNT, COLUMN_IF_ANY },
	[CELL_L2] = { "l2", "L2", COLUMN_COUNT, COLUMN_IF_ANY },
	[CELL_L3] = { "l3", "L3", COLUMN_COUNT, COLUMN_IF_ANY },
	[CELL_DRAM] = { "dram", "DRAM", COLUMN_COUNT, COLUMN_IF_ANY },
	[CELL_REMOTE] = { "remote", "REMOTE", COLUMN_COUNT, COLUMN_IF_ANY },
	[CELL_TLB_MISS] = { "tlb_miss", "TLB MISS", COLUMN_COUNT, COLUMN_IF_ANY },
	[CELL_HITM] = { "hitm", "HITM", COLUMN_COUNT, COLUMN_IF_ANY },
};

static void put_heat(struct table *table, const struct heat *heat, int64_t hottest)
{
	const struct {
		size_t cell;
		int64_t value;
	} numbers[] = {
		{ CELL_LOADS, heat->loads },   { CELL_STORES, heat->stores },
		{ CELL_L1, heat->l1 },	       { CELL_L2, heat->l2 },
		{ CELL_L3, heat->l3 },	       { CELL_DRAM, heat->dram },
		{ CELL_HITM, heat->hitm },     { CELL_TLB_MISS, heat->tlb_miss },
		{ CELL_REMOTE, heat->remote },
	};
	char bar[HEAT_WIDTH + 1] = "";

	if (!heat->samples)
		return;
	table_number(table, CELL_SAMPLES, heat->samples);
	table_real(table, CELL_SHARE, heat->share);
	for (size_t i = 0; i < sizeof(numbers) / sizeof(*numbers); i++)
		table_number(table, numbers[i].cell, numbers[i].value);
	if (heat->mean_cycles > 0)
		table_real(table, CELL_CYCLES, heat->mean_cycles);
	memset(bar, '#', (size_t)(heat->samples * HEAT_WIDTH + hottest - 1) / hottest);
	table_text(table, CELL_HEAT, bar);
}

static void put_size(struct table *table, const struct layout_row *row)
{
	CLEANUP(free)
	char *size = row->bits % 8 ? mem_printf("%" PRIu64 " bit%s", row->bits,
						row->bits == 1 ? "" : "s")
				   : mem_printf("%" PRIu64, row->bits / 8);

	table_number(table, CELL_BITS, (int64_t)row->bits);
	table_text(table, CELL_SIZE, size);
}

static void put_row(struct table *table, const struct drawing *drawing,
		    const struct layout_row *row)
{
	bool has_field = row->kind == LAYOUT_FIELD || row->kind == LAYOUT_OVERLAY;
	CLEANUP(str_fini) struct str name = { 0 };

	table_row(table);
	table_text(table, CELL_KIND, layout_kind_name(row->kind));
	table_number(table, CELL_LINE, (int64_t)row->line);
	table_number(table, CELL_OFFSET, (int64_t)row->offset);
	put_size(table, row);
	if (!has_field) {
		str_printf(&name, "(%s)", layout_kind_name(row->kind));
		table_text(table, CELL_FIELD, str_text(&name));
		return;
	}
	const struct layout_field *field = &drawing->fields.data[row->field];

	str_printf(&name, "%s%s", row->kind == LAYOUT_OVERLAY ? "| " : "", field->path);
	if (field->bits)
		str_printf(&name, ":%u", field->bits);
	if (row->last_line > row->line)
		str_printf(&name, " (to line %" PRIu64 ")", row->last_line);
	table_text(table, CELL_FIELD, str_text(&name));
	table_number(table, CELL_BYTES, (int64_t)field->bytes);
	if (field->bits)
		table_number(table, CELL_BIT, field->bit);
	put_heat(table, &drawing->heats.data[row->field], drawing->hottest);
}

static void put_line(struct table *table, const struct drawing *drawing, uint64_t line)
{
	CLEANUP(free) char *name = mem_printf("-- line %" PRIu64 " --", line);
	int64_t samples = line < drawing->line_samples.count
				  ? (int64_t)drawing->line_samples.data[line]
				  : 0;

	table_row(table);
	table_text(table, CELL_KIND, "line");
	table_number(table, CELL_LINE, (int64_t)line);
	table_number(table, CELL_OFFSET, (int64_t)(line * LAYOUT_LINE_BYTES));
	table_number(table, CELL_BYTES, LAYOUT_LINE_BYTES);
	table_text(table, CELL_FIELD, name);
	if (!samples)
		return;
	table_number(table, CELL_SAMPLES, samples);
	table_real(table, CELL_SHARE, (double)samples / (double)drawing->samples);
}

static struct table *draw(const struct drawing *drawing, uint64_t *ret_hole_bits)
{
	struct table *table = table_new(columns, CELLS);
	struct layout_rows rows = { 0 };
	uint64_t next_line = 0;

	layout_draw(drawing->fields.data, drawing->fields.count, drawing->bytes, &rows);
	*ret_hole_bits = 0;
	vec_each(&rows.rows, row) {
		if (row->line >= next_line)
			put_line(table, drawing, row->line);
		if (row->line >= next_line)
			next_line = row->line + 1;
		put_row(table, drawing, row);
		if (row->kind == LAYOUT_HOLE || row->kind == LAYOUT_PADDING)
			*ret_hole_bits += row->bits;
	}
	vec_fini(&rows.rows);
	table_settle(table, COLUMN_COUNT);
	return table;
}

/* The hottest lines first, until they have HOT_SHARE of the samples; in order. */
static json_t *hot_lines(const struct drawing *drawing, struct str *text)
{
	size_t count = drawing->line_samples.count;
	bool *is_hot = mem_array(count + 1, sizeof(*is_hot));
	double left = HOT_SHARE * (double)drawing->samples;
	json_t *list = json_array();

	while (left > 0) {
		size_t best = count;

		for (size_t i = 0; i < count; i++)
			if (!is_hot[i] && drawing->line_samples.data[i] &&
			    (best == count || drawing->line_samples.data[i] >
						      drawing->line_samples.data[best]))
				best = i;
		if (best == count)
			break;
		is_hot[best] = true;
		left -= (double)drawing->line_samples.data[best];
	}
	for (size_t i = 0; i < count; i++) {
		if (!is_hot[i])
			continue;
		str_printf(text, "%s%zu", text->length ? ", " : "", i);
		json_array_append_new(list, json_integer((json_int_t)i));
	}
	free(is_hot);
	return list;
}

static void put_notes(struct output *out, const struct drawing *drawing,
		      uint64_t hole_bits)
{
	CLEANUP(str_fini) struct str hot = { 0 };
	uint64_t lines = (drawing->bytes + LAYOUT_LINE_BYTES - 1) / LAYOUT_LINE_BYTES;
	json_t *list = hot_lines(drawing, &hot);

	output_value(out, "type", json_text(drawing->type));
	output_value(out, "type_id", json_id(drawing->type_id));
	output_value(out, "modules", json_text(drawing->modules));
	output_value(out, "bytes", json_integer((json_int_t)drawing->bytes));
	output_value(out, "lines", json_integer((json_int_t)lines));
	output_value(out, "unused_bits", json_integer((json_int_t)hole_bits));
	output_value(out, "samples", json_integer(drawing->samples));
	output_value(out, "hot_lines", list);
	output_gap(out);
	output_note(out,
		    "%" PRIu64 " bytes, %" PRIu64
		    " line%s of %d if it starts at one; %" PRIu64 " bytes %" PRIu64
		    " bits unused.",
		    drawing->bytes, lines, lines == 1 ? "" : "s", LAYOUT_LINE_BYTES,
		    hole_bits / 8, hole_bits % 8);
	if (hot.length)
		output_note(out, "hot lines (80%% of the samples): %s.", str_text(&hot));
	if (drawing->unknown)
		output_note(out, "%" PRId64 " samples are on no field by name.",
			    drawing->unknown);
	if (drawing->candidates > 1)
		output_note(out,
			    "%zu types have this name; this is the one with the most "
			    "samples (%s): choose with --module.",
			    drawing->candidates,
			    *drawing->modules ? drawing->modules : "no module");
}

static struct err *no_type(const struct report_scope *scope)
{
	if (scope->module)
		return err_new(ERR_NOT_FOUND,
			       "no type '%s' that code of %s uses; 'assay types' lists "
			       "the sampled ones",
			       scope->type, scope->module);
	return err_new(ERR_NOT_FOUND,
		       "no type '%s' in the database: 'assay types' lists the sampled "
		       "ones, 'assay analyze FILE --db' adds those of a file",
		       scope->type);
}

static struct err *run_layout(struct cli *cli)
{
	struct report_scope scope;
	uint64_t hole_bits;
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(table_free) struct table *table = NULL;
	CLEANUP(drawing_fini) struct drawing drawing = { 0 };

	drawing.arena = arena_new();
	TRY(report_scope(cli, &scope));
	scope.type = cli_arg(cli, 0);
	scope.module = option_text(&cli->options, "module", NULL);
	TRY(report_open(report_db_path(cli), &db));
	TRY(report_each(db, "layouts", &scope, take_type, &drawing));
	if (!drawing.candidates)
		return no_type(&scope);
	scope.type_id = drawing.type_id;
	TRY(report_each(db, "layout", &scope, take_field, &drawing));
	table = draw(&drawing, &hole_bits);
	TRY(output_table(&cli->out, "layout", drawing.type, table));
	put_notes(&cli->out, &drawing, hole_bits);
	return NULL;
}

const struct cmd cmd_layout = {
	.name = "layout",
	.args = "TYPE",
	.summary = "a struct drawn by cache line, with the samples on each field",
	.text = "Draw a struct or union as it lies in memory: its fields with offset and "
		"size, nested ones by their path, an array as one field, bit-fields with "
		"their width, and the holes and padding between them. HEAT and SAMPLES "
		"say how often the sampled accesses went to a field; loads, stores, "
		"latency, cache level, TLB misses and HITM follow where the source of the "
		"samples knows them.\n\n"
		"A field marked | shares its bytes with one above: a union. The line of "
		"an array's samples is that of its first element.\n\n"
		"TYPE may be written with or without struct, union or class.",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.examples = { { "the hot fields of a struct", "assay layout 'struct redisDb'" },
		      { "of two types with one name, that of a library",
			"assay layout dict --module libold.so" },
		      { "for a program", "assay layout robj --json" } },
	.run = run_layout,
};
