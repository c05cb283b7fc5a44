// SPDX-License-Identifier: Apache-2.0
/* An array of facts; what they point to is copied into an arena. */
#include "store/batch.h"

#include <string.h>

#include "core/arena.h"
#include "core/mem.h"
#include "core/vec.h"

#define BATCH_KEEP 8192 /* facts; a larger array is given back when it is cleared */

struct batch {
	struct arena *arena;
	VEC(struct fact) facts;
	size_t tail_bytes; /* in the arena */
};

struct batch *batch_new(void)
{
	struct batch *batch = mem_alloc(sizeof(*batch));

	batch->arena = arena_new();
	return batch;
}

void batch_free(struct batch *batch)
{
	if (!batch)
		return;
	vec_fini(&batch->facts);
	arena_free(batch->arena);
	free(batch);
}

static void keep(struct batch *batch, const char **text)
{
	size_t length = *text ? strnlen(*text, BATCH_MAX_TEXT) : 0;

	if (!length) {
		*text = "";
		return;
	}
	*text = arena_strndup(batch->arena, *text, length);
	batch->tail_bytes += length + 1;
}

static void keep_run(struct batch *batch, struct fact_run *run)
{
	keep(batch, &run->host);
	keep(batch, &run->boot_id);
	keep(batch, &run->kernel);
	keep(batch, &run->version);
	keep(batch, &run->target);
	keep(batch, &run->sources);
}

static void keep_frames(struct batch *batch, struct fact_stack *stack)
{
	if (stack->count > BATCH_MAX_FRAMES) {
		stack->count = BATCH_MAX_FRAMES;
		stack->complete = 0;
	}
	size_t bytes = stack->count * sizeof(*stack->frames);

	if (!bytes)
		return;
	stack->frames = memcpy(arena_alloc(batch->arena, bytes), stack->frames, bytes);
	batch->tail_bytes += bytes;
}

static void keep_tails(struct batch *batch, struct fact *fact)
{
	switch (fact->kind) {
	case FACT_RUN:
		keep_run(batch, &fact->run);
		break;
	case FACT_PROCESS:
		keep(batch, &fact->process.comm);
		keep(batch, &fact->process.exe);
		keep(batch, &fact->process.service);
		break;
	case FACT_MODULE:
		keep(batch, &fact->module.path);
		keep(batch, &fact->module.debug);
		break;
	case FACT_STACK:
		keep_frames(batch, &fact->stack);
		break;
	case FACT_FUNCTION:
		keep(batch, &fact->function.name);
		keep(batch, &fact->function.file);
		break;
	case FACT_SITE:
		keep(batch, &fact->site.file);
		break;
	case FACT_TYPE:
		keep(batch, &fact->type.name);
		break;
	case FACT_FIELD:
		keep(batch, &fact->field.path);
		break;
	case FACT_ANSWER:
		keep(batch, &fact->answer.answer.type);
		keep(batch, &fact->answer.answer.path);
		break;
	case FACT_METHOD:
		keep(batch, &fact->method.framework);
		keep(batch, &fact->method.name);
		break;
	case FACT_PROBE:
		keep(batch, &fact->probe.spec);
		keep(batch, &fact->probe.name);
		keep(batch, &fact->probe.function);
		keep(batch, &fact->probe.state);
		break;
	case FACT_RESOURCE:
		keep(batch, &fact->resource.spec);
		keep(batch, &fact->resource.name);
		keep(batch, &fact->resource.title);
		keep(batch, &fact->resource.kind);
		keep(batch, &fact->resource.unit);
		break;
	case FACT_FINDING:
		keep(batch, &fact->finding.class);
		keep(batch, &fact->finding.resource);
		keep(batch, &fact->finding.object);
		keep(batch, &fact->finding.text);
		break;
	default:
		break; /* no tails */
	}
}

void batch_add(struct batch *batch, const struct fact *fact)
{
	struct fact *copy = vec_add(&batch->facts);

	*copy = *fact;
	keep_tails(batch, copy);
}

size_t batch_count(const struct batch *batch)
{
	return batch->facts.count;
}

size_t batch_bytes(const struct batch *batch)
{
	return batch->facts.count * sizeof(struct fact) + batch->tail_bytes;
}

const struct fact *batch_at(const struct batch *batch, size_t index)
{
	return &batch->facts.data[index];
}

void batch_clear(struct batch *batch)
{
	if (batch->facts.room > BATCH_KEEP)
		vec_fini(&batch->facts);
	vec_clear(&batch->facts);
	arena_reset(batch->arena);
	batch->tail_bytes = 0;
}
