// SPDX-License-Identifier: Apache-2.0
/*
 * Cells keep what they were given; each printer asks the column's kind how to write it.
 * libsmartcols pads; which columns fit a terminal, and what is cut, is decided here,
 * because a call path must keep its end. Control bytes are replaced: comm names and
 * paths come from other people's processes.
 */
#include "cli/table.h"

#include <errno.h>
#include <inttypes.h>
#include <libsmartcols.h>
#include <string.h>

#include "cli/number.h"
#include "core/arena.h"
#include "core/str.h"
#include "core/vec.h"

#define TABLE_MIN_CUT 6 /* what a cut column keeps */

enum cell_kind { CELL_NONE, CELL_TEXT, CELL_NUMBER, CELL_REAL };

struct cell {
	enum cell_kind kind;
	union {
		const char *text;
		int64_t number;
		double real;
	};
};

struct table {
	struct arena *arena;
	struct column *columns;
	size_t count, rows;
	VEC(struct cell) cells;
};

struct table *table_new(const struct column *columns, size_t count)
{
	struct table *table = mem_alloc(sizeof(*table));

	if (count > TABLE_MAX_COLUMNS)
		abort(); /* the store's limit is lower */

	table->arena = arena_new();
	table->count = count;
	table->columns = arena_array(table->arena, count ? count : 1, sizeof(*columns));
	for (size_t i = 0; i < count; i++) {
		table->columns[i] = columns[i];
		table->columns[i].name = arena_strdup(table->arena, columns[i].name);
		table->columns[i].head = arena_strdup(table->arena, columns[i].head);
	}
	return table;
}

void table_free(struct table *table)
{
	if (!table)
		return;
	vec_fini(&table->cells);
	arena_free(table->arena);
	free(table);
}

void table_row(struct table *table)
{
	for (size_t i = 0; i < table->count; i++)
		vec_push(&table->cells, (struct cell){ .kind = CELL_NONE });
	table->rows++;
}

static struct cell *last_row_cell(struct table *table, size_t column)
{
	return &table->cells.data[table->cells.count - table->count + column];
}

void table_text(struct table *table, size_t column, const char *text)
{
	*last_row_cell(table, column) =
		(struct cell){ .kind = CELL_TEXT,
			       .text = arena_strdup(table->arena, text) };
}

void table_number(struct table *table, size_t column, int64_t number)
{
	*last_row_cell(table, column) =
		(struct cell){ .kind = CELL_NUMBER, .number = number };
}

void table_real(struct table *table, size_t column, double number)
{
	*last_row_cell(table, column) =
		(struct cell){ .kind = CELL_REAL, .real = number };
}

size_t table_rows(const struct table *table)
{
	return table->rows;
}

static const struct cell *cell_at(const struct table *table, size_t row, size_t column)
{
	return &table->cells.data[row * table->count + column];
}

static bool says_something(const struct cell *cell)
{
	return cell->kind == CELL_TEXT	   ? *cell->text != 0
	       : cell->kind == CELL_NUMBER ? cell->number != 0
					   : cell->kind == CELL_REAL && cell->real != 0;
}

void table_settle(struct table *table, enum column_kind number)
{
	for (size_t i = 0; i < table->count; i++) {
		struct column *column = &table->columns[i];
		bool has_text = false, says = false;

		for (size_t row = 0; row < table->rows; row++) {
			has_text |= cell_at(table, row, i)->kind == CELL_TEXT;
			says |= says_something(cell_at(table, row, i));
		}
		if (column->kind == COLUMN_AUTO)
			column->kind = has_text ? COLUMN_TEXT : number;
		if ((column->flags & COLUMN_IF_ANY) && !says)
			column->flags |= COLUMN_MACHINE;
	}
}

static char *exact_number(enum column_kind kind, int64_t number)
{
	switch (kind) {
	case COLUMN_HEX:
		return mem_printf("0x%" PRIx64, (uint64_t)number);
	case COLUMN_ID:
		return mem_printf("0x%016" PRIx64, (uint64_t)number);
	default:
		return mem_printf("%" PRId64, number);
	}
}

static char *people_number(enum column_kind kind, int64_t number)
{
	uint64_t value = (uint64_t)number;

	switch (kind) {
	case COLUMN_COUNT:
		return number < 0 ? mem_printf("%" PRId64, number) : number_count(value);
	case COLUMN_NS:
		return number_ns(value);
	case COLUMN_BYTES:
		return number_bytes(value);
	case COLUMN_SHARE:
		return number_share((double)number);
	case COLUMN_TIME:
		return number_time(value);
	default:
		return exact_number(kind, number);
	}
}

