// SPDX-License-Identifier: Apache-2.0
#include "daemon/diagnosis.h"

#include <stdlib.h>

#include "core/arena.h"
#include "core/file.h"
#include "core/mem.h"
#include "resource/findings.h"

struct diagnosis {
	struct diagnosis_config config;
	struct ledger *ledger;
	struct findings *findings;
	struct arena *arena; /* texts of declared resources; a plan may go before them */
};

struct diagnosis *diagnosis_new(const struct diagnosis_config *config)
{
	struct diagnosis *diagnosis = mem_alloc(sizeof(*diagnosis));
	struct findings_config findings = { config->run_id, config->realtime_offset_ns,
					    config->sink };

	diagnosis->config = *config;
	diagnosis->ledger = ledger_new();
	diagnosis->findings = findings_new(&findings);
	diagnosis->arena = arena_new();
	return diagnosis;
}

void diagnosis_free(struct diagnosis *diagnosis)
{
	if (!diagnosis)
		return;
	findings_free(diagnosis->findings);
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
		struct fact fact = { .kind = FACT_RESOURCE };

		fact.resource = (struct fact_resource){
			info.resource_id,
			info.spec,
			info.name,
			info.title,
			resource_kind_name(info.kind),
			info.unit,
			info.capacity,
		};
		ledger_declare(diagnosis->ledger, &info);
		sink_put(diagnosis->config.sink, &fact);
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

void diagnosis_observe(struct diagnosis *diagnosis, const struct event *event)
{
	ledger_feed(diagnosis->ledger, event);
}

void diagnosis_step(struct diagnosis *diagnosis, uint64_t now_ns)
{
	const struct diagnosis_config *config = &diagnosis->config;

	if (!ledger_walk(diagnosis->ledger, now_ns - DIAGNOSIS_DELAY_NS))
		return;
	ledger_put(diagnosis->ledger, config->run_id, config->realtime_offset_ns,
		   config->sink);
	findings_update(diagnosis->findings, diagnosis->ledger, now_ns);
}
