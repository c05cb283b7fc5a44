// SPDX-License-Identifier: Apache-2.0
/*
 * One table of settings serves the file, the command line and the printed example. The
 * file is read by libinih; sections are for people, a key has one meaning everywhere.
 */
#include "daemon/config.h"

#include <errno.h>
#include <ini.h>
#include <stddef.h>
#include <stdlib.h>
#include <string.h>

#include "bpf/abi.h"
#include "core/file.h"
#include "core/log.h"
#include "core/mem.h"
#include "core/str.h"

enum setting_kind {
	SET_TEXT,
	SET_FLAG /* on, off */,
	SET_NUMBER,
	SET_SIZE,
	SET_DURATION,
	SET_SHARE
};

struct setting {
	const char *section, *key;
	enum setting_kind kind;
	size_t at;
	const char *initial;
	uint64_t min, max;
	const char *help;
};

#define KIB	  1024ull
#define MIB	  (1024 * KIB)
#define SEC	  1000000000ull
#define YEAR	  (366 * 86400 * SEC)
#define AT(field) offsetof(struct config, field)

static const struct setting settings[] = {
	{ "sampling", "target", SET_TEXT, AT(target), "all", 0, 0,
	  "all, pid:NUMBER (with children), cgroup:PATH, service:UNIT" },
	{ "sampling", "rate", SET_NUMBER, AT(rate_hz), "49", 1, 20000,
	  "access samples per second and CPU" },
	{ "sampling", "tick_rate", SET_NUMBER, AT(tick_hz), "24", 0, 1000,
	  "CPU ticks with stacks per second and CPU; 0 for none" },
	{ "sampling", "spans", SET_NUMBER, AT(spans_hz), "200", 1, 100000,
	  "requests kept one by one per second, about; all are counted" },
	{ "sampling", "names", SET_NUMBER, AT(names), "1000", 1, 10000,
	  "kinds of requests per framework, those that cost most; the rest is one" },
	{ "sampling", "hash_names", SET_FLAG, AT(hash_names), "off", 0, 0,
	  "on: of what requests are called store only the hash" },
	{ "sampling", "ring", SET_SIZE, AT(ring_bytes), "8M", 64 * KIB, 512 * MIB,
	  "ring buffer between kernel and daemon; a power of two" },
	{ "sampling", "stack", SET_SIZE, AT(stack_bytes), "8K", 0, 16 * KIB,
	  "bytes of user stack copied per tick for unwinding" },
	{ "sampling", "sources", SET_TEXT, AT(sources), "auto", 0, 0,
	  "auto, or a list of ibs, pebs, clock, page-fault" },
	{ "sampling", "specs", SET_FLAG, AT(specs), "on", 0, 0,
	  "on: attach the probes of the spec files, within the budget; off" },
	{ "sampling", "walk", SET_NUMBER, AT(walk_hz), "10", 0, 100,
	  "looks at all threads per second: who sleeps where, memory, files; 0 for none" },
	{ "sampling", "join", SET_FLAG, AT(join), "off", 0, 0,
	  "on: follow requests across processes, 0.3 us per message of theirs; off" },
	{ "sampling", "budget", SET_SHARE, AT(budget_ppm), "1%", 100, 500000,
	  "of the targets' CPU that probes and samples may cost, 0.01% to 50%" },
	{ "sampling", "fleet_key", SET_TEXT, AT(fleet_key), "", 0, 0,
	  "any text; hosts with the same one have their windows at the same times" },
	{ "store", "db", SET_TEXT, AT(db), "/var/lib/assay/assay.db", 0, 0,
	  "the SQLite file" },
	{ "store", "quota", SET_SIZE, AT(quota_bytes), "1G", 8 * MIB, 1024 * 1024 * MIB,
	  "largest size of the file; old buckets are rolled up, then dropped" },
	{ "store", "cache", SET_TEXT, AT(cache), "auto", 0, 0,
	  "folder where answers about programs are kept; auto: /var/lib/assay/cache for a "
	  "service with a user, else that of assay analyze; off" },
	{ "store", "cache_size", SET_SIZE, AT(cache_bytes), "512M", MIB,
	  1024 * 1024 * MIB, "largest size of that folder; least recently used go" },
	{ "store", "keep_1s", SET_DURATION, AT(keep_1s_ns), "10m", SEC, YEAR,
	  "how long buckets stay 1 s long" },
	{ "store", "keep_10s", SET_DURATION, AT(keep_10s_ns), "6h", SEC, YEAR,
	  "then 10 s" },
	{ "store", "keep_1m", SET_DURATION, AT(keep_1m_ns), "7d", SEC, YEAR,
	  "then 1 min" },
	{ "store", "keep_1h", SET_DURATION, AT(keep_1h_ns), "90d", SEC, 20 * YEAR,
	  "then 1 h; older ones are dropped" },
	{ "daemon", "socket", SET_TEXT, AT(socket), "/run/assay/control", 0, 0,
	  "control socket, mode 0600; empty for none" },
	{ "daemon", "user", SET_TEXT, AT(user), "", 0, 0,
	  "user of the unprivileged process; empty keeps the caller's, without capabilities" },
	{ "daemon", "worker", SET_TEXT, AT(worker), "", 0, 0,
	  "path of assay-worker; empty looks beside assayd, then in /usr/libexec/assay" },
	{ "daemon", "debuginfod", SET_TEXT, AT(debuginfod_urls), "", 0, 0,
	  "URLs of debuginfod servers to ask for debug information; empty asks nobody; "
	  "$DEBUGINFOD_URLS is the default" },
	{ "daemon", "log_level", SET_TEXT, AT(log_level), "info", 0, 0,
	  "error, warning, notice, info, debug" },
};

