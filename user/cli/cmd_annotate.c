// SPDX-License-Identifier: Apache-2.0
/*
 * Two sources meet by address: the database has the samples of a function, the worker
 * its machine code, lines and answers. Without the file (gone, replaced, not readable)
 * the sampled instructions stand alone.
 *
 * A clock sample falls behind the access that it stands for. AT counts samples where
 * they fell, SAMPLES where they are counted.
 */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "cli/modfiles.h"
#include "cli/report.h"
#include "cli/source.h"
#include "cli/stop.h"
#include "core/arena.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"

#define ANNOTATE_ID 1 /* the only module of our worker */
#define ANNOTATE_MS 120000

static const struct option_spec options[] = {
	{ "module", 'm', OPTION_TEXT, "NAME", "the function of this name in this file", 0,
	  0 },
	{ "since", 's', OPTION_DURATION, "TIME", "only samples of the last TIME", 0, 0 },
	{ "run", 'r', OPTION_TEXT, "RUN", "only this run; see assay status", 0, 0 },
	{ "min-confidence", 'c', OPTION_TEXT, "C",
	  "only answers at least this sure, 0 to 1", 0, 0 },
	{ "source", 0, OPTION_FILE, "DIR",
	  "where the sources are now: looked through by ever shorter ends of their names",
	  0, 0 },
	{ "binary", 'b', OPTION_FILE, "FILE",
	  "the file with the code, when it is no longer where it was sampled", 0, 0 },
	{ 0 },
};

struct line {
	uint64_t va;
	const char *text, *file; /* @text NULL: not disassembled */
	uint32_t line;
	bool is_memory;
	int64_t samples, at;
	double mean_cycles, confidence;
	const char *verdict, *type, *field; /* NULL: none */
	int64_t offset;
};

struct annotation {
	struct arena *arena;
	struct err *err;
	size_t candidates;
	uint64_t module_id, va, bytes;
	const char *function, *module, *path, *build_id;
	const char *source_dir; /* NULL: sources are where they were compiled */
	VEC(struct line) lines; /* sorted by va once loaded */
	double min_confidence;
	int64_t samples;
};

static void annotation_fini(struct annotation *annotation)
{
	vec_fini(&annotation->lines);
	err_free(annotation->err);
	arena_free(annotation->arena);
}

static inline void cleanup_annotation_fini(struct annotation *annotation)
{
	annotation_fini(annotation);
}

static void take_place(void *ctx, const struct report_row *row)
{
	struct annotation *a = ctx;

	if (a->candidates++)
		return;
	a->module_id = (uint64_t)row_integer(row, "module_id");
	a->va = (uint64_t)row_integer(row, "function_va");
	a->bytes = (uint64_t)row_integer(row, "bytes");
	a->function = arena_strdup(a->arena, row_text(row, "function"));
	a->module = arena_strdup(a->arena, row_text(row, "module"));
	a->path = arena_strdup(a->arena, row_text(row, "path"));
	a->build_id = arena_strdup(a->arena, row_text(row, "build_id"));
}

static void take_listing(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct annotation *a = ctx;

	a->err = err;
	for (size_t i = 0; !err && i < reply->listing.count; i++) {
		const struct job_insn *insn = &reply->listing.data[i];

		vec_push(&a->lines,
			 ((struct line){ .va = insn->va,
					 .text = arena_strdup(a->arena, insn->text),
					 .file = arena_strdup(a->arena, insn->file),
					 .line = insn->line,
					 .is_memory = insn->is_memory }));
	}
}

/* The line at @va; NULL when there is none. */
static struct line *line_find(struct annotation *a, uint64_t va)
{
	size_t lo = 0, hi = a->lines.count;

	while (lo < hi) {
		size_t middle = lo + (hi - lo) / 2;

		if (a->lines.data[middle].va < va)
			lo = middle + 1;
		else
			hi = middle;
	}
	return lo < a->lines.count && a->lines.data[lo].va == va ? &a->lines.data[lo]
								 : NULL;
}

