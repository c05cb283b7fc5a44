/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OUTPUT_H
#define CLI_OUTPUT_H

/*
 * One document: tables with sentences below them, or one JSON object with the same
 * tables and figures under stable names, or the first table as TSV with the sentences
 * on standard error.
 */

#include "cli/table.h"

enum output_format { OUTPUT_TABLE, OUTPUT_JSON, OUTPUT_TSV };

struct output {
	FILE *file;
	enum output_format format;
	int width; /* of the terminal; 0: not one, nothing is cut */
	bool color, quiet;
	bool started;
	json_t *root;
};

/* output_init() - looks at @file for width (COLUMNS wins) and colour (NO_COLOR). */
void output_init(struct output *out, FILE *file, enum output_format format, bool quiet);
void output_fini(struct output *out);

/* output_table() - @name: key in JSON; @title: line above, NULL for none. */
struct err *output_table(struct output *out, const char *name, const char *title,
			 const struct table *table);
/* output_note() - a sentence for people. */
void output_note(struct output *out, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* output_gap() - an empty line for people, between tables and sentences. */
void output_gap(struct output *out);
/* output_value() - a figure for JSON readers; takes @value. */
void output_value(struct output *out, const char *name, json_t *value);

/* output_done() - everything is written; ERR_IO when it did not arrive. */
struct err *output_done(struct output *out);

/* text_bold(), ... - escape sequences, "" without colour. */
enum output_color { COLOR_NONE, COLOR_BOLD, COLOR_GREEN, COLOR_YELLOW, COLOR_RED };
const char *output_paint(const struct output *out, enum output_color color);

/* file_wants_color() - a terminal, and neither NO_COLOR nor TERM=dumb. */
bool file_wants_color(FILE *file);

#endif
