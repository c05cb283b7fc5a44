// SPDX-License-Identifier: Apache-2.0
/*
 * What the file's events are. An event's kind of source follows from its PMU type where
 * that is fixed by the ABI, else from the PMU's name and from how perf called it; so it
 * is settled when all of these are read. What has no precise address is taken to lie
 * behind the access, as with the clock.
 */
#include <inttypes.h>
#include <stdio.h>
#include <string.h>

#include "perfdata/perfdata_impl.h"

/* perf_event_attr: offsets of what is used, and the bits of its flags. */
#define ATTR_MIN_BYTES	 64 /* PERF_ATTR_SIZE_VER0 */
#define ATTR_MAX_BYTES	 4096
#define FLAG_FREQ	 (1ull << 10)
#define FLAG_PRECISE	 15 /* two bits */
#define FLAG_BUILD_ID	 (1ull << 34)
#define DESC_MAX_EVENTS	 4096
#define BUILD_ID_BYTES	 24 /* as build_id events have it: 20, and 4 of padding */
#define CLOCK_DATA_KNOWN 1

enum pmu_type {
	PMU_HARDWARE,
	PMU_SOFTWARE,
	PMU_TRACEPOINT,
	PMU_CACHE,
	PMU_RAW,
	PMU_BREAKPOINT
};
enum software {
	SOFTWARE_CPU_CLOCK,
	SOFTWARE_TASK_CLOCK,
	SOFTWARE_PAGE_FAULTS,
	SOFTWARE_MIN_FAULTS = 5,
	SOFTWARE_MAJ_FAULTS
};

static uint64_t u64_at(const struct bytes *in, size_t off)
{
	uint64_t value = 0;

	if (off + sizeof(value) <= in->size)
		memcpy(&value, in->data + off, sizeof(value));
	return value;
}

static uint32_t u32_at(const struct bytes *in, size_t off)
{
	uint32_t value = 0;

	if (off + sizeof(value) <= in->size)
		memcpy(&value, in->data + off, sizeof(value));
	return value;
}

static void add_id(struct perfdata *perf, uint64_t id, uint32_t index)
{
	if (map_count(perf->ids) < PERFDATA_MAX_IDS)
		*(uint32_t *)map_put(perf->ids, &id, NULL) = index;
}

struct err *attr_add(struct perfdata *perf, struct bytes attr, struct bytes ids)
{
	struct attr out = { 0 };

	if (attr.size < ATTR_MIN_BYTES || attr.size > ATTR_MAX_BYTES)
		return err_new(ERR_FORMAT, "an event's description of %zu bytes",
			       attr.size);
	if (perf->attrs.count >= PERFDATA_MAX_ATTRS)
		return err_new(ERR_LIMIT, "more than %d events", PERFDATA_MAX_ATTRS);
	out.type = u32_at(&attr, 0);
	out.config = u64_at(&attr, 8);
	out.period = u64_at(&attr, 16);
	out.sample_type = u64_at(&attr, 24);
	out.read_format = u64_at(&attr, 32);
	out.flags = u64_at(&attr, 40);
	out.branch_type = u64_at(&attr, 72);
	out.regs_user = u64_at(&attr, 80);
	out.regs_intr = u64_at(&attr, 96);
	out.is_freq = out.flags & FLAG_FREQ;
	out.precise = out.flags >> FLAG_PRECISE & 3;
	perf->has_build_ids |= !!(out.flags & FLAG_BUILD_ID);
	vec_push(&perf->attrs, out);
	while (ids.at + sizeof(uint64_t) <= ids.size)
		add_id(perf, take_u64(&ids), (uint32_t)perf->attrs.count - 1);
	attrs_settle(perf);
	return NULL;
}

/* Sources. */

static const char *pmu_name(const struct perfdata *perf, uint32_t type)
{
	const char *name = map_find(perf->pmus, &type);

	return name ? name : "";
}

static enum abi_source software_source(uint64_t config)
{
	switch (config) {
	case SOFTWARE_CPU_CLOCK:
	case SOFTWARE_TASK_CLOCK:
		return ABI_SOURCE_CLOCK;
	case SOFTWARE_PAGE_FAULTS:
	case SOFTWARE_MIN_FAULTS:
	case SOFTWARE_MAJ_FAULTS:
		return ABI_SOURCE_PAGE_FAULT;
	default:
		return ABI_SOURCE_CYCLES;
	}
}