/* Likewise, but made where the listing has none: there is no listing, or it was cut. */
static struct line *line_at(struct annotation *a, uint64_t va)
{
	struct line *found = line_find(a, va);
	size_t i;

	if (found)
		return found;
	vec_push(&a->lines, ((struct line){ 0 }));
	for (i = a->lines.count - 1; i && a->lines.data[i - 1].va > va; i--)
		a->lines.data[i] = a->lines.data[i - 1];
	a->lines.data[i] = (struct line){ .va = va, .file = "" };
	return &a->lines.data[i];
}

static void set_answer(struct annotation *a, struct line *line, enum verdict verdict,
		       double confidence)
{
	bool is_below = verdict_is_claim(verdict) && confidence < a->min_confidence;

	line->verdict = is_below ? "below-confidence" : verdict_name(verdict);
	line->confidence = is_below ? 0 : confidence;
}

static void take_answers(void *ctx, struct err *err, const struct job_reply *reply)
{
	struct annotation *a = ctx;

	if (err) {
		err_free(a->err);
		a->err = err;
		return;
	}
	for (size_t i = 0; i < reply->sites.answers.answer_count; i++) {
		const struct answer *answer = &reply->sites.answers.answers[i].answer;
		struct line *line = line_find(a, answer->va);

		if (!line)
			continue;
		set_answer(a, line, answer->verdict, answer->confidence);
		if (line->confidence <= 0)
			continue;
		line->type = arena_strdup(a->arena, answer->type);
		line->field = arena_strdup(a->arena, answer->path);
		line->offset = answer->offset;
	}
}

static void take_samples(void *ctx, const struct report_row *row)
{
	struct annotation *a = ctx;
	int64_t samples = row_integer(row, "samples");
	uint64_t va = (uint64_t)row_integer(row, "va");
	uint64_t insn_va = (uint64_t)row_integer(row, "insn_va");
	struct line *line = line_at(a, va);

	line->at += samples;
	if (!*line->file) {
		line->file = arena_strdup(a->arena, row_text(row, "file"));
		line->line = (uint32_t)row_integer(row, "line");
	}
	line = line_at(a, insn_va);
	line->samples += samples;
	a->samples += samples;
	if (row_real(row, "mean_cycles") > 0)
		line->mean_cycles = row_real(row, "mean_cycles");
	if (line->verdict)
		return; /* the worker's answer is the newer one */
	set_answer(a, line, verdict_parse(row_text(row, "verdict")),
		   row_real(row, "confidence"));
	if (line->confidence <= 0)
		return;
	line->type = arena_strdup(a->arena, row_text(row, "type"));
	line->field = arena_strdup(a->arena, row_text(row, "field"));
	line->offset = row_integer(row, "offset_bytes");
}

static struct err *ask_answers(struct annotation *a, struct job_client *worker)
{
	VEC(struct job_site) sites = { 0 };
	struct err *err = NULL;

	vec_each(&a->lines, line) {
		if (line->is_memory)
			vec_push(&sites, ((struct job_site){ .va = line->va }));
	}
	if (sites.count)
		err = job_sites(worker, ANNOTATE_ID, sites.data, sites.count,
				take_answers, a);
	vec_fini(&sites);
	if (!err)
		err = job_wait(worker, ANNOTATE_MS);
	return err ? err : take(a->err);
}

static struct err *disassemble(struct annotation *a, const char *path)
{
	CLEANUP(modfiles_close)
	struct modfiles files = { -1, -1, -1, { { 0 }, 0 }, false, NULL };
	CLEANUP(job_free) struct job_client *worker = NULL;

	TRY(job_spawn(JOB_ANALYZE, NULL, &worker));
	TRY(modfiles_open(worker, path, &files));
	CLEANUP(free) char *hex = str_hex(files.build_id.bytes, files.build_id.size);

