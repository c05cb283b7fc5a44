// SPDX-License-Identifier: Apache-2.0
/*
 * Each kind of fact has a function here and one or more files in schema/write/. The
 * letters of a script_bind() follow the order in which that file names its parameters.
 *
 * Ids that facts do not bring are hashes too: of a source file its path; of a field its
 * type, offset and path; of a frame its caller's id and its place, so that equal tops of
 * stacks share rows.
 */
#include "store/apply.h"

#include <sqlite3.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "store/sql.h"

enum table {
	TABLE_RUN,
	TABLE_PROCESS,
	TABLE_MODULE,
	TABLE_ACCESS,
	TABLE_TICK,
	TABLE_STACK,
	TABLE_STACK_SEEN,
	TABLE_FRAME,
	TABLE_FUNCTION,
	TABLE_SITE,
	TABLE_SOURCE_FILE,
	TABLE_TYPE,
	TABLE_FIELD,
	TABLE_ANSWER,
	TABLE_LOSS,
	TABLE_METHOD,
	TABLE_REQUEST,
	TABLE_SPAN,
	TABLE_PROBE,
	TABLE_RESOURCE,
	TABLE_RESOURCE_BUCKET,
	TABLE_FINDING,
	TABLES,
};

static const char *const names[TABLES] = {
	[TABLE_RUN] = "run",
	[TABLE_PROCESS] = "process",
	[TABLE_MODULE] = "module",
	[TABLE_ACCESS] = "access",
	[TABLE_TICK] = "tick",
	[TABLE_STACK] = "stack",
	[TABLE_STACK_SEEN] = "stack_seen",
	[TABLE_FRAME] = "frame",
	[TABLE_FUNCTION] = "function",
	[TABLE_SITE] = "site",
	[TABLE_SOURCE_FILE] = "source_file",
	[TABLE_TYPE] = "type",
	[TABLE_FIELD] = "field",
	[TABLE_ANSWER] = "answer",
	[TABLE_LOSS] = "loss",
	[TABLE_METHOD] = "method",
	[TABLE_REQUEST] = "request",
	[TABLE_SPAN] = "span",
	[TABLE_PROBE] = "probe",
	[TABLE_RESOURCE] = "resource",
	[TABLE_RESOURCE_BUCKET] = "resource_bucket",
	[TABLE_FINDING] = "finding",
};

struct apply {
	struct script scripts[TABLES];
};

typedef int (*apply_fn)(struct apply *apply, const struct apply_context *context,
			const struct fact *fact);

struct err *apply_new(struct db *db, struct apply **ret_apply)
{
	CLEANUP(apply_free) struct apply *apply = mem_alloc(sizeof(*apply));

	for (int i = 0; i < TABLES; i++)
		TRY(script_open(db, names[i], &apply->scripts[i]));
	*ret_apply = take(apply);
	return NULL;
}

void apply_free(struct apply *apply)
{
	if (!apply)
		return;
	for (int i = 0; i < TABLES; i++)
		script_close(&apply->scripts[i]);
	free(apply);
}

/* For scripts of one statement: bind, run, give the code. */
#define PUT(apply, table, format, ...)                               \
	(script_bind(&(apply)->scripts[table], format, __VA_ARGS__), \
	 script_step(&(apply)->scripts[table], NULL))

static int put_run(struct apply *apply, const struct apply_context *context,
		   const struct fact *fact)
{
	const struct fact_run *run = &fact->run;

	(void)context;
	return PUT(apply, TABLE_RUN, "llltttttt", run->run_id, run->start_ns, run->end_ns,
		   run->host, run->boot_id, run->kernel, run->version, run->target,
		   run->sources);
}

static int put_process(struct apply *apply, const struct apply_context *context,
		       const struct fact *fact)
{
	const struct fact_process *process = &fact->process;

	return PUT(apply, TABLE_PROCESS, "llluulllltttl", process->process_id,
		   process->run_id, process->parent_id, process->pid, process->uid,
		   process->start_ns, process->end_ns, process->exe_module_id,
		   process->cgroup_id, process->comm, process->exe, process->service,
		   context->now_ns);
}

