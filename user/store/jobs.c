// SPDX-License-Identifier: Apache-2.0
/*
 * One walk over the samples sums them up by address in memory, in the order of the key
 * and a batch at a time, so that the daemon's loop goes on meanwhile. Then each address
 * is looked up, most sampled first, and the frames after them.
 */
#include "store/jobs.h"

#include <stdlib.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"
#include "store/sql.h"

#define KEYS	       8
#define ACCESS_COLUMNS 9
#define FRAME_COLUMNS  3

enum phase { PHASE_ACCESSES, PHASE_LOOK_UP, PHASE_FRAMES, PHASE_DONE };

/* Plain bytes: a map's key. */
struct place {
	uint64_t module_id, va, skid;
};

struct jobs {
	struct db *db;
	uint32_t analyser_version;
	enum phase phase;
	struct script walk_access, walk_frame, lacking;
	int64_t cursor[KEYS], frame_cursor;
	int64_t *rows;
	struct map *seen; /* place -> samples */
	VEC(struct jobs_site) sites;
	size_t next; /* of sites */
};

struct err *jobs_new(struct db *db, uint32_t analyser_version, struct jobs **ret_jobs)
{
	CLEANUP(jobs_free) struct jobs *jobs = mem_alloc(sizeof(*jobs));

	jobs->db = db;
	jobs->analyser_version = analyser_version;
	for (int i = 0; i < KEYS; i++)
		jobs->cursor[i] = INT64_MIN;
	jobs->frame_cursor = INT64_MIN;
	jobs->rows = mem_array(JOBS_BATCH * ACCESS_COLUMNS, sizeof(*jobs->rows));
	jobs->seen = map_new(sizeof(struct place), sizeof(uint64_t));
	TRY(script_open(db, "walk_access", &jobs->walk_access));
	TRY(script_open(db, "walk_frame", &jobs->walk_frame));
	TRY(script_open(db, "jobs_lacking", &jobs->lacking));
	*ret_jobs = take(jobs);
	return NULL;
}

void jobs_free(struct jobs *jobs)
{
	if (!jobs)
		return;
	script_close(&jobs->walk_access);
	script_close(&jobs->walk_frame);
	script_close(&jobs->lacking);
	map_free(jobs->seen);
	vec_fini(&jobs->sites);
	free(jobs->rows);
	free(jobs);
}

static void add_access(struct jobs *jobs, const int64_t *row)
{
	struct place place = { (uint64_t)row[4], (uint64_t)row[5],
			       source_skids((uint32_t)row[6]) };
	uint64_t *samples = map_find(jobs->seen, &place);

	if (!place.module_id) /* nobody could answer */
		return;
	if (!samples && map_count(jobs->seen) >= JOBS_MAX_SEEN)
		return;
	if (!samples)
		samples = map_put(jobs->seen, &place, NULL);
	*samples += (uint64_t)row[8];
}

static int by_samples(const void *a, const void *b)
{
	const struct jobs_site *x = a, *y = b;

	if (x->samples != y->samples)
		return x->samples > y->samples ? -1 : 1;
	if (x->module_id != y->module_id)
		return x->module_id < y->module_id ? -1 : 1;
	return x->va < y->va ? -1 : x->va > y->va;
}

static void sort_seen(struct jobs *jobs)
{
	const uint64_t *samples;
	const void *key;
	size_t pos = 0;

	while ((samples = map_next(jobs->seen, &pos, &key))) {
		const struct place *place = key;

		vec_push(&jobs->sites, ((struct jobs_site){ .module_id = place->module_id,
							    .va = place->va,
							    .skid = place->skid,
							    .samples = *samples }));
	}
	if (jobs->sites.count)
		qsort(jobs->sites.data, jobs->sites.count, sizeof(struct jobs_site),
		      by_samples);
	map_clear(jobs->seen);
}

static struct err *sum_step(struct jobs *jobs)
{
	size_t count;

