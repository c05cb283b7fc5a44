// SPDX-License-Identifier: Apache-2.0
#include "cli/output.h"

#include <errno.h>
#include <stdarg.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"

#define WIDTH_MAX 10000

bool file_wants_color(FILE *file)
{
	const char *no = getenv("NO_COLOR"), *term = getenv("TERM");

	if ((no && *no) || !term || !strcmp(term, "dumb"))
		return false;
	return isatty(fileno(file));
}

static int terminal_width(FILE *file)
{
	const char *columns = getenv("COLUMNS");
	struct winsize size = { 0 };
	uint64_t width;

	if (columns && number_parse(columns, &width) && width && width < WIDTH_MAX)
		return (int)width;
	if (isatty(fileno(file)) && !ioctl(fileno(file), TIOCGWINSZ, &size))
		return size.ws_col;
	return 0;
}

void output_init(struct output *out, FILE *file, enum output_format format, bool quiet)
{
	*out = (struct output){ .file = file,
				.format = format,
				.width = terminal_width(file),
				.color = format == OUTPUT_TABLE && file_wants_color(file),
				.quiet = quiet };
	if (format == OUTPUT_JSON)
		out->root = json_object();
}

void output_fini(struct output *out)
{
	json_decref(out->root);
	out->root = NULL;
}

const char *output_paint(const struct output *out, enum output_color color)
{
	static const char *const codes[] = { "\033[0m", "\033[1m", "\033[32m", "\033[33m",
					     "\033[31m" };

	return out->color ? codes[color] : "";
}

struct err *output_table(struct output *out, const char *name, const char *title,
			 const struct table *table)
{
	bool first = !out->started;

	if (out->format == OUTPUT_TABLE && !table_rows(table))
		return NULL;
	out->started = true;
	switch (out->format) {
	case OUTPUT_JSON:
		json_object_set_new(out->root, name, table_json(table));
		return NULL;
	case OUTPUT_TSV:
		if (first)
			table_print_tsv(table, out->file);
		return NULL;
	default:
		if (!first)
			fputc('\n', out->file);
		if (title)
			fprintf(out->file, "%s%s%s\n", output_paint(out, COLOR_BOLD),
				title, output_paint(out, COLOR_NONE));
		return table_print(table, out->file, out->width, out->color);
	}
}

void output_gap(struct output *out)
{
	if (out->format == OUTPUT_TABLE && out->started)
		fputc('\n', out->file);
}

void output_note(struct output *out, const char *fmt, ...)
{
	FILE *file = out->format == OUTPUT_TSV ? stderr : out->file;
	va_list ap;

	if (out->format == OUTPUT_JSON || (file == stderr && out->quiet))
		return;
	va_start(ap, fmt);
	CLEANUP(free) char *text = mem_vprintf(fmt, ap);
	va_end(ap);
	CLEANUP(free) char *safe = text_safe(text);

	fprintf(file, "%s\n", safe);
}

void output_value(struct output *out, const char *name, json_t *value)
{
	if (out->root)
		json_object_set_new(out->root, name, value);
	else
		json_decref(value);
}

struct err *output_done(struct output *out)
{
	if (out->root) {
		json_dumpf(out->root, out->file, JSON_INDENT(2) | JSON_REAL_PRECISION(9));
		fputc('\n', out->file);
		output_fini(out);
	}
	errno = 0;
	if (fflush(out->file) || ferror(out->file))
		return err_errno(errno ? errno : EIO, "write the report");
	return NULL;
}
