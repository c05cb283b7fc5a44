/* SPDX-License-Identifier: Apache-2.0 */
#ifndef STORE_APPLY_H
#define STORE_APPLY_H

/* One fact into the tables, by prepared statements, inside the caller's transaction. */

#include "model/fact.h"
#include "store/db.h"

struct apply;

/* What a row says besides the fact itself. */
struct apply_context {
	uint64_t run_id; /* for facts that name no run */
	uint64_t now_ns; /* realtime */
	uint32_t analyser_version;
};

struct err *apply_new(struct db *db, struct apply **ret_apply);
void apply_free(struct apply *apply); /* NULL is fine */
CLEANUP_DEFINE(apply_free, struct apply *)

/* apply_fact() - Return: SQLite's code, SQLITE_DONE when it went well. */
int apply_fact(struct apply *apply, const struct apply_context *context,
	       const struct fact *fact);

/* apply_loss() - a loss row that also says how long nothing was covered. */
int apply_loss(struct apply *apply, const struct fact_loss *loss, uint64_t lost_ns);

#endif