	if (strcmp(hex, a->build_id))
		return err_new(ERR_FORMAT, "%s: another build than the one sampled",
			       path);
	TRY(job_open(worker, &(struct job_open){ .module_id = ANNOTATE_ID,
						 .main_fd = files.main_fd,
						 .debug_fd = files.debug_fd,
						 .alt_fd = files.alt_fd,
						 .kallsyms_fd = -1 }));
	TRY(job_listing(worker, ANNOTATE_ID, a->va, a->bytes, take_listing, a));
	TRY(job_wait(worker, ANNOTATE_MS));
	if (a->err)
		return take(a->err);
	return ask_answers(a, worker);
}

enum cells {
	CELL_KIND,
	CELL_VA,
	CELL_SAMPLES,
	CELL_AT,
	CELL_CYCLES,
	CELL_TEXT,
	CELL_TYPE,
	CELL_FIELD,
	CELL_OFFSET,
	CELL_PROVENANCE,
	CELL_CONFIDENCE,
	CELL_FILE,
	CELL_LINE,
	CELLS,
};

static const struct column columns[CELLS] = {
	[CELL_KIND] = { "kind", "KIND", COLUMN_TEXT, COLUMN_MACHINE },
	[CELL_VA] = { "va", "ADDRESS", COLUMN_HEX, 0 },
	[CELL_SAMPLES] = { "samples", "SAMPLES", COLUMN_COUNT, 0 },
	[CELL_AT] = { "sampled_here", "AT", COLUMN_COUNT, 0 },
	[CELL_CYCLES] = { "mean_cycles", "CYCLES", COLUMN_NUMBER, COLUMN_IF_ANY },
	[CELL_TEXT] = { "text", "CODE", COLUMN_TEXT, COLUMN_CUT },
	[CELL_TYPE] = { "type", "TYPE", COLUMN_TEXT, COLUMN_CUT },
	[CELL_FIELD] = { "field", "FIELD", COLUMN_TEXT, COLUMN_CUT },
	[CELL_OFFSET] = { "offset_bytes", "OFFSET", COLUMN_NUMBER, COLUMN_MACHINE },
	[CELL_PROVENANCE] = { "provenance", "PROVENANCE", COLUMN_TEXT, 0 },
	[CELL_CONFIDENCE] = { "confidence", "CONF", COLUMN_NUMBER, COLUMN_SPARE },
	[CELL_FILE] = { "file", "FILE", COLUMN_TEXT, COLUMN_MACHINE },
	[CELL_LINE] = { "line", "LINE", COLUMN_NUMBER, COLUMN_MACHINE },
};

static void put_source(struct table *table, struct sources *sources,
		       const struct line *line)
{
	CLEANUP(free) char *source = source_line(sources, line->file, line->line);
	const char *slash = strrchr(line->file, '/');
	CLEANUP(free)
	char *text =
		source ? mem_printf("%u: %s", line->line, source)
		       : mem_printf("%s:%u", slash ? slash + 1 : line->file, line->line);

	table_row(table);
	table_text(table, CELL_KIND, "source");
	table_text(table, CELL_TEXT, text);
	table_text(table, CELL_FILE, line->file);
	table_number(table, CELL_LINE, line->line);
}

static void put_line(struct table *table, const struct line *line)
{
	CLEANUP(free)
	char *text = line->text ? mem_printf("    %s", line->text) : NULL;

	table_row(table);
	table_text(table, CELL_KIND, "instruction");
	table_number(table, CELL_VA, (int64_t)line->va);
	if (line->samples)
		table_number(table, CELL_SAMPLES, line->samples);
	if (line->at)
		table_number(table, CELL_AT, line->at);
	if (line->mean_cycles > 0)
		table_real(table, CELL_CYCLES, line->mean_cycles);
	if (text)
		table_text(table, CELL_TEXT, text);
	if (line->type) {
		table_text(table, CELL_TYPE, line->type);
		table_text(table, CELL_FIELD, *line->field ? line->field : "?");
		table_number(table, CELL_OFFSET, line->offset);
		table_real(table, CELL_CONFIDENCE, line->confidence);
	}
	if (line->verdict)
		table_text(table, CELL_PROVENANCE, line->verdict);
	if (*line->file)
		table_text(table, CELL_FILE, line->file);
	if (line->line)
		table_number(table, CELL_LINE, line->line);
}

