// SPDX-License-Identifier: Apache-2.0
/*
 * The request lists the variant's needs, then its probes, so that one job answers all.
 * A paired probe becomes several points, which share a number made from probe and
 * function: what is read at the entry is in the begin's plan, what needs the result
 * in the end's.
 */
#include "probe/plan.h"

#include <stdlib.h>
#include <string.h>

#include "core/intern.h"
#include "core/vec.h"
#include "probe/fetch.h"

_Static_assert((int)SPEC_OFFSET == RESOLVE_VA && (int)SPEC_USDT == RESOLVE_USDT, "by");

struct builder {
	struct plan *plan;
	const struct resolve_request *request;
	const struct resolve_reply *reply;
	VEC(struct plan_point) points;
	struct plan_probe *probes;
	uint32_t index; /* of the probe under way */
};

const char *plan_cost_name(unsigned cost)
{
	static const char *const names[] = { "emulated", "stepped", "trampoline" };

	return cost < sizeof(names) / sizeof(names[0]) ? names[cost] : "";
}

const char *plan_insn_name(unsigned insn)
{
	static const char *const names[] = { "other", "push", "nop", "call",
					     "jmp",   "jcc",  "ret" };

	return insn < sizeof(names) / sizeof(names[0]) ? names[insn] : "";
}

uint32_t plan_spec_id(const struct spec *spec)
{
	return (uint32_t)hash_text(spec->name, 0) | 1;
}

uint64_t plan_resource_id(const struct spec *spec, const char *resource)
{
	return hash_text(resource, hash_text(spec->name, 0));
}

struct field_list {
	struct resolve_field *fields;
	size_t count;
};

static struct err *add_field(void *ctx, const struct expr_chain *chain)
{
	struct field_list *list = ctx;
	uint8_t arg = chain->base == EXPR_RET ? 0 : (uint8_t)chain->number;

	if (!*chain->fields)
		return NULL;
	for (size_t i = 0; i < list->count; i++)
		if (list->fields[i].arg == arg &&
		    !strcmp(list->fields[i].path, chain->fields))
			return NULL;
	if (list->count == RESOLVE_MAX_FIELDS)
		return err_new(ERR_LIMIT, "more than %d fields in one probe",
			       RESOLVE_MAX_FIELDS);
	list->fields[list->count++] = (struct resolve_field){ arg, chain->fields };
	return NULL;
}

static struct resolve_probe request_where(const struct spec_where *where)
{
	return (struct resolve_probe){ .by = where->by,
				       .text = where->text,
				       .va = where->va,
				       .bytes = where->bytes };
}

static struct err *request_probe(const struct spec_probe *probe, struct arena *arena,
				 struct resolve_probe *ret_probe)
{
	struct spec_wants wants = spec_wants(probe);
	struct field_list list = { .fields = arena_array(arena, RESOLVE_MAX_FIELDS,
							 sizeof(*list.fields)) };

	TRY(spec_each_chain(probe, add_field, &list));
	*ret_probe = request_where(&probe->where);
	ret_probe->wants_entry = probe->at != SPEC_RETURN;
	ret_probe->wants_return = probe->at != SPEC_ENTRY;
	ret_probe->needs_result = wants.result;
	ret_probe->reads_memory = wants.entry_memory;
	ret_probe->live = wants.entry_live;
	ret_probe->fields = list.fields;
	ret_probe->field_count = list.count;
	return NULL;
}

struct err *plan_request(const struct spec_variant *variant, struct arena *arena,
			 struct resolve_request *ret_request)
{
	size_t count = variant->need_count + variant->probe_count;
	struct resolve_probe *probes = arena_array(arena, count, sizeof(*probes));

	for (size_t i = 0; i < variant->need_count; i++)
		probes[i] = request_where(&variant->needs[i]);
	for (size_t i = 0; i < variant->probe_count; i++)
		TRY(err_wrap(request_probe(&variant->probes[i], arena,
					   &probes[variant->need_count + i]),
			     "probe %s", variant->probes[i].id));
	*ret_request = (struct resolve_request){ .probes = probes, .count = count };
	return NULL;
}

