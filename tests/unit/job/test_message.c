// SPDX-License-Identifier: Apache-2.0
/* Every payload survives the wire, and no damaged one is accepted as another's. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <string.h>

#include "core/arena.h"
#include "job/message.h"

static const struct fact_type types[] = { { 11, "struct a", 24 }, { 12, "struct b", 8 } };
static const struct fact_field fields[] = { { 11, 0, 8, "next" }, { 11, 8, 16, "v[]" } };
static const struct fact_answer answers[] = {
	{ 5,
	  11,
	  1,
	  { 0x1000, 0xffc, VERDICT_DWARF, ACCESS_BOTH, 4, "struct a", 24, -8, "v[]", 8,
	    16, 0.75, true } },
	{ 5,
	  0,
	  0,
	  { 0x2000, 0x2000, VERDICT_NO_TYPE, ACCESS_LOAD, 8, "", 0, 0, "", 0, 0, 0,
	    false } },
};

static const struct resolve_site places[] = {
	{ 0x1000, 0x100, RESOLVE_PUSH, true, false, false, 0 },
	{ 0x1040, 0x140, RESOLVE_RETURN, false, true, true, -1 },
};
static const struct resolve_arg args[] = { { RESOLVE_MEMORY, 4, 6, true, -144 } };
static const struct resolve_offsets offsets[] = { { { 8, 16, 0, 0 }, 2, 4, true, "" },
						  { .reason = "no field" } };
static const struct resolve_target targets[] = {
	{ .probe = 1,
	  .va = 0x1000,
	  .bytes = 0x50,
	  .off = 0x100,
	  .semaphore_off = 7,
	  .is_emulated = true,
	  .name = "f(int)",
	  .return_reason = "none",
	  .sites = places,
	  .site_count = 2,
	  .args = args,
	  .arg_count = 1,
	  .fields = offsets,
	  .field_count = 2 },
};
static const struct resolve_failure failures[] = { { 0, "there is no function g" } };
static const struct resolve_reply probes = { true, targets, 1, failures, 1 };

static const struct job_records records = {
	.data = "\x4\0\0\0abcd",
	.bytes = 8,
	.done = 100,
	.total = 200,
	.samples = 1,
	.foreign = 2,
	.lost = 3,
	.late = 4,
	.start_ns = 5,
	.realtime_offset_ns = -6,
	.host = "h",
	.kernel = "6.1",
	.arch = "x86_64",
	.version = "6.1.1",
	.events = "cycles",
	.damage = "",
};

static const struct event_candidate candidates[] = {
	{ .event = CANDIDATE_WAIT,
	  .va = 1,
	  .bytes = 2,
	  .symbol = "_Z1fi",
	  .function = "f(int)",
	  .resource = "f",
	  .object = CANDIDATE_RESULT,
	  .is_verified = true,
	  .confidence = .5,
	  .evidence = { "a", "b" },
	  .evidence_count = 2 },
	{ .event = CANDIDATE_RELEASE,
	  .symbol = "",
	  .function = "",
	  .resource = "",
	  .object = 5 },
};

static struct job_reply sample(enum job_kind kind)
{
	static const struct job_symbol symbols[] = {
		{ 1, 2, 3, "f(int)", "a.h", "a.c", 7, 8 },
		{ 9, 0, 0, "", "", "", 0, 0 },
	};
	static const struct fact_frame frames[] = { { 1, 2 }, { 0, UINT64_MAX } };
	static const struct job_insn insns[] = {
		{ 16, 3, true, "mov rax, [rdi]", "/a.c", 7 },
		{ 19, 1, false, "ret", "", 0 },
	};
	struct job_reply reply = { .kind = kind };

	switch (kind) {
	case JOB_IDENTIFY:
		reply.identity = (struct job_identity){
			.build_id = { { 1, 2, 3 }, 3 },
			.is_executable = true,
			.has_cfi = true,
			.soname = "libx.so",
			.debuglink = "x.debug",
			.debuglink_crc = 0xdeadbeef,
			.altlink = "../y",
			.altlink_id = { { 9 }, 1 },
			.segments = { { 0x1000, 0x401000, 99 } },
			.segment_count = 1,
		};
		break;
	case JOB_SYMBOLS:
		reply.symbols.data = symbols;
		reply.symbols.count = 2;
		break;
	case JOB_UNWIND:
		reply.unwound = (struct job_unwound){ frames, 2, true };
		break;
	case JOB_SITES:
	case JOB_MODULE:
		reply.sites.answers =
			(struct job_answers){ types, 2, fields, 2, answers, 2 };
		reply.sites.done = 3;
		reply.sites.total = 4;
		reply.sites.stats.by_verdict[VERDICT_DWARF] = 17;
		reply.sites.stats.by_verdict_stack[VERDICT_DWARF] = 5;
		reply.sites.stats.peak_bytes = 1ull << 40;
		break;
	case JOB_LISTING:
		reply.listing.data = insns;
		reply.listing.count = 2;
		break;
	case JOB_DEBUG_FILE:
		break;
	case JOB_PROBES:
		reply.probes = probes;
		break;
	case JOB_RECORDS:
		reply.records = records;
		break;
	case JOB_DISCOVER:
		reply.candidates = (struct job_candidates){ candidates, 2, 3, 4 };
		break;
	}
	return reply;
}

/* Encoding what was decoded must give the same bytes. */
static void every_reply_is_the_same_after_a_round_trip(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();

	(void)state;
	for (enum job_kind kind = JOB_IDENTIFY; kind <= JOB_DISCOVER; kind++) {
		CLEANUP(str_fini) struct str first = { 0 }, second = { 0 };
		struct job_reply reply = sample(kind), back = { 0 };

		message_put_reply(&first, &reply);
		struct wire in = { .data = (void *)first.data, .size = first.length };

		assert_null(message_read_reply(&in, arena, kind, &back));
		assert_int_equal(back.kind, kind);
		message_put_reply(&second, &back);
		assert_int_equal(first.length, second.length);
		if (first.length)
			assert_memory_equal(first.data, second.data, first.length);
	}
}

