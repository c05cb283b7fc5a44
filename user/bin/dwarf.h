/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_DWARF_H
#define BIN_DWARF_H

/*
 * What the debug information says about code: functions, the variables of every scope
 * that is open at a va (inlined ones too) and where they live, globals by address,
 * prototypes; types go to bin/dtype.h. DWARF 4 and 5, type units, partial and
 * imported units, dwz. Opening makes one pass over the top level of every unit; scopes
 * and types are read when asked for.
 */

#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "bin/dtype.h"
#include "bin/elf.h"
#include "core/cleanup.h"
#include "core/err.h"

#define DWARF_MAX_UNITS	    (1u << 20)
#define DWARF_MAX_TOP_DIES  (64u << 20) /* looked at by the index, all units */
#define DWARF_MAX_FUNCTIONS (4u << 20)
#define DWARF_MAX_GLOBALS   (4u << 20)
#define DWARF_MAX_RANGES    4096       /* of one function or scope */
#define DWARF_MAX_SCOPES    64	       /* nested */
#define DWARF_MAX_DIES	    (1u << 20) /* below one function */
#define DWARF_MAX_VARS	    (1u << 20) /* locations of one function */
#define DWARF_MAX_PARAMS    256
#define DWARF_MAX_CHAIN	    32 /* typedefs, qualifiers, pointers, origins in a row */
#define DWARF_MAX_PIECES    32 /* of one location */

struct dwarf_file;

/**
 * dwarf_open() - read the units of a module's debug information.
 * @main: has the code; @debug: its separate debug file or NULL; @alt: dwz file or NULL.
 * All are borrowed until dwarf_close().
 * Errors: ERR_NOT_FOUND without debug information, ERR_FORMAT, ERR_LIMIT,
 * ERR_UNSUPPORTED (compression).
 */
struct err *dwarf_open(const struct elf_file *main, const struct elf_file *debug,
		       const struct elf_file *alt, struct dwarf_file **ret_file);
void dwarf_close(struct dwarf_file *file); /* NULL is fine */
CLEANUP_DEFINE(dwarf_close, struct dwarf_file *)

struct dtypes *dwarf_types(struct dwarf_file *file);
/**
 * dwarf_enter() - forget all types and local statics, to begin with another unit.
 * What is translated afterwards then depends on what is asked, not on who asked before:
 * structs of one shape are one type, the first one met. Ids of types, here and in
 * prototypes and scopes, are void; dwarf_global_at() translates anew.
 * Return: dwarf_types().
 */
struct dtypes *dwarf_enter(struct dwarf_file *file);
/* dwarf_type_name() - "struct x", a typedef's name, "struct <anon:FILE:LINE>". */
const char *dwarf_type_name(struct dwarf_file *file, uint32_t type, struct str *scratch);

struct dwarf_range {
	uint64_t lo, hi; /* va, hi excluded */
};

struct dwarf_function {
	const char *name;		  /* "" when it has none */
	uint64_t va;			  /* entry */
	const struct dwarf_range *ranges; /* the first holds the entry */
	uint32_t range_count;
	uint32_t unit;
	struct dtype_ref ref;
};

/* dwarf_functions() - with code, sorted by va, one per va. */
const struct dwarf_function *dwarf_functions(const struct dwarf_file *file,
					     size_t *ret_count);
/* dwarf_function_at() - the one that has @va in one of its ranges, or NULL. */
const struct dwarf_function *dwarf_function_at(const struct dwarf_file *file,
					       uint64_t va);
/* dwarf_function_by_va() - the one with this entry, or NULL. */
const struct dwarf_function *dwarf_function_by_va(const struct dwarf_file *file,
						  uint64_t va);

/* dwarf_is_assembly() - does @va lie in a unit that was written in assembly? */
bool dwarf_is_assembly(const struct dwarf_file *file, uint64_t va);

struct dwarf_proto {
	const char *name; /* borrowed, "" when it has none */
	uint32_t type;	  /* DTYPE_FUNCTION; 0 unknown */
	bool is_noreturn;
	bool is_clone; /* set by callers: parameters are not passed as the type says */
};

struct dwarf_proto dwarf_proto(struct dwarf_file *file,
			       const struct dwarf_function *function);
/* dwarf_proto_named() - of any declaration or definition of that name. */
bool dwarf_proto_named(struct dwarf_file *file, const char *name,
		       struct dwarf_proto *ret_proto);

enum dwarf_where {
	DWARF_IN_REGISTER, /* the value is in @reg */
	DWARF_IS_SUM,	   /* the value is @reg + @offset; nothing in memory */
	DWARF_AT_REGISTER, /* the object is at @reg + @offset */
	DWARF_AT_CFA,	   /* the object is at CFA + @offset */
	DWARF_IS_CFA,	   /* the value is CFA + @offset */
	DWARF_IS_ENTRY,	   /* the value is what @reg held on entry, plus @offset */
	DWARF_AT_ADDRESS,  /* static, at va @offset */
	DWARF_IS_ADDRESS,  /* the value is va @offset */
	DWARF_IN_TLS,	   /* @offset in this module's TLS block */
};

