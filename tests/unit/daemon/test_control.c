// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>
#include <cmocka.h>

#include "daemon/control.h"

#define SOCKET_PATH "/tmp/assay-test-control"

struct server {
	struct loop *loop;
	struct control *control;
	int commands;
};

static void count_and_echo(void *ctx, const struct command *command, struct str *reply)
{
	struct server *server = ctx;

	server->commands++;
	reply_ok(reply);
	command_add(reply, "verb", command_verb_name(command->verb));
	command_end(reply);
}

static int start(void **state)
{
	struct server *server = calloc(1, sizeof(*server));
	int fd = -1;

	unlink(SOCKET_PATH);
	assert_null(loop_new(&server->loop));
	assert_null(control_listen(SOCKET_PATH, &fd));
	assert_null(
		control_new(server->loop, fd, count_and_echo, server, &server->control));
	*state = server;
	return 0;
}

static int end(void **state)
{
	struct server *server = *state;

	control_free(server->control);
	loop_free(server->loop);
	free(server);
	unlink(SOCKET_PATH);
	return 0;
}

static int connect_to(const char *path)
{
	struct sockaddr_un address = { .sun_family = AF_UNIX };
	struct timeval second = { .tv_sec = 1 };
	int fd = socket(AF_UNIX, SOCK_STREAM, 0);

	strcpy(address.sun_path, path);
	assert_int_equal(connect(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	setsockopt(fd, SOL_SOCKET, SO_RCVTIMEO, &second, sizeof(second));
	return fd;
}

static void spin(struct server *server)
{
	for (int i = 0; i < 8; i++)
		assert_null(loop_once(server->loop, 5));
}

static void the_socket_is_for_its_owner_only(void **state)
{
	struct stat info;

	(void)state;
	assert_int_equal(stat(SOCKET_PATH, &info), 0);
	assert_int_equal(info.st_mode & 0777, 0600);
	assert_true(control_peer_ok(0, 1000));
	assert_true(control_peer_ok(1000, 1000));
	assert_false(control_peer_ok(1001, 1000));
}

static void commands_split_over_packets_are_answered_in_order(void **state)
{
	struct server *server = *state;
	char text[512] = { 0 };
	int fd = connect_to(SOCKET_PATH);

	assert_int_equal(write(fd, "pi", 2), 2);
	spin(server);
	assert_int_equal(server->commands, 0);
	assert_int_equal(write(fd, "ng\nstatus\nnonsense\n", 19), 19);
	spin(server);
	assert_int_equal(server->commands, 2);
	ssize_t got = read(fd, text, sizeof(text) - 1);

	assert_true(got > 0);
	assert_ptr_equal(strstr(text, "ok verb=ping\n.\nok verb=status\n.\nerr "), text);
	close(fd);
	spin(server);
}

static void a_line_without_end_closes_the_client_not_the_server(void **state)
{
	struct server *server = *state;
	char flood[4096], reply[512];
	int fd = connect_to(SOCKET_PATH);
	ssize_t got;

	memset(flood, 'a', sizeof(flood));
	for (int i = 0; i < 4; i++) {
		(void)!send(fd, flood, sizeof(flood), MSG_NOSIGNAL | MSG_DONTWAIT);
		spin(server);
	}
	got = read(fd, reply, sizeof(reply));
	assert_true(got <= 0 || !strncmp(reply, "err", 3));
	close(fd);
	fd = connect_to(SOCKET_PATH);
	assert_int_equal(write(fd, "ping\n", 5), 5);
	spin(server);
	assert_int_equal(server->commands, 1);
	close(fd);
	spin(server);
}

static void a_second_server_is_refused_and_a_plain_file_kept(void **state)
{
	int fd;
	struct err *err = control_listen(SOCKET_PATH, &fd);

	(void)state;
	assert_non_null(err);
	assert_int_equal(err->code, ERR_BUSY);
	err_free(err);

	FILE *file = fopen(SOCKET_PATH ".file", "w");

	fclose(file);
	err = control_listen(SOCKET_PATH ".file", &fd);
	assert_non_null(err);
	err_free(err);
	assert_int_equal(unlink(SOCKET_PATH ".file"), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test_setup_teardown(the_socket_is_for_its_owner_only, start,
						end),
		cmocka_unit_test_setup_teardown(
			commands_split_over_packets_are_answered_in_order, start, end),
		cmocka_unit_test_setup_teardown(
			a_line_without_end_closes_the_client_not_the_server, start, end),
		cmocka_unit_test_setup_teardown(
			a_second_server_is_refused_and_a_plain_file_kept, start, end),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
