// SPDX-License-Identifier: Apache-2.0
/*
 * Everything here works on descriptors that somebody privileged opened.
 *
 * Mappings come for every process of the machine, so we let through those of processes
 * that the BPF side, which knows the filter, has told of. The side-band is read first
 * and held back until the BPF ring is empty: a process forks before it maps, so by then
 * its fork has been seen.
 */
#include "probe/ring.h"

#include <bpf/bpf.h>
#include <bpf/libbpf.h>
#include <errno.h>
#include <linux/perf_event.h>
#include <string.h>
#include <sys/epoll.h>
#include <sys/mman.h>
#include <unistd.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"
#include "probe/sideband.h"

#define MAX_PERF_RECORD 65536 /* header.size is 16 bits */
#define MAX_KNOWN	65536 /* processes; beyond that exits were lost, begin anew */

struct ring {
	const struct probe_fds *fds;
	struct ring_buffer *buffer;
	const struct abi_counts *counts;
	size_t counts_bytes, sideband_count;
	void *sideband[ABI_MAX_CPUS]; /* control page, then the data pages */
	int epoll_fd;
	ring_fn call; /* during a drain */
	void *ctx;
	size_t drained;
	uint32_t filter;    /* as set last */
	struct map *known;  /* pid of processes that pass the filter -> nothing */
	VEC(uint32_t) gone; /* those that ended in this round */
	struct str held;    /* records of the side-band, until the ring is empty */
	unsigned char wrapped[MAX_PERF_RECORD];
};

static int fd_of(const struct ring *ring, enum probe_fd which)
{
	return ring->fds->fd[which];
}

static void know(struct ring *ring, uint32_t pid)
{
	if (map_count(ring->known) >= MAX_KNOWN)
		map_clear(ring->known);
	map_put(ring->known, &pid, NULL);
}

/* An exit counts from the next round on: the mappings of this one were made before. */
static void learn(struct ring *ring, const struct abi_task *task)
{
	if (task->head.kind == ABI_TASK && task->op == ABI_TASK_EXIT)
		vec_push(&ring->gone, task->head.pid);
	else
		know(ring, task->head.pid);
}

static int on_record(void *ctx, void *data, size_t bytes)
{
	struct ring *ring = ctx;

	if (bytes >= sizeof(struct abi_task)) /* the smallest record of the BPF side */
		learn(ring, data);
	ring->call(ring->ctx, data, bytes);
	return ++ring->drained < RING_DRAIN_MAX ? 0 : -EAGAIN;
}

static struct err *map_counts(struct ring *ring)
{
	size_t page = (size_t)sysconf(_SC_PAGESIZE);
	size_t bytes = (sizeof(struct abi_counts) + page - 1) / page * page;
	void *at =
		mmap(NULL, bytes, PROT_READ, MAP_SHARED, fd_of(ring, PROBE_FD_COUNTS), 0);

	if (at == MAP_FAILED)
		return err_errno(errno, "map the counters");
	ring->counts = at;
	ring->counts_bytes = bytes;
	return NULL;
}

static struct err *watch(struct ring *ring, int fd)
{
	struct epoll_event event = { .events = EPOLLIN, .data.fd = fd };

	if (epoll_ctl(ring->epoll_fd, EPOLL_CTL_ADD, fd, &event))
		return err_errno(errno, "watch the rings");
	return NULL;
}

static struct err *map_sideband(struct ring *ring, int fd)
{
	void *at =
		mmap(NULL, sideband_bytes(), PROT_READ | PROT_WRITE, MAP_SHARED, fd, 0);

	if (at == MAP_FAILED)
		return err_errno(errno, "map perf's side-band; its memory counts against "
					"kernel.perf_event_mlock_kb of this user");
	ring->sideband[ring->sideband_count++] = at;
	return watch(ring, fd);
}

