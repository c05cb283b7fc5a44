// SPDX-License-Identifier: Apache-2.0
/*
 * Probes on a server in miniature. Truth is what the server says of itself: every use()
 * carries the number of the request that it is for, and CPU comes from its own
 * CLOCK_THREAD_CPUTIME_ID.
 */
#include "live_bpf_rig.h"

#include <sys/syscall.h>

#include "core/map.h"
#include "probe/attach.h"
#include "probe/calibrate.h"
#include "probe/govern.h"
#include "probe/slots.h"

#define ARG(n)                                                                        \
	{                                                                             \
		.value = {.base = ABI_BASE_REG, .reg = (n) == 0 ? 5 : 4, .width = 8 } \
	}
#define SPEC 7

/* One probe of the fixture. */
struct point {
	const char *function;
	struct abi_probe plan;
};

static const struct point points[] = {
	{ "request_begin",
	  { .spec_id = SPEC,
	    .verb = ABI_REQUEST_BEGIN,
	    .key = ARG(0),
	    .name = { .value = { .base = ABI_BASE_REG, .reg = 4, .width = 8 },
		      .kind = ABI_FETCH_CSTR } } },
	{ "request_end", { .spec_id = SPEC, .verb = ABI_REQUEST_END, .key = ARG(0) } },
	{ "work_push", { .spec_id = SPEC, .verb = ABI_TASK_PUSH, .key = ARG(0) } },
	{ "work_pop", { .spec_id = SPEC, .verb = ABI_TASK_POP, .key = ARG(0) } },
	{ "work_done", { .spec_id = SPEC, .verb = ABI_TASK_DONE } },
	{ "conn_own", { .spec_id = SPEC, .verb = ABI_CONN_OWN, .key = ARG(0) } },
	{ "conn_release", { .spec_id = SPEC, .verb = ABI_CONN_RELEASE } },
	{ "used",
	  { .spec_id = SPEC, .verb = ABI_USE, .resource_id = 1, .amount = ARG(0) } },
};
#define POINTS (sizeof(points) / sizeof(*points))

struct probed {
	struct rig rig;
	struct fixture fixture;
	struct slots *slots;
	struct attachment *attachment;
	struct attach_point at[POINTS];
};

static void attach_all(struct probed *probed)
{
	assert_ok(slots_open(loader_fds(probed->rig.loader), &probed->slots));
	for (size_t i = 0; i < POINTS; i++) {
		probed->at[i] =
			(struct attach_point){ .offset = offset_of(&probed->fixture,
								   points[i].function) };
		assert_ok(slots_put(probed->slots, &points[i].plan, &probed->at[i].slot));
	}
	CLEANUP(close) int fd = open_exe(probed->fixture.pid);
	struct attach_request request = { .file_fd = fd,
					  .points = probed->at,
					  .count = POINTS };

	assert_ok(attach_open(probed->rig.loader, &request, &probed->attachment));
}

static void probed_open(struct probed *probed, const struct probe_config *config,
			const char *requests, const char *turns)
{
	fixture_start_with(&probed->fixture, "probe_flow", requests, turns);
	rig_open(&probed->rig, config);
	attach_all(probed);
	rig_target(&probed->rig, probed->fixture.pid);
}

/* Runs to the end, draining meanwhile. */
static void probed_run(struct probed *probed)
{
	int fd = fileno(probed->fixture.out);
	struct fixture *fixture = &probed->fixture;

	assert_null(file_write_all(fixture->in, "x", 1));
	fcntl(fd, F_SETFL, O_NONBLOCK);
	for (char byte; read(fd, &byte, 0) < 0 || !fixture_number(fixture, "cpu ");) {
		char line[512];

		rig_drain(&probed->rig);
		usleep(1000);
		while (fgets(line, sizeof(line), fixture->out))
			vec_push(&fixture->lines, mem_strdup(line));
		clearerr(fixture->out);
	}
	rig_finish(&probed->rig);
}

static void probed_close(struct probed *probed)
{
	attach_close(probed->attachment);
	slots_free(probed->slots);
	fixture_end(&probed->fixture);
	rig_close(&probed->rig);
}

static const struct probe_config quiet = { .no_access = true,
					   .no_ticks = true,
					   .ring_bytes = 64 << 20 };

