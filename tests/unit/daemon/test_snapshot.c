// SPDX-License-Identifier: Apache-2.0
#include "unit/daemon/stage.h"

#include "daemon/snapshot.h"

#define STAT(pid, comm, ppid, flags, ticks)             \
#pid " (" comm ") S " #ppid " 1 1 0 -1 " #flags \
	     " 0 0 0 0 0 0 0 0 20 0 1 0 " #ticks " 1 2 3 4 5 6 7 8 9 0 0 0 0 0\n"

static struct snapshot *snapshot_of(struct stage *stage)
{
	return snapshot_new(&(struct snapshot_config){
		.opener = &stage->opener, .feed = stage_feed, .ctx = stage });
}

static void stat_survives_any_name(void **state)
{
	static const struct {
		const char *text, *comm;
	} lines[] = {
		{ STAT(7, "plain", 1, 4194560, 123), "plain" },
		{ STAT(7, "a b) R 9 (c", 1, 4194560, 123), "a b) R 9 (c" },
		{ STAT(7, ")", 1, 4194560, 123), ")" },
		{ STAT(7, "", 1, 4194560, 123), "" },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		struct snapshot_stat stat;

		assert_true(snapshot_parse_stat(lines[i].text, &stat));
		assert_string_equal(stat.comm, lines[i].comm);
		assert_int_equal(stat.state, 'S');
		assert_int_equal(stat.ppid, 1);
		assert_int_equal(stat.flags, 4194560);
		assert_int_equal(stat.start_ns, 1230000000);
	}
	struct snapshot_stat stat;

	assert_false(snapshot_parse_stat("", &stat));
	assert_false(snapshot_parse_stat("7 (cut) S 1 2", &stat));
	assert_false(snapshot_parse_stat(")(", &stat));
}

/* The truth is this very process, as the kernel prints it. */
static void our_own_stat_agrees_with_getppid(void **state)
{
	struct snapshot_stat stat;
	char text[4096] = "";
	FILE *file = fopen("/proc/self/stat", "re");

	(void)state;
	assert_non_null(file);
	assert_non_null(fgets(text, sizeof(text), file));
	fclose(file);
	assert_true(snapshot_parse_stat(text, &stat));
	assert_int_equal(stat.ppid, getppid());
	assert_true(stat.start_ns > 0);
}

static void maps_lines_of_every_kind_parse(void **state)
{
	static const struct {
		const char *line, *path;
		bool good, executable, deleted;
		uint64_t pgoff, inode;
	} lines[] = {
		{ "55d0-55e0 r-xp 00002000 fe:01 1234                       /usr/bin/x",
		  "/usr/bin/x", true, true, false, 0x2000, 1234 },
		{ "55d0-55e0 rw-p 00002000 fe:01 1234                       /usr/bin/x",
		  "/usr/bin/x", true, false, false, 0x2000, 1234 },
		{ "7f00-7f10 r-xp 00000000 00:00 0 ", "", true, true, false, 0, 0 },
		{ "7f00-7f10 r-xp 00000000 00:00 0", "", true, true, false, 0, 0 },
		{ "7f00-7f10 r-xp 00000000 00:00 0                          [vdso]",
		  "[vdso]", true, true, false, 0, 0 },
		{ "1000-2000 r-xp 00000000 08:01 9 /a b  c", "/a b  c", true, true, false,
		  0, 9 },
		{ "1000-2000 r-xp 00000000 08:01 9 /x (deleted)", "/x", true, true, true,
		  0, 9 },
		{ "1000-2000 r-xp 00000000 08:01 9 /line\\012two", "/line\ntwo", true,
		  true, false, 0, 9 },
		{ "1000-2000 r-xp 00000000 08:01 9 /back\\slash", "/back\\slash", true,
		  true, false, 0, 9 },
		{ "2000-1000 r-xp 00000000 08:01 9 /backwards", "", false, 0, 0, 0, 0 },
		{ "1000-2000 r-xp", "", false, 0, 0, 0, 0 },
		{ "", "", false, 0, 0, 0, 0 },
	};

	(void)state;
	for (size_t i = 0; i < sizeof(lines) / sizeof(*lines); i++) {
		CLEANUP(free) char *line = mem_strdup(lines[i].line);
		struct snapshot_map map;

		assert_int_equal(snapshot_parse_map(line, &map), lines[i].good);
		if (!lines[i].good)
			continue;
		assert_string_equal(map.path, lines[i].path);
		assert_int_equal(map.executable, lines[i].executable);
		assert_int_equal(map.deleted, lines[i].deleted);
		assert_int_equal(map.pgoff, lines[i].pgoff);
		assert_int_equal(map.inode, lines[i].inode);
	}
}

