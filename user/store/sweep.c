// SPDX-License-Identifier: Apache-2.0
/*
 * Mark and sweep in phases, each a walk over one table in the order of its key, a batch
 * of rows per step. First the samples mark what they refer to, then each table drops
 * what is not marked and what is left marks the next. Between two steps facts arrive:
 *
 *  - what the writer puts during an open run carries that run's id and is kept;
 *  - stacks and processes, of which there is no end, carry the time they were last put
 *    instead, and are kept for a while after it;
 *  - an answer or site of an earlier run may fall just as a new sample needs it: then it
 *    is lacking again, and jobs_next() finds it.
 *
 * Frames form a tree and go with the last stack or frame that hangs on them.
 */
#include "store/sweep.h"

#include <stdlib.h>

#include "core/map.h"
#include "core/mem.h"
#include "model/ids.h"
#include "store/retain.h"
#include "store/sql.h"

#define MAX_COLUMNS	 8
#define MAX_OPEN_RUNS	 1024
#define STACK_GRACE_NS	 (3600 * 1000000000ull)
#define PROCESS_GRACE_NS (600 * 1000000000ull)

enum mark {
	MARK_SITE, /* hash of module and va */
	MARK_FUNCTION,
	MARK_PROCESS,
	MARK_MODULE,
	MARK_STACK,
	MARK_TYPE,
	MARK_RUN,
	MARKS,
};

struct sweep {
	struct db *db;
	uint64_t now_ns, runs_before_ns;
	struct map *marks[MARKS];
	struct map *open_runs;
	unsigned phase;
	struct script walk, remove, remove_frame;
	int64_t cursor[MAX_COLUMNS];
	int64_t *rows;
};

/* Return: this row goes. Columns are those of schema/write/walk_NAME.sql. */
typedef bool (*row_fn)(struct sweep *sweep, const int64_t *row);

struct phase {
	const char *walk, *remove; /* @remove NULL: marks only */
	unsigned keys, columns;
	row_fn row;
};

static void mark(struct sweep *sweep, enum mark kind, int64_t id)
{
	map_put(sweep->marks[kind], &id, NULL);
}

static bool marked(const struct sweep *sweep, enum mark kind, int64_t id)
{
	return map_find(sweep->marks[kind], &id);
}

static bool is_open(const struct sweep *sweep, int64_t run_id)
{
	return map_find(sweep->open_runs, &run_id);
}

static bool is_recent(const struct sweep *sweep, int64_t seen_at_ns, uint64_t grace_ns)
{
	return (uint64_t)seen_at_ns + grace_ns > sweep->now_ns;
}

static int64_t place(int64_t module_id, int64_t va)
{
	int64_t key[2] = { module_id, va };

	return (int64_t)hash_bytes(key, sizeof(key), 0);
}

static bool access_row(struct sweep *sweep, const int64_t *row)
{
	mark(sweep, MARK_RUN, row[2]);
	mark(sweep, MARK_PROCESS, row[3]);
	mark(sweep, MARK_MODULE, row[4]);
	mark(sweep, MARK_SITE, place(row[4], row[5]));
	return false;
}

static bool tick_row(struct sweep *sweep, const int64_t *row)
{
	mark(sweep, MARK_RUN, row[2]);
	mark(sweep, MARK_PROCESS, row[3]);
	mark(sweep, MARK_STACK, row[4]);
	return false;
}

static bool request_row(struct sweep *sweep, const int64_t *row)
{
	mark(sweep, MARK_RUN, row[2]);
	mark(sweep, MARK_PROCESS, row[3]);
	return false;
}

static bool span_row(struct sweep *sweep, const int64_t *row)
{
	mark(sweep, MARK_RUN, row[2]);
	mark(sweep, MARK_PROCESS, row[4]);
	return false;
}

static bool loss_row(struct sweep *sweep, const int64_t *row)
{
	mark(sweep, MARK_RUN, row[2]);
	return false;
}

