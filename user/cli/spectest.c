// SPDX-License-Identifier: Apache-2.0
/*
 * A session in small, without daemon and database: load, attach, drain, detach. All in
 * one privileged process; foreign files are still read by the worker only.
 */
#include "cli/spectest.h"

#include <errno.h>
#include <fcntl.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/stop.h"
#include "core/file.h"
#include "core/mem.h"
#include "event/event.h"
#include "probe/attach.h"
#include "probe/calibrate.h"
#include "probe/loader.h"
#include "probe/ring.h"
#include "probe/slots.h"

#define DRAIN_US	50000
#define MAX_CHILDREN	65536 /* bytes of one list in /proc */
#define MAX_DESCENDANTS 4096

/* One point, in place. */
struct tested {
	const struct plan_point *point;
	const struct plan_probe *probe;
	uint32_t slot;
};

struct tester {
	struct cli *cli;
	struct loader *loader;
	struct ring *ring;
	struct slots *slots;
	struct calibration cost;
	VEC(struct specs_result) results;
	VEC(struct tested) points;
	VEC(struct attachment *) attachments;
	struct table *samples;
	uint64_t events;
	size_t descendants;
};

static void tester_fini(struct tester *tester)
{
	vec_each(&tester->attachments, attachment)
		attach_close(*attachment);
	vec_fini(&tester->attachments);
	slots_free(tester->slots);
	ring_free(tester->ring);
	loader_close(tester->loader);
	vec_each(&tester->results, result)
		specs_result_fini(result);
	vec_fini(&tester->results);
	vec_fini(&tester->points);
	table_free(tester->samples);
}

static inline void cleanup_tester_fini(struct tester *tester)
{
	tester_fini(tester);
}

static uint32_t hit_ns(const struct tester *tester, const struct plan_point *point)
{
	return calibration_hit_ns(&tester->cost, point->cost, &point->abi);
}

static struct err *attach_some(struct tester *tester, const struct plan *plan, int fd,
			       bool is_return)
{
	VEC(struct attach_point) points = { 0 };
	struct attachment *attachment = NULL;
	struct err *err = NULL;

	for (size_t i = 0; i < plan->point_count && !err; i++) {
		const struct plan_point *point = &plan->points[i];
		struct abi_probe abi = point->abi;
		uint32_t slot;

		if (point->is_uretprobe != is_return)
			continue;
		abi.cost_ns = hit_ns(tester, point);
		err = slots_put(tester->slots, &abi, &slot);
		if (err)
			break;
		vec_push(&points,
			 ((struct attach_point){ .offset = point->off,
						 .semaphore_off = point->semaphore_off,
						 .slot = slot }));
		vec_push(&tester->points,
			 ((struct tested){ point, &plan->probes[point->probe], slot }));
	}
	if (!err && points.count)
		err = attach_open(tester->loader,
				  &(struct attach_request){ .file_fd = fd,
							    .is_return = is_return,
							    .points = points.data,
							    .count = points.count },
				  &attachment);
	if (attachment)
		vec_push(&tester->attachments, attachment);
	vec_fini(&points);
	return err;
}

static struct err *attach_file(struct tester *tester, const struct specs_result *result,
			       const char *open_path)
{
	const struct plan *plan = result->tries.data[result->chosen].plan;
	CLEANUP(close) int fd = open(open_path, O_RDONLY | O_CLOEXEC);

	if (fd < 0)
		return err_errno(errno, "%s", open_path);
	TRY(attach_some(tester, plan, fd, false));
	return attach_some(tester, plan, fd, true);
}

