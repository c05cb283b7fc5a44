// SPDX-License-Identifier: Apache-2.0
/*
 * Streams through live/ to text, compared with the text written beside them, byte for
 * byte. X.stream and X.golden lie in tests/replay; some streams are made by scenes.h and
 * must also come out as they were written once, the others were recorded.
 *
 *	replay			compare all, TAP on standard output
 *	replay FILE		print what FILE gives
 *	replay --make		write the made-up streams
 *	replay --update		write every .golden anew: look at the difference!
 *	replay --strip IN OUT PID	a recording without the name of its machine and without
 *				other processes
 */
#include <errno.h>
#include <fcntl.h>
#include <glob.h>
#include <inttypes.h>
#include <stdio.h>
#include <unistd.h>

#include "core/file.h"
#include "core/vec.h"
#include "live/live.h"
#include "replay/scenes.h"

#define FOLDER	  "tests/replay/"
#define S	  ((uint64_t)1000000000)
#define MAX_BYTES (8u << 20)

struct printer {
	struct sink sink;
	struct str text;
	uint64_t charged, lost; /* access samples, for the books to balance */
};

static void put_process(struct str *out, const struct fact_process *p)
{
	str_printf(out,
		   "process %016" PRIx64 " parent %016" PRIx64
		   " pid %u uid %u start %" PRIu64 " end %" PRIu64 " exe %" PRIx64
		   " cgroup %" PRIu64 " comm %s path %s\n",
		   p->process_id, p->parent_id, p->pid, p->uid, p->start_ns, p->end_ns,
		   p->exe_module_id, p->cgroup_id, p->comm, p->exe);
}

static void put_access(struct str *out, const struct fact_access *a)
{
	str_printf(out,
		   "access %" PRIu64 " process %016" PRIx64 " module %" PRIx64
		   " va %" PRIx64 " %s samples %" PRIu64 " period %" PRIu64
		   " loads %" PRIu64 " stores %" PRIu64 " weight %" PRIu64 "\n",
		   a->bucket_ns / S, a->process_id, a->module_id, a->va,
		   source_name(a->source), a->samples, a->period, a->loads, a->stores,
		   a->weight_cycles);
}

static void put_stack(struct str *out, const struct fact_stack *s)
{
	str_printf(out, "stack %016" PRIx64 " kernel %u complete %d:", s->stack_id,
		   s->kernel_count, s->complete);
	for (size_t i = 0; i < s->count; i++)
		str_printf(out, " %" PRIx64 "+%" PRIx64, s->frames[i].module_id,
			   s->frames[i].va);
	str_add(out, "\n");
}

static void put_fact(struct sink *sink, const struct fact *fact)
{
	struct printer *printer = (struct printer *)sink;
	struct str *out = &printer->text;

	switch (fact->kind) {
	case FACT_PROCESS:
		put_process(out, &fact->process);
		break;
	case FACT_MODULE:
		str_printf(out, "module %" PRIx64 " kind %d path %s\n",
			   fact->module.module_id, (int)fact->module.kind,
			   fact->module.path);
		break;
	case FACT_ACCESS:
		printer->charged += fact->access.samples;
		put_access(out, &fact->access);
		break;
	case FACT_STACK:
		put_stack(out, &fact->stack);
		break;
	case FACT_TICK:
		str_printf(out,
			   "tick %" PRIu64 " process %016" PRIx64 " stack %016" PRIx64
			   " samples %" PRIu64 " cpu %" PRIu64 "\n",
			   fact->tick.bucket_ns / S, fact->tick.process_id,
			   fact->tick.stack_id, fact->tick.samples, fact->tick.cpu_ns);
		break;
	case FACT_LOSS:
		if (fact->loss.kind == ABI_ACCESS && fact->loss.reason >= LOSS_NO_PROCESS)
			printer->lost += fact->loss.lost;
		str_printf(out,
			   "loss %" PRIu64 " %s %s lost %" PRIu64 " seen %" PRIu64 "\n",
			   fact->loss.bucket_ns / S, loss_kind_name(fact->loss.kind),
			   loss_reason_name(fact->loss.reason), fact->loss.lost,
			   fact->loss.seen);
		break;
	default:
		str_printf(out, "fact of kind %d\n", (int)fact->kind);
	}
}

/* Which records a replay leaves out: number @phase of every @every. 0: none. */
struct dropping {
	uint64_t every, phase;
};

struct result {
	struct str text;
	uint64_t records, fed, charged, lost;
};

