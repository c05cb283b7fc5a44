// SPDX-License-Identifier: Apache-2.0
/*
 * Two tables: what was seen per (bucket, kind), with how much of it each reason's row
 * has already been credited; and the rows that wait to be put. A row's @seen comes from
 * here or from the reporter, never from both.
 */
#include "live/losses.h"

#include "core/map.h"
#include "core/vec.h"

/* Rows come from events; a stream with absurd times must not grow the table. */
#define LOSSES_MAX_ROWS 4096

struct seen_key {
	uint64_t bucket_ns;
	uint64_t kind;
};

struct seen {
	uint64_t total;
	uint64_t put[LOSS_REASONS];
};

struct row_key {
	uint64_t bucket_ns;
	uint32_t kind, reason;
};

struct row {
	uint64_t lost, seen;
	bool outside; /* @seen is the reporter's */
};

struct losses {
	const struct live_config *config;
	struct sink *sink;
	struct map *seen, *rows;
};

struct losses *losses_new(const struct live_config *config, struct sink *sink)
{
	struct losses *losses = mem_alloc(sizeof(*losses));

	losses->config = config;
	losses->sink = sink;
	losses->seen = map_new(sizeof(struct seen_key), sizeof(struct seen));
	losses->rows = map_new(sizeof(struct row_key), sizeof(struct row));
	return losses;
}

void losses_free(struct losses *losses)
{
	if (!losses)
		return;
	map_free(losses->seen);
	map_free(losses->rows);
	free(losses);
}

void losses_seen(struct losses *losses, uint64_t time_ns, uint32_t kind)
{
	struct seen_key key = { bucket_of(losses->config, time_ns), kind };
	struct seen *seen = map_find(losses->seen, &key);

	if (!seen && map_count(losses->seen) >= LOSSES_MAX_ROWS)
		return;
	if (!seen)
		seen = map_put(losses->seen, &key, NULL);
	seen->total++;
}

static void put_row(struct losses *losses, const struct row_key *key,
		    const struct row *row)
{
	struct fact fact = {
		.kind = FACT_LOSS,
		.loss = { .run_id = losses->config->run_id,
			  .bucket_ns = key->bucket_ns,
			  .kind = key->kind,
			  .reason = (enum loss_reason)key->reason,
			  .lost = row->lost,
			  .seen = row->seen },
	};
	struct seen_key seen_key = { key->bucket_ns, key->kind };
	struct seen *seen = row->outside ? NULL : map_find(losses->seen, &seen_key);

	if (seen) {
		fact.loss.seen = seen->total - seen->put[key->reason];
		seen->put[key->reason] = seen->total;
	}
	if (fact.loss.lost || fact.loss.seen)
		sink_put(losses->sink, &fact);
}

static struct row *row_at(struct losses *losses, uint64_t time_ns, uint32_t kind,
			  enum loss_reason reason)
{
	struct row_key key = { bucket_of(losses->config, time_ns), kind, reason };

	/* Nothing may be lost uncounted: make room by putting what there is. */
	if (map_count(losses->rows) >= LOSSES_MAX_ROWS && !map_find(losses->rows, &key))
		losses_flush(losses, UINT64_MAX);
	return map_put(losses->rows, &key, NULL);
}

void losses_add(struct losses *losses, uint64_t time_ns, uint32_t kind,
		enum loss_reason reason, uint64_t lost)
{
	if (kind < ABI_KINDS && reason > 0 && reason < LOSS_REASONS && lost)
		row_at(losses, time_ns, kind, reason)->lost += lost;
}

void losses_outside(struct losses *losses, uint64_t time_ns, const struct abi_loss *loss)
{
	if (loss->kind >= ABI_KINDS || !loss->reason || loss->reason >= LOSS_REASONS)
		return;
	struct row *row =
		row_at(losses, time_ns, loss->kind, (enum loss_reason)loss->reason);

	row->lost += loss->lost;
	row->seen += loss->seen;
	row->outside |= loss->seen > 0;
}

static bool is_before(const void *key, void *value, void *ctx)
{
	(void)value;
	return *(const uint64_t *)key < *(uint64_t *)ctx;
}

static int by_key(const void *a, const void *b)
{
	const struct row_key *x = a, *y = b;

	if (x->bucket_ns != y->bucket_ns)
		return x->bucket_ns < y->bucket_ns ? -1 : 1;
	if (x->kind != y->kind)
		return x->kind < y->kind ? -1 : 1;
	return x->reason < y->reason ? -1 : x->reason > y->reason;
}

void losses_flush(struct losses *losses, uint64_t before_ns)
{
	VEC(struct row_key) keys = { 0 };
	size_t pos = 0;
	const void *key;

	while (map_next(losses->rows, &pos, &key))
		if (*(const uint64_t *)key < before_ns)
			vec_push(&keys, *(const struct row_key *)key);
	if (keys.count)
		qsort(keys.data, keys.count, sizeof(*keys.data), by_key);
	vec_each(&keys, k)
		put_row(losses, k, map_find(losses->rows, k));
	vec_fini(&keys);
	map_del_if(losses->rows, is_before, &before_ns);

	uint64_t old_ns = before_ns > LOSSES_KEPT_NS && before_ns < UINT64_MAX
				  ? before_ns - LOSSES_KEPT_NS
				  : 0;

	map_del_if(losses->seen, is_before, &old_ns);
}