/* One variable, or one piece of it, at one place over one range of code. */
struct dwarf_var {
	uint64_t lo, hi;
	int64_t offset;
	uint32_t type;
	uint32_t piece_offset, piece_bytes; /* in the variable; 0 bytes: all of it */
	uint8_t where;			    /* enum dwarf_where */
	uint8_t reg;
	uint8_t depth; /* of its scope; 0 the function's own */
	bool is_param;
	const char *name; /* "" none; borrowed until dwarf_close() */
};

/* What is known about one call: its return address and who is called. */
struct dwarf_call {
	uint64_t return_va;
	struct dwarf_proto proto;
};

struct dwarf_scopes {
	VEC(struct dwarf_var) vars;   /* in order of DIEs: outer scopes first */
	VEC(struct dwarf_call) calls; /* sorted by return_va */
};

/* dwarf_scopes() - fill @scopes, which the caller clears and finishes. */
void dwarf_scopes(struct dwarf_file *file, const struct dwarf_function *function,
		  struct dwarf_scopes *scopes);
void dwarf_scopes_fini(struct dwarf_scopes *scopes);

/* dwarf_unit_types() - every struct, union, named typedef of one and array that the unit
 * (dwarf_function.unit) or one that it imports describes at its top level. */
typedef void (*dwarf_type_fn)(void *ctx, uint32_t type);
void dwarf_unit_types(struct dwarf_file *file, uint32_t unit, dwarf_type_fn each,
		      void *ctx);

/**
 * dwarf_digest() - a hash of all that debug information says about @unit, which stays the
 * same when the unit's code and data move and when other units change.
 * @place: what an address of code stands for, as a number that does not move either; data
 *	addresses are left out and listed.
 * Covers DIEs, names, location and range lists, and the names of source files; line
 * numbers of instructions and macros are left out.
 * Return false for a unit that refers to another one, and for what is not understood:
 * DWARF before 4, 64-bit DWARF, split units, damage.
 */
struct dwarf_digest {
	uint64_t hash;
	VEC(uint64_t) data; /* in order of DIEs; to be finished by the caller */
};
typedef uint64_t (*dwarf_place_fn)(void *ctx, uint64_t va);
bool dwarf_digest(struct dwarf_file *file, uint32_t unit, dwarf_place_fn place, void *ctx,
		  struct dwarf_digest *digest);
/* dwarf_unit_base() - what its offsets in location lists count from; 0: addresses. */
uint64_t dwarf_unit_base(struct dwarf_file *file, uint32_t unit);

/* dwarf_type_digest() - of a struct or union and of everything that can be reached from
 * it; 0 when that is too much. */
uint64_t dwarf_type_digest(struct dwarf_file *file, const struct dtype_ref *ref);
struct dwarf_global {
	uint64_t va; /* or the offset in the TLS block */
	uint32_t type;
	const char *name;
};

/* What a declaration leads to without passing through a struct: the structs. Those that
 * are only declared stand for their definitions. @shape: dtype.hash. */
struct dwarf_reached {
	uint64_t shape;
	struct dtype_ref ref;
};
struct dwarf_reach {
	struct dwarf_reached *data;
	size_t count, room;
};
void dwarf_reach_function(struct dwarf_file *file, const struct dwarf_function *function,
			  struct dwarf_reach *reach);
/* dwarf_reach_named() - of dwarf_proto_named(). */
void dwarf_reach_named(struct dwarf_file *file, const char *name,
		       struct dwarf_reach *reach);
/* dwarf_reach_global() - @global as dwarf_global_at() or dwarf_tls_at() returned it. */
void dwarf_reach_global(struct dwarf_file *file, const struct dwarf_global *global,
			struct dwarf_reach *reach);
void dwarf_reach_type(struct dwarf_file *file, const struct dtype_ref *ref,
		      struct dwarf_reach *reach);
uint32_t dwarf_type_by_ref(struct dwarf_file *file, const struct dtype_ref *ref);
/* dwarf_unit_of() - dtype_ref.unit of what the unit describes itself. */
const void *dwarf_unit_of(const struct dwarf_file *file, uint32_t unit);
/* dwarf_definition() - what a struct that is only declared resolves to, by the hash of
 * its full name; false when there is none, or several of different size. */
bool dwarf_definition(struct dwarf_file *file, uint64_t name_hash,
		      struct dtype_ref *ret_ref);

/* dwarf_global_at() - the variable that covers @va, one of those at the top level or a
 * local static that dwarf_scopes() met since dwarf_enter(); the offset is in @ret_offset. */
const struct dwarf_global *dwarf_global_at(struct dwarf_file *file, uint64_t va,
					   uint64_t *ret_offset);
const struct dwarf_global *dwarf_tls_at(struct dwarf_file *file, uint64_t offset,
					uint64_t *ret_offset);

/* Addresses that somebody asked for, each at least once. */
struct dwarf_asked {
	VEC(uint64_t) vas, tls;
	uint64_t recent[256];
};
/* dwarf_listen() - note them until called with NULL. */
void dwarf_listen(struct dwarf_file *file, struct dwarf_asked *asked);
void dwarf_note(struct dwarf_file *file, uint64_t va);
/* dwarf_static_bytes() - size of the local static at @va that was met since
 * dwarf_enter(); 0: none. */
uint64_t dwarf_static_bytes(struct dwarf_file *file, uint64_t va);

#endif
