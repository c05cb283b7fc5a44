// SPDX-License-Identifier: Apache-2.0
#include "cli/cost.h"

#include <stdlib.h>
#include <string.h>

#include "core/mem.h"
#include "core/str.h"

void costs_fini(struct costs *costs)
{
	profile_free(costs->profile);
	costs->profile = NULL;
}

static void put_span(void *ctx, const struct report_row *row)
{
	struct costs *costs = ctx;
	const char *labels = row_text(row, "labels");
	CLEANUP(free) char *name = NULL;
	uint64_t begin_ns = (uint64_t)row_integer(row, "begin_at_ns");
	struct profile_span span = {
		.span_id = (uint64_t)row_integer(row, "span_id"),
		.parent_id = (uint64_t)row_integer(row, "parent_id"),
		.service = row_text(row, "service"),
		.name = row_text(row, "method"),
		.kind = (enum profile_kind)row_integer(row, "kind_code"),
		.duration_ns = (uint64_t)row_integer(row, "duration_ns"),
		.cpu_ns = (uint64_t)row_integer(row, "cpu_ns"),
		.off_cpu_ns = (uint64_t)row_integer(row, "off_cpu_ns"),
		.in_bytes = (uint64_t)row_integer(row, "in_bytes"),
		.out_bytes = (uint64_t)row_integer(row, "out_bytes"),
		.faults = (uint64_t)row_integer(row, "page_faults"),
		.weight = row_real(row, "weight"),
	};

	if (costs->by_label)
		span.labels = (uint32_t)row_integer(row, "label_bits");
	if (costs->by_label && *labels)
		span.name = name = mem_printf("%s [%s]", span.name, labels);
	if (!costs->first_ns || begin_ns < costs->first_ns)
		costs->first_ns = begin_ns;
	if (begin_ns + span.duration_ns > costs->last_ns)
		costs->last_ns = begin_ns + span.duration_ns;
	if (!profile_add(costs->profile, &span))
		costs->is_cut = true;
}

struct err *costs_load(const char *db_path, const struct report_scope *scope,
		       bool by_label, struct costs *ret_costs)
{
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(costs_fini)
	struct costs costs = { .profile = profile_new(), .by_label = by_label };

	TRY(report_open(db_path, &db));
	TRY(report_each(db, "spans", scope, put_span, &costs));
	profile_finish(costs.profile);
	costs.window_s = (double)(costs.last_ns - costs.first_ns) / 1e9;
	if (!profile_stats(costs.profile).spans)
		return err_new(ERR_NOT_FOUND,
			       "%s has no requests: none ended in that time, or no spec "
			       "matched a program (assay spec list)",
			       db_path);
	if (costs.window_s <= 0)
		costs.window_s = 1e-9;
	*ret_costs = costs;
	costs.profile = NULL;
	return NULL;
}

static json_t *method_json(const struct costs *costs, const struct profile_row *row)
{
	json_t *out = json_object();

	json_object_set_new(out, "service", json_text(row->service));
	json_object_set_new(out, "name", json_text(row->name));
	json_object_set_new(out, "root", json_boolean(row->is_root));
	json_object_set_new(out, "qps", json_real(row->calls.value / costs->window_s));
	json_object_set_new(out, "qps_se", json_real(row->calls.error / costs->window_s));
	json_object_set_new(out, "cpu_self_ns", json_real(row->self_ns.value));
	json_object_set_new(out, "cpu_transitive_ns",
			    json_real(row->transitive_ns.value));
	json_object_set_new(out, "cpu_se", json_real(row->transitive_ns.error));
	json_object_set_new(out, "off_cpu_ns", json_real(row->off_cpu_ns.value));
	json_object_set_new(out, "in_bytes", json_real(row->in_bytes.value));
	json_object_set_new(out, "out_bytes", json_real(row->out_bytes.value));
	json_object_set_new(out, "page_faults", json_real(row->faults.value));
	json_object_set_new(out, "calls_sampled", json_integer((json_int_t)row->sampled));
	return out;
}

static json_t *end_json(const struct profile_row *row)
{
	CLEANUP(str_fini) struct str text = { 0 };

	str_printf(&text, "%s:%s", row->service, row->name);
	return json_text(str_text(&text));
}

void costs_json(struct output *out, const struct costs *costs)
{
	size_t count, edge_count;
	const struct profile_row *rows = profile_methods(costs->profile, &count);
	const struct profile_edge *edges = profile_edges(costs->profile, &edge_count);
	json_t *methods = json_array(), *calls = json_array();

	for (size_t i = 0; i < count; i++)
		if (!rows[i].is_call)
			json_array_append_new(methods, method_json(costs, &rows[i]));
	for (size_t i = 0; i < edge_count; i++) {
		json_t *edge = json_object();

		if (rows[edges[i].child].is_call || rows[edges[i].parent].is_call) {
			json_decref(edge);
			continue;
		}
		json_object_set_new(edge, "parent", end_json(&rows[edges[i].parent]));
		json_object_set_new(edge, "child", end_json(&rows[edges[i].child]));
		json_object_set_new(edge, "calls_per_s",
				    json_real(edges[i].calls.value / costs->window_s));
		json_array_append_new(calls, edge);
	}
	output_value(out, "window_s", json_real(costs->window_s));
	output_value(out, "methods", methods);
	output_value(out, "edges", calls);
}
