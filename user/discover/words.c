// SPDX-License-Identifier: Apache-2.0
#include "discover/words.h"

#include <ctype.h>
#include <stdio.h>
#include <string.h>

/* How often a function that is called so is such an event, as a rough guess; the code
 * decides about the weak ones. Words between blanks. */
static const struct {
	enum candidate_event event;
	double strength;
	const char *words;
} verbs[] = {
	{ CANDIDATE_WAIT, .9, " wait " },
	{ CANDIDATE_WAIT, .7, " sleep throttle " },
	{ CANDIDATE_WAIT, .6, " block suspend stall park delay " },
	{ CANDIDATE_ACQUIRE, .9, " acquire " },
	{ CANDIDATE_ACQUIRE, .8, " pin rdlock wrlock " },
	{ CANDIDATE_ACQUIRE, .7,
	  " lock trylock reserve alloc allocate obtain checkout " },
	{ CANDIDATE_ACQUIRE, .6, " claim grab retain borrow " },
	{ CANDIDATE_ACQUIRE, .5, " open create hold enter enqueue " },
	{ CANDIDATE_ACQUIRE, .4, " new take begin register attach push accept " },
	{ CANDIDATE_ACQUIRE, .3, " get start add insert append make incr load store " },
	{ CANDIDATE_RELEASE, .9, " release unlock unpin " },
	{ CANDIDATE_RELEASE, .8, " free dealloc deallocate " },
	{ CANDIDATE_RELEASE, .7, " unref " },
	{ CANDIDATE_RELEASE, .6, " destroy evict purge reclaim " },
	{ CANDIDATE_RELEASE, .5,
	  " close leave unregister dequeue trim prune unblock erase " },
	{ CANDIDATE_RELEASE, .4,
	  " drop delete return detach unlink decr discard vacuum truncate commit "
	  "rollback invalidate expire " },
	{ CANDIDATE_RELEASE, .3, " remove put end exit pop clear finish cleanup abort " },
	{ CANDIDATE_RELEASE, .2, " reset flush " },
	{ CANDIDATE_USE, .5, " lookup access use touch " },
	{ CANDIDATE_USE, .4, " read write fetch search scan " },
	{ CANDIDATE_USE, .3, " find visit iterate " },
	{ CANDIDATE_USE, .2, " apply update execute process send recv " },
};

struct lexeme {
	enum candidate_event event;
	double strength;
};

/* What these databases, caches and servers share out among their clients. */
static const char *const nouns[] = {
	"lock",	      "mutex",	    "latch",	  "rwlock",	 "semaphore",
	"sem",	      "monitor",    "buffer",	  "buf",	 "bufferpool",
	"pool",	      "cache",	    "slot",	  "worker",	 "thread",
	"connection", "conn",	    "client",	  "session",	 "queue",
	"log",	      "wal",	    "redo",	  "undo",	 "rseg",
	"segment",    "page",	    "snapshot",	  "trx",	 "transaction",
	"xact",	      "handle",	    "cursor",	  "portal",	 "statement",
	"stmt",	      "memory",	    "mem",	  "arena",	 "heap",
	"chunk",      "slab",	    "listener",	  "ticket",	 "token",
	"quota",      "lru",	    "scoreboard", "child",	 "file",
	"socket",     "descriptor", "request",	  "slru",	 "subtrans",
	"clog",	      "lease",	    "permit",	  "reservation", "mdl",
	"extent",     "tablespace", "relation",	  "table",	 "share",
	"history",    "purge",	    "list",	  "freelist",	 "backlog",
	"reader",     "writer",	    "subscriber", "channel",	 "output",
	"reply",      "record",	    "frame",	  "fd",		 "pipe",
	"bucket",     "barrier",    "credit",
};

/* Say nothing about the thing. */
static const char *const fillers[] = {
	"ap",	 "apr",	 "my",
	"do",	 "try",	 "if",
	"for",	 "to",	 "from",
	"in",	 "on",	 "of",
	"the",	 "a",	 "all",
	"and",	 "or",	 "with",
	"by",	 "no",	 "is",
	"low",	 "func", "internal",
	"impl",	 "ex",	 "full",
	"one",	 "up",	 "at",
	"maybe", "cond", "conditionally",
};

static bool is_in(const char *const *list, size_t count, const char *word)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(list[i], word))
			return true;
	return false;
}

#define IS_IN(list, word) is_in(list, sizeof(list) / sizeof(*(list)), word)

static void add_word(struct words *words, const char *from, size_t length)
{
	if (!length || words->count == WORDS_MAX)
		return;
	char *to = words->word[words->count++];

	if (length >= WORDS_MAX_BYTES)
		length = WORDS_MAX_BYTES - 1;
	for (size_t i = 0; i < length; i++)
		to[i] = (char)tolower((unsigned char)from[i]);
	to[length] = 0;
}

