// SPDX-License-Identifier: Apache-2.0
/* The raw event stream: written beside the database, and read back by replay. */
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

#include "cli/number.h"
#include "cli/session.h"
#include "cli/target.h"
#include "core/mem.h"

static const struct option_spec record_options[] = {
	{ "pid", 'p', OPTION_TEXT, "PID|NAME", "the process to sample, with its children",
	  0, 0 },
	{ "all", 'a', OPTION_FLAG, NULL, "the whole system", 0, 0 },
	{ "for", 0, OPTION_DURATION, "TIME", "how long (10s, 500ms, 5m); until Ctrl-C", 0,
	  0 },
	{ "rate", 0, OPTION_NUMBER, "HZ", "samples per second and CPU; 49", 1, 10000 },
	{ 0 },
};

static struct err *run_record(struct cli *cli)
{
	const struct options *opts = &cli->options;
	const char *word = option_text(opts, "pid", NULL);
	CLEANUP(free) char *target = NULL;
	CLEANUP(free) char *label = NULL;
	CLEANUP(free) char *db = NULL;
	CLEANUP(free) char *file = session_path(cli_arg(cli, 0));
	CLEANUP(agent_free) struct agent *agent = NULL;
	struct stat stat_now;

	if (!word == !option_given(opts, "all"))
		return cli_usage(cli, "say what to record: --pid PID|NAME or --all");
	TRY(target_find("/proc", word ? word : "all", &target, &label));
	TRY(session_db(cli, &db));
	struct agent_config config = { .target = target,
				       .db = db,
				       .record = file,
				       .for_ns = option_number(opts, "for", 0),
				       .rate_hz = option_number(opts, "rate", 0),
				       .quiet = cli->quiet };

	TRY(session_start(&config, &agent));
	CLEANUP(free) char *what = mem_printf("recording %s", label);

	if (!config.for_ns)
		cli_note(cli, "%s; Ctrl-C ends it", what);
	TRY(session_wait(cli, agent, what, config.for_ns));
	if (stat(file, &stat_now))
		return err_new(ERR_IO, "the agent ended without writing %s", file);
	CLEANUP(free) char *size = number_bytes((uint64_t)stat_now.st_size);

	cli_note(cli, "%s written; read it with: assay replay %s --db FILE", size,
		 cli_arg(cli, 0));
	return NULL;
}

const struct cmd cmd_record = {
	.name = "record",
	.args = "FILE",
	.summary = "write the raw events of a sampling into a file",
	.text = "Sample as attach does and write every event as it came from the kernel "
		"into FILE, so that the same answer can be made again later, elsewhere, or "
		"by a newer version. What was seen also goes to the database.",
	.groups = CMD_DB,
	.options = record_options,
	.min_args = 1,
	.max_args = 1,
	.completes = COMPLETE_FILE,
	.examples = { { "ten seconds of a server",
			"assay record nginx.events --pid nginx --for 10s" },
		      { "the whole system until Ctrl-C",
			"assay record all.events --all --db /tmp/all.db" } },
	.run = run_record,
};

static struct err *run_replay(struct cli *cli)
{
	const char *name = option_text(&cli->options, "db", NULL);
	CLEANUP(free) char *db = NULL;
	CLEANUP(free) char *file = session_path(cli_arg(cli, 0));
	CLEANUP(agent_free) struct agent *agent = NULL;

	if (!name)
		return cli_usage(cli, "name the database to write: --db FILE");
	if (access(file, R_OK))
		return err_errno(errno, "%s", cli_arg(cli, 0));
	TRY(session_db(cli, &db));
	struct agent_config config = { .replay = file, .db = db, .quiet = cli->quiet };

	TRY(session_start(&config, &agent));
	TRY(session_wait(cli, agent, "replaying", 0));
	return session_report(cli, db, agent_run_id(agent));
}

const struct cmd cmd_replay = {
	.name = "replay",
	.args = "FILE",
	.summary = "make a database from a file of recorded events",
	.text = "Read the events that assay record wrote, as if they happened now, into the "
		"database that --db names, and print the top of it. Needs no privileges. "
		"Types are found if the sampled files are still there.",
	.groups = CMD_DB | CMD_OUTPUT,
	.min_args = 1,
	.max_args = 1,
	.completes = COMPLETE_FILE,
	.examples = { { "look at a recording",
			"assay replay nginx.events --db /tmp/nginx.db" } },
	.run = run_replay,
};
