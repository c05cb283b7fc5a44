// SPDX-License-Identifier: Apache-2.0
/*
 * The whole .text of one file through the worker. Answers stream in, function by
 * function; --tsv passes them on at once, the other forms count them.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/analyze_db.h"
#include "cli/cmd.h"
#include "cli/debughint.h"
#include "cli/modfiles.h"
#include "cli/number.h"
#include "cli/progress.h"
#include "cli/shares.h"
#include "cli/stop.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"
#include "job/cache.h"
#include "job/kept.h"

#define ANALYZE_STEP_MS	 200
#define ANALYZE_ID	 1 /* the only module of our worker */
#define ANALYZE_TYPES	 20
#define ANALYZE_MAX_NAME 256

static const struct option_spec options[] = {
	{ "stats", 0, OPTION_FLAG, NULL, "only how many instructions got an answer", 0,
	  0 },
	{ "db", 0, OPTION_FILE, "FILE", "also store answers, types and fields there", 0,
	  0 },
	{ "jobs", 'j', OPTION_NUMBER, "N", "split the work over N processes", 1,
	  SHARES_MAX },
	{ "limit", 'n', OPTION_NUMBER, "N", "types in the table; 20, and 0 for all", 0,
	  0 },
	{ "no-cache", 0, OPTION_FLAG, NULL, "analyse anew, and keep nothing", 0, 0 },
	{ "cache-size", 0, OPTION_NUMBER, "MB",
	  "what may be kept of all files together; 2048", 1, 1 << 20 },
	{ 0 },
};

struct type_count {
	char name[ANALYZE_MAX_NAME];
	uint64_t type_id, instructions, bytes;
};

struct analysis {
	struct cli *cli;
	struct progress progress;
	struct err *err;
	struct map *types; /* type id -> struct type_count */
	uint64_t by_verdict[VERDICTS];
	uint64_t by_frame[VERDICTS]; /* of them relative to the stack frame */
	struct analyze_db *db;	     /* NULL: not stored */
	struct job_stats stats;
	struct cache_writer *writer; /* NULL: the answers are not kept */
	struct kept *kept;	     /* of compilation units; NULL: likewise */
	bool is_cached;		     /* they come from an earlier run */
	bool lines;		     /* print every answer */
	bool done;
};

static void put_cell(FILE *file, const char *text)
{
	fputc('\t', file);
	if (!*text)
		fputc('-', file);
	for (; *text; text++)
		fputc((unsigned char)*text < ' ' ? ' ' : *text, file);
}

/* "address type offset path confidence provenance"; "-" where there is no claim. The path
 * of a spill is what lies in the slot. */
static void put_answer(FILE *file, const struct answer *answer)
{
	bool claim = verdict_is_claim(answer->verdict);

	fprintf(file, "%" PRIx64, answer->insn_va ? answer->insn_va : answer->va);
	put_cell(file, claim ? answer->type : "");
	if (claim)
		fprintf(file, "\t%" PRId64, answer->offset);
	else
		put_cell(file, "");
	put_cell(file, answer->path);
	fprintf(file, "\t%.3g\t%s\n", claim ? answer->confidence : 0.0,
		verdict_name(answer->verdict));
}

static void count_answer(struct analysis *analysis, const struct fact_answer *fact)
{
	const struct answer *answer = &fact->answer;
	struct type_count *type;
	bool is_new;

	if ((unsigned)answer->verdict < VERDICTS)
		analysis->by_verdict[answer->verdict]++;
	if ((unsigned)answer->verdict < VERDICTS && answer->is_frame)
		analysis->by_frame[answer->verdict]++;
	if (!verdict_is_claim(answer->verdict))
		return;
	uint64_t key = hash_text(answer->type, 0);

	type = map_put(analysis->types, &key, &is_new);
	if (is_new) {
		snprintf(type->name, sizeof(type->name), "%s", answer->type);
		type->bytes = answer->type_bytes;
		type->type_id = fact->type_id;
	}
	type->instructions++;
}

