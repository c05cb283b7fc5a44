/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_CONFIG_H
#define DAEMON_CONFIG_H

/*
 * daemon/ - assayd: owns everything, wires path to path. Two processes of one program:
 * the broker keeps the privileges and hands out descriptors, the daemon has none and
 * does the work; foreign files are parsed in a third, assay-worker.
 */

#include <stdbool.h>
#include <stdint.h>
#include <stdio.h>

#include "core/cleanup.h"
#include "core/err.h"

#define CONFIG_DEFAULT_PATH "/etc/assay/assayd.conf"

/* What is watched. */
enum target_kind { TARGET_ALL = 1, TARGET_PID, TARGET_CGROUP, TARGET_SERVICE };

struct target {
	enum target_kind kind;
	uint32_t pid; /* with its children */
	char *name;   /* cgroup path below the cgroup2 mount, or a systemd unit */
};

struct config {
	/* [sampling] */
	char *target; /* "all", "pid:1234", "cgroup:PATH", "service:NAME" */
	uint64_t rate_hz, tick_hz;
	uint64_t ring_bytes, stack_bytes;
	bool specs;	     /* spec files become uprobes */
	uint64_t walk_hz;    /* walks over all threads; 0: none */
	bool join;	     /* follow requests over sockets */
	uint64_t spans_hz;   /* requests that are kept one by one */
	uint64_t names;	     /* kinds of requests per framework */
	bool hash_names;     /* store the hash of what they are called */
	uint64_t budget_ppm; /* of the targets' CPU, for all hooks together */
	char *fleet_key;     /* hosts with the same key have their windows together */
	char *sources;	     /* "auto", or a comma list: ibs, pebs, clock, page-fault */
	/* [store] */
	char *db;
	uint64_t quota_bytes;
	char *cache; /* folder for kept answers; "auto", "off" */
	uint64_t cache_bytes;
	uint64_t keep_1s_ns, keep_10s_ns, keep_1m_ns, keep_1h_ns;
	/* [daemon] */
	char *socket; /* "" for none */
	char *user;   /* the daemon runs as; "" keeps the caller's */
	char *worker; /* path of assay-worker; "" finds it */
	char *debuginfod_urls;
	char *log_level;
};

/* config_defaults() - every field set; strings allocated. */
void config_defaults(struct config *config);
void config_fini(struct config *config);

static inline void cleanup_config_fini(struct config *config)
{
	config_fini(config);
}

/**
 * config_load() - settings of an INI file over what @config holds.
 * Errors: one line with file, line, key and what is allowed; @config is untouched.
 */
struct err *config_load(struct config *config, const char *path);

/* config_set() - one setting by its key, as the file or the command line has it. */
struct err *config_set(struct config *config, const char *key, const char *value);

/* config_check() - what can only be judged together. */
struct err *config_check(const struct config *config);

/* config_print() - a commented assayd.conf with the present values. */
void config_print(const struct config *config, FILE *out);

/* sources_parse() - "auto" is 0, otherwise 1 << enum abi_source of each name, or-ed. */
struct err *sources_parse(const char *text, uint32_t *ret_sources);

struct err *target_parse(const char *text, struct target *ret_target);
void target_fini(struct target *target);

#endif
