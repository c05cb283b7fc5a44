// SPDX-License-Identifier: Apache-2.0
/*
 * Multiples: which number divides every value a node may have. An index that steps
 * through an array of structs is a multiple of their size, which is how an element
 * pointer is told from an arbitrary sum. Integers are expanded to linear forms over
 * nodes that are not linear, so that x*24 - x is 23x; phis start at 0 (divisible by
 * everything) and only ever lose divisors, so the iteration ends.
 */
#include "bin/flow_impl.h"

#include <string.h>

#define MAX_DEPTH  14
#define MAX_ROUNDS 64

static uint64_t gcd(uint64_t a, uint64_t b)
{
	while (b) {
		uint64_t rest = a % b;

		a = b;
		b = rest;
	}
	return a;
}

static uint64_t magnitude(int64_t value)
{
	return value < 0 ? 0 - (uint64_t)value : (uint64_t)value;
}

static void add_part(struct flow_form *form, uint32_t node, int64_t factor)
{
	for (uint32_t i = 0; i < form->count && i < FLOW_MAX_TERMS; i++)
		if (form->nodes[i] == node) {
			form->factors[i] =
				(int64_t)((uint64_t)form->factors[i] + (uint64_t)factor);
			return;
		}
	if (form->count < FLOW_MAX_TERMS) {
		form->nodes[form->count] = node;
		form->factors[form->count] = factor;
	}
	form->count++;
}

static bool is_linear(const struct flow_node *node)
{
	return (node->kind == FLOW_LINEAR || node->kind == FLOW_SUM ||
		node->kind == FLOW_DIFF) &&
	       node->term_count;
}

static const struct flow_form *form_of(struct flow *flow, uint32_t number, unsigned depth)
{
	struct flow_form *known = &flow->impl->forms.data[number];
	const struct flow_node *node = &flow->nodes.data[number];
	struct flow_form form = { .is_known = true };

	if (known->is_known)
		return known;
	if (is_linear(node) && depth < MAX_DEPTH) {
		for (uint32_t i = 0; i < node->term_count; i++) {
			const struct flow_term *term = &flow->terms.data[node->term + i];
			uint64_t factor = (uint64_t)term->factor;

			form.constant = (int64_t)((uint64_t)form.constant +
						  (uint64_t)term->ref.delta * factor);
			if (term->ref.node == FLOW_NODE_CONSTANT)
				continue;

			const struct flow_form *inner =
				form_of(flow, term->ref.node, depth + 1);

			form.constant = (int64_t)((uint64_t)form.constant +
						  (uint64_t)inner->constant * factor);
			for (uint32_t k = 0; k < inner->count; k++)
				add_part(&form, inner->nodes[k],
					 (int64_t)((uint64_t)inner->factors[k] * factor));
		}
		uint32_t kept = 0;

		for (uint32_t k = 0; k < form.count && form.count <= FLOW_MAX_TERMS; k++)
			if (form.factors[k]) {
				form.nodes[kept] = form.nodes[k];
				form.factors[kept++] = form.factors[k];
			}
		if (form.count <= FLOW_MAX_TERMS)
			form.count = kept;
	} else {
		form.count = FLOW_MAX_TERMS + 1;
	}
	if (form.count > FLOW_MAX_TERMS) {
		form = (struct flow_form){ .is_known = true, .count = 1 };
		form.nodes[0] = number;
		form.factors[0] = 1;
	}
	flow->impl->forms.data[number] = form;
	return &flow->impl->forms.data[number];
}

uint64_t flow_multiple(const struct flow *flow, struct flow_ref ref)
{
	const struct flow_form *form;
	uint64_t multiple;

	if (ref.node == FLOW_NODE_CONSTANT)
		return magnitude(ref.delta);
	form = &flow->impl->forms.data[ref.node];
	multiple = magnitude((int64_t)((uint64_t)ref.delta + (uint64_t)form->constant));
	for (uint32_t i = 0; i < form->count; i++)
		multiple = gcd(multiple, flow->nodes.data[form->nodes[i]].multiple *
						 magnitude(form->factors[i]));
	return multiple;
}

int64_t flow_constant(const struct flow *flow, struct flow_ref ref)
{
	if (ref.node == FLOW_NODE_CONSTANT)
		return ref.delta;
	return (int64_t)((uint64_t)ref.delta +
			 (uint64_t)flow->impl->forms.data[ref.node].constant);
}

static uint32_t phi_multiple(struct flow *flow, uint32_t number)
{
	const struct flow_node *node = &flow->nodes.data[number];
	uint64_t multiple = 0;

	for (uint32_t i = 0; i < node->term_count; i++) {
		struct flow_ref ref = flow->terms.data[node->term + i].ref;

		multiple = gcd(multiple, ref.node == number ? magnitude(ref.delta)
							    : flow_multiple(flow, ref));
	}
	return multiple > UINT32_MAX ? 1 : (uint32_t)multiple;
}

void flow_find_multiples(struct flow *flow)
{
	struct flow_impl *impl = flow->impl;
	bool has_changed = true;

	vec_reserve(&impl->forms, flow->nodes.count);
	impl->forms.count = flow->nodes.count;
	memset(impl->forms.data, 0, flow->nodes.count * sizeof(*impl->forms.data));
	for (uint32_t i = 0; i < flow->nodes.count; i++)
		form_of(flow, i, 0);
	for (uint32_t i = 2; i < flow->nodes.count; i++)
		if (flow->nodes.data[i].kind == FLOW_PHI &&
		    flow->nodes.data[i].term_count)
			flow->nodes.data[i].multiple = 0;
	for (unsigned round = 0; round < MAX_ROUNDS && has_changed; round++) {
		has_changed = false;
		for (uint32_t i = 2; i < flow->nodes.count; i++) {
			struct flow_node *node = &flow->nodes.data[i];
			uint32_t multiple;

			if (node->kind != FLOW_PHI || !node->term_count)
				continue;
			multiple = phi_multiple(flow, i);
			has_changed |= multiple != node->multiple;
			node->multiple = multiple;
		}
	}
	if (has_changed) /* not settled: claim nothing */
		for (uint32_t i = 2; i < flow->nodes.count; i++)
			if (flow->nodes.data[i].kind == FLOW_PHI)
				flow->nodes.data[i].multiple = 1;
}
