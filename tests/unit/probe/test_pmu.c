// SPDX-License-Identifier: Apache-2.0
/*
 * Facts as /sys shows them on machines of each kind; expected encodings are worked out
 * by hand from the SDM's event tables (event in bits 0-7, umask in 8-15).
 */
#include <setjmp.h>
#include <stdarg.h>
#include <stddef.h>
#include <stdint.h>
#include <stdio.h>
#include <string.h>
#include <cmocka.h>

#include "probe/pmu.h"

#define HZ 997

static void term(struct pmu_term *terms, size_t *count, const char *name,
		 const char *text)
{
	snprintf(terms[*count].name, sizeof(terms->name), "%s", name);
	snprintf(terms[*count].text, sizeof(terms->text), "%s", text);
	++*count;
}

static struct pmu_device *intel(struct pmu_facts *facts, const char *name, uint32_t type,
				const char *loads, const char *stores)
{
	struct pmu_device *device = &facts->devices[facts->device_count++];

	snprintf(facts->vendor, sizeof(facts->vendor), "GenuineIntel");
	snprintf(device->name, sizeof(device->name), "%s", name);
	device->type = type;
	device->max_precise = 3;
	term(device->formats, &device->format_count, "event", "config:0-7");
	term(device->formats, &device->format_count, "umask", "config:8-15");
	term(device->formats, &device->format_count, "ldlat", "config1:0-15");
	term(device->events, &device->event_count, "mem-loads", loads);
	term(device->events, &device->event_count, "mem-stores", stores);
	return device;
}

static struct pmu_source *find(struct pmu_sources *sources, const char *name)
{
	for (size_t i = 0; i < sources->count; i++)
		if (!strcmp(sources->list[i].name, name))
			return &sources->list[i];
	fail_msg("no source %s", name);
	return NULL;
}

static void ice_lake_has_loads_with_latency_and_stores(void **state)
{
	struct pmu_facts facts = { 0 };
	struct pmu_sources sources;

	(void)state;
	intel(&facts, "cpu", 4, "event=0xcd,umask=0x1,ldlat=3", "event=0xd0,umask=0x82");
	pmu_candidates(&facts, HZ, &sources);

	struct pmu_source *load = find(&sources, "pebs-load cpu");

	assert_true(load->is_usable && load->is_exact);
	assert_int_equal(load->attr.type, 4);
	assert_int_equal(load->attr.config, 0x1cd);
	assert_int_equal(load->attr.config1, PMU_LDLAT);
	assert_int_equal(load->attr.precise_ip, 3);
	assert_true(load->attr.freq);
	assert_int_equal(load->attr.sample_freq, HZ);
	assert_false(load->has_leader);
	assert_true(load->attr.sample_type & PERF_SAMPLE_DATA_SRC);
	/* rax to rsp, rip, flags, r8 to r15: bits 0-9 and 16-23 of the uapi's order */
	assert_int_equal(load->attr.sample_regs_intr, 0xff03ff);
	assert_int_equal(find(&sources, "pebs-store cpu")->attr.config, 0x82d0);
}

static void sapphire_rapids_needs_the_auxiliary_event_to_lead(void **state)
{
	struct pmu_facts facts = { 0 };
	struct pmu_sources sources;
	struct pmu_device *cpu = intel(&facts, "cpu", 4, "event=0xcd,umask=0x1,ldlat=3",
				       "event=0xcd,umask=0x2");

	(void)state;
	term(cpu->events, &cpu->event_count, "mem-loads-aux", "event=0x03,umask=0x82");
	pmu_candidates(&facts, HZ, &sources);

	struct pmu_source *load = find(&sources, "pebs-load cpu");

	assert_true(load->has_leader);
	assert_int_equal(load->leader.config, 0x8203);
	assert_int_equal(load->leader.sample_freq, 0); /* it only counts */
	assert_false(find(&sources, "pebs-store cpu")->has_leader);
}

static void hybrid_cpus_have_a_source_per_kind_of_core(void **state)
{
	struct pmu_facts facts = { 0 };
	struct pmu_sources sources;
	size_t used = 0;

	(void)state;
	struct pmu_device *core =
		intel(&facts, "cpu_core", 4, "event=0xcd,umask=0x1,ldlat=3",
		      "event=0xcd,umask=0x2");

	snprintf(core->cpus, sizeof(core->cpus), "0-15");
	term(core->events, &core->event_count, "mem-loads-aux", "event=0x03,umask=0x82");

	struct pmu_device *atom =
		intel(&facts, "cpu_atom", 10, "event=0xd0,umask=0x5,ldlat=3",
		      "event=0xd0,umask=0x6");

	snprintf(atom->cpus, sizeof(atom->cpus), "16-23");
	pmu_candidates(&facts, HZ, &sources);
	assert_int_equal(find(&sources, "pebs-load cpu_atom")->attr.type, 10);
	assert_int_equal(find(&sources, "pebs-load cpu_atom")->attr.config, 0x5d0);
	assert_string_equal(find(&sources, "pebs-load cpu_atom")->cpus, "16-23");
	assert_false(find(&sources, "pebs-load cpu_atom")->has_leader);
	assert_true(find(&sources, "pebs-load cpu_core")->has_leader);
	assert_null(pmu_choose(&sources, 0));
	for (size_t i = 0; i < sources.count; i++)
		used += sources.list[i].is_used;
	assert_int_equal(used, 4); /* loads and stores of both */
	assert_false(find(&sources, "clock")->is_used);
}

