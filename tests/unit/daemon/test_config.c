// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/file.h"
#include "core/mem.h"
#include "daemon/config.h"

/* Write @text to a file of its own; the caller unlinks and frees. */
static char *file_of(const char *text)
{
	char *path = mem_strdup("/tmp/assay-config-XXXXXX");
	int fd = mkstemp(path);

	assert_true(fd >= 0);
	assert_null(file_write_all(fd, text, strlen(text)));
	close(fd);
	return path;
}

static struct err *load(struct config *config, const char *text)
{
	char *path = file_of(text);
	struct err *err = config_load(config, path);

	unlink(path);
	free(path);
	return err;
}

static void settings_of_a_file_replace_the_defaults(void **state)
{
	CLEANUP(config_fini) struct config config;

	(void)state;
	config_defaults(&config);
	assert_null(load(&config, "[sampling]\ntarget = pid:12\nrate=50\nring = 1M\n"
				  "[store]\nkeep_1s = 30s\n; a comment\nquota = 64M\n"));
	assert_string_equal(config.target, "pid:12");
	assert_int_equal(config.rate_hz, 50);
	assert_int_equal(config.ring_bytes, 1 << 20);
	assert_int_equal(config.keep_1s_ns, 30000000000ull);
	assert_int_equal(config.quota_bytes, 64 << 20);
	assert_int_equal(config.tick_hz, 24);
}

static void a_bad_file_names_its_line_and_changes_nothing(void **state)
{
	static const struct {
		const char *text, *line, *word;
	} bad[] = {
		{ "[sampling]\nrate = many\n", ":2", "many" },
		{ "rate = 0\n", ":1", "outside" },
		{ "\n[store]\nrate = 5\n", ":3", "belongs into [sampling]" },
		{ "nonsense = 1\n", ":1", "unknown setting" },
		{ "[sampling]\nring = 3000000\n", "", "power of two" },
		{ "[sampling]\ntarget = everything\n", "", "everything" },
		{ "sources = clock, pebbles\n", "", "pebbles" },
		{ "keep_1s = 8d\n", "", "must not fall" },
		{ "quota = 99999999999999999999G\n", ":1", "quota" },
		{ "what is this\n", ":1", "key = value" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		CLEANUP(config_fini) struct config config;

		config_defaults(&config);
		struct err *err = load(&config, bad[i].text);

		assert_non_null(err);
		if (!strstr(err->text, bad[i].word) || !strstr(err->text, bad[i].line))
			fail_msg("case %zu: %s", i, err->text);
		assert_string_equal(config.target, "all");
		assert_int_equal(config.rate_hz, 49);
		err_free(err);
	}
}

static void a_printed_config_loads_back_to_the_same_values(void **state)
{
	CLEANUP(config_fini) struct config config;
	CLEANUP(config_fini) struct config again;
	char *text = NULL;
	size_t bytes;
	FILE *out = open_memstream(&text, &bytes);

	(void)state;
	config_defaults(&config);
	assert_null(config_set(&config, "keep_1h", "40d"));
	assert_null(config_set(&config, "user", "nobody"));
	config_print(&config, out);
	fclose(out);
	config_defaults(&again);
	assert_null(load(&again, text));
	assert_int_equal(again.keep_1h_ns, 40ull * 86400 * 1000000000);
	assert_string_equal(again.user, "nobody");
	assert_int_equal(again.stack_bytes, config.stack_bytes);
	assert_string_equal(again.socket, config.socket);
	free(text);
}

static void targets_parse_to_their_kind_or_not_at_all(void **state)
{
	static const struct {
		const char *text;
		enum target_kind kind; /* 0: refused */
		uint32_t pid;
		const char *name;
	} cases[] = {
		{ "all", TARGET_ALL, 0, NULL },
		{ "pid:1", TARGET_PID, 1, NULL },
		{ "pid:0", 0, 0, NULL },
		{ "pid:-4", 0, 0, NULL },
		{ "pid:12x", 0, 0, NULL },
		{ "pid:99999999999", 0, 0, NULL },
		{ "cgroup:/a/b", TARGET_CGROUP, 0, "/a/b" },
		{ "cgroup:", 0, 0, NULL },
		{ "service:nginx", TARGET_SERVICE, 0, "nginx" },
		{ "service:../x", 0, 0, NULL },
		{ "", 0, 0, NULL },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct target target;
		struct err *err = target_parse(cases[i].text, &target);

		if (!cases[i].kind) {
			assert_non_null(err);
			err_free(err);
			continue;
		}
		assert_null(err);
		assert_int_equal(target.kind, cases[i].kind);
		assert_int_equal(target.pid, cases[i].pid);
		if (cases[i].name)
			assert_string_equal(target.name, cases[i].name);
		target_fini(&target);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(settings_of_a_file_replace_the_defaults),
		cmocka_unit_test(a_bad_file_names_its_line_and_changes_nothing),
		cmocka_unit_test(a_printed_config_loads_back_to_the_same_values),
		cmocka_unit_test(targets_parse_to_their_kind_or_not_at_all),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