static void an_answer_keeps_its_sign_and_its_confidence(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	CLEANUP(str_fini) struct str bytes = { 0 };
	struct job_reply reply = sample(JOB_SITES), back = { 0 };

	(void)state;
	message_put_reply(&bytes, &reply);
	struct wire in = { .data = (void *)bytes.data, .size = bytes.length };

	assert_null(message_read_reply(&in, arena, JOB_SITES, &back));
	const struct fact_answer *answer = &back.sites.answers.answers[0];

	assert_int_equal(answer->answer.offset, -8);
	assert_true(answer->answer.is_frame);
	assert_true(answer->answer.confidence == 0.75);
	assert_string_equal(answer->answer.type, "struct a");
	assert_int_equal(answer->skid, 1);
	assert_string_equal(back.sites.answers.fields[1].path, "v[]");
}

static void a_shortened_or_lengthened_reply_is_refused(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();

	(void)state;
	for (enum job_kind kind = JOB_IDENTIFY; kind <= JOB_DISCOVER; kind++) {
		CLEANUP(str_fini) struct str bytes = { 0 };
		struct job_reply reply = sample(kind), back = { 0 };

		message_put_reply(&bytes, &reply);
		str_add_char(&bytes, 0);
		for (size_t size = 0; size <= bytes.length; size++) {
			struct wire in = { .data = (void *)bytes.data, .size = size };
			struct err *err = message_read_reply(&in, arena, kind, &back);

			assert_true((err == NULL) == (size == bytes.length - 1));
			err_free(err);
			arena_reset(arena);
		}
	}
}

/* A count of 4 billion must be refused before memory is asked for. */
static void counts_are_bounded_by_what_the_message_holds(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	const unsigned char vas[] = { 1, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff, 0xff, 0xff };
	struct message_vas out;
	struct wire in = { .data = vas, .size = sizeof(vas) };
	struct err *err = message_read_vas(&in, arena, &out);

	(void)state;
	assert_non_null(err);
	err_free(err);
	assert_true(arena_bytes(arena) < 1 << 20);
}

static void unsorted_mappings_are_refused(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	const struct job_range ranges[] = { { 0x2000, 0x3000, 0, 1 },
					    { 0x1000, 0x2000, 0, 2 } };
	CLEANUP(str_fini) struct str bytes = { 0 };
	struct message_unwind unwind = { ranges, 2, { .byte_count = 0, .bytes = "" } },
			      back;

	(void)state;
	message_put_unwind(&bytes, &unwind);
	struct wire in = { .data = (void *)bytes.data, .size = bytes.length };
	struct err *err = message_read_unwind(&in, arena, &back);

	assert_non_null(err);
	err_free(err);
}

static void requests_are_the_same_after_a_round_trip(void **state)
{
	CLEANUP(arena_free) struct arena *arena = arena_new();
	CLEANUP(str_fini) struct str bytes = { 0 };
	const struct job_range ranges[] = { { 1, 2, 3, 4 } };
	const struct job_site sites[] = { { 7, true }, { 8, false } };
	struct message_unwind unwind = { ranges,
					 1,
					 { .bytes = "stack", .byte_count = 5 } };
	struct message_unwind unwind_back;
	struct message_sites sites_back;

	(void)state;
	unwind.stack.regs[16] = 0x1234;
	message_put_unwind(&bytes, &unwind);
	struct wire in = { .data = (void *)bytes.data, .size = bytes.length };

	assert_null(message_read_unwind(&in, arena, &unwind_back));
	assert_int_equal(unwind_back.range_count, 1);
	assert_memory_equal(unwind_back.ranges, ranges, sizeof(ranges));
	assert_memory_equal(unwind_back.stack.bytes, "stack", 5);
	assert_int_equal(unwind_back.stack.regs[16], 0x1234);
	str_clear(&bytes);
	message_put_sites(&bytes, &(struct message_sites){ 42, sites, 2 });
	in = (struct wire){ .data = (void *)bytes.data, .size = bytes.length };
	assert_null(message_read_sites(&in, arena, &sites_back));
	assert_int_equal(sites_back.module_id, 42);
	assert_true(sites_back.sites[0].skid && !sites_back.sites[1].skid);
}

static void an_error_arrives_as_one_printable_line(void **state)
{
	CLEANUP(str_fini) struct str bytes = { 0 };
	struct err *sent = err_new(ERR_LIMIT, "section \033[31m\nname");

	(void)state;
	message_put_error(&bytes, sent);
	err_free(sent);
	struct wire in = { .data = (void *)bytes.data, .size = bytes.length };
	struct err *got = message_read_error(&in);

	assert_int_equal(got->code, ERR_LIMIT);
	assert_string_equal(got->text, "section ?[31m?name");
	err_free(got);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(every_reply_is_the_same_after_a_round_trip),
		cmocka_unit_test(an_answer_keeps_its_sign_and_its_confidence),
		cmocka_unit_test(a_shortened_or_lengthened_reply_is_refused),
		cmocka_unit_test(counts_are_bounded_by_what_the_message_holds),
		cmocka_unit_test(unsorted_mappings_are_refused),
		cmocka_unit_test(requests_are_the_same_after_a_round_trip),
		cmocka_unit_test(an_error_arrives_as_one_printable_line),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
