// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis.h"

#include <errno.h>
#include <signal.h>
#include <stdlib.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/file.h"
#include "core/mem.h"
#include "resource/asleep.h"
#include "resource/findings.h"

struct diagnosis {
	struct diagnosis_config config;
	struct ledger *ledger;
	struct findings *findings;
	struct asleep *asleep;
	struct arena *arena; /* texts of declared resources; a plan may go before them */
};

/* What every program has, whether or not a spec knows it. */
static const struct resource_info generics[] = {
	{ .resource_id = ABI_GENERIC_LOCK,
	  .name = "mutex",
	  .title = "mutex (libc)",
	  .unit = "",
	  .kind = RESOURCE_LOCK,
	  .advice = "look at what its holder does meanwhile: assay stacks" },
	{ .resource_id = ABI_GENERIC_MEMORY,
	  .name = "memory",
	  .title = "resident memory",
	  .unit = "bytes",
	  .kind = RESOURCE_GAUGE },
	{ .resource_id = ABI_GENERIC_MAPPED,
	  .name = "address-space",
	  .title = "address space",
	  .unit = "bytes",
	  .kind = RESOURCE_GAUGE },
	{ .resource_id = ABI_GENERIC_THREADS,
	  .name = "threads",
	  .title = "threads",
	  .unit = "threads",
	  .kind = RESOURCE_GAUGE },
	{ .resource_id = ABI_GENERIC_FILES,
	  .name = "descriptors",
	  .title = "open file descriptors",
	  .unit = "descriptors",
	  .kind = RESOURCE_GAUGE },
	{ .resource_id = ABI_GENERIC_BACKLOG,
	  .name = "accept-queue",
	  .title = "connections that nobody has accepted yet",
	  .unit = "connections",
	  .kind = RESOURCE_GAUGE },
	{ .resource_id = ABI_GENERIC_UNREAD,
	  .name = "socket-delay",
	  .title = "how long received bytes wait to be read",
	  .unit = "ms",
	  .kind = RESOURCE_GAUGE },
};

static void put_resource(struct diagnosis *diagnosis, const struct resource_info *info)
{
	struct fact fact = { .kind = FACT_RESOURCE };

	fact.resource = (struct fact_resource){
		info->resource_id,
		info->spec,
		info->name,
		info->title,
		resource_kind_name(info->kind),
		info->unit,
		info->capacity,
	};
	ledger_declare(diagnosis->ledger, info);
	sink_put(diagnosis->config.sink, &fact);
}

static void declare_generic(struct diagnosis *diagnosis)
{
	for (size_t i = 0; i < sizeof(generics) / sizeof(generics[0]); i++) {
		struct resource_info info = generics[i];

		info.spec = "system";
		info.advice = info.advice ? info.advice : "";
		put_resource(diagnosis, &info);
	}
}

struct diagnosis *diagnosis_new(const struct diagnosis_config *config)
{
	struct diagnosis *diagnosis = mem_alloc(sizeof(*diagnosis));
	struct findings_config findings = { config->run_id, config->realtime_offset_ns,
					    config->sink };

	diagnosis->config = *config;
	diagnosis->ledger = ledger_new();
	diagnosis->findings = findings_new(&findings);
	diagnosis->asleep = asleep_new(diagnosis->ledger);
	diagnosis->arena = arena_new();
	declare_generic(diagnosis);
	return diagnosis;
}

void diagnosis_free(struct diagnosis *diagnosis)
{
	if (!diagnosis)
		return;
	findings_free(diagnosis->findings);
	asleep_free(diagnosis->asleep);
	ledger_free(diagnosis->ledger);
	arena_free(diagnosis->arena);
	free(diagnosis);
}

static const char *keep(struct diagnosis *diagnosis, const char *text)
{
	return text ? arena_strdup(diagnosis->arena, text) : "";
}

static uint64_t other_id(const struct plan *plan, const char *name)
{
	return name ? plan_resource_id(plan->spec, name) : 0;
}

void diagnosis_declare(struct diagnosis *diagnosis, const struct plan *plan)
{
	for (size_t i = 0; i < plan->variant->resource_count; i++) {
		const struct spec_resource *from = &plan->variant->resources[i];
		struct resource_info info = {
			.resource_id = plan_resource_id(plan->spec, from->name),
			.spec = keep(diagnosis, plan->spec->name),
			.name = keep(diagnosis, from->name),
			.title = keep(diagnosis, from->title),
			.unit = keep(diagnosis, from->unit),
			.advice = keep(diagnosis, from->advice),
			.kind = (enum resource_kind)from->kind,
			.key = (enum resource_key)from->key,
			.capacity = from->capacity,
			.pinned_by = other_id(plan, from->pinned_by),
			.feeds = other_id(plan, from->feeds),
			.stale = from->stale,
			.has_stale = from->has_stale,
			.names_task = from->names_task,
		};

		put_resource(diagnosis, &info);
	}
}

void diagnosis_place(struct diagnosis *diagnosis, uint32_t slot, const char *function)
{
	ledger_place(diagnosis->ledger, slot, function);
}

void diagnosis_switch(struct diagnosis *diagnosis, uint64_t resource_id, bool on)
{
	ledger_switch(diagnosis->ledger, resource_id, on, clock_ns());
}

/* A word in memory is an owner only if it names a thread of the process. */
static bool has_thread(const struct event *event)
{
	return event->sleep.owner &&
	       (!syscall(SYS_tgkill, event->head.pid, event->sleep.owner, 0) ||
		errno == EPERM);
}

void diagnosis_observe(struct diagnosis *diagnosis, const struct event *event)
{
	struct event asleep = *event;

	if (event->head.kind == ABI_SLEEP && !has_thread(event))
		asleep.sleep.flags &= ~(uint32_t)ABI_SLEEP_LOCK;
	ledger_feed(diagnosis->ledger, event);
	asleep_feed(diagnosis->asleep, &asleep);
}

void diagnosis_asleep(struct diagnosis *diagnosis, const struct asleep_place *place)
{
	asleep_place(diagnosis->asleep, place);
}

void diagnosis_step(struct diagnosis *diagnosis, uint64_t now_ns)
{
	const struct diagnosis_config *config = &diagnosis->config;

	struct ledger_run run = { config->run_id, config->realtime_offset_ns,
				  config->sink };

	asleep_walk(diagnosis->asleep, now_ns - DIAGNOSIS_DELAY_NS);
	if (!ledger_walk(diagnosis->ledger, now_ns - DIAGNOSIS_DELAY_NS))
		return;
	ledger_put(diagnosis->ledger, &run);
	findings_update(diagnosis->findings, diagnosis->ledger, now_ns);
}
