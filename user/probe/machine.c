// SPDX-License-Identifier: Apache-2.0
/*
 * One function per row; each looks, judges, and says what to do. What must be there
 * comes first, so that machine_require() can name the first thing missing.
 */
#include "probe/machine.h"

#include <bpf/bpf.h>
#include <bpf/btf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/capability.h>
#include <linux/perf_event.h>
#include <mntent.h>
#include <stdarg.h>
#include <stdio.h>
#include <string.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "probe/pmu.h"
#include "probe/sideband.h"

#define MAX_TEXT 4096

/* What several rows ask; read once. */
struct facts {
	struct btf *btf; /* NULL: none */
	uint64_t caps;
};

typedef void (*row_fn)(const struct facts *facts, struct machine_row *row);

const char *machine_state_name(enum machine_state state)
{
	static const char *const names[] = { "ok", "warn", "fail" };

	return state <= MACHINE_FAIL ? names[state] : "fail";
}

static void judge(struct machine_row *row, enum machine_state state, const char *advice)
{
	row->state = state;
	snprintf(row->advice, sizeof(row->advice), "%s", advice);
}

__attribute__((format(printf, 2, 3))) static void say(struct machine_row *row,
						      const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	vsnprintf(row->value, sizeof(row->value), fmt, ap);
	va_end(ap);
}

static char *text_of(const char *path)
{
	char *text = NULL;
	struct err *err = file_read(path, MAX_TEXT, &text, NULL);

	if (err) {
		err_free(err);
		return NULL;
	}
	return text;
}

/* sysctl_of() - @unset when this kernel has no such file. */
static long sysctl_of(const char *name, long unset)
{
	CLEANUP(free) char *path = mem_printf("/proc/sys/kernel/%s", name);
	CLEANUP(free) char *text = text_of(path);

	return text && *text ? strtol(text, NULL, 10) : unset;
}

static bool has_cap(const struct facts *facts, int cap)
{
	return facts->caps >> cap & 1;
}

static bool has_either(const struct facts *facts, int cap)
{
	return has_cap(facts, cap) || has_cap(facts, CAP_SYS_ADMIN);
}

static void row_kernel(const struct facts *facts, struct machine_row *row)
{
	struct utsname name;
	unsigned major = 0, minor = 0;

	(void)facts;
	uname(&name);
	sscanf(name.release, "%u.%u", &major, &minor);
	say(row, "%s %s", name.release, name.machine);
	if (strcmp(name.machine, "x86_64"))
		judge(row, MACHINE_FAIL, "assay reads x86-64 only so far");
	else if (major < 5 || (major == 5 && minor < 15))
		judge(row, MACHINE_FAIL, "needs Linux 6.1 or later (5.15 may work)");
	else if (major == 5 || (major == 6 && minor < 1))
		judge(row, MACHINE_WARN, "older than 6.1: may work, not tested");
}

static void row_btf(const struct facts *facts, struct machine_row *row)
{
	say(row, facts->btf ? "/sys/kernel/btf/vmlinux" : "none");
	if (!facts->btf)
		judge(row, MACHINE_FAIL,
		      "the kernel was built without CONFIG_DEBUG_INFO_BTF, or /sys is "
		      "not mounted: use a distribution kernel, mount /sys");
}

static void row_capabilities(const struct facts *facts, struct machine_row *row)
{
	bool bpf = has_either(facts, CAP_BPF), perfmon = has_either(facts, CAP_PERFMON);

	say(row, "%s",
	    bpf && perfmon ? "CAP_BPF, CAP_PERFMON"
	    : bpf	   ? "no CAP_PERFMON"
	    : perfmon	   ? "no CAP_BPF"
			   : "neither CAP_BPF nor CAP_PERFMON");
	if (!bpf || !perfmon)
		judge(row, MACHINE_FAIL, "run as root, or let assayd do it as a service");
}

static void row_paranoid(const struct facts *facts, struct machine_row *row)
{
	long level = sysctl_of("perf_event_paranoid", -2);

	say(row, "%ld", level);
	if (level == -2) {
		say(row, "none");
		judge(row, MACHINE_FAIL, "the kernel was built without perf events");
	} else if (level > 2 && !has_cap(facts, CAP_SYS_ADMIN)) {
		judge(row, MACHINE_FAIL,
		      "3 forbids perf events without CAP_SYS_ADMIN: run as root, or "
		      "sysctl kernel.perf_event_paranoid=2");
	}
}