static enum abi_source source_of(const struct perfdata *perf, const struct attr *attr)
{
	if (attr->type == PMU_SOFTWARE)
		return software_source(attr->config);
	if (attr->type == PMU_BREAKPOINT)
		return ABI_SOURCE_BREAKPOINT;
	if (str_starts(pmu_name(perf, attr->type), "ibs_op"))
		return ABI_SOURCE_IBS;
	if (strstr(attr->name, "mem-stores"))
		return ABI_SOURCE_PEBS_STORE;
	if (strstr(attr->name, "mem-loads"))
		return ABI_SOURCE_PEBS_LOAD;
	return attr->precise ? ABI_SOURCE_PRECISE : ABI_SOURCE_CYCLES;
}

/* For want of a name in the file. */
static void name_attr(const struct perfdata *perf, struct attr *attr)
{
	static const char *const software[] = { "cpu-clock", "task-clock",
						"page-faults" };
	const char *pmu = pmu_name(perf, attr->type);

	if (attr->type == PMU_SOFTWARE && attr->config < 3)
		snprintf(attr->name, sizeof(attr->name), "%s", software[attr->config]);
	else if (attr->type == PMU_HARDWARE && !attr->config)
		snprintf(attr->name, sizeof(attr->name), "cycles");
	else
		snprintf(attr->name, sizeof(attr->name), "%.40s/%#" PRIx64 "/",
			 *pmu ? pmu : "event", attr->config);
}

void attrs_settle(struct perfdata *perf)
{
	char *out = perf->meta.events;
	size_t room = sizeof(perf->meta.events), used = 0;

	*out = 0;
	vec_each(&perf->attrs, attr) {
		struct attr named = *attr;

		attr->source = source_of(perf, attr);
		if (!*named.name)
			name_attr(perf, &named);
		int wrote = snprintf(out + used, room - used, "%s%s %" PRIu64 "%s",
				     used ? ", " : "", named.name, attr->period,
				     attr->is_freq ? " Hz" : "");

		if (wrote < 0 || (size_t)wrote >= room - used)
			break;
		used += (size_t)wrote;
	}
}

/*
 * Which event a sample belongs to: by its id, which stands where all events of the file
 * have it: first, or behind the address.
 */
const struct attr *attr_of_sample(const struct perfdata *perf, const struct bytes *body)
{
	const struct attr *first = perf->attrs.data;
	size_t off = 0;

	if (!perf->attrs.count)
		return NULL;
	uint64_t type = first->sample_type;

	if (perf->attrs.count == 1)
		return first;
	if (!(type & (SAMPLE_IDENTIFIER | SAMPLE_ID)))
		return NULL;
	if (!(type & SAMPLE_IDENTIFIER))
		off = 8 *
		      (size_t)__builtin_popcountll(type & (SAMPLE_IP | SAMPLE_TID |
							   SAMPLE_TIME | SAMPLE_ADDR));
	uint64_t id = u64_at(body, off);
	const uint32_t *index = map_find(perf->ids, &id);

	return index ? &perf->attrs.data[*index] : NULL;
}

/* Features. */

/* A text as the header has them: u32 size, then so many bytes with a NUL among them. */
static const char *take_string(struct bytes *in)
{
	uint32_t size = take_u32(in);
	const char *text = take_bytes(in, size);

	if (text && memchr(text, 0, size))
		return text;
	in->bad = true;
	return "";
}

static void rename_event(struct perfdata *perf, uint64_t id, const char *name)
{
	const uint32_t *index = map_find(perf->ids, &id);

	if (index)
		snprintf(perf->attrs.data[*index].name, PERFDATA_EVENT_BYTES, "%.63s",
			 name);
}

static void take_descriptions(struct perfdata *perf, struct bytes *in)
{
	uint32_t count = take_u32(in), attr_bytes = take_u32(in);

	for (uint32_t i = 0; i < count && i < DESC_MAX_EVENTS && !in->bad; i++) {
		take_bytes(in, attr_bytes);
		uint32_t ids = take_u32(in);
		const char *name = take_string(in);

		/* An event of all CPUs without a list of ids is told by its place. */
		if (!ids && i < perf->attrs.count)
			snprintf(perf->attrs.data[i].name, PERFDATA_EVENT_BYTES, "%.63s",
				 name);
		for (uint32_t j = 0; j < ids && !in->bad; j++)
			rename_event(perf, take_u64(in), name);
	}
}

static void take_pmus(struct perfdata *perf, struct bytes *in)
{
	uint32_t count = take_u32(in);

	for (uint32_t i = 0; i < count && i < DESC_MAX_EVENTS && !in->bad; i++) {
		uint32_t type = take_u32(in);
		const char *name = take_string(in);

		snprintf(map_put(perf->pmus, &type, NULL), PERFDATA_EVENT_BYTES, "%.63s",
			 name);
	}
}

