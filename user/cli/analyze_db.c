// SPDX-License-Identifier: Apache-2.0
/*
 * Filed under the file's module id, as a run that samples nothing. The answers are those
 * of exact addresses; clock samples have their own, made on demand by the daemon.
 */
#include "cli/analyze_db.h"

#include <stdlib.h>
#include <string.h>
#include <sys/utsname.h>

#include "core/file.h"
#include "core/mem.h"
#include "store/writer.h"

#define FLUSH_BYTES (8u * 1024 * 1024)

struct analyze_db {
	struct db *db;
	struct writer *writer;
	struct err *err; /* the first one of a flush */
	struct fact_run run;
	char *target, *host, *kernel;
	uint64_t module_id;
};

static void put_run(struct analyze_db *db)
{
	sink_put(writer_sink(db->writer),
		 &(struct fact){ .kind = FACT_RUN, .run = db->run });
}

struct err *analyze_db_open(const char *db_path, const char *path,
			    const struct modfiles *files, struct analyze_db **ret_db)
{
	CLEANUP(analyze_db_free) struct analyze_db *db = mem_alloc(sizeof(*db));
	CLEANUP(free) char *real = realpath(path, NULL);
	struct writer_config config = { .analyser_version = ANALYSER_VERSION };
	struct utsname name;
	uint64_t now = realtime_ns();

	db->module_id = module_id_of(&files->build_id);
	if (!db->module_id)
		return err_new(ERR_UNSUPPORTED,
			       "%s has no build-id to file answers under: link it with "
			       "-Wl,--build-id",
			       path);
	uname(&name);
	db->target = mem_printf("analyze %s", real ? real : path);
	db->host = mem_strdup(name.nodename);
	db->kernel = mem_strdup(name.release);
	TRY(db_open(db_path, DB_WRITE, &db->db));
	TRY(writer_new(db->db, &config, &db->writer));
	db->run = (struct fact_run){
		.run_id = hash_bytes(&now, sizeof(now), db->module_id),
		.start_ns = now,
		.host = db->host,
		.boot_id = "",
		.kernel = db->kernel,
		.version = ASSAY_VERSION,
		.target = db->target,
		.sources = "none",
	};
	put_run(db);
	sink_put(
		writer_sink(db->writer),
		&(struct fact){ .kind = FACT_MODULE,
				.module = { .module_id = db->module_id,
					    .build_id = files->build_id,
					    .kind = MODULE_FILE,
					    .path = real ? real : path,
					    .debug = files->debug_path ? files->debug_path
								       : "file" } });
	*ret_db = take(db);
	return NULL;
}

void analyze_db_put(struct analyze_db *db, const struct job_answers *answers)
{
	struct sink *sink = writer_sink(db->writer);
	struct writer_stats stats;

	for (size_t i = 0; i < answers->type_count; i++)
		sink_put(sink,
			 &(struct fact){ .kind = FACT_TYPE, .type = answers->types[i] });
	for (size_t i = 0; i < answers->field_count; i++)
		sink_put(sink, &(struct fact){ .kind = FACT_FIELD,
					       .field = answers->fields[i] });
	for (size_t i = 0; i < answers->answer_count; i++) {
		struct fact fact = { .kind = FACT_ANSWER, .answer = answers->answers[i] };

		fact.answer.module_id = db->module_id;
		sink_put(sink, &fact);
		writer_stats(db->writer, &stats);
		if (!db->err && stats.pending_bytes > FLUSH_BYTES)
			db->err = writer_flush(db->writer);
	}
}

struct err *analyze_db_close(struct analyze_db *db)
{
	struct writer_stats stats;

	if (db->err)
		return take(db->err);
	db->run.end_ns = realtime_ns();
	put_run(db);
	TRY(writer_close(db->writer));
	writer_stats(db->writer, &stats);
	if (stats.dropped)
		return err_new(ERR_LIMIT, "%s: %llu rows did not fit", db_path(db->db),
			       (unsigned long long)stats.dropped);
	return NULL;
}

void analyze_db_free(struct analyze_db *db)
{
	if (!db)
		return;
	writer_free(db->writer);
	db_close(db->db);
	err_free(db->err);
	free(db->target);
	free(db->host);
	free(db->kernel);
	free(db);
}