static void take_answers(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct analysis *analysis = ctx;

	if (err) {
		analysis->err = err;
		analysis->done = true;
		return;
	}
	const struct job_answers *answers = &reply->sites.answers;

	if (analysis->kept)
		kept_take(analysis->kept, reply);
	if (analysis->writer) {
		struct job_reply answer = *reply;

		answer.sites.kept = NULL;
		answer.sites.kept_bytes = 0;
		cache_writer_put(analysis->writer, &answer);
	}
	if (analysis->db)
		analyze_db_put(analysis->db, answers);
	for (size_t i = 0; i < answers->answer_count; i++) {
		count_answer(analysis, &answers->answers[i]);
		if (analysis->lines)
			put_answer(analysis->cli->out.file, &answers->answers[i].answer);
	}
	progress_show(&analysis->progress, reply->sites.done, reply->sites.total,
		      "functions");
	if (!reply->more) {
		analysis->stats = reply->sites.stats;
		analysis->done = true;
	}
}

static struct err *analyze_shares(struct analysis *analysis, struct job_client *worker,
				  const struct modfiles *files)
{
	struct shares_job job = {
		.first = worker,
		.files = files,
		.module_id = ANALYZE_ID,
		.count = (uint32_t)option_number(&analysis->cli->options, "jobs", 1),
		.keeps = analysis->kept,
		.pack_fd = analysis->kept ? kept_fd(analysis->kept) : -1,
		.file = &analysis->cli->out.file,
		.done = take_answers,
		.ctx = analysis,
	};

	return shares_run(&job);
}

static struct err *analyze(struct analysis *analysis, struct job_client *worker,
			   const struct modfiles *files)
{
	struct job_open open = { .module_id = ANALYZE_ID,
				 .main_fd = files->main_fd,
				 .debug_fd = files->debug_fd,
				 .alt_fd = files->alt_fd,
				 .kallsyms_fd = -1,
				 .keeps = analysis->kept,
				 .pack_fd =
					 analysis->kept ? kept_fd(analysis->kept) : -1 };

	TRY(job_open(worker, &open));
	progress_begin(&analysis->progress, "analysing", analysis->cli->quiet);
	if (option_number(&analysis->cli->options, "jobs", 1) > 1)
		TRY(analyze_shares(analysis, worker, files));
	else
		TRY(job_module(worker, ANALYZE_ID, take_answers, analysis));
	while (!analysis->done && !stop_flag) {
		struct err *err = job_wait(worker, ANALYZE_STEP_MS);
		bool slow = err && err->code == ERR_LIMIT;

		if (slow)
			err_free(err);
		else
			TRY(err);
		progress_show(&analysis->progress, 0, 0, NULL);
	}
	progress_end(&analysis->progress);
	if (!analysis->done)
		return err_new(ERR_CLOSED, "interrupted");
	return take(analysis->err);
}

/* A cache that does not work is worth a word, not a failure. */
static void no_cache(struct analysis *analysis, struct err *err)
{
	if (!err)
		return;
	if (!analysis->cli->quiet)
		fprintf(stderr, "assay: the answers are not kept: %s\n", err->text);
	err_free(err);
}

/* From the worker, with what is kept of units, and into both. */
static struct err *analyze_anew(struct analysis *analysis, struct job_client *worker,
				const struct modfiles *files, const char *folder,
				const char *path)
{
	CLEANUP(free) char *real = realpath(path, NULL);
	CLEANUP(kept_free)
	struct kept *kept = kept_open(folder, real ? real : path, files->main_fd);
	uint64_t room = option_number(&analysis->cli->options, "cache-size",
				      CACHE_MAX_BYTES >> 20)
			<< 20;
	struct err *err;

	analysis->kept = kept;
	err = analyze(analysis, worker, files);
	analysis->kept = NULL;
	if (err)
		return err;
	no_cache(analysis, kept_save(kept, room));
	if (analysis->writer)
		no_cache(analysis, cache_writer_commit(analysis->writer, room));
	return NULL;
}