/* What a person reads; NULL for an empty cell. */
static char *people_text(enum column_kind kind, const struct cell *cell)
{
	switch (cell->kind) {
	case CELL_TEXT:
		return text_safe(cell->text);
	case CELL_NUMBER:
		return people_number(kind, cell->number);
	case CELL_REAL:
		return kind == COLUMN_SHARE ? number_share(cell->real)
					    : mem_printf("%.3g", cell->real);
	default:
		return NULL;
	}
}

static char *exact_text(enum column_kind kind, const struct cell *cell)
{
	switch (cell->kind) {
	case CELL_TEXT:
		return mem_strdup(cell->text);
	case CELL_NUMBER:
		return exact_number(kind, cell->number);
	case CELL_REAL:
		return mem_printf("%.6g", cell->real);
	default:
		return mem_strdup("");
	}
}

static size_t natural_width(const struct table *table, size_t column)
{
	size_t width = strlen(table->columns[column].head);

	for (size_t row = 0; row < table->rows; row++) {
		CLEANUP(free)
		char *text = people_text(table->columns[column].kind,
					 cell_at(table, row, column));
		size_t length = text ? strlen(text) : 1;

		width = length > width ? length : width;
	}
	return width;
}

/* How people see a table. Columns that are not shown keep their place for programs. */
struct layout {
	bool shown[TABLE_MAX_COLUMNS];
	size_t widths[TABLE_MAX_COLUMNS];
};

static bool may_cut(const struct table *table, size_t column)
{
	return table->columns[column].flags & (COLUMN_CUT | COLUMN_CUT_LEFT);
}

/* Take what is too much from the widest column that may be cut, down to the next one. */
static void cut_columns(const struct table *table, struct layout *layout, size_t excess)
{
	while (excess) {
		size_t widest = 0, width = TABLE_MIN_CUT;

		for (size_t i = 0; i < table->count; i++)
			if (layout->shown[i] && may_cut(table, i) &&
			    layout->widths[i] > width)
				width = layout->widths[widest = i];
		if (width == TABLE_MIN_CUT)
			return;
		layout->widths[widest]--;
		excess--;
	}
}

static void make_layout(const struct table *table, int width, struct layout *layout)
{
	size_t sum = 0, room = width > 0 ? (size_t)width + 1 : 0;

	for (size_t i = 0; i < table->count; i++) {
		layout->shown[i] = !(table->columns[i].flags & COLUMN_MACHINE);
		layout->widths[i] = layout->shown[i] ? natural_width(table, i) : 0;
		sum += layout->shown[i] ? layout->widths[i] + 1 : 0;
	}
	for (size_t i = table->count; room && i-- && sum > room;) {
		if (!layout->shown[i] || !(table->columns[i].flags & COLUMN_SPARE))
			continue;
		layout->shown[i] = false;
		sum -= layout->widths[i] + 1;
	}
	if (room && sum > room)
		cut_columns(table, layout, sum - room);
}

/* Shorten @text in place to @width bytes; dots mark where. Bytes of one letter stay. */
static void cut_text(char *text, size_t width, bool left)
{
	size_t length = strlen(text), drop;

	if (length <= width || width < 4)
		return;
	drop = length - width + 2;
	if (left) {
		while ((text[drop] & 0xc0) == 0x80)
			drop++;
		memmove(text + 2, text + drop, length - drop + 1);
		memcpy(text, "..", 2);
		return;
	}
	length -= drop;
	while (length && (text[length] & 0xc0) == 0x80)
		length--;
	strcpy(text + length, "..");
}

static int add_columns(const struct table *table, const struct layout *layout,
		       struct libscols_table *out, bool color)
{
	for (size_t i = 0; i < table->count; i++) {
		const struct column *column = &table->columns[i];
		int flags = 0;

		if (!layout->shown[i])
			continue;
		if (column->kind != COLUMN_TEXT)
			flags |= SCOLS_FL_RIGHT;
		if (column->flags & COLUMN_WRAP)
			flags |= SCOLS_FL_WRAP;
		struct libscols_column *made =
			scols_table_new_column(out, column->head, 0, flags);

		if (!made)
			return -ENOMEM;
		if (color)
			scols_cell_set_color(scols_column_get_header(made), "bold");
	}
	return 0;
}

static int add_row(const struct table *table, const struct layout *layout,
		   struct libscols_table *out, size_t row)
{
	struct libscols_line *line = scols_table_new_line(out, NULL);
	size_t at = 0;
	int rc = line ? 0 : -ENOMEM;

	for (size_t i = 0; i < table->count && !rc; i++) {
		if (!layout->shown[i])
			continue;
		char *text = people_text(table->columns[i].kind, cell_at(table, row, i));

		if (text && may_cut(table, i))
			cut_text(text, layout->widths[i],
				 table->columns[i].flags & COLUMN_CUT_LEFT);
		rc = scols_line_refer_data(line, at++, text ? text : mem_strdup("-"));
	}
	return rc;
}