#define SETTINGS (sizeof(settings) / sizeof(*settings))

static struct err *set_text(char **slot, const char *value)
{
	char *copy = mem_strdup(value);

	free(*slot);
	*slot = copy;
	return NULL;
}

/* "1%", "0.25%" in millionths. */
static struct err *share_parse(const char *text, uint64_t *ret_ppm)
{
	char *end;
	double percent = strtod(text, &end);

	if (end == text || strcmp(end, "%") || !(percent >= 0 && percent <= 100))
		return err_new(ERR_INVALID, "'%s' is not a share like 1%%", text);
	*ret_ppm = (uint64_t)(percent * 10000 + 0.5);
	return NULL;
}

static struct err *set_flag(const struct setting *setting, bool *slot, const char *value)
{
	if (strcmp(value, "on") && strcmp(value, "off"))
		return err_new(ERR_INVALID, "%s: '%s' is neither on nor off",
			       setting->key, value);
	*slot = !strcmp(value, "on");
	return NULL;
}

static struct err *set_value(struct config *config, const struct setting *setting,
			     const char *value)
{
	void *slot = (char *)config + setting->at;
	uint64_t number = 0;

	if (setting->kind == SET_TEXT)
		return set_text(slot, value);
	if (setting->kind == SET_FLAG)
		return set_flag(setting, slot, value);
	if (setting->kind == SET_SIZE)
		TRY(err_wrap(size_parse(value, &number), "%s", setting->key));
	else if (setting->kind == SET_DURATION)
		TRY(err_wrap(duration_parse(value, &number), "%s", setting->key));
	else if (setting->kind == SET_SHARE)
		TRY(err_wrap(share_parse(value, &number), "%s", setting->key));
	else if (!number_parse(value, &number))
		return err_new(ERR_INVALID, "%s: '%s' is not a whole number",
			       setting->key, value);
	if (setting->kind == SET_SHARE &&
	    (number < setting->min || number > setting->max))
		return err_new(ERR_INVALID, "%s: '%s' is outside %g%% to %g%%",
			       setting->key, value, (double)setting->min / 10000,
			       (double)setting->max / 10000);
	if (number < setting->min || number > setting->max)
		return err_new(ERR_INVALID, "%s: '%s' is outside %llu to %llu",
			       setting->key, value, (unsigned long long)setting->min,
			       (unsigned long long)setting->max);
	*(uint64_t *)slot = number;
	return NULL;
}

static const struct setting *find_setting(const char *key)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (!strcmp(settings[i].key, key))
			return &settings[i];
	return NULL;
}

struct err *config_set(struct config *config, const char *key, const char *value)
{
	const struct setting *setting = find_setting(key);

	if (!setting)
		return err_new(ERR_INVALID, "unknown setting '%s'", key);
	return set_value(config, setting, value);
}

void config_defaults(struct config *config)
{
	memset(config, 0, sizeof(*config));
	for (size_t i = 0; i < SETTINGS; i++)
		err_free(set_value(config, &settings[i], settings[i].initial));
}

void config_fini(struct config *config)
{
	for (size_t i = 0; i < SETTINGS; i++)
		if (settings[i].kind == SET_TEXT)
			free(*(char **)((char *)config + settings[i].at));
	memset(config, 0, sizeof(*config));
}

static void copy_config(struct config *to, const struct config *from)
{
	*to = *from;
	for (size_t i = 0; i < SETTINGS; i++) {
		if (settings[i].kind != SET_TEXT)
			continue;
		char **slot = (char **)((char *)to + settings[i].at);

		*slot = mem_strdup(*slot);
	}
}

struct ini_state {
	struct config *config;
	struct err *err; /* the first one */
};

static int ini_line(void *ctx, const char *section, const char *key, const char *value)
{
	struct ini_state *state = ctx;
	const struct setting *setting = find_setting(key);

	if (state->err)
		return 0;
	if (setting && *section && strcmp(section, setting->section))
		state->err = err_new(ERR_INVALID, "'%s' belongs into [%s], not [%s]", key,
				     setting->section, section);
	else
		state->err = config_set(state->config, key, value);
	return state->err == NULL;
}

struct err *config_load(struct config *config, const char *path)
{
	CLEANUP(config_fini) struct config fresh;
	struct ini_state state = { .config = &fresh };

	copy_config(&fresh, config);
	errno = 0;
	int line = ini_parse(path, ini_line, &state);

