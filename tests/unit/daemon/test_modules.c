// SPDX-License-Identifier: Apache-2.0
#include "unit/daemon/stage.h"

#include <sys/utsname.h>

#include "core/mem.h"
#include "daemon/modules.h"

#define PID	5
#define MAPPING "7f00-8f00"

static struct modules *modules_of(struct stage *stage, const char *urls)
{
	return modules_new(&(struct modules_config){ .opener = &stage->opener,
						     .jobs = &stage->jobs,
						     .sink = &stage->sink,
						     .feed = stage_feed,
						     .ctx = stage,
						     .debuginfod_urls = urls });
}

static struct live_file file_of(uint64_t key, const char *path, uint64_t inode)
{
	return (struct live_file){ .key = key,
				   .pid = PID,
				   .start_ns = 9,
				   .addr = 0x7f00,
				   .length = 0x1000,
				   .inode = inode,
				   .path = path };
}

static const struct abi_module *last_module(const struct stage *stage)
{
	assert_true(stage->events.count > 0);
	return &stage->events.data[stage->events.count - 1].event.module;
}

static bool was_opened(const struct stage *stage, enum open_what what)
{
	vec_each(&stage->opened, asked)
		if (asked->what == what)
			return true;
	return false;
}

static void a_mapped_file_is_opened_by_its_mapping(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct job_reply identity = stage_identity(1, true);
	struct live_file file = file_of(77, "/lib/a.so", 1);

	(void)state;
	stage_serve(stage, OPEN_MAP_FILE, PID, MAPPING, "the mapped one");
	modules_want(modules, &file);
	assert_int_equal(stage->events.count, 0);
	stage_answer(stage, &identity);
	assert_int_equal(stage->events.count, 1);
	const struct abi_module *module = last_module(stage);

	assert_int_equal(module->key, 77);
	assert_int_equal(module->module_id, stage_module_id(1));
	assert_int_equal(module->segment_count, 1);
	assert_int_equal(stage->events.data[0].event.segments[0].off, 0x1000);
	assert_string_equal(stage->events.data[0].path, "/lib/a.so");
	assert_false(was_opened(stage, OPEN_ROOT_PATH));
	assert_int_equal(stage->facts.count, 1);
	assert_string_equal(stage->facts.data[0].text, "file");
}

static void a_replaced_file_is_not_taken(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	uint64_t inode = stage_serve(stage, OPEN_ROOT_PATH, PID, "/lib/a.so", "newer");
	struct live_file file = file_of(1, "/lib/a.so", inode + 1);

	(void)state;
	modules_want(modules, &file);
	assert_int_equal(last_module(stage)->module_id, 0);
	/* The very inode is. */
	file.inode = inode;
	file.key = 2;
	modules_want(modules, &file);
	struct job_reply identity = stage_identity(1, true);

	stage_answer(stage, &identity);
	assert_int_equal(last_module(stage)->module_id, stage_module_id(1));
	/* And a build-id from the kernel is stronger than any name. */
	struct live_file by_id = file_of(3, "/lib/a.so", 0);

	by_id.build_id.size = 20;
	memset(by_id.build_id.bytes, 9, 20);
	modules_want(modules, &by_id);
	stage_answer(stage, &identity);
	assert_int_equal(last_module(stage)->key, 3);
	assert_int_equal(last_module(stage)->module_id, 0);
}

static void a_process_that_has_gone_is_opened_through_its_parent(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct job_reply identity = stage_identity(1, true);
	uint64_t inode = stage_serve(stage, OPEN_ROOT_PATH, 4, "/bin/brief", "brief");
	struct live_file file = file_of(1, "/bin/brief", inode);

	(void)state;
	stage_serve(stage, OPEN_ROOT_PATH, (uint32_t)getpid(), "/bin/brief", "not it");
	file.parent_pid = 4;
	modules_want(modules, &file);
	stage_answer(stage, &identity);
	assert_int_equal(last_module(stage)->module_id, stage_module_id(1));
	/* The parent gone as well: our own root, if it is the same file. */
	file.parent_pid = 0;
	file.inode = stage_serve(stage, OPEN_ROOT_PATH, (uint32_t)getpid(), "/bin/other",
				 "other");
	file.path = "/bin/other";
	file.key = 3;
	modules_want(modules, &file);
	stage_answer(stage, &identity);
	assert_int_equal(last_module(stage)->key, 3);
	assert_true(last_module(stage)->module_id != 0);
	/* Without proof that it is the same file it is not taken. */
	file.inode = 0;
	file.key = 2;
	modules_want(modules, &file);
	assert_int_equal(last_module(stage)->key, 2);
	assert_int_equal(last_module(stage)->module_id, 0);
}

