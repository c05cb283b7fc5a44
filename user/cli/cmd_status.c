// SPDX-License-Identifier: Apache-2.0
/* What runs and what is stored: the daemon's own words, then the database's. */
#include <stdlib.h>
#include <string.h>

#include "cli/control.h"
#include "cli/number.h"
#include "cli/report.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

#define STATUS_RUNS 10

static const struct option_spec options[] = {
	{ "limit", 'n', OPTION_NUMBER, "N", "runs to list; 10, and 0 for all", 0, 0 },
	{ 0 },
};

struct status {
	struct cli *cli;
	struct table *table; /* what the daemon says: part, name, value */
	size_t parts;
	char *db; /* the daemon's database */
};

static char *people_value(const char *key, const char *value)
{
	uint64_t number;

	if (!number_parse(value, &number) || str_starts(value, "0x"))
		return text_safe(value);
	if (str_ends(key, "_at_ns"))
		return number_time(number);
	if (str_ends(key, "_ns"))
		return number_ns(number);
	if (str_ends(key, "_bytes"))
		return number_bytes(number);
	return strcmp(key, "pid") ? number_count(number) : mem_strdup(value);
}

static void put_value(struct status *status, const char *part,
		      const struct command_arg *arg)
{
	bool people = status->cli->out.format == OUTPUT_TABLE;
	CLEANUP(free)
	char *value =
		people ? people_value(arg->key, arg->value) : mem_strdup(arg->value);
	CLEANUP(free) char *key = mem_strdup(arg->key);

	if (people && !*value)
		return;
	for (char *at = key; people && *at; at++)
		if (*at == '_')
			*at = ' ';
	table_row(status->table);
	table_text(status->table, 0, part);
	table_text(status->table, 1, key);
	table_text(status->table, 2, value);
}

static struct err *take_part(void *ctx, const struct command_args *args)
{
	struct status *status = ctx;
	const char *what = command_arg(args, "what"), *db = command_arg(args, "db");

	if (!what)
		what = "?";
	if (db) {
		free(status->db);
		status->db = mem_strdup(db);
	}
	for (size_t i = 0; i < args->count; i++)
		if (strcmp(args->list[i].key, "what"))
			put_value(status, what, &args->list[i]);
	status->parts++;
	return NULL;
}

/* @ret_running: false without an error when nobody listens. */
static struct err *ask_daemon(struct status *status, bool *ret_running)
{
	const char *path =
		control_path(option_text(&status->cli->options, "socket", NULL));
	CLEANUP(control_close) struct control *control = NULL;
	struct err *err = control_open(path, &control);

	*ret_running = !err;
	if (err) {
		output_note(&status->cli->out, "%s%s",
			    err->code == ERR_NOT_FOUND ? "" : "the daemon: ", err->text);
		err_free(err);
		return NULL;
	}
	TRY(control_ask(control, "status\n", CONTROL_TIMEOUT_MS, take_part, status));
	return output_table(&status->cli->out, "daemon", NULL, status->table);
}

static struct err *put_database(struct cli *cli, const char *path)
{
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(table_free) struct table *runs = NULL;
	struct report_scope scope = { .limit = option_number(&cli->options, "limit",
							     STATUS_RUNS) };
	struct db_size size;

	TRY(report_open(path, &db));
	TRY(db_size(db, &size));
	TRY(report_table(db, "runs", &scope, &runs));
	TRY(output_table(&cli->out, "runs", "runs", runs));
	CLEANUP(free) char *file = number_bytes(size.file_bytes);
	CLEANUP(free) char *used = number_bytes(size.used_bytes);

	output_gap(&cli->out);
	output_note(&cli->out, "%s: %s on disk, %s in use.", path, file, used);
	output_value(&cli->out, "database",
		     json_pack("{sosIsI}", "path", json_text(path), "file_bytes",
			       (json_int_t)size.file_bytes, "used_bytes",
			       (json_int_t)size.used_bytes));
	return NULL;
}

static struct err *run_status(struct cli *cli)
{
	static const struct column columns[] = {
		{ "part", "PART", COLUMN_TEXT, 0 },
		{ "name", "NAME", COLUMN_TEXT, 0 },
		{ "value", "VALUE", COLUMN_TEXT, COLUMN_CUT },
	};
	CLEANUP(table_free) struct table *table = table_new(columns, 3);
	struct status status = { .cli = cli, .table = table };
	bool running = false, named = option_given(&cli->options, "db");
	struct err *err = ask_daemon(&status, &running);

	output_value(&cli->out, "is_daemon_running", json_boolean(running));
	if (!err)
		err = put_database(cli,
				   status.db && !named ? status.db : report_db_path(cli));
	if (err && running && err->code == ERR_NOT_FOUND) {
		err_free(err); /* it has not stored anything yet */
		err = NULL;
	}
	free(status.db);
	return err;
}

const struct cmd cmd_status = {
	.name = "status",
	.args = "",
	.summary = "what samples now, and the runs in the database",
	.text = "Ask the daemon, if one runs, what it samples and how it fares, and list the "
		"runs in its database or in the one that --db names.",
	.groups = CMD_DB | CMD_OUTPUT | CMD_SOCKET,
	.options = options,
	.examples = { { "what runs", "assay status" },
		      { "the runs of a file", "assay status --db /tmp/one.db" } },
	.exits = "0 done, 1 neither a daemon nor a database, 2 wrong usage.",
	.run = run_status,
};
