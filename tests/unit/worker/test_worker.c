// SPDX-License-Identifier: Apache-2.0
/* A real worker process, spawned, asked, broken and replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <dlfcn.h>
#include <execinfo.h>
#include <link.h>
#include <signal.h>

#include "core/file.h"
#include "core/mem.h"
#include "job/job.h"
#include "unit/bin/process.h"
#include "worker_self.h"

#define MODULE	   77u
#define OTHER	   78u
#define TIMEOUT_MS 60000
#define MUTATIONS  300

struct heard {
	int replies, errors;
	enum err_code code;
	char text[256];
	struct job_identity identity;
	struct job_symbol symbol; /* the first; its strings are copied below */
	char function[256], file[256];
	struct fact_frame frames[JOB_MAX_FRAMES];
	size_t frame_count, answers, types, fields, named;
	bool complete, last_had_more;
	struct job_stats stats;
	struct job_client *client; /* to start another job from the callback */
};

static void hear_answers(struct heard *heard, const struct job_reply *reply)
{
	const struct job_answers *answers = &reply->sites.answers;

	heard->answers += answers->answer_count;
	heard->types += answers->type_count;
	heard->fields += answers->field_count;
	heard->stats = reply->sites.stats;
	for (size_t i = 0; i < answers->answer_count; i++) {
		bool is_known = false;

		if (!answers->answers[i].type_id)
			continue;
		/* Every reply explains the types that it names. */
		for (size_t j = 0; j < answers->type_count; j++)
			is_known |=
				answers->types[j].type_id == answers->answers[i].type_id;
		assert_true(is_known);
		heard->named++;
	}
}

static void hear(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct heard *heard = ctx;

	if (err) {
		heard->errors++;
		heard->code = err->code;
		snprintf(heard->text, sizeof(heard->text), "%s", err->text);
		err_free(err);
		return;
	}
	heard->replies++;
	heard->last_had_more = reply->more;
	if (reply->kind == JOB_IDENTIFY)
		heard->identity = reply->identity;
	if (reply->kind == JOB_SYMBOLS && reply->symbols.count) {
		heard->symbol = reply->symbols.data[0];
		snprintf(heard->function, sizeof(heard->function), "%s",
			 heard->symbol.function);
		snprintf(heard->file, sizeof(heard->file), "%s", heard->symbol.file);
	}
	if (reply->kind == JOB_UNWIND) {
		heard->frame_count = reply->unwound.count;
		heard->complete = reply->unwound.complete;
		memcpy(heard->frames, reply->unwound.frames,
		       reply->unwound.count * sizeof(heard->frames[0]));
	}
	if (reply->kind == JOB_SITES || reply->kind == JOB_MODULE)
		hear_answers(heard, reply);
}

static struct job_client *spawn(enum job_class class, const struct job_options *given)
{
	struct job_options options = given ? *given : (struct job_options){ 0 };
	struct job_client *client = NULL;

	options.worker_path = TEST_SELF;
	struct err *err = job_spawn(class, &options, &client);

	if (err)
		fail_msg("%s", err->text);
	return client;
}

static int open_self(void)
{
	int fd = open(TEST_SELF, O_RDONLY | O_CLOEXEC);

	assert_true(fd >= 0);
	return fd;
}

static int find_own_build_id(struct dl_phdr_info *info, size_t size, void *ctx)
{
	struct build_id *id = ctx;

	(void)size;
	if (info->dlpi_name[0])
		return 0;
	for (int i = 0; i < info->dlpi_phnum; i++) {
		const ElfW(Phdr) *segment = &info->dlpi_phdr[i];
		const char *note = (const char *)info->dlpi_addr + segment->p_vaddr;

		if (segment->p_type != PT_NOTE)
			continue;
		for (size_t at = 0; at + 12 <= segment->p_memsz;) {
			const ElfW(Nhdr) *head = (const void *)(note + at);

			if (head->n_type == NT_GNU_BUILD_ID &&
			    head->n_descsz <= BUILD_ID_MAX) {
				id->size = (uint8_t)head->n_descsz;
				memcpy(id->bytes, note + at + 12 + 4, id->size);
				return 1;
			}
			at += 12 + ((head->n_namesz + 3) & ~3u) +
			      ((head->n_descsz + 3) & ~3u);
		}
	}
	return 0;
}

static void wait_all(struct job_client *client)
{
	struct err *err = job_wait(client, TIMEOUT_MS);

	if (err)
		fail_msg("%s", err->text);
}