/* From the cache, or from the worker. */
static struct err *analyze_cached(struct analysis *analysis, struct job_client *worker,
				  const struct modfiles *files, const char *path)
{
	const int fds[] = { files->main_fd, files->debug_fd, files->alt_fd };
	CLEANUP(free) char *folder = cache_folder();
	CLEANUP(cache_writer_free) struct cache_writer *writer = NULL;
	struct cache_key key;
	struct err *err = NULL;

	if (!folder || option_given(&analysis->cli->options, "no-cache"))
		return analyze(analysis, worker, files);
	err = cache_key_of(fds, 3, NULL, &key);
	if (!err) {
		progress_begin(&analysis->progress, "reading", true); /* too fast */
		TRY(cache_load(folder, &key, take_answers, analysis,
			       &analysis->is_cached));
		if (analysis->is_cached)
			return NULL;
		/* Several workers answer out of order: such a reply is not kept. */
		if (option_number(&analysis->cli->options, "jobs", 1) == 1)
			err = cache_writer_open(folder, &key, &writer);
	}
	no_cache(analysis, err);
	analysis->writer = writer;
	err = analyze_anew(analysis, worker, files, folder, path);
	analysis->writer = NULL;
	return err;
}

/* Accesses relative to the stack frame are mostly spills: both denominators are given. */
static struct table *verdict_table(const struct analysis *analysis, uint64_t total,
				   uint64_t stack)
{
	static const struct column columns[] = {
		{ "verdict", "VERDICT", COLUMN_TEXT, 0 },
		{ "is_claim", "CLAIM", COLUMN_NUMBER, COLUMN_MACHINE },
		{ "instructions", "INSTRUCTIONS", COLUMN_COUNT, 0 },
		{ "share_of_all", "SHARE", COLUMN_SHARE, 0 },
		{ "share_of_non_stack", "OF NON-STACK", COLUMN_SHARE, 0 },
		{ "text", "MEANING", COLUMN_TEXT, COLUMN_CUT },
		{ "non_stack", "NON-STACK", COLUMN_COUNT, COLUMN_MACHINE },
	};
	struct table *table = table_new(columns, 7);

	for (int i = 0; i < VERDICTS; i++) {
		uint64_t count = analysis->by_verdict[i];

		if (!count)
			continue;
		table_row(table);
		table_text(table, 0, verdict_name((enum verdict)i));
		table_number(table, 1, verdict_is_claim((enum verdict)i));
		table_number(table, 2, (int64_t)count);
		table_real(table, 3, (double)count / (double)total);
		uint64_t frame = analysis->by_frame[i];

		if (count > frame)
			table_real(table, 4,
				   (double)(count - frame) / (double)(total - stack));
		table_text(table, 5, verdict_text((enum verdict)i));
		table_number(table, 6, (int64_t)(count - frame));
	}
	return table;
}

static int by_count(const void *a, const void *b)
{
	const struct type_count *left = *(struct type_count *const *)a;
	const struct type_count *right = *(struct type_count *const *)b;

	if (left->instructions != right->instructions)
		return left->instructions > right->instructions ? -1 : 1;
	return strcmp(left->name, right->name);
}

static struct table *type_table(const struct analysis *analysis, uint64_t claims,
				size_t limit)
{
	static const struct column columns[] = {
		{ "type", "TYPE", COLUMN_TEXT, COLUMN_CUT },
		{ "instructions", "INSTRUCTIONS", COLUMN_COUNT, 0 },
		{ "share_of_typed", "OF TYPED", COLUMN_SHARE, 0 },
		{ "bytes", "SIZE", COLUMN_BYTES, 0 },
		{ "type_id", "ID", COLUMN_ID, COLUMN_MACHINE },
	};
	struct table *table = table_new(columns, 5);
	VEC(struct type_count *) list = { 0 };
	size_t pos = 0;

	for (struct type_count *type; (type = map_next(analysis->types, &pos, NULL));)
		vec_push(&list, type);
	if (list.count)
		qsort(list.data, list.count, sizeof(*list.data), by_count);
	for (size_t i = 0; i < list.count && (!limit || i < limit); i++) {
		const struct type_count *type = list.data[i];

		table_row(table);
		table_text(table, 0, type->name);
		table_number(table, 1, (int64_t)type->instructions);
		table_real(table, 2, (double)type->instructions / (double)claims);
		table_number(table, 3, (int64_t)type->bytes);
		table_number(table, 4, (int64_t)type->type_id);
	}
	vec_fini(&list);
	return table;
}