static void a_deleted_file_is_never_looked_for_by_name(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct live_file file = file_of(1, "/lib/a.so", 0);

	(void)state;
	stage_serve(stage, OPEN_ROOT_PATH, PID, "/lib/a.so", "another");
	file.deleted = true;
	modules_want(modules, &file);
	assert_int_equal(last_module(stage)->module_id, 0);
	assert_false(was_opened(stage, OPEN_ROOT_PATH));
}

static void a_file_without_build_id_is_known_by_path_size_and_time(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct job_reply identity = stage_identity(0, true);
	struct live_file file = file_of(1, "/old", 1), other = file_of(2, "/other", 1);

	(void)state;
	stage_serve(stage, OPEN_MAP_FILE, PID, MAPPING, "x");
	modules_want(modules, &file);
	stage_answer(stage, &identity);
	uint64_t id = last_module(stage)->module_id;

	assert_true(id != 0);
	modules_want(modules, &file);
	stage_answer(stage, &identity);
	assert_int_equal(last_module(stage)->module_id, id);
	modules_want(modules, &other);
	stage_answer(stage, &identity);
	assert_true(last_module(stage)->module_id != id);
}

static void what_is_no_program_is_impossible(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct live_file file = file_of(1, "/data", 1);
	struct live_file odd = file_of(2, "[uprobes]", 0);

	(void)state;
	stage_serve(stage, OPEN_MAP_FILE, PID, MAPPING, "not an ELF file");
	modules_want(modules, &file);
	stage_refuse(stage, ERR_FORMAT);
	assert_int_equal(last_module(stage)->module_id, 0);
	modules_want(modules, &odd);
	assert_int_equal(last_module(stage)->key, 2);
	assert_int_equal(last_module(stage)->module_id, 0);
}

static void debug_information_is_found_by_build_id(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct job_reply stripped = stage_identity(0xab, false);
	struct job_reply wrong = stage_identity(0xcd, true);
	struct job_reply debug = stage_identity(0xab, true);
	const char *path = "/usr/lib/debug/.build-id/ab/"
			   "ababababababababababababababababababab.debug";
	struct live_file file = file_of(1, "/usr/bin/x", 1);
	int main_fd, debug_fd, alt_fd;

	(void)state;
	stripped.identity.debuglink = "x.debug";
	stage_serve(stage, OPEN_MAP_FILE, PID, MAPPING, "x");
	/* In the container an old one by name, on the host the right one by id. */
	stage_serve(stage, OPEN_ROOT_PATH, PID, "/usr/bin/.debug/x.debug", "old");
	stage_serve(stage, OPEN_DEBUG_PATH, 0, path, "right");
	modules_want(modules, &file);
	stage_answer(stage, &stripped);
	assert_int_equal(stage->facts.count, 0);
	/* Nobody waits for the search who only unwinds. */
	struct err *err = modules_open(modules, stage_module_id(0xab), JOB_ANALYZE);

	assert_int_equal(err->code, ERR_BUSY);
	err_free(err);
	assert_null(modules_open_code(modules, stage_module_id(0xab)));
	stage_answer(stage, &wrong);
	assert_int_equal(stage_request(stage).kind, MESSAGE_OPEN);
	stage_answer(stage, &debug);
	assert_int_equal(stage->facts.count, 1);
	assert_string_equal(stage->facts.data[0].text, path);
	assert_true(modules_fds(modules, stage_module_id(0xab), &main_fd, &debug_fd,
				&alt_fd));
	assert_true(main_fd >= 0 && debug_fd >= 0);
	assert_int_equal(alt_fd, -1);
	/* The worker that knew it without gets it again. */
	assert_null(modules_open(modules, stage_module_id(0xab), JOB_RESOLVE));
	struct channel_message message = stage_request(stage);

	assert_int_equal(message.kind, MESSAGE_OPEN);
	assert_true(message.fds[1] >= 0);
	assert_null(modules_open(modules, stage_module_id(0xab), JOB_RESOLVE));
	assert_true(stage_is_quiet(stage));
}