static bool stack_row(struct sweep *sweep, const int64_t *row)
{
	return !marked(sweep, MARK_STACK, row[0]) &&
	       !is_recent(sweep, row[1], STACK_GRACE_NS);
}

static bool frame_row(struct sweep *sweep, const int64_t *row)
{
	mark(sweep, MARK_MODULE, row[1]);
	mark(sweep, MARK_SITE, place(row[1], row[2]));
	return false;
}

static bool site_row(struct sweep *sweep, const int64_t *row)
{
	if (!is_open(sweep, row[2]) && !marked(sweep, MARK_SITE, place(row[0], row[1])))
		return true;
	mark(sweep, MARK_FUNCTION, place(row[0], row[3]));
	return false;
}

static bool function_row(struct sweep *sweep, const int64_t *row)
{
	return !is_open(sweep, row[2]) &&
	       !marked(sweep, MARK_FUNCTION, place(row[0], row[1]));
}

static bool answer_row(struct sweep *sweep, const int64_t *row)
{
	if (!is_open(sweep, row[3]) && !marked(sweep, MARK_SITE, place(row[0], row[1])))
		return true;
	mark(sweep, MARK_TYPE, row[4]);
	return false;
}

static bool type_row(struct sweep *sweep, const int64_t *row)
{
	return !is_open(sweep, row[1]) && !marked(sweep, MARK_TYPE, row[0]);
}

static bool process_row(struct sweep *sweep, const int64_t *row)
{
	bool lives = is_open(sweep, row[1]) && !row[3];

	if (!lives && !marked(sweep, MARK_PROCESS, row[0]) &&
	    !is_recent(sweep, row[2], PROCESS_GRACE_NS))
		return true;
	mark(sweep, MARK_MODULE, row[4]);
	return false;
}

static bool module_row(struct sweep *sweep, const int64_t *row)
{
	return !is_open(sweep, row[1]) && !marked(sweep, MARK_MODULE, row[0]);
}

static bool run_row(struct sweep *sweep, const int64_t *row)
{
	return row[1] && (uint64_t)row[1] < sweep->runs_before_ns &&
	       !marked(sweep, MARK_RUN, row[0]);
}

static const struct phase phases[] = {
	{ "walk_access", NULL, 8, 8, access_row },
	{ "walk_tick", NULL, 6, 6, tick_row },
	{ "walk_request", NULL, 6, 6, request_row },
	{ "walk_span", NULL, 4, 5, span_row },
	{ "walk_resource_bucket", NULL, 5, 5, loss_row },
	{ "walk_loss", NULL, 5, 5, loss_row },
	{ "walk_stack", "sweep_stack", 1, 3, stack_row },
	{ "walk_frame", NULL, 1, 3, frame_row },
	{ "walk_site", "sweep_site", 2, 4, site_row },
	{ "walk_function", "sweep_function", 2, 3, function_row },
	{ "walk_answer", "sweep_answer", 3, 5, answer_row },
	{ "walk_type", "sweep_type", 1, 2, type_row },
	{ "walk_process", "sweep_process", 1, 5, process_row },
	{ "walk_module", "sweep_module", 1, 2, module_row },
	{ "walk_run", "sweep_run", 1, 2, run_row },
};
#define PHASES (sizeof(phases) / sizeof(*phases))

static struct err *phase_begin(struct sweep *sweep)
{
	const struct phase *phase = &phases[sweep->phase];

	script_close(&sweep->walk);
	script_close(&sweep->remove);
	for (int i = 0; i < MAX_COLUMNS; i++)
		sweep->cursor[i] = INT64_MIN;
	TRY(script_open(sweep->db, phase->walk, &sweep->walk));
	if (phase->remove)
		TRY(script_open(sweep->db, phase->remove, &sweep->remove));
	return NULL;
}