static const char *keep(struct builder *build, const char *text)
{
	return arena_strdup(build->plan->arena, text);
}

/* Consumes @err. */
static const char *reason_of(struct builder *build, struct err *err)
{
	const char *text = keep(build, err->text);

	err_free(err);
	return text;
}

static uint8_t heat_of(const struct spec_probe *probe)
{
	static const uint8_t heats[] = { [SPEC_HEAT_UNKNOWN] = ABI_HEAT_UNKNOWN,
					 [SPEC_COLD] = ABI_HEAT_SLOW,
					 [SPEC_WARM] = ABI_HEAT_WARM,
					 [SPEC_HOT] = ABI_HEAT_HOT,
					 [SPEC_WINDOWS] = ABI_HEAT_HOT };

	return heats[probe->temperature];
}

static bool may_step(const struct spec_probe *probe)
{
	return probe->temperature == SPEC_COLD || probe->temperature == SPEC_WINDOWS;
}

static bool has_streams(const struct spec_variant *variant)
{
	for (size_t i = 0; i < variant->probe_count; i++)
		if (variant->probes[i].verb == ABI_STREAM_OPEN)
			return true;
	return false;
}

static struct abi_probe plain_probe(const struct builder *build,
				    const struct spec_probe *probe)
{
	const struct spec *spec = build->plan->spec;
	struct abi_probe abi = { .spec_id = plan_spec_id(spec),
				 .probe_id = (uint32_t)hash_text(probe->id, 0) | 1,
				 .verb = probe->verb,
				 .mode = probe->mode,
				 .scope = probe->scope,
				 .temperature = heat_of(probe) };

	if (probe->resource)
		abi.resource_id = plan_resource_id(spec, probe->resource);
	else if (probe->edge)
		abi.resource_id = plan_resource_id(spec, probe->edge);
	if (probe->label)
		abi.resource_id = probe->label;
	if (probe->name_text)
		abi.method_id = fetch_name_id(abi.spec_id, probe->name_text);
	if (probe->once)
		abi.flags |= ABI_PROBE_ONCE;
	if (probe->aside)
		abi.flags |= ABI_PROBE_ASIDE;
	if ((probe->verb == ABI_USE || probe->verb == ABI_COST_ADD) && !probe->name.kind)
		abi.flags |= ABI_PROBE_SUM;
	if (probe->verb == ABI_REQUEST_BEGIN && has_streams(build->plan->variant))
		abi.flags |= ABI_PROBE_STREAMS;
	if (probe->key.kind && probe->resource)
		abi.flags |= ABI_PROBE_KEYED;
	return abi;
}

/* @moment: the expressions of the entry, of the return, or of both. */
enum moment { AT_ENTRY = 1, AT_RETURN = 2, AT_BOTH = 3 };

static bool belongs(bool uses_result, enum moment moment)
{
	return moment & (uses_result ? AT_RETURN : AT_ENTRY);
}

static struct err *compile_all(const struct spec_probe *probe,
			       const struct fetch_place *place, enum moment moment,
			       struct abi_probe *abi)
{
	const struct {
		const char *key;
		const struct expr *from;
		struct abi_fetch *to;
	} parts[] = { { "key", &probe->key, &abi->key },
		      { "object", &probe->object, &abi->object },
		      { "amount", &probe->amount, &abi->amount },
		      { "name", &probe->name, &abi->name } };

	for (size_t i = 0; i < sizeof(parts) / sizeof(parts[0]); i++)
		if (belongs(spec_uses_result(parts[i].from), moment))
			TRY(err_wrap(fetch_compile(parts[i].from, place, parts[i].to),
				     "%s", parts[i].key));
	if (abi->name.value.base) {
		abi->name.max_bytes = probe->name_bytes;
		memcpy(abi->name.stop, probe->stops, sizeof(abi->name.stop));
	}
	for (size_t i = 0; i < probe->when.count; i++) {
		const struct expr_condition *condition = &probe->when.conditions[i];

		if (belongs(spec_condition_uses_result(condition), moment))
			TRY(err_wrap(
				fetch_compile_condition(condition, place, &abi->when[i]),
				"when"));
	}
	return NULL;
}

