// SPDX-License-Identifier: Apache-2.0
/* A real worker process, spawned, asked, broken and replaced. */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <cmocka.h>

#include <fcntl.h>
#include <link.h>
#include <signal.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "job/job.h"
#include "worker_self.h"

#define TIMEOUT_MS 60000

struct heard {
	int replies, errors;
	enum err_code code;
	char text[256];
	struct job_identity identity;
	char function[256];
	uint64_t function_va;
	size_t answers, types;
};

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
	if (reply->kind == JOB_IDENTIFY)
		heard->identity = reply->identity;
	if (reply->kind == JOB_SYMBOLS && reply->symbols.count) {
		snprintf(heard->function, sizeof(heard->function), "%s",
			 reply->symbols.data[0].function);
		heard->function_va = reply->symbols.data[0].function_va;
	}
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

int main(int argc, char **argv)
{
	if (is_worker(argc, argv))
		return worker_main(argc, argv);

	const struct CMUnitTest tests[] = {
		cmocka_unit_test(identify_tells_the_build_id_that_the_loader_mapped),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
