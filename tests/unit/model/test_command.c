// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <string.h>
#include <cmocka.h>

#include "core/cleanup.h"
#include "model/command.h"

static struct err *parse(const char *line, struct command *command)
{
	return command_parse(line, strlen(line), command);
}

static void a_request_gives_its_verb_and_its_decoded_values(void **state)
{
	static struct command command;
	uint64_t ns = 0;

	(void)state;
	assert_null(
		parse("attach target=service%3Amy%20app for_ns=10000000000", &command));
	assert_int_equal(command.verb, COMMAND_ATTACH);
	assert_int_equal(command.args.count, 2);
	assert_string_equal(command_arg(&command.args, "target"), "service:my app");
	assert_null(command_number(&command.args, "for_ns", &ns));
	assert_int_equal(ns, 10000000000);
	assert_null(command_arg(&command.args, "run"));
}

static void a_malformed_request_is_refused_with_its_kind_of_fault(void **state)
{
	static const struct {
		const char *line;
		enum err_code code;
	} cases[] = {
		{ "", ERR_INVALID },
		{ "frobnicate", ERR_INVALID },
		{ "PING", ERR_INVALID },
		{ " ping", ERR_INVALID },
		{ "ping ", ERR_FORMAT },
		{ "ping x=1", ERR_INVALID },
		{ "attach", ERR_INVALID },
		{ "attach for_ns=1", ERR_INVALID },
		{ "attach target=all target=all", ERR_INVALID },
		{ "attach  target=all", ERR_FORMAT },
		{ "attach target", ERR_FORMAT },
		{ "attach =all", ERR_FORMAT },
		{ "attach Target=all", ERR_FORMAT },
		{ "attach target=%", ERR_FORMAT },
		{ "attach target=%4", ERR_FORMAT },
		{ "attach target=%4G", ERR_FORMAT },
		{ "attach target=%00", ERR_FORMAT },
		{ "attach target=\xc3\xa4", ERR_FORMAT },
		{ "attach target=a\tb", ERR_FORMAT },
		{ "ping\n", ERR_FORMAT },
	};
	static struct command command;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err *err = parse(cases[i].line, &command);

		if (!err || err->code != cases[i].code)
			fail_msg("'%s': %s", cases[i].line, err ? err->text : "accepted");
		err_free(err);
	}
}

static void a_nul_inside_a_line_is_refused(void **state)
{
	static struct command command;
	struct err *err = command_parse("ping\0x", 6, &command);

	(void)state;
	assert_non_null(err);
	assert_int_equal(err->code, ERR_FORMAT);
	err_free(err);
}

static void the_longest_line_passes_and_one_byte_more_does_not(void **state)
{
	static struct command command;
	static char line[COMMAND_MAX_LINE + 1];
	static const char head[] = "attach target=";

	(void)state;
	memset(line, 'a', sizeof(line));
	memcpy(line, head, sizeof(head) - 1);
	assert_null(command_parse(line, COMMAND_MAX_LINE - 1, &command));
	assert_int_equal(strlen(command_arg(&command.args, "target")),
			 COMMAND_MAX_LINE - 1 - (sizeof(head) - 1));

	struct err *err = command_parse(line, COMMAND_MAX_LINE, &command);

	assert_non_null(err);
	assert_int_equal(err->code, ERR_LIMIT);
	err_free(err);
}

static void every_byte_but_nul_survives_the_wire(void **state)
{
	CLEANUP(str_fini) struct str line = { 0 };
	static struct command command;
	char value[256];

	(void)state;
	for (int i = 0; i < 255; i++)
		value[i] = (char)(i + 1);
	value[255] = 0;
	command_begin(&line, COMMAND_ATTACH);
	command_add(&line, "target", value);
	command_add_number(&line, "for_ns", UINT64_MAX);
	command_end(&line);
	assert_int_equal(line.data[line.length - 1], '\n');
	assert_null(memchr(line.data, '\n', line.length - 1));
	assert_null(command_parse(line.data, line.length - 1, &command));
	assert_string_equal(command_arg(&command.args, "target"), value);
	assert_string_equal(command_arg(&command.args, "for_ns"), "18446744073709551615");
}

static void every_verb_is_recognised_by_its_name(void **state)
{
	static const char *const lines[COMMAND_VERBS] = {
		"ping",	 "status", "attach target=all", "detach run=0x5",
		"flush", "reload", "types-queue",
	};
	static struct command command;

	(void)state;
	for (int i = 0; i < COMMAND_VERBS; i++) {
		assert_null(parse(lines[i], &command));
		assert_int_equal(command.verb, i);
	}
}

static void reply_lines_are_told_apart(void **state)
{
	static struct reply reply;

	(void)state;
	assert_null(reply_parse("ok run=7 db=/a%20b", 18, &reply));
	assert_int_equal(reply.kind, REPLY_OK);
	assert_string_equal(command_arg(&reply.args, "db"), "/a b");
	assert_null(reply_parse("ok", 2, &reply));
	assert_int_equal(reply.args.count, 0);
	assert_null(reply_parse(".", 1, &reply));
	assert_int_equal(reply.kind, REPLY_END);
	assert_null(reply_parse("err busy already attached: 100%25", 33, &reply));
	assert_int_equal(reply.kind, REPLY_ERR);
	assert_int_equal(reply.code, ERR_BUSY);
	assert_string_equal(reply.message, "already attached: 100%");
	assert_null(reply_parse("err from-the-future hm", 22, &reply));
	assert_int_equal(reply.code, ERR_IO);

	static const char *const bad[] = { "", "okay", "..", ". ", "err", "ok run" };

	for (size_t i = 0; i < sizeof(bad) / sizeof(*bad); i++) {
		struct err *err = reply_parse(bad[i], strlen(bad[i]), &reply);

		if (!err)
			fail_msg("'%s' was accepted", bad[i]);
		err_free(err);
	}
}

static void an_error_of_any_length_becomes_one_line_that_parses(void **state)
{
	(void)state;
	for (size_t length = COMMAND_MAX_LINE - 80; length < COMMAND_MAX_LINE; length++) {
		CLEANUP(str_fini) struct str text = { 0 }, line = { 0 };
		static struct reply reply;

		for (size_t i = 0; i < length; i++)
			str_add_char(&text, i % 3 ? '\n' : 'x');
		struct err *err = err_new(ERR_NOT_FOUND, "%s", text.data);

		reply_error(&line, err);
		err_free(err);
		assert_true(line.length <= COMMAND_MAX_LINE);
		assert_null(reply_parse(line.data, line.length - 1, &reply));
		assert_int_equal(reply.code, ERR_NOT_FOUND);
		assert_true(str_starts(text.data, reply.message));
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_request_gives_its_verb_and_its_decoded_values),
		cmocka_unit_test(a_malformed_request_is_refused_with_its_kind_of_fault),
		cmocka_unit_test(a_nul_inside_a_line_is_refused),
		cmocka_unit_test(the_longest_line_passes_and_one_byte_more_does_not),
		cmocka_unit_test(every_byte_but_nul_survives_the_wire),
		cmocka_unit_test(every_verb_is_recognised_by_its_name),
		cmocka_unit_test(reply_lines_are_told_apart),
		cmocka_unit_test(an_error_of_any_length_becomes_one_line_that_parses),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
