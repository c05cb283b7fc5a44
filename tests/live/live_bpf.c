// SPDX-License-Identifier: Apache-2.0
/*
 * The real object on the running kernel. Truth comes from elsewhere: from what the
 * fixture prints, from /proc, from readelf, and from arithmetic.
 */
#include "live_bpf_rig.h"

#include <fcntl.h>
#include <linux/capability.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <sys/syscall.h>

/* Field @number of /proc/PID/stat, counted from 1, behind the comm. */
static uint64_t stat_of(pid_t pid, int number)
{
	CLEANUP(free) char *path = mem_printf("/proc/%d/stat", pid);
	char *text = NULL, *at;

	assert_ok(file_read(path, 4096, &text, NULL));
	at = strrchr(text, ')') + 1;
	for (int i = 2; i < number - 1; i++)
		at = strchr(at + 1, ' ');
	uint64_t value = strtoull(at, NULL, 10);

	free(text);
	return value;
}

static bool is_task(const struct event *event, uint32_t op, uint32_t pid)
{
	return event->head.kind == ABI_TASK && event->task.op == op &&
	       event->head.pid == pid;
}

static bool maps(const struct event *event, uint32_t pid, const char *file)
{
	const char *slash = strrchr(event->path, '/');

	return event->head.kind == ABI_MMAP && event->head.pid == pid &&
	       !strcmp(slash ? slash + 1 : event->path, file);
}

/* Runs live_tasks as the only target; the caller closes rig and fixture. */
static void run_tasks(struct rig *rig, struct fixture *fixture)
{
	fixture_start(fixture, "live_tasks");
	rig_open(rig, &(struct probe_config){ 0 });
	rig_target(rig, fixture->pid);
	fixture_run(fixture);
	rig_drain(rig);
}

static void tasks_and_mappings_arrive_in_the_order_of_life(void **state)
{
	struct fixture fixture;
	struct rig rig;

	(void)state;
	run_tasks(&rig, &fixture);

	uint32_t self = (uint32_t)fixture.pid;
	uint32_t forked = (uint32_t)fixture_number(&fixture, "fork ");
	uint32_t execed = (uint32_t)fixture_number(&fixture, "exec ");
	uint32_t thread = (uint32_t)fixture_number(&fixture, "thread ");

	fixture_end(&fixture);
	rig_finish(&rig);

	long fork = rig_find(&rig, 0, e, is_task(e, ABI_TASK_FORK, forked));
	long exit = rig_find(&rig, 0, e, is_task(e, ABI_TASK_EXIT, forked));

	assert_true(fork >= 0 && exit > fork);
	assert_int_equal(rig.events.data[fork].task.parent_pid, self);
	assert_int_equal(rig.events.data[exit].task.exit_code, 7 << 8);
	assert_string_equal(rig.events.data[fork].task.comm, "live_tasks");

	/* fork, exec, then its mappings, its library last, exit */
	fork = rig_find(&rig, 0, e, is_task(e, ABI_TASK_FORK, execed));
	long exec = rig_find(&rig, 0, e, is_task(e, ABI_TASK_EXEC, execed));
	long program = rig_find(&rig, 0, e, maps(e, execed, "live_tasks"));
	long library = rig_find(&rig, 0, e, maps(e, execed, "libresolv.so.2"));

	exit = rig_find(&rig, 0, e, is_task(e, ABI_TASK_EXIT, execed));
	assert_true(fork >= 0 && exec > fork && program > exec && library > program &&
		    exit > library);
	assert_int_equal(rig.events.data[exit].task.exit_code, 0);
	assert_true(rig_find(&rig, 0, e, maps(e, self, "libresolv.so.2")) > exit);

	long clone = rig_find(&rig, 0, e,
			      is_task(e, ABI_TASK_FORK, self) && e->head.tid == thread);

	assert_true(clone > exit);
	/* The thread's end is no end of a process; the driver's is, with status 3. */
	exit = rig_find(&rig, 0, e, is_task(e, ABI_TASK_EXIT, self));
	assert_true(exit > clone);
	assert_int_equal(rig.events.data[exit].head.tid, self);
	assert_int_equal(rig.events.data[exit].task.exit_code, 3 << 8);
	assert_true(rig_find(&rig, exit + 1, e, is_task(e, ABI_TASK_EXIT, self)) < 0);
	rig_close(&rig);
}