static struct plan_point point_of(const struct builder *build,
				  const struct resolve_target *target,
				  const struct resolve_site *site)
{
	const struct spec_probe *probe = &build->plan->variant->probes[build->index];
	struct plan_point point = {
		.va = site->va,
		.off = site->off,
		.semaphore_off = target->semaphore_off,
		.probe = build->index,
		.insn = site->insn,
		.cost = site->is_emulated ? PLAN_EMULATED : PLAN_STEPPED,
		.in_windows = probe->temperature == SPEC_WINDOWS,
		.function = target->name,
		.function_va = probe->where.by == SPEC_USDT ? 0 : target->va,
		.function_bytes = probe->where.by == SPEC_USDT ? 0 : target->bytes,
		.abi = plain_probe(build, probe),
	};

	point.abi.cost_ns = site->is_emulated ? PLAN_EMULATED_NS : PLAN_STEPPED_NS;
	point.abi.sp_delta = (int16_t)site->pushed;
	if (site->by_frame)
		point.abi.flags |= ABI_PROBE_BY_FRAME;
	return point;
}

static struct fetch_place place_of(const struct builder *build,
				   const struct resolve_target *target)
{
	const struct resolve_probe *asked = &build->request->probes[target->probe];

	return (struct fetch_place){ .is_usdt = asked->by == RESOLVE_USDT,
				     .target = target,
				     .fields = asked->fields };
}

static uint32_t pair_of(const struct builder *build, const struct spec_probe *probe,
			const struct resolve_target *target)
{
	uint64_t id = hash_text(probe->id, hash_text(build->plan->spec->name, 0));

	return (uint32_t)hash_bytes(&target->va, sizeof(target->va), id) | 1;
}

static struct err *pair_up(const struct builder *build, const struct spec_probe *probe,
			   const struct resolve_target *target, struct plan_point *point)
{
	if (probe->at != SPEC_PAIRED) {
		point->abi.sp_delta = 0; /* not asked for, perhaps not known */
		return NULL;
	}
	if (!point->is_uretprobe && point->abi.sp_delta < 0)
		return err_new(ERR_UNSUPPORTED,
			       "the stack pointer at %#llx, by which "
			       "calls are paired, is not known",
			       (unsigned long long)point->va);
	point->abi.flags |= ABI_PROBE_PAIRED;
	point->abi.pair = pair_of(build, probe, target);
	return NULL;
}

static struct err *check_site(const struct resolve_site *site)
{
	if (!site->off)
		return err_new(ERR_FORMAT, "the code at %#llx is not in the file",
			       (unsigned long long)site->va);
	if (site->pushed > INT16_MAX)
		return err_new(ERR_LIMIT, "a frame of %d bytes", site->pushed);
	return NULL;
}

static struct err *add_entry(struct builder *build, const struct spec_probe *probe,
			     const struct resolve_target *target,
			     const struct resolve_site *site)
{
	struct fetch_place place = place_of(build, target);
	struct plan_point point = point_of(build, target, site);

	TRY(check_site(site));
	if (!site->is_emulated && !may_step(probe))
		return err_new(
			ERR_UNSUPPORTED,
			"%s: every instruction before the arguments are lost would "
			"be single-stepped (%d us a hit); say 'temperature: cold' or "
			"'temperature: windows' to accept that",
			target->name, PLAN_STEPPED_NS / 1000);
	TRY(compile_all(probe, &place, AT_ENTRY, &point.abi));
	TRY(pair_up(build, probe, target, &point));
	if (probe->at == SPEC_PAIRED && !probe->end_verb)
		point.abi.flags |= ABI_PROBE_SAVE;
	vec_push(&build->points, point);
	return NULL;
}

static struct err *add_return(struct builder *build, const struct spec_probe *probe,
			      const struct resolve_target *target,
			      struct plan_point point)
{
	struct fetch_place place = place_of(build, target);

