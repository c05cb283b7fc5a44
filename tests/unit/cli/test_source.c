// SPDX-License-Identifier: Apache-2.0
/* Truth: files that the test writes, each with a line that says where it is. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <stdio.h>
#include <string.h>
#include <sys/stat.h>

#include "cli/source.h"
#include "core/err.h"
#include "core/file.h"
#include "core/mem.h"

static char *folder;

static void put(const char *name, const char *text)
{
	CLEANUP(free) char *path = mem_printf("%s/%s", folder, name);
	FILE *file = fopen(path, "w");

	assert_non_null(file);
	fputs(text, file);
	assert_int_equal(fclose(file), 0);
}

static void put_folder(const char *name)
{
	CLEANUP(free) char *path = mem_printf("%s/%s", folder, name);

	assert_int_equal(mkdir(path, 0700), 0);
}

static int make_tree(void **state)
{
	(void)state;
	folder = mem_strdup("/tmp/assay-source.XXXXXX");
	assert_non_null(mkdtemp(folder));
	put_folder("tree");
	put_folder("tree/lib");
	put("tree/one.c", "first\n\t  tree/one.c\r\nlast");
	put("tree/lib/one.c", "x\ntree/lib/one.c\n");
	put("outside.c", "x\noutside.c\n");
	return 0;
}

static int remove_tree(void **state)
{
	CLEANUP(free) char *command = mem_printf("rm -r '%s'", folder);

	(void)state;
	assert_int_equal(system(command), 0);
	free(folder);
	return 0;
}

/* Line 2 of @path; @dir below the folder, NULL none. */
static char *second(const char *dir, const char *path)
{
	CLEANUP(free) char *whole = dir ? mem_printf("%s/%s", folder, dir) : NULL;
	CLEANUP(sources_free) struct sources *sources = sources_new(whole);

	return source_line(sources, path, 2);
}

static void expect(const char *dir, const char *path, const char *wanted)
{
	CLEANUP(free) char *line = second(dir, path);

	if (!wanted) {
		assert_null(line);
		return;
	}
	assert_non_null(line);
	assert_string_equal(line, wanted);
}

static void a_file_is_read_where_it_was_compiled(void **state)
{
	CLEANUP(free) char *path = mem_printf("%s/tree/one.c", folder);

	(void)state;
	expect(NULL, path, "tree/one.c");
}

static void a_moved_tree_is_searched_by_ever_shorter_ends(void **state)
{
	(void)state;
	expect("tree", "/srv/gone/one.c", "tree/one.c");
	expect("tree", "/srv/gone/lib/one.c", "tree/lib/one.c");
	expect("tree", "/srv/out/../lib/./one.c", "tree/lib/one.c");
	expect("tree", "lib/one.c", "tree/lib/one.c");
	expect("tree", "/srv/lib/two.c", NULL);
}

static void the_moved_tree_goes_before_the_old_place(void **state)
{
	CLEANUP(free) char *path = mem_printf("%s/tree/one.c", folder);
	CLEANUP(free) char *outside = mem_printf("%s/outside.c", folder);

	(void)state;
	expect("tree/lib", path, "tree/lib/one.c");
	expect("tree/lib", outside, "outside.c");
}

static void no_name_leads_out_of_the_tree(void **state)
{
	(void)state;
	expect("tree",
	       ".."
	       "/outside.c",
	       NULL);
	expect("tree", "lib/../../outside.c", NULL);
	expect("tree", "", NULL);
	expect("tree", "..", NULL);
}

static void a_relative_name_alone_is_not_looked_for(void **state)
{
	(void)state;
	expect(NULL, "Makefile", NULL);
	expect(NULL, "tests/unit/cli/test_source.c", NULL);
}

static void only_lines_that_exist_are_given(void **state)
{
	CLEANUP(free) char *dir = mem_printf("%s/tree", folder);
	CLEANUP(sources_free) struct sources *sources = sources_new(dir);
	CLEANUP(free) char *last = source_line(sources, "one.c", 3);

	(void)state;
	assert_string_equal(last, "last");
	assert_null(source_line(sources, "one.c", 0));
	assert_null(source_line(sources, "one.c", 4));
	assert_null(source_line(sources, "one.c", UINT32_MAX));
	assert_null(source_line(sources, "lib", 1));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_file_is_read_where_it_was_compiled),
		cmocka_unit_test(a_moved_tree_is_searched_by_ever_shorter_ends),
		cmocka_unit_test(the_moved_tree_goes_before_the_old_place),
		cmocka_unit_test(no_name_leads_out_of_the_tree),
		cmocka_unit_test(a_relative_name_alone_is_not_looked_for),
		cmocka_unit_test(only_lines_that_exist_are_given),
	};

	return cmocka_run_group_tests(tests, make_tree, remove_tree);
}