static void start_times_are_those_of_proc(void **state)
{
	struct fixture fixture;
	struct rig rig;

	(void)state;
	run_tasks(&rig, &fixture);
	uint64_t start_ns = stat_of(fixture.pid, 22) * ABI_START_TICK_NS;

	fixture_end(&fixture);
	rig_finish(&rig);

	uint32_t pid = (uint32_t)fixture.pid;
	size_t seen = 0;

	vec_each(&rig.events, event) {
		if (event->head.kind == ABI_TASK && event->task.parent_pid == pid) {
			assert_int_equal(event->task.parent_start_ns, start_ns);
			assert_true(event->head.start_ns >= start_ns);
			seen++;
		}
		if (event->head.pid == pid && event->head.kind != ABI_MMAP) {
			assert_int_equal(event->head.start_ns, start_ns);
			seen++;
		}
	}
	assert_true(seen >= 6);
	rig_close(&rig);
}

static void mappings_name_the_inodes_of_the_files(void **state)
{
	struct fixture fixture;
	struct rig rig;
	size_t compared = 0;

	(void)state;
	run_tasks(&rig, &fixture);
	uint32_t execed = (uint32_t)fixture_number(&fixture, "exec ");

	fixture_end(&fixture);
	rig_finish(&rig);
	vec_each(&rig.events, event) {
		struct stat info;

		if (event->head.kind != ABI_MMAP || event->head.pid != execed ||
		    event->path[0] != '/')
			continue;
		assert_int_equal(stat(event->path, &info), 0);
		assert_int_equal(event->mmap.inode, info.st_ino);
		assert_int_equal(event->mmap.build_id_bytes, 0);
		compared++;
	}
	assert_true(compared >= 3); /* program, ld.so, libc */
	rig_close(&rig);
}

/* Touch @count fresh pages: that many page faults and a few of the process itself. */
static pid_t fault_and_exit(size_t count, int go)
{
	pid_t pid = fork();
	char byte;

	if (pid)
		return pid;
	if (read(go, &byte, 1) != 1)
		_exit(1);
	char *pages = mmap(NULL, count * 4096, PROT_READ | PROT_WRITE,
			   MAP_PRIVATE | MAP_ANONYMOUS, -1, 0);

	madvise(pages, count * 4096, MADV_NOHUGEPAGE);
	for (size_t i = 0; i < count; i++)
		*(volatile char *)(pages + i * 4096) = 1;
	_exit(0);
}

static void a_full_ring_loses_records_and_counts_every_one(void **state)
{
	const struct probe_config config = { .sources = 1u << ABI_SOURCE_PAGE_FAULT,
					     .ring_bytes = 4096 };
	struct abi_count counts[ABI_KINDS];
	struct rig rig;
	int go[2];

	(void)state;
	assert_int_equal(pipe(go), 0);
	pid_t pid = fault_and_exit(3000, go[0]);

	rig_open(&rig, &config);
	rig_target(&rig, pid);
	assert_int_equal(write(go[1], "x", 1), 1);
	waitpid(pid, NULL, 0); /* without draining once */
	rig_finish(&rig);
	ring_counts(rig.ring, counts);
	assert_true(counts[ABI_ACCESS].seen >= 3000);
	assert_true(counts[ABI_ACCESS].dropped > 2900);
	for (int kind = ABI_TASK; kind <= ABI_TICK; kind++)
		if (kind != ABI_MMAP) /* which do not come through this ring */
			assert_int_equal(counts[kind].seen,
					 rig.received[kind] + counts[kind].dropped);
	rig_close(&rig);
	close(go[0]);
	close(go[1]);
}

