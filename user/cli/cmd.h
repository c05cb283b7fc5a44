/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_CMD_H
#define CLI_CMD_H

/*
 * The command table. A command describes itself once; dispatch, help, completion and
 * manual pages all read that. Its entry stands in the file that implements it.
 */

#include "cli/option.h"
#include "cli/output.h"

enum { EXIT_OK, EXIT_FAILED, EXIT_USAGE };

/* Options that many commands share, added behind their own. */
enum cmd_group {
	CMD_OUTPUT = 1, /* --json --tsv */
	CMD_DB = 2,	/* --db */
	CMD_SOCKET = 4, /* --socket */
};

/* What the completion offers for arguments that are no options. */
enum cmd_completes {
	COMPLETE_NOTHING,
	COMPLETE_FILE,
	COMPLETE_PROCESS,
	COMPLETE_CMD,
	COMPLETE_VIEW,
	COMPLETE_PROGRAM, /* the first word a program, the rest files */
	COMPLETE_WORDS,	  /* those of @words */
};

struct cmd_example {
	const char *what, *line; /* @line as typed, "assay" included */
};

#define CMD_MAX_EXAMPLES 5
#define CMD_ANY		 ((size_t)-1)

struct cli;

struct cmd {
	const char *name;
	const char *args;		   /* "PID|NAME", "" for none */
	const char *summary;		   /* lower case, no stop, fits one line */
	const char *text;		   /* paragraphs, parted by an empty line */
	unsigned groups;		   /* enum cmd_group */
	const struct option_spec *options; /* its own; NULL for none */
	size_t min_args, max_args;
	bool in_order; /* from the first argument on nothing is an option of ours */
	enum cmd_completes completes;
	const char *words;
	struct cmd_example examples[CMD_MAX_EXAMPLES];
	const char *exits; /* exit codes that differ from the usual, or NULL */
	struct err *(*run)(struct cli *cli);
};

/* What a command's run() gets. */
struct cli {
	const struct cmd *cmd;
	struct options options;
	struct output out;
	bool quiet;
	int status; /* exit code when run() returns NULL */
};

/* cmd_table() - every command in the order of `assay help`; ends with NULL. */
const struct cmd *const *cmd_table(void);
const struct cmd *cmd_find(const char *name); /* NULL when there is none */
const char *cmd_closest(const char *name);    /* for "did you mean"; or NULL */

/* cmd_options() - own and shared ones. */
void cmd_options(const struct cmd *cmd, struct options *ret_options);

/* cli_arg() - the argument at @index, NULL when there are fewer. */
const char *cli_arg(const struct cli *cli, size_t index);
/* cli_usage() - an error that makes the exit code EXIT_USAGE. */
struct err *cli_usage(struct cli *cli, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
/* cli_note() - one line on standard error unless -q. */
void cli_note(const struct cli *cli, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));

/* The table's other readers. */
char *cmd_synopsis(const struct cmd *cmd); /* "assay types [--by ...] ..."; one line */
void help_print(FILE *file, const struct cmd *cmd, int width); /* NULL: the overview */
void man_print(FILE *file, const struct cmd *cmd);	       /* NULL: assay(1) */
struct err *completion_print(FILE *file);

/* Entries, one per file. */
extern const struct cmd cmd_doctor, cmd_attach, cmd_stop, cmd_record, cmd_replay,
	cmd_import, cmd_discover, cmd_run, cmd_status, cmd_diagnose, cmd_resources,
	cmd_resource, cmd_cost, cmd_trace, cmd_types, cmd_layout, cmd_annotate,
	cmd_stacks, cmd_analyze, cmd_spec, cmd_sql, cmd_schema, cmd_version, cmd_help,
	cmd_completion, cmd_man;

#endif
