/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DISCOVER_WORDS_H
#define DISCOVER_WORDS_H

/*
 * What a name says. It is cut into words (LWLockAcquire: lw lock acquire;
 * MDL_context::acquire_lock: mdl context | acquire lock); one of them is what is done,
 * the others what it is done to.
 */

#include <stdbool.h>
#include <stddef.h>

#include "discover/discover.h"

#define WORDS_MAX	12
#define WORDS_MAX_BYTES 24 /* of one word; longer ones are cut */

struct words {
	char word[WORDS_MAX][WORDS_MAX_BYTES];
	size_t count, scope; /* the first @scope words are of the class or namespace */
};

/* words_cut() - @name: demangled or C. Parameters and template arguments are left out. */
void words_cut(const char *name, struct words *ret_words);

struct words_verb {
	enum candidate_event event;
	size_t at;	 /* which word */
	double strength; /* 0..1 */
};

/* words_verb() - what is done; false: nothing that we look for. */
bool words_verb(const struct words *words, struct words_verb *ret_verb);
/* words_is_noun() - a word that resources are called by. */
bool words_is_noun(const char *word);
/* words_stem() - all but the verb and fillers, "-" between them, singular: "lw-lock". */
void words_stem(const struct words *words, const struct words_verb *verb, char *ret_text,
		size_t bytes);

#endif
