// SPDX-License-Identifier: Apache-2.0
/*
 * libbpf 1.1 does not know uprobe_multi, and its header not the attribute: the struct
 * below is the kernel's union bpf_attr as far as BPF_LINK_CREATE reads it. The file is
 * named by /proc/self/fd, so what is probed is what was opened, whatever its path names
 * meanwhile or in another mount namespace.
 */
#include "probe/attach.h"

#include <bpf/bpf.h>
#include <errno.h>
#include <fcntl.h>
#include <linux/perf_event.h>
#include <stdio.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/file.h"
#include "core/mem.h"
#include "core/vec.h"
#include "probe/closer.h"
#include "probe/pmu.h"

#define TRACE_UPROBE_MULTI  48 /* BPF_TRACE_UPROBE_MULTI */
#define UPROBE_MULTI_RETURN 1  /* BPF_F_UPROBE_MULTI_RETURN */
#define UPROBE_TYPE	    "/sys/bus/event_source/devices/uprobe/type"
#define UPROBE_RETURN	    "/sys/bus/event_source/devices/uprobe/format/retprobe"

struct link_create {
	uint32_t prog_fd, target_fd, attach_type, flags;
	struct {
		uint64_t path, offsets, ref_ctr_offsets, cookies;
		uint32_t cnt, flags, pid, pad;
	} multi;
};

struct attachment {
	struct loader_probe program;
	struct attach_request request; /* of its own: to attach again after a pause */
	VEC(int) links;
	VEC(int) events; /* perf events that links hold on to */
};

static void close_fd(struct closer *closer, int fd)
{
	if (closer)
		closer_close(closer, fd);
	else
		close(fd);
}

static void close_links(struct attachment *attachment, struct closer *closer)
{
	vec_each(&attachment->links, fd)
		close_fd(closer, *fd);
	vec_each(&attachment->events, fd)
		close_fd(closer, *fd);
	vec_clear(&attachment->links);
	vec_clear(&attachment->events);
}

void attach_close_by(struct attachment *attachment, struct closer *closer)
{
	if (!attachment)
		return;
	close_links(attachment, closer);
	if (attachment->request.file_fd >= 0)
		close(attachment->request.file_fd);
	free((void *)attachment->request.points);
	vec_fini(&attachment->links);
	vec_fini(&attachment->events);
	free(attachment);
}

void attach_close(struct attachment *attachment)
{
	attach_close_by(attachment, NULL);
}

static struct err *refused(int errnum, const struct attach_request *request)
{
	if (errnum == EINVAL || errnum == EIO || errnum == ENOTSUP)
		return err_new(ERR_INVALID, "the kernel takes no probe here: %s",
			       strerror(errnum));
	return err_errno(errnum, "attach %zu probes", request->count);
}

static struct err *attach_multi(struct attachment *attachment)
{
	const struct attach_request *request = &attachment->request;
	CLEANUP(free) uint64_t *offsets = mem_array(request->count, sizeof(*offsets));
	CLEANUP(free) uint64_t *semaphores = mem_array(request->count, sizeof(*offsets));
	CLEANUP(free) uint64_t *cookies = mem_array(request->count, sizeof(*cookies));
	char path[32];

	snprintf(path, sizeof(path), "/proc/self/fd/%d", request->file_fd);
	for (size_t i = 0; i < request->count; i++) {
		offsets[i] = request->points[i].offset;
		semaphores[i] = request->points[i].semaphore_off;
		cookies[i] = request->points[i].slot;
	}
	struct link_create attr = {
		.prog_fd = (uint32_t)attachment->program.fd,
		.attach_type = TRACE_UPROBE_MULTI,
		.multi = { .path = (uintptr_t)path,
			   .offsets = (uintptr_t)offsets,
			   .ref_ctr_offsets = (uintptr_t)semaphores,
			   .cookies = (uintptr_t)cookies,
			   .cnt = (uint32_t)request->count,
			   .flags = request->is_return ? UPROBE_MULTI_RETURN : 0,
			   .pid = request->pid },
	};
	int fd = (int)syscall(SYS_bpf, BPF_LINK_CREATE, &attr, sizeof(attr));

