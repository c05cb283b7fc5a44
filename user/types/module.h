/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TYPES_MODULE_H
#define TYPES_MODULE_H

/* What the files of types/ share: the opened module, one function's code, one decision. */

#include "bin/cfg.h"
#include "bin/dtype.h"
#include "bin/dwarf.h"
#include "bin/elf.h"
#include "bin/frame.h"
#include "bin/insn.h"
#include "core/arena.h"
#include "core/map.h"
#include "core/str.h"
#include "core/vec.h"
#include "types/kernel.h"
#include "types/recover.h"

#define TYPES_MAX_INSNS (1u << 20) /* of one function */

/* The stack protector's guard: fs:0x28 in programs, gs:0x28 in the kernel. */
#define CANARY_DISP 0x28

/* An answer without its strings. */
struct decision {
	uint64_t va;
	int64_t offset;
	uint32_t type; /* 0 for an abstention */
	float confidence;
	uint16_t width;
	uint8_t verdict, access;
};

/* One function: input of every analysis. */
struct code {
	const struct dwarf_function *function;
	VEC(struct insn) insns; /* sorted by va */
	struct dwarf_scopes scopes;
	struct cfg *cfg;
	bool is_decided;		/* @decisions are there */
	VEC(struct decision) decisions; /* one per memory instruction, sorted by va */
};

/* A pointer that the loader fills in. */
struct relocated {
	uint64_t va, value;
};

struct unit;
struct facts;
struct sweep;
struct keep;

struct recover {
	struct elf_file *main, *debug, *alt;
	struct elf_functions *symbols;
	struct frame_table *frame;
	struct dwarf_file *dwarf; /* NULL: no debug information */
	struct dtypes *types;
	struct insn_decoder *decoder;
	struct kernel *kernel;
	struct recover_options options;
	VEC(struct relocated) relocated; /* sorted */
	uint64_t read_last;		 /* by module_read() */
	VEC(struct relocated)
	tls_slots;	     /* of the GOT -> offset in the TLS block; sorted */
	uint64_t tls_bytes;  /* of this module's TLS block, aligned */
	struct code code;    /* the function analysed last */
	struct facts *facts; /* of @code; NULL before the first */
	struct unit *unit;   /* entered last; NULL before the first */
	struct map *results; /* unit -> struct unit_result */
	uint32_t *by_unit;   /* functions, sorted by unit and va */
	uint32_t *ordinals;  /* of each function in its unit */
	struct arena *arena; /* field lists given out */
	struct map *fields;  /* hash of a layout -> struct fact_field pointer */
	uint64_t units, kept_units;
	struct map *clobbers; /* callee of the unit -> registers it changes */
	struct keep *keep;    /* NULL: nothing is kept */
	struct sweep *sweep;  /* under way; NULL: none */
	struct str path, name;
};

/* module_read() - a constant in the file, relocated; false where there is none. */
bool module_read(void *recover, uint64_t va, unsigned bytes, uint64_t *ret_value);
/* module_callee() - prototype of what @insn calls, by entry va or PLT name. */
bool module_callee(struct recover *recover, const struct insn *insn,
		   struct dwarf_proto *ret_proto);

/* module_has_own_convention() - a clone whose parameters the compiler changed. */
bool module_has_own_convention(const char *symbol);
bool module_is_writable(const struct recover *recover, uint64_t va);
/* module_unit() - the unit that was entered, which is @number. */
struct unit *module_unit(struct recover *recover, uint32_t number);
/* module_enter() - begin with another unit; nothing of the one before stays. */
void module_enter(struct recover *recover, uint32_t number);
/* module_leave() - nothing of a unit stays; recover->types is empty, or has what was put
 * in since the last time. */
void module_leave(struct recover *recover);
/* module_is_frame_access() - through the stack pointer, or through rbp where that holds
 * the frame. */
bool module_is_frame_access(struct recover *recover, uint64_t va);

/* recover_tick() - one more function was looked at, for progress. */
void recover_tick(struct recover *recover);

/* code_load() - decode @function, split it, read its scopes. */
void code_load(struct recover *recover, const struct dwarf_function *function);
void code_clear(struct code *code);
void code_fini(struct code *code);

/* code_find() - index of the instruction at @va, SIZE_MAX when there is none. */
size_t code_find(const struct code *code, uint64_t va);

/* direct_decide() - every access of the function by debug information alone. */
void direct_decide(struct recover *recover, struct code *code);

/* candidate_settle() - an address in @type at @offset: array elements become the
 * element; false when it lies outside. */
bool candidate_settle(struct dtypes *types, uint32_t *type, int64_t *offset);

#endif
