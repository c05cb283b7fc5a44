// SPDX-License-Identifier: Apache-2.0
/*
 * The kernel as witness. tests/fixture/oracle.c touches fields of fresh pages; the page
 * fault's software event gives instruction and data address exactly, and a hardware
 * breakpoint gives the address and the instruction *after* the access, just as a clock
 * sample does. The analysis must name the field that stands beside the source line, and
 * its offset must be the distance of the data address from the object.
 */
#include <errno.h>
#include <fcntl.h>
#include <linux/hw_breakpoint.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <sys/syscall.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/vec.h"
#include "types/recover.h"

#define SOURCE	     "tests/fixture/oracle.c"
#define RING_PAGES   64
#define MAX_OBJECTS  8
#define OBJECT_BYTES 4096
/* Of the fixture's 11 faults; raise the first and lower the second as analysis improves. */
#define MIN_RIGHT     8
#define MAX_ABSTAINED 3

struct object {
	uint64_t addr;
	char type[32];
	uint64_t stride;
};

struct sample {
	uint64_t ip, addr;
};

struct run {
	const char *program;
	pid_t pid;
	FILE *out;
	int in;
	uint64_t base;
	struct object objects[MAX_OBJECTS];
	size_t object_count;
	VEC(struct sample) samples;
};

static int number;

static void result(bool good, const char *program, const char *what, const char *detail)
{
	printf("%s %d - %s: %s%s%s\n", good ? "ok" : "not ok", ++number,
	       strstr(program, "clang") ? "clang" : "gcc", what, *detail ? ": " : "",
	       detail);
}

/* --- the fixture --- */

static bool run_start(struct run *run)
{
	int in[2], out[2];
	char line[256];

	if (pipe2(in, O_CLOEXEC) || pipe2(out, O_CLOEXEC))
		return false;
	run->pid = fork();
	if (!run->pid) {
		dup2(in[0], STDIN_FILENO);
		dup2(out[1], STDOUT_FILENO);
		execl(run->program, run->program, (char *)NULL);
		_exit(127);
	}
	close(in[0]);
	close(out[1]);
	run->in = in[1];
	run->out = fdopen(out[0], "r");
	while (fgets(line, sizeof(line), run->out)) {
		struct object *object = &run->objects[run->object_count];
		unsigned long addr, stride;

		if (!strcmp(line, "ready\n"))
			return run->base && run->object_count;
		if (sscanf(line, "base %lx", &addr) == 1)
			run->base = addr;
		if (run->object_count < MAX_OBJECTS &&
		    sscanf(line, "object %lx %31s %lu", &addr, object->type, &stride) ==
			    3) {
			object->addr = addr;
			object->stride = stride;
			run->object_count++;
		}
	}
	return false;
}

static void run_go(struct run *run)
{
	int status;

	err_free(file_write_all(run->in, "g", 1));
	close(run->in);
	fclose(run->out);
	waitpid(run->pid, &status, 0);
}

/* --- the kernel's word --- */

static int event_open(pid_t pid, struct perf_event_attr *attr)
{
	attr->size = sizeof(*attr);
	attr->sample_period = 1;
	attr->sample_type = PERF_SAMPLE_IP | PERF_SAMPLE_ADDR;
	attr->exclude_kernel = 1;
	attr->exclude_hv = 1;
	return (int)syscall(SYS_perf_event_open, attr, pid, -1, -1, PERF_FLAG_FD_CLOEXEC);
}

static const struct object *object_at(const struct run *run, uint64_t addr)
{
	for (size_t i = 0; i < run->object_count; i++)
		if (addr - run->objects[i].addr < OBJECT_BYTES)
			return &run->objects[i];
	return NULL;
}

static void ring_read(struct run *run, struct perf_event_mmap_page *page)
{
	const char *data = (const char *)page + sysconf(_SC_PAGESIZE);
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);

	for (uint64_t at = 0; at < head;) {
		struct {
			struct perf_event_header header;
			struct sample sample;
		} record = { 0 };

		memcpy(&record.header, data + at, sizeof(record.header));
		if (!record.header.size)
			return;
		if (record.header.type == PERF_RECORD_SAMPLE) {
			memcpy(&record, data + at, sizeof(record));
			if (object_at(run, record.sample.addr))
				vec_push(&run->samples, record.sample);
		}
		at += record.header.size;
	}
}

