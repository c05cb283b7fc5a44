// SPDX-License-Identifier: Apache-2.0
/*
 * The job PROBES through the real worker, on this program: truth is offsetof() and the
 * addresses that the loader gave.
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "job/job.h"
#include "worker_self.h"

struct probes_inner {
	char pad[12];
	short id;
	union {
		int number;
		unsigned char tag;
	};
};

struct probes_outer {
	long pad[3];
	struct {
		struct probes_inner *inner;
	} db;
	unsigned flags : 3;
};

__attribute__((noinline)) int probes_target(struct probes_outer *outer, int more);
__attribute__((noinline)) int probes_target(struct probes_outer *outer, int more)
{
	__asm__ volatile("" ::: "memory");
	return outer->db.inner->id + more;
}

__attribute__((noinline, used)) static int probes_hidden(int number)
{
	__asm__ volatile("" : "+r"(number));
	return number + 1;
}

static int take_base(struct dl_phdr_info *info, size_t size, void *base)
{
	(void)size;
	*(uint64_t *)base = info->dlpi_addr;
	return 1;
}

struct heard {
	struct arena *arena;
	struct err *err;
	struct resolve_reply reply;
};

/* The reply lives for the callback: by way of the wire into an arena of ours. */
static void hear(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct heard *heard = ctx;
	static struct str text;

	heard->err = err;
	if (err)
		return;
	str_clear(&text);
	resolve_put_reply(&text, &reply->probes);
	struct wire in = { .data = (unsigned char *)text.data, .size = text.length };

	heard->err = resolve_read_reply(&in, heard->arena, &heard->reply);
}

static void ask(const struct resolve_probe *probes, size_t count, struct heard *heard)
{
	const struct job_options options = { .worker_path = TEST_SELF };
	const struct resolve_request request = { 7, probes, count };
	struct job_client *client = NULL;
	int fd = open(TEST_SELF, O_RDONLY | O_CLOEXEC);

	*heard = (struct heard){ .arena = arena_new() };
	struct err *err = job_spawn(JOB_RESOLVE, &options, &client);

	if (!err)
		err = job_open(client, &(struct job_open){ .module_id = 7,
							   .main_fd = fd,
							   .debug_fd = -1,
							   .alt_fd = -1,
							   .kallsyms_fd = -1 });
	if (!err)
		err = job_probes(client, &request, hear, heard);
	if (!err)
		err = job_wait(client, 60000);
	if (!err)
		err = heard->err;
	if (err)
		fail_msg("%s", err->text);
	job_free(client);
	close(fd);
}

static uint64_t va_of(const void *function)
{
	uint64_t base = 0;

	dl_iterate_phdr(take_base, &base);
	return (uint64_t)(uintptr_t)function - base;
}

static void a_function_is_found_by_every_kind_of_name(void **state)
{
	static const struct resolve_probe probes[] = {
		{ .by = RESOLVE_SYMBOL, .text = "probes_target" },
		{ .by = RESOLVE_PREFIX, .text = "probes_targ" },
		{ .by = RESOLVE_GLOB, .text = "probes_t?rg*" },
		{ .by = RESOLVE_DWARF, .text = "probes_target" },
	};
	struct heard heard;

	(void)state;
	ask(probes, 4, &heard);
	assert_int_equal(heard.reply.failure_count, 0);
	assert_int_equal(heard.reply.target_count, 4);
	for (size_t i = 0; i < 4; i++) {
		assert_int_equal(heard.reply.targets[i].probe, i);
		assert_int_equal(heard.reply.targets[i].va, va_of((void *)probes_target));
	}
	arena_free(heard.arena);
}

static void a_static_function_is_found_by_its_debug_information(void **state)
{
	static const struct resolve_probe probe = { .by = RESOLVE_DWARF,
						    .text = "probes_hidden",
						    .wants_entry = true };
	struct heard heard;

	(void)state;
	ask(&probe, 1, &heard);
	assert_int_equal(heard.reply.target_count, 1);
	assert_int_equal(heard.reply.targets[0].va, va_of((void *)probes_hidden));
	assert_int_equal(heard.reply.targets[0].site_count, 1);
	arena_free(heard.arena);
}

