/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_TABLE_H
#define CLI_TABLE_H

/*
 * Rows in memory, printed three ways: a table for people, tab-separated lines and JSON
 * for programs. A column's kind says how its numbers look to people; programs always
 * get the exact figure: counts and ns as numbers, shares as 0..1, ids and addresses as
 * strings (a 64-bit number does not survive most JSON readers).
 */

#include <jansson.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>

#include "core/cleanup.h"
#include "core/err.h"

#define TABLE_MAX_COLUMNS 256

enum column_kind {
	COLUMN_AUTO, /* text or number: table_settle() decides by the cells */
	COLUMN_TEXT,
	COLUMN_NUMBER, /* as it is */
	COLUMN_COUNT,  /* 12.3k */
	COLUMN_SHARE,  /* 0..1: 12.3% */
	COLUMN_NS,
	COLUMN_BYTES,
	COLUMN_HEX,  /* 0x1f80; a string in JSON */
	COLUMN_ID,   /* 0x and 16 digits, which SQL reads back; a string in JSON */
	COLUMN_TIME, /* ns since 1970: local time */
};

enum column_flags {
	COLUMN_CUT = 1,	      /* may be cut when the terminal is too narrow */
	COLUMN_CUT_LEFT = 32, /* likewise, but the end is what matters */
	COLUMN_MACHINE = 2,   /* not for people: only in TSV and JSON */
	COLUMN_WRAP = 8,      /* may be broken into several lines instead */
	COLUMN_SPARE =
		16, /* left out, the last one first, where the terminal is narrow */
	COLUMN_IF_ANY = 4, /* people see it only if a cell of it is not zero */
};

struct column {
	const char *name; /* for programs: "weight_cycles"; never renamed */
	const char *head; /* for people: "CYCLES" */
	enum column_kind kind;
	unsigned flags;
};

struct table;

struct table *table_new(const struct column *columns, size_t count); /* copied */
void table_free(struct table *table);				     /* NULL is fine */
CLEANUP_DEFINE(table_free, struct table *)

/* table_row() - begin a row; its cells are empty until one of these fills them. */
void table_row(struct table *table);
void table_text(struct table *table, size_t column, const char *text); /* copied */
void table_number(struct table *table, size_t column, int64_t number);
void table_real(struct table *table, size_t column, double number);

/* table_settle() - all rows are there: make every COLUMN_AUTO a TEXT if a cell of it is
 * one, else @number; hide what COLUMN_IF_ANY says. */
void table_settle(struct table *table, enum column_kind number);

size_t table_rows(const struct table *table);

/* table_print() - @width: columns of the terminal, 0 for no limit. */
struct err *table_print(const struct table *table, FILE *file, int width, bool color);
/* table_print_tsv() - a header line, then rows. Tab, newline and \ are written \t \n \\. */
void table_print_tsv(const struct table *table, FILE *file);
json_t *table_json(const struct table *table); /* an array of objects */

/* json_text() - a JSON string of any bytes: what is no UTF-8 becomes U+FFFD. */
json_t *json_text(const char *text);
/* json_id() - a 64-bit id as a string. */
json_t *json_id(uint64_t id);
/* text_safe() - allocated, fit for a terminal: control bytes become '?'. */
char *text_safe(const char *text);

#endif