static void identify_tells_the_build_id_that_the_loader_mapped(void **state)
{
	CLEANUP(job_free) struct job_client *client = spawn(JOB_RESOLVE, NULL);
	CLEANUP(close) int fd = open_self();
	struct build_id own = { 0 };
	struct heard heard = { 0 };

	(void)state;
	assert_int_equal(dl_iterate_phdr(find_own_build_id, &own), 1);
	assert_null(job_identify(client, fd, hear, &heard));
	wait_all(client);
	assert_int_equal(heard.replies, 1);
	assert_int_equal(heard.identity.build_id.size, own.size);
	assert_memory_equal(heard.identity.build_id.bytes, own.bytes, own.size);
	assert_true(heard.identity.is_executable);
	assert_true(heard.identity.has_cfi);
	assert_int_equal(heard.identity.segment_count, 1);
}

static void open_module(struct job_client *client, uint64_t id, int fd)
{
	struct err *err = job_open(client, &(struct job_open){ .module_id = id,
							       .main_fd = fd,
							       .debug_fd = -1,
							       .alt_fd = -1,
							       .kallsyms_fd = -1 });

	if (err)
		fail_msg("%s", err->text);
}

int exported_for_the_worker(int x);
int __attribute__((noinline)) exported_for_the_worker(int x)
{
	return x + 42;
}
enum { EXPORTED_LINE = __LINE__ - 4 }; /* of its name */

static uint64_t own_va(const void *address)
{
	Dl_info info;

	assert_true(dladdr(address, &info));
	return (uint64_t)address - (uint64_t)info.dli_fbase;
}

static void a_symbol_has_the_name_and_line_of_the_source(void **state)
{
	CLEANUP(job_free) struct job_client *client = spawn(JOB_RESOLVE, NULL);
	CLEANUP(close) int fd = open_self();
	struct heard heard = { 0 };
	uint64_t va = own_va((void *)exported_for_the_worker) + 1;

	(void)state;
	open_module(client, MODULE, fd);
	assert_null(job_symbols(client, MODULE, &va, 1, hear, &heard));
	wait_all(client);
	assert_int_equal(heard.errors, 0);
	assert_string_equal(heard.function, "exported_for_the_worker");
	assert_int_equal(heard.symbol.function_va, va - 1);
	assert_true(strstr(heard.file, "test_worker.c") != NULL);
	assert_in_range(heard.symbol.function_line, EXPORTED_LINE, EXPORTED_LINE + 1);
}

static void a_module_that_was_never_opened_is_not_found(void **state)
{
	CLEANUP(job_free) struct job_client *client = spawn(JOB_RESOLVE, NULL);
	struct heard heard = { 0 };
	uint64_t va = 0;

	(void)state;
	assert_null(job_symbols(client, OTHER, &va, 1, hear, &heard));
	wait_all(client);
	assert_int_equal(heard.errors, 1);
	assert_int_equal(heard.code, ERR_NOT_FOUND);
	assert_true(job_alive(client));
}

/* Registers, stack and mappings of this very function. */
static void a_stack_unwinds_as_libgcc_does(void **state)
{
	CLEANUP(job_free) struct job_client *client = spawn(JOB_RESOLVE, NULL);
	struct heard heard = { 0 };
	struct process process;
	struct job_range ranges[64];
	struct job_stack stack = { 0 };
	static unsigned char copy[64 * 1024];
	void *truth[64];
	ucontext_t context;
	size_t count = 0;

	(void)state;
	process_open(getpid(), &process);
	for (; count < process.ranges.count && count < 64; count++)
		ranges[count] = (struct job_range){ process.ranges.data[count].start,
						    process.ranges.data[count].end,
						    process.ranges.data[count].bias,
						    process.ranges.data[count].id };
	for (size_t i = 0; i < process.modules.count; i++)
		open_module(client, i + 1, process.modules.data[i]->fd);
	size_t truth_count = (size_t)backtrace(truth, 64);

	getcontext(&context);
	registers_of(&context, stack.regs);
	stack.byte_count = stack_bytes_from(stack.regs[FRAME_RSP], sizeof(copy));
	copy_stack(stack.regs[FRAME_RSP], copy, stack.byte_count);
	stack.bytes = copy;
	assert_null(job_unwind(client, ranges, count, &stack, hear, &heard));
	wait_all(client);
	if (heard.errors)
		fail_msg("%s", heard.text);
	assert_true(heard.complete);
	/* From the root: a sanitizer's backtrace() has a frame of its own at the leaf. */
	assert_in_range(truth_count, heard.frame_count, heard.frame_count + 1);
	for (size_t i = 1; i < heard.frame_count; i++) {
		uint64_t va = (uint64_t)truth[truth_count - i] - 1;

		for (size_t j = 0; j < count; j++)
			if (va >= ranges[j].start && va < ranges[j].end) {
				va -= ranges[j].bias;
				break;
			}
		assert_int_equal(heard.frames[heard.frame_count - i].va, va);
	}
	process_close(&process);
}

