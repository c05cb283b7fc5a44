/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_SPEC_H
#define PROBE_SPEC_H

/*
 * Spec files, assay-spec(5): what an application's functions mean, as data. Here a file
 * becomes checked structs with its expressions parsed; nothing is looked up yet.
 *
 * The format is YAML and its reader libcyaml: a schema of C structs decides what may
 * stand where, so that unknown keys, wrong types and bad words are errors with a line
 * number and none of that is code of ours. INI was tried on paper: variants holding
 * lists of probes do not fit into sections, and its libraries (inih) have no schema.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "core/cleanup.h"
#include "core/err.h"
#include "probe/expr.h"

#define SPEC_MAX_FILE_BYTES (1024 * 1024)
#define SPEC_MAX_VARIANTS   32
#define SPEC_MAX_MATCHES    32	/* of one variant */
#define SPEC_MAX_NEEDS	    32	/* of one variant */
#define SPEC_MAX_PROBES	    128 /* of one variant */
#define SPEC_MAX_RESOURCES  64	/* of one variant */
#define SPEC_MAX_NAME	    64	/* ids of all kinds */
#define SPEC_MAX_STOPS	    4	/* ABI_NAME_STOPS */

/* All that is given must hold; NULL: not asked. */
struct spec_match {
	const char *path;     /* glob on the path inside the process's root */
	const char *soname;   /* glob */
	const char *package;  /* name of the package that owns the file */
	const char *versions; /* "7.0 .. 7.1": from the first, below the second */
	const char *build_id; /* lower-case hexadecimal */
};

enum spec_by { /* as enum resolve_by of job/resolve.h */
	       SPEC_SYMBOL = 1,
	       SPEC_PREFIX,
	       SPEC_GLOB,
	       SPEC_DEMANGLED,
	       SPEC_DWARF,
	       SPEC_USDT,
	       SPEC_OFFSET,
};

/* Which code is meant. */
struct spec_where {
	uint8_t by; /* enum spec_by */
	const char *text;
	uint64_t va, bytes; /* OFFSET: of the function, in the file's own numbering */
};

enum spec_at { SPEC_ENTRY, SPEC_RETURN, SPEC_PAIRED };
enum spec_heat { SPEC_HEAT_UNKNOWN, SPEC_COLD, SPEC_WARM, SPEC_HOT, SPEC_WINDOWS };
enum spec_fails { SPEC_FAILS_RETURN, SPEC_FAILS_LONGJMP, SPEC_FAILS_NEVER };
enum spec_missing { SPEC_SKIP_PROBE, SPEC_SKIP_VARIANT };

struct spec_probe {
	const char *id;
	struct spec_where where;
	uint8_t at;	     /* enum spec_at */
	uint8_t verb;	     /* enum abi_verb; of the begin when paired */
	uint8_t end_verb;    /* PAIRED only */
	uint8_t mode, scope; /* enum abi_mode, abi_scope */
	uint8_t temperature; /* enum spec_heat */
	uint8_t fails_by;    /* enum spec_fails */
	uint8_t missing;     /* enum spec_missing */
	uint8_t label;	     /* enum abi_label */
	bool once;	     /* a begin whose key is open already is no new one */
	bool aside;	     /* ... leaves the thread with what it serves */
	struct expr key, object, amount, name;
	struct expr_when when;
	const char *name_text;	       /* a fixed name instead of @name; or NULL */
	uint8_t stops[SPEC_MAX_STOPS]; /* names end before one of these */
	uint16_t name_bytes;	       /* longer names are cut; 0: the default */
	const char *resource;	       /* or NULL */
	const char *edge;	       /* name of a hand-over; or NULL */
	int instead_of; /* index of the probe that this one stands in for, or -1 */
};

struct spec_resource {
	const char *name, *title;
	const char *unit;  /* "bytes", "pages", ...; NULL: pieces */
	uint64_t capacity; /* 0 unknown */
	uint8_t kind;	   /* enum resource_kind */
	uint8_t key;	   /* enum resource_key: what the keys of its probes are */
	bool names_task;   /* names of its probes are the task's, not the object's */
	const char *pinned_by, *feeds; /* other resources; or NULL */
	const char *advice;	       /* what one would try; or NULL */
	bool has_stale;
	int64_t stale; /* the level of a place that is taken but idle */
};

struct spec_variant {
	const char *name, *evidence; /* evidence: how its offsets are known; or NULL */
	const struct spec_match *matches; /* one must match */
	size_t match_count;
	const struct spec_where *needs; /* all must be there */
	size_t need_count;
	const struct spec_probe *probes;
	size_t probe_count;
	const struct spec_resource *resources;
	size_t resource_count;
};

struct spec {
	const char *name, *title;
	const char *path;      /* of the file */
	const char *otherwise; /* said when the path fits and no variant does; or NULL */
	const struct spec_variant *variants; /* in order of preference */
	size_t variant_count;
};

/**
 * spec_load() - read and check a file; spec_parse() - the same from memory.
 * Errors: ERR_INVALID with file, variant, probe, key and column; ERR_LIMIT; ERR_IO.
 */
struct err *spec_load(const char *path, struct spec **ret_spec);
struct err *spec_parse(const char *path, const char *text, size_t bytes,
		       struct spec **ret_spec);
void spec_free(struct spec *spec); /* NULL is fine */
CLEANUP_DEFINE(spec_free, struct spec *)

/* Words for reports; "" for none. */
const char *spec_by_name(unsigned by);
const char *spec_at_name(unsigned at);
const char *spec_heat_name(unsigned temperature);
/* spec_verb_name() - "request.begin"; for a paired probe its short form, "request". */
const char *spec_verb_name(const struct spec_probe *probe);
/* spec_verb_text() - of an enum abi_verb: "request.begin". */
const char *spec_verb_text(unsigned verb);

/* What a probe's expressions ask of the place. */
struct spec_wants {
	uint32_t entry_live;	   /* DWARF registers read at the entry, by bit */
	bool entry_memory, result; /* result: rax at the return */
};
struct spec_wants spec_wants(const struct spec_probe *probe);
/* spec_uses_result() - the expression belongs to the return of a paired probe. */
bool spec_uses_result(const struct expr *expr);
bool spec_condition_uses_result(const struct expr_condition *condition);

/* spec_each_chain() - every chain of a probe's expressions. */
typedef struct err *(*spec_chain_fn)(void *ctx, const struct expr_chain *chain);
struct err *spec_each_chain(const struct spec_probe *probe, spec_chain_fn each,
			    void *ctx);

#endif
