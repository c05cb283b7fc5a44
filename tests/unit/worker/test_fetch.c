// SPDX-License-Identifier: Apache-2.0
/* The fetch class against elfutils' own debuginfod on the loopback interface. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <arpa/inet.h>
#include <dirent.h>
#include <fcntl.h>
#include <netinet/in.h>
#include <signal.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <time.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "job/job.h"
#include "worker_self.h"

#define SERVER	   "/usr/bin/debuginfod"
#define TIMEOUT_MS 60000
#define ATTEMPTS   100

struct heard {
	int replies, errors, fd;
	enum err_code code;
	struct build_id id;
};

static void hear(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct heard *heard = ctx;

	if (err) {
		heard->errors++;
		heard->code = err->code;
		err_free(err);
		return;
	}
	heard->replies++;
	if (reply->kind == JOB_DEBUG_FILE)
		heard->fd = reply->fd;
	else
		heard->id = reply->identity.build_id;
}

static struct job_client *spawn(enum job_class class)
{
	const struct job_options options = { .worker_path = TEST_SELF };
	struct job_client *client = NULL;

	assert_null(job_spawn(class, &options, &client));
	return client;
}

static struct heard wait_for(struct job_client *client, struct heard *heard)
{
	struct err *err = job_wait(client, TIMEOUT_MS);

	if (err)
		fail_msg("%s", err->text);
	return *heard;
}

/* A port that nobody listens on just now. */
static int free_port(void)
{
	struct sockaddr_in address = { .sin_family = AF_INET,
				       .sin_addr.s_addr = htonl(INADDR_LOOPBACK) };
	socklen_t length = sizeof(address);
	CLEANUP(close) int fd = socket(AF_INET, SOCK_STREAM, 0);

	assert_int_equal(bind(fd, (struct sockaddr *)&address, sizeof(address)), 0);
	assert_int_equal(getsockname(fd, (struct sockaddr *)&address, &length), 0);
	return ntohs(address.sin_port);
}

struct server {
	char folder[32], file[64], url[64];
	pid_t pid;
};

static void start_server(struct server *server, const char *bytes, size_t size)
{
	char port[16];

	strcpy(server->folder, "/tmp/assay-test-XXXXXX");
	assert_non_null(mkdtemp(server->folder));
	snprintf(server->file, sizeof(server->file), "%s/program", server->folder);
	assert_null(file_replace(server->file, bytes, size, 0755));
	snprintf(port, sizeof(port), "%d", free_port());
	snprintf(server->url, sizeof(server->url), "http://127.0.0.1:%s", port);
	server->pid = fork();
	if (server->pid)
		return;
	int null_fd = open("/dev/null", O_RDWR);

	dup2(null_fd, 1);
	dup2(null_fd, 2);
	unsetenv("DEBUGINFOD_URLS");
	execl(SERVER, "debuginfod", "-d", ":memory:", "-p", port, "-F", server->folder,
	      NULL);
	_exit(127);
}

static void stop_server(struct server *server)
{
	kill(server->pid, SIGKILL);
	waitpid(server->pid, NULL, 0);
	unlink(server->file);
	rmdir(server->folder);
}

static int leftovers(void)
{
	DIR *folder = opendir("/tmp");
	struct dirent *entry;
	int count = 0;

	while (folder && (entry = readdir(folder)))
		count += strncmp(entry->d_name, "assay-fetch-", 12) == 0;
	if (folder)
		closedir(folder);
	return count;
}

/* Other tests may have a fetch worker of their own for a moment. */
static bool comes_down_to(int most)
{
	for (int i = 0; i < ATTEMPTS && leftovers() > most; i++)
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
	return leftovers() <= most;
}

static void a_debug_file_comes_from_a_server_and_leaves_no_trace(void **state)
{
	struct server server;
	struct heard heard = { 0 };
	char *bytes, *got;
	size_t size, got_size;
	int before = leftovers();

	(void)state;
	if (access(SERVER, X_OK)) {
		print_message("skipped: needs debuginfod\n");
		skip();
	}
	assert_null(file_read(TEST_SELF, 256 << 20, &bytes, &size));
	start_server(&server, bytes, size);

	CLEANUP(job_free) struct job_client *resolve = spawn(JOB_RESOLVE);
	struct job_client *fetch = spawn(JOB_FETCH);
	CLEANUP(close) int self = open(TEST_SELF, O_RDONLY);

	assert_null(job_identify(resolve, self, hear, &heard));
	struct build_id id = wait_for(resolve, &heard).id;

	/* It answers "not found" until it has scanned its folder. */
	for (int i = 0; i < ATTEMPTS && !heard.fd; i++) {
		nanosleep(&(struct timespec){ .tv_nsec = 100000000 }, NULL);
		assert_null(job_debug_file(fetch, server.url, &id, hear, &heard));
		wait_for(fetch, &heard);
	}
	assert_true(heard.fd > 0);
	assert_null(file_read_fd(heard.fd, 256 << 20, &got, &got_size));
	assert_int_equal(got_size, size);
	assert_memory_equal(got, bytes, size);
	close(heard.fd);
	free(got);
	free(bytes);

	id.bytes[0] ^= 1;
	heard = (struct heard){ 0 };
	assert_null(job_debug_file(fetch, server.url, &id, hear, &heard));
	wait_for(fetch, &heard);
	assert_int_equal(heard.code, ERR_NOT_FOUND);
	stop_server(&server);

	job_free(fetch);
	assert_true(comes_down_to(before));
}

static void a_killed_worker_s_folder_goes_with_the_next_one(void **state)
{
	struct heard heard = { 0 };
	const struct build_id id = { .size = 2 };
	struct job_client *fetch = spawn(JOB_FETCH);
	int before = leftovers();

	(void)state;
	/* An answer, whatever it is, shows that its folder exists. */
	assert_null(job_debug_file(fetch, "file:///", &id, hear, &heard));
	wait_for(fetch, &heard);
	assert_true(leftovers() > 0);
	kill(job_pid(fetch), SIGKILL);
	job_free(fetch);
	fetch = spawn(JOB_FETCH);
	assert_null(job_debug_file(fetch, "file:///", &id, hear, &heard));
	wait_for(fetch, &heard);
	job_free(fetch);
	assert_true(comes_down_to(before));
}

int main(int argc, char **argv)
{
	if (is_worker(argc, argv))
		return worker_main(argc, argv);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_debug_file_comes_from_a_server_and_leaves_no_trace),
		cmocka_unit_test(a_killed_worker_s_folder_goes_with_the_next_one),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