	point.abi.flags |= ABI_PROBE_RETURN;
	if (probe->at == SPEC_PAIRED && probe->end_verb)
		point.abi.verb = probe->end_verb;
	TRY(compile_all(probe, &place, probe->at == SPEC_PAIRED ? AT_RETURN : AT_BOTH,
			&point.abi));
	TRY(pair_up(build, probe, target, &point));
	vec_push(&build->points, point);
	return NULL;
}

/* At the function's first instruction; fires with rsp past the return address. */
static struct plan_point trampoline(const struct builder *build,
				    const struct resolve_target *target)
{
	struct resolve_site site = { .va = target->va,
				     .off = target->off,
				     .is_emulated = target->is_emulated,
				     .insn = RESOLVE_OTHER };
	struct plan_point point = point_of(build, target, &site);

	point.is_uretprobe = true;
	point.cost = target->is_emulated ? PLAN_TRAMPOLINE : PLAN_STEPPED;
	point.abi.cost_ns = target->is_emulated ? PLAN_RETURN_NS : PLAN_STEPPED_NS;
	point.abi.sp_delta = -8;
	return point;
}

static struct err *no_return(const struct builder *build,
			     const struct resolve_target *target)
{
	if (*target->return_reason)
		return err_new(
			ERR_UNSUPPORTED, "%s: %s, and a uretprobe %s", target->name,
			target->return_reason,
			build->reply->throws
				? "would kill the process when an exception crosses"
				: "would be single-stepped");
	return err_new(
		ERR_UNSUPPORTED,
		"%s: %s; its ret instructions would be single-stepped (%d us a "
		"hit), say 'temperature: cold' or 'temperature: windows' to accept "
		"that, or end it by another function's entry",
		target->name,
		build->reply->throws
			? "a uretprobe would kill the process when an exception "
			  "crosses it"
			: "a uretprobe's own breakpoint would be single-stepped",
		PLAN_STEPPED_NS / 1000);
}

static struct err *add_returns(struct builder *build, const struct spec_probe *probe,
			       const struct resolve_target *target)
{
	bool safe = !build->reply->throws || probe->fails_by == SPEC_FAILS_NEVER;
	size_t count = 0, emulated = 0;

	for (size_t i = 0; i < target->site_count; i++)
		if (target->sites[i].is_return) {
			count++;
			emulated += target->sites[i].is_emulated;
		}
	if (!count || emulated < count) {
		if (safe && target->off && (target->is_emulated || may_step(probe)))
			return add_return(build, probe, target,
					  trampoline(build, target));
		if (!count || !may_step(probe))
			return no_return(build, target);
	}
	for (size_t i = 0; i < target->site_count; i++) {
		if (!target->sites[i].is_return)
			continue;
		TRY(check_site(&target->sites[i]));
		TRY(add_return(build, probe, target,
			       point_of(build, target, &target->sites[i])));
	}
	return NULL;
}

static struct err *add_target(struct builder *build, const struct spec_probe *probe,
			      const struct resolve_target *target)
{
	for (size_t i = 0; i < target->site_count; i++)
		if (!target->sites[i].is_return)
			TRY(add_entry(build, probe, target, &target->sites[i]));
	return probe->at == SPEC_ENTRY ? NULL : add_returns(build, probe, target);
}

static const char *failure_of(const struct builder *build, uint32_t asked)
{
	for (size_t i = 0; i < build->reply->failure_count; i++)
		if (build->reply->failures[i].probe == asked)
			return build->reply->failures[i].reason;
	return NULL;
}

static bool has_points(const struct plan_probe *probe)
{
	return probe->point_count > 0;
}

/* One that cannot be done takes all points of its probe with it: half a pair is worse
 * than none. */
