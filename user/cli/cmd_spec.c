// SPDX-License-Identifier: Apache-2.0
/*
 * assay spec: what the spec files say, and what becomes of it on a binary. Binaries are
 * only opened here; the worker reads them.
 */
#include <ctype.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#include "cli/cmd.h"
#include "cli/specs.h"
#include "cli/spectest.h"
#include "cli/stop.h"
#include "core/file.h"
#include "core/mem.h"

static const struct option_spec options[] = {
	{ "for", 0, OPTION_DURATION, "TIME", "test: how long; 5s", 0, 0 },
	{ 0 },
};

static struct err *list_specs(struct cli *cli)
{
	static const struct column columns[] = {
		{ "spec", "SPEC", COLUMN_TEXT, 0 },
		{ "title", "TITLE", COLUMN_TEXT, COLUMN_CUT },
		{ "variants", "VARIANTS", COLUMN_NUMBER, 0 },
		{ "probes", "PROBES", COLUMN_NUMBER, 0 },
		{ "path", "FILE", COLUMN_TEXT, COLUMN_CUT_LEFT },
		{ "error", "ERROR", COLUMN_TEXT, COLUMN_IF_ANY | COLUMN_WRAP },
	};
	CLEANUP(table_free) struct table *table = table_new(columns, 6);
	CLEANUP(specs_fini) struct specs specs = { 0 };

	specs_find(&specs);
	vec_each(&specs.paths, path) {
		CLEANUP(spec_free) struct spec *spec = NULL;
		struct err *err = spec_load(*path, &spec);
		size_t probes = 0;

		table_row(table);
		table_text(table, 4, *path);
		if (err) {
			table_text(table, 5, err->text);
			cli->status = EXIT_FAILED;
			err_free(err);
			continue;
		}
		for (size_t i = 0; i < spec->variant_count; i++)
			probes += spec->variants[i].probe_count;
		table_text(table, 0, spec->name);
		table_text(table, 1, spec->title);
		table_number(table, 2, (int64_t)spec->variant_count);
		table_number(table, 3, (int64_t)probes);
	}
	if (!specs.paths.count)
		cli_note(cli, "there are no spec files in %s or %s", SPECS_OWN,
			 SPECS_SHIPPED);
	table_settle(table, COLUMN_NUMBER);
	return output_table(&cli->out, "specs", NULL, table);
}

static void show_probe(struct table *table, const struct spec_variant *variant,
		       const struct spec_probe *probe)
{
	table_row(table);
	table_text(table, 0, variant->name);
	table_text(table, 1, probe->id);
	table_text(table, 2, spec_verb_name(probe));
	table_text(table, 3, spec_at_name(probe->at));
	table_text(table, 4, spec_by_name(probe->where.by));
	table_text(table, 5, probe->where.text);
	table_text(table, 6, spec_heat_name(probe->temperature));
	if (probe->resource)
		table_text(table, 7, probe->resource);
}

static struct err *show_spec(struct cli *cli, const struct spec *spec)
{
	static const struct column columns[] = {
		{ "variant", "VARIANT", COLUMN_TEXT, 0 },
		{ "probe", "PROBE", COLUMN_TEXT, 0 },
		{ "verb", "VERB", COLUMN_TEXT, 0 },
		{ "at", "AT", COLUMN_TEXT, 0 },
		{ "by", "BY", COLUMN_TEXT, 0 },
		{ "code", "CODE", COLUMN_TEXT, COLUMN_CUT },
		{ "temperature", "TEMPERATURE", COLUMN_TEXT, COLUMN_SPARE },
		{ "resource", "RESOURCE", COLUMN_TEXT, COLUMN_SPARE },
	};
	CLEANUP(table_free) struct table *table = table_new(columns, 8);

	output_value(&cli->out, "spec", json_text(spec->name));
	output_value(&cli->out, "file", json_text(spec->path));
	for (size_t i = 0; i < spec->variant_count; i++)
		for (size_t j = 0; j < spec->variants[i].probe_count; j++)
			show_probe(table, &spec->variants[i],
				   &spec->variants[i].probes[j]);
	TRY(output_table(&cli->out, "probes", spec->title, table));
	for (size_t i = 0; i < spec->variant_count; i++)
		if (spec->variants[i].evidence)
			output_note(&cli->out, "%s: %s", spec->variants[i].name,
				    spec->variants[i].evidence);
	return NULL;
}