static void take_clock(struct perfdata *perf, struct bytes *in)
{
	uint32_t version = take_u32(in);

	take_u32(in); /* which clock: its time is all that matters */
	uint64_t wall_ns = take_u64(in), clock_ns = take_u64(in);

	if (in->bad || version != CLOCK_DATA_KNOWN)
		return;
	perf->meta.realtime_offset_ns = (int64_t)(wall_ns - clock_ns);
	perf->has_clock = true;
}

/* The file was last written when its last sample was taken: as good as a clock. */
static void take_sample_time(struct perfdata *perf, struct bytes *in)
{
	uint64_t first_ns = take_u64(in), last_ns = take_u64(in);

	if (in->bad || !first_ns || first_ns > last_ns)
		return;
	perf->first_ns = first_ns;
	if (!perf->has_clock)
		perf->meta.realtime_offset_ns =
			(int64_t)((uint64_t)perf->mtime_ns - last_ns);
}

static void take_word(char *room, size_t bytes, struct bytes *in)
{
	snprintf(room, bytes, "%s", take_string(in));
}

static struct err *take_build_ids(struct perfdata *perf, struct bytes *in)
{
	while (in->at < in->size && !in->bad) {
		struct record_head head;
		const void *start = take_bytes(in, sizeof(head));

		if (!start)
			break;
		memcpy(&head, start, sizeof(head));
		if (head.size < sizeof(head))
			return err_new(ERR_FORMAT, "the list of build-ids is damaged");
		struct bytes body = { take_bytes(in, head.size - sizeof(head)),
				      head.size - sizeof(head), 0, false };

		if (body.data)
			build_id_take(perf, &head, body);
	}
	return NULL;
}

struct err *feature_take(struct perfdata *perf, uint64_t feature, struct bytes in)
{
	struct perfdata_meta *meta = &perf->meta;

	switch (feature) {
	case FEATURE_BUILD_ID:
		return take_build_ids(perf, &in);
	case FEATURE_HOSTNAME:
		take_word(meta->host, sizeof(meta->host), &in);
		break;
	case FEATURE_OSRELEASE:
		take_word(meta->kernel, sizeof(meta->kernel), &in);
		break;
	case FEATURE_VERSION:
		take_word(meta->version, sizeof(meta->version), &in);
		break;
	case FEATURE_ARCH:
		take_word(meta->arch, sizeof(meta->arch), &in);
		perf->is_foreign_arch = strcmp(meta->arch, "x86_64") != 0;
		break;
	case FEATURE_EVENT_DESC:
		take_descriptions(perf, &in);
		break;
	case FEATURE_PMU_MAPPINGS:
		take_pmus(perf, &in);
		break;
	case FEATURE_SAMPLE_TIME:
		take_sample_time(perf, &in);
		break;
	case FEATURE_CLOCK_DATA:
		take_clock(perf, &in);
		break;
	default:
		return NULL;
	}
	attrs_settle(perf);
	return NULL;
}

/* Build-ids. */

static uint64_t path_key(const char *path)
{
	return hash_text(path, 0);
}

void build_id_take(struct perfdata *perf, const struct record_head *head,
		   struct bytes body)
{
	struct build_id id = { .size = BUILD_ID_MAX };

	take_u32(&body); /* pid: of a guest's host, or -1 */
	const uint8_t *raw = take_bytes(&body, BUILD_ID_BYTES);
	const char *path = take_text(&body);

	if (!raw || !*path)
		return;
	if (head->misc & MISC_BUILD_ID_SIZE)
		id.size = raw[BUILD_ID_MAX];
	if (!id.size || id.size > BUILD_ID_MAX)
		return;
	memcpy(id.bytes, raw, id.size);
	uint64_t key = path_key(path);

	if (map_count(perf->build_ids) < PERFDATA_MAX_BUILD_IDS)
		*(struct build_id *)map_put(perf->build_ids, &key, NULL) = id;
}

const struct build_id *build_id_of_path(const struct perfdata *perf, const char *path)
{
	uint64_t key = path_key(path);

	return map_find(perf->build_ids, &key);
}

#define UPDATE_NAME 2

void event_update_take(struct perfdata *perf, struct bytes body)
{
	uint64_t what = take_u64(&body), id = take_u64(&body);
	const char *name = take_text(&body);

	if (what != UPDATE_NAME || body.bad)
		return;
	rename_event(perf, id, name);
	attrs_settle(perf);
}