static void units_are_found_in_cgroup_paths(void **state)
{
	static const struct {
		const char *path, *unit;
	} paths[] = {
		{ "/system.slice/nginx.service", "nginx.service" },
		{ "/system.slice/nginx.service/worker", "nginx.service" },
		{ "/user.slice/user-0.slice/user@0.service/app.slice/foo.scope",
		  "foo.scope" },
		{ "/docker/0123abc", "0123abc" },
		{ "/kubepods.slice/pod1/cri-x", "cri-x" },
		{ "/", "" },
		{ "", "" },
	};
	char unit[32];

	(void)state;
	for (size_t i = 0; i < sizeof(paths) / sizeof(*paths); i++) {
		snapshot_unit(paths[i].path, unit, sizeof(unit));
		assert_string_equal(unit, paths[i].unit);
	}
	snapshot_unit("/a-name-that-is-far-too-long.service", unit, 8);
	assert_string_equal(unit, "a-name-");
}

static void a_process_becomes_seen_and_its_executable_mappings(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(snapshot_free) struct snapshot *snapshot = snapshot_of(stage);
	uint64_t start_ns;

	(void)state;
	stage_serve(stage, OPEN_STAT, 7, "", STAT(7, "prog", 3, 0, 500));
	stage_serve(stage, OPEN_STAT, 3, "", STAT(3, "shell", 1, 0, 400));
	stage_serve(stage, OPEN_STATUS, 7, "", "Name:\tprog\nUid:\t33\t34\t35\t36\n");
	stage_serve(stage, OPEN_MAPS, 7, "",
		    "1000-2000 r--p 00000000 08:01 9 /bin/prog\n"
		    "2000-5000 r-xp 00001000 08:01 9 /bin/prog\n"
		    "8000-9000 r-xp 00000000 00:00 0 \n");
	assert_null(snapshot_process(snapshot, 7, 0, &start_ns));
	assert_int_equal(start_ns, 5000000000);
	assert_int_equal(stage->events.count, 3);
	const struct abi_task *task = &stage->events.data[0].event.task;
	const struct abi_mmap *mmap = &stage->events.data[1].event.mmap;

	assert_int_equal(task->op, ABI_TASK_SEEN);
	assert_string_equal(task->comm, "prog");
	assert_int_equal(task->head.start_ns, start_ns);
	assert_int_equal(task->parent_pid, 3);
	assert_int_equal(task->parent_start_ns, 4000000000);
	assert_int_equal(task->uid, 34); /* effective */
	assert_int_equal(mmap->addr, 0x2000);
	assert_int_equal(mmap->length, 0x3000);
	assert_int_equal(mmap->pgoff, 0x1000);
	assert_int_equal(mmap->dev_major, 8);
	assert_int_equal(mmap->flags, ABI_MMAP_SNAPSHOT);
	assert_int_equal(mmap->head.start_ns, start_ns);
	assert_string_equal(stage->events.data[1].path, "/bin/prog");
	assert_string_equal(stage->events.data[2].path, "");
}

static void another_process_of_that_pid_is_not_taken(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(snapshot_free) struct snapshot *snapshot = snapshot_of(stage);

	(void)state;
	stage_serve(stage, OPEN_STAT, 7, "", STAT(7, "prog", 0, 0, 500));
	struct err *err = snapshot_process(snapshot, 7, 4000000000, NULL);

	assert_non_null(err);
	assert_int_equal(err->code, ERR_NOT_FOUND);
	err_free(err);
	assert_int_equal(stage->events.count, 0);
}