static void put_point(struct table *table, const struct plan_point *point)
{
	table_text(table, 2, point->function);
	table_number(table, 3, (int64_t)point->off);
	table_text(table, 4,
		   point->is_uretprobe			 ? "return"
		   : point->abi.flags & ABI_PROBE_RETURN ? "at ret"
							 : "entry");
	table_text(table, 5, plan_insn_name(point->insn));
	table_text(table, 6, plan_cost_name(point->cost));
	table_number(table, 7, point->abi.cost_ns);
	table_text(table, 8, point->in_windows ? "windows" : "always");
}

static void put_probe(struct table *table, const struct plan *plan,
		      const struct plan_probe *probe)
{
	for (size_t i = 0; i < probe->point_count; i++) {
		table_row(table);
		table_text(table, 0, probe->spec->id);
		table_text(table, 1, spec_verb_name(probe->spec));
		put_point(table, &plan->points[probe->first_point + i]);
	}
	if (probe->point_count)
		return;
	table_row(table);
	table_text(table, 0, probe->spec->id);
	table_text(table, 1, spec_verb_name(probe->spec));
	table_text(table, 8, probe->is_spare ? "not needed" : "not placed");
	table_text(table, 9,
		   probe->is_spare ? "the probe it stands in for is placed"
				   : probe->reason);
}

static struct err *put_plan(struct cli *cli, const struct plan *plan)
{
	static const struct column columns[] = {
		{ "probe", "PROBE", COLUMN_TEXT, 0 },
		{ "verb", "VERB", COLUMN_TEXT, 0 },
		{ "function", "FUNCTION", COLUMN_TEXT, COLUMN_CUT },
		{ "offset", "OFFSET", COLUMN_HEX, 0 },
		{ "at", "AT", COLUMN_TEXT, 0 },
		{ "instruction", "INSN", COLUMN_TEXT, 0 },
		{ "cost", "COST", COLUMN_TEXT, 0 },
		{ "hit_ns", "A HIT", COLUMN_NS, 0 },
		{ "state", "ON", COLUMN_TEXT, 0 },
		{ "reason", "REASON", COLUMN_TEXT, COLUMN_IF_ANY | COLUMN_WRAP },
	};
	CLEANUP(table_free) struct table *table = table_new(columns, 10);

	for (size_t i = 0; i < plan->probe_count; i++)
		put_probe(table, plan, &plan->probes[i]);
	table_settle(table, COLUMN_NUMBER);
	return output_table(&cli->out, "probes", NULL, table);
}

static void put_refusals(struct cli *cli, const struct specs_result *result)
{
	json_t *list = json_array();

	for (size_t i = 0; i < result->tries.count; i++) {
		const struct specs_try *try = &result->tries.data[i];

		if (!*try->reason)
			continue;
		output_note(&cli->out, "variant %s does not do: %s", try->variant->name,
			    try->reason);
		json_t *item = json_object();

		json_object_set_new(item, "variant", json_text(try->variant->name));
		json_object_set_new(item, "reason", json_text(try->reason));
		json_array_append_new(list, item);
	}
	output_value(&cli->out, "refused", list);
}

static struct err *put_result(struct cli *cli, const struct specs_result *result)
{
	struct output *out = &cli->out;

	output_value(out, "spec", json_text(result->spec->name));
	output_value(out, "file", json_text(result->path));
	output_value(out, "build_id", json_text(result->build_id));
	if (result->chosen < 0) {
		cli->status = EXIT_FAILED;
		output_value(out, "variant", json_null());
		output_note(out, "%s: spec %s does not apply (build-id %s)", result->path,
			    result->spec->name, result->build_id);
		if (result->spec->otherwise)
			output_note(out, "%s", result->spec->otherwise);
		put_refusals(cli, result);
		return NULL;
	}
	const struct specs_try *try = &result->tries.data[result->chosen];

	output_value(out, "variant", json_text(try->variant->name));
	output_note(out, "%s: spec %s, variant %s", result->path, result->spec->name,
		    try->variant->name);
	put_refusals(cli, result);
	return put_plan(cli, try->plan);
}

