/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_PMU_H
#define PROBE_PMU_H

/*
 * Which sources of access samples this machine has, best first. Choosing is a pure
 * function of facts read from /sys, so that it can be tested for CPUs that are not here.
 */

#include <linux/perf_event.h>
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "core/err.h"

#define PMU_MAX_DEVICES 8
#define PMU_MAX_TERMS	48
#define PMU_MAX_SOURCES 16
#define PMU_CPUS_TEXT	256
#define PMU_LDLAT	30  /* cycles from which on PEBS reports a load, as perf has it */
#define PMU_TRY_HZ	997 /* for asking only */

/* A file below format/ or events/: its name and its text. */
struct pmu_term {
	char name[32];
	char text[96];
};

/* One folder below /sys/bus/event_source/devices. */
struct pmu_device {
	char name[32];
	uint32_t type;
	uint32_t max_precise;	  /* caps/max_precise; 0 when the kernel does not say */
	char cpus[PMU_CPUS_TEXT]; /* of a hybrid PMU: "0-7"; "" for all */
	struct pmu_term formats[PMU_MAX_TERMS], events[PMU_MAX_TERMS];
	size_t format_count, event_count;
};

struct pmu_facts {
	char vendor[16]; /* as in /proc/cpuinfo: "GenuineIntel", "AuthenticAMD" */
	bool is_guest;	 /* a hypervisor is present */
	struct pmu_device devices[PMU_MAX_DEVICES];
	size_t device_count;
};

struct pmu_source {
	enum abi_source source;
	char name[48]; /* "ibs", "pebs-load cpu_core" */
	struct perf_event_attr attr;
	bool has_leader; /* Intel's mem-loads-aux must lead the group */
	struct perf_event_attr leader;
	char cpus[PMU_CPUS_TEXT]; /* "" for all */
	bool is_exact; /* the ip is the access; otherwise the skid rule applies */
	bool is_usable, is_used;
	char reason[192]; /* why it is not usable; "" otherwise */
};

struct pmu_sources {
	struct pmu_source list[PMU_MAX_SOURCES];
	size_t count;
};

/* pmu_gather() - read /sys and /proc/cpuinfo; what cannot be read is left out. */
void pmu_gather(struct pmu_facts *ret_facts);

/* pmu_candidates() - every source that assay knows, usable or not, best first; pure. */
void pmu_candidates(const struct pmu_facts *facts, uint32_t hz,
		    struct pmu_sources *ret_sources);

/* pmu_try() - open each usable source for a moment; those that fail get their reason. */
void pmu_try(struct pmu_sources *sources);

/**
 * pmu_choose() - set is_used; pure.
 * @wanted: 1 << enum abi_source, ...; 0: the best exact one, else the clock.
 * Errors: ERR_UNSUPPORTED with the reason when a wanted source is not usable.
 */
struct err *pmu_choose(struct pmu_sources *sources, uint32_t wanted);

/**
 * pmu_encode() - put "event=0xcd,umask=0x1,ldlat=3" into @attr by the device's formats.
 * Errors: ERR_FORMAT for a term that the device has not or a text that does not parse.
 */
struct err *pmu_encode(const struct pmu_device *device, const char *text,
		       struct perf_event_attr *attr);

/* pmu_cpus() - "0-2,5" to numbers; returns how many, at most @room; "" gives none. */
size_t pmu_cpus(const char *text, uint32_t *ret_cpus, size_t room);

/* pmu_online() - the CPUs that are online now. */
size_t pmu_online(uint32_t *ret_cpus, size_t room);

/* pmu_open() - perf_event_open() for all processes on one CPU; -errno when it fails. */
int pmu_open(const struct perf_event_attr *attr, int tid, int cpu, int leader_fd);

#endif