static void kernel_threads_have_no_mappings(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(snapshot_free) struct snapshot *snapshot = snapshot_of(stage);

	(void)state;
	stage_serve(stage, OPEN_STAT, 2, "", STAT(2, "kthreadd", 0, 2129984, 1));
	assert_null(snapshot_process(snapshot, 2, 0, NULL));
	assert_int_equal(stage->events.count, 1);
}

static void the_service_is_read_once_per_cgroup(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	CLEANUP(snapshot_free) struct snapshot *snapshot = snapshot_of(stage);

	(void)state;
	stage_serve(stage, OPEN_CGROUP, 7, "",
		    "12:cpu:/v1\n0::/system.slice/redis.service\n");
	assert_string_equal(snapshot_service(snapshot, 7, 55), "redis.service");
	assert_string_equal(snapshot_service(snapshot, 8, 55), "redis.service");
	assert_int_equal(stage->opened.count, 1);
	assert_string_equal(snapshot_service(snapshot, 9, 56), "");
}

/* An opener that opens; the processes are real. */
static struct err *open_really(void *ctx, const struct open_request *request, int *ret_fd)
{
	static const char *const names[OPENS] = { [OPEN_STAT] = "stat",
						  [OPEN_STATUS] = "status",
						  [OPEN_MAPS] = "maps",
						  [OPEN_CGROUP] = "cgroup",
						  [OPEN_TASK_DIR] = "task" };
	char path[64];

	(void)ctx;
	if (request->what == OPEN_CHILDREN)
		snprintf(path, sizeof(path), "/proc/%u/task/%u/children", request->pid,
			 (unsigned)request->start);
	else
		snprintf(path, sizeof(path), "/proc/%u/%s", request->pid,
			 names[request->what]);
	*ret_fd = open(path, O_RDONLY | O_CLOEXEC);
	return *ret_fd < 0 ? err_new(ERR_NOT_FOUND, "%s", path) : NULL;
}

static void a_tree_has_all_descendants_parents_first(void **state)
{
	CLEANUP(stage_free) struct stage *stage = stage_new();
	struct snapshot_pids pids = { 0 };
	int ready[2], go[2];
	pid_t grandchild = 0;

	(void)state;
	stage->opener.open = open_really;
	CLEANUP(snapshot_free) struct snapshot *snapshot = snapshot_of(stage);

	assert_int_equal(pipe(ready) | pipe(go), 0);
	pid_t child = fork();

	if (!child) {
		pid_t below = fork();
		char byte;

		close(go[1]);
		if (below && write(ready[1], &below, sizeof(below)) < 0)
			_exit(1);
		_exit(read(go[0], &byte, 1) != 0);
	}
	close(go[0]);
	assert_int_equal(read(ready[0], &grandchild, sizeof(grandchild)),
			 sizeof(grandchild));
	assert_null(snapshot_tree(snapshot, (uint32_t)child, &pids));
	close(go[1]);
	assert_int_equal(pids.list.count, 2);
	assert_int_equal(pids.list.data[0].pid, child);
	assert_int_equal(pids.list.data[1].pid, grandchild);
	vec_fini(&pids.list);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(stat_survives_any_name),
		cmocka_unit_test(our_own_stat_agrees_with_getppid),
		cmocka_unit_test(maps_lines_of_every_kind_parse),
		cmocka_unit_test(units_are_found_in_cgroup_paths),
		cmocka_unit_test(a_process_becomes_seen_and_its_executable_mappings),
		cmocka_unit_test(another_process_of_that_pid_is_not_taken),
		cmocka_unit_test(kernel_threads_have_no_mappings),
		cmocka_unit_test(the_service_is_read_once_per_cgroup),
		cmocka_unit_test(a_tree_has_all_descendants_parents_first),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