struct err *sweep_new(struct db *db, uint64_t now_ns, uint64_t runs_before_ns,
		      struct sweep **ret_sweep)
{
	CLEANUP(sweep_free) struct sweep *sweep = mem_alloc(sizeof(*sweep));
	CLEANUP(script_close) struct script open = { 0 };
	size_t count;

	sweep->db = db;
	sweep->now_ns = now_ns;
	sweep->runs_before_ns = runs_before_ns;
	sweep->rows = mem_array(RETAIN_BATCH * MAX_COLUMNS, sizeof(*sweep->rows));
	sweep->open_runs = map_new(sizeof(int64_t), 1);
	for (int i = 0; i < MARKS; i++)
		sweep->marks[i] = map_new(sizeof(int64_t), 1);
	TRY(script_open(db, "open_runs", &open));
	TRY(script_rows(&open, sweep->rows, 1, MAX_OPEN_RUNS, &count));
	for (size_t i = 0; i < count; i++)
		map_put(sweep->open_runs, &sweep->rows[i], NULL);
	TRY(script_open(db, "sweep_frame", &sweep->remove_frame));
	TRY(phase_begin(sweep));
	*ret_sweep = take(sweep);
	return NULL;
}

void sweep_free(struct sweep *sweep)
{
	if (!sweep)
		return;
	for (int i = 0; i < MARKS; i++)
		map_free(sweep->marks[i]);
	map_free(sweep->open_runs);
	script_close(&sweep->walk);
	script_close(&sweep->remove);
	script_close(&sweep->remove_frame);
	free(sweep->rows);
	free(sweep);
}

/* From the leaf up, as far as nothing else hangs on it. */
static struct err *remove_frames(struct sweep *sweep, int64_t frame_id,
				 uint64_t *ret_removed)
{
	size_t count = 1;

	while (frame_id && count) {
		script_keys(&sweep->remove_frame, &frame_id, 1);
		/* Room for two, so that the statement is stepped to its end. */
		int64_t parents[2];

		TRY(script_rows(&sweep->remove_frame, parents, 1, 2, &count));
		*ret_removed += count;
		frame_id = parents[0];
	}
	return NULL;
}

static struct err *handle_rows(struct sweep *sweep, size_t count, uint64_t *ret_removed)
{
	const struct phase *phase = &phases[sweep->phase];

	for (size_t i = 0; i < count; i++) {
		const int64_t *row = &sweep->rows[i * phase->columns];

		if (!phase->row(sweep, row))
			continue;
		script_keys(&sweep->remove, row, phase->keys);
		TRY(script_run(&sweep->remove, NULL));
		++*ret_removed;
		if (phase->row == stack_row)
			TRY(remove_frames(sweep, row[2], ret_removed));
	}
	return NULL;
}

static bool has_too_many_marks(const struct sweep *sweep)
{
	size_t count = 0;

	for (int i = 0; i < MARKS; i++)
		count += map_count(sweep->marks[i]);
	return count > SWEEP_MAX_MARKS;
}

struct err *sweep_step(struct sweep *sweep, bool *ret_done, uint64_t *ret_removed)
{
	const struct phase *phase = &phases[sweep->phase];
	size_t count;

	script_keys(&sweep->walk, sweep->cursor, phase->keys);
	script_set(&sweep->walk, ":batch", RETAIN_BATCH);
	TRY(script_rows(&sweep->walk, sweep->rows, phase->columns, RETAIN_BATCH, &count));
	if (phase->remove)
		TRY(sql_begin(sweep->db));
	struct err *err = handle_rows(sweep, count, ret_removed);

	if (phase->remove)
		err = sql_end(sweep->db, err);
	if (err)
		return err;
	for (unsigned i = 0; i < phase->keys && count; i++)
		sweep->cursor[i] = sweep->rows[(count - 1) * phase->columns + i];
	*ret_done = has_too_many_marks(sweep);
	if (count == RETAIN_BATCH || *ret_done)
		return NULL;
	if (++sweep->phase == PHASES) {
		*ret_done = true;
		return NULL;
	}
	return phase_begin(sweep);
}
