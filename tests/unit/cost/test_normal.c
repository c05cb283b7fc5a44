// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>

#include "cost/normal.h"

struct row {
	const char *raw, *normal;
};

static void check(const struct row *rows, unsigned flags)
{
	char name[NORMAL_MAX_BYTES];

	for (; rows->raw; rows++) {
		normal_name(rows->raw, strlen(rows->raw), flags, name);
		assert_string_equal(name, rows->normal);
	}
}

static void literals_of_sql_become_one_mark(void **state)
{
	static const struct row rows[] = {
		{ "SELECT * FROM t WHERE id = 42", "SELECT * FROM t WHERE id = ?" },
		{ "select a from t where b='it''s' and c=\"x\";",
		  "select a from t where b=? and c=?" },
		{ "select a from t where b='x\\'y' or d=1",
		  "select a from t where b=? or d=?" },
		{ "SELECT 1.5e-3, 0xFF, .5", "SELECT ?" },
		{ "SELECT x FROM t1 WHERE y IN (1, 2,3 , 4)",
		  "SELECT x FROM t1 WHERE y IN (?)" },
		{ "INSERT INTO t (a, b) VALUES (1, 'x'), (2, 'y'), (3, 'z')",
		  "INSERT INTO t (a, b) VALUES (?)" },
		{ "SELECT a /* user=bob */ FROM t -- secret\n WHERE b = $1",
		  "SELECT a FROM t WHERE b = ?" },
		{ "/* trace 12 */ SELECT a FROM t # end", "SELECT a FROM t" },
		{ "SELECT $body$it's 12$body$, E'x\\'', `col 1` FROM t",
		  "SELECT ?, col 1 FROM t" },
		{ "  SELECT\n\ta\n\tFROM   t", "SELECT a FROM t" },
		{ "BEGIN;", "BEGIN" },
		{ "SELECT 'never ends", "SELECT ?" },
		{ "UPDATE t SET a = -5 WHERE b = -7",
		  "UPDATE t SET a = -? WHERE b = -?" },
		{ NULL, NULL },
	};

	(void)state;
	check(rows, 0);
}

static void double_quotes_are_what_the_dialect_says(void **state)
{
	static const struct row literal[] = {
		{ "SELECT \"a\" FROM t", "SELECT ? FROM t" },
		{ NULL, NULL },
	};
	static const struct row name[] = {
		{ "SELECT \"u\".\"id\" FROM \"u\" WHERE x='a'",
		  "SELECT u.id FROM u WHERE x=?" },
		{ NULL, NULL },
	};

	(void)state;
	check(literal, 0);
	check(name, NORMAL_QUOTED_NAMES);
}

static void ids_in_paths_are_replaced_and_queries_go(void **state)
{
	static const struct row rows[] = {
		{ "/users/123/orders?token=abc", "/users/:id/orders" },
		{ "/o/550e8400-e29b-41d4-a716-446655440000", "/o/:id" },
		{ "/i/deadbeef01/x#top", "/i/:id/x" },
		{ "/helloworld.Greeter/SayHello2", "/helloworld.Greeter/SayHello2" },
		{ "/v2/api/bob%40x.org/me", "/v2/api/:id/me" },
		{ "/a/bob@example.org", "/a/:id" },
		{ "/", "/" },
		{ "/static/20230401120000/app.js", "/static/:id/app.js" },
		{ "http://bob:pw@host:8080/x/17?q=1", "http://host:8080/x/:id" },
		{ NULL, NULL },
	};

	(void)state;
	check(rows, 0);
}

static void plain_names_stay(void **state)
{
	static const struct row rows[] = {
		{ "get", "get" },
		{ "set", "set" },
		{ "Calculator.add2", "Calculator.add2" },
		{ "user:12345:cart", "user:?:cart" },
		{ "", "" },
		{ "a\x01\xff", "a.." },
		{ NULL, NULL },
	};

	(void)state;
	check(rows, 0);
}

static void a_name_is_bounded_and_says_that_it_was_cut(void **state)
{
	char raw[4000], name[NORMAL_MAX_BYTES];

	(void)state;
	memset(raw, 'x', sizeof(raw));
	memcpy(raw, "SELECT ", 7);
	normal_name(raw, sizeof(raw), 0, name);
	assert_int_equal(strlen(name), NORMAL_MAX_BYTES - 1);
	assert_string_equal(name + strlen(name) - 3, "...");
	normal_name("SELECT a FROM", 13, NORMAL_CUT, name);
	assert_string_equal(name, "SELECT a FROM...");
}

static void the_hash_is_that_of_the_normal_name_and_shows_no_text(void **state)
{
	char one[NORMAL_MAX_BYTES], two[NORMAL_MAX_BYTES], other[NORMAL_MAX_BYTES];

	(void)state;
	normal_name("SELECT secret FROM t WHERE a=1", 30, NORMAL_HASH, one);
	normal_name("SELECT secret FROM t WHERE a=2", 30, NORMAL_HASH, two);
	normal_name("SELECT public FROM t WHERE a=2", 30, NORMAL_HASH, other);
	assert_string_equal(one, two);
	assert_string_not_equal(one, other);
	assert_int_equal(strlen(one), 17);
	assert_null(strstr(one, "secret"));
}

/* Any bytes give printable text in bounds: the sanitizer build sees the rest. */
static void any_bytes_give_printable_text(void **state)
{
	char raw[64], name[NORMAL_MAX_BYTES];

	(void)state;
	srand(7);
	for (int round = 0; round < 20000; round++) {
		size_t bytes = (size_t)rand() % sizeof(raw);

		for (size_t i = 0; i < bytes; i++)
			raw[i] = "SELECT '\"$`\\/*-#?(),:@%e0\x80 1a"[rand() % 30];
		if (round & 1 && bytes > 7)
			memcpy(raw, "SELECT ", 7);
		normal_name(raw, bytes, (unsigned)round & 3, name);
		assert_true(strlen(name) < NORMAL_MAX_BYTES);
		for (const char *at = name; *at; at++)
			assert_true(*at >= ' ' && *at < 0x7f);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(literals_of_sql_become_one_mark),
		cmocka_unit_test(double_quotes_are_what_the_dialect_says),
		cmocka_unit_test(ids_in_paths_are_replaced_and_queries_go),
		cmocka_unit_test(plain_names_stay),
		cmocka_unit_test(a_name_is_bounded_and_says_that_it_was_cut),
		cmocka_unit_test(the_hash_is_that_of_the_normal_name_and_shows_no_text),
		cmocka_unit_test(any_bytes_give_printable_text),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