static void row_ring_buffer(const struct facts *facts, struct machine_row *row)
{
	int has = has_either(facts, CAP_BPF)
			  ? libbpf_probe_bpf_map_type(BPF_MAP_TYPE_RINGBUF, NULL)
			  : -EPERM;

	say(row, has > 0 ? "yes" : has ? "cannot tell" : "no");
	if (!has)
		judge(row, MACHINE_FAIL,
		      "needs Linux 5.8 or later with CONFIG_BPF_SYSCALL");
	else if (has < 0)
		judge(row, MACHINE_WARN, "ask again as root");
}

static void row_lockdown(const struct facts *facts, struct machine_row *row)
{
	CLEANUP(free) char *text = text_of("/sys/kernel/security/lockdown");

	(void)facts;
	bool locked = text && strstr(text, "[confidentiality]");

	say(row, locked ? "confidentiality" : "no");
	if (locked)
		judge(row, MACHINE_FAIL,
		      "forbids BPF to read kernel memory: boot with lockdown=integrity");
}

static void row_kptr(const struct facts *facts, struct machine_row *row)
{
	long level = sysctl_of("kptr_restrict", 0);

	say(row, "%ld", level);
	if (level > 1 || (level == 1 && !has_cap(facts, CAP_SYSLOG)))
		judge(row, MACHINE_WARN,
		      "kernel functions stay nameless: sysctl kernel.kptr_restrict=1 and "
		      "run as root");
}

static void row_unprivileged_bpf(const struct facts *facts, struct machine_row *row)
{
	(void)facts;
	say(row, "%ld", sysctl_of("unprivileged_bpf_disabled", 0));
}

static void row_mlock(const struct facts *facts, struct machine_row *row)
{
	long kib = sysctl_of("perf_event_mlock_kb", 516);

	(void)facts;
	say(row, "%ld KiB per CPU", kib);
	if ((size_t)kib * 1024 < sideband_bytes())
		judge(row, MACHINE_WARN,
		      "too little for the mappings' ring: sysctl "
		      "kernel.perf_event_mlock_kb=516");
}

static void row_cgroup(const struct facts *facts, struct machine_row *row)
{
	FILE *mounts = setmntent("/proc/self/mounts", "re");

	(void)facts;
	say(row, "not mounted");
	for (struct mntent *entry; mounts && (entry = getmntent(mounts));)
		if (!strcmp(entry->mnt_type, "cgroup2")) {
			say(row, "%s", entry->mnt_dir);
			break;
		}
	if (mounts)
		endmntent(mounts);
	if (row->value[0] != '/')
		judge(row, MACHINE_WARN,
		      "no cgroup or service can be a target: "
		      "mount -t cgroup2 none /sys/fs/cgroup");
}

static bool has_function(const struct facts *facts, const char *name)
{
	return facts->btf && btf__find_by_name_kind(facts->btf, name, BTF_KIND_FUNC) > 0;
}

static void row_details(const struct facts *facts, struct machine_row *row)
{
	bool has = has_function(facts, "bpf_cast_to_kern_ctx");

	say(row, has ? "yes" : "no");
	if (!has)
		judge(row, MACHINE_WARN,
		      "latency and cache level of samples need Linux 6.2 or later");
}

static bool has_enumerator(const struct btf *btf, const char *type, const char *name)
{
	int id = btf ? btf__find_by_name_kind(btf, type, BTF_KIND_ENUM) : -1;

	if (id < 0)
		return false;
	const struct btf_type *list = btf__type_by_id(btf, (__u32)id);
	const struct btf_enum *item = btf_enum(list);

	for (int i = 0; i < btf_vlen(list); i++, item++)
		if (!strcmp(btf__name_by_offset(btf, item->name_off), name))
			return true;
	return false;
}

static void row_uprobe_multi(const struct facts *facts, struct machine_row *row)
{
	bool has =
		has_enumerator(facts->btf, "bpf_attach_type", "BPF_TRACE_UPROBE_MULTI");

	say(row, has ? "yes" : "no");
	if (!has)
		judge(row, MACHINE_WARN,
		      "probes in short windows need Linux 6.6 or later");
}

struct row_kind {
	const char *name;
	row_fn fill;
};

static const struct row_kind required[] = {
	{ "kernel", row_kernel },
	{ "capabilities", row_capabilities },
	{ "kernel.perf_event_paranoid", row_paranoid },
	{ "BTF", row_btf },
	{ "lockdown", row_lockdown },
	{ "BPF ring buffer", row_ring_buffer },
};

