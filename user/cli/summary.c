// SPDX-License-Identifier: Apache-2.0
/*
 * A figure without its loss and its coverage misleads, so these stand below every
 * report, and as "coverage" and "loss" in its JSON.
 */
#include <string.h>

#include "cli/debughint.h"
#include "cli/number.h"
#include "cli/report.h"
#include "core/str.h"

#define SUMMARY_REASONS	 4  /* why samples are not typed: the most frequent */
#define SUMMARY_TOP	 10 /* rows of each part after an attach */
#define HINT_MODULES	 3
#define HINT_MIN_SHARE	 0.02 /* of the samples */
#define HINT_MIN_UNTYPED 0.5  /* of the module's samples */

struct coverage {
	int64_t samples, typed;
	struct str reasons;
	size_t reason_count;
};

static void add_coverage(void *ctx, const struct report_row *row)
{
	struct coverage *coverage = ctx;
	int64_t samples = row_integer(row, "samples");
	CLEANUP(free) char *share = number_share(row_real(row, "share_of_all"));

	coverage->samples += samples;
	if (row_integer(row, "is_typed")) {
		coverage->typed += samples;
		return;
	}
	if (coverage->reason_count++ < SUMMARY_REASONS)
		str_printf(&coverage->reasons, "%s%s %s",
			   coverage->reasons.length ? ", " : "", share,
			   strcmp(row_text(row, "verdict"), "none")
				   ? row_text(row, "verdict")
				   : "not analysed");
}

static void put_coverage(struct output *out, const struct coverage *coverage)
{
	CLEANUP(free) char *samples = number_count((uint64_t)coverage->samples);
	CLEANUP(free)
	char *typed = number_share(coverage->samples ? (double)coverage->typed /
							       (double)coverage->samples
						     : 0);

	output_value(
		out, "coverage",
		json_pack("{sIsIsf}", "access_samples", (json_int_t)coverage->samples,
			  "typed_samples", (json_int_t)coverage->typed, "share_typed",
			  coverage->samples
				  ? (double)coverage->typed / (double)coverage->samples
				  : 0.0));
	if (!coverage->samples)
		output_note(out, "no access samples.");
	else if (!coverage->reasons.length)
		output_note(out, "%s access samples, %s typed.", samples, typed);
	else
		output_note(out, "%s access samples, %s typed; the rest: %s.", samples,
			    typed, str_text(&coverage->reasons));
}

/* Lost records of the two kinds that figures are made of. */
struct loss {
	int64_t lost[2], records[2], time_ns;
	struct str reasons[2];
};
static const char *const loss_kinds[2] = { "access", "tick" };

static void add_loss(void *ctx, const struct report_row *row)
{
	struct loss *loss = ctx;
	const char *reason = row_text(row, "reason");

	loss->time_ns += row_integer(row, "lost_ns");
	if (!strcmp(reason, "reorder")) /* late, not lost */
		return;
	for (size_t i = 0; i < 2; i++) {
		if (strcmp(row_text(row, "kind"), loss_kinds[i]))
			continue;
		CLEANUP(free)
		char *count = number_count((uint64_t)row_integer(row, "lost"));

		loss->lost[i] += row_integer(row, "lost");
		loss->records[i] = row_integer(row, "records");
		str_printf(&loss->reasons[i], "%s%s %s",
			   loss->reasons[i].length ? ", " : "", reason, count);
	}
}

static double lost_share(const struct loss *loss, size_t i)
{
	return loss->records[i] ? (double)loss->lost[i] / (double)loss->records[i] : 0;
}

