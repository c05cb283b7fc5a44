// SPDX-License-Identifier: Apache-2.0
/*
 * The counters are mapped, so that reading them often costs nothing. They never go back:
 * a slot that is used again starts from what it stands at.
 */
#include "probe/slots.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <string.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/mem.h"
#include "probe/calibrate.h"

struct slots {
	int probes_fd;
	const struct abi_probe_count *counts; /* [slot * cpu_count + cpu] */
	size_t bytes, cpu_count;
	uint32_t next; /* where to look for a free one: the longest unused first */
	bool is_used[ABI_MAX_SLOTS];
	struct abi_probe_count base[ABI_MAX_SLOTS];
};

struct err *slots_open(const struct probe_fds *fds, struct slots **ret_slots)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	CLEANUP(slots_free) struct slots *slots = mem_alloc(sizeof(*slots));
	int cpus = libbpf_num_possible_cpus();

	if (fds->count < PROBE_FD_SIDEBAND || cpus < 1)
		return err_new(ERR_INVALID, "no table of probes");
	slots->probes_fd = fds->fd[PROBE_FD_PROBES];
	slots->cpu_count = (size_t)cpus;
	slots->bytes = ABI_MAX_SLOTS * slots->cpu_count * sizeof(struct abi_probe_count);
	slots->bytes = (slots->bytes + page - 1) / page * page;
	void *at = mmap(NULL, slots->bytes, PROT_READ, MAP_SHARED,
			fds->fd[PROBE_FD_PROBE_COUNTS], 0);

	if (at == MAP_FAILED)
		return err_errno(errno, "map the counters of probes");
	slots->counts = at;
	*ret_slots = take(slots);
	return NULL;
}

void slots_free(struct slots *slots)
{
	if (!slots)
		return;
	if (slots->counts)
		munmap((void *)slots->counts, slots->bytes);
	free(slots);
}

static struct abi_probe_count sum(const struct slots *slots, uint32_t slot)
{
	struct abi_probe_count total = { 0 };

	for (size_t cpu = 0; cpu < slots->cpu_count; cpu++) {
		const struct abi_probe_count *count =
			&slots->counts[slot * slots->cpu_count + cpu];

		total.hits += __atomic_load_n(&count->hits, __ATOMIC_RELAXED);
		total.foreign += __atomic_load_n(&count->foreign, __ATOMIC_RELAXED);
		total.skipped += __atomic_load_n(&count->skipped, __ATOMIC_RELAXED);
		total.unknown += __atomic_load_n(&count->unknown, __ATOMIC_RELAXED);
		total.dropped += __atomic_load_n(&count->dropped, __ATOMIC_RELAXED);
		total.unpaired += __atomic_load_n(&count->unpaired, __ATOMIC_RELAXED);
		total.silent_unread +=
			__atomic_load_n(&count->silent_unread, __ATOMIC_RELAXED);
		total.silent_untracked +=
			__atomic_load_n(&count->silent_untracked, __ATOMIC_RELAXED);
	}
	return total;
}

struct err *slots_set(struct slots *slots, uint32_t slot, const struct abi_probe *probe)
{
	if (bpf_map_update_elem(slots->probes_fd, &slot, probe, BPF_ANY))
		return err_errno(errno, "write the plan of a probe");
	return NULL;
}

struct err *slots_put(struct slots *slots, const struct abi_probe *probe,
		      uint32_t *ret_slot)
{
	for (uint32_t i = 0; i < CALIBRATE_SLOT; i++) {
		uint32_t slot = (slots->next + i) % CALIBRATE_SLOT;

		if (slots->is_used[slot])
			continue;
		TRY(slots_set(slots, slot, probe));
		slots->is_used[slot] = true;
		slots->base[slot] = sum(slots, slot);
		slots->next = slot + 1;
		*ret_slot = slot;
		return NULL;
	}
	return err_new(ERR_LIMIT, "all %d probes are in use", CALIBRATE_SLOT);
}

void slots_del(struct slots *slots, uint32_t slot)
{
	static const struct abi_probe none;

	err_free(slots_set(slots, slot, &none));
	slots->is_used[slot] = false;
}

struct abi_probe_count slots_count(const struct slots *slots, uint32_t slot)
{
	struct abi_probe_count now = sum(slots, slot);
	const struct abi_probe_count *base = &slots->base[slot];

	now.hits -= base->hits;
	now.foreign -= base->foreign;
	now.skipped -= base->skipped;
	now.unknown -= base->unknown;
	now.dropped -= base->dropped;
	now.unpaired -= base->unpaired;
	now.silent_unread -= base->silent_unread;
	now.silent_untracked -= base->silent_untracked;
	return now;
}
