// SPDX-License-Identifier: Apache-2.0
/*
 * perf's side-band as the agent's own: tasks, mappings, the kernel's modules, losses.
 * Records that perf made up for what ran before have the time 0; they sort first.
 */
#include <stdio.h>
#include <string.h>

#include "model/fact.h"
#include "perfdata/perfdata_impl.h"

#define PROT_EXECUTE	  4
#define KERNEL_PID	  0xffffffffu
#define KERNEL_LINK_VA	  0xffffffff81000000ull /* as the agent's own kernel module */
#define KERNEL_END	  0xffffffffc0000000ull /* where modules begin */
#define KERNEL_ALIGN	  (2ull << 20)		/* of KASLR */
#define KSYMBOL_UNLOADED  1
#define UNNAMED_SEED	  9 /* modules without a build-id */
#define KERNEL_IMAGE_PATH "[kernel]"

/* What stands behind every record when the events say so: whose, and when. */
struct trailer {
	uint32_t pid, tid;
	uint64_t time_ns;
};

#define FLAG_SAMPLE_ID_ALL (1ull << 18)

/* The layout of the first event holds for all: perf sees to that. */
static struct trailer trailer_of(const struct perfdata *perf, const struct bytes *body)
{
	const struct attr *attr = perf->attrs.data;
	struct trailer trailer = { 0 };

	if (!perf->attrs.count || !(attr->flags & FLAG_SAMPLE_ID_ALL))
		return trailer;
	uint64_t type = attr->sample_type;
	size_t bytes =
		8 * (size_t)__builtin_popcountll(type & (SAMPLE_TID | SAMPLE_TIME |
							 SAMPLE_ID | SAMPLE_STREAM_ID |
							 SAMPLE_CPU | SAMPLE_IDENTIFIER));

	if (bytes > body->size)
		return trailer;
	struct bytes in = { body->data + body->size - bytes, bytes, 0, false };

	if (type & SAMPLE_TID) {
		trailer.pid = take_u32(&in);
		trailer.tid = take_u32(&in);
	}
	if (type & SAMPLE_TIME)
		trailer.time_ns = take_u64(&in);
	return trailer;
}

static void put_event(struct perfdata *perf, const void *record, size_t bytes,
		      const char *tail)
{
	struct abi_head head;
	size_t tail_bytes = tail ? strlen(tail) + 1 : 0;

	memcpy(&head, record, sizeof(head));
	head.size = (uint32_t)(bytes + tail_bytes);
	str_clear(&perf->out);
	str_add_bytes(&perf->out, &head, sizeof(head));
	str_add_bytes(&perf->out, (const char *)record + sizeof(head),
		      bytes - sizeof(head));
	if (tail)
		str_add_bytes(&perf->out, tail, tail_bytes);
	put_out(perf);
}

/* Tasks. */

static void on_comm(struct perfdata *perf, const struct record_head *head,
		    struct bytes body)
{
	struct trailer trailer = trailer_of(perf, &body);
	struct abi_task task = { .head = { .kind = ABI_TASK,
					   .time_ns = trailer.time_ns } };

	task.head.pid = take_u32(&body);
	task.head.tid = take_u32(&body);
	const char *name = take_text(&body);
	uint32_t pid = task.head.pid;
	bool is_exec = head->misc & MISC_COMM_EXEC;

	/* A new name of a process that is known, or of one of its threads. */
	if (!is_exec && (task.head.tid != pid || map_find(perf->starts, &pid)))
		return;
	task.op = is_exec ? ABI_TASK_EXEC : ABI_TASK_SEEN;
	memcpy(task.comm, name, strnlen(name, ABI_COMM_BYTES - 1));
	if (map_count(perf->starts) < PERFDATA_MAX_PROCESSES)
		map_put(perf->starts, &pid, NULL);
	put_event(perf, &task, sizeof(task), NULL);
}

static void on_task(struct perfdata *perf, const struct record_head *head,
		    struct bytes body)
{
	struct abi_task task = { .head = { .kind = ABI_TASK } };
	uint32_t pid = take_u32(&body), parent = take_u32(&body);
	uint32_t tid = take_u32(&body);

	take_u32(&body); /* the thread that forked */
	task.head.time_ns = take_u64(&body);
	task.head.pid = pid;
	task.head.tid = tid;
	if (body.bad)
		return;
	task.op = head->type == RECORD_FORK ? ABI_TASK_FORK : ABI_TASK_EXIT;
	if (task.op == ABI_TASK_FORK)
		task.parent_pid = parent;
	put_event(perf, &task, sizeof(task), NULL);
}

/* Mappings. */