static void the_dwz_file_is_found_too(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct job_reply identity = stage_identity(1, true);
	struct job_reply dwz = stage_identity(2, false);
	struct live_file file = file_of(1, "/usr/bin/x", 1);
	int main_fd, debug_fd, alt_fd;

	(void)state;
	identity.identity.altlink = "/usr/lib/debug/.dwz/x.debug";
	identity.identity.altlink_id = dwz.identity.build_id;
	stage_serve(stage, OPEN_MAP_FILE, PID, MAPPING, "x");
	stage_serve(stage, OPEN_ROOT_PATH, PID, "/usr/lib/debug/.dwz/x.debug", "dwz");
	modules_want(modules, &file);
	stage_answer(stage, &identity);
	stage_answer(stage, &dwz);
	assert_string_equal(stage->facts.data[0].text, "file");
	assert_true(
		modules_fds(modules, stage_module_id(1), &main_fd, &debug_fd, &alt_fd));
	assert_true(alt_fd >= 0);
}

static void without_debug_information_the_advice_names_the_build_id(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct job_reply stripped = stage_identity(0xab, false);
	struct live_file file = file_of(1, "/usr/bin/x", 1);
	struct modules_stats stats;

	(void)state;
	stage_serve(stage, OPEN_MAP_FILE, PID, MAPPING, "x");
	modules_want(modules, &file);
	stage_answer(stage, &stripped);
	assert_int_equal(stage->facts.count, 1);
	assert_non_null(strstr(stage->facts.data[0].text, "abababab"));
	assert_non_null(strstr(stage->facts.data[0].text, "dbgsym"));
	modules_stats(modules, &stats);
	assert_int_equal(stats.without_debug, 1);
	assert_int_equal(stats.waiting, 0);
	/* Somebody installs it, and SIGHUP comes. */
	stage_serve(stage, OPEN_DEBUG_PATH, 0,
		    "/usr/lib/debug/.build-id/ab/"
		    "ababababababababababababababababababab.debug",
		    "debug");
	modules_reset_debug(modules);
	struct job_reply debug = stage_identity(0xab, true);

	stage_answer(stage, &debug);
	modules_stats(modules, &stats);
	assert_int_equal(stats.without_debug, 0);
	assert_int_equal(stage->facts.count, 2);
}

static void debuginfod_is_asked_only_when_configured(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free)
	struct modules *modules = modules_of(stage, "http://127.0.0.1:1");
	struct job_reply stripped = stage_identity(0xab, false);
	struct job_reply debug = stage_identity(0xab, true);
	struct live_file file = file_of(1, "/usr/bin/x", 1);

	(void)state;
	stage_hire_as(stage, JOB_FETCH);
	stage_serve(stage, OPEN_MAP_FILE, PID, MAPPING, "x");
	modules_want(modules, &file);
	stage_answer(stage, &stripped);
	struct channel_message request = stage_request(stage);

	assert_int_equal(request.kind, JOB_DEBUG_FILE);
	int fd = stage_file("from afar");
	struct channel_message reply = { .kind = JOB_DEBUG_FILE,
					 .job = request.job,
					 .payload = "",
					 .fds = { fd, -1, -1, -1 } };

	assert_null(channel_put(stage->peer, &reply));
	assert_null(channel_flush(stage->peer, true));
	close(fd);
	job_pump(stage->client);
	stage_answer(stage, &debug);
	assert_string_equal(stage->facts.data[0].text, "debuginfod");
}

static void a_dead_worker_costs_time_and_no_module(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct job_reply identity = stage_identity(1, true);
	struct live_file one = file_of(1, "/a", 1), two = file_of(2, "/b", 1);

	(void)state;
	stage_serve(stage, OPEN_MAP_FILE, PID, MAPPING, "x");
	modules_want(modules, &one);
	modules_want(modules, &two);
	stage_kill(stage);
	assert_int_equal(stage->events.count, 0);
	modules_pump(modules); /* nobody there yet */
	stage_hire(stage);
	modules_worker_died(modules, JOB_RESOLVE);
	modules_pump(modules);
	stage_answer(stage, &identity);
	stage_answer(stage, &identity);
	assert_int_equal(stage->events.count, 2);
	assert_int_equal(stage->events.data[0].event.module.module_id,
			 stage_module_id(1));
	assert_int_equal(stage->events.data[1].event.module.module_id,
			 stage_module_id(1));
	/* One that kills it twice is given up. */
	modules_want(modules, &one);
	stage_kill(stage);
	stage_hire(stage);
	modules_pump(modules);
	stage_kill(stage);
	assert_int_equal(last_module(stage)->module_id, 0);
}