static struct err *open_stream(const char *path, struct stream_meta *ret_meta,
			       struct stream_reader **ret_reader)
{
	FILE *file = fopen(path, "rbe");

	if (!file)
		return err_errno(errno, "open %s", path);
	return err_wrap(stream_open(file, ret_meta, ret_reader), "%s", path);
}

static struct err *feed_all(struct live *live, struct stream_reader *reader,
			    struct dropping dropping, struct result *result)
{
	uint64_t next_ns = 0, last_ns = 0;
	struct event event;
	bool end = false;

	for (;;) {
		TRY(stream_next(reader, &event, &end));
		if (end)
			break;
		result->records++;
		if (dropping.every && result->records % dropping.every == dropping.phase)
			continue;
		result->fed += event.head.kind == ABI_ACCESS;
		live_feed(live, &event);
		if (event.head.time_ns > last_ns)
			last_ns = event.head.time_ns;
		if (!next_ns)
			next_ns = last_ns - last_ns % S + S;
		for (; next_ns <= last_ns; next_ns += S)
			live_flush(live, next_ns);
	}
	for (int i = 0; i < 10; i++, next_ns += S)
		live_flush(live, next_ns);
	live_flush(live, UINT64_MAX);
	return NULL;
}

static struct err *replay(const char *path, struct dropping dropping,
			  struct result *ret_result)
{
	CLEANUP(stream_reader_free) struct stream_reader *reader = NULL;
	struct printer printer = { .sink.put = put_fact };
	struct result result = { 0 };
	struct stream_meta meta;
	struct live_ops none = { 0 };

	TRY(open_stream(path, &meta, &reader));
	struct live_config config = { .run_id = 1,
				      .boot_id = hash_text(meta.boot_id, 0),
				      .realtime_offset_ns = meta.realtime_offset_ns };
	CLEANUP(live_free)
	struct live *live = live_new(&config, &printer.sink, &none, NULL);
	struct err *err = feed_all(live, reader, dropping, &result);

	result.text = printer.text;
	result.charged = printer.charged;
	result.lost = printer.lost;
	*ret_result = result;
	return err_wrap(err, "%s", path);
}

/* Making streams. */

static const struct {
	const char *name;
	void (*play)(struct scene *scene);
} scenes[] = {
	{ "lives", scene_lives },
	{ "troubles", scene_troubles },
};

static struct err *make_stream(const char *path, void (*play)(struct scene *scene))
{
	struct stream_meta meta = { .start_ns = 100 * S,
				    .realtime_offset_ns = 1000 * (int64_t)S,
				    .boot_id = "b",
				    .host = "h",
				    .kernel = "6.1",
				    .version = "0",
				    .target = "all",
				    .sources = "clock" };
	struct scene scene = { .now_ns = 100 * S };
	int fd = open(path, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_errno(errno, "create %s", path);
	TRY(stream_create(fd, &meta, &scene.writer));
	play(&scene);
	struct err *err = stream_flush(scene.writer);

	stream_close(scene.writer);
	return err;
}

static struct err *strip(const char *from, const char *to, uint32_t pid)
{
	CLEANUP(stream_reader_free) struct stream_reader *reader = NULL;
	CLEANUP(stream_close) struct stream_writer *writer = NULL;
	struct stream_meta meta;
	struct event event;
	bool end = false;
	size_t bytes;

	TRY(open_stream(from, &meta, &reader));
	memset(meta.host, 0, sizeof(meta.host));
	memset(meta.boot_id, 0, sizeof(meta.boot_id));
	memset(meta.target, 0, sizeof(meta.target));
	memset(meta.kernel, 0, sizeof(meta.kernel));
	int fd = open(to, O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC, 0644);