	if (line < 0)
		return err_errno(errno ? errno : EIO, "read %s", path);
	if (!state.err && line > 0)
		state.err = err_new(ERR_INVALID, "expected 'key = value' or '[section]'");
	if (!state.err)
		state.err = config_check(&fresh);
	if (state.err)
		return line > 0 ? err_wrap(state.err, "%s:%d", path, line)
				: err_wrap(state.err, "%s", path);
	struct config old = *config;

	*config = fresh;
	fresh = old;
	return NULL;
}

struct err *config_check(const struct config *config)
{
	struct target target;

	uint32_t sources;

	TRY(err_wrap(target_parse(config->target, &target), "target"));
	target_fini(&target);
	TRY(err_wrap(sources_parse(config->sources, &sources), "sources"));
	if (config->ring_bytes & (config->ring_bytes - 1))
		return err_new(ERR_INVALID, "ring: %llu is not a power of two",
			       (unsigned long long)config->ring_bytes);
	if (log_level_parse(config->log_level) < 0)
		return err_new(
			ERR_INVALID,
			"log_level: '%s' is none of error, warning, notice, info, debug",
			config->log_level);
	if (config->keep_1s_ns > config->keep_10s_ns ||
	    config->keep_10s_ns > config->keep_1m_ns ||
	    config->keep_1m_ns > config->keep_1h_ns)
		return err_new(ERR_INVALID,
			       "keep_1s, keep_10s, keep_1m, keep_1h must not fall");
	return NULL;
}

static void print_value(const struct config *config, const struct setting *setting,
			FILE *out)
{
	const void *slot = (const char *)config + setting->at;

	if (setting->kind == SET_TEXT) {
		fprintf(out, "%s = %s\n", setting->key, *(char *const *)slot);
		return;
	}
	if (setting->kind == SET_FLAG) {
		fprintf(out, "%s = %s\n", setting->key,
			*(const bool *)slot ? "on" : "off");
		return;
	}
	if (setting->kind == SET_SHARE) {
		fprintf(out, "%s = %g%%\n", setting->key,
			(double)*(const uint64_t *)slot / 10000);
		return;
	}
	unsigned long long value = *(const uint64_t *)slot;
	const char *unit = "";

	if (setting->kind == SET_DURATION) {
		value /= SEC;
		unit = "s";
	}
	fprintf(out, "%s = %llu%s\n", setting->key, value, unit);
}

void config_print(const struct config *config, FILE *out)
{
	const char *section = "";

	for (size_t i = 0; i < SETTINGS; i++) {
		if (strcmp(section, settings[i].section)) {
			fprintf(out, "%s[%s]\n", *section ? "\n" : "",
				settings[i].section);
			section = settings[i].section;
		}
		fprintf(out, "; %s\n", settings[i].help);
		print_value(config, &settings[i], out);
	}
}

struct err *target_parse(const char *text, struct target *ret_target)
{
	struct target target = { 0 };
	uint64_t pid;

	if (!strcmp(text, "all")) {
		target.kind = TARGET_ALL;
	} else if (str_starts(text, "pid:")) {
		if (!number_parse(text + 4, &pid) || !pid || pid > INT32_MAX)
			return err_new(ERR_INVALID, "'%s' is not a process id", text + 4);
		target.kind = TARGET_PID;
		target.pid = (uint32_t)pid;
	} else if (str_starts(text, "cgroup:") && text[7]) {
		target.kind = TARGET_CGROUP;
		target.name = mem_strdup(text + 7);
	} else if (str_starts(text, "service:") && text[8] && !strchr(text + 8, '/')) {
		target.kind = TARGET_SERVICE;
		target.name = mem_strdup(text + 8);
	} else {
		return err_new(
			ERR_INVALID,
			"'%s' is none of all, pid:NUMBER, cgroup:PATH, service:UNIT",
			text);
	}
	*ret_target = target;
	return NULL;
}

void target_fini(struct target *target)
{
	free(target->name);
	target->name = NULL;
}

static struct err *add_source(const char *name, uint32_t *sources)
{
	static const struct {
		const char *name;
		uint32_t bits;
	} known[] = {
		{ "auto", 0 },
		{ "clock", 1u << ABI_SOURCE_CLOCK },
		{ "ibs", 1u << ABI_SOURCE_IBS },
		{ "pebs", 1u << ABI_SOURCE_PEBS_LOAD | 1u << ABI_SOURCE_PEBS_STORE },
		{ "page-fault", 1u << ABI_SOURCE_PAGE_FAULT },
	};

	for (size_t i = 0; i < sizeof(known) / sizeof(*known); i++) {
		if (strcmp(known[i].name, name))
			continue;
		*sources |= known[i].bits;
		return NULL;
	}
	return err_new(ERR_INVALID, "'%s' is none of auto, clock, ibs, pebs, page-fault",
		       name);
}

struct err *sources_parse(const char *text, uint32_t *ret_sources)
{
	CLEANUP(free) char *list = mem_strdup(text);
	uint32_t sources = 0;
	char *save = NULL;

	for (char *name = strtok_r(list, ", ", &save); name;
	     name = strtok_r(NULL, ", ", &save))
		TRY(add_source(name, &sources));
	*ret_sources = sources;
	return NULL;
}