static void put_kernel(struct perfdata *perf, uint64_t addr, uint64_t bytes,
		       const char *path, uint64_t time_ns)
{
	bool is_image = str_starts(path, "[kernel.kallsyms]");
	const char *slash = strrchr(path, '/');
	const struct build_id *id =
		build_id_of_path(perf, is_image ? "[kernel.kallsyms]" : path);
	char name[ABI_COMM_BYTES * 4];
	struct abi_module module = {
		.head = { .kind = ABI_MODULE, .time_ns = time_ns },
		.base = addr,
		.length = bytes,
		.kind = is_image ? ABI_MODULE_KERNEL : ABI_MODULE_KMOD,
	};

	if (is_image) {
		snprintf(name, sizeof(name), KERNEL_IMAGE_PATH);
		module.base_va = KERNEL_LINK_VA + addr % KERNEL_ALIGN;
		if (addr < KERNEL_END && module.length > KERNEL_END - addr)
			module.length = KERNEL_END - addr;
	} else if (*path == '[') {
		snprintf(name, sizeof(name), "%.60s", path);
	} else {
		path = slash ? slash + 1 : path;
		snprintf(name, sizeof(name), "[%.*s]", (int)strcspn(path, "."), path);
	}
	if (id) {
		module.build_id_bytes = id->size;
		memcpy(module.build_id, id->bytes, id->size);
	}
	module.module_id = id ? module_id_of(id) : hash_text(name, UNNAMED_SEED);
	module.path_bytes = (uint32_t)strlen(name) + 1;
	put_event(perf, &module, sizeof(module), name);
}

static void put_mapping(struct perfdata *perf, struct abi_mmap *mmap, const char *path)
{
	const struct build_id *id = build_id_of_path(perf, path);

	if (id && !mmap->build_id_bytes) {
		mmap->build_id_bytes = id->size;
		memcpy(mmap->build_id, id->bytes, id->size);
		mmap->inode = 0;
		mmap->dev_major = mmap->dev_minor = 0;
	}
	mmap->path_bytes = (uint16_t)(strnlen(path, ABI_PATH_MAX - 1) + 1);
	if (strlen(path) < ABI_PATH_MAX)
		put_event(perf, mmap, sizeof(*mmap), path);
}

/*
 * The inode, or the build-id when the recording asked for it. The bit alone does not say
 * so: Linux lets it leak into the records of others when somebody on the machine asks.
 */
static void take_identity(const struct perfdata *perf, const struct record_head *head,
			  struct bytes *body, struct abi_mmap *mmap)
{
	struct bytes raw = { take_bytes(body, 24), 24, 0, false };

	if (!raw.data)
		return;
	if (!(head->misc & MISC_BUILD_ID) || !perf->has_build_ids) {
		mmap->dev_major = take_u32(&raw);
		mmap->dev_minor = take_u32(&raw);
		mmap->inode = take_u64(&raw);
	} else if (raw.data[0] && raw.data[0] <= BUILD_ID_MAX) {
		mmap->build_id_bytes = raw.data[0];
		memcpy(mmap->build_id, raw.data + 4, raw.data[0]);
	}
}

static void on_mmap(struct perfdata *perf, const struct record_head *head,
		    struct bytes body)
{
	struct trailer trailer = trailer_of(perf, &body);
	struct abi_mmap mmap = { .head = { .kind = ABI_MMAP,
					   .time_ns = trailer.time_ns } };
	bool is_code = !(head->misc & MISC_MMAP_DATA);

	mmap.head.pid = take_u32(&body);
	mmap.head.tid = take_u32(&body);
	mmap.addr = take_u64(&body);
	mmap.length = take_u64(&body);
	mmap.pgoff = take_u64(&body);
	if (head->type == RECORD_MMAP2) {
		take_identity(perf, head, &body, &mmap);
		is_code = take_u32(&body) & PROT_EXECUTE;
		take_u32(&body);
	}
	const char *path = take_text(&body);

	if (body.bad || !mmap.length)
		return;
	if (mmap.head.pid == KERNEL_PID) {
		if ((head->misc & MISC_CPUMODE) == MISC_KERNEL)
			put_kernel(perf, mmap.addr, mmap.length, path, trailer.time_ns);
	} else if (is_code) {
		put_mapping(perf, &mmap, path);
	}
}

static void on_ksymbol(struct perfdata *perf, struct bytes body)
{
	struct trailer trailer = trailer_of(perf, &body);
	uint64_t addr = take_u64(&body);
	uint32_t bytes = take_u32(&body), flags = take_u32(&body) >> 16;
	char name[ABI_COMM_BYTES * 4];

	snprintf(name, sizeof(name), "[%.60s]", take_text(&body));
	if (!body.bad && bytes && !(flags & KSYMBOL_UNLOADED))
		put_kernel(perf, addr, bytes, name, trailer.time_ns);
}

static void on_lost(struct perfdata *perf, const struct record_head *head,
		    struct bytes body)
{
	struct trailer trailer = trailer_of(perf, &body);
	struct abi_loss loss = { .head = { .kind = ABI_LOSS, .time_ns = trailer.time_ns },
				 .kind = ABI_ACCESS,
				 .reason = LOSS_RING };

	if (head->type == RECORD_LOST)
		take_u64(&body); /* the event's id */
	loss.lost = loss.seen = take_u64(&body);
	if (body.bad || !loss.lost)
		return;
	perf->stats.lost += loss.lost;
	put_event(perf, &loss, sizeof(loss), NULL);
}

void side_take(struct perfdata *perf, const struct record_head *head, struct bytes body)
{
	switch (head->type) {
	case RECORD_MMAP:
	case RECORD_MMAP2:
		on_mmap(perf, head, body);
		break;
	case RECORD_COMM:
		on_comm(perf, head, body);
		break;
	case RECORD_FORK:
	case RECORD_EXIT:
		on_task(perf, head, body);
		break;
	case RECORD_KSYMBOL:
		on_ksymbol(perf, body);
		break;
	case RECORD_LOST:
	case RECORD_LOST_SAMPLES:
		on_lost(perf, head, body);
		break;
	default:
		break;
	}
}