static struct err *map_all(struct ring *ring)
{
	TRY(map_counts(ring));
	ring->epoll_fd = epoll_create1(EPOLL_CLOEXEC);
	if (ring->epoll_fd < 0)
		return err_errno(errno, "create the rings' epoll");
	ring->buffer =
		ring_buffer__new(fd_of(ring, PROBE_FD_RING), on_record, ring, NULL);
	if (!ring->buffer)
		return err_errno(errno, "map the ring");
	TRY(watch(ring, fd_of(ring, PROBE_FD_RING)));
	for (size_t i = PROBE_FD_SIDEBAND; i < ring->fds->count; i++)
		TRY(map_sideband(ring, ring->fds->fd[i]));
	return NULL;
}

struct err *ring_open(const struct probe_fds *fds, struct ring **ret_ring)
{
	if (fds->count < PROBE_FD_SIDEBAND || fds->count > PROBE_FD_MAX)
		return err_new(ERR_INVALID, "%zu descriptors make no ring", fds->count);
	CLEANUP(ring_free) struct ring *ring = mem_alloc(sizeof(*ring));

	ring->fds = fds;
	ring->epoll_fd = -1;
	ring->known = map_new(sizeof(uint32_t), 1);
	TRY(map_all(ring));
	*ret_ring = take(ring);
	return NULL;
}

void ring_free(struct ring *ring)
{
	if (!ring)
		return;
	for (size_t i = 0; i < ring->sideband_count; i++)
		munmap(ring->sideband[i], sideband_bytes());
	if (ring->counts)
		munmap((void *)ring->counts, ring->counts_bytes);
	ring_buffer__free(ring->buffer);
	if (ring->epoll_fd >= 0)
		close(ring->epoll_fd);
	map_free(ring->known);
	vec_fini(&ring->gone);
	str_fini(&ring->held);
	free(ring);
}

int ring_fd(const struct ring *ring)
{
	return ring->epoll_fd;
}

/* The kernel writes at data_head, we read from data_tail; both count bytes for ever. */
static const void *record_at(struct ring *ring, const unsigned char *data, size_t size,
			     uint64_t tail, size_t bytes)
{
	size_t at = tail & (size - 1), first = size - at;

	if (first >= bytes)
		return data + at;
	memcpy(ring->wrapped, data + at, first);
	memcpy(ring->wrapped + first, data, bytes - first);
	return ring->wrapped;
}

static struct err *drain_one(struct ring *ring, struct perf_event_mmap_page *page)
{
	const unsigned char *data = (const unsigned char *)page + page->data_offset;
	size_t size = page->data_size;
	uint64_t head = __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
	uint64_t tail = page->data_tail;
	struct err *err = NULL;

	for (size_t records = 0; tail != head && !err && records < RING_DRAIN_MAX;
	     records++) {
		struct perf_event_header header;

		memcpy(&header, record_at(ring, data, size, tail, sizeof(header)),
		       sizeof(header));
		if (header.size < sizeof(header) || header.size > head - tail) {
			/* Nothing behind it can be found any more. */
			tail = head;
			err = err_new(ERR_FORMAT, "perf side-band: damaged ring");
			break;
		}
		err = sideband_convert(record_at(ring, data, size, tail, header.size),
				       header.size, &ring->held);
		tail += header.size;
	}
	__atomic_store_n(&page->data_tail, tail, __ATOMIC_RELEASE);
	return err;
}

static bool is_drained(const struct perf_event_mmap_page *page)
{
	return page->data_tail == __atomic_load_n(&page->data_head, __ATOMIC_ACQUIRE);
}

static struct err *drain_sideband(struct ring *ring, bool *ret_more)
{
	struct err *err = NULL;

	for (size_t i = 0; i < ring->sideband_count && !err; i++) {
		err = drain_one(ring, ring->sideband[i]);
		*ret_more = *ret_more || !is_drained(ring->sideband[i]);
	}
	return err;
}

static bool passes(const struct ring *ring, const struct abi_head *head)
{
	return head->kind != ABI_MMAP || ring->filter & ABI_FILTER_ALL ||
	       map_find(ring->known, &head->pid);
}

static void release_held(struct ring *ring)
{
	struct abi_head head;

	for (size_t at = 0; at < ring->held.length; at += head.size) {
		memcpy(&head, ring->held.data + at, sizeof(head));
		if (passes(ring, &head))
			ring->call(ring->ctx, ring->held.data + at, head.size);
	}
	str_clear(&ring->held);
	vec_each(&ring->gone, pid)
		map_del(ring->known, pid);
	vec_clear(&ring->gone);
}