static void the_owner_may_go_before_the_answer(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	struct modules *modules = modules_of(stage, NULL);
	struct job_reply identity = stage_identity(1, true);
	struct live_file file = file_of(1, "/a", 1);

	(void)state;
	stage_serve(stage, OPEN_MAP_FILE, PID, MAPPING, "x");
	modules_want(modules, &file);
	modules_want(modules, &file);
	modules_free(modules);
	stage_answer(stage, &identity);
	stage_kill(stage);
	assert_int_equal(stage->events.count, 0);
}

static void least_recently_used_files_are_closed_and_opened_again(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	int main_fd, debug_fd, alt_fd;
	struct modules_stats stats;

	(void)state;
	for (unsigned i = 0; i <= MODULES_MAX_OPEN; i++) {
		struct live_file file = file_of(i + 1, "/a", 0);
		struct job_reply identity = stage_identity(1, true);
		char name[32];

		file.addr = 0x10000ull * (i + 1);
		snprintf(name, sizeof(name), "%llx-%llx", (unsigned long long)file.addr,
			 (unsigned long long)(file.addr + file.length));
		stage_serve(stage, OPEN_MAP_FILE, PID, name, "x");
		identity.identity.build_id.bytes[0] = (uint8_t)i;
		identity.identity.build_id.bytes[1] = (uint8_t)(i >> 8);
		modules_want(modules, &file);
		stage_answer(stage, &identity);
	}
	modules_stats(modules, &stats);
	assert_int_equal(stats.known, MODULES_MAX_OPEN + 1);
	assert_int_equal(stats.open, MODULES_MAX_OPEN);
	uint64_t first = stage->events.data[0].event.module.module_id;

	assert_false(modules_fds(modules, first, &main_fd, &debug_fd, &alt_fd));
	assert_null(modules_open(modules, first, JOB_ANALYZE));
	assert_true(modules_fds(modules, first, &main_fd, &debug_fd, &alt_fd));
	modules_stats(modules, &stats);
	assert_int_equal(stats.open, MODULES_MAX_OPEN);
}

#define NOTES "\4\0\0\0\24\0\0\0\3\0\0\0GNU\0abcdefghijklmnopqrst"

static int bytes_file(const void *bytes, size_t count)
{
	int fd = memfd_create("bytes", MFD_CLOEXEC);

	assert_int_equal(write(fd, bytes, count), (ssize_t)count);
	return fd;
}

static void the_kernel_is_fed_with_its_slide(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct job_reply vdso = stage_identity(3, false);

	(void)state;
	stage_serve(stage, OPEN_KALLSYMS, 0, "",
		    "0000000000001000 A fixed_percpu\n"
		    "ffffffff9a000000 T _text\n"
		    "ffffffff9a000010 t _text_not\n"
		    "ffffffff9b000000 T _etext\n"
		    "ffffffffc0400010 t f\t[kvm]\n");
	stage_serve_fd(stage, OPEN_KERNEL_NOTES, 0, "",
		       bytes_file(NOTES, sizeof(NOTES) - 1));
	stage_serve(stage, OPEN_MODULES, 0, "",
		    "kvm 1000000 0 - Live 0xffffffffc0400000\n"
		    "zram 4096 0 - Live 0xffffffffc0450000\n");
	assert_null(modules_kernel(modules));
	assert_int_equal(stage->events.count, 3);
	const struct abi_module *kernel = &stage->events.data[0].event.module;

	assert_int_equal(kernel->kind, ABI_MODULE_KERNEL);
	assert_int_equal(kernel->base, 0xffffffff9a000000);
	assert_int_equal(kernel->base_va, 0xffffffff81000000);
	assert_int_equal(kernel->length, 0x1000000);
	assert_int_equal(kernel->build_id_bytes, 20);
	assert_memory_equal(kernel->build_id, "abcdefghijklmnopqrst", 20);
	/* Clamped: the size counts data that lies elsewhere. */
	assert_int_equal(stage->events.data[1].event.module.length, 0x50000);
	assert_string_equal(stage->events.data[1].path, "[kvm]");
	modules_pump(modules);
	stage_answer(stage, &vdso);
	assert_int_equal(last_module(stage)->kind, ABI_MODULE_VDSO);
	assert_string_equal(stage->events.data[3].path, "[vdso]");
}