static void put_loss(struct output *out, const struct loss *loss, enum report_about about)
{
	json_t *json = json_object();

	for (size_t i = 0; i < 2; i++) {
		CLEANUP(free) char *share = number_share(lost_share(loss, i));

		json_object_set_new(json, loss_kinds[i],
				    json_pack("{sIsIsf}", "lost",
					      (json_int_t)loss->lost[i], "records",
					      (json_int_t)loss->records[i], "share_lost",
					      lost_share(loss, i)));
		if (loss->lost[i])
			output_note(out, "%s of %s records lost (%s).", share,
				    loss_kinds[i], str_text(&loss->reasons[i]));
		else if (i == (size_t)about)
			output_note(out, "0.0%% of %s records lost.", loss_kinds[i]);
	}
	json_object_set_new(json, "time_ns", json_integer(loss->time_ns));
	output_value(out, "loss", json);
	if (loss->time_ns) {
		CLEANUP(free) char *time = number_ns((uint64_t)loss->time_ns);

		output_note(out, "%s are missing because the agent crashed.", time);
	}
}

struct hints {
	struct output *out;
	json_t *json;
	size_t count;
};

static void add_hint(void *ctx, const struct report_row *row)
{
	struct hints *hints = ctx;
	const char *debug = row_text(row, "debug"), *path = row_text(row, "path");
	struct build_id id = { 0 };
	bool has_debug = !*debug || *debug == '/' || !strcmp(debug, "file");

	if (has_debug || strcmp(row_text(row, "kind"), "file") ||
	    row_real(row, "share_of_all") < HINT_MIN_SHARE ||
	    row_real(row, "share_typed") > 1 - HINT_MIN_UNTYPED ||
	    hints->count == HINT_MODULES)
		return;
	hints->count++;
	long bytes = str_unhex(row_text(row, "build_id"), id.bytes, sizeof(id.bytes));

	id.size = bytes > 0 ? (uint8_t)bytes : 0;
	CLEANUP(free) char *text = debughint(path, &id);

	output_note(hints->out, "note: %s", text);
	json_array_append_new(hints->json, json_text(text));
}

static struct err *put_hints(struct output *out, struct db *db,
			     const struct report_scope *scope)
{
	struct hints hints = { .out = out, .json = json_array() };
	struct err *err = report_each(db, "modules", scope, add_hint, &hints);
	CLEANUP(free) char *archive = hints.count ? debughint_archive() : NULL;

	if (archive)
		output_note(out, "note: %s", archive);
	output_value(out, "notes", hints.json);
	return err;
}

struct err *report_summary(struct output *out, struct db *db,
			   const struct report_scope *scope, enum report_about about)
{
	struct report_scope all = *scope;
	struct coverage coverage = { 0 };
	struct loss loss = { 0 };

	all.limit = 0;
	struct err *err = report_each(db, "coverage", &all, add_coverage, &coverage);

	if (!err)
		err = report_each(db, "loss", &all, add_loss, &loss);
	if (!err) {
		output_gap(out);
		if (about == ABOUT_ACCESSES)
			put_coverage(out, &coverage);
		put_loss(out, &loss, about);
		err = about == ABOUT_ACCESSES ? put_hints(out, db, &all) : NULL;
	}
	str_fini(&coverage.reasons);
	str_fini(&loss.reasons[0]);
	str_fini(&loss.reasons[1]);
	return err;
}

struct err *report_types(struct output *out, const char *db_path,
			 const struct report_scope *scope)
{
	static const struct {
		const char *name, *title;
	} parts[] = { { "types", "types" }, { "fields", "fields" } };
	struct report_scope top = *scope;
	CLEANUP(db_close) struct db *db = NULL;

	TRY(report_open(db_path, &db));
	if (!top.limit)
		top.limit = SUMMARY_TOP;
	for (size_t i = 0; i < 2; i++) {
		CLEANUP(table_free) struct table *table = NULL;

		TRY(report_table(db, parts[i].name, &top, &table));
		if (table_rows(table) || out->format != OUTPUT_TABLE)
			TRY(output_table(out, parts[i].name, parts[i].title, table));
	}
	return report_summary(out, db, &top, ABOUT_ACCESSES);
}