static void what_is_not_there_is_a_failure_with_a_reason(void **state)
{
	static const struct resolve_probe probes[] = {
		{ .by = RESOLVE_SYMBOL, .text = "probes_nowhere" },
		{ .by = RESOLVE_USDT, .text = "a:b" },
		{ .by = RESOLVE_VA, .text = "0x1", .va = 1, .bytes = 1 },
		{ .by = RESOLVE_DEMANGLED, .text = "no::such(*" },
		{ .by = RESOLVE_GLOB, .text = "*" }, /* far too many */
	};
	struct heard heard;

	(void)state;
	ask(probes, 5, &heard);
	assert_int_equal(heard.reply.target_count, 0);
	assert_int_equal(heard.reply.failure_count, 5);
	assert_string_equal(heard.reply.failures[0].reason,
			    "there is no function probes_nowhere");
	assert_non_null(strstr(heard.reply.failures[4].reason, "functions match"));
	arena_free(heard.arena);
}

static void fields_have_the_offsets_of_the_compiler(void **state)
{
	static const struct resolve_field fields[] = {
		{ 1, "->db.inner->id" },
		{ 1, "->db.inner->number" },
		{ 1, "->db.inner->tag" },
		{ 1, "->db.inner" },
		{ 1, "->nothing" },
		{ 1, "->flags" },
		{ 2, "->x" },
		{ 3, "->x" },
		{ 1, "->db" },
	};
	static const struct resolve_probe probe = { .by = RESOLVE_SYMBOL,
						    .text = "probes_target",
						    .fields = fields,
						    .field_count = 9 };
	struct heard heard;

	(void)state;
	ask(&probe, 1, &heard);
	assert_int_equal(heard.reply.target_count, 1);
	const struct resolve_offsets *found = heard.reply.targets[0].fields;

	assert_int_equal(heard.reply.targets[0].field_count, 9);
	assert_int_equal(found[0].count, 2);
	assert_int_equal(found[0].offsets[0], offsetof(struct probes_outer, db.inner));
	assert_int_equal(found[0].offsets[1], offsetof(struct probes_inner, id));
	assert_int_equal(found[0].bytes, 2);
	assert_true(found[0].is_signed);
	assert_int_equal(found[1].offsets[1], offsetof(struct probes_inner, number));
	assert_int_equal(found[1].bytes, 4);
	assert_int_equal(found[2].bytes, 1);
	assert_false(found[2].is_signed);
	assert_int_equal(found[3].count, 1);
	assert_int_equal(found[3].bytes, 8);
	for (int i = 4; i < 9; i++) {
		assert_int_equal(found[i].count, 0);
		assert_int_not_equal(strlen(found[i].reason), 0);
	}
	arena_free(heard.arena);
}

static void a_damaged_reply_is_refused(void **state)
{
	static const struct resolve_site site = { 1,	 2, RESOLVE_PUSH, true, false,
						  false, 8 };
	const struct resolve_target target = {
		.name = "f", .return_reason = "", .sites = &site, .site_count = 1
	};
	const struct resolve_reply reply = { .targets = &target, .target_count = 1 };
	CLEANUP(str_fini) struct str text = { 0 };
	CLEANUP(arena_free) struct arena *arena = arena_new();

	(void)state;
	resolve_put_reply(&text, &reply);
	for (size_t length = 0; length <= text.length; length++) {
		struct wire in = { .data = (unsigned char *)text.data, .size = length };
		struct resolve_reply again = { 0 };
		struct err *err = resolve_read_reply(&in, arena, &again);

		assert_int_equal(!err, length == text.length);
		err_free(err);
	}
}

int main(int argc, char **argv)
{
	if (is_worker(argc, argv))
		return worker_main(argc, argv);
	struct probes_inner inner = { .id = 1 };
	struct probes_outer outer = { .db = { &inner } };

	if (probes_target(&outer, argc) + probes_hidden(argc) == 0)
		return 1;
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_function_is_found_by_every_kind_of_name),
		cmocka_unit_test(a_static_function_is_found_by_its_debug_information),
		cmocka_unit_test(what_is_not_there_is_a_failure_with_a_reason),
		cmocka_unit_test(fields_have_the_offsets_of_the_compiler),
		cmocka_unit_test(a_damaged_reply_is_refused),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