static struct perf_event_mmap_page *ring_map(int fd)
{
	size_t bytes = (1 + RING_PAGES) * (size_t)sysconf(_SC_PAGESIZE);
	void *page = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	return page == MAP_FAILED ? NULL : page;
}

/* --- what the source says --- */

/* Text of the marked line at @va, NULL when there is no mark. The answer of addr2line. */
static char *line_at(const char *program, uint64_t va)
{
	CLEANUP(free)
	char *command =
		mem_printf("addr2line -e %s 0x%llx", program, (unsigned long long)va);
	FILE *pipe = popen(command, "r"), *source;
	char text[512] = "", *colon;

	if (!pipe)
		return NULL;
	if (!fgets(text, sizeof(text), pipe))
		text[0] = 0;
	pclose(pipe);
	colon = strrchr(text, ':');
	long wanted = colon ? strtol(colon + 1, NULL, 10) : 0;

	source = wanted > 0 ? fopen(SOURCE, "r") : NULL;
	if (!source)
		return NULL;
	for (long line = 1; fgets(text, sizeof(text), source); line++) {
		char *mark = line == wanted ? strstr(text, "expect: ") : NULL;

		if (!mark)
			continue;
		mark += strlen("expect: ");
		mark[strcspn(mark, "*")] = 0;
		for (size_t n = strlen(mark); n && mark[n - 1] == ' '; n--)
			mark[n - 1] = 0;
		fclose(source);
		return mem_strdup(mark);
	}
	fclose(source);
	return NULL;
}

/* "lines[2].qty" and "lines[].qty" are the same field. */
static char *without_indices(const char *type, const char *path)
{
	char *text = mem_printf("%s.%s", type, path), *to = text;

	for (const char *from = text; *from; from++) {
		*to++ = *from;
		if (*from == '[')
			from += strspn(from + 1, "0123456789");
	}
	*to = 0;
	return text;
}

static bool offset_fits(const struct object *object, uint64_t addr,
			const struct answer *answer)
{
	int64_t distance = (int64_t)(addr - object->addr) - answer->offset;

	if (strcmp(answer->type + strcspn(answer->type, " ") + 1, object->type))
		return false;
	return distance == 0 ||
	       (object->stride && distance % (int64_t)object->stride == 0);
}

/* --- the comparison --- */

struct tally {
	int right, wrong, abstained, unmarked;
};

static void judge(const struct run *run, struct recover *recover,
		  const struct sample *sample, bool skid, struct tally *tally)
{
	struct answer answer;
	uint64_t va = sample->ip - run->base;

	recover_at(recover, va, skid, &answer);

	uint64_t insn_va = answer.insn_va ? answer.insn_va : va;
	CLEANUP(free) char *expected = line_at(run->program, insn_va);
	CLEANUP(free) char *got = without_indices(answer.type, answer.path);

	if (!expected) {
		printf("# 0x%llx: no marked line, answered %s\n", (unsigned long long)va,
		       got);
		tally->unmarked++;
		return;
	}
	if (!verdict_is_claim(answer.verdict)) {
		printf("# 0x%llx: %s, expected %s\n", (unsigned long long)va,
		       verdict_name(answer.verdict), expected);
		tally->abstained++;
		return;
	}
	bool right = !strcmp(got, expected) &&
		     offset_fits(object_at(run, sample->addr), sample->addr, &answer);

	if (!right)
		printf("# 0x%llx: %s at %lld by %s, expected %s; data at object + %llu\n",
		       (unsigned long long)va, got, (long long)answer.offset,
		       verdict_name(answer.verdict), expected,
		       (unsigned long long)(sample->addr -
					    object_at(run, sample->addr)->addr));
	*(right ? &tally->right : &tally->wrong) += 1;
}

