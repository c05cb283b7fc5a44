// SPDX-License-Identifier: Apache-2.0
/*
 * Four steps: parents are found by id; each trace is put in an order in which a parent
 * stands before its children; backwards in that order transitive cost flows up; forwards
 * every span is added to its method, path, edge and payer. Traces lie one behind the
 * other in the order, which is what struct sums asks for.
 */
#include "cost/profile.h"

#include <stdlib.h>
#include <string.h>

#include "core/intern.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"
#include "cost/sums.h"

#define NONE SIZE_MAX

struct span {
	uint64_t span_id, parent_id;
	uint32_t service, name, labels;
	enum profile_kind kind;
	double weight, duration_ns, self_ns, transitive_ns;
	double off_cpu_ns, in_bytes, out_bytes, faults;
	size_t parent, first_child, sibling; /* indices; NONE */
	size_t trace, method, path;
	unsigned depth;
};

struct method_key {
	uint32_t service, name, is_call, labels;
};

struct path_key {
	uint64_t parent;
	struct method_key method;
};

struct pair_key {
	uint64_t first, second;
};

/* A method or a path while it is summed up. */
struct group {
	struct method_key key;
	struct sums sums;
	size_t parent; /* paths */
	unsigned depth;
	double roots, outermost;
	size_t place; /* in the rows */
};

struct pair {
	struct pair_key key;
	struct sums sums;
};

struct profile {
	struct intern *words;
	struct map *ids; /* span_id -> index */
	VEC(struct span) spans;
	VEC(size_t) order;
	struct map *method_at, *path_at, *edge_at, *payer_at;
	VEC(struct group) methods, paths;
	VEC(struct pair) edges, payers;
	VEC(struct profile_row) method_rows, path_rows;
	VEC(struct profile_edge) edge_rows;
	VEC(struct profile_payer) payer_rows;
	struct profile_stats stats;
};

struct profile *profile_new(void)
{
	struct profile *profile = mem_alloc(sizeof(*profile));

	profile->words = intern_new();
	profile->ids = map_new(sizeof(uint64_t), sizeof(size_t));
	profile->method_at = map_new(sizeof(struct method_key), sizeof(size_t));
	profile->path_at = map_new(sizeof(struct path_key), sizeof(size_t));
	profile->edge_at = map_new(sizeof(struct pair_key), sizeof(size_t));
	profile->payer_at = map_new(sizeof(struct pair_key), sizeof(size_t));
	return profile;
}

void profile_free(struct profile *profile)
{
	if (!profile)
		return;
	intern_free(profile->words);
	map_free(profile->ids);
	map_free(profile->method_at);
	map_free(profile->path_at);
	map_free(profile->edge_at);
	map_free(profile->payer_at);
	vec_fini(&profile->spans);
	vec_fini(&profile->order);
	vec_fini(&profile->methods);
	vec_fini(&profile->paths);
	vec_fini(&profile->edges);
	vec_fini(&profile->payers);
	vec_fini(&profile->method_rows);
	vec_fini(&profile->path_rows);
	vec_fini(&profile->edge_rows);
	vec_fini(&profile->payer_rows);
	free(profile);
}

bool profile_add(struct profile *profile, const struct profile_span *span)
{
	bool is_new;
	size_t *at;

	if (profile->spans.count >= PROFILE_MAX_SPANS)
		return false;
	at = map_put(profile->ids, &span->span_id, &is_new);
	if (!is_new) /* one that two databases have */
		return true;
	*at = profile->spans.count;
	vec_push(&profile->spans,
		 ((struct span){ .span_id = span->span_id,
				 .parent_id = span->parent_id,
				 .service = intern_id(profile->words, span->service),
				 .name = intern_id(profile->words, span->name),
				 .kind = span->kind,
				 .labels = span->labels,
				 .weight = span->weight,
				 .duration_ns = (double)span->duration_ns,
				 .self_ns = (double)span->cpu_ns,
				 .off_cpu_ns = (double)span->off_cpu_ns,
				 .in_bytes = (double)span->in_bytes,
				 .out_bytes = (double)span->out_bytes,
				 .faults = (double)span->faults,
				 .parent = NONE,
				 .first_child = NONE,
				 .sibling = NONE,
				 .trace = NONE }));
	return true;
}

