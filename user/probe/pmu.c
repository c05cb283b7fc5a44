// SPDX-License-Identifier: Apache-2.0
/*
 * Exact sources name the instruction that accessed memory: AMD's IBS tags an operation,
 * Intel's PEBS writes a record at its retirement. Where neither is there (or a
 * hypervisor hides it) the CPU clock is left, whose interrupt lands after the access.
 * Sources: AMD PPR "Instruction Based Sampling", Intel SDM volume 3 "Load Latency
 * Performance Monitoring Facility", the kernel's sysfs ABI for event_source devices.
 */
#include "probe/pmu.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/cleanup.h"
#include "core/file.h"
#include "core/mem.h"

/* Every general register, ip and flags: enum perf_event_x86_regs without segments. */
#define REGS_MASK 0xff03ffull

#define HW_SAMPLE                                                                   \
	(PERF_SAMPLE_IP | PERF_SAMPLE_TID | PERF_SAMPLE_ADDR | PERF_SAMPLE_WEIGHT | \
	 PERF_SAMPLE_DATA_SRC | PERF_SAMPLE_PERIOD)

static const char *term_find(const struct pmu_term *terms, size_t count, const char *name)
{
	for (size_t i = 0; i < count; i++)
		if (!strcmp(terms[i].name, name))
			return terms[i].text;
	return NULL;
}

static const char *format_of(const struct pmu_device *device, const char *name)
{
	return term_find(device->formats, device->format_count, name);
}

static const char *event_of(const struct pmu_device *device, const char *name)
{
	return term_find(device->events, device->event_count, name);
}

static const struct pmu_device *device_find(const struct pmu_facts *facts,
					    const char *name)
{
	for (size_t i = 0; i < facts->device_count; i++)
		if (!strcmp(facts->devices[i].name, name))
			return &facts->devices[i];
	return NULL;
}

/* Encoding: a format says where a term's bits go, "config1:0-15" or "config:0-7,32". */

static __u64 *word_of(struct perf_event_attr *attr, const char *format,
		      const char **ret_bits)
{
	static const struct {
		const char *prefix;
		size_t offset;
	} words[] = {
		{ "config:", offsetof(struct perf_event_attr, config) },
		{ "config1:", offsetof(struct perf_event_attr, config1) },
		{ "config2:", offsetof(struct perf_event_attr, config2) },
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
		size_t length = strlen(words[i].prefix);

		if (strncmp(format, words[i].prefix, length))
			continue;
		*ret_bits = format + length;
		return (__u64 *)((char *)attr + words[i].offset);
	}
	return NULL;
}

/* One "low-high" or "bit" of a format; the low bits of the value go there first. */
static bool deposit(const char **bits, __u64 *word, uint64_t *value)
{
	char *end;
	unsigned long low = strtoul(*bits, &end, 10), high = low;

	if (end == *bits)
		return false;
	if (*end == '-') {
		const char *from = end + 1;

		high = strtoul(from, &end, 10);
		if (end == from)
			return false;
	}
	if (low > high || high > 63)
		return false;
	for (unsigned long bit = low; bit <= high; bit++, *value >>= 1) {
		*word &= ~(1ull << bit);
		*word |= (*value & 1) << bit;
	}
	*bits = *end == ',' ? end + 1 : end;
	return *end == ',' || !*end;
}

static struct err *encode_term(const struct pmu_device *device, const char *name,
			       uint64_t value, struct perf_event_attr *attr)
{
	const char *format = format_of(device, name), *bits;
	__u64 *word = format ? word_of(attr, format, &bits) : NULL;

	if (!word)
		return err_new(ERR_FORMAT, "%s has no term '%s'", device->name, name);
	do {
		if (!deposit(&bits, word, &value))
			return err_new(ERR_FORMAT, "%s: format of '%s' is '%s'",
				       device->name, name, format);
	} while (*bits);
	if (value)
		return err_new(ERR_FORMAT, "%s: value of '%s' is too large", device->name,
			       name);
	return NULL;
}

struct err *pmu_encode(const struct pmu_device *device, const char *text,
		       struct perf_event_attr *attr)
{
	CLEANUP(free) char *copy = mem_strdup(text);
	char *save = NULL;

	for (char *term = strtok_r(copy, ",", &save); term;
	     term = strtok_r(NULL, ",", &save)) {
		char *equals = strchr(term, '=');
		uint64_t value = 1;

		if (equals) {
			*equals = 0;
			if (!number_parse(equals + 1, &value))
				return err_new(ERR_FORMAT, "%s: '%s' is no number",
					       device->name, equals + 1);
		}
		TRY(encode_term(device, term, value, attr));
	}
	return NULL;
}

/* Candidates. */