static void a_job_can_be_started_from_the_end_of_another(void *ctx, struct err *err,
							 const struct job_reply *reply)
{
	struct heard *heard = ctx;
	CLEANUP(close) int fd = open_self();

	hear(heard, err, reply);
	if (heard->replies < 3)
		assert_null(job_identify(heard->client, fd,
					 a_job_can_be_started_from_the_end_of_another,
					 heard));
}

static void jobs_chain(void **state)
{
	CLEANUP(job_free) struct job_client *client = spawn(JOB_RESOLVE, NULL);
	CLEANUP(close) int fd = open_self();
	struct heard heard = { .client = client };

	(void)state;
	assert_null(job_identify(client, fd, a_job_can_be_started_from_the_end_of_another,
				 &heard));
	wait_all(client);
	assert_int_equal(heard.replies, 3);
}

static void a_full_queue_refuses_and_then_drains(void **state)
{
	CLEANUP(job_free) struct job_client *client = spawn(JOB_RESOLVE, NULL);
	CLEANUP(close) int fd = open_self();
	struct heard heard = { 0 };
	struct err *err = NULL;
	int started = 0;

	(void)state;
	while (!(err = job_identify(client, fd, hear, &heard)))
		started++;
	assert_int_equal(err->code, ERR_LIMIT);
	err_free(err);
	assert_int_equal(started, JOB_MAX_PENDING);
	wait_all(client);
	assert_int_equal(heard.replies, started);
	assert_null(job_identify(client, fd, hear, &heard));
	wait_all(client);
	assert_int_equal(heard.replies, started + 1);
}

static void a_killed_worker_fails_its_jobs_and_can_be_replaced(void **state)
{
	struct job_client *client = spawn(JOB_RESOLVE, NULL);
	CLEANUP(close) int fd = open_self();
	struct heard heard = { 0 };

	(void)state;
	kill(job_pid(client), SIGSTOP);
	for (int i = 0; i < 5; i++)
		assert_null(job_identify(client, fd, hear, &heard));
	kill(job_pid(client), SIGKILL);
	wait_all(client);
	assert_int_equal(heard.replies, 0);
	assert_int_equal(heard.errors, 5);
	assert_int_equal(heard.code, ERR_CLOSED);
	assert_false(job_alive(client));
	assert_int_equal(job_fd(client), -1);
	struct err *err = job_identify(client, fd, hear, &heard);

	assert_non_null(err);
	assert_int_equal(err->code, ERR_CLOSED);
	err_free(err);
	job_free(client);
	client = spawn(JOB_RESOLVE, NULL);
	assert_null(job_identify(client, fd, hear, &heard));
	wait_all(client);
	assert_int_equal(heard.replies, 1);
	job_free(client);
}

static void a_silent_worker_is_killed(void **state)
{
	const struct job_options options = { .wall_seconds = 1 };
	CLEANUP(job_free) struct job_client *client = spawn(JOB_RESOLVE, &options);
	CLEANUP(close) int fd = open_self();
	struct heard heard = { 0 };

	(void)state;
	kill(job_pid(client), SIGSTOP);
	assert_null(job_identify(client, fd, hear, &heard));
	wait_all(client);
	assert_int_equal(heard.errors, 1);
	assert_int_equal(heard.code, ERR_LIMIT);
	assert_false(job_alive(client));
}

static void a_worker_that_is_no_program_is_an_error(void **state)
{
	const struct job_options options = { .worker_path = "/nonexistent/assay-worker" };
	struct job_client *client = NULL;
	struct err *err = job_spawn(JOB_RESOLVE, &options, &client);

	(void)state;
	assert_non_null(err);
	assert_null(client);
	err_free(err);

	const struct job_options wrong = { .worker_path = "/bin/false" };
	CLEANUP(close) int fd = open_self();
	struct heard heard = { 0 };

	assert_null(job_spawn(JOB_RESOLVE, &wrong, &client));
	err_free(job_identify(client, fd, hear, &heard));
	wait_all(client);
	assert_false(job_alive(client) && heard.errors == 0);
	job_free(client);
}

