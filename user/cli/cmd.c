// SPDX-License-Identifier: Apache-2.0
#include "cli/cmd.h"

#include <stdarg.h>
#include <string.h>

#include "core/mem.h"
#include "core/str.h"

static const struct cmd *const table[] = {
	&cmd_doctor,	 &cmd_attach, &cmd_stop,    &cmd_run,	   &cmd_record,
	&cmd_replay,	 &cmd_import, &cmd_status,  &cmd_diagnose, &cmd_resources,
	&cmd_resource,	 &cmd_cost,   &cmd_trace,   &cmd_types,	   &cmd_layout,
	&cmd_annotate,	 &cmd_stacks, &cmd_analyze, &cmd_discover, &cmd_spec,
	&cmd_sql,	 &cmd_schema, &cmd_version, &cmd_help,	   &cmd_man,
	&cmd_completion, NULL,
};

static const struct option_spec output_options[] = {
	{ "json", 0, OPTION_FLAG, NULL, "one JSON object with stable names", 0, 0 },
	{ "tsv", 0, OPTION_FLAG, NULL, "tab-separated lines with exact figures", 0, 0 },
	{ 0 },
};

static const struct option_spec db_options[] = {
	{ "db", 0, OPTION_FILE, "FILE",
	  "the database; else $ASSAY_DB, else /var/lib/assay/assay.db", 0, 0 },
	{ 0 },
};

static const struct option_spec socket_options[] = {
	{ "socket", 0, OPTION_FILE, "PATH",
	  "the daemon's control socket; else $ASSAY_SOCKET, else /run/assay/control", 0,
	  0 },
	{ 0 },
};

static const struct option_spec common_options[] = {
	{ "quiet", 'q', OPTION_FLAG, NULL, "no progress and no remarks on standard error",
	  0, 0 },
	{ "help", 'h', OPTION_FLAG, NULL, "this text, with examples", 0, 0 },
	{ 0 },
};

const struct cmd *const *cmd_table(void)
{
	return table;
}

const struct cmd *cmd_find(const char *name)
{
	for (const struct cmd *const *cmd = table; *cmd; cmd++)
		if (!strcmp((*cmd)->name, name))
			return *cmd;
	return NULL;
}

void cmd_options(const struct cmd *cmd, struct options *ret_options)
{
	*ret_options = (struct options){ 0 };
	option_add(ret_options, cmd->options);
	if (cmd->groups & CMD_DB)
		option_add(ret_options, db_options);
	if (cmd->groups & CMD_OUTPUT)
		option_add(ret_options, output_options);
	if (cmd->groups & CMD_SOCKET)
		option_add(ret_options, socket_options);
	option_add(ret_options, common_options);
}

/* Edit distance with one row; names are short. */
static size_t distance(const char *a, const char *b)
{
	size_t row[32], width = strlen(b);

	if (width >= 32)
		return width;
	for (size_t j = 0; j <= width; j++)
		row[j] = j;
	for (size_t i = 1; *a; a++, i++) {
		size_t diagonal = row[0];

		row[0] = i;
		for (size_t j = 1; j <= width; j++) {
			size_t change = diagonal + (*a != b[j - 1]);
			size_t best = row[j] < row[j - 1] ? row[j] : row[j - 1];

			diagonal = row[j];
			row[j] = best + 1 < change ? best + 1 : change;
		}
	}
	return row[width];
}

const char *cmd_closest(const char *name)
{
	const char *best = NULL;
	size_t limit = strlen(name) < 4 ? 2 : 3; /* closer than this */

	for (const struct cmd *const *cmd = table; *cmd; cmd++) {
		size_t away = distance(name, (*cmd)->name);

		if (away < limit) {
			limit = away;
			best = (*cmd)->name;
		}
	}
	return best;
}

const char *cli_arg(const struct cli *cli, size_t index)
{
	return index < cli->options.arg_count ? cli->options.args[index] : NULL;
}

struct err *cli_usage(struct cli *cli, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	CLEANUP(free) char *text = mem_vprintf(fmt, ap);
	va_end(ap);
	cli->status = EXIT_USAGE;
	return err_new(ERR_INVALID, "%s", text);
}

void cli_note(const struct cli *cli, const char *fmt, ...)
{
	va_list ap;

	if (cli->quiet)
		return;
	va_start(ap, fmt);
	CLEANUP(free) char *text = mem_vprintf(fmt, ap);
	va_end(ap);
	CLEANUP(free) char *safe = text_safe(text);

	fprintf(stderr, "%s\n", safe);
}

char *cmd_synopsis(const struct cmd *cmd)
{
	struct str line = { 0 };

	str_printf(&line, "assay %s", cmd->name);
	for (const struct option_spec *spec = cmd->options; spec && spec->name; spec++)
		str_printf(&line, " [--%s%s%s]", spec->name, spec->arg ? " " : "",
			   spec->arg ? spec->arg : "");
	if (cmd->groups & CMD_DB)
		str_add(&line, " [--db FILE]");
	if (cmd->groups & CMD_OUTPUT)
		str_add(&line, " [--json|--tsv]");
	if (*cmd->args)
		str_printf(&line, " %s%s", cmd->in_order ? "-- " : "", cmd->args);
	return str_take(&line);
}