static void amd_counts_operations(void **state)
{
	struct pmu_facts facts = { .vendor = "AuthenticAMD", .device_count = 1 };
	struct pmu_device *ibs = &facts.devices[0];
	struct pmu_sources sources;

	(void)state;
	snprintf(ibs->name, sizeof(ibs->name), "ibs_op");
	ibs->type = 11;
	term(ibs->formats, &ibs->format_count, "cnt_ctl", "config:19");
	term(ibs->formats, &ibs->format_count, "l3missonly", "config:16");
	pmu_candidates(&facts, HZ, &sources);

	struct pmu_source *source = find(&sources, "ibs");

	assert_true(source->is_usable && source->is_exact);
	assert_int_equal(source->attr.type, 11);
	assert_int_equal(source->attr.config, 1 << 19); /* and not only L3 misses */
	/* IBS refuses any exclusion on kernels before 6.13. */
	assert_false(source->attr.exclude_kernel || source->attr.exclude_user ||
		     source->attr.exclude_hv || source->attr.exclude_idle);
	assert_null(pmu_choose(&sources, 0));
	assert_true(source->is_used);
	assert_false(find(&sources, "clock")->is_used);
}

static void a_guest_without_hardware_sampling_falls_back_to_the_clock(void **state)
{
	struct pmu_facts facts = { .vendor = "AuthenticAMD", .is_guest = true };
	struct pmu_sources sources;

	(void)state;
	pmu_candidates(&facts, HZ, &sources);
	assert_false(find(&sources, "ibs")->is_usable);
	assert_non_null(strstr(find(&sources, "ibs")->reason, "hypervisor"));
	assert_non_null(strstr(find(&sources, "pebs-load")->reason, "not an Intel"));
	assert_null(pmu_choose(&sources, 0));

	struct pmu_source *clock = find(&sources, "clock");

	assert_true(clock->is_used && !clock->is_exact);
	assert_int_equal(clock->attr.sample_period, 1000000000 / HZ);
	assert_false(find(&sources, "page-fault")->is_used);
}

static void a_wanted_source_that_is_missing_is_an_error_with_the_reason(void **state)
{
	struct pmu_facts facts = { .vendor = "GenuineIntel" };
	struct pmu_sources sources;

	(void)state;
	pmu_candidates(&facts, HZ, &sources);
	struct err *err = pmu_choose(&sources, 1u << ABI_SOURCE_PEBS_LOAD);

	assert_int_equal(err->code, ERR_UNSUPPORTED);
	assert_non_null(strstr(err->text, "mem-loads"));
	err_free(err);
	assert_null(pmu_choose(&sources,
			       1u << ABI_SOURCE_CLOCK | 1u << ABI_SOURCE_PAGE_FAULT));
	assert_true(find(&sources, "clock")->is_used);
	assert_true(find(&sources, "page-fault")->is_used);
}

static void formats_in_several_pieces_take_the_low_bits_first(void **state)
{
	struct pmu_device device = { .name = "odd" };
	struct perf_event_attr attr = { 0 };

	(void)state;
	term(device.formats, &device.format_count, "event", "config:0-7,32-35");
	term(device.formats, &device.format_count, "inv", "config2:63");
	assert_null(pmu_encode(&device, "event=0xabc,inv", &attr));
	assert_int_equal(attr.config, 0xa000000bcull);
	assert_int_equal(attr.config2, 1ull << 63);
}

static void nonsense_from_sysfs_is_refused(void **state)
{
	static const struct {
		const char *format, *text;
	} cases[] = {
		{ "config:0-7", "event=0x100" }, /* too large */
		{ "config:0-7", "event=lots" },	 /* no number */
		{ "config:0-7", "umask=1" },	 /* no such term */
		{ "config:7-0", "event=1" },	 /* upside down */
		{ "config:0-64", "event=1" },	 /* beyond the word */
		{ "config9:0-7", "event=1" },	 /* no such word */
		{ "config:", "event=1" },	 /* no bits */
		{ "config:0-7;8", "event=1" },	 /* junk */
	};

	(void)state;
	for (size_t i = 0; i < sizeof(cases) / sizeof(cases[0]); i++) {
		struct pmu_device device = { .name = "odd" };
		struct perf_event_attr attr = { 0 };

		term(device.formats, &device.format_count, "event", cases[i].format);
		struct err *err = pmu_encode(&device, cases[i].text, &attr);

		assert_non_null(err);
		assert_int_equal(err->code, ERR_FORMAT);
		err_free(err);
	}
}

static void lists_of_cpus_are_read(void **state)
{
	uint32_t cpus[8];

	(void)state;
	assert_int_equal(pmu_cpus("0-2,5\n", cpus, 8), 4);
	assert_int_equal(cpus[2], 2);
	assert_int_equal(cpus[3], 5);
	assert_int_equal(pmu_cpus("", cpus, 8), 0);
	assert_int_equal(pmu_cpus("0-4294967295", cpus, 8), 8);
	assert_int_equal(pmu_cpus("3-1", cpus, 8), 0);
	assert_int_equal(pmu_cpus("x", cpus, 8), 0);
}

int main(void)
{
	const struct CMUnitTest tests[] = {
		cmocka_unit_test(ice_lake_has_loads_with_latency_and_stores),
		cmocka_unit_test(sapphire_rapids_needs_the_auxiliary_event_to_lead),
		cmocka_unit_test(hybrid_cpus_have_a_source_per_kind_of_core),
		cmocka_unit_test(amd_counts_operations),
		cmocka_unit_test(
			a_guest_without_hardware_sampling_falls_back_to_the_clock),
		cmocka_unit_test(
			a_wanted_source_that_is_missing_is_an_error_with_the_reason),
		cmocka_unit_test(formats_in_several_pieces_take_the_low_bits_first),
		cmocka_unit_test(nonsense_from_sysfs_is_refused),
		cmocka_unit_test(lists_of_cpus_are_read),
	};

	return cmocka_run_group_tests(tests, NULL, NULL);
}
