// SPDX-License-Identifier: Apache-2.0
/*
 * The question goes into a file without a name, which is the command's standard input, so
 * that it may read when it likes; only the answer is a pipe.
 */
#include "cli/ranker.h"

#include <errno.h>
#include <fcntl.h>
#include <jansson.h>
#include <signal.h>
#include <spawn.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include "cli/stop.h"
#include "cli/table.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"

#define READ_BYTES 65536

extern char **environ;

static json_t *candidate_json(const struct event_candidate *candidate, size_t id)
{
	json_t *evidence = json_array();

	for (size_t i = 0; i < candidate->evidence_count; i++)
		json_array_append_new(evidence, json_text(candidate->evidence[i]));
	return json_pack("{sI ss so so so ss sb sf so}", "id", (json_int_t)id, "event",
			 candidate_event_name(candidate->event), "resource",
			 json_text(candidate->resource), "function",
			 json_text(candidate->function), "symbol",
			 json_text(candidate->symbol), "object",
			 discovery_object(candidate), "is_verified",
			 candidate->is_verified, "confidence", candidate->confidence,
			 "evidence", evidence);
}

static struct err *put_question(const char *binary, const struct discovery *discovery,
				int *ret_fd)
{
	size_t count;
	const struct event_candidate *all = discovery_all(discovery, &count);
	json_t *list = json_array();

	for (size_t i = 0; i < count; i++)
		json_array_append_new(list, candidate_json(&all[i], i));
	json_t *root = json_pack("{si so so}", "version", DISCOVERY_VERSION, "binary",
				 json_text(binary), "candidates", list);
	CLEANUP(free) char *text = json_dumps(root, JSON_COMPACT);

	json_decref(root);
	if (!text)
		return err_new(ERR_FORMAT, "the question cannot be written as JSON");
	CLEANUP(close) int fd = memfd_create("candidates", MFD_CLOEXEC);

	if (fd < 0)
		return err_errno(errno, "make a file in memory");
	TRY(file_write_all(fd, text, strlen(text)));
	if (lseek(fd, 0, SEEK_SET))
		return err_errno(errno, "go back in a file in memory");
	*ret_fd = take_fd(&fd);
	return NULL;
}

static struct err *start(const char *command, int question, int answer, pid_t *ret_pid)
{
	char *argv[] = { "sh", "-c", (char *)command, NULL };
	posix_spawn_file_actions_t actions;

	posix_spawn_file_actions_init(&actions);
	posix_spawn_file_actions_adddup2(&actions, question, STDIN_FILENO);
	posix_spawn_file_actions_adddup2(&actions, answer, STDOUT_FILENO);
	int errnum = posix_spawn(ret_pid, "/bin/sh", &actions, NULL, argv, environ);

	posix_spawn_file_actions_destroy(&actions);
	return errnum ? err_errno(errnum, "start /bin/sh") : NULL;
}

static struct err *read_answer(int fd, struct str *text)
{
	CLEANUP(free) char *room = mem_alloc(READ_BYTES);

	for (;;) {
		ssize_t got = read(fd, room, READ_BYTES);

		if (stop_flag)
			return err_new(ERR_CLOSED, "interrupted");
		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(errno, "read its answer");
		if (!got)
			return NULL;
		if (text->length + (size_t)got > RANKER_MAX_BYTES)
			return err_new(ERR_LIMIT, "its answer is longer than %u MB",
				       RANKER_MAX_BYTES >> 20);
		str_add_bytes(text, room, (size_t)got);
	}
}

static struct err *check_status(int status)
{
	if (WIFSIGNALED(status))
		return err_new(ERR_CLOSED, "it was ended by signal %d", WTERMSIG(status));
	if (WEXITSTATUS(status))
		return err_new(ERR_CLOSED, "it ended with status %d",
			       WEXITSTATUS(status));
	return NULL;
}

static struct err *converse(const char *command, int question, struct str *answer)
{
	int ends[2], status = 0;
	pid_t pid;

	if (pipe2(ends, O_CLOEXEC))
		return err_errno(errno, "make a pipe");
	struct err *err = start(command, question, ends[1], &pid);

	close(ends[1]);
	if (!err) {
		err = read_answer(ends[0], answer);
		if (err)
			kill(pid, SIGTERM);
		while (waitpid(pid, &status, 0) < 0 && errno == EINTR)
			;
	}
	close(ends[0]);
	return err ? err : check_status(status);
}

static struct err *take_opinion(struct discovery *discovery, const json_t *item)
{
	struct discovery_opinion opinion = { .confidence = -1 };
	json_int_t id = -1;
	json_error_t error;
	size_t count;

	discovery_all(discovery, &count);
	if (json_unpack_ex((json_t *)item, &error, 0, "{sI s?F s?s s?s s?s}", "id", &id,
			   "confidence", &opinion.confidence, "event", &opinion.event,
			   "resource", &opinion.resource, "note", &opinion.note))
		return err_new(ERR_FORMAT, "a candidate in its answer: %s", error.text);
	if (id < 0 || (size_t)id >= count)
		return err_new(ERR_FORMAT,
			       "its answer has a candidate %lld; there are %zu",
			       (long long)id, count);
	if (json_object_get(item, "confidence") &&
	    !(opinion.confidence >= 0 && opinion.confidence <= 1))
		return err_new(ERR_FORMAT, "candidate %lld: a confidence is 0 to 1",
			       (long long)id);
	return err_wrap(discovery_judge(discovery, (size_t)id, &opinion),
			"candidate %lld", (long long)id);
}

static struct err *take_answer(struct discovery *discovery, const json_t *root)
{
	const json_t *list = json_object_get(root, "candidates"), *item;
	json_int_t version = json_integer_value(json_object_get(root, "version"));
	size_t i;

	if (version != DISCOVERY_VERSION || !json_is_array(list))
		return err_new(ERR_FORMAT,
			       "its answer has no \"version\": %d and \"candidates\"",
			       DISCOVERY_VERSION);
	json_array_foreach(list, i, item) TRY(take_opinion(discovery, item));
	return NULL;
}

struct err *ranker_run(const char *command, const char *binary,
		       struct discovery *discovery)
{
	CLEANUP(close) int question = -1;
	CLEANUP(str_fini) struct str answer = { 0 };
	json_error_t error;

	TRY(put_question(binary, discovery, &question));
	TRY(converse(command, question, &answer));
	json_t *root = json_loadb(str_text(&answer), answer.length, 0, &error);

	if (!root)
		return err_new(ERR_FORMAT, "its answer is no JSON: %s at line %d",
			       error.text, error.line);
	struct err *err = take_answer(discovery, root);

	json_decref(root);
	return err;
}