static int put_module(struct apply *apply, const struct apply_context *context,
		      const struct fact *fact)
{
	const struct fact_module *module = &fact->module;
	const char *slash = strrchr(module->path, '/');

	return PUT(apply, TABLE_MODULE, "llubttt", module->module_id, context->run_id,
		   (uint32_t)module->kind, &module->build_id,
		   slash ? slash + 1 : module->path, module->path, module->debug);
}

static int put_access(struct apply *apply, const struct apply_context *context,
		      const struct fact *fact)
{
	const struct fact_access *access = &fact->access;

	(void)context;
	return PUT(apply, TABLE_ACCESS, "lllllullllllllllllll", access->bucket_ns,
		   access->run_id, access->process_id, access->module_id, access->va,
		   access->source, access->method_id, access->samples, access->period,
		   access->loads, access->stores, access->weight_samples,
		   access->weight_cycles, access->l1, access->l2, access->l3,
		   access->dram, access->remote, access->tlb_miss, access->hitm);
}

static int put_tick(struct apply *apply, const struct apply_context *context,
		    const struct fact *fact)
{
	const struct fact_tick *tick = &fact->tick;

	(void)context;
	return PUT(apply, TABLE_TICK, "lllllll", tick->bucket_ns, tick->run_id,
		   tick->process_id, tick->stack_id, tick->method_id, tick->samples,
		   tick->cpu_ns);
}

static uint64_t frame_id_of(uint64_t parent_id, const struct fact_frame *frame)
{
	uint64_t key[3] = { parent_id, frame->module_id, frame->va };

	return hash_bytes(key, sizeof(key), 2);
}

static int put_stack(struct apply *apply, const struct apply_context *context,
		     const struct fact *fact)
{
	const struct fact_stack *stack = &fact->stack;
	CLEANUP(free) uint64_t *ids = mem_array(stack->count + 1, sizeof(*ids));
	uint64_t changed;

	/* ids[count]: 0, the parent of the root. */
	for (size_t i = stack->count; i-- > 0;)
		ids[i] = frame_id_of(ids[i + 1], &stack->frames[i]);

	struct script *script = &apply->scripts[TABLE_STACK];

	script_bind(script, "lllluul", stack->stack_id, context->run_id, ids[0],
		    (uint64_t)stack->count, stack->kernel_count,
		    (uint32_t) !!stack->complete, context->now_ns);
	int code = script_step(script, &changed);

	if (code != SQLITE_DONE)
		return code;
	if (!changed)
		return PUT(apply, TABLE_STACK_SEEN, "lll", context->run_id,
			   context->now_ns, stack->stack_id);
	/* From the leaf: a frame that is there has all of its callers. */
	for (size_t i = 0; i < stack->count && changed && code == SQLITE_DONE; i++) {
		const struct fact_frame *frame = &stack->frames[i];

		script_bind(&apply->scripts[TABLE_FRAME], "llll", ids[i], ids[i + 1],
			    frame->module_id, frame->va);
		code = script_step(&apply->scripts[TABLE_FRAME], &changed);
	}
	return code;
}

/* 0 for no file. */
static int put_file(struct apply *apply, const char *path, uint64_t *ret_file_id)
{
	*ret_file_id = *path ? hash_text(path, 0) : 0;
	if (!*path)
		return SQLITE_DONE;
	return PUT(apply, TABLE_SOURCE_FILE, "lt", *ret_file_id, path);
}

static int put_function(struct apply *apply, const struct apply_context *context,
			const struct fact *fact)
{
	const struct fact_function *function = &fact->function;
	uint64_t file_id;
	int code = put_file(apply, function->file, &file_id);

	if (code != SQLITE_DONE)
		return code;
	return PUT(apply, TABLE_FUNCTION, "lllltlu", function->module_id, function->va,
		   context->run_id, function->bytes, function->name, file_id,
		   function->line);
}