static struct err *resolve_all(struct tester *tester, const struct spec *spec,
			       const char *pid)
{
	CLEANUP(job_free) struct job_client *worker = NULL;
	CLEANUP(specs_fini) struct specs files = { 0 };

	TRY(job_spawn(JOB_RESOLVE, NULL, &worker));
	TRY(specs_mapped(pid, spec, &files));
	vec_reserve(&tester->results, SPECTEST_MAX_FILES); /* plans stay where they are */
	vec_each(&files.paths, path) {
		CLEANUP(free)
		char *open_path = mem_printf("/proc/%s/root%s", pid, *path);
		struct specs_result result;
		struct err *err = specs_resolve(worker, spec, *path, open_path, &result);

		if (!err && result.chosen >= 0 &&
		    tester->results.count < SPECTEST_MAX_FILES)
			vec_push(&tester->results, result);
		else
			specs_result_fini(&result);
		TRY(err);
	}
	if (!tester->results.count)
		return err_new(ERR_NOT_FOUND,
			       "spec %s fits no file of process %s; see assay spec check",
			       spec->name, pid);
	return NULL;
}

/* Children that are there already; later ones join by themselves. */
static struct err *add_family(struct tester *tester, uint32_t pid)
{
	CLEANUP(free)
	char *path = mem_printf("/proc/%u/task/%u/children", pid, pid);
	CLEANUP(free) char *text = NULL;
	struct err *err = file_read(path, MAX_CHILDREN, &text, NULL);
	char *end;

	TRY(ring_add_pid(tester->ring, pid));
	if (err) { /* a kernel without such lists, or it is gone */
		err_free(err);
		return NULL;
	}
	for (char *at = text; tester->descendants < MAX_DESCENDANTS; at = end) {
		unsigned long child = strtoul(at, &end, 10);

		if (end == at)
			break;
		tester->descendants++;
		TRY(add_family(tester, (uint32_t)child));
	}
	return NULL;
}

static const struct tested *find_point(const struct tester *tester, uint32_t slot)
{
	for (size_t i = 0; i < tester->points.count; i++)
		if (tester->points.data[i].slot == slot)
			return &tester->points.data[i];
	return NULL;
}

static void take_record(void *ctx, const void *data, size_t bytes)
{
	struct tester *tester = ctx;
	struct event event;
	struct err *err = event_decode(data, bytes, &event);
	bool is_span = !err && event.head.kind == ABI_SPAN;

	if (err || (!is_span && event.head.kind != ABI_RESOURCE) ||
	    (!is_span && event.resource.slot == ABI_CALIBRATE_SLOT)) {
		err_free(err);
		return;
	}
	tester->events++;
	const struct tested *tested =
		find_point(tester, is_span ? event.span.slot : event.resource.slot);
	uint32_t length = is_span ? event.span.name_bytes : event.resource.name_bytes;

	if (!tested || table_rows(tester->samples) >= SPECTEST_SAMPLES)
		return;
	CLEANUP(free) char *name = mem_printf("%.*s", (int)length, event.name);

	table_row(tester->samples);
	table_text(tester->samples, 0, tested->probe->spec->id);
	table_text(tester->samples, 1,
		   spec_verb_text(is_span ? event.span.verb : event.resource.verb));
	table_number(tester->samples, 2, event.head.tid);
	table_number(tester->samples, 3,
		     (int64_t)(is_span ? event.span.key : event.resource.object));
	table_number(tester->samples, 4, (int64_t)event.head.request_id);
	table_text(tester->samples, 5, name);
}

static struct err *watch(struct tester *tester, uint64_t for_ns, uint64_t *ret_ns)
{
	uint64_t begin_ns = clock_ns();

	while (!stop_flag && clock_ns() - begin_ns < for_ns) {
		TRY(ring_drain(tester->ring, take_record, tester, NULL));
		usleep(DRAIN_US);
	}
	*ret_ns = clock_ns() - begin_ns;
	return ring_drain(tester->ring, take_record, tester, NULL);
}

