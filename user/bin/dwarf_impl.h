/* SPDX-License-Identifier: Apache-2.0 */
#ifndef BIN_DWARF_IMPL_H
#define BIN_DWARF_IMPL_H

/* Shared by bin/dwarf*.c only: the one place where libdw shows. */

#include <dwarf.h>
#include <elfutils/libdw.h>

#include "bin/dwarf.h"
#include "core/arena.h"
#include "core/map.h"
#include "core/vec.h"

struct range_owner {
	uint64_t lo, hi;
	uint32_t function;
};

/* A variable; its type is translated when it is asked for, into the types of the unit
 * that is entered. */
struct known_global {
	struct dwarf_global global;
	struct dtype_ref ref; /* of the variable */
	uint64_t bytes;
	uint32_t generation; /* of global.type */
};

struct known_globals {
	struct known_global *data; /* sorted by va once @is_sorted */
	size_t count, room;
	bool is_sorted;
};

/* The first definition of a struct by that name; others of another size spoil it. */
struct definition {
	struct dtype_ref ref;
	uint64_t bytes;
	bool is_ambiguous;
};

struct dwarf_file {
	const struct elf_file *code, *holder; /* holder: of the debug information */
	Dwarf *dwarf, *alt;
	struct arena *arena;
	struct dtypes *types;
	struct map *type_of_die; /* DIE address -> type id */
	struct map *definitions; /* hash of the name -> struct definition */
	struct map *protos;	 /* hash of the name -> struct dtype_ref */
	VEC(struct dwarf_function) functions;
	VEC(struct range_owner) owners;
	VEC(struct dwarf_range) assembly; /* code of such units, sorted */
	struct known_globals globals, tls;
	struct known_globals statics, tls_statics; /* local, met since dwarf_enter() */
	uint32_t generation;
	VEC(struct dtype_ref) units; /* their top DIEs; number 0 is none */
	uint32_t dies;
	struct dwarf_asked *asked; /* NULL: nobody listens */
};

/* dwarf_type.c */
uint32_t dwarf_type_fetch(void *file, const struct dtype_ref *ref);
/* dwarf_type_of() - of what the DIE's DW_AT_type names, origins followed. */
uint32_t dwarf_type_of(struct dwarf_file *file, Dwarf_Die *die);
uint32_t dwarf_type_at(struct dwarf_file *file, Dwarf_Die *die); /* of a type DIE */
uint32_t dwarf_function_type(struct dwarf_file *file, Dwarf_Die *die, unsigned chain);
Dwarf_Die dwarf_proto_die(const struct dtype_ref *ref); /* what dwarf_proto_of() reads */
struct dwarf_proto dwarf_proto_of(struct dwarf_file *file, Dwarf_Die *die);
Dwarf_Die dwarf_die_of(const struct dtype_ref *ref);
uint64_t dwarf_number(Dwarf_Die *die, unsigned attribute, uint64_t otherwise);
const char *dwarf_name(Dwarf_Die *die);	    /* NULL none; not from its origin */
const char *dwarf_any_name(Dwarf_Die *die); /* "" none; origins followed */
/* dwarf_next() - the next sibling; false at the end or when it does not lie ahead. */
bool dwarf_next(Dwarf_Die *die);

/* dwarf_loc.c */
struct dwarf_place {
	uint8_t where, reg;
	int64_t offset;
	uint32_t piece_offset, piece_bytes;
};

/* dwarf_places() - of one expression. Return: places written, up to DWARF_MAX_PIECES. */
size_t dwarf_places(Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t count,
		    const struct dwarf_place *frame, struct dwarf_place *places);

#endif