static void a_ring_that_fits_loses_nothing(void **state)
{
	const struct probe_config config = { .sources = 1u << ABI_SOURCE_PAGE_FAULT };
	struct abi_count counts[ABI_KINDS];
	struct rig rig;
	int go[2];

	(void)state;
	assert_int_equal(pipe(go), 0);
	pid_t pid = fault_and_exit(3000, go[0]);

	rig_open(&rig, &config);
	rig_target(&rig, pid);
	assert_int_equal(write(go[1], "x", 1), 1);
	waitpid(pid, NULL, 0);
	rig_finish(&rig);
	ring_counts(rig.ring, counts);
	assert_int_equal(counts[ABI_ACCESS].dropped, 0);
	assert_true(rig.received[ABI_ACCESS] >= 3000);
	assert_int_equal(counts[ABI_ACCESS].seen, rig.received[ABI_ACCESS]);
	rig_close(&rig);
	close(go[0]);
	close(go[1]);
}

/* Drain until @count records of @kind of @pid came, or time is over. */
static size_t collect(struct rig *rig, uint32_t kind, uint32_t pid, size_t count)
{
	uint64_t until_ns = clock_ns() + WAIT_NS;
	size_t seen = 0;

	while (seen < count && clock_ns() < until_ns) {
		usleep(20000);
		rig_drain(rig);
		merge_flush(rig->merge);
		seen = 0;
		vec_each(&rig->events, event)
			seen += event->head.kind == kind && event->head.pid == pid;
	}
	return seen;
}

static void only_targets_are_sampled(void **state)
{
	struct rig rig;
	pid_t target = spin(), other = spin();

	(void)state;
	rig_open(&rig, &(struct probe_config){ 0 });
	rig_target(&rig, target);
	assert_true(collect(&rig, ABI_ACCESS, (uint32_t)target, 20) >= 20);
	vec_each(&rig.events, event)
		if (event->head.kind == ABI_ACCESS || event->head.kind == ABI_TICK)
			assert_int_equal(event->head.pid, target);
	spin_end(target);
	spin_end(other);
	rig_close(&rig);
}

static void the_agent_never_samples_itself(void **state)
{
	const struct probe_config config = { .self_pids = { (uint32_t)getpid() },
					     .self_count = 1 };
	struct rig rig;
	pid_t other = spin();

	(void)state;
	rig_open(&rig, &config);
	assert_ok(ring_set_filter(rig.ring, ABI_FILTER_ALL));
	pid_t child = spin(); /* forked while it looks: one of its own, too */

	assert_true(collect(&rig, ABI_ACCESS, (uint32_t)other, 20) >= 20);
	vec_each(&rig.events, event)
		if (event->head.kind != ABI_MMAP) {
			assert_int_not_equal(event->head.pid, getpid());
			assert_int_not_equal(event->head.pid, child);
		}
	spin_end(other);
	spin_end(child);
	rig_close(&rig);
}

static void a_cgroup_and_what_is_below_it_can_be_the_target(void **state)
{
	struct machine_report *report = mem_alloc(sizeof(*report));
	const char *mount = NULL;
	char folder[256], below[300], text[400];
	struct stat info;
	struct rig rig;

	(void)state;
	machine_examine(report);
	for (size_t i = 0; i < report->count; i++)
		if (!strcmp(report->rows[i].name, "cgroup v2") &&
		    report->rows[i].value[0] == '/')
			mount = report->rows[i].value;
	if (!mount) {
		free(report);
		skip();
	}
	snprintf(folder, sizeof(folder), "%s/assay-live-%d", mount, getpid());
	snprintf(below, sizeof(below), "%s/below", folder);
	free(report);
	if (mkdir(folder, 0755) || mkdir(below, 0755))
		skip();
	pid_t inside = spin(), outside = spin();

	snprintf(text, sizeof(text), "echo %d > %s/cgroup.procs", inside, below);
	assert_int_equal(system(text), 0);
	assert_int_equal(stat(folder, &info), 0);
	rig_open(&rig, &(struct probe_config){ 0 });
	assert_ok(ring_add_cgroup(rig.ring, info.st_ino));
	assert_ok(ring_set_filter(rig.ring, ABI_FILTER_CGROUP));
	assert_true(collect(&rig, ABI_ACCESS, (uint32_t)inside, 20) >= 20);
	vec_each(&rig.events, event)
		if (event->head.kind != ABI_MMAP)
			assert_int_equal(event->head.pid, inside);
	spin_end(inside);
	spin_end(outside);
	rig_close(&rig);
	rmdir(below);
	rmdir(folder);
}

