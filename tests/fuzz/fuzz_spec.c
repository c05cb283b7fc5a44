// SPDX-License-Identifier: Apache-2.0
/*
 * Spec files and single expressions. A file that loads has its expressions compiled, on
 * a target without anything, so that every plan that could come out of it is in bounds.
 */
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "probe/fetch.h"
#include "probe/match.h"
#include "probe/plan.h"

static void require(bool truth)
{
	if (!truth)
		abort();
}

static void check_path(const struct abi_path *path)
{
	require(path->derefs <= ABI_FETCH_DEREFS);
	require(path->reg < ABI_REGS);
	require(path->base <= ABI_BASE_TASK);
	require(path->base == ABI_BASE_NONE || path->width == 1 || path->width == 2 ||
		path->width == 4 || path->width == 8);
}

static void check_fetch(const struct abi_fetch *fetch)
{
	check_path(&fetch->value);
	check_path(&fetch->length);
	require(fetch->kind < ABI_FETCH_KINDS && fetch->op < ABI_OPS);
}

static void check_point(const struct plan_point *point)
{
	check_fetch(&point->abi.key);
	check_fetch(&point->abi.object);
	check_fetch(&point->abi.amount);
	check_fetch(&point->abi.name);
	for (int i = 0; i < ABI_PROBE_WHENS; i++)
		check_fetch(&point->abi.when[i]);
	require(point->abi.verb && point->abi.verb < ABI_VERBS);
}

/* A reply in which everything was found. */
static void try_plan(const struct spec *spec, const struct spec_variant *variant)
{
	static const struct resolve_site sites[] = {
		{ 0x1000, 0x100, RESOLVE_PUSH, true, false, false, 0 },
		{ 0x1040, 0x140, RESOLVE_BRANCH, true, true, true, 8 },
	};
	CLEANUP(arena_free) struct arena *arena = arena_new();
	CLEANUP(plan_free) struct plan *plan = NULL;
	struct resolve_request request;
	struct err *err = plan_request(variant, arena, &request);

	if (err) {
		err_free(err);
		return;
	}
	struct resolve_target *targets =
		arena_array(arena, request.count, sizeof(*targets));

	for (size_t i = 0; i < request.count; i++)
		targets[i] = (struct resolve_target){
			.probe = (uint32_t)i,
			.va = 0x1000,
			.off = 0x100,
			.is_emulated = true,
			.name = "f",
			.return_reason = "",
			.sites = sites,
			.site_count = 2,
			.fields = arena_array(arena, request.probes[i].field_count,
					      sizeof(struct resolve_offsets)),
			.field_count = request.probes[i].field_count,
		};
	for (size_t i = 0; i < request.count; i++)
		for (size_t j = 0; j < targets[i].field_count; j++)
			((struct resolve_offsets *)targets[i].fields)[j].reason = "";
	const struct resolve_reply reply = { .targets = targets,
					     .target_count = request.count };

	require(!plan_build(spec, variant, &request, &reply, &plan));
	for (size_t i = 0; i < plan->point_count; i++)
		check_point(&plan->points[i]);
}

static void try_file(const char *text, size_t size)
{
	CLEANUP(spec_free) struct spec *spec = NULL;
	struct err *err = spec_parse("fuzz", text, size, &spec);

	if (err) {
		require(err->text && *err->text);
		err_free(err);
		return;
	}
	const struct match_module module = { .path = "/usr/bin/x",
					     .package = "x",
					     .version = "1:2.3~4-5" };

	for (size_t i = 0; i < spec->variant_count; i++) {
		CLEANUP(str_fini) struct str why = { 0 };

		match_variant(&spec->variants[i], &module, &why);
		try_plan(spec, &spec->variants[i]);
	}
}

static void try_expr(const char *text)
{
	static const struct resolve_target target = { .name = "f" };
	const struct fetch_place place = { .target = &target };
	struct abi_fetch fetch;
	struct expr_when when;
	struct expr expr;
	struct err *err = expr_parse(text, &expr);

	if (!err)
		err = fetch_compile(&expr, &place, &fetch);
	if (!err)
		check_fetch(&fetch);
	err_free(err);
	err = expr_parse_when(text, &when);
	if (!err)
		require(when.count && when.count <= EXPR_MAX_CONDITIONS);
	err_free(err);
}

int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size);
int LLVMFuzzerTestOneInput(const uint8_t *data, size_t size)
{
	char *text = mem_alloc(size + 1);

	memcpy(text, data, size);
	try_expr(text);
	try_file(text, size);
	free(text);
	return 0;
}