static uint64_t hits_of(const struct probed *probed, const char *function)
{
	for (size_t i = 0; i < POINTS; i++)
		if (!strcmp(points[i].function, function))
			return slots_count(probed->slots, probed->at[i].slot).hits;
	return 0;
}

/* request_id -> its true number, from the begins. */
static struct map *true_numbers(const struct rig *rig)
{
	struct map *numbers = map_new(sizeof(uint64_t), sizeof(uint64_t));

	vec_each(&rig->events, event)
		if (event->head.kind == ABI_SPAN &&
		    event->span.verb == ABI_REQUEST_BEGIN) {
			bool is_new;
			uint64_t *number =
				map_put(numbers, &event->span.span_id, &is_new);

			assert_true(is_new);
			*number = event->span.key;
		}
	return numbers;
}

static void no_event_is_charged_to_another_request_with(const struct probe_config *config)
{
	struct probed probed;
	uint64_t right = 0, nobody = 0, wrong = 0, missing = 0, ends = 0;

	probed_open(&probed, config, "10200", "100");
	probed_run(&probed);
	struct map *numbers = true_numbers(&probed.rig);

	vec_each(&probed.rig.events, event) {
		ends += event->head.kind == ABI_SPAN &&
			event->span.verb == ABI_REQUEST_END;
		if (event->head.kind != ABI_RESOURCE)
			continue;
		uint64_t *number = map_find(numbers, &event->head.request_id);
		uint64_t truth = event->resource.amount;

		if (!event->head.request_id)
			*(truth ? &missing : &nobody) += 1;
		else
			*(number && *number == truth ? &right : &wrong) += 1;
	}
	printf("# %lu events right, %lu of nobody, %lu unattributed, %lu wrong\n", right,
	       nobody, missing, wrong);
	assert_int_equal(map_count(numbers), 10200);
	assert_int_equal(ends, 10200);
	assert_int_equal(wrong, 0);
	assert_int_equal(missing, 0);
	assert_int_equal(right + nobody, fixture_number(&probed.fixture, "uses "));
	assert_int_equal(hits_of(&probed, "used"), right + nobody);
	map_free(numbers);
	probed_close(&probed);
}

static void no_event_is_charged_to_another_request(void **state)
{
	(void)state;
	no_event_is_charged_to_another_request_with(&quiet);
}

static void nor_with_probes_attached_one_by_one(void **state)
{
	struct probe_config single = quiet;

	(void)state;
	single.no_multi = true;
	no_event_is_charged_to_another_request_with(&single);
}

static void cpu_of_requests_adds_up_to_the_threads_own_clock(void **state)
{
	struct probed probed;
	uint64_t cpu_ns = 0, closed = 0;

	(void)state;
	probed_open(&probed, &quiet, "300", "3000000");
	probed_run(&probed);
	vec_each(&probed.rig.events, event)
		if (event->head.kind == ABI_SPAN && event->span.flags & ABI_HIT_CLOSED) {
			cpu_ns += event->span.cpu_ns;
			closed++;
		}
	double truth = (double)fixture_number(&probed.fixture, "cpu ");

	printf("# %.1f ms by the threads' clocks, %+.2f%%\n", truth / 1e6,
	       100 * ((double)cpu_ns - truth) / truth);
	assert_int_equal(closed, 300);
	assert_true((double)cpu_ns > 0.98 * truth && (double)cpu_ns < 1.02 * truth);
	probed_close(&probed);
}

/* The first bytes of every probed function, as the process has them now. */
static void read_text(const struct fixture *fixture, uint64_t ret_words[POINTS])
{
	CLEANUP(free) char *path = mem_printf("/proc/%d/mem", fixture->pid);
	CLEANUP(close) int fd = open(path, O_RDONLY | O_CLOEXEC);

	for (size_t i = 0; i < POINTS; i++) {
		CLEANUP(free) char *word = mem_printf("at %s ", points[i].function);
		uint64_t at = fixture_number(fixture, word);

		assert_int_equal(pread(fd, &ret_words[i], 8, (off_t)at), 8);
	}
}

