/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_OPTION_H
#define CLI_OPTION_H

/*
 * cli/ - the program `assay`: what people type and what they read. It starts assayd and
 * assay-worker, asks the store, prints. It samples nothing, opens no ELF file and
 * includes neither SQL nor libbpf.
 *
 * Here: options as data. From the same array come the parser (getopt_long underneath),
 * the help, the completion and the man page.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/err.h"

#define OPTION_MAX 32

enum option_kind {
	OPTION_FLAG,
	OPTION_TEXT,
	OPTION_FILE,
	OPTION_NUMBER,	 /* within @min..@max */
	OPTION_DURATION, /* 10s, 500ms, 5m: ns, and more than none */
	OPTION_CHOICE,	 /* one of the words of @arg: "type|field|function" */
};

struct option_spec {
	const char *name; /* long name, "for"; NULL ends an array */
	char letter;	  /* short name or 0 */
	enum option_kind kind;
	const char *arg; /* its argument in the help: "FILE"; the words of a choice */
	const char *help;
	uint64_t min, max; /* NUMBER; @max 0: no limit */
};

struct option_value {
	bool given;
	const char *text; /* borrowed from argv; of a repeated option the last one */
	uint64_t number;  /* NUMBER, DURATION in ns, CHOICE: index of the word */
};

struct options {
	const struct option_spec *specs[OPTION_MAX];
	struct option_value values[OPTION_MAX];
	size_t count;
	char **args; /* what is no option; NULL-ended, inside argv */
	size_t arg_count;
};

/* option_add() - all of an array; its specs are borrowed. */
void option_add(struct options *options, const struct option_spec *specs);

/**
 * option_parse() - read argv[1..argc).
 * @in_order: stop at the first word that is no option, for words that belong to
 *	another command. Otherwise options may stand anywhere before a "--".
 * Errors: ERR_INVALID with a text for the user. argv is reordered.
 */
struct err *option_parse(struct options *options, int argc, char **argv, bool in_order);

/* The specs must have an option of that name. */
bool option_given(const struct options *options, const char *name);
const char *option_text(const struct options *options, const char *name,
			const char *fallback);
uint64_t option_number(const struct options *options, const char *name,
		       uint64_t fallback);

/* option_choice() - index of @word among "a|b|c", -1 for none of them. */
int option_choice(const char *choices, const char *word);

#endif
