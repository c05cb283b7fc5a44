/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CLI_ANALYZE_DB_H
#define CLI_ANALYZE_DB_H

/* `assay analyze --db`: the answers, types and fields of a whole file into a database. */

#include "cli/modfiles.h"
#include "job/job.h"

struct analyze_db;

/* analyze_db_open() - make or open @db_path for the file at @path. Errors: db_open()'s;
 * ERR_UNSUPPORTED for a file without a build-id, under which answers are filed. */
struct err *analyze_db_open(const char *db_path, const char *path,
			    const struct modfiles *files, struct analyze_db **ret_db);
/* analyze_db_put() - one reply's worth. */
void analyze_db_put(struct analyze_db *db, const struct job_answers *answers);
/* analyze_db_close() - write all that is left; only after it the answers are there. */
struct err *analyze_db_close(struct analyze_db *db);
void analyze_db_free(struct analyze_db *db); /* NULL is fine */
CLEANUP_DEFINE(analyze_db_free, struct analyze_db *)

#endif