/* An agent that attaches, says so, and lives until it is killed. */
static pid_t agent_start(const struct fixture *fixture)
{
	int ready[2];
	char byte;

	assert_int_equal(pipe(ready), 0);
	pid_t pid = fork();

	if (!pid) {
		struct probed probed;

		probed.fixture = *fixture;
		rig_open(&probed.rig, &quiet);
		attach_all(&probed);
		err_free(file_write_all(ready[1], "x", 1));
		pause();
		_exit(1);
	}
	close(ready[1]);
	assert_int_equal(read(ready[0], &byte, 1), 1);
	close(ready[0]);
	return pid;
}

static void a_killed_agent_leaves_the_text_as_it_was(void **state)
{
	uint64_t before[POINTS], during[POINTS], after[POINTS];
	struct fixture fixture;

	(void)state;
	fixture_start_with(&fixture, "probe_flow", "30", "10");
	read_text(&fixture, before);
	pid_t agent = agent_start(&fixture);

	read_text(&fixture, during);
	kill(agent, SIGKILL);
	waitpid(agent, NULL, 0);
	read_text(&fixture, after);
	for (size_t i = 0; i < POINTS; i++) {
		assert_int_equal(during[i] & 0xff, 0xcc); /* int3 */
		assert_int_equal(before[i], after[i]);
	}
	fixture_run(&fixture);
	fixture_end(&fixture);
}

static void a_hit_costs_more_than_a_trap_and_less_than_a_millisecond(void **state)
{
	struct calibration cost = { 0 };
	struct rig rig;

	(void)state;
	rig_open(&rig, &quiet);
	assert_ok(calibrate_run(rig.loader, &cost));
	for (int kind = 0; kind < CALIBRATE_KINDS; kind++) {
		printf("# %s %u ns\n", calibrate_kind_name((enum calibrate_kind)kind),
		       cost.hit_ns[kind]);
		/* A record is what a hit that tells costs more: noise may swallow it. */
		if (kind != CALIBRATE_RECORD)
			assert_in_range(cost.hit_ns[kind], 100, 1000000);
		assert_true(cost.hit_ns[kind] < 1000000);
	}
	rig_close(&rig);
}

static int bpf_next(int fd, const void *key, void *next)
{
	struct {
		uint32_t map_fd, pad;
		uint64_t key, next;
	} attr = { (uint32_t)fd, 0, (uintptr_t)key, (uintptr_t)next };

	return (int)syscall(SYS_bpf, 4 /* BPF_MAP_GET_NEXT_KEY */, &attr, sizeof(attr));
}

static size_t entries_of(const struct rig *rig, enum probe_fd map)
{
	unsigned char key[32], next[32];
	size_t count = 0;
	int fd = loader_fds(rig->loader)->fd[map];

	for (void *at = NULL; count < 100000 && !bpf_next(fd, at, next); count++)
		at = memcpy(key, next, sizeof(key));
	return count;
}

static size_t open_at(const struct rig *rig)
{
	return entries_of(rig, PROBE_FD_KEYS) + entries_of(rig, PROBE_FD_REQUESTS);
}

static void a_process_that_dies_leaves_nothing_open(void **state)
{
	struct probed probed;
	uint64_t ends = 0, begins = 0;

	(void)state;
	probed_open(&probed, &quiet, "30000", "2000");
	assert_null(file_write_all(probed.fixture.in, "x", 1));
	while (hits_of(&probed, "used") < 2000)
		usleep(1000);
	assert_true(entries_of(&probed.rig, PROBE_FD_REQUESTS) > 0);
	kill(probed.fixture.pid, SIGKILL);
	for (int tries = 0; tries < 1000 && open_at(&probed.rig); tries++)
		usleep(10000);
	assert_int_equal(entries_of(&probed.rig, PROBE_FD_KEYS), 0);
	assert_int_equal(entries_of(&probed.rig, PROBE_FD_REQUESTS), 0);
	rig_finish(&probed.rig);
	vec_each(&probed.rig.events, event) {
		begins += event->head.kind == ABI_SPAN &&
			  event->span.verb == ABI_REQUEST_BEGIN;
		ends += event->head.kind == ABI_SPAN &&
			event->span.verb == ABI_REQUEST_END;
	}
	assert_int_equal(begins, ends);
	probed_close(&probed);
}

#ifdef __clang__
#define PROBED __attribute__((noinline, patchable_function_entry(1)))
#else
#define PROBED __attribute__((noipa, patchable_function_entry(1)))
#endif

PROBED static void sudden(long number)
{
	__asm__ volatile("" : : "r"(number) : "memory");
}