static int put_site(struct apply *apply, const struct apply_context *context,
		    const struct fact *fact)
{
	const struct fact_site *site = &fact->site;
	uint64_t file_id;
	int code = put_file(apply, site->file, &file_id);

	if (code != SQLITE_DONE)
		return code;
	return PUT(apply, TABLE_SITE, "lllllu", site->module_id, site->va,
		   context->run_id, site->function_va, file_id, site->line);
}

static int put_type(struct apply *apply, const struct apply_context *context,
		    const struct fact *fact)
{
	const struct fact_type *type = &fact->type;

	return PUT(apply, TABLE_TYPE, "lltl", type->type_id, context->run_id, type->name,
		   type->bytes);
}

static uint64_t field_id_of(const struct fact_field *field)
{
	uint64_t key[2] = { field->type_id, field->offset };

	return hash_text(field->path, hash_bytes(key, sizeof(key), 3));
}

static int put_field_row(struct apply *apply, const struct fact_field *field)
{
	return PUT(apply, TABLE_FIELD, "llllt", field_id_of(field), field->type_id,
		   field->offset, field->bytes, field->path);
}

static int put_field(struct apply *apply, const struct apply_context *context,
		     const struct fact *fact)
{
	(void)context;
	return put_field_row(apply, &fact->field);
}

/* The type and the field that an answer names are rows too, whoever put them first. */
static int put_named(struct apply *apply, const struct apply_context *context,
		     const struct fact_answer *named, uint64_t *ret_field_id)
{
	const struct answer *answer = &named->answer;
	struct fact_field field = { named->type_id, answer->field_offset,
				    answer->field_bytes, answer->path };

	*ret_field_id = 0;
	if (!named->type_id || !verdict_is_claim(answer->verdict))
		return SQLITE_DONE;
	int code = PUT(apply, TABLE_TYPE, "lltl", named->type_id, context->run_id,
		       answer->type, answer->type_bytes);

	if (code != SQLITE_DONE || !*answer->path)
		return code;
	*ret_field_id = field_id_of(&field);
	return put_field_row(apply, &field);
}

static int put_answer(struct apply *apply, const struct apply_context *context,
		      const struct fact *fact)
{
	const struct answer *answer = &fact->answer.answer;
	bool is_claim = verdict_is_claim(answer->verdict);
	uint64_t field_id;
	int code = put_named(apply, context, &fact->answer, &field_id);

	if (code != SQLITE_DONE)
		return code;
	return PUT(apply, TABLE_ANSWER, "lluluudllluul", fact->answer.module_id,
		   answer->va, (uint32_t) !!fact->answer.skid, context->run_id,
		   context->analyser_version, (uint32_t)answer->verdict,
		   answer->confidence, is_claim ? fact->answer.type_id : (uint64_t)0,
		   field_id, answer->insn_va, (uint32_t)answer->access, answer->width,
		   (uint64_t)answer->offset);
}

int apply_loss(struct apply *apply, const struct fact_loss *loss, uint64_t lost_ns)
{
	return PUT(apply, TABLE_LOSS, "lluulll", loss->bucket_ns, loss->run_id,
		   loss->kind, (uint32_t)loss->reason, loss->lost, loss->seen, lost_ns);
}

static int put_loss(struct apply *apply, const struct apply_context *context,
		    const struct fact *fact)
{
	(void)context;
	return apply_loss(apply, &fact->loss, 0);
}

static int put_method(struct apply *apply, const struct apply_context *context,
		      const struct fact *fact)
{
	const struct fact_method *method = &fact->method;

	(void)context;
	return PUT(apply, TABLE_METHOD, "ltt", method->method_id, method->framework,
		   method->name);
}

static int put_request(struct apply *apply, const struct apply_context *context,
		       const struct fact *fact)
{
	const struct fact_request *request = &fact->request;

	(void)context;
	return PUT(apply, TABLE_REQUEST, "llllulddlllll", request->bucket_ns,
		   request->run_id, request->process_id, request->method_id,
		   (uint32_t)request->kind, request->requests, request->weight,
		   request->weight2, request->duration_ns, request->max_duration_ns,
		   request->cpu_ns, request->probe_ns, request->unfinished);
}