/* Every file of a process that the spec may be about. */
static struct err *check_pid(struct cli *cli, struct job_client *worker,
			     const struct spec *spec, const char *pid)
{
	CLEANUP(specs_fini) struct specs files = { 0 };
	size_t done = 0;

	TRY(specs_mapped(pid, spec, &files));
	vec_each(&files.paths, path) {
		CLEANUP(specs_result_fini) struct specs_result result = { .chosen = -1 };
		CLEANUP(free)
		char *open_path = mem_printf("/proc/%s/root%s", pid, *path);

		TRY(specs_resolve(worker, spec, *path, open_path, &result));
		/* Of those that do not fit, the last one tells why. */
		if (result.chosen < 0 &&
		    (done || path + 1 < files.paths.data + files.paths.count))
			continue;
		done++;
		TRY(put_result(cli, &result));
	}
	if (files.paths.count)
		return NULL;
	return err_new(ERR_NOT_FOUND, "process %s maps no file that spec %s is about",
		       pid, spec->name);
}

static struct err *check_spec(struct cli *cli, const struct spec *spec)
{
	const char *word = cli_arg(cli, 2);
	CLEANUP(specs_result_fini) struct specs_result result = { .chosen = -1 };
	CLEANUP(job_free) struct job_client *worker = NULL;

	if (!word) {
		output_note(&cli->out, "%s: no errors, %zu variants", spec->path,
			    spec->variant_count);
		output_value(&cli->out, "spec", json_text(spec->name));
		return NULL;
	}
	TRY(job_spawn(JOB_RESOLVE, NULL, &worker));
	if (specs_is_pid(word))
		return check_pid(cli, worker, spec, word);
	CLEANUP(free) char *real = realpath(word, NULL);

	if (!real)
		return err_errno(errno, "%s", word);
	TRY(specs_resolve(worker, spec, real, real, &result));
	return put_result(cli, &result);
}

static struct err *test_spec(struct cli *cli, const struct spec *spec)
{
	const char *word = cli_arg(cli, 2);

	if (!word || !specs_is_pid(word))
		return cli_usage(cli, "which process? its PID");
	return spectest_run(cli, spec, word,
			    option_number(&cli->options, "for", SPECTEST_NS));
}

static struct err *run_spec(struct cli *cli)
{
	const char *what = cli_arg(cli, 0), *word = cli_arg(cli, 1);
	CLEANUP(spec_free) struct spec *spec = NULL;
	CLEANUP(free) char *path = NULL;

	stop_catch();
	if (!strcmp(what, "list"))
		return word ? cli_usage(cli, "unexpected argument '%s'", word)
			    : list_specs(cli);
	if (strcmp(what, "check") && strcmp(what, "show") && strcmp(what, "test"))
		return cli_usage(cli, "list, check, show or test, not '%s'", what);
	if (!word)
		return cli_usage(cli, "which spec? a name from 'assay spec list' or a "
				      "file");
	TRY(specs_path(word, &path));
	TRY(spec_load(path, &spec));
	if (!strcmp(what, "test"))
		return test_spec(cli, spec);
	return !strcmp(what, "show") ? show_spec(cli, spec) : check_spec(cli, spec);
}

const struct cmd cmd_spec = {
	.name = "spec",
	.args = "list|check|show|test [SPEC] [BINARY|PID]",
	.summary = "what is known about applications, and whether it fits a binary",
	.text = "Spec files say which functions of an application begin and end a "
		"request, wait for a lock or hold a resource; assay-spec(5) describes "
		"them. SPEC is a file, or the name of one in /etc/assay/spec.d or "
		"/usr/share/assay/spec.d ($ASSAY_SPEC_PATH replaces both).\n\n"
		"check without a binary only reads the file. With one, or with a process, "
		"it says for each probe what it resolved to: file offset, instruction, "
		"cost of a hit; or why it cannot be placed. Nothing is attached.\n\n"
		"test attaches the probes to a process and its children for a while and "
		"prints how often each was hit, what that cost, and the first events. A "
		"function that exists but is never called, because it was inlined, shows "
		"here as one without hits.",
	.groups = CMD_OUTPUT,
	.options = options,
	.min_args = 1,
	.max_args = 3,
	.completes = COMPLETE_WORDS,
	.words = "list check show test",
	.examples = { { "the specs on this machine", "assay spec list" },
		      { "does it fit this server?",
			"assay spec check nginx /usr/sbin/nginx" },
		      { "a spec of one's own against a running process",
			"assay spec check ./mine.yaml 4711" },
		      { "what its probes see, and cost",
			"assay spec test redis $(pidof redis-server) --for 5s" } },
	.exits =
		"0 done, 1 failed or no variant of the spec fits the binary, 2 wrong usage.",
	.run = run_spec,
};