	script_keys(&jobs->walk_access, jobs->cursor, KEYS);
	script_set(&jobs->walk_access, ":batch", JOBS_BATCH);
	TRY(script_rows(&jobs->walk_access, jobs->rows, ACCESS_COLUMNS, JOBS_BATCH,
			&count));
	for (size_t i = 0; i < count; i++)
		add_access(jobs, &jobs->rows[i * ACCESS_COLUMNS]);
	for (size_t i = 0; i < KEYS && count; i++)
		jobs->cursor[i] = jobs->rows[(count - 1) * ACCESS_COLUMNS + i];
	if (count < JOBS_BATCH) {
		sort_seen(jobs);
		jobs->phase = PHASE_LOOK_UP;
	}
	return NULL;
}

static struct err *look_up(struct jobs *jobs, struct jobs_site *site)
{
	int64_t lacks[2] = { 0, 0 };
	size_t count;

	script_set(&jobs->lacking, ":module_id", (int64_t)site->module_id);
	script_set(&jobs->lacking, ":va", (int64_t)site->va);
	script_set(&jobs->lacking, ":skid", site->skid);
	script_set(&jobs->lacking, ":analyser_version", jobs->analyser_version);
	TRY(script_rows(&jobs->lacking, lacks, 2, 1, &count));
	site->want_symbol = lacks[0];
	site->want_answer = lacks[1];
	return NULL;
}

static struct err *look_up_step(struct jobs *jobs, struct jobs_site *ret_sites,
				size_t room, size_t *ret_count)
{
	for (size_t i = 0; i < JOBS_BATCH && *ret_count < room; i++) {
		if (jobs->next == jobs->sites.count) {
			jobs->phase = PHASE_FRAMES;
			return NULL;
		}
		struct jobs_site *site = &jobs->sites.data[jobs->next++];

		TRY(look_up(jobs, site));
		if (site->want_symbol || site->want_answer)
			ret_sites[(*ret_count)++] = *site;
	}
	return NULL;
}

/* Many frames return to one place; it is handed out once. */
static bool is_new(struct jobs *jobs, const struct jobs_site *site)
{
	struct place place = { site->module_id, site->va, 0 };
	bool added;

	if (map_count(jobs->seen) >= JOBS_MAX_SEEN)
		return false;
	map_put(jobs->seen, &place, &added);
	return added;
}

static struct err *frame_step(struct jobs *jobs, struct jobs_site *ret_sites, size_t room,
			      size_t *ret_count)
{
	size_t want = room < JOBS_BATCH ? room : JOBS_BATCH, count;

	script_keys(&jobs->walk_frame, &jobs->frame_cursor, 1);
	script_set(&jobs->walk_frame, ":batch", (int64_t)want);
	TRY(script_rows(&jobs->walk_frame, jobs->rows, FRAME_COLUMNS, want, &count));
	for (size_t i = 0; i < count; i++) {
		const int64_t *row = &jobs->rows[i * FRAME_COLUMNS];
		struct jobs_site site = { .module_id = (uint64_t)row[1],
					  .va = (uint64_t)row[2] };

		jobs->frame_cursor = row[0];
		if (!site.module_id)
			continue;
		TRY(look_up(jobs, &site));
		site.want_answer = false;
		if (site.want_symbol && is_new(jobs, &site))
			ret_sites[(*ret_count)++] = site;
	}
	if (count < want)
		jobs->phase = PHASE_DONE;
	return NULL;
}

struct err *jobs_step(struct jobs *jobs, struct jobs_site *ret_sites, size_t room,
		      size_t *ret_count, bool *ret_done)
{
	struct err *err = NULL;

	*ret_count = 0;
	if (!room)
		return err_new(ERR_INVALID, "jobs: no room for a site");
	if (jobs->phase == PHASE_ACCESSES)
		err = sum_step(jobs);
	else if (jobs->phase == PHASE_LOOK_UP)
		err = look_up_step(jobs, ret_sites, room, ret_count);
	else if (jobs->phase == PHASE_FRAMES)
		err = frame_step(jobs, ret_sites, room, ret_count);
	*ret_done = jobs->phase == PHASE_DONE;
	return err;
}

struct err *jobs_retry(struct db *db, uint64_t module_id)
{
	CLEANUP(script_close) struct script script = { 0 };

	TRY(script_open(db, "jobs_retry", &script));
	script_set(&script, ":module_id", (int64_t)module_id);
	TRY(sql_begin(db));
	return sql_end(db, script_run(&script, NULL));
}
