// SPDX-License-Identifier: Apache-2.0
/* The facts behind pmu_candidates(), from /sys and /proc; nothing here decides. */
#include <dirent.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/cleanup.h"
#include "core/file.h"
#include "core/mem.h"
#include "core/str.h"
#include "probe/pmu.h"

#define DEVICES	 "/sys/bus/event_source/devices"
#define MAX_FILE 4096

size_t pmu_cpus(const char *text, uint32_t *ret_cpus, size_t room)
{
	size_t count = 0;

	while (*text >= '0' && *text <= '9') {
		char *end;
		unsigned long low = strtoul(text, &end, 10), high = low;

		if (*end == '-')
			high = strtoul(end + 1, &end, 10);
		for (; low <= high && low < ABI_MAX_CPUS && count < room; low++)
			ret_cpus[count++] = (uint32_t)low;
		text = *end == ',' ? end + 1 : end;
	}
	return count;
}

static char *text_of(const char *path)
{
	char *text = NULL;
	size_t bytes = 0;
	struct err *err = file_read(path, MAX_FILE, &text, &bytes);

	if (err) {
		err_free(err);
		return NULL;
	}
	text[strcspn(text, "\n")] = 0;
	return text;
}

size_t pmu_online(uint32_t *ret_cpus, size_t room)
{
	CLEANUP(free) char *text = text_of("/sys/devices/system/cpu/online");
	size_t count = pmu_cpus(text ? text : "", ret_cpus, room);

	if (!count && room)
		ret_cpus[count++] = 0;
	return count;
}

static void copy_file(const char *folder, const char *name, char *ret, size_t room)
{
	CLEANUP(free) char *path = mem_printf("%s/%s", folder, name);
	CLEANUP(free) char *text = text_of(path);

	snprintf(ret, room, "%s", text ? text : "");
}

/* Only terms that we can use: a PMU may have hundreds of events. */
static bool is_useful(const char *name)
{
	static const char *const names[] = {
		"event",      "umask",	   "ldlat",	 "cnt_ctl",
		"l3missonly", "mem-loads", "mem-stores", "mem-loads-aux",
	};

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (!strcmp(names[i], name))
			return true;
	return false;
}

static size_t gather_terms(const char *folder, struct pmu_term *ret_terms)
{
	DIR *dir = opendir(folder);
	size_t count = 0;

	if (!dir)
		return 0;
	for (struct dirent *entry; (entry = readdir(dir)) && count < PMU_MAX_TERMS;) {
		if (!is_useful(entry->d_name))
			continue;
		struct pmu_term *term = &ret_terms[count++];

		snprintf(term->name, sizeof(term->name), "%.31s", entry->d_name);
		copy_file(folder, entry->d_name, term->text, sizeof(term->text));
	}
	closedir(dir);
	return count;
}

static bool gather_device(const char *name, struct pmu_device *ret_device)
{
	CLEANUP(free) char *folder = mem_printf("%s/%s", DEVICES, name);
	CLEANUP(free) char *formats = mem_printf("%s/format", folder);
	CLEANUP(free) char *events = mem_printf("%s/events", folder);
	char number[32];
	uint64_t value;

	copy_file(folder, "type", number, sizeof(number));
	if (!number_parse(number, &value))
		return false;
	snprintf(ret_device->name, sizeof(ret_device->name), "%s", name);
	ret_device->type = (uint32_t)value;
	copy_file(folder, "cpus", ret_device->cpus, sizeof(ret_device->cpus));
	copy_file(folder, "caps/max_precise", number, sizeof(number));
	ret_device->max_precise = number_parse(number, &value) ? (uint32_t)value : 0;
	ret_device->format_count = gather_terms(formats, ret_device->formats);
	ret_device->event_count = gather_terms(events, ret_device->events);
	return true;
}

static void gather_cpu(struct pmu_facts *facts)
{
	FILE *file = fopen("/proc/cpuinfo", "re");
	char line[MAX_FILE];

	if (!file)
		return;
	while (fgets(line, sizeof(line), file)) {
		if (line[0] == '\n') /* the end of the first CPU */
			break;
		if (str_starts(line, "vendor_id"))
			sscanf(line, "vendor_id : %15s", facts->vendor);
		if (str_starts(line, "flags") && strstr(line, " hypervisor"))
			facts->is_guest = true;
	}
	fclose(file);
}

void pmu_gather(struct pmu_facts *ret_facts)
{
	static const char *const names[] = { "cpu", "cpu_core", "cpu_atom", "ibs_op" };

	memset(ret_facts, 0, sizeof(*ret_facts));
	gather_cpu(ret_facts);
	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++)
		if (gather_device(names[i], &ret_facts->devices[ret_facts->device_count]))
			ret_facts->device_count++;
}
