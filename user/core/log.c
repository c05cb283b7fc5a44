// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <stdarg.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"

static enum log_level max_level = LOG_INFO;
static const char *program_name = "assay";
static bool to_journal;

void log_open(const char *program, enum log_level level)
{
	program_name = program;
	max_level = level;
	to_journal = getenv("JOURNAL_STREAM") != NULL;
}

void log_set_level(enum log_level level)
{
	max_level = level;
}

int log_level_parse(const char *name)
{
	static const char *const names[] = { "error", "warning", "notice", "info",
					     "debug" };

	for (int i = 0; i < 5; i++)
		if (!strcmp(names[i], name))
			return LOG_ERROR + i;
	return -1;
}

void log_put(enum log_level level, const char *fmt, ...)
{
	va_list ap;

	if (level > max_level)
		return;
	va_start(ap, fmt);
	char *text = mem_vprintf(fmt, ap);
	va_end(ap);
	for (char *c = text; *c; c++)
		if (*c == '\n')
			*c = ' ';
	char *line = to_journal ? mem_printf("<%d>%s\n", level, text)
				: mem_printf("%s: %s\n", program_name, text);

	err_free(file_write_all(STDERR_FILENO, line, strlen(line)));
	free(line);
	free(text);
}
