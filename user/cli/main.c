// SPDX-License-Identifier: Apache-2.0
/*
 * Find the command, parse its options, run it. One line of error, and the exit code says
 * whose fault it was: 1 something failed, 2 the command line is wrong.
 */
#include <errno.h>
#include <locale.h>
#include <stdio.h>
#include <string.h>

#include "cli/cmd.h"
#include "cli/stop.h"
#include "core/log.h"

static int complain(const char *command, struct err *err, int status)
{
	CLEANUP(free) char *text = text_safe(err->text);

	fflush(stdout);
	fprintf(stderr, "assay%s%s: %s\n", command ? " " : "", command ? command : "",
		text);
	err_free(err);
	return status;
}

static struct err *check_args(const struct cli *cli)
{
	const struct cmd *cmd = cli->cmd;
	size_t count = cli->options.arg_count;

	if (count > cmd->max_args)
		return err_new(ERR_INVALID, "unexpected argument '%s'",
			       cli->options.args[cmd->max_args]);
	if (count < cmd->min_args)
		return err_new(ERR_INVALID, "%s is missing", cmd->args);
	return NULL;
}

static struct err *choose_format(const struct cli *cli, enum output_format *ret_format)
{
	bool has = cli->cmd->groups & CMD_OUTPUT;
	bool json = has && option_given(&cli->options, "json");
	bool tsv = has && option_given(&cli->options, "tsv");

	if (json && tsv)
		return err_new(ERR_INVALID, "--json or --tsv, not both");
	*ret_format = json ? OUTPUT_JSON : tsv ? OUTPUT_TSV : OUTPUT_TABLE;
	return NULL;
}

/* Options first: with --help nothing else matters. */
static struct err *prepare(struct cli *cli, int argc, char **argv)
{
	enum output_format format = OUTPUT_TABLE;

	cmd_options(cli->cmd, &cli->options);
	TRY(option_parse(&cli->options, argc, argv, cli->cmd->in_order));
	cli->quiet = option_given(&cli->options, "quiet");
	if (option_given(&cli->options, "help")) {
		output_init(&cli->out, stdout, OUTPUT_TABLE, cli->quiet);
		return NULL;
	}
	TRY(choose_format(cli, &format));
	TRY(check_args(cli));
	output_init(&cli->out, stdout, format, cli->quiet);
	return NULL;
}

static int run_cmd(const struct cmd *cmd, int argc, char **argv)
{
	struct cli cli = { .cmd = cmd };
	struct err *err = prepare(&cli, argc, argv);

	if (err) {
		complain(cmd->name, err, EXIT_USAGE);
		fprintf(stderr, "try: assay %s --help\n", cmd->name);
		return EXIT_USAGE;
	}
	if (option_given(&cli.options, "help"))
		help_print(stdout, cmd, cli.out.width);
	else
		err = cmd->run(&cli);
	if (!err)
		err = output_done(&cli.out);
	output_fini(&cli.out);
	if (err && stop_flag && err->code == ERR_CLOSED) {
		err_free(err);
		return 128 + SIGINT;
	}
	if (!err)
		return cli.status;
	return complain(cmd->name, err, cli.status ? cli.status : EXIT_FAILED);
}

int main(int argc, char **argv)
{
	const char *name = argc > 1 ? argv[1] : "help";

	setlocale(LC_CTYPE, "");
	log_open("assay", LOG_WARNING);
	if (!strcmp(name, "--help") || !strcmp(name, "-h"))
		name = "help";
	if (!strcmp(name, "--version") || !strcmp(name, "-V"))
		name = "version";
	const struct cmd *cmd = cmd_find(name);

	if (cmd && argc > 1)
		return run_cmd(cmd, argc - 1, argv + 1);
	if (cmd) { /* no command at all */
		help_print(stderr, NULL, 0);
		return EXIT_USAGE;
	}
	const char *closest = cmd_closest(name);

	complain(NULL,
		 closest ? err_new(ERR_INVALID,
				   "there is no command '%s'; did you mean '%s'?", name,
				   closest)
			 : err_new(ERR_INVALID, "there is no command '%s'", name),
		 EXIT_USAGE);
	fputs("try: assay help\n", stderr);
	return EXIT_USAGE;
}
