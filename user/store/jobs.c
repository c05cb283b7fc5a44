// SPDX-License-Identifier: Apache-2.0
/* Two queries, accesses first; what they lack is only known by a pass over the samples. */
#include "store/jobs.h"

#include <stdlib.h>

#include "core/mem.h"
#include "store/sql.h"

#define COLUMNS 6

static struct err *fetch(struct db *db, const char *name, const struct jobs_query *query,
			 struct jobs_site *ret_sites, size_t room, size_t *ret_count)
{
	CLEANUP(script_close) struct script script = { 0 };
	CLEANUP(free) int64_t *rows = mem_array(room * COLUMNS, sizeof(*rows));

	TRY(script_open(db, name, &script));
	script_set(&script, ":module_id", (int64_t)query->module_id);
	script_set(&script, ":analyser_version", query->analyser_version);
	script_set(&script, ":limit", (int64_t)room);
	TRY(script_rows(&script, rows, COLUMNS, room, ret_count));
	for (size_t i = 0; i < *ret_count; i++) {
		const int64_t *row = &rows[i * COLUMNS];

		ret_sites[i] = (struct jobs_site){
			.module_id = (uint64_t)row[0],
			.va = (uint64_t)row[1],
			.skid = row[2],
			.want_symbol = row[3],
			.want_answer = row[4],
			.samples = (uint64_t)row[5],
		};
	}
	return NULL;
}

struct err *jobs_next(struct db *db, const struct jobs_query *query,
		      struct jobs_site *ret_sites, size_t *ret_count)
{
	size_t accesses = 0, frames = 0;

	if (!query->limit || query->limit > JOBS_MAX)
		return err_new(ERR_LIMIT, "jobs: between 1 and %d at once", JOBS_MAX);
	TRY(fetch(db, "jobs_access", query, ret_sites, query->limit, &accesses));
	if (accesses < query->limit)
		TRY(fetch(db, "jobs_frame", query, ret_sites + accesses,
			  query->limit - accesses, &frames));
	*ret_count = accesses + frames;
	return NULL;
}

struct err *jobs_retry(struct db *db, uint64_t module_id)
{
	CLEANUP(script_close) struct script script = { 0 };

	TRY(script_open(db, "jobs_retry", &script));
	script_set(&script, ":module_id", (int64_t)module_id);
	TRY(sql_begin(db));
	return sql_end(db, script_run(&script, NULL));
}