/* Cells are padded even if only empty ones follow: cut the blanks before each newline. */
static void put_trimmed(FILE *file, const char *text)
{
	while (*text) {
		size_t length = strcspn(text, "\n"), used = length;

		while (used && text[used - 1] == ' ')
			used--;
		fprintf(file, "%.*s\n", (int)used, text);
		text += length + (text[length] == '\n');
	}
}

struct err *table_print(const struct table *table, FILE *file, int width, bool color)
{
	struct libscols_table *out = scols_new_table();
	CLEANUP(free) char *text = NULL;
	struct layout layout;
	int rc = out ? 0 : -ENOMEM;

	make_layout(table, width, &layout);

	if (!rc) {
		scols_table_enable_colors(out, color);
		scols_table_set_termforce(out, width ? SCOLS_TERMFORCE_ALWAYS
						     : SCOLS_TERMFORCE_NEVER);
		if (width)
			scols_table_set_termwidth(out, (size_t)width);
		rc = add_columns(table, &layout, out, color);
	}
	for (size_t row = 0; row < table->rows && !rc; row++)
		rc = add_row(table, &layout, out, row);
	if (!rc && table->rows)
		rc = scols_print_table_to_string(out, &text);
	if (!rc && text)
		put_trimmed(file, text);
	scols_unref_table(out);
	return rc ? err_errno(-rc, "print") : NULL;
}

static void put_tsv(FILE *file, const char *text)
{
	for (; *text; text++) {
		if (*text == '\t')
			fputs("\\t", file);
		else if (*text == '\n')
			fputs("\\n", file);
		else if (*text == '\\')
			fputs("\\\\", file);
		else
			fputc(*text, file);
	}
}

void table_print_tsv(const struct table *table, FILE *file)
{
	for (size_t i = 0; i < table->count; i++)
		fprintf(file, "%s%s", i ? "\t" : "", table->columns[i].name);
	fputc('\n', file);
	for (size_t row = 0; row < table->rows; row++) {
		for (size_t i = 0; i < table->count; i++) {
			CLEANUP(free)
			char *text = exact_text(table->columns[i].kind,
						cell_at(table, row, i));

			if (i)
				fputc('\t', file);
			put_tsv(file, text);
		}
		fputc('\n', file);
	}
}

static json_t *cell_json(enum column_kind kind, const struct cell *cell)
{
	CLEANUP(free) char *text = NULL;

	switch (cell->kind) {
	case CELL_TEXT:
		return json_text(cell->text);
	case CELL_NUMBER:
		if (kind != COLUMN_HEX && kind != COLUMN_ID)
			return json_integer(cell->number);
		text = exact_text(kind, cell);
		return json_string(text);
	case CELL_REAL:
		return json_real(cell->real);
	default:
		return json_null();
	}
}

json_t *table_json(const struct table *table)
{
	json_t *rows = json_array();

	for (size_t row = 0; row < table->rows; row++) {
		json_t *object = json_object();

		for (size_t i = 0; i < table->count; i++)
			json_object_set_new_nocheck(object, table->columns[i].name,
						    cell_json(table->columns[i].kind,
							      cell_at(table, row, i)));
		json_array_append_new(rows, object);
	}
	return rows;
}

/* Length of the UTF-8 sequence at @text by its first byte; 1 for what is none. */
static size_t sequence_bytes(unsigned char first)
{
	return first >= 0xf0 ? 4 : first >= 0xe0 ? 3 : first >= 0xc2 ? 2 : 1;
}

json_t *json_text(const char *text)
{
	json_t *string = json_string(text);

	if (string)
		return string;

	CLEANUP(str_fini) struct str clean = { 0 };
	size_t left = strlen(text);

	while (left) {
		size_t bytes = sequence_bytes((unsigned char)*text);
		json_t *probe = bytes <= left ? json_stringn(text, bytes) : NULL;

		if (probe) {
			str_add_bytes(&clean, text, bytes);
		} else {
			str_add(&clean, "\xef\xbf\xbd");
			bytes = 1;
		}
		json_decref(probe);
		text += bytes;
		left -= bytes;
	}
	return json_string(str_text(&clean));
}

json_t *json_id(uint64_t id)
{
	char text[24];

	snprintf(text, sizeof(text), "0x%016" PRIx64, id);
	return json_string(text);
}

char *text_safe(const char *text)
{
	char *safe = mem_strdup(text);

	for (char *at = safe; *at; at++)
		if ((unsigned char)*at < ' ' || *at == 0x7f)
			*at = '?';
	return safe;
}