static void build_probe(struct builder *build)
{
	const struct spec_variant *variant = build->plan->variant;
	const struct spec_probe *spec = &variant->probes[build->index];
	struct plan_probe *probe = &build->probes[build->index];
	uint32_t asked = (uint32_t)variant->need_count + build->index;
	const char *failure = failure_of(build, asked);

	*probe = (struct plan_probe){ .spec = spec,
				      .first_point = build->points.count,
				      .reason = "" };
	if (spec->instead_of >= 0 && has_points(&build->probes[spec->instead_of])) {
		probe->is_spare = true;
		return;
	}
	if (failure)
		probe->reason = keep(build, failure);
	for (size_t i = 0; !*probe->reason && i < build->reply->target_count; i++) {
		const struct resolve_target *target = &build->reply->targets[i];
		struct err *err =
			target->probe == asked ? add_target(build, spec, target) : NULL;

		if (err)
			probe->reason = reason_of(build, err);
	}
	if (*probe->reason)
		build->points.count = probe->first_point;
	probe->point_count = build->points.count - probe->first_point;
	if (!probe->point_count && !*probe->reason)
		probe->reason = "nothing was found";
}

/* Has @index, or one that stands in for it, points? */
static bool is_served(const struct builder *build, int index)
{
	const struct plan *plan = build->plan;

	if (has_points(&build->probes[index]))
		return true;
	for (size_t i = 0; i < plan->probe_count; i++)
		if (build->probes[i].spec->instead_of == index &&
		    is_served(build, (int)i))
			return true;
	return false;
}

static void judge(struct builder *build)
{
	struct plan *plan = build->plan;
	const struct spec_variant *variant = plan->variant;

	for (size_t i = 0; i < variant->need_count; i++) {
		const char *failure = failure_of(build, (uint32_t)i);

		if (failure) {
			plan->refusal = arena_printf(plan->arena, "it needs %s %s: %s",
						     spec_by_name(variant->needs[i].by),
						     variant->needs[i].text, failure);
			return;
		}
	}
	plan->is_meant = true;
	for (size_t i = 0; i < variant->probe_count; i++) {
		const struct spec_probe *probe = &variant->probes[i];

		if (probe->missing == SPEC_SKIP_VARIANT && !is_served(build, (int)i)) {
			plan->refusal =
				arena_printf(plan->arena, "it needs the probe %s: %s",
					     probe->id, build->probes[i].reason);
			return;
		}
	}
	if (!build->points.count && variant->probe_count)
		plan->refusal = arena_printf(
			plan->arena, "none of its probes can be placed; %s: %s",
			variant->probes[0].id, build->probes[0].reason);
}

static void keep_points(struct builder *build)
{
	struct plan *plan = build->plan;
	struct plan_point *points =
		arena_array(plan->arena, build->points.count, sizeof(*points));

	for (size_t i = 0; i < build->points.count; i++) {
		points[i] = build->points.data[i];
		points[i].function = keep(build, points[i].function);
	}
	plan->points = points;
	plan->point_count = build->points.count;
	vec_fini(&build->points);
}

struct err *plan_build(const struct spec *spec, const struct spec_variant *variant,
		       const struct resolve_request *request,
		       const struct resolve_reply *reply, struct plan **ret_plan)
{
	struct plan *plan;
	struct builder build = { .request = request, .reply = reply };

	for (size_t i = 0; i < reply->target_count; i++) {
		const struct resolve_target *target = &reply->targets[i];

		if (target->probe >= request->count ||
		    target->field_count != request->probes[target->probe].field_count)
			return err_new(ERR_FORMAT, "a reply to other probes");
	}
	plan = mem_alloc(sizeof(*plan));
	plan->arena = arena_new();
	plan->spec = spec;
	plan->variant = variant;
	plan->refusal = "";
	plan->is_meant = false;
	plan->probe_count = variant->probe_count;
	build.plan = plan;
	build.probes =
		arena_array(plan->arena, variant->probe_count, sizeof(*build.probes));
	plan->probes = build.probes;
	for (build.index = 0; build.index < variant->probe_count; build.index++)
		build_probe(&build);
	judge(&build);
	keep_points(&build);
	*ret_plan = plan;
	return NULL;
}

void plan_free(struct plan *plan)
{
	if (!plan)
		return;
	arena_free(plan->arena);
	free(plan);
}