/* Calm until it gets a byte, then hot for ever. Says where in the file sudden() lies. */
static pid_t sudden_start(int *ret_in, struct fixture *ret_fixture)
{
	int in[2];

	assert_int_equal(pipe(in), 0);
	*ret_in = in[1];
	memset(ret_fixture, 0, sizeof(*ret_fixture));
	ret_fixture->pid = fork();
	if (!ret_fixture->pid) {
		char byte;

		prctl(PR_SET_PDEATHSIG, SIGKILL);
		fcntl(in[0], F_SETFL, O_NONBLOCK);
		while (read(in[0], &byte, 1) != 1) {
			sudden(0);
			usleep(10000);
		}
		for (long i = 0;; i++)
			sudden(i);
	}
	close(in[0]);
	vec_push(&ret_fixture->lines, mem_printf("at sudden %p", (void *)sudden));
	return ret_fixture->pid;
}

/* One interval of 100 ms of a whole CPU. Return: hits in it. */
static uint64_t govern_once(struct govern *govern, struct slots *slots, uint32_t slot,
			    uint32_t hit_ns)
{
	uint64_t before = slots_count(slots, slot).hits;

	usleep(100000);
	uint64_t hits = slots_count(slots, slot).hits - before;

	govern_measure(govern, 0, hits * hit_ns, 100000000, 100000000);
	govern_step(govern, realtime_ns());
	return hits;
}

static void a_probe_that_turns_hot_is_off_within_a_second(void **state)
{
	struct abi_probe plan = { .verb = ABI_CONN_RELEASE };
	struct calibration cost = { 0 };
	struct attach_point point = { 0 };
	struct fixture fixture;
	struct slots *slots;
	struct rig rig;
	int in, steps = 0;
	uint64_t most = 0;

	(void)state;
	pid_t pid = sudden_start(&in, &fixture);

	rig_open(&rig, &quiet);
	assert_ok(calibrate_run(rig.loader, &cost));
	assert_ok(slots_open(loader_fds(rig.loader), &slots));
	assert_ok(slots_put(slots, &plan, &point.slot));
	point.offset = offset_of(&fixture, "sudden");
	CLEANUP(close) int fd = open_exe(pid);
	CLEANUP(attach_close) struct attachment *attachment = NULL;
	CLEANUP(govern_free)
	struct govern *govern = govern_new(&(struct govern_config){ 0 });

	assert_ok(attach_open(
		rig.loader,
		&(struct attach_request){ .file_fd = fd, .points = &point, .count = 1 },
		&attachment));
	rig_target(&rig, pid);
	assert_int_equal(govern_add(govern, 0), 0);
	for (int i = 0; i < 5; i++)
		govern_once(govern, slots, point.slot, cost.hit_ns[0]);
	assert_true(govern_unit(govern, 0).is_wanted);
	assert_true(slots_count(slots, point.slot).hits > 0);
	assert_int_equal(write(in, "x", 1), 1);
	while (govern_unit(govern, 0).is_wanted && steps++ < 10) {
		uint64_t hits = govern_once(govern, slots, point.slot, cost.hit_ns[0]);

		most = hits > most ? hits : most;
	}
	attach_close(take(attachment));
	uint64_t after = slots_count(slots, point.slot).hits;

	printf("# off after %d steps of 100 ms, %lu hits in the busiest\n", steps, most);
	assert_true(steps <= 5 && most > 2000);
	usleep(200000);
	assert_int_equal(slots_count(slots, point.slot).hits, after);
	close(in);
	spin_end(pid);
	slots_free(slots);
	rig_close(&rig);
	free(fixture.lines.data[0]);
	vec_fini(&fixture.lines);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(no_event_is_charged_to_another_request),
		cmocka_unit_test(nor_with_probes_attached_one_by_one),
		cmocka_unit_test(a_killed_agent_leaves_the_text_as_it_was),
		cmocka_unit_test(
			a_hit_costs_more_than_a_trap_and_less_than_a_millisecond),
		cmocka_unit_test(a_probe_that_turns_hot_is_off_within_a_second),
		cmocka_unit_test(a_process_that_dies_leaves_nothing_open),
		cmocka_unit_test(cpu_of_requests_adds_up_to_the_threads_own_clock),
	};

	if (rig_skips("live_probe"))
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