static void a_class_does_only_its_own_jobs(void **state)
{
	CLEANUP(job_free) struct job_client *client = spawn(JOB_FETCH, NULL);
	CLEANUP(close) int fd = open_self();
	const struct build_id id = { .size = 20, .bytes = { 1 } };
	struct heard heard = { 0 };

	(void)state;
	assert_null(job_identify(client, fd, hear, &heard));
	wait_all(client);
	assert_int_equal(heard.errors, 1);
	assert_int_equal(heard.code, ERR_INVALID);
	/* Local files are not fetched, whatever the URL says. */
	assert_null(job_debug_file(client, "file:///etc", &id, hear, &heard));
	wait_all(client);
	assert_int_equal(heard.errors, 2);
	assert_int_equal(heard.code, ERR_INVALID);
}

static void a_module_is_answered_in_several_replies(void **state)
{
	CLEANUP(job_free) struct job_client *client = spawn(JOB_ANALYZE, NULL);
	CLEANUP(close) int fd = open_self();
	struct heard heard = { 0 };
	uint64_t claims = 0, all = 0;

	(void)state;
	open_module(client, MODULE, fd);
	assert_null(job_module(client, MODULE, hear, &heard));
	wait_all(client);
	if (heard.errors)
		fail_msg("%s", heard.text);
	assert_false(heard.last_had_more);
	assert_true(heard.answers > 1000);
	assert_int_equal(heard.answers, heard.stats.memory_instructions);
	for (int i = 0; i < VERDICTS; i++) {
		all += heard.stats.by_verdict[i];
		claims +=
			verdict_is_claim((enum verdict)i) ? heard.stats.by_verdict[i] : 0;
	}
	assert_int_equal(all, heard.answers);
	assert_int_equal(claims, heard.stats.claims);
	assert_int_equal(heard.named, claims);
	assert_true(heard.stats.cpu_ns > 0 && heard.stats.peak_bytes > 0);
	print_message("  %zu answers, %zu claims, %d replies, %.0f ms, %zu MB\n",
		      heard.answers, (size_t)claims, heard.replies,
		      (double)heard.stats.cpu_ns / 1e6,
		      (size_t)(heard.stats.peak_bytes >> 20));
}

/* Damage. */

static uint64_t next_random(uint64_t *seed)
{
	*seed ^= *seed << 13;
	*seed ^= *seed >> 7;
	*seed ^= *seed << 17;
	return *seed;
}

/* Where damage hurts most: headers, then the tables that are parsed. */
static size_t pick_place(uint64_t *seed, const unsigned char *bytes, size_t size)
{
	ElfW(Ehdr) header;

	memcpy(&header, bytes, sizeof(header));
	size_t sections = header.e_shnum ? header.e_shnum : 1;
	uint64_t kind = next_random(seed) % 8;

	if (kind == 0)
		return next_random(seed) % sizeof(header);
	if (kind == 1)
		return header.e_phoff + next_random(seed) % (header.e_phnum * 56);
	if (kind == 2)
		return header.e_shoff + next_random(seed) % (sections * 64);
	ElfW(Shdr) section;

	memcpy(&section, bytes + header.e_shoff + next_random(seed) % sections * 64,
	       sizeof(section));
	if (section.sh_type == SHT_NOBITS || !section.sh_size)
		return next_random(seed) % size;
	/* The beginnings of sections have more structure than their middles. */
	uint64_t reach = kind < 5 && section.sh_size > 256 ? 256 : section.sh_size;

	return section.sh_offset + next_random(seed) % reach;
}

static int mutated(const unsigned char *bytes, size_t size, uint64_t *seed)
{
	static const unsigned char values[] = { 0, 1, 0x7f, 0x80, 0xff };
	unsigned char *copy = mem_copy(bytes, size);
	int fd = memfd_create("mutated", MFD_CLOEXEC);
	size_t kept = size;

	for (uint64_t i = next_random(seed) % 8; i < 10; i++) {
		size_t place = pick_place(seed, bytes, size);
		uint64_t how = next_random(seed);

		if (place < size)
			copy[place] = how & 1 ? values[how / 2 % sizeof(values)]
					      : (unsigned char)(how >> 8);
	}
	if (next_random(seed) % 4 == 0)
		kept = next_random(seed) % size;
	assert_null(file_write_all(fd, copy, kept));
	free(copy);
	return fd;
}

