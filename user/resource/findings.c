// SPDX-License-Identifier: Apache-2.0
/*
 * One entry per (application, resource, class). The figures are those of when it was
 * worst, because a diagnosis that is read afterwards should not show how it faded.
 */
#include "resource/findings.h"

#include <stdlib.h>
#include <string.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/str.h"

struct entry {
	uint64_t finding_id;
	uint64_t since_ns, seen_ns, until_ns; /* monotonic; until: 0 goes on */
	unsigned seen;			      /* times */
	bool is_put;
	double best; /* score of @finding */
	struct finding finding;
	uint64_t lost_ms; /* by all victims together, so far */
};

struct findings {
	struct findings_config config;
	struct map *entries; /* id -> struct entry * */
	uint64_t now_ns;
};

struct findings *findings_new(const struct findings_config *config)
{
	struct findings *findings = mem_alloc(sizeof(*findings));

	findings->config = *config;
	findings->entries = map_new(sizeof(uint64_t), sizeof(void *));
	return findings;
}

void findings_free(struct findings *findings)
{
	struct entry **entry;
	size_t pos = 0;

	if (!findings)
		return;
	while ((entry = map_next(findings->entries, &pos, NULL)))
		free(*entry);
	map_free(findings->entries);
	free(findings);
}

static uint64_t realtime(const struct findings *findings, uint64_t ns)
{
	return ns ? ns + (uint64_t)findings->config.realtime_offset_ns : 0;
}

static void put(struct findings *findings, struct entry *entry)
{
	CLEANUP(str_fini) struct str text = { 0 };
	const struct finding *finding = &entry->finding;
	uint64_t since_ns = realtime(findings, entry->since_ns);
	uint64_t until_ns = realtime(findings, entry->until_ns);
	struct fact fact = { .kind = FACT_FINDING };

	finding_json(finding, since_ns, until_ns, &text);
	fact.finding = (struct fact_finding){
		.run_id = findings->config.run_id,
		.finding_id = entry->finding_id,
		.pid = finding->app,
		.class = fault_class_name(finding->class),
		.resource_id = finding->resource->resource_id,
		.resource = finding->resource->title,
		.object = finding->object,
		.score = finding->score,
		.since_ns = since_ns,
		.until_ns = until_ns,
		.seen_ns = realtime(findings, entry->seen_ns),
		.text = str_text(&text),
	};
	sink_put(findings->config.sink, &fact);
	entry->is_put = true;
}

/* Who is seen first stays first, unless it gets much worse. */
static void take_over(struct entry *entry, const struct finding *finding)
{
	entry->seen++;
	if (finding->since_ns < entry->since_ns)
		entry->since_ns = finding->since_ns;
	if (finding->score < entry->best)
		return;
	entry->best = finding->score;
	entry->finding = *finding;
}

/* What was told is part of another one: it is told to be nothing by itself. */
static void withdraw(struct findings *findings, struct entry *entry)
{
	struct fact fact = { .kind = FACT_FINDING };

	if (!entry)
		return;
	fact.finding = (struct fact_finding){
		.run_id = findings->config.run_id,
		.finding_id = entry->finding_id,
		.class = "",
		.resource = "",
		.object = "",
		.text = "",
	};
	if (entry->is_put)
		sink_put(findings->config.sink, &fact);
	uint64_t id = entry->finding_id;

	map_del(findings->entries, &id);
	free(entry);
}

static void on_finding(void *ctx, const struct finding *finding)
{
	struct findings *findings = ctx;
	uint64_t key[3] = { finding->app, finding->resource->resource_id,
			    (uint64_t)finding->class };
	uint64_t id = hash_bytes(key, sizeof(key), findings->config.run_id);
	struct entry **found = map_find(findings->entries, &id);
	struct entry *entry = found ? *found : NULL;

	if (finding->is_part) {
		withdraw(findings, entry);
		return;
	}
	if (!entry) {
		if (map_count(findings->entries) >= FINDINGS_MAX)
			return;
		entry = mem_alloc(sizeof(*entry));
		entry->finding_id = id;
		entry->since_ns = finding->since_ns;
		*(struct entry **)map_put(findings->entries, &id, NULL) = entry;
	}
	entry->seen_ns = findings->now_ns;
	entry->until_ns = 0;
	take_over(entry, finding);
	if (entry->seen >= FINDINGS_CONFIRM)
		put(findings, entry);
}

static bool is_over(const void *key, void *value, void *ctx)
{
	struct findings *findings = ctx;
	struct entry *entry = *(struct entry **)value;

	(void)key;
	if (findings->now_ns < entry->seen_ns + FINDINGS_QUIET_NS)
		return false;
	entry->until_ns = entry->seen_ns;
	if (entry->is_put)
		put(findings, entry);
	free(entry);
	return true;
}

void findings_update(struct findings *findings, const struct ledger *ledger,
		     uint64_t now_ns)
{
	findings->now_ns = now_ns;
	diagnose(ledger, on_finding, findings);
	map_del_if(findings->entries, is_over, findings);
}
