// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/file.h"
#include "core/log.h"

/* What @write_lines prints on standard error. */
static char *captured(void (*write_lines)(void))
{
	int pair[2], old = dup(STDERR_FILENO);
	char *text = NULL;

	assert_int_equal(pipe(pair), 0);
	dup2(pair[1], STDERR_FILENO);
	close(pair[1]);
	write_lines();
	dup2(old, STDERR_FILENO);
	close(old);
	assert_null(file_read_fd(pair[0], 65536, &text, NULL));
	close(pair[0]);
	return text;
}

static void for_people(void)
{
	unsetenv("JOURNAL_STREAM");
	log_open("assayd", LOG_INFO);
	log_warn("probe %s: %s", "x", "no such function");
	log_debug("not shown");
	log_info("two\nlines");
	log_set_level(LOG_DEBUG);
	log_debug("shown");
}

static void a_line_names_the_program_and_stays_one_line(void **state)
{
	CLEANUP(free) char *text = captured(for_people);

	(void)state;
	assert_string_equal(text, "assayd: probe x: no such function\n"
				  "assayd: two lines\n"
				  "assayd: shown\n");
}

static void for_the_journal(void)
{
	setenv("JOURNAL_STREAM", "8:1234", 1);
	log_open("assayd", LOG_NOTICE);
	log_error("bad");
	log_notice("good");
	log_info("not shown");
	unsetenv("JOURNAL_STREAM");
}

static void under_journald_a_line_starts_with_its_priority(void **state)
{
	CLEANUP(free) char *text = captured(for_the_journal);

	(void)state;
	assert_string_equal(text, "<3>bad\n<5>good\n");
}

static void level_names_are_parsed(void **state)
{
	(void)state;
	assert_int_equal(log_level_parse("error"), LOG_ERROR);
	assert_int_equal(log_level_parse("warning"), LOG_WARNING);
	assert_int_equal(log_level_parse("debug"), LOG_DEBUG);
	assert_int_equal(log_level_parse("loud"), -1);
	assert_int_equal(log_level_parse(""), -1);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_line_names_the_program_and_stays_one_line),
		cmocka_unit_test(under_journald_a_line_starts_with_its_priority),
		cmocka_unit_test(level_names_are_parsed),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