static void put_totals(struct output *out, const struct analysis *analysis,
		       uint64_t total, uint64_t claims)
{
	uint64_t stack = 0, frame_claims = 0;

	for (int i = 0; i < VERDICTS; i++) {
		stack += analysis->by_frame[i];
		if (verdict_is_claim((enum verdict)i))
			frame_claims += analysis->by_frame[i];
	}
	double all = total ? (double)claims / (double)total : 0;
	double non_stack =
		total > stack ? (double)(claims - frame_claims) / (double)(total - stack)
			      : 0;
	CLEANUP(free) char *count = number_count(total);
	CLEANUP(free) char *share = number_share(all);
	CLEANUP(free) char *share_non_stack = number_share(non_stack);
	CLEANUP(free) char *cpu = number_ns(analysis->stats.cpu_ns);
	CLEANUP(free) char *peak = number_bytes(analysis->stats.peak_bytes);

	uint64_t scalars = analysis->by_verdict[VERDICT_NOT_STRUCT];
	uint64_t spills = analysis->by_verdict[VERDICT_SPILL];
	double of_all = total ? 1 / (double)total : 0;
	CLEANUP(free) char *typed = number_share((double)(claims + scalars) * of_all);
	CLEANUP(free) char *spilled = number_share((double)spills * of_all);
	CLEANUP(free)
	char *known = number_share((double)(claims + scalars + spills) * of_all);

	output_gap(out);
	output_note(out,
		    "%s memory instructions, %s typed (%s of those not relative to the "
		    "stack frame); %s CPU, %s.",
		    count, share, share_non_stack, cpu, peak);
	output_note(out,
		    "Scalars and buffers counted too, %s are typed; %s are spills of "
		    "values whose type is known; together %s.",
		    typed, spilled, known);
	if (analysis->is_cached)
		output_note(out,
			    "Kept answers of an earlier run; CPU and memory are that "
			    "run's. --no-cache analyses anew.");
	else if (analysis->stats.kept_units)
		output_note(out,
			    "Analysed now, but for %" PRIu64 " of %" PRIu64
			    " compilation units, whose kept answers still hold. "
			    "--no-cache analyses them anew.",
			    analysis->stats.kept_units, analysis->stats.units);
	else
		output_note(out, "Analysed now; no kept answers were used.");
	output_value(out, "totals",
		     json_pack("{sIsIsIsIsIsIsIsfsfsIsIsIsIsb}", "functions",
			       (json_int_t)analysis->stats.functions, "instructions",
			       (json_int_t)analysis->stats.instructions,
			       "memory_instructions", (json_int_t)total, "stack",
			       (json_int_t)stack, "typed", (json_int_t)claims, "scalars",
			       (json_int_t)scalars, "spills", (json_int_t)spills,
			       "share_of_all", all, "share_of_non_stack", non_stack,
			       "cpu_ns", (json_int_t)analysis->stats.cpu_ns, "peak_bytes",
			       (json_int_t)analysis->stats.peak_bytes, "units",
			       (json_int_t)analysis->stats.units, "kept_units",
			       (json_int_t)analysis->stats.kept_units, "is_cached",
			       analysis->is_cached));
}

static struct err *put_report(struct cli *cli, const struct analysis *analysis,
			      const struct modfiles *files, const char *path)
{
	uint64_t total = 0, claims = 0, stack = 0;
	bool stats = option_given(&cli->options, "stats");
	CLEANUP(table_free) struct table *verdicts = NULL;
	CLEANUP(table_free) struct table *types = NULL;
	CLEANUP(free) char *hex = str_hex(files->build_id.bytes, files->build_id.size);

	for (int i = 0; i < VERDICTS; i++) {
		total += analysis->by_verdict[i];
		stack += analysis->by_frame[i];
		if (verdict_is_claim((enum verdict)i))
			claims += analysis->by_verdict[i];
	}
	output_value(&cli->out, "file", json_text(path));
	output_value(&cli->out, "build_id", json_string(hex));
	output_value(&cli->out, "debug_file",
		     files->debug_path ? json_text(files->debug_path) : json_null());
	if (!stats && claims) {
		types = type_table(analysis, claims,
				   option_number(&cli->options, "limit", ANALYZE_TYPES));
		TRY(output_table(&cli->out, "types", "types", types));
	}
	verdicts = verdict_table(analysis, total, stack);
	TRY(output_table(&cli->out, "verdicts", stats ? NULL : "answers", verdicts));
	put_totals(&cli->out, analysis, total, claims);
	return NULL;
}