static struct table *make_table(const struct annotation *a)
{
	CLEANUP(sources_free) struct sources *sources = sources_new(a->source_dir);
	struct table *table = table_new(columns, CELLS);
	const char *file = "";
	uint32_t number = 0;

	vec_each(&a->lines, line) {
		if (line->line && (line->line != number || strcmp(line->file, file))) {
			put_source(table, sources, line);
			number = line->line;
			file = line->file;
		}
		put_line(table, line);
	}
	table_settle(table, COLUMN_COUNT);
	return table;
}

static void put_notes(struct cli *cli, const struct annotation *a)
{
	output_value(&cli->out, "function", json_text(a->function));
	output_value(&cli->out, "module", json_text(a->module));
	output_value(&cli->out, "path", json_text(a->path));
	output_value(&cli->out, "build_id", json_text(a->build_id));
	output_value(&cli->out, "samples", json_integer(a->samples));
	output_gap(&cli->out);
	output_note(&cli->out,
		    "%" PRId64 " samples in %s of %s; SAMPLES by the instruction they "
		    "are counted for, AT by the one they fell on.",
		    a->samples, a->function, a->module);
	if (a->candidates > 1)
		output_note(&cli->out,
			    "%zu functions have this name: choose with --module.",
			    a->candidates);
}

static struct err *run_annotate(struct cli *cli)
{
	struct report_scope scope;
	CLEANUP(db_close) struct db *db = NULL;
	CLEANUP(table_free) struct table *table = NULL;
	CLEANUP(annotation_fini) struct annotation a = { 0 };
	CLEANUP(free) char *real = NULL;

	stop_catch();
	a.arena = arena_new();
	TRY(report_scope(cli, &scope));
	a.min_confidence = scope.min_confidence;
	scope.min_confidence = 0;
	if (option_given(&cli->options, "source"))
		a.source_dir = real =
			realpath(option_text(&cli->options, "source", ""), NULL);
	scope.function = cli_arg(cli, 0);
	scope.module = option_text(&cli->options, "module", NULL);
	TRY(report_open(report_db_path(cli), &db));
	TRY(report_each(db, "places", &scope, take_place, &a));
	if (!a.candidates)
		return err_new(
			ERR_NOT_FOUND,
			"no sampled function '%s'%s%s: 'assay types --by function' "
			"lists them",
			scope.function, scope.module ? " in " : "",
			scope.module ? scope.module : "");
	struct err *err = disassemble(&a, option_text(&cli->options, "binary", a.path));

	if (err && a.lines.count == 0)
		cli_note(cli, "no disassembly: %s", err->text);
	else if (err)
		cli_note(cli, "no fresh answers: %s", err->text);
	err_free(err);
	scope.module_id = a.module_id;
	scope.function_va = a.va;
	TRY(report_each(db, "annotate", &scope, take_samples, &a));
	table = make_table(&a);
	TRY(output_table(&cli->out, "lines", a.function, table));
	put_notes(cli, &a);
	return NULL;
}

const struct cmd cmd_annotate = {
	.name = "annotate",
	.args = "FUNCTION",
	.summary = "a function's code with type, field and samples",
	.text = "Print source and assembly of a sampled function. Each memory instruction "
		"has the type and field that it accesses, how that was found "
		"(PROVENANCE, or the reason why not) and how sure it is (CONF).\n\n"
		"A sample of the clock falls behind the instruction that it stands for: "
		"SAMPLES counts it at the memory instruction it is attributed to, AT "
		"where it fell. Source text is shown where the file is still where it was "
		"compiled, or below --source, else its name and line. The code comes from the file that was "
		"sampled, which must be the same build; without it only the sampled "
		"instructions are listed.",
	.groups = CMD_DB | CMD_OUTPUT,
	.options = options,
	.min_args = 1,
	.max_args = 1,
	.examples = { { "where a function waits for memory", "assay annotate dictFind" },
		      { "of a library", "assay annotate old_call --module libold.so" },
		      { "for a program",
			"assay annotate dictFind --tsv | grep instruction" } },
	.run = run_annotate,
};