static void ask_everything(struct job_client *client, int fd, struct heard *heard)
{
	uint64_t va = own_va((void *)exported_for_the_worker);
	const uint64_t vas[] = { va, va + 4, 0x1000, 0x2010, UINT64_MAX };
	const struct job_site sites[] = { { va, false }, { va + 4, true }, { 0, false } };
	const struct job_range range = { 0x1000, 0x7fffffff0000, 0, MODULE };
	uint64_t words[512];
	struct job_stack stack = { .bytes = words, .byte_count = sizeof(words) };

	for (size_t i = 0; i < 512; i++)
		words[i] = va + i;
	stack.regs[FRAME_RSP] = 0x7ffff000;
	stack.regs[FRAME_RIP] = va;
	err_free(job_identify(client, fd, hear, heard));
	err_free(job_open(client, &(struct job_open){ .module_id = MODULE,
						      .main_fd = fd,
						      .debug_fd = fd,
						      .alt_fd = -1,
						      .kallsyms_fd = -1 }));
	err_free(job_symbols(client, MODULE, vas, 5, hear, heard));
	err_free(job_unwind(client, &range, 1, &stack, hear, heard));
	err_free(job_sites(client, MODULE, sites, 3, hear, heard));
	wait_all(client);
}

static void damaged_files_cost_at_most_their_own_jobs(void **state)
{
	struct job_client *client = spawn(JOB_RESOLVE, NULL);
	CLEANUP(close) int intact = open_self();
	uint64_t seed = 0x9e3779b97f4a7c15ull;
	int deaths = 0;
	size_t size;
	char *bytes;

	(void)state;
	assert_null(file_read(TEST_SELF, 256 << 20, &bytes, &size));
	for (int i = 0; i < MUTATIONS; i++) {
		CLEANUP(close) int fd = mutated((unsigned char *)bytes, size, &seed);
		struct heard heard = { 0 }, after = { 0 };

		ask_everything(client, fd, &heard);
		assert_int_equal(heard.replies + heard.errors, 4);
		if (!job_alive(client)) {
			print_message("  mutation %d: %s\n", i, heard.text);
			job_free(client);
			client = spawn(JOB_RESOLVE, NULL);
			deaths++;
		}
		assert_null(job_identify(client, intact, hear, &after));
		wait_all(client);
		assert_int_equal(after.replies, 1);
	}
	print_message("  %d of %d mutations ended the worker\n", deaths, MUTATIONS);
	free(bytes);
	job_free(client);
}

static void a_file_truncated_during_the_job_is_an_error_not_a_crash(void **state)
{
	CLEANUP(job_free) struct job_client *client = spawn(JOB_RESOLVE, NULL);
	CLEANUP(close) int fd = memfd_create("shrinking", MFD_CLOEXEC);
	struct heard heard = { 0 };
	uint64_t va = own_va((void *)exported_for_the_worker);
	size_t size;
	char *bytes;

	(void)state;
	assert_null(file_read(TEST_SELF, 256 << 20, &bytes, &size));
	assert_null(file_write_all(fd, bytes, size));
	open_module(client, MODULE, fd);
	assert_null(job_symbols(client, MODULE, &va, 1, hear, &heard));
	wait_all(client);
	assert_int_equal(heard.replies, 1);
	assert_int_equal(ftruncate(fd, 5000), 0);
	ask_everything(client, fd, &heard);
	assert_true(job_alive(client));
	free(bytes);
}

int main(int argc, char **argv)
{
	if (is_worker(argc, argv))
		return worker_main(argc, argv);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identify_tells_the_build_id_that_the_loader_mapped),
		cmocka_unit_test(a_symbol_has_the_name_and_line_of_the_source),
		cmocka_unit_test(a_module_that_was_never_opened_is_not_found),
		cmocka_unit_test(a_stack_unwinds_as_libgcc_does),
		cmocka_unit_test(jobs_chain),
		cmocka_unit_test(a_full_queue_refuses_and_then_drains),
		cmocka_unit_test(a_killed_worker_fails_its_jobs_and_can_be_replaced),
		cmocka_unit_test(a_silent_worker_is_killed),
		cmocka_unit_test(a_worker_that_is_no_program_is_an_error),
		cmocka_unit_test(a_class_does_only_its_own_jobs),
		cmocka_unit_test(a_module_is_answered_in_several_replies),
		cmocka_unit_test(a_file_truncated_during_the_job_is_an_error_not_a_crash),
		cmocka_unit_test(damaged_files_cost_at_most_their_own_jobs),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