static struct err *no_debug(const char *path, const struct build_id *id)
{
	CLEANUP(free) char *real = realpath(path, NULL);
	CLEANUP(free) char *text = debughint(real ? real : path, id);
	CLEANUP(free) char *archive = debughint_archive();

	return err_new(ERR_NOT_FOUND, "%s%s%s", text, archive ? "; " : "",
		       archive ? archive : "");
}

static struct err *run_analyze(struct cli *cli)
{
	const char *path = cli_arg(cli, 0);
	bool stats = option_given(&cli->options, "stats");
	bool lines = cli->out.format == OUTPUT_TSV && !stats;
	CLEANUP(map_free) struct map *types = map_new(8, sizeof(struct type_count));
	struct analysis analysis = { .cli = cli, .types = types, .lines = lines };
	CLEANUP(modfiles_close)
	struct modfiles files = { -1, -1, -1, { { 0 }, 0 }, false, NULL };
	CLEANUP(job_free) struct job_client *worker = NULL;
	CLEANUP(analyze_db_free) struct analyze_db *db = NULL;

	stop_catch();
	TRY(job_spawn(JOB_ANALYZE, NULL, &worker));
	TRY(modfiles_open(worker, path, &files));
	if (!files.has_dwarf)
		return no_debug(path, &files.build_id);
	if (lines)
		fputs("address\ttype\toffset\tpath\tconfidence\tprovenance\n",
		      cli->out.file);
	if (option_given(&cli->options, "db"))
		TRY(analyze_db_open(option_text(&cli->options, "db", NULL), path, &files,
				    &db));
	analysis.db = db;
	TRY(err_wrap(analyze_cached(&analysis, worker, &files, path), "%s", path));
	if (db)
		TRY(analyze_db_close(db));
	if (lines)
		return NULL;
	return put_report(cli, &analysis, &files, path);
}

const struct cmd cmd_analyze = {
	.name = "analyze",
	.args = "BINARY",
	.summary = "the types of every memory instruction of a file",
	.text = "Find the struct type and the field that each memory instruction in the "
		".text of an executable or library accesses, without running it. Its debug "
		"information is looked for in the file, in /usr/lib/debug, and at "
		"$DEBUGINFOD_URLS when that is set.\n\n"
		"--tsv prints one line per instruction: address (hexadecimal), type, "
		"offset, field path, confidence and provenance; without an answer type and "
		"offset are - and the provenance is the reason; the path of a spill is the "
		"type of the value in the slot.\n\n"
		"--stats counts answers and reasons, over all memory instructions and over "
		"those that are not relative to the stack frame. --db stores answers, types "
		"and fields of the whole file, for assay layout and for SQL.\n\n"
		"Answers are kept in $XDG_CACHE_HOME/assay, ~/.cache/assay or, for root, "
		"/var/cache/assay (2 GB, or --cache-size; least recently used go first), and "
		"used again for the same file, the same debug information and the same "
		"analyser. When a file was built anew, only those compilation units are "
		"analysed that changed: their debug information, their code apart from "
		"addresses, or the prototypes, variables and structs of other units that "
		"they depend on. The answers are those of an analysis from nothing; what is "
		"kept is checked, and found out again when it is damaged. Units that refer "
		"to others (link-time optimisation, dwz) are kept for the same file only.",
	.groups = CMD_OUTPUT,
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.completes = COMPLETE_FILE,
	.examples = { { "which types a server works on",
			"assay analyze /usr/bin/redis-server" },
		      { "every instruction",
			"assay analyze --tsv ./server > server.tsv" },
		      { "how much can be typed, and why not the rest",
			"assay analyze --stats ./server" },
		      { "a large one, on two processors",
			"assay analyze --jobs 2 --stats /usr/lib/debug/vmlinux" },
		      { "the layout of a type that nothing sampled yet",
			"assay analyze ./server --db a.db; assay layout dict --db a.db" } },
	.run = run_analyze,
};