static struct err *put_hits(struct tester *tester, uint64_t ns)
{
	static const struct column columns[] = {
		{ "probe", "PROBE", COLUMN_TEXT, 0 },
		{ "at", "AT", COLUMN_TEXT, 0 },
		{ "function", "FUNCTION", COLUMN_TEXT, COLUMN_CUT },
		{ "hits", "HITS", COLUMN_COUNT, 0 },
		{ "hits_per_s", "PER SECOND", COLUMN_COUNT, 0 },
		{ "hit_ns", "A HIT", COLUMN_NS, 0 },
		{ "share_of_cpu", "OF ONE CPU", COLUMN_SHARE, 0 },
		{ "skipped", "SKIPPED", COLUMN_COUNT, COLUMN_IF_ANY },
		{ "unknown", "UNREADABLE", COLUMN_COUNT, COLUMN_IF_ANY },
		{ "dropped", "DROPPED", COLUMN_COUNT, COLUMN_IF_ANY },
	};
	CLEANUP(table_free) struct table *table = table_new(columns, 10);
	double all = 0, seconds = (double)ns / 1e9;

	vec_each(&tester->points, tested) {
		struct abi_probe_count count = slots_count(tester->slots, tested->slot);
		double share =
			(double)count.hits * hit_ns(tester, tested->point) / (double)ns;

		all += share;
		table_row(table);
		table_text(table, 0, tested->probe->spec->id);
		table_text(table, 1,
			   tested->point->abi.flags & ABI_PROBE_RETURN ? "return"
								       : "entry");
		table_text(table, 2, tested->point->function);
		table_number(table, 3, (int64_t)count.hits);
		table_number(table, 4, (int64_t)((double)count.hits / seconds));
		table_number(table, 5, hit_ns(tester, tested->point));
		table_real(table, 6, share);
		table_number(table, 7, (int64_t)count.skipped);
		table_number(table, 8, (int64_t)count.unknown);
		table_number(table, 9, (int64_t)count.dropped);
	}
	table_settle(table, COLUMN_NUMBER);
	TRY(output_table(&tester->cli->out, "hits", NULL, table));
	output_value(&tester->cli->out, "share_of_cpu", json_real(all));
	output_value(&tester->cli->out, "seconds", json_real(seconds));
	output_value(&tester->cli->out, "events",
		     json_integer((json_int_t)tester->events));
	output_note(&tester->cli->out,
		    "%.1f s, %llu events; all probes together cost %.2f%% of one CPU",
		    seconds, (unsigned long long)tester->events, all * 100);
	return NULL;
}

static struct err *prepare(struct tester *tester, const struct spec *spec,
			   const char *pid)
{
	const struct probe_config config = { .no_access = true, .no_ticks = true };
	const struct probe_fds *fds;

	TRY(resolve_all(tester, spec, pid));
	TRY(loader_open(&config, &tester->loader));
	fds = loader_fds(tester->loader);
	TRY(ring_open(fds, &tester->ring));
	TRY(slots_open(fds, &tester->slots));
	TRY(calibrate_run(tester->loader, &tester->cost));
	TRY(add_family(tester, (uint32_t)strtoul(pid, NULL, 10)));
	TRY(ring_set_filter(tester->ring, ABI_FILTER_PIDS));
	vec_each(&tester->results, result) {
		CLEANUP(free)
		char *open_path = mem_printf("/proc/%s/root%s", pid, result->path);

		TRY(attach_file(tester, result, open_path));
	}
	return NULL;
}

struct err *spectest_run(struct cli *cli, const struct spec *spec, const char *pid,
			 uint64_t for_ns)
{
	static const struct column columns[] = {
		{ "probe", "PROBE", COLUMN_TEXT, 0 },
		{ "verb", "VERB", COLUMN_TEXT, 0 },
		{ "tid", "THREAD", COLUMN_NUMBER, 0 },
		{ "key", "KEY OR OBJECT", COLUMN_HEX, 0 },
		{ "request_id", "REQUEST", COLUMN_HEX, 0 },
		{ "name", "NAME", COLUMN_TEXT, COLUMN_CUT },
	};
	CLEANUP(tester_fini) struct tester tester = { .cli = cli };
	uint64_t ns;

	tester.samples = table_new(columns, 6);
	TRY(prepare(&tester, spec, pid));
	TRY(watch(&tester, for_ns, &ns));
	TRY(put_hits(&tester, ns));
	return output_table(&cli->out, "samples", "first events", tester.samples);
}
