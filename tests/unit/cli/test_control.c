// SPDX-License-Identifier: Apache-2.0
/* A daemon of a few fixed replies on the other end of a real socket. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/un.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "cli/control.h"
#include "core/file.h"
#include "core/mem.h"

static char path[64];
static int listen_fd;

static int listen_somewhere(void **state)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };

	(void)state;
	snprintf(path, sizeof(path), "/tmp/assay-control-%d", getpid());
	strcpy(address.sun_path, path);
	listen_fd = socket(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0);
	return bind(listen_fd, (struct sockaddr *)&address, sizeof(address)) ||
	       listen(listen_fd, 4);
}

static int forget(void **state)
{
	(void)state;
	close(listen_fd);
	return unlink(path);
}

/* Read one line, say @reply, hang up. */
static pid_t serve(const char *reply, size_t bytes)
{
	pid_t pid = fork();
	char line[256];

	if (pid)
		return pid;
	int fd = accept(listen_fd, NULL, NULL);

	if (read(fd, line, sizeof(line)) > 0)
		err_free(file_write_all(fd, reply, bytes));
	_exit(0);
}

static struct err *collect(void *ctx, const struct command_args *args)
{
	char *text = ctx;

	strcat(text, command_arg(args, "a"));
	return NULL;
}

static struct err *ask(const char *reply, size_t bytes, char *ret_text)
{
	CLEANUP(control_close) struct control *control = NULL;
	pid_t pid = serve(reply, bytes);
	struct err *err = control_open(path, &control);

	ret_text[0] = 0;
	if (!err)
		err = control_ask(control, "status\n", 5000, collect, ret_text);
	waitpid(pid, NULL, 0);
	return err;
}

static void every_line_of_the_reply_arrives(void **state)
{
	static const char reply[] = "ok a=1\nok a=two%20words\nok a=3\n.\n";
	char text[256];

	(void)state;
	assert_null(ask(reply, strlen(reply), text));
	assert_string_equal(text, "1two words3");
}

static void the_daemons_error_keeps_its_code_and_text(void **state)
{
	static const char reply[] = "ok a=1\nerr busy somebody else is here\n.\n";
	char text[256];
	struct err *err = ask(reply, strlen(reply), text);

	(void)state;
	assert_non_null(err);
	assert_int_equal(err->code, ERR_BUSY);
	assert_string_equal(err->text, "somebody else is here");
	err_free(err);
}

static void a_broken_reply_is_an_error_and_no_hang(void **state)
{
	static char endless[COMMAND_MAX_LINE + 10];
	const struct {
		const char *reply;
		size_t bytes;
		enum err_code code;
	} cases[] = {
		{ "", 0, ERR_CLOSED },
		{ "ok a=1\n", 7, ERR_CLOSED },
		{ "ok a=1", 6, ERR_CLOSED },
		{ "hello\n.\n", 8, ERR_FORMAT },
		{ "ok a=%zz\n.\n", 11, ERR_FORMAT },
		{ "ok a\0b=1\n.\n", 11, ERR_FORMAT },
		{ endless, sizeof(endless), ERR_LIMIT },
	};
	char text[256];

	(void)state;
	memset(endless, 'x', sizeof(endless));
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct err *err = ask(cases[i].reply, cases[i].bytes, text);

		if (!err || err->code != cases[i].code)
			fail_msg("case %zu: %s", i, err ? err->text : "no error");
		err_free(err);
	}
}

static void no_daemon_is_not_found(void **state)
{
	struct control *control = NULL;
	struct err *err = control_open("/tmp/assay-no-such-socket", &control);

	(void)state;
	assert_non_null(err);
	assert_int_equal(err->code, ERR_NOT_FOUND);
	err_free(err);
	assert_null(control);
}

static void a_given_path_wins_over_the_environment(void **state)
{
	(void)state;
	setenv("ASSAY_SOCKET", "/env", 1);
	assert_string_equal(control_path("/given"), "/given");
	assert_string_equal(control_path(NULL), "/env");
	unsetenv("ASSAY_SOCKET");
	assert_string_equal(control_path(NULL), COMMAND_SOCKET);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_line_of_the_reply_arrives),
		cmocka_unit_test(the_daemons_error_keeps_its_code_and_text),
		cmocka_unit_test(a_broken_reply_is_an_error_and_no_hang),
		cmocka_unit_test(no_daemon_is_not_found),
		cmocka_unit_test(a_given_path_wins_over_the_environment),
	};

	return cmocka_run_group_tests(tests, listen_somewhere, forget);
}