static const struct row_kind useful[] = {
	{ "kernel.kptr_restrict", row_kptr },
	{ "kernel.unprivileged_bpf_disabled", row_unprivileged_bpf },
	{ "kernel.perf_event_mlock_kb", row_mlock },
	{ "cgroup v2", row_cgroup },
	{ "sample details", row_details },
	{ "uprobe_multi", row_uprobe_multi },
};

static uint64_t effective_caps(void)
{
	CLEANUP(free) char *text = text_of("/proc/self/status");
	const char *line = text ? strstr(text, "CapEff:") : NULL;

	return line ? strtoull(line + strlen("CapEff:"), NULL, 16) : 0;
}

static int say_nothing(enum libbpf_print_level level, const char *fmt, va_list ap)
{
	(void)level;
	(void)fmt;
	(void)ap;
	return 0;
}

static struct facts facts_read(void)
{
	libbpf_set_print(say_nothing);
	return (struct facts){
		.btf = btf__load_vmlinux_btf(),
		.caps = effective_caps(),
	};
}

static void fill(struct machine_report *report, const struct facts *facts,
		 const struct row_kind *kinds, size_t count)
{
	for (size_t i = 0; i < count && report->count < MACHINE_MAX_ROWS; i++) {
		struct machine_row *row = &report->rows[report->count++];

		row->name = kinds[i].name;
		kinds[i].fill(facts, row);
	}
}

/* Why a better source is not there is worth a word; it is no defect. */
static void fill_sources(struct machine_report *report)
{
	static const char *const names[ABI_SOURCES] = {
		[ABI_SOURCE_CLOCK] = "source clock",
		[ABI_SOURCE_IBS] = "source ibs",
		[ABI_SOURCE_PEBS_LOAD] = "source pebs-load",
		[ABI_SOURCE_PEBS_STORE] = "source pebs-store",
		[ABI_SOURCE_PAGE_FAULT] = "source page-fault",
	};
	CLEANUP(free) struct pmu_facts *facts = mem_alloc(sizeof(*facts));
	CLEANUP(free) struct pmu_sources *sources = mem_alloc(sizeof(*sources));

	pmu_gather(facts);
	pmu_candidates(facts, PMU_TRY_HZ, sources);
	pmu_try(sources);
	err_free(pmu_choose(sources, 0));
	for (size_t i = 0; i < sources->count && report->count < MACHINE_MAX_ROWS; i++) {
		const struct pmu_source *source = &sources->list[i];
		struct machine_row *row = &report->rows[report->count++];

		row->name = names[source->source];
		if (source->is_usable)
			say(row, "%s", source->is_used ? "in use" : "usable");
		else
			say(row, "no: %.120s", source->reason);
		if (source->is_used && !source->is_exact)
			judge(row, MACHINE_WARN,
			      "inexact: an access is found by the instruction before the "
			      "sampled one; hardware sampling (IBS, PEBS) is better");
		if (!source->is_usable && source->source == ABI_SOURCE_CLOCK)
			judge(row, MACHINE_FAIL, "run as root");
	}
}

enum machine_state machine_examine(struct machine_report *ret_report)
{
	struct facts facts = facts_read();
	enum machine_state worst = MACHINE_OK;

	memset(ret_report, 0, sizeof(*ret_report));
	fill(ret_report, &facts, required, sizeof(required) / sizeof(required[0]));
	fill(ret_report, &facts, useful, sizeof(useful) / sizeof(useful[0]));
	fill_sources(ret_report);
	btf__free(facts.btf);
	for (size_t i = 0; i < ret_report->count; i++)
		if (ret_report->rows[i].state > worst)
			worst = ret_report->rows[i].state;
	return worst;
}

struct err *machine_require(void)
{
	CLEANUP(free) struct machine_report *report = mem_alloc(sizeof(*report));
	struct facts facts = facts_read();

	fill(report, &facts, required, sizeof(required) / sizeof(required[0]));
	btf__free(facts.btf);
	for (size_t i = 0; i < report->count; i++) {
		const struct machine_row *row = &report->rows[i];

		if (row->state == MACHINE_FAIL)
			return err_new(
				!strcmp(row->name, "capabilities") ||
						!strcmp(row->name,
							"kernel.perf_event_paranoid")
					? ERR_PERMISSION
					: ERR_UNSUPPORTED,
				"%s: %s; %s", row->name, row->value, row->advice);
	}
	return NULL;
}
