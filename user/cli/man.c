// SPDX-License-Identifier: Apache-2.0
/*
 * The command table as man(7) source. Every text is escaped: a backslash, a hyphen
 * (which roff would make a typographic one, so that a copied option does not work) and
 * a dot or quote that begins a line.
 */
#include <string.h>

#include "cli/cmd.h"
#include "core/mem.h"

static void put_text(FILE *file, const char *text)
{
	bool line_start = true;

	for (; *text; text++) {
		if (text[0] == '\n' && text[1] == '\n') {
			fputs("\n.PP\n", file);
			line_start = true;
			text++;
			continue;
		}
		if (line_start && (*text == '.' || *text == '\''))
			fputs("\\&", file);
		if (*text == '\\')
			fputs("\\e", file);
		else if (*text == '-')
			fputs("\\-", file);
		else
			fputc(*text, file);
		line_start = *text == '\n';
	}
}

static void put_line(FILE *file, const char *macro, const char *text)
{
	fprintf(file, "%s", macro);
	put_text(file, text);
	fputc('\n', file);
}

/* The name in capitals, as titles are. */
static void put_title(FILE *file, const char *name)
{
	fputs(".TH ASSAY", file);
	if (*name)
		fputs("\\-", file);
	for (; *name; name++)
		fputc(*name >= 'a' && *name <= 'z' ? *name - 'a' + 'A' : *name, file);
	fputs(" 1 \"\" \"assay " ASSAY_VERSION "\" \"assay manual\"\n", file);
}

static void put_option(FILE *file, const struct option_spec *spec)
{
	fputs(".TP\n", file);
	if (spec->letter)
		fprintf(file, "\\fB\\-%c\\fR, ", spec->letter);
	fputs("\\fB\\-\\-", file);
	put_text(file, spec->name);
	fputs("\\fR", file);
	if (spec->arg) {
		fputs(" \\fI", file);
		put_text(file, spec->arg);
		fputs("\\fR", file);
	}
	fputc('\n', file);
	put_line(file, "", spec->help);
}

static void put_files(FILE *file)
{
	fputs(".SH ENVIRONMENT\n"
	      ".TP\n\\fBASSAY_DB\\fR\nThe database, instead of /var/lib/assay/assay.db.\n"
	      ".TP\n\\fBASSAY_SOCKET\\fR\nThe daemon's control socket, instead of "
	      "/run/assay/control.\n"
	      ".TP\n\\fBNO_COLOR\\fR\nWhen set, no colour on a terminal either.\n",
	      file);
}

static void print_overview(FILE *file)
{
	put_title(file, "");
	fputs(".SH NAME\nassay \\- which struct fields cost a running program its time\n"
	      ".SH SYNOPSIS\n\\fBassay\\fR \\fICOMMAND\\fR [\\fIOPTIONS\\fR] "
	      "[\\fIARGUMENTS\\fR]\n"
	      ".SH DESCRIPTION\n"
	      "assay samples a running program, finds out which struct fields its memory\n"
	      "instructions touch, and keeps the answer in an SQLite database.\n"
	      "Every report says how much was lost and how much could be typed.\n"
	      ".SH COMMANDS\n",
	      file);
	for (const struct cmd *const *cmd = cmd_table(); *cmd; cmd++) {
		fprintf(file, ".TP\n\\fBassay\\-%s\\fR(1)\n", (*cmd)->name);
		put_line(file, "", (*cmd)->summary);
	}
	put_files(file);
	fputs(".SH EXIT STATUS\n0 done, 1 failed, 2 wrong usage.\n"
	      ".SH SEE ALSO\n.BR assayd (8),\n.BR assayd.conf (5)\n",
	      file);
}

void man_print(FILE *file, const struct cmd *cmd)
{
	struct options options;

	if (!cmd) {
		print_overview(file);
		return;
	}
	CLEANUP(free) char *synopsis = cmd_synopsis(cmd);

	put_title(file, cmd->name);
	fprintf(file, ".SH NAME\nassay\\-%s \\- ", cmd->name);
	put_line(file, "", cmd->summary);
	put_line(file, ".SH SYNOPSIS\n", synopsis);
	put_line(file, ".SH DESCRIPTION\n", cmd->text);
	fputs(".SH OPTIONS\n", file);
	cmd_options(cmd, &options);
	for (size_t i = 0; i < options.count; i++)
		put_option(file, options.specs[i]);
	if (cmd->groups & (CMD_DB | CMD_SOCKET | CMD_OUTPUT))
		put_files(file);
	put_line(file, ".SH EXIT STATUS\n",
		 cmd->exits ? cmd->exits : "0 done, 1 failed, 2 wrong usage.");
	fputs(".SH EXAMPLES\n", file);
	for (size_t i = 0; i < CMD_MAX_EXAMPLES && cmd->examples[i].line; i++) {
		put_line(file, ".PP\n", cmd->examples[i].what);
		put_line(file, ".RS 4\n.nf\n", cmd->examples[i].line);
		fputs(".fi\n.RE\n", file);
	}
	fputs(".SH SEE ALSO\n.BR assay (1),\n.BR assayd (8)\n", file);
}