/* At most 9: IBS, loads and stores of three PMUs, clock, page faults. */
static struct pmu_source *source_add(struct pmu_sources *sources, enum abi_source source,
				     const char *name)
{
	struct pmu_source *item = &sources->list[sources->count++];

	item->source = source;
	snprintf(item->name, sizeof(item->name), "%s", name);
	item->attr.size = sizeof(item->attr);
	return item;
}

static void refuse(struct pmu_source *source, const char *why)
{
	source->is_usable = false;
	snprintf(source->reason, sizeof(source->reason), "%s", why);
}

/* Takes over the error. */
static void settle(struct pmu_source *source, struct err *err)
{
	source->is_usable = !err;
	if (err)
		refuse(source, err->text);
	err_free(err);
}

static void set_frequency(struct perf_event_attr *attr, uint32_t hz)
{
	attr->freq = 1;
	attr->sample_freq = hz;
}

static void add_ibs(const struct pmu_facts *facts, uint32_t hz,
		    struct pmu_sources *sources)
{
	const struct pmu_device *device = device_find(facts, "ibs_op");
	struct pmu_source *source = source_add(sources, ABI_SOURCE_IBS, "ibs");
	struct err *err = NULL;

	source->is_exact = true;
	if (strcmp(facts->vendor, "AuthenticAMD") &&
	    strcmp(facts->vendor, "HygonGenuine"))
		return refuse(source, "not an AMD CPU");
	if (!device)
		return refuse(source, facts->is_guest
					      ? "the hypervisor hides it from this guest"
					      : "the kernel offers no ibs_op PMU");
	source->attr.type = device->type;
	source->attr.sample_type = HW_SAMPLE;
	set_frequency(&source->attr, hz);
	/* Count operations rather than cycles: a stalled one is not favoured. */
	if (format_of(device, "cnt_ctl"))
		err = pmu_encode(device, "cnt_ctl=1", &source->attr);
	settle(source, err);
}

static struct err *pebs_setup(const struct pmu_device *device, const char *event,
			      uint32_t hz, struct perf_event_attr *attr)
{
	TRY(pmu_encode(device, event_of(device, event), attr));
	attr->type = device->type;
	attr->precise_ip = device->max_precise ? device->max_precise & 3 : 2;
	attr->sample_type = HW_SAMPLE | PERF_SAMPLE_REGS_INTR;
	attr->sample_regs_intr = REGS_MASK;
	attr->exclude_hv = 1;
	set_frequency(attr, hz);
	return NULL;
}

/* CPUs since Alder Lake report latency only beside an auxiliary event in one group. */
static struct err *leader_setup(const struct pmu_device *device,
				struct pmu_source *source)
{
	const char *aux = event_of(device, "mem-loads-aux");

	if (!aux)
		return NULL;
	source->has_leader = true;
	source->leader.size = sizeof(source->leader);
	source->leader.type = device->type;
	source->leader.exclude_hv = 1;
	return pmu_encode(device, aux, &source->leader);
}

static struct err *load_setup(const struct pmu_device *device, uint32_t hz,
			      struct pmu_source *source)
{
	char text[32];

	TRY(pebs_setup(device, "mem-loads", hz, &source->attr));
	snprintf(text, sizeof(text), "ldlat=%u", PMU_LDLAT);
	if (format_of(device, "ldlat"))
		TRY(pmu_encode(device, text, &source->attr));
	return leader_setup(device, source);
}

static void add_pebs_of(const struct pmu_device *device, uint32_t hz,
			struct pmu_sources *sources)
{
	char name[48];

	snprintf(name, sizeof(name), "pebs-load %s", device->name);
	struct pmu_source *load = source_add(sources, ABI_SOURCE_PEBS_LOAD, name);

	load->is_exact = true;
	memcpy(load->cpus, device->cpus, sizeof(load->cpus));
	settle(load, load_setup(device, hz, load));
	if (!event_of(device, "mem-stores"))
		return;
	snprintf(name, sizeof(name), "pebs-store %s", device->name);
	struct pmu_source *store = source_add(sources, ABI_SOURCE_PEBS_STORE, name);

	store->is_exact = true;
	memcpy(store->cpus, device->cpus, sizeof(store->cpus));
	settle(store, pebs_setup(device, "mem-stores", hz, &store->attr));
}

static void add_pebs(const struct pmu_facts *facts, uint32_t hz,
		     struct pmu_sources *sources)
{
	static const char *const names[] = { "cpu", "cpu_core", "cpu_atom" };
	bool any = false;

	if (!strcmp(facts->vendor, "GenuineIntel"))
		for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
			const struct pmu_device *device = device_find(facts, names[i]);

