// SPDX-License-Identifier: Apache-2.0
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "discover/words.h"

static void names_are_cut_at_humps_and_signs(void **state)
{
	static const struct {
		const char *name, *words;
		size_t scope;
	} cases[] = {
		{ "LWLockAcquire", "lw lock acquire", 0 },
		{ "ap_queue_push_socket", "ap queue push socket", 0 },
		{ "MDL_context::acquire_lock(MDL_request*, double)",
		  "mdl context acquire lock", 2 },
		{ "buf::Pool<int, std::pair<a, b> >::get(int)", "buf pool get", 2 },
		{ "void std::swap<int>(int&, int&)", "std swap", 1 },
		{ "free_slot.part.0", "free slot", 0 },
		{ "read@plt", "read", 0 },
		{ "", "", 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		struct words words;
		char text[256] = "";

		words_cut(cases[i].name, &words);
		for (size_t j = 0; j < words.count; j++)
			snprintf(text + strlen(text), sizeof(text) - strlen(text), "%s%s",
				 j ? " " : "", words.word[j]);
		assert_string_equal(text, cases[i].words);
		assert_int_equal(words.scope, cases[i].scope);
	}
}

static void a_name_says_what_is_done_to_what(void **state)
{
	static const struct {
		const char *name, *stem;
		enum candidate_event event;
	} cases[] = {
		{ "LWLockAcquire", "lw-lock", CANDIDATE_ACQUIRE },
		{ "LWLockReleaseAll", "lw-lock", CANDIDATE_RELEASE },
		{ "ReadBuffer", "buffer", CANDIDATE_USE },
		{ "UnlockReleaseBuffer", "buffer", CANDIDATE_RELEASE },
		{ "row_lock_wait", "row-lock", CANDIDATE_WAIT },
		{ "page_pool_zalloc", "page-pool", CANDIDATE_ACQUIRE },
		{ "MDL_context::release_locks(int)", "mdl-context", CANDIDATE_RELEASE },
		{ "connections_close", "connection", CANDIDATE_RELEASE },
	};
	struct words words;
	struct words_verb verb;

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(*cases); i++) {
		char stem[64];

		words_cut(cases[i].name, &words);
		assert_true(words_verb(&words, &verb));
		words_stem(&words, &verb, stem, sizeof(stem));
		assert_string_equal(stem, cases[i].stem);
		assert_int_equal(verb.event, cases[i].event);
	}
	words_cut("main", &words);
	assert_false(words_verb(&words, &verb));
}

/* Whatever is in a symbol table. */
static void long_and_odd_names_are_survived(void **state)
{
	struct words words;
	struct words_verb verb;
	char name[5000], stem[32];

	(void)state;
	memset(name, 'a', sizeof(name));
	name[sizeof(name) - 1] = 0;
	words_cut(name, &words);
	assert_int_equal(words.count, 1);
	for (size_t i = 0; i + 1 < sizeof(name); i++)
		name[i] = i % 2 ? 'X' : '_';
	words_cut(name, &words);
	assert_int_equal(words.count, WORDS_MAX);
	words_cut("<<<::>>(()lock_", &words);
	words_cut("a_lock_of_quite_a_few_words_that_go_on_and_on", &words);
	assert_true(words_verb(&words, &verb));
	words_stem(&words, &verb, stem, sizeof(stem));
	assert_true(strlen(stem) < sizeof(stem));
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(names_are_cut_at_humps_and_signs),
		cmocka_unit_test(a_name_says_what_is_done_to_what),
		cmocka_unit_test(long_and_odd_names_are_survived),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