struct err *ring_drain(struct ring *ring, ring_fn call, void *ctx, bool *ret_more)
{
	struct err *err = NULL;
	bool more = false;

	ring->call = call;
	ring->ctx = ctx;
	ring->drained = 0;
	if (!ring->held.length)
		err = drain_sideband(ring, &more);
	int status = ring_buffer__consume(ring->buffer);

	if (status == -EAGAIN)
		more = true;
	else
		release_held(ring);
	if (status < 0 && status != -EAGAIN && !err)
		err = err_errno(-status, "read the ring");
	if (ret_more)
		*ret_more = more;
	return err;
}

void ring_counts(const struct ring *ring, struct abi_count ret_counts[ABI_KINDS])
{
	memset(ret_counts, 0, ABI_KINDS * sizeof(*ret_counts));
	for (size_t cpu = 0; cpu < ABI_MAX_CPUS; cpu++)
		for (size_t kind = 0; kind < ABI_KINDS; kind++) {
			const struct abi_count *count = &ring->counts->cpu[cpu][kind];

			ret_counts[kind].seen +=
				__atomic_load_n(&count->seen, __ATOMIC_RELAXED);
			ret_counts[kind].dropped +=
				__atomic_load_n(&count->dropped, __ATOMIC_RELAXED);
		}
}

struct err *ring_set_filter(struct ring *ring, uint32_t flags)
{
	struct abi_filter filter = { .flags = flags };
	uint32_t zero = 0;

	if (bpf_map_update_elem(fd_of(ring, PROBE_FD_FILTER), &zero, &filter, BPF_ANY))
		return err_errno(errno, "set the filter");
	ring->filter = flags;
	return NULL;
}

static struct err *set_add(const struct ring *ring, enum probe_fd set, const void *key,
			   const char *what)
{
	uint8_t one = 1;

	if (!bpf_map_update_elem(fd_of(ring, set), key, &one, BPF_ANY))
		return NULL;
	if (errno == E2BIG)
		return err_new(ERR_LIMIT, "too many %s at once", what);
	return err_errno(errno, "add to the %s", what);
}

static struct err *set_del(const struct ring *ring, enum probe_fd set, const void *key,
			   const char *what)
{
	if (!bpf_map_delete_elem(fd_of(ring, set), key) || errno == ENOENT)
		return NULL;
	return err_errno(errno, "remove from the %s", what);
}

struct err *ring_add_pid(struct ring *ring, uint32_t pid)
{
	TRY(set_del(ring, PROBE_FD_SELF_PIDS, &pid, "agent's own processes"));
	TRY(set_add(ring, PROBE_FD_TARGET_PIDS, &pid, "target processes"));
	know(ring, pid);
	return NULL;
}

struct err *ring_del_pid(struct ring *ring, uint32_t pid)
{
	map_del(ring->known, &pid);
	return set_del(ring, PROBE_FD_TARGET_PIDS, &pid, "target processes");
}

struct err *ring_add_cgroup(struct ring *ring, uint64_t cgroup_id)
{
	return set_add(ring, PROBE_FD_TARGET_CGROUPS, &cgroup_id, "target cgroups");
}

struct err *ring_del_cgroup(struct ring *ring, uint64_t cgroup_id)
{
	return set_del(ring, PROBE_FD_TARGET_CGROUPS, &cgroup_id, "target cgroups");
}

struct err *ring_add_self(struct ring *ring, uint32_t pid)
{
	return set_add(ring, PROBE_FD_SELF_PIDS, &pid, "agent's own processes");
}

struct err *ring_set_fp_ok(struct ring *ring, uint32_t pid, bool is_ok)
{
	if (is_ok)
		return set_add(ring, PROBE_FD_FP_OK, &pid,
			       "processes with frame pointers");
	return set_del(ring, PROBE_FD_FP_OK, &pid, "processes with frame pointers");
}
