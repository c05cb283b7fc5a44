// SPDX-License-Identifier: Apache-2.0
/*
 * What this machine can do, one row each: the kernel's side is probe/machine's, here are
 * the programs, the database, the daemon and debug information.
 */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/agent.h"
#include "cli/control.h"
#include "cli/debughint.h"
#include "cli/number.h"
#include "cli/report.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "probe/machine.h"

struct doctor {
	struct cli *cli;
	struct table *table;
	struct str advice; /* for people, below the table: it is too long for a cell */
	enum machine_state worst;
};

static void put_row(struct doctor *doctor, const char *name, enum machine_state state,
		    const char *value, const char *advice)
{
	table_row(doctor->table);
	table_text(doctor->table, 0, machine_state_name(state));
	table_text(doctor->table, 1, name);
	table_text(doctor->table, 2, value);
	table_text(doctor->table, 3, advice);
	if (*advice)
		str_printf(&doctor->advice, "%s: %s: %s\n", machine_state_name(state),
			   name, advice);
	if (state > doctor->worst)
		doctor->worst = state;
}

static void put_machine(struct doctor *doctor)
{
	struct machine_report *report = mem_alloc(sizeof(*report));

	machine_examine(report);
	for (size_t i = 0; i < report->count; i++)
		put_row(doctor, report->rows[i].name, report->rows[i].state,
			report->rows[i].value, report->rows[i].advice);
	free(report);
}

static void put_program(struct doctor *doctor, const char *name, const char *path)
{
	bool there = !access(path, X_OK);

	put_row(doctor, name, there ? MACHINE_OK : MACHINE_FAIL, path,
		there ? "" : "not there: the installation is incomplete");
}

static void put_programs(struct doctor *doctor)
{
	CLEANUP(free) char *daemon = agent_program();
	CLEANUP(free)
	char *worker = file_beside("assay-worker", "/usr/libexec/assay/assay-worker");

	put_program(doctor, "assayd", daemon);
	put_program(doctor, "assay-worker", worker);
}

static void put_database(struct doctor *doctor)
{
	const char *path = report_db_path(doctor->cli);
	CLEANUP(db_close) struct db *db = NULL;
	struct err *err = db_open(path, DB_READ, &db);
	struct db_size size;

	if (err && err->code == ERR_NOT_FOUND) {
		put_row(doctor, "database", MACHINE_OK, "none yet",
			"the first 'assay attach' makes it");
	} else if (err || (err = db_size(db, &size))) {
		put_row(doctor, "database", MACHINE_FAIL, path, err->text);
	} else {
		CLEANUP(free) char *bytes = number_bytes(size.file_bytes);
		CLEANUP(free) char *value = mem_printf("%s, %s", path, bytes);

		put_row(doctor, "database", MACHINE_OK, value, "");
	}
	err_free(err);
}

static struct err *take_ping(void *ctx, const struct command_args *args)
{
	const char *version = command_arg(args, "version"),
		   *pid = command_arg(args, "pid");
	char **ret_text = ctx;

	free(*ret_text);
	*ret_text = mem_printf("%s, pid %s", version ? version : "?", pid ? pid : "?");
	return NULL;
}

static void put_daemon(struct doctor *doctor)
{
	const char *path =
		control_path(option_text(&doctor->cli->options, "socket", NULL));
	CLEANUP(control_close) struct control *control = NULL;
	CLEANUP(free) char *text = NULL;
	struct err *err = control_open(path, &control);

	if (!err)
		err = control_ask(control, "ping\n", CONTROL_TIMEOUT_MS, take_ping,
				  &text);
	if (!err)
		put_row(doctor, "daemon", MACHINE_OK, text ? text : "answers", "");
	else if (err->code == ERR_NOT_FOUND)
		put_row(doctor, "daemon", MACHINE_OK, "not running",
			"'assay attach' works without; for continuous sampling: systemctl "
			"start assayd");
	else
		put_row(doctor, "daemon", MACHINE_WARN, "does not answer", err->text);
	err_free(err);
}

static void put_debuginfo(struct doctor *doctor)
{
	const char *urls = getenv("DEBUGINFOD_URLS");
	bool installed = !access("/usr/lib/debug/.build-id", R_OK);
	CLEANUP(free) char *archive = debughint_archive();
	CLEANUP(free)
	char *value = mem_printf(
		"%s%s%s",
		installed ? "packages in /usr/lib/debug" : "no packages installed",
		urls && *urls ? ", DEBUGINFOD_URLS=" : "", urls ? urls : "");

	put_row(doctor, "debug information",
		installed || (urls && *urls) ? MACHINE_OK : MACHINE_WARN, value,
		installed || (urls && *urls) ? ""
		: archive		     ? archive
			  : "types need it: install the -dbgsym package of what you "
			    "sample, or build with -g");
}

static void put_verdict(struct doctor *doctor)
{
	struct output *out = &doctor->cli->out;

	output_gap(out);
	if (out->format == OUTPUT_TABLE)
		fprintf(out->file, "%s\n", str_text(&doctor->advice));
	if (doctor->worst == MACHINE_FAIL)
		output_note(out, "attaching cannot work before the rows marked fail "
				 "are mended.");
	else
		output_note(out, "ready: assay attach PID|NAME");
	output_value(out, "state", json_string(machine_state_name(doctor->worst)));
}

static struct err *run_doctor(struct cli *cli)
{
	static const struct column columns[] = {
		{ "state", "STATE", COLUMN_TEXT, 0 },
		{ "name", "WHAT", COLUMN_TEXT, 0 },
		{ "value", "FOUND", COLUMN_TEXT, COLUMN_WRAP },
		{ "advice", "WHAT TO DO", COLUMN_TEXT, COLUMN_MACHINE },
	};
	CLEANUP(table_free) struct table *table = table_new(columns, 4);
	struct doctor doctor = { .cli = cli, .table = table };

	put_machine(&doctor);
	put_programs(&doctor);
	put_database(&doctor);
	put_daemon(&doctor);
	put_debuginfo(&doctor);
	struct err *err = output_table(&cli->out, "checks", NULL, table);

	put_verdict(&doctor);
	str_fini(&doctor.advice);
	if (doctor.worst == MACHINE_FAIL)
		cli->status = EXIT_FAILED;
	return err;
}

const struct cmd cmd_doctor = {
	.name = "doctor",
	.args = "",
	.summary = "what this machine can do, and what it lacks",
	.text = "Check the kernel, the privileges, the sample sources, the programs, the "
		"database, the daemon and debug information, and say what to do about what "
		"is missing. It shows which sample source is in use and why the better "
		"ones are not. Nothing is changed.",
	.groups = CMD_DB | CMD_OUTPUT | CMD_SOCKET,
	.examples = { { "before the first attach", "assay doctor" },
		      { "in a script", "assay doctor --json | jq -r .state" } },
	.exits = "0 attaching can work, 1 something essential fails, 2 wrong usage.",
	.run = run_doctor,
};
