// SPDX-License-Identifier: Apache-2.0
/*
 * One pass over the bytes, no grammar. SQL is lexed as far as to know what is a literal;
 * whether the statement makes sense is the server's concern. When in doubt a token is a
 * literal: two kinds that fall together cost precision, a literal that gets through
 * costs somebody's secret.
 */
#include "cost/normal.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <strings.h>

#include "core/intern.h"

#define MIN_HEX_ID  8  /* digits and a-f, at least one digit */
#define MAX_SEGMENT 40 /* longer segments of a path are no names */
#define MIN_DIGITS  4  /* in a plain name: shorter runs belong to it */

struct scan {
	const char *at, *end;
	unsigned flags;
	char *out; /* NORMAL_MAX_BYTES */
	size_t length;
	bool full;
};

static void put(struct scan *scan, char c)
{
	if (scan->length + 1 >= NORMAL_MAX_BYTES) {
		scan->full = true;
		return;
	}
	scan->out[scan->length++] = c >= ' ' && c < 0x7f ? c : '.';
}

static void put_text(struct scan *scan, const char *text)
{
	while (*text)
		put(scan, *text++);
}

static char peek(const struct scan *scan, size_t ahead)
{
	return (size_t)(scan->end - scan->at) > ahead ? scan->at[ahead] : 0;
}

static bool is_word(char c)
{
	return isalnum((unsigned char)c) || c == '_' || c & 0x80;
}

/* SQL. */

static bool ends_with(const struct scan *scan, const char *tail)
{
	size_t length = strlen(tail);

	return scan->length >= length &&
	       !memcmp(scan->out + scan->length - length, tail, length);
}

static bool cut_tail(struct scan *scan, const char *tail)
{
	if (!ends_with(scan, tail))
		return false;
	scan->length -= strlen(tail);
	return true;
}

static void blank(struct scan *scan)
{
	if (scan->length && scan->out[scan->length - 1] != ' ' &&
	    scan->out[scan->length - 1] != '(')
		put(scan, ' ');
}

/* A literal; one that follows another after a comma is the same list. */
static void literal(struct scan *scan)
{
	static const char *const before[] = { "?, ", "?,", "?, -", "?,-" };

	for (size_t i = 0; i < sizeof(before) / sizeof(*before); i++)
		if (cut_tail(scan, before[i]))
			break;
	put(scan, '?');
}

/* (?), (?) is (?): the rows of an INSERT. */
static void close_list(struct scan *scan)
{
	cut_tail(scan, " ");
	put(scan, ')');
	if (cut_tail(scan, "(?), (?)") || cut_tail(scan, "(?),(?)"))
		put_text(scan, "(?)");
}

/* To the end of what @quote began; doubled quotes and backslashes do not end it. */
static void skip_quoted(struct scan *scan, char quote)
{
	scan->at++;
	while (scan->at < scan->end) {
		char c = *scan->at++;

		if (c == '\\' && quote != '`' && scan->at < scan->end)
			scan->at++;
		else if (c == quote && peek(scan, 0) == quote)
			scan->at++;
		else if (c == quote)
			return;
	}
}

static void quoted_name(struct scan *scan, char quote)
{
	const char *begin = scan->at;

	skip_quoted(scan, quote);
	for (const char *at = begin; at < scan->at; at++)
		if (*at != quote)
			put(scan, *at);
}

/* $1, $tag$ ... $tag$ */
static void dollar(struct scan *scan)
{
	const char *tag = scan->at++;

	while (is_word(peek(scan, 0)))
		scan->at++;
	size_t bytes = (size_t)(scan->at - tag) + 1;

	if (peek(scan, 0) == '$') {
		scan->at++;
		while (scan->at < scan->end && ((size_t)(scan->end - scan->at) < bytes ||
						memcmp(scan->at, tag, bytes) != 0))
			scan->at++;
		scan->at += scan->at < scan->end ? bytes : 0;
	}
	literal(scan);
}

static bool skip_comment(struct scan *scan)
{
	char first = peek(scan, 0), second = peek(scan, 1);

	if (first == '#' || (first == '-' && second == '-')) {
		while (scan->at < scan->end && *scan->at != '\n')
			scan->at++;
		return true;
	}
	if (first != '/' || second != '*')
		return false;
	scan->at += 2;
	while (scan->at < scan->end && !(peek(scan, 0) == '*' && peek(scan, 1) == '/'))
		scan->at++;
	scan->at += scan->at < scan->end ? 2 : 0;
	return true;
}

static void number(struct scan *scan)
{
	while (is_word(peek(scan, 0)) || peek(scan, 0) == '.' ||
	       ((peek(scan, 0) == '-' || peek(scan, 0) == '+') &&
		(scan->at[-1] == 'e' || scan->at[-1] == 'E') &&
		isdigit((unsigned char)peek(scan, 1))))
		scan->at++;
	literal(scan);
}

/* A word, unless it is the prefix of a string: E'', N'', X'', B''. */
static void word(struct scan *scan)
{
	if (peek(scan, 1) == '\'' && strchr("eEnNxXbB", *scan->at)) {
		scan->at++;
		return;
	}
	while (is_word(peek(scan, 0)))
		put(scan, *scan->at++);
}