	if (fd < 0)
		return err_errno(errno, "create %s", to);
	TRY(stream_create(fd, &meta, &writer));
	for (;;) {
		TRY(stream_next(reader, &event, &end));
		if (end)
			break;
		const void *data = stream_bytes(reader, &bytes);

		if (event.head.pid && event.head.pid != pid)
			continue;
		TRY(stream_write(writer, data, bytes));
	}
	return stream_flush(writer);
}

/* Tests. */

static int failed;

static void tell(bool good, const char *what, const char *name, const char *why)
{
	printf("%s - %s: %s\n", good ? "ok" : "not ok", name, what);
	if (!good) {
		printf("# %s\n", why);
		failed++;
	}
}

static char *beside(const char *path, const char *ending)
{
	return mem_printf("%.*s%s", (int)(strlen(path) - strlen(".stream")), path,
			  ending);
}

static void check_golden(const char *path, bool update)
{
	CLEANUP(free) char *golden_path = beside(path, ".golden");
	CLEANUP(free) char *golden = NULL;
	struct result result = { 0 };
	struct err *err = replay(path, (struct dropping){ 0 }, &result);

	if (!err && update)
		err = file_replace(golden_path, str_text(&result.text),
				   result.text.length, 0644);
	if (!err)
		err = file_read(golden_path, MAX_BYTES, &golden, NULL);
	bool same = !err && !strcmp(golden, str_text(&result.text));

	tell(same, "gives the report written beside it", path,
	     err ? err->text : "compare replay FILE with the .golden file");
	tell(result.fed == result.charged + result.lost,
	     "every access sample is charged or counted as lost", path, "they are not");
	err_free(err);
	str_fini(&result.text);
}

/* Any record may be missing: nothing breaks, and the books balance. */
static void check_holes(const char *path)
{
	struct result whole = { 0 };
	uint64_t tried = 0, bad = 0;
	struct err *err = replay(path, (struct dropping){ 0 }, &whole);
	uint64_t step = whole.records / 200 + 1;

	str_fini(&whole.text);
	for (uint64_t i = 0; !err && i < whole.records; i += step, tried++) {
		struct result holed = { 0 };

		err = replay(path, (struct dropping){ whole.records + 1, i + 1 }, &holed);
		bad += holed.fed != holed.charged + holed.lost;
		str_fini(&holed.text);
	}
	for (uint64_t phase = 0; !err && phase < 3; phase++, tried++) {
		struct result third = { 0 };

		err = replay(path, (struct dropping){ 3, phase }, &third);
		bad += third.fed != third.charged + third.lost;
		str_fini(&third.text);
	}
	tell(!err && !bad && tried > 3, "balances with any record missing", path,
	     err ? err->text : "a sample went uncounted");
	err_free(err);
}

static void check_scene(size_t i)
{
	CLEANUP(free) char *kept = mem_printf(FOLDER "%s.stream", scenes[i].name);
	char path[] = "/tmp/assay-scene-XXXXXX";
	CLEANUP(free) char *made_bytes = NULL;
	CLEANUP(free) char *kept_bytes = NULL;
	size_t made = 0, old = 0;
	CLEANUP(close) int fd = mkstemp(path);
	struct err *err = fd < 0 ? err_errno(errno, "create %s", path)
				 : make_stream(path, scenes[i].play);

	if (!err)
		err = file_read(path, MAX_BYTES, &made_bytes, &made);
	if (!err)
		err = file_read(kept, MAX_BYTES, &kept_bytes, &old);
	unlink(path);
	tell(!err && made == old && !memcmp(made_bytes, kept_bytes, made),
	     "is still written with the same bytes", kept,
	     err ? err->text : "the record format has changed: --make, --update, bump?");
	err_free(err);
}

static int check_all(bool update)
{
	glob_t found;

	for (size_t i = 0; !update && i < sizeof(scenes) / sizeof(*scenes); i++)
		check_scene(i);
	if (glob(FOLDER "*.stream", 0, NULL, &found)) {
		printf("not ok - no streams in " FOLDER "\n");
		return 1;
	}
	for (size_t i = 0; i < found.gl_pathc; i++) {
		check_golden(found.gl_pathv[i], update);
		if (!update)
			check_holes(found.gl_pathv[i]);
	}
	globfree(&found);
	return failed != 0;
}

static int fail(struct err *err)
{
	if (!err)
		return 0;
	fprintf(stderr, "replay: %s\n", err->text);
	err_free(err);
	return 1;
}

int main(int argc, char **argv)
{
	struct result result = { 0 };

	if (argc == 1)
		return check_all(false);
	if (!strcmp(argv[1], "--update"))
		return check_all(true);
	if (!strcmp(argv[1], "--strip") && argc == 5)
		return fail(
			strip(argv[2], argv[3], (uint32_t)strtoul(argv[4], NULL, 10)));
	if (!strcmp(argv[1], "--make")) {
		for (size_t i = 0; i < sizeof(scenes) / sizeof(*scenes); i++) {
			CLEANUP(free)
			char *path = mem_printf(FOLDER "%s.stream", scenes[i].name);

			if (fail(make_stream(path, scenes[i].play)))
				return 1;
		}
		return 0;
	}
	int status = fail(replay(argv[1], (struct dropping){ 0 }, &result));

	fputs(str_text(&result.text), stdout);
	str_fini(&result.text);
	return status;
}