/* Two kernels of one release: only the build-id tells which one runs. */
static void a_vmlinux_of_another_build_is_not_the_kernels(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);
	struct job_reply wrong = stage_identity(0xcd, true);
	struct job_reply right = stage_identity(0xab, true);
	CLEANUP(free) char *notes = mem_alloc(sizeof(NOTES));
	char by_release[96];
	struct utsname name;
	int main_fd, debug_fd, alt_fd;

	(void)state;
	memcpy(notes, NOTES, sizeof(NOTES));
	memset(notes + sizeof(NOTES) - 1 - 20, 0xab, 20);
	uname(&name);
	snprintf(by_release, sizeof(by_release), "/usr/lib/debug/boot/vmlinux-%s",
		 name.release);
	stage_serve(stage, OPEN_KALLSYMS, 0, "",
		    "ffffffff9a000000 T _text\nffffffff9b000000 T _etext\n");
	stage_serve_fd(stage, OPEN_KERNEL_NOTES, 0, "",
		       bytes_file(notes, sizeof(NOTES) - 1));
	stage_serve(stage, OPEN_DEBUG_PATH, 0, by_release, "another build");
	snprintf(by_release, sizeof(by_release), "/boot/vmlinux-%s", name.release);
	stage_serve(stage, OPEN_DEBUG_PATH, 0, by_release, "the right one");
	err_free(modules_kernel(modules));
	stage_answer(stage, &wrong);
	assert_false(modules_fds(modules, stage_module_id(0xab), &main_fd, &debug_fd,
				 &alt_fd) &&
		     main_fd >= 0);
	stage_answer(stage, &right);
	assert_true(modules_fds(modules, stage_module_id(0xab), &main_fd, &debug_fd,
				&alt_fd));
	assert_true(main_fd >= 0);
	assert_int_equal(debug_fd, -1);
	assert_string_equal(stage->facts.data[stage->facts.count - 1].text, by_release);
}

static void hidden_kernel_addresses_are_named_as_the_reason(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(modules_free) struct modules *modules = modules_of(stage, NULL);

	(void)state;
	stage_serve(stage, OPEN_KALLSYMS, 0, "",
		    "0000000000000000 T _text\n0000000000000000 T _etext\n");
	struct err *err = modules_kernel(modules);

	assert_non_null(err);
	assert_int_equal(err->code, ERR_PERMISSION);
	assert_non_null(strstr(err->text, "kptr_restrict"));
	err_free(err);
	assert_int_equal(stage->events.count, 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(a_mapped_file_is_opened_by_its_mapping),
		cmocka_unit_test(a_replaced_file_is_not_taken),
		cmocka_unit_test(a_process_that_has_gone_is_opened_through_its_parent),
		cmocka_unit_test(a_deleted_file_is_never_looked_for_by_name),
		cmocka_unit_test(a_file_without_build_id_is_known_by_path_size_and_time),
		cmocka_unit_test(what_is_no_program_is_impossible),
		cmocka_unit_test(debug_information_is_found_by_build_id),
		cmocka_unit_test(the_dwz_file_is_found_too),
		cmocka_unit_test(without_debug_information_the_advice_names_the_build_id),
		cmocka_unit_test(debuginfod_is_asked_only_when_configured),
		cmocka_unit_test(a_dead_worker_costs_time_and_no_module),
		cmocka_unit_test(the_owner_may_go_before_the_answer),
		cmocka_unit_test(least_recently_used_files_are_closed_and_opened_again),
		cmocka_unit_test(the_kernel_is_fed_with_its_slide),
		cmocka_unit_test(a_vmlinux_of_another_build_is_not_the_kernels),
		cmocka_unit_test(hidden_kernel_addresses_are_named_as_the_reason),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