/* Trees. */

static void find_parents(struct profile *profile)
{
	vec_each(&profile->spans, span) {
		size_t index = (size_t)(span - profile->spans.data);
		size_t *parent =
			span->parent_id ? map_find(profile->ids, &span->parent_id) : NULL;

		profile->stats.lost_parents += span->parent_id && !parent;
		if (!parent)
			continue;
		span->parent = *parent;
		span->sibling = profile->spans.data[*parent].first_child;
		profile->spans.data[*parent].first_child = index;
	}
}

/* Root, first child, its first child, ...: without recursion, traces can be deep. */
static void walk(struct profile *profile, size_t root)
{
	struct span *spans = profile->spans.data;
	size_t at = root;

	spans[root].depth = 0;
	while (at != NONE) {
		spans[at].trace = root;
		spans[at].weight = spans[root].weight;
		spans[at].transitive_ns = spans[at].self_ns;
		if (at != root)
			spans[at].depth = spans[spans[at].parent].depth + 1;
		vec_push(&profile->order, at);
		if (spans[at].first_child != NONE) {
			at = spans[at].first_child;
			continue;
		}
		while (at != root && spans[at].sibling == NONE)
			at = spans[at].parent;
		at = at == root ? NONE : spans[at].sibling;
	}
}

static void order_traces(struct profile *profile)
{
	struct span *spans = profile->spans.data;

	for (size_t i = 0; i < profile->spans.count; i++)
		if (spans[i].parent == NONE) {
			walk(profile, i);
			profile->stats.roots++;
		}
	for (size_t i = profile->order.count; i--;) {
		struct span *span = &spans[profile->order.data[i]];

		if (span->parent != NONE)
			spans[span->parent].transitive_ns += span->transitive_ns;
	}
	profile->stats.spans = profile->spans.count;
	profile->stats.loops = profile->spans.count - profile->order.count;
}

/* Groups. */

static size_t method_of(struct profile *profile, const struct span *span)
{
	struct method_key key = { span->service, span->name, span->kind == PROFILE_CALL,
				  span->labels };
	bool is_new;
	size_t *at = map_put(profile->method_at, &key, &is_new);

	if (is_new) {
		*at = profile->methods.count;
		vec_push(&profile->methods,
			 ((struct group){ .key = key, .parent = NONE }));
	}
	return *at;
}

static size_t path_of(struct profile *profile, const struct span *span)
{
	const struct span *above =
		span->parent == NONE ? NULL : &profile->spans.data[span->parent];
	struct path_key key = {
		.parent = above ? above->path : NONE,
		.method = { span->service, span->name, span->kind == PROFILE_CALL,
			    span->labels },
	};
	bool is_new;

	if (span->depth >= PROFILE_MAX_DEPTH)
		return above->path;
	size_t *at = map_put(profile->path_at, &key, &is_new);

	if (is_new) {
		*at = profile->paths.count;
		vec_push(&profile->paths, ((struct group){ .key = key.method,
							   .parent = key.parent,
							   .depth = span->depth }));
	}
	return *at;
}

#define PAIR_OF(profile, map, list, a, b)                                 \
	({                                                                \
		struct pair_key key_ = { (a), (b) };                      \
		bool new_;                                                \
		size_t *at_ = map_put((map), &key_, &new_);               \
		if (new_) {                                               \
			*at_ = (list)->count;                             \
			vec_push((list), ((struct pair){ .key = key_ })); \
		}                                                         \
		&(list)->data[*at_].sums;                                 \
	})

/* No caller of this span is of the same method. */
static bool is_outermost(const struct profile *profile, const struct span *span)
{
	size_t above = span->parent;

	for (int i = 0; above != NONE && i < PROFILE_MAX_DEPTH; i++) {
		if (profile->spans.data[above].method == span->method)
			return false;
		above = profile->spans.data[above].parent;
	}
	return true;
}