static void sql_token(struct scan *scan)
{
	char c = *scan->at;

	if (c == '\'' || (c == '"' && !(scan->flags & NORMAL_QUOTED_NAMES))) {
		skip_quoted(scan, c);
		literal(scan);
	} else if (c == '"' || c == '`') {
		quoted_name(scan, c);
	} else if (c == '$') {
		dollar(scan);
	} else if (isdigit((unsigned char)c) ||
		   (c == '.' && isdigit((unsigned char)peek(scan, 1)))) {
		number(scan);
	} else if (is_word(c)) {
		word(scan);
	} else if (c == '?') {
		scan->at++;
		literal(scan);
	} else if (c == ')') {
		scan->at++;
		close_list(scan);
	} else {
		scan->at++;
		if (c == ',')
			cut_tail(scan, " ");
		put(scan, c);
	}
}

static void sql(struct scan *scan)
{
	while (scan->at < scan->end && !scan->full) {
		if (isspace((unsigned char)*scan->at) || skip_comment(scan)) {
			scan->at +=
				scan->at < scan->end && isspace((unsigned char)*scan->at);
			blank(scan);
		} else {
			sql_token(scan);
		}
	}
	while (cut_tail(scan, " ") || cut_tail(scan, ";"))
		;
}

static bool is_sql(const char *text, size_t bytes)
{
	static const char *const verbs[] = {
		"select",  "insert",  "update",	  "delete",   "with",	 "begin",
		"commit",  "set",     "show",	  "replace",  "call",	 "create",
		"alter",   "drop",    "values",	  "rollback", "explain", "analyze",
		"execute", "prepare", "truncate", "copy",     "vacuum",	 "merge",
		"declare", "fetch",   "do",	  "start",
	};
	size_t length = 0;

	while (length < bytes && isalpha((unsigned char)text[length]))
		length++;
	if (!length || (length < bytes && !strchr(" \t\r\n;(/*", text[length])))
		return false;
	/* "set" alone is a command of redis; a statement goes on. */
	if (length == bytes)
		return false;
	for (size_t i = 0; i < sizeof(verbs) / sizeof(*verbs); i++)
		if (strlen(verbs[i]) == length && !strncasecmp(text, verbs[i], length))
			return true;
	return false;
}

/* Paths. */

static bool ends_segment(char c)
{
	return c == '/' || c == '?' || c == '#';
}

static bool is_id(const char *text, size_t bytes)
{
	size_t digits = 0, hex = 0, dashes = 0;

	for (size_t i = 0; i < bytes; i++) {
		if (strchr("%@=;,+~", text[i]) || text[i] & 0x80)
			return true;
		digits += !!isdigit((unsigned char)text[i]);
		hex += !!isxdigit((unsigned char)text[i]);
		dashes += text[i] == '-';
	}
	if (bytes > MAX_SEGMENT || (digits && digits + dashes == bytes))
		return true;
	if (digits && hex >= MIN_HEX_ID && hex + dashes == bytes)
		return true;
	return digits >= MIN_DIGITS && digits * 3 >= bytes;
}

static void path(struct scan *scan)
{
	while (scan->at < scan->end && *scan->at != '?' && *scan->at != '#') {
		const char *begin = scan->at;

		if (*begin == '/') {
			put(scan, *scan->at++);
			continue;
		}
		while (scan->at < scan->end && !ends_segment(*scan->at))
			scan->at++;
		if (is_id(begin, (size_t)(scan->at - begin)))
			put_text(scan, ":id");
		else
			while (begin < scan->at)
				put(scan, *begin++);
	}
}

/* Behind SCHEME://, what comes before the last @ is a user's name and password. */
static bool skip_scheme(struct scan *scan)
{
	const char *at = scan->at, *begin;

	while (at < scan->end && (isalnum((unsigned char)*at) || strchr("+.-", *at)))
		at++;
	if (at == scan->at || scan->end - at < 3 || memcmp(at, "://", 3) != 0)
		return false;
	begin = at + 3;
	while (scan->at < begin)
		put(scan, *scan->at++);
	for (at = begin; at < scan->end && !ends_segment(*at); at++)
		if (*at == '@')
			scan->at = at + 1;
	while (scan->at < scan->end && !ends_segment(*scan->at))
		put(scan, *scan->at++);
	return true;
}

static void plain(struct scan *scan)
{
	while (scan->at < scan->end) {
		const char *begin = scan->at;

		while (isdigit((unsigned char)peek(scan, 0)))
			scan->at++;
		if (scan->at - begin >= MIN_DIGITS)
			put(scan, '?');
		else
			while (begin < scan->at)
				put(scan, *begin++);
		if (scan->at < scan->end)
			put(scan, *scan->at++);
	}
}

void normal_name(const char *text, size_t bytes, unsigned flags, char *ret_name)
{
	struct scan scan = { text, text + bytes, flags, ret_name, 0, false };

	while (scan.at < scan.end &&
	       (isspace((unsigned char)*scan.at) || skip_comment(&scan)))
		scan.at += scan.at < scan.end && isspace((unsigned char)*scan.at);
	if (is_sql(scan.at, (size_t)(scan.end - scan.at)))
		sql(&scan);
	else if (peek(&scan, 0) == '/' || skip_scheme(&scan))
		path(&scan);
	else
		plain(&scan);
	ret_name[scan.length] = 0;
	if (scan.full || flags & NORMAL_CUT) {
		size_t at = scan.length < NORMAL_MAX_BYTES - 4 ? scan.length
							       : NORMAL_MAX_BYTES - 4;

		memcpy(ret_name + at, "...", 4);
	}
	if (flags & NORMAL_HASH)
		snprintf(ret_name, NORMAL_MAX_BYTES, "#%016llx",
			 (unsigned long long)hash_text(ret_name, 0));
}