	if (fd < 0)
		return refused(errno, request);
	vec_push(&attachment->links, fd);
	return NULL;
}

/* Numbers that the kernel gives its uprobe PMU: its type, and the bit for returns. */
static struct err *read_pmu(uint32_t *ret_type, uint32_t *ret_bit)
{
	CLEANUP(free) char *type = NULL;
	CLEANUP(free) char *bit = NULL;

	TRY(file_read(UPROBE_TYPE, 64, &type, NULL));
	TRY(file_read(UPROBE_RETURN, 64, &bit, NULL));
	*ret_type = (uint32_t)strtoul(type, NULL, 10);
	if (sscanf(bit, "config:%u", ret_bit) != 1 || *ret_bit > 63)
		return err_new(ERR_UNSUPPORTED, "unknown format of the uprobe PMU: %s",
			       bit);
	return NULL;
}

static struct err *attach_one(struct attachment *attachment,
			      const struct perf_event_attr *attr, uint32_t slot)
{
	const struct attach_request *request = &attachment->request;
	LIBBPF_OPTS(bpf_link_create_opts, opts, .perf_event.bpf_cookie = slot);
	int event = pmu_open(attr, request->pid ? (int)request->pid : -1,
			     request->pid ? -1 : 0, -1);

	if (event < 0)
		return refused(-event, request);
	vec_push(&attachment->events, event);
	int link = bpf_link_create(attachment->program.fd, event, BPF_PERF_EVENT, &opts);

	if (link < 0)
		return refused(-link, request);
	vec_push(&attachment->links, link);
	return NULL;
}

static struct err *attach_each(struct attachment *attachment)
{
	const struct attach_request *request = &attachment->request;
	struct perf_event_attr attr = { .size = sizeof(attr) };
	char path[32];
	uint32_t bit;

	TRY(read_pmu(&attr.type, &bit));
	snprintf(path, sizeof(path), "/proc/self/fd/%d", request->file_fd);
	attr.uprobe_path = (uintptr_t)path;
	for (size_t i = 0; i < request->count; i++) {
		attr.probe_offset = request->points[i].offset;
		attr.config = (request->is_return ? 1ull << bit : 0) |
			      request->points[i].semaphore_off << 32;
		TRY(attach_one(attachment, &attr, request->points[i].slot));
	}
	return NULL;
}

static struct err *open_links(struct attachment *attachment)
{
	return attachment->program.is_multi ? attach_multi(attachment)
					    : attach_each(attachment);
}

struct err *attach_pause(struct attachment *attachment, bool pause)
{
	if (pause) {
		close_links(attachment, NULL);
		return NULL;
	}
	return attachment->links.count ? NULL : open_links(attachment);
}

/* A copy of @request that outlives it. */
static struct err *keep_request(struct attachment *attachment,
				const struct attach_request *request)
{
	size_t bytes = request->count * sizeof(*request->points);

	attachment->request = *request;
	attachment->request.points = memcpy(mem_alloc(bytes), request->points, bytes);
	attachment->request.file_fd = fcntl(request->file_fd, F_DUPFD_CLOEXEC, 3);
	return attachment->request.file_fd < 0 ? err_errno(errno, "attach: keep the file")
					       : NULL;
}

struct err *attach_open(const struct loader *loader, const struct attach_request *request,
			struct attachment **ret_attachment)
{
	if (!request->count || request->count > ATTACH_MAX_POINTS)
		return err_new(ERR_LIMIT, "%zu probes at once, of 1 to %d",
			       request->count, ATTACH_MAX_POINTS);
	for (size_t i = 0; i < request->count; i++)
		if (request->points[i].slot >= ABI_MAX_SLOTS ||
		    request->points[i].semaphore_off > UINT32_MAX)
			return err_new(ERR_LIMIT, "slot %u of %d",
				       request->points[i].slot, ABI_MAX_SLOTS);
	CLEANUP(attach_close)
	struct attachment *attachment = mem_alloc(sizeof(*attachment));

	attachment->program = loader_probe(loader);
	TRY(keep_request(attachment, request));
	TRY(open_links(attachment));
	*ret_attachment = take(attachment);
	return NULL;
}
