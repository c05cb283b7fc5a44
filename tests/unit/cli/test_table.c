// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <cmocka.h>

#include "cli/table.h"

static const struct column columns[] = {
	{ "type", "TYPE", COLUMN_TEXT, COLUMN_CUT },
	{ "samples", "SAMPLES", COLUMN_COUNT, 0 },
	{ "share", "SHARE", COLUMN_SHARE, 0 },
	{ "va", "VA", COLUMN_HEX, COLUMN_MACHINE },
	{ "type_id", "ID", COLUMN_ID, COLUMN_MACHINE },
};

static struct table *two_rows(void)
{
	struct table *table = table_new(columns, 5);

	table_row(table);
	table_text(table, 0, "struct dict");
	table_number(table, 1, 123456);
	table_real(table, 2, 0.5);
	table_number(table, 3, 0x1f80);
	table_number(table, 4, -1);
	table_row(table);
	table_text(table, 0, "a\tb\nc\\d");
	table_number(table, 1, 7);
	return table;
}

enum printer { PEOPLE, NARROW, TSV };

static char *print(const struct table *table, enum printer printer)
{
	char *text = NULL;
	size_t bytes;
	FILE *file = open_memstream(&text, &bytes);

	if (printer == TSV)
		table_print_tsv(table, file);
	else
		assert_null(table_print(table, file, printer == NARROW ? 20 : 0, false));
	fclose(file);
	return text;
}

static void people_get_units_on_the_right_and_no_machine_columns(void **state)
{
	struct table *table = two_rows();
	char *text = print(table, PEOPLE);

	(void)state;
	assert_string_equal(text, "TYPE        SAMPLES SHARE\n"
				  "struct dict    123k 50.0%\n"
				  "a?b?c\\d           7     -\n");
	free(text);
	table_free(table);
}

static void programs_get_exact_figures_and_escaped_tabs(void **state)
{
	struct table *table = two_rows();
	char *text = print(table, TSV);

	(void)state;
	assert_string_equal(text, "type\tsamples\tshare\tva\ttype_id\n"
				  "struct dict\t123456\t0.5\t0x1f80\t"
				  "0xffffffffffffffff\n"
				  "a\\tb\\nc\\\\d\t7\t\t\t\n");
	free(text);
	table_free(table);
}

static void no_line_is_wider_than_the_terminal(void **state)
{
	struct table *table = two_rows();
	char *text = print(table, NARROW);

	(void)state;
	for (char *line = strtok(text, "\n"); line; line = strtok(NULL, "\n"))
		assert_true(strlen(line) <= 20);
	free(text);
	table_free(table);
}

static void json_keeps_64_bit_ids_as_strings(void **state)
{
	struct table *table = two_rows();
	json_t *rows = table_json(table), *row = json_array_get(rows, 0);

	(void)state;
	assert_int_equal(json_array_size(rows), 2);
	assert_string_equal(json_string_value(json_object_get(row, "type_id")),
			    "0xffffffffffffffff");
	assert_string_equal(json_string_value(json_object_get(row, "va")), "0x1f80");
	assert_int_equal(json_integer_value(json_object_get(row, "samples")), 123456);
	assert_true(json_real_value(json_object_get(row, "share")) == 0.5);
	assert_true(json_is_null(json_object_get(json_array_get(rows, 1), "share")));
	json_decref(rows);
	table_free(table);
}

static void bytes_that_are_no_utf8_become_a_replacement(void **state)
{
	json_t *string = json_text("a\xff\xc3\xa4\xe2\x82z");

	(void)state;
	assert_string_equal(json_string_value(string), "a\xef\xbf\xbd\xc3\xa4\xef\xbf\xbd"
						       "\xef\xbf\xbdz");
	json_decref(string);
}

static void a_column_is_text_if_one_cell_is_and_hidden_if_none_says_anything(void **state)
{
	static const struct column some[] = {
		{ "a", "A", COLUMN_AUTO, 0 },
		{ "b", "B", COLUMN_AUTO, 0 },
		{ "c", "C", COLUMN_COUNT, COLUMN_IF_ANY },
		{ "d", "D", COLUMN_COUNT, COLUMN_IF_ANY },
	};
	struct table *table = table_new(some, 4);

	(void)state;
	for (int i = 0; i < 2; i++) {
		table_row(table);
		table_number(table, 0, 1);
		table_text(table, 1, "x");
		table_number(table, 2, 0);
		table_number(table, 3, i);
	}
	table_settle(table, COLUMN_NUMBER);
	char *text = print(table, PEOPLE);

	assert_string_equal(text, "A B D\n1 x 0\n1 x 1\n");
	free(text);
	text = print(table, TSV);
	assert_string_equal(text, "a\tb\tc\td\n1\tx\t0\t0\n1\tx\t0\t1\n");
	free(text);
	table_free(table);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(people_get_units_on_the_right_and_no_machine_columns),
		cmocka_unit_test(programs_get_exact_figures_and_escaped_tabs),
		cmocka_unit_test(no_line_is_wider_than_the_terminal),
		cmocka_unit_test(json_keeps_64_bit_ids_as_strings),
		cmocka_unit_test(bytes_that_are_no_utf8_become_a_replacement),
		cmocka_unit_test(
			a_column_is_text_if_one_cell_is_and_hidden_if_none_says_anything),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