static int put_span(struct apply *apply, const struct apply_context *context,
		    const struct fact *fact)
{
	const struct fact_span *span = &fact->span;

	(void)context;
	return PUT(apply, TABLE_SPAN, "lllllululllldulllllul", span->bucket_ns,
		   span->run_id, span->span_id, span->parent_id, span->process_id,
		   span->tid, span->method_id, (uint32_t)span->kind, span->begin_ns,
		   span->duration_ns, span->cpu_ns, span->probe_ns, span->weight,
		   span->flags, span->trace_id, span->off_cpu_ns, span->in_bytes,
		   span->out_bytes, span->faults, span->labels, (uint64_t)span->status);
}

static int put_probe(struct apply *apply, const struct apply_context *context,
		     const struct fact *fact)
{
	const struct fact_probe *probe = &fact->probe;

	(void)context;
	return PUT(apply, TABLE_PROBE,
		   "lllltttt"
		   "lllllddl",
		   probe->run_id, probe->probe_id, probe->module_id, probe->va,
		   probe->spec, probe->name, probe->function, probe->state, probe->hits,
		   probe->skipped, probe->unread, probe->dropped, probe->hit_ns,
		   probe->share, probe->duty, probe->hot_ns);
}

static int put_resource(struct apply *apply, const struct apply_context *context,
			const struct fact *fact)
{
	const struct fact_resource *resource = &fact->resource;

	(void)context;
	return PUT(apply, TABLE_RESOURCE, "ltttttl", resource->resource_id,
		   resource->spec, resource->name, resource->title, resource->kind,
		   resource->unit, resource->capacity);
}

static int put_resource_bucket(struct apply *apply, const struct apply_context *context,
			       const struct fact *fact)
{
	const struct fact_resource_bucket *bucket = &fact->resource_bucket;

	(void)context;
	return PUT(apply, TABLE_RESOURCE_BUCKET, "llulllllllldll", bucket->bucket_ns,
		   bucket->run_id, bucket->pid, bucket->resource_id, bucket->wait_ns,
		   bucket->hold_ns, bucket->waits, bucket->acquires, bucket->releases,
		   bucket->uses, bucket->refusals, bucket->balance, bucket->holders,
		   bucket->on_ns);
}

static int put_finding(struct apply *apply, const struct apply_context *context,
		       const struct fact *fact)
{
	const struct fact_finding *finding = &fact->finding;

	(void)context;
	return PUT(apply, TABLE_FINDING, "llutlttdlllt", finding->run_id,
		   finding->finding_id, finding->pid, finding->class,
		   finding->resource_id, finding->resource, finding->object,
		   finding->score, finding->since_ns, finding->until_ns, finding->seen_ns,
		   finding->text);
}

static const apply_fn kinds[FACTS] = {
	[FACT_RUN] = put_run,		[FACT_PROCESS] = put_process,
	[FACT_MODULE] = put_module,	[FACT_ACCESS] = put_access,
	[FACT_TICK] = put_tick,		[FACT_STACK] = put_stack,
	[FACT_FUNCTION] = put_function, [FACT_SITE] = put_site,
	[FACT_TYPE] = put_type,		[FACT_FIELD] = put_field,
	[FACT_ANSWER] = put_answer,	[FACT_LOSS] = put_loss,
	[FACT_METHOD] = put_method,	[FACT_REQUEST] = put_request,
	[FACT_SPAN] = put_span,		[FACT_PROBE] = put_probe,
	[FACT_RESOURCE] = put_resource, [FACT_RESOURCE_BUCKET] = put_resource_bucket,
	[FACT_FINDING] = put_finding,
};

int apply_fact(struct apply *apply, const struct apply_context *context,
	       const struct fact *fact)
{
	if ((unsigned)fact->kind >= FACTS)
		return SQLITE_MISMATCH;
	return kinds[fact->kind](apply, context, fact);
}