static void add_span(struct profile *profile, struct span *span)
{
	struct span *spans = profile->spans.data;
	double values[SUMS] = { [SUM_SELF] = span->self_ns,
				[SUM_TRANSITIVE] = span->transitive_ns,
				[SUM_DURATION] = span->duration_ns,
				[SUM_OFF_CPU] = span->off_cpu_ns,
				[SUM_IN] = span->in_bytes,
				[SUM_OUT] = span->out_bytes,
				[SUM_FAULTS] = span->faults };

	span->method = method_of(profile, span);
	span->path = path_of(profile, span);
	struct group *method = &profile->methods.data[span->method];

	sums_add(&method->sums, span->trace, span->weight, values);
	sums_add(&profile->paths.data[span->path].sums, span->trace, span->weight,
		 values);
	if (is_outermost(profile, span))
		method->outermost += span->weight * span->transitive_ns;
	if (span->parent == NONE)
		method->roots += span->weight;
	else
		sums_add(PAIR_OF(profile, profile->edge_at, &profile->edges,
				 spans[span->parent].method, span->method),
			 span->trace, span->weight, values);
	sums_add(PAIR_OF(profile, profile->payer_at, &profile->payers, span->method,
			 spans[span->trace].method),
		 span->trace, span->weight, values);
}

/* Rows. */

static struct profile_row row_of(const struct profile *profile, const struct group *group)
{
	const struct sums *sums = &group->sums;

	return (struct profile_row){
		.service = intern_text(profile->words, group->key.service),
		.name = intern_text(profile->words, group->key.name),
		.parent = NONE,
		.depth = group->depth,
		.is_root = group->roots * 2 > sums->calls,
		.is_call = group->key.is_call,
		.labels = group->key.labels,
		.sampled = sums->spans,
		.calls = sums_calls(sums),
		.self_ns = sums_mean(sums, SUM_SELF),
		.transitive_ns = sums_mean(sums, SUM_TRANSITIVE),
		.duration_ns = sums_mean(sums, SUM_DURATION),
		.off_cpu_ns = sums_mean(sums, SUM_OFF_CPU),
		.in_bytes = sums_mean(sums, SUM_IN),
		.out_bytes = sums_mean(sums, SUM_OUT),
		.faults = sums_mean(sums, SUM_FAULTS),
		.cpu_ns = sums->total[SUM_SELF],
		.transitive_sum = group->outermost,
	};
}

/* Most expensive first; equal ones by name, so that reports are stable. */
struct ranked {
	double cost;
	const char *service, *name;
	size_t index, parent;
};

static int by_cost(const void *a, const void *b)
{
	const struct ranked *one = a, *two = b;
	int order;

	if (one->parent != two->parent)
		return one->parent < two->parent ? -1 : 1;
	if (one->cost != two->cost)
		return one->cost > two->cost ? -1 : 1;
	order = strcmp(one->service, two->service);
	return order ? order : strcmp(one->name, two->name);
}

static struct ranked *rank(const struct profile *profile, const struct group *groups,
			   size_t count, bool is_path)
{
	struct ranked *ranked = mem_array(count, sizeof(*ranked));

	for (size_t i = 0; i < count; i++)
		ranked[i] = (struct ranked){
			is_path ? groups[i].sums.total[SUM_TRANSITIVE]
				: groups[i].outermost,
			intern_text(profile->words, groups[i].key.service),
			intern_text(profile->words, groups[i].key.name),
			i,
			groups[i].parent,
		};
	if (count)
		qsort(ranked, count, sizeof(*ranked), by_cost);
	return ranked;
}

static void list_methods(struct profile *profile)
{
	struct group *groups = profile->methods.data;
	size_t count = profile->methods.count;
	CLEANUP(free) struct ranked *ranked = rank(profile, groups, count, false);

	for (size_t i = 0; i < count; i++) {
		groups[ranked[i].index].place = i;
		vec_push(&profile->method_rows,
			 row_of(profile, &groups[ranked[i].index]));
	}
}