			if (!device || !event_of(device, "mem-loads"))
				continue;
			add_pebs_of(device, hz, sources);
			any = true;
		}
	if (any)
		return;
	struct pmu_source *source =
		source_add(sources, ABI_SOURCE_PEBS_LOAD, "pebs-load");

	source->is_exact = true;
	if (strcmp(facts->vendor, "GenuineIntel"))
		refuse(source, "not an Intel CPU");
	else if (facts->is_guest)
		refuse(source, "the hypervisor hides it from this guest");
	else
		refuse(source, "the kernel offers no mem-loads event");
}

static void add_software(uint32_t hz, struct pmu_sources *sources)
{
	struct pmu_source *clock = source_add(sources, ABI_SOURCE_CLOCK, "clock");

	clock->is_usable = true;
	clock->attr.type = PERF_TYPE_SOFTWARE;
	clock->attr.config = PERF_COUNT_SW_CPU_CLOCK;
	clock->attr.sample_period = 1000000000ull / hz;
	clock->attr.exclude_idle = 1;

	struct pmu_source *fault =
		source_add(sources, ABI_SOURCE_PAGE_FAULT, "page-fault");

	fault->is_usable = fault->is_exact = true;
	fault->attr.type = PERF_TYPE_SOFTWARE;
	fault->attr.config = PERF_COUNT_SW_PAGE_FAULTS;
	fault->attr.sample_period = 1;
}

void pmu_candidates(const struct pmu_facts *facts, uint32_t hz,
		    struct pmu_sources *ret_sources)
{
	memset(ret_sources, 0, sizeof(*ret_sources));
	add_ibs(facts, hz, ret_sources);
	add_pebs(facts, hz, ret_sources);
	add_software(hz, ret_sources);
}

/* Choice: the best is the first usable exact one; its kin (stores, other cores) join. */

static uint32_t best_of(const struct pmu_sources *sources)
{
	const uint32_t pebs = 1u << ABI_SOURCE_PEBS_LOAD | 1u << ABI_SOURCE_PEBS_STORE;

	for (size_t i = 0; i < sources->count; i++) {
		const struct pmu_source *item = &sources->list[i];

		if (!item->is_usable || item->source == ABI_SOURCE_PAGE_FAULT)
			continue;
		return 1u << item->source & pebs ? pebs : 1u << item->source;
	}
	return 0;
}

static struct err *require(const struct pmu_sources *sources, uint32_t bit)
{
	const struct pmu_source *seen = NULL;

	for (size_t i = 0; i < sources->count; i++) {
		const struct pmu_source *item = &sources->list[i];

		if (1u << item->source != bit)
			continue;
		if (item->is_usable)
			return NULL;
		seen = item;
	}
	if (!seen)
		return err_new(ERR_UNSUPPORTED, "no such sample source on this machine");
	return err_new(ERR_UNSUPPORTED, "sample source %s: %s; see 'assay doctor'",
		       seen->name, seen->reason);
}

struct err *pmu_choose(struct pmu_sources *sources, uint32_t wanted)
{
	bool chosen = !wanted;

	if (chosen)
		wanted = best_of(sources);
	for (uint32_t bit = 1; bit && !chosen; bit <<= 1)
		if (wanted & bit)
			TRY(require(sources, bit));
	for (size_t i = 0; i < sources->count; i++) {
		struct pmu_source *item = &sources->list[i];

		item->is_used = item->is_usable && wanted & 1u << item->source;
	}
	return NULL;
}

/* The kernel has the last word. */

int pmu_open(const struct perf_event_attr *attr, int tid, int cpu, int leader_fd)
{
	int fd = (int)syscall(SYS_perf_event_open, attr, tid, cpu, leader_fd,
			      PERF_FLAG_FD_CLOEXEC);

	return fd < 0 ? -errno : fd;
}

static int try_one(const struct pmu_source *source, int cpu)
{
	CLEANUP(close) int leader = -1;

	if (source->has_leader) {
		leader = pmu_open(&source->leader, -1, cpu, -1);
		if (leader < 0)
			return leader;
	}
	CLEANUP(close) int fd = pmu_open(&source->attr, -1, cpu, leader);

	return fd < 0 ? fd : 0;
}

void pmu_try(struct pmu_sources *sources)
{
	uint32_t cpus[ABI_MAX_CPUS];

	for (size_t i = 0; i < sources->count; i++) {
		struct pmu_source *source = &sources->list[i];

		if (!source->is_usable)
			continue;
		size_t count = source->cpus[0]
				       ? pmu_cpus(source->cpus, cpus, ABI_MAX_CPUS)
				       : pmu_online(cpus, ABI_MAX_CPUS);
		int status = count ? try_one(source, (int)cpus[0]) : -ENODEV;

		if (status == -EACCES || status == -EPERM)
			refuse(source, "not permitted: needs root, or CAP_PERFMON and "
				       "kernel.perf_event_paranoid <= 2");
		else if (status)
			refuse(source, strerror(-status));
	}
}
