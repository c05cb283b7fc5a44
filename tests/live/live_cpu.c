// SPDX-License-Identifier: Apache-2.0
/*
 * What requests cost, against the thread's own clock, while neighbours want the CPU and
 * the thread is moved about; and without what the probes themselves cost, against calls
 * that had none.
 */
#include "live_bpf_rig.h"

#include <sched.h>

#include "probe/attach.h"
#include "probe/calibrate.h"
#include "probe/plan.h"
#include "probe/slots.h"

#define SHORT_NS 50000 /* contexts shorter than this are not judged */

enum { BEGIN, END, POINTS };

static const struct abi_probe plans[POINTS] = {
	{ .spec_id = 1,
	  .pair = 1,
	  .flags = ABI_PROBE_PAIRED,
	  .verb = ABI_REQUEST_BEGIN,
	  .key = { .value = { .base = ABI_BASE_REG, .reg = 5, .width = 8 } } },
	{ .spec_id = 1,
	  .pair = 1,
	  .flags = ABI_PROBE_PAIRED | ABI_PROBE_RETURN,
	  .verb = ABI_REQUEST_END,
	  .sp_delta = -8 },
};

/* One call: by the thread's clock, read in the call and around it with all that the
 * probes cost; by ours, and of that the probes' part. */
struct call {
	uint64_t number, truth_ns, around_ns, twin_ns, cpu_ns, probe_ns;
};

struct bench {
	struct rig rig;
	struct fixture fixture;
	struct slots *slots;
	uint32_t slot[POINTS];
	struct attachment *links[POINTS];
	size_t lines, events; /* that were looked at */
	VEC(struct call) calls;
};

static void bench_open(struct bench *bench, const char *calls, const char *turns)
{
	static const struct probe_config quiet = { .no_access = true,
						   .no_ticks = true,
						   .ring_bytes = 64 << 20 };
	struct calibration cost = { 0 };

	fixture_start_with(&bench->fixture, "probe_cpu", calls, turns);
	rig_open(&bench->rig, &quiet);
	assert_ok(slots_open(loader_fds(bench->rig.loader), &bench->slots));
	assert_ok(calibrate_run(bench->rig.loader, &cost));
	for (int i = 0; i < POINTS; i++) {
		struct abi_probe plan = plans[i];
		unsigned place = i == END ? PLAN_TRAMPOLINE : PLAN_EMULATED;

		plan.cost_ns = calibration_hit_ns(&cost, place, &plan);
		assert_ok(slots_put(bench->slots, &plan, &bench->slot[i]));
	}
	rig_target(&bench->rig, bench->fixture.pid);
	bench->lines = bench->fixture.lines.count;
}

static void bench_attach(struct bench *bench)
{
	CLEANUP(close) int fd = open_exe(bench->fixture.pid);

	for (int i = POINTS; i-- > 0;) {
		struct attach_point point = { .offset = offset_of(&bench->fixture,
								  "handle"),
					      .slot = bench->slot[i] };
		struct attach_request request = {
			.file_fd = fd, .is_return = i == END, .points = &point, .count = 1
		};

		assert_ok(attach_open(bench->rig.loader, &request, &bench->links[i]));
	}
}

static void bench_detach(struct bench *bench)
{
	for (int i = 0; i < POINTS; i++)
		attach_close(take(bench->links[i]));
}

static void bench_close(struct bench *bench)
{
	bench_detach(bench);
	slots_free(bench->slots);
	fixture_end(&bench->fixture);
	rig_close(&bench->rig);
	vec_fini(&bench->calls);
}

/* A block of calls; what it said becomes calls. */
static void bench_block(struct bench *bench)
{
	assert_null(file_write_all(bench->fixture.in, "x", 1));
	fixture_read(&bench->fixture, "block");
	for (; bench->lines < bench->fixture.lines.count; bench->lines++) {
		struct call call = { 0 };

		if (sscanf(bench->fixture.lines.data[bench->lines],
			   "call %lu %lu %lu %lu", &call.number, &call.truth_ns,
			   &call.around_ns, &call.twin_ns) == 4)
			vec_push(&bench->calls, call);
	}
}

/* After rig_finish(): the ends of requests to their calls. */
static size_t bench_match(struct bench *bench)
{
	size_t matched = 0;

	vec_each(&bench->rig.events, event) {
		const struct abi_span *span = &event->span;

		if (event->head.kind != ABI_SPAN || span->verb != ABI_REQUEST_END ||
		    span->key >= bench->calls.count)
			continue;
		struct call *call = &bench->calls.data[span->key];

		assert_int_equal(call->number, span->key);
		call->cpu_ns = span->cpu_ns;
		call->probe_ns = span->probe_ns;
		matched++;
	}
	return matched;
}

static double own(const struct call *call)
{
	return (double)call->cpu_ns - (double)call->probe_ns;
}