static void pausing_stops_the_samples(void **state)
{
	struct rig rig;
	pid_t target = spin();

	(void)state;
	rig_open(&rig, &(struct probe_config){ 0 });
	rig_target(&rig, target);
	assert_true(collect(&rig, ABI_ACCESS, (uint32_t)target, 10) >= 10);
	assert_ok(loader_pause(rig.loader, true));
	rig_drain(&rig);
	uint64_t before = rig.received[ABI_ACCESS] + rig.received[ABI_TICK];

	usleep(200000);
	rig_drain(&rig);
	assert_int_equal(rig.received[ABI_ACCESS] + rig.received[ABI_TICK], before);
	assert_ok(loader_pause(rig.loader, false));
	size_t more = rig.events.count + 10;

	assert_true(collect(&rig, ABI_ACCESS, (uint32_t)target, more) >= 10);
	assert_true(rig.received[ABI_ACCESS] + rig.received[ABI_TICK] > before);
	spin_end(target);
	rig_close(&rig);
}

#define MARK 0x5ca1ab1edeadbea7ull

/* A child with a mark on its stack, which it prints the address of. */
static pid_t spin_marked(int out)
{
	pid_t pid = fork();

	if (pid)
		return pid;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	volatile uint64_t mark = MARK, at = (uint64_t)(uintptr_t)&mark;

	if (write(out, (void *)&at, sizeof(at)) != sizeof(at))
		_exit(1);
	for (volatile uint64_t n = 0;; n++)
		mark = MARK;
}

/* Does the copy hold the mark at its address? */
static bool has_mark(const struct event *event, uint64_t at)
{
	uint64_t sp = event->tick.regs[7], value;

	if (at < sp || at + 8 > sp + event->tick.stack_bytes)
		return false;
	memcpy(&value, event->stack + (at - sp), sizeof(value));
	return value == MARK;
}

static void ticks_carry_the_stack_until_told_otherwise(void **state)
{
	struct rig rig;
	uint64_t at;
	int out[2];

	(void)state;
	assert_int_equal(pipe(out), 0);
	pid_t pid = spin_marked(out[1]);
	uint32_t target = (uint32_t)pid;

	assert_int_equal(read(out[0], &at, sizeof(at)), sizeof(at));
	rig_open(&rig, &(struct probe_config){ 0 });
	rig_target(&rig, pid);
	assert_true(collect(&rig, ABI_TICK, target, 5) >= 5);
	size_t count = rig.events.count, ticks = 0;

	vec_each(&rig.events, event) {
		if (event->head.kind != ABI_TICK)
			continue;
		assert_true(event->tick.flags & ABI_TICK_USER);
		assert_true(event->tick.user_depth > 0);
		assert_int_equal(event->tick.user_ips[0], event->tick.regs[16]);
		assert_true(has_mark(event, at));
		assert_true(event->tick.period_ns >= 10000000);
		ticks++;
	}
	assert_ok(ring_set_fp_ok(rig.ring, target, true));
	rig_drain(&rig);
	merge_flush(rig.merge);
	count = rig.events.count;
	assert_true(collect(&rig, ABI_TICK, target, ticks + 10) >= ticks + 10);
	for (size_t i = count; i < rig.events.count; i++)
		if (rig.events.data[i].head.kind == ABI_TICK)
			assert_int_equal(rig.events.data[i].tick.stack_bytes, 0);
	spin_end(pid);
	rig_close(&rig);
	close(out[0]);
	close(out[1]);
}