/* "LWLockAcquire", "ap_queue_push", "SimpleLruReadPage": at case and at signs. */
static void cut_identifier(struct words *words, const char *text, size_t length)
{
	size_t begin = 0;

	for (size_t i = 0; i < length; i++) {
		unsigned char c = (unsigned char)text[i];
		bool is_sign = !isalpha(c);
		bool is_hump = isupper(c) && i > begin &&
			       (islower((unsigned char)text[i - 1]) ||
				(i + 1 < length && islower((unsigned char)text[i + 1])));

		if (!is_sign && !is_hump)
			continue;
		add_word(words, text + begin, i - begin);
		begin = is_sign ? i + 1 : i;
	}
	add_word(words, text + begin, length - begin);
}

void words_cut(const char *name, struct words *ret_words)
{
	size_t begin = 0, depth = 0, i = 0;

	memset(ret_words, 0, sizeof(*ret_words));
	if (strchr(name, ' ') && !strchr(name, '('))
		return;
	for (; name[i]; i++) {
		char c = name[i];

		if (c == '<' && ++depth == 1)
			cut_identifier(ret_words, name + begin, i - begin);
		else if (c == '>' && depth && --depth == 0)
			begin = i + 1;
		if (depth)
			continue;
		if (c == '(' || c == '.' || c == '@' || c == '[')
			break;
		if (c == ' ') /* the result's type, of templates */
			memset(ret_words, 0, sizeof(*ret_words));
		if (c == ':') {
			cut_identifier(ret_words, name + begin, i - begin);
			ret_words->scope = ret_words->count;
		}
		if (c == ' ' || c == ':' || c == '>')
			begin = i + 1;
	}
	if (!depth)
		cut_identifier(ret_words, name + begin, i - begin);
}

/* zmalloc, palloc, sdsfree: somebody's own. */
static const char *plain_verb(const char *word)
{
	size_t length = strlen(word);

	if (length > 5 && !strcmp(word + length - 5, "alloc"))
		return "alloc";
	if (length > 4 && length < 8 && !strcmp(word + length - 4, "free"))
		return "free";
	return word;
}

static bool lexeme_of(const char *word, struct lexeme *ret_lexeme)
{
	char spaced[WORDS_MAX_BYTES + 2];

	snprintf(spaced, sizeof(spaced), " %s ", plain_verb(word));
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++) {
		if (!strstr(verbs[i].words, spaced))
			continue;
		*ret_lexeme = (struct lexeme){ verbs[i].event, verbs[i].strength };
		return true;
	}
	return false;
}

bool words_verb(const struct words *words, struct words_verb *ret_verb)
{
	double best = 0;

	for (size_t i = words->scope; i < words->count; i++) {
		struct lexeme lexeme;

		if (!lexeme_of(words->word[i], &lexeme))
			continue;
		/* Names begin or end with what is done. */
		double strength = lexeme.strength +
				  (i == words->scope || i + 1 == words->count ? .1 : 0);

		if (strength <= best)
			continue;
		best = strength;
		*ret_verb = (struct words_verb){ lexeme.event, i, lexeme.strength };
	}
	return best > 0;
}

bool words_is_noun(const char *word)
{
	char single[WORDS_MAX_BYTES];
	size_t length = strlen(word);

	if (IS_IN(nouns, word))
		return true;
	if (length < 4 || word[length - 1] != 's')
		return false;
	memcpy(single, word, length);
	single[length - 1] = 0;
	return IS_IN(nouns, single);
}

static void add_stem(char *text, size_t bytes, const char *word)
{
	size_t used = strlen(text), length = strlen(word);

	if (length > 4 && word[length - 1] == 's' && word[length - 2] != 's')
		length--;
	snprintf(text + used, bytes - used, "%s%.*s", used ? "-" : "", (int)length, word);
}

void words_stem(const struct words *words, const struct words_verb *verb, char *ret_text,
		size_t bytes)
{
	struct lexeme lexeme;

	*ret_text = 0;
	/* A class is what its methods are about. */
	if (words->scope) {
		for (size_t i = 0; i < words->scope; i++)
			add_stem(ret_text, bytes, words->word[i]);
		return;
	}
	for (size_t i = 0; i < words->count; i++) {
		if (i == verb->at || IS_IN(fillers, words->word[i]) ||
		    (lexeme_of(words->word[i], &lexeme) &&
		     !words_is_noun(words->word[i])))
			continue;
		add_stem(ret_text, bytes, words->word[i]);
	}
}
