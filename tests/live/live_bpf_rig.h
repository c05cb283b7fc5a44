/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_BPF_RIG_H
#define LIVE_BPF_RIG_H

/*
 * What the live tests of the BPF object share: a fixture process that says what it does,
 * and a rig that loads the object and keeps every record in order of time.
 */

#include <fcntl.h>
#include <setjmp.h>
#include <signal.h>
#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>
#include <cmocka.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/vec.h"
#include "event/event.h"
#include "event/merge.h"
#include "probe/loader.h"
#include "probe/machine.h"
#include "probe/ring.h"

#define WAIT_NS 5000000000ull /* for something that takes milliseconds */

/* A fixture: a line-oriented process that begins when it gets a byte. */
struct fixture {
	pid_t pid;
	int in;
	FILE *out;
	VEC(char *) lines;
};

/* Reads lines up to the one that begins with @last. */
static inline void fixture_read(struct fixture *fixture, const char *last)
{
	char line[512];

	while (fgets(line, sizeof(line), fixture->out)) {
		line[strcspn(line, "\n")] = 0;
		vec_push(&fixture->lines, mem_strdup(line));
		if (!strncmp(line, last, strlen(last)))
			return;
	}
	fail_msg("the fixture ended before it said '%s'", last);
}

/* Two arguments of the program; NULL: none. */
static inline void fixture_start_with(struct fixture *fixture, const char *name,
				      const char *first, const char *second)
{
	const char *folder = getenv("FIXTURE") ?: ".build/fixture/gcc-O2";
	CLEANUP(free) char *path = mem_printf("%s/%s", folder, name);
	int in[2], out[2];

	memset(fixture, 0, sizeof(*fixture));
	assert_int_equal(pipe(in) | pipe(out), 0);
	fixture->pid = fork();
	if (!fixture->pid) {
		dup2(in[0], 0);
		dup2(out[1], 1);
		for (int fd = 3; fd < 1024; fd++)
			close(fd);
		execl(path, path, first, second, NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	fixture->in = in[1];
	fixture->out = fdopen(out[0], "r");
	fixture_read(fixture, "ready");
}

static inline void fixture_start(struct fixture *fixture, const char *name)
{
	fixture_start_with(fixture, name, NULL, NULL);
}

static inline void fixture_run(struct fixture *fixture)
{
	assert_null(file_write_all(fixture->in, "x", 1));
	fixture_read(fixture, "done");
}

static inline void fixture_end(struct fixture *fixture)
{
	close(fixture->in);
	fclose(fixture->out);
	waitpid(fixture->pid, NULL, 0);
	vec_each(&fixture->lines, line)
		free(*line);
	vec_fini(&fixture->lines);
}

/* The number behind the first line that begins with @word; 0 when there is none. */
static inline uint64_t fixture_number(const struct fixture *fixture, const char *word)
{
	vec_each(&fixture->lines, line)
		if (!strncmp(*line, word, strlen(word)))
			return strtoull(*line + strlen(word), NULL, 0);
	return 0;
}

/* Where in the file of @fixture the address lies that it printed for @function. */
static inline uint64_t offset_of(const struct fixture *fixture, const char *function)
{
	CLEANUP(free) char *word = mem_printf("at %s ", function);
	CLEANUP(free) char *path = mem_printf("/proc/%d/maps", fixture->pid);
	uint64_t at = fixture_number(fixture, word), start, end, pgoff;
	FILE *file = fopen(path, "r");
	char line[512];

	assert_true(at);
	while (fgets(line, sizeof(line), file))
		if (sscanf(line, "%lx-%lx %*s %lx", &start, &end, &pgoff) == 3 &&
		    at >= start && at < end) {
			fclose(file);
			return at - start + pgoff;
		}
	fail_msg("%s is not mapped", function);
	return 0;
}

static inline int open_exe(pid_t pid)
{
	CLEANUP(free) char *path = mem_printf("/proc/%d/exe", pid);
	int fd = open(path, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

struct rig {
	struct loader *loader;
	struct ring *ring;
	struct merge *merge;
	VEC(struct event) events; /* paths and stacks are copies, never freed */
	uint64_t received[ABI_KINDS];
	uint64_t bad;
};

static inline void rig_note(void *ctx, const void *data, size_t bytes)
{
	struct rig *rig = ctx;
	struct event event;
	struct err *err = event_decode(data, bytes, &event);

	if (err) {
		print_error("%s\n", err->text);
		err_free(err);
		rig->bad++;
		return;
	}
	event.path = mem_strdup(event.path);
	event.name = NULL;
	event.stack = mem_copy(event.stack,
			       event.head.kind == ABI_TICK ? event.tick.stack_bytes : 0);
	vec_push(&rig->events, event);
}

static inline void rig_put(void *ctx, const void *data, size_t bytes)
{
	struct rig *rig = ctx;
	const struct abi_head *head = data;

	if (bytes >= sizeof(*head) && head->kind < ABI_KINDS)
		rig->received[head->kind]++;
	merge_put(rig->merge, data, bytes);
}

static inline void assert_ok(struct err *err)
{
	if (err)
		fail_msg("%s", err->text);
}

static inline void rig_open(struct rig *rig, const struct probe_config *config)
{
	static const struct merge_config merge = { .window_ns = 60000000000ull };

	memset(rig, 0, sizeof(*rig));
	rig->merge = merge_new(&merge, rig_note, rig);
	assert_ok(loader_open(config, &rig->loader));
	assert_ok(ring_open(loader_fds(rig->loader), &rig->ring));
}

static inline void rig_target(struct rig *rig, pid_t pid)
{
	assert_ok(ring_add_pid(rig->ring, (uint32_t)pid));
	assert_ok(ring_set_filter(rig->ring, ABI_FILTER_PIDS));
}

static inline void rig_drain(struct rig *rig)
{
	bool more = true;

	while (more)
		assert_ok(ring_drain(rig->ring, rig_put, rig, &more));
}

/* Stop, take what is left, and put it in order. */
static inline void rig_finish(struct rig *rig)
{
	assert_ok(ring_set_filter(rig->ring, 0));
	usleep(20000); /* programs that passed the filter before end meanwhile */
	rig_drain(rig);
	merge_flush(rig->merge);
	assert_int_equal(rig->bad, 0);
}

static inline void rig_close(struct rig *rig)
{
	ring_free(rig->ring);
	loader_close(rig->loader);
	merge_free(rig->merge);
	vec_each(&rig->events, event) {
		free((void *)event->path);
		free((void *)event->stack);
	}
	vec_fini(&rig->events);
}

/* The first event of @pid for which @test holds, from @from on; -1 for none. */
#define rig_find(rig, from, name, test)                                     \
	({                                                                  \
		long found_ = -1;                                           \
		for (size_t i_ = (from); i_ < (rig)->events.count; i_++) {  \
			const struct event *name = &(rig)->events.data[i_]; \
			if (test) {                                         \
				found_ = (long)i_;                          \
				break;                                      \
			}                                                   \
		}                                                           \
		found_;                                                     \
	})

/* A child of the test that computes until it is killed. */
static inline pid_t spin(void)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (volatile uint64_t n = 0;; n++)
		;
}

static inline void spin_end(pid_t pid)
{
	kill(pid, SIGKILL);
	waitpid(pid, NULL, 0);
}

/* Says why and returns true when this machine cannot run the test at all. */
static inline bool rig_skips(const char *name)
{
	struct err *err = machine_require();

	if (!err)
		return false;
	printf("skip %s: %s\n", name, err->text);
	err_free(err);
	return true;
}

#endif