/* In a child: give up everything, then do all that the daemon does. Return: exit code. */
static int drain_without_privileges(const struct probe_fds *fds, pid_t target)
{
	struct __user_cap_header_struct header = { _LINUX_CAPABILITY_VERSION_3, 0 };
	struct __user_cap_data_struct none[2] = { { 0 }, { 0 } };
	struct abi_count counts[ABI_KINDS];
	struct ring *ring;
	struct rig rig = { 0 };
	static const struct merge_config all = { 0 };

	rig.merge = merge_new(&all, rig_note, &rig);
	prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0);
	if (setgid(65534) || setuid(65534) || syscall(SYS_capset, &header, none))
		return 1;
	if (ring_open(fds, &ring))
		return 2;
	if (ring_add_pid(ring, (uint32_t)target) ||
	    ring_set_filter(ring, ABI_FILTER_PIDS))
		return 3;
	for (int i = 0; i < 100 && rig.received[ABI_ACCESS] < 10; i++) {
		usleep(20000);
		if (ring_drain(ring, rig_put, &rig, NULL))
			return 4;
	}
	ring_counts(ring, counts);
	if (rig.received[ABI_ACCESS] < 10 || !counts[ABI_ACCESS].seen)
		return 5;
	return ring_set_fp_ok(ring, (uint32_t)target, true) || ring_set_filter(ring, 0) ||
			       ring_del_pid(ring, (uint32_t)target)
		       ? 6
		       : 0;
}

static void reading_needs_no_privilege(void **state)
{
	struct loader *loader;
	pid_t target = spin();
	int status;

	(void)state;
	assert_ok(loader_open(&(struct probe_config){ 0 }, &loader));
	pid_t child = fork();

	if (!child)
		_exit(drain_without_privileges(loader_fds(loader), target));
	waitpid(child, &status, 0);
	assert_true(WIFEXITED(status));
	assert_int_equal(WEXITSTATUS(status), 0);
	loader_close(loader);
	spin_end(target);
}

static void settings_that_make_no_sense_are_refused(void **state)
{
	static const struct {
		struct probe_config config;
		enum err_code code;
	} cases[] = {
		{ { .ring_bytes = 5000 }, ERR_INVALID },
		{ { .ring_bytes = 1024 }, ERR_INVALID },
		{ { .access_hz = 1000000 }, ERR_LIMIT },
		{ { .stack_bytes = 1 << 20 }, ERR_LIMIT },
		{ { .sources = 1u << 30 }, ERR_UNSUPPORTED },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct loader *loader = NULL;
		struct err *err = loader_open(&cases[i].config, &loader);

		assert_non_null(err);
		assert_null(loader);
		assert_int_equal(err->code, cases[i].code);
		err_free(err);
	}
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(tasks_and_mappings_arrive_in_the_order_of_life),
		cmocka_unit_test(start_times_are_those_of_proc),
		cmocka_unit_test(mappings_name_the_inodes_of_the_files),
		cmocka_unit_test(a_full_ring_loses_records_and_counts_every_one),
		cmocka_unit_test(a_ring_that_fits_loses_nothing),
		cmocka_unit_test(only_targets_are_sampled),
		cmocka_unit_test(the_agent_never_samples_itself),
		cmocka_unit_test(a_cgroup_and_what_is_below_it_can_be_the_target),
		cmocka_unit_test(pausing_stops_the_samples),
		cmocka_unit_test(ticks_carry_the_stack_until_told_otherwise),
		cmocka_unit_test(reading_needs_no_privilege),
		cmocka_unit_test(settings_that_make_no_sense_are_refused),
	};

	if (rig_skips("live_bpf"))
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
