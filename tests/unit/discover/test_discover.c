// SPDX-License-Identifier: Apache-2.0
/* What is found in tests/fixture/resources.c, whose resources are known. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/mem.h"
#include "core/vec.h"
#include "discover/discover.h"

struct found {
	struct event_candidate all[64];
	size_t count;
	double last;
};

static void on_candidate(void *ctx, const struct event_candidate *candidate)
{
	struct found *found = ctx;
	static const char *const ours[] = { "row_lock_", "page_pool_", "paper_cache_",
					    "old_session_" };

	assert_true(candidate->confidence <= found->last);
	found->last = candidate->confidence;
	for (size_t i = 0; i < sizeof(ours) / sizeof(*ours); i++) {
		if (strncmp(candidate->symbol, ours[i], strlen(ours[i])) != 0 ||
		    found->count == 64)
			continue;
		struct event_candidate *to = &found->all[found->count++];

		/* Texts do not outlive the call, symbols do as long as the file. */
		*to = *candidate;
		to->symbol = strdup(candidate->symbol);
		to->resource = strdup(candidate->resource);
		for (size_t j = 0; j < candidate->evidence_count; j++)
			to->evidence[j] = strdup(candidate->evidence[j]);
	}
}

static struct found found = { .last = 1 };

static int look(void **state)
{
	static const struct discover_ops ops = { on_candidate, NULL };
	const char *folder = getenv("FIXTURE");
	CLEANUP(free)
	char *path =
		mem_printf("%s/resources", folder ? folder : ".build/fixture/gcc-O2");
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);
	CLEANUP(elf_close) struct elf_file *file = NULL;
	CLEANUP(frame_close) struct frame_table *frames = NULL;

	(void)state;
	assert_null(elf_open(fd, &file));
	assert_null(frame_open(file, NULL, &frames));
	assert_null(discover_run(&(struct discover_files){ file, NULL, frames }, &ops,
				 &found));
	return 0;
}

static int forget(void **state)
{
	(void)state;
	for (size_t i = 0; i < found.count; i++) {
		free((char *)found.all[i].symbol);
		free((char *)found.all[i].resource);
		for (size_t j = 0; j < found.all[i].evidence_count; j++)
			free((char *)found.all[i].evidence[j]);
	}
	return 0;
}

static const struct event_candidate *the(const char *symbol, enum candidate_event event)
{
	for (size_t i = 0; i < found.count; i++)
		if (!strcmp(found.all[i].symbol, symbol) && found.all[i].event == event)
			return &found.all[i];
	fail_msg("%s is no %s", symbol, candidate_event_name(event));
	return NULL;
}

static bool says(const struct event_candidate *candidate, const char *text)
{
	for (size_t i = 0; i < candidate->evidence_count; i++)
		if (strstr(candidate->evidence[i], text))
			return true;
	return false;
}

static void a_lock_is_waited_for_acquired_and_released(void **state)
{
	const struct event_candidate *wait = the("row_lock_wait", CANDIDATE_WAIT);
	const struct event_candidate *slow = the("row_lock_acquire", CANDIDATE_WAIT);
	const struct event_candidate *acquire =
		the("row_lock_acquire", CANDIDATE_ACQUIRE);
	const struct event_candidate *release =
		the("row_lock_release", CANDIDATE_RELEASE);

	(void)state;
	assert_true(wait->is_verified && slow->is_verified);
	assert_true(acquire->is_verified && release->is_verified);
	assert_true(says(slow, "row_lock_wait > pthread_cond_wait"));
	assert_int_equal(acquire->object, 0);
	assert_int_equal(release->object, 0);
	assert_string_equal(acquire->resource, "row-lock");
	assert_string_equal(release->resource, "row-lock");
	assert_true(acquire->confidence > .8 && release->confidence > .8);
}

static void a_pool_gives_and_takes_back(void **state)
{
	const struct event_candidate *alloc = the("page_pool_alloc", CANDIDATE_ACQUIRE);
	const struct event_candidate *release = the("page_pool_free", CANDIDATE_RELEASE);
	const struct event_candidate *use = the("page_pool_read", CANDIDATE_USE);

	(void)state;
	assert_true(alloc->is_verified && release->is_verified && use->is_verified);
	assert_int_equal(alloc->object, CANDIDATE_RESULT);
	assert_true(says(alloc, "found in memory") || says(alloc, "malloc"));
	assert_int_equal(use->object, 0);
}

static void a_name_alone_is_not_believed(void **state)
{
	const struct event_candidate *wait = the("paper_cache_wait", CANDIDATE_WAIT);
	const struct event_candidate *acquire =
		the("paper_cache_acquire", CANDIDATE_ACQUIRE);
	const struct event_candidate *release =
		the("paper_cache_release", CANDIDATE_RELEASE);

	(void)state;
	assert_false(wait->is_verified);
	assert_false(acquire->is_verified);
	assert_false(release->is_verified);
	assert_true(acquire->confidence <
		    the("row_lock_acquire", CANDIDATE_ACQUIRE)->confidence);
	assert_true(release->confidence <
		    the("row_lock_release", CANDIDATE_RELEASE)->confidence);
	assert_true(wait->confidence < the("row_lock_wait", CANDIDATE_WAIT)->confidence);
}

static void what_is_used_afterwards_was_not_released(void **state)
{
	const struct event_candidate *used =
		the("old_session_release", CANDIDATE_RELEASE);

	(void)state;
	assert_true(says(used, "behind 2 of 2 calls"));
	assert_true(used->confidence <
		    the("row_lock_release", CANDIDATE_RELEASE)->confidence);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_lock_is_waited_for_acquired_and_released),
		cmocka_unit_test(a_pool_gives_and_takes_back),
		cmocka_unit_test(a_name_alone_is_not_believed),
		cmocka_unit_test(what_is_used_afterwards_was_not_released),
	};

	return cmocka_run_group_tests(tests, look, forget);
}
