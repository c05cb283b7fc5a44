// SPDX-License-Identifier: Apache-2.0
/* The document of assay-finding(5), written by hand: the daemon has no JSON library. */
#include <stdio.h>
#include <string.h>
#include <time.h>

#include "core/str.h"
#include "resource/findings.h"

static void add_text(struct str *out, const char *text)
{
	str_add_char(out, '"');
	for (; *text; text++) {
		unsigned char c = (unsigned char)*text;

		if (c == '"' || c == '\\')
			str_printf(out, "\\%c", c);
		else if (c < ' ' || c >= 0x7f)
			str_printf(out, "\\u%04x", c);
		else
			str_add_char(out, *text);
	}
	str_add_char(out, '"');
}

static void add_key(struct str *out, const char *key)
{
	char last = out->length ? out->data[out->length - 1] : '{';

	if (last != '{' && last != '[')
		str_add(out, ", ");
	if (*key)
		str_printf(out, "\"%s\": ", key);
}

static void add_word(struct str *out, const char *key, const char *text)
{
	add_key(out, key);
	add_text(out, text);
}

static void add_time(struct str *out, const char *key, uint64_t ns)
{
	time_t s = (time_t)(ns / 1000000000u);
	char text[64];
	struct tm tm;

	add_key(out, key);
	if (!ns || !gmtime_r(&s, &tm)) {
		str_add(out, "null");
		return;
	}
	strftime(text, sizeof(text), "%Y-%m-%dT%H:%M:%S", &tm);
	str_printf(out, "\"%s.%03uZ\"", text, (unsigned)(ns / 1000000u % 1000u));
}

static void add_texts(struct str *out, const char *key,
		      const char (*texts)[DIAGNOSE_TEXT], size_t count)
{
	add_key(out, key);
	str_add_char(out, '[');
	for (size_t i = 0; i < count; i++)
		add_word(out, "", texts[i]);
	str_add_char(out, ']');
}

/* Ids under their own names; those of 64 bits are texts. */
static void add_party(struct str *out, const struct party *party, bool is_culprit)
{
	static const char *const ids[RESOURCE_KEYS] = { "", "client_id", "connection_id",
							"" };

	add_key(out, "");
	str_add_char(out, '{');
	add_word(out, "label", party->label);
	if (party->pid) {
		add_key(out, "pid");
		str_printf(out, "%u", party->pid);
	}
	if (party->tid && !party->key) {
		add_key(out, "tid");
		str_printf(out, "%u", party->tid);
	}
	if (party->key && *ids[party->kind]) {
		add_key(out, ids[party->kind]);
		str_printf(out, "\"%llu\"", (unsigned long long)party->key);
	}
	if (party->key && party->kind == KEY_PEER) {
		add_key(out, "peer");
		str_printf(out, "\"%s:%llu\"", party->name,
			   (unsigned long long)party->key);
	}
	if (*party->request)
		add_word(out, "request", party->request);
	add_key(out, "share");
	str_printf(out, "%.4f", party->share);
	if (is_culprit) {
		str_add(out, ", \"call_path\": []}");
		return;
	}
	str_printf(out, ", \"count\": %llu, \"lost_ms\": %llu}",
		   (unsigned long long)party->count, (unsigned long long)party->lost_ms);
}

static void add_parties(struct str *out, const char *key, const struct party *parties,
			size_t count)
{
	bool is_culprit = !strcmp(key, "culprits");

	add_key(out, key);
	str_add_char(out, '[');
	for (size_t i = 0; i < count; i++)
		add_party(out, &parties[i], is_culprit);
	str_add_char(out, ']');
}

static void add_evidence(struct str *out, const struct finding *finding)
{
	add_key(out, "evidence");
	str_add_char(out, '[');
	for (size_t i = 0; i < finding->evidence_count; i++) {
		add_key(out, "");
		str_add_char(out, '{');
		add_word(out, "text", finding->evidence[i]);
		str_add_char(out, '}');
	}
	str_add_char(out, ']');
}

void finding_json(const struct finding *finding, uint64_t since_ns, uint64_t until_ns,
		  struct str *out)
{
	const struct resource_info *resource = finding->resource;

	str_printf(out, "{\"version\": %d", FINDINGS_VERSION);
	add_word(out, "class", fault_class_name(finding->class));
	add_key(out, "score");
	str_printf(out, "%.4f", finding->score);
	add_time(out, "since", since_ns);
	add_time(out, "until", until_ns);
	add_key(out, "pid");
	str_printf(out, "%u", finding->app);
	add_key(out, "resource");
	str_add_char(out, '{');
	add_word(out, "name", resource->title);
	add_word(out, "kind", resource_kind_name(resource->kind));
	add_word(out, "id", resource->name);
	add_word(out, "spec", resource->spec);
	add_word(out, "object", finding->object);
	str_add_char(out, '}');
	add_parties(out, "culprits", finding->culprits, finding->culprit_count);
	add_parties(out, "victims", finding->victims, finding->victim_count);
	add_texts(out, "chain", finding->chain, finding->chain_count);
	add_key(out, "location");
	str_add_char(out, '{');
	add_word(out, "function", finding->function);
	str_add(out,
		", \"file\": null, \"line\": null, \"call_path\": [], \"origin\": []}");
	add_evidence(out, finding);
	str_printf(out,
		   ", \"coverage\": {\"events_lost\": %llu, \"probes_refused\": [], "
		   "\"window_share\": %.4f}",
		   (unsigned long long)finding->lost, finding->coverage);
	add_key(out, "is_inferred");
	str_add(out, finding->is_inferred ? "true" : "false");
	add_word(out, "advice", resource->advice);
	str_add_char(out, '}');
}