static void judge_all(struct run *run, bool skid, int at_least, const char *what)
{
	CLEANUP(close) int fd = open(run->program, O_RDONLY | O_CLOEXEC);
	struct recover_files files = { fd, -1, -1 };
	struct recover_options options = { 0 };
	CLEANUP(recover_close) struct recover *recover = NULL;
	struct tally tally = { 0 };
	struct err *err = recover_open(&files, &options, &recover);

	if (err) {
		result(false, run->program, what, err->text);
		err_free(err);
		return;
	}
	vec_each(&run->samples, sample)
		judge(run, recover, sample, skid, &tally);

	CLEANUP(free)
	char *figures =
		mem_printf("%d right, %d wrong, %d abstained, %d unmarked", tally.right,
			   tally.wrong, tally.abstained, tally.unmarked);

	result(!tally.wrong && tally.right >= at_least &&
		       tally.abstained <= MAX_ABSTAINED,
	       run->program, what, figures);
}

static void run_end(struct run *run)
{
	vec_fini(&run->samples);
}

static void page_faults_agree(const char *program)
{
	struct run run = { .program = program };
	struct perf_event_attr attr = { .type = PERF_TYPE_SOFTWARE,
					.config = PERF_COUNT_SW_PAGE_FAULTS };
	const char *what = "page faults agree with the named field";

	if (!run_start(&run)) {
		result(false, program, what, "the fixture did not start");
		return;
	}
	int fd = event_open(run.pid, &attr);
	struct perf_event_mmap_page *page = fd < 0 ? NULL : ring_map(fd);
	int errnum = errno;

	run_go(&run);
	if (page) {
		ring_read(&run, page);
		judge_all(&run, false, MIN_RIGHT, what);
	} else {
		printf("skip %s: perf_event_open: %s\n", what, strerror(errnum));
	}
	if (fd >= 0)
		close(fd);
	run_end(&run);
}

/* Four debug registers: two fields of the order, two of the first line. */
static void breakpoints_agree(const char *program)
{
	static const struct {
		int object;
		uint64_t offset, bytes;
	} watched[] = { { 0, 0, 8 }, { 0, 312, 4 }, { 1, 8, 8 }, { 1, 24, 8 } };
	struct run run = { .program = program };
	struct perf_event_mmap_page *pages[4] = { NULL };
	const char *what = "breakpoints agree under the skid rule";
	int fds[4] = { -1, -1, -1, -1 };
	int errnum = 0;

	if (!run_start(&run)) {
		result(false, program, what, "the fixture did not start");
		return;
	}
	for (int i = 0; i < 4; i++) {
		struct perf_event_attr attr = {
			.type = PERF_TYPE_BREAKPOINT,
			.bp_type = HW_BREAKPOINT_RW,
			.bp_addr =
				run.objects[watched[i].object].addr + watched[i].offset,
			.bp_len = watched[i].bytes,
		};

		fds[i] = event_open(run.pid, &attr);
		pages[i] = fds[i] < 0 ? NULL : ring_map(fds[i]);
		errnum = fds[i] < 0 ? errno : errnum;
	}
	run_go(&run);
	for (int i = 0; i < 4; i++)
		if (pages[i])
			ring_read(&run, pages[i]);
	if (!run.samples.count)
		printf("skip %s: no breakpoint fired: %s\n", what,
		       errnum ? strerror(errnum) : "debug registers do not work here");
	else
		judge_all(&run, true, 4, what);
	for (int i = 0; i < 4; i++)
		if (fds[i] >= 0)
			close(fds[i]);
	run_end(&run);
}

int main(void)
{
	const char *build = getenv("B") ? getenv("B") : ".build";
	static const char *const variants[] = { "gcc-O2", "clang-O2" };

	for (size_t i = 0; i < sizeof(variants) / sizeof(*variants); i++) {
		CLEANUP(free)
		char *program = mem_printf("%s/fixture/%s/oracle", build, variants[i]);

		page_faults_agree(program);
		breakpoints_agree(program);
	}
	return 0;
}
