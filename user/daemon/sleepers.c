// SPDX-License-Identifier: Apache-2.0
#include "daemon/sleepers.h"

#include <stdlib.h>

#include "core/file.h"
#include "core/log.h"
#include "core/mem.h"
#include "probe/walk.h"
#include "resource/asleep.h"

struct sleepers {
	struct sleepers_config config;
	struct walk *walk; /* NULL: it failed */
};

static struct err *begin_walk(void *ctx, int *ret_fd)
{
	struct sleepers *sleepers = ctx;

	return broker_walk(sleepers->config.broker, ret_fd);
}

struct sleepers *sleepers_new(const struct sleepers_config *config)
{
	struct sleepers *sleepers = mem_alloc(sizeof(*sleepers));

	*sleepers = (struct sleepers){ .config = *config };
	sleepers->walk = walk_new(begin_walk, sleepers, config->hz);
	return sleepers;
}

void sleepers_free(struct sleepers *sleepers)
{
	if (!sleepers)
		return;
	walk_free(sleepers->walk);
	free(sleepers);
}

void sleepers_step(struct sleepers *sleepers)
{
	struct err *err = sleepers->walk ? walk_step(sleepers->walk, clock_ns()) : NULL;

	if (!err)
		return;
	log_warn("%s, waits show only where a spec has probes", err->text);
	err_free(err);
	walk_free(take(sleepers->walk));
}

static void inside(void *ctx, const struct abi_probe *plan, uint32_t slot)
{
	struct asleep_place *place = ctx;

	if (place->count == ASLEEP_MAX_ACTS)
		return;
	/* Who sleeps on the way to what is told at the return still waits for it. */
	place->acts[place->count++] = (struct asleep_act){
		.resource_id = plan->resource_id,
		.slot = (uint16_t)slot,
		.mode = plan->mode,
		.is_hold = plan->verb == ABI_ACQUIRE && !(plan->flags & ABI_PROBE_SAVE),
	};
}

void sleepers_place(struct sleepers *sleepers, const struct stacks_sleep *sleep)
{
	struct probes *probes = sleepers->config.probes;
	struct asleep_place place = { .pid = sleep->pid,
				      .tid = sleep->tid,
				      .time_ns = sleep->time_ns };

	for (size_t i = 0; probes && i < sleep->count; i++)
		probes_inside(probes, sleep->frames[i].module_id, sleep->frames[i].va,
			      inside, &place);
	diagnosis_asleep(sleepers->config.diagnosis, &place);
}