/* Flips the CPU of @pid every few ms until it is killed. */
static pid_t flip(pid_t pid)
{
	pid_t child = fork();

	if (child)
		return child;
	prctl(PR_SET_PDEATHSIG, SIGKILL);
	for (unsigned n = 0;; n++) {
		cpu_set_t set;

		CPU_ZERO(&set);
		CPU_SET(n % (unsigned)sysconf(_SC_NPROCESSORS_ONLN), &set);
		sched_setaffinity(pid, sizeof(set), &set);
		usleep(3000);
	}
}

/* What a clock says that is read a moment earlier or later. */
#define SLACK_NS 1000

struct errors {
	double truth, around, with, own;
	size_t long_ones, within, bounded;
};

static struct errors errors_of(const struct bench *bench)
{
	struct errors sum = { 0 };

	vec_each(&bench->calls, call) {
		double error = own(call) / (double)call->truth_ns - 1;

		sum.truth += (double)call->truth_ns;
		sum.around += (double)call->around_ns;
		sum.with += (double)call->cpu_ns;
		sum.own += own(call);
		sum.bounded += call->cpu_ns + SLACK_NS >= call->truth_ns &&
			       call->cpu_ns <= call->around_ns + SLACK_NS;
		if (call->truth_ns < SHORT_NS)
			continue;
		sum.long_ones++;
		sum.within += error > -0.05 && error < 0.05;
	}
	return sum;
}

static void cpu_is_exact_under_migration_and_contention(void **state)
{
	struct bench bench = { 0 };

	(void)state;
	bench_open(&bench, "2000", "80000");
	bench_attach(&bench);
	pid_t neighbours[3] = { spin(), spin(), flip(bench.fixture.pid) };

	bench_block(&bench);
	for (int i = 0; i < 3; i++)
		spin_end(neighbours[i]);
	rig_finish(&bench.rig);
	assert_int_equal(bench_match(&bench), 2000);
	struct errors sum = errors_of(&bench);

	printf("# %.0f ms inside, %+.2f%% around, %+.2f%% by us, %+.2f%% corrected; "
	       "%zu bounded; %zu of %zu of 50 us and more within 5%%\n",
	       sum.truth / 1e6, 100 * (sum.around / sum.truth - 1),
	       100 * (sum.with / sum.truth - 1), 100 * (sum.own / sum.truth - 1),
	       sum.bounded, sum.within, sum.long_ones);
	/* The two clocks cannot be read at the same moment; but in the right order. */
	assert_true(sum.with >= sum.truth && sum.with <= sum.around);
	assert_true(sum.bounded >= 1980);
	/* A hit costs more than was calibrated while neighbours use the caches. */
	assert_true(sum.own > 0.95 * sum.truth && sum.own < 1.05 * sum.truth);
	bench_close(&bench);
}

static int by_size(const void *left, const void *right)
{
	double a = *(const double *)left, b = *(const double *)right;

	return a < b ? -1 : a > b;
}

enum reading { TWIN, WITH, OWN };

/* Of the calls with this remainder of four: they do the same. */
static double median(const struct bench *bench, unsigned rest, enum reading reading)
{
	CLEANUP(free) double *list = mem_array(bench->calls.count, sizeof(*list));
	size_t count = 0;

	vec_each(&bench->calls, call) {
		if (call->number % 4 != rest)
			continue;
		list[count++] = reading == TWIN	  ? (double)call->twin_ns
				: reading == WITH ? (double)call->cpu_ns
						  : own(call);
	}
	assert_true(count > 100);
	qsort(list, count, sizeof(*list), by_size);
	return list[count / 2];
}

static void without_its_cost_a_probed_call_is_like_one_without_probes(void **state)
{
	struct bench bench = { 0 };

	(void)state;
	bench_open(&bench, "2000", "60000");
	bench_attach(&bench);
	bench_block(&bench);
	rig_finish(&bench.rig);
	assert_int_equal(bench_match(&bench), 2000);
	for (unsigned rest = 0; rest < 4; rest++) {
		double bare = median(&bench, rest, TWIN);
		double with = median(&bench, rest, WITH) - bare;
		double ours = median(&bench, rest, OWN) - bare;

		printf("# %.0f us without probes: %+.2f%% with, %+.2f%% corrected\n",
		       bare / 1e3, 100 * with / bare, 100 * ours / bare);
		/* Its own readings of the clock are on neither side. */
		double slack = 0.05 * bare + 2 * SLACK_NS;

		if (bare >= SHORT_NS)
			assert_true(ours > -slack && ours < slack);
	}
	bench_close(&bench);
}

int main(void)
{
	static const struct CMUnitTest tests[] = {
		cmocka_unit_test(cpu_is_exact_under_migration_and_contention),
		cmocka_unit_test(
			without_its_cost_a_probed_call_is_like_one_without_probes),
	};

	if (rig_skips("live_cpu"))
		return 0;
	return cmocka_run_group_tests(tests, NULL, NULL);
}