/* Children of one path lie together in @ranked; where they begin is in @first. */
static void list_below(struct profile *profile, const struct ranked *ranked,
		       const size_t *first, size_t index)
{
	struct group *groups = profile->paths.data;
	size_t at = index == NONE ? first[profile->paths.count] : first[index];

	for (; at < profile->paths.count && ranked[at].parent == index; at++) {
		struct group *group = &groups[ranked[at].index];
		struct profile_row row = row_of(profile, group);

		group->place = profile->path_rows.count;
		row.parent = index == NONE ? NONE : groups[index].place;
		vec_push(&profile->path_rows, row);
		list_below(profile, ranked, first, ranked[at].index);
	}
}

static void list_paths(struct profile *profile)
{
	size_t count = profile->paths.count;
	CLEANUP(free)
	struct ranked *ranked = rank(profile, profile->paths.data, count, true);
	CLEANUP(free) size_t *first = mem_array(count + 1, sizeof(*first));

	for (size_t i = 0; i <= count; i++)
		first[i] = count;
	for (size_t i = count; i--;)
		first[ranked[i].parent == NONE ? count : ranked[i].parent] = i;
	list_below(profile, ranked, first, NONE);
}

static void list_pairs(struct profile *profile)
{
	const struct group *methods = profile->methods.data;

	vec_each(&profile->edges, edge)
		vec_push(&profile->edge_rows,
			 ((struct profile_edge){ methods[edge->key.first].place,
						 methods[edge->key.second].place,
						 sums_calls(&edge->sums) }));
	vec_each(&profile->payers, payer)
		vec_push(&profile->payer_rows,
			 ((struct profile_payer){ methods[payer->key.first].place,
						  methods[payer->key.second].place,
						  payer->sums.total[SUM_SELF],
						  payer->sums.calls }));
}

static int by_edge(const void *a, const void *b)
{
	const struct profile_edge *one = a, *two = b;

	if (one->parent != two->parent)
		return one->parent < two->parent ? -1 : 1;
	return one->child < two->child ? -1 : one->child > two->child;
}

static int by_payment(const void *a, const void *b)
{
	const struct profile_payer *one = a, *two = b;

	if (one->method != two->method)
		return one->method < two->method ? -1 : 1;
	if (one->cpu_ns != two->cpu_ns)
		return one->cpu_ns > two->cpu_ns ? -1 : 1;
	return one->root < two->root ? -1 : one->root > two->root;
}

void profile_finish(struct profile *profile)
{
	find_parents(profile);
	order_traces(profile);
	vec_each(&profile->order, at)
		add_span(profile, &profile->spans.data[*at]);
	vec_each(&profile->methods, group)
		sums_close(&group->sums);
	vec_each(&profile->paths, group)
		sums_close(&group->sums);
	vec_each(&profile->edges, pair)
		sums_close(&pair->sums);
	vec_each(&profile->payers, pair)
		sums_close(&pair->sums);
	list_methods(profile);
	list_paths(profile);
	list_pairs(profile);
	if (profile->edge_rows.count)
		qsort(profile->edge_rows.data, profile->edge_rows.count,
		      sizeof(struct profile_edge), by_edge);
	if (profile->payer_rows.count)
		qsort(profile->payer_rows.data, profile->payer_rows.count,
		      sizeof(struct profile_payer), by_payment);
}

const struct profile_row *profile_methods(const struct profile *profile, size_t *count)
{
	*count = profile->method_rows.count;
	return profile->method_rows.data;
}

const struct profile_row *profile_paths(const struct profile *profile, size_t *count)
{
	*count = profile->path_rows.count;
	return profile->path_rows.data;
}

const struct profile_edge *profile_edges(const struct profile *profile, size_t *count)
{
	*count = profile->edge_rows.count;
	return profile->edge_rows.data;
}

const struct profile_payer *profile_payers(const struct profile *profile, size_t *count)
{
	*count = profile->payer_rows.count;
	return profile->payer_rows.data;
}

struct profile_stats profile_stats(const struct profile *profile)
{
	return profile->stats;
}
