// SPDX-License-Identifier: Apache-2.0
/*
 * Type DIEs to bin/dtype. Each DIE is translated once (a map from its address), each
 * struct by its members' names and offsets only; member types come when asked for.
 * Chains of typedefs, qualifiers and pointers end after DWARF_MAX_CHAIN.
 */
#include "bin/dwarf_impl.h"

#include <string.h>

#include "core/intern.h"
#include "core/mem.h"

static uint32_t type_of_die(struct dwarf_file *file, Dwarf_Die *die, unsigned chain);

Dwarf_Die dwarf_die_of(const struct dtype_ref *ref)
{
	Dwarf_Die die = { .addr = (void *)ref->die, .cu = (void *)ref->unit };

	return die;
}

static struct dtype_ref ref_of(const Dwarf_Die *die)
{
	return (struct dtype_ref){ .die = die->addr, .unit = die->cu };
}

const char *dwarf_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;

	return dwarf_formstring(dwarf_attr(die, DW_AT_name, &attr));
}

const char *dwarf_any_name(Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	const char *name = dwarf_formstring(dwarf_attr_integrate(die, DW_AT_name, &attr));

	return name ? name : "";
}

uint64_t dwarf_number(Dwarf_Die *die, unsigned attribute, uint64_t otherwise)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, attribute, &attr) || dwarf_formudata(&attr, &value))
		return otherwise;
	return value;
}

bool dwarf_next(Dwarf_Die *die)
{
	const void *before = die->addr;

	return dwarf_siblingof(die, die) == 0 &&
	       (const char *)die->addr > (const char *)before;
}

static bool referred(Dwarf_Die *die, unsigned attribute, Dwarf_Die *ret_die)
{
	Dwarf_Attribute attr;

	return dwarf_attr(die, attribute, &attr) && dwarf_formref_die(&attr, ret_die);
}

static uint32_t type_at_attribute(struct dwarf_file *file, Dwarf_Die *die, unsigned chain)
{
	Dwarf_Die type;

	return referred(die, DW_AT_type, &type) ? type_of_die(file, &type, chain + 1) : 0;
}

uint32_t dwarf_type_of(struct dwarf_file *file, Dwarf_Die *die)
{
	Dwarf_Attribute attr;
	Dwarf_Die type;

	if (!dwarf_attr_integrate(die, DW_AT_type, &attr) ||
	    !dwarf_formref_die(&attr, &type))
		return 0;
	return type_of_die(file, &type, 0);
}

uint32_t dwarf_type_fetch(void *ctx, const struct dtype_ref *ref)
{
	Dwarf_Die die = dwarf_die_of(ref);

	return type_of_die(ctx, &die, 0);
}

uint32_t dwarf_type_at(struct dwarf_file *file, Dwarf_Die *die)
{
	return type_of_die(file, die, 0);
}

static void place_member(Dwarf_Die *die, struct dtype_member *member)
{
	uint64_t bits = dwarf_number(die, DW_AT_bit_size, 0);
	uint64_t offset = dwarf_number(die, DW_AT_data_member_location, 0);
	uint64_t first = dwarf_number(die, DW_AT_data_bit_offset, UINT64_MAX);

	if (bits > 512)
		bits = 0;
	if (bits && first == UINT64_MAX) {
		/* DWARF 3 counts from the most significant bit of a storage unit */
		uint64_t unit = dwarf_number(die, DW_AT_byte_size, 0) * 8;
		uint64_t from_top = dwarf_number(die, DW_AT_bit_offset, 0);

		first = offset * 8 +
			(unit > from_top + bits ? unit - from_top - bits : 0);
	}
	if (bits) {
		offset = first / 8;
		member->bits = (uint16_t)bits;
		member->bit = (uint16_t)(first % 8);
	}
	member->offset = offset < UINT32_MAX / 2 ? (uint32_t)offset : UINT32_MAX / 2;
}

static bool is_member(unsigned tag, Dwarf_Die *die)
{
	if (tag == DW_TAG_inheritance)
		return true;
	/* A static member of a class is no part of its objects. */
	return tag == DW_TAG_member && !dwarf_hasattr(die, DW_AT_external) &&
	       !dwarf_hasattr(die, DW_AT_declaration);
}

static uint32_t add_struct(struct dwarf_file *file, Dwarf_Die *die, struct dtype *type)
{
	VEC(struct dtype_member) members = { 0 };
	Dwarf_Die child, target;

	if (dwarf_child(die, &child) == 0)
		do {
			unsigned tag = (unsigned)dwarf_tag(&child);

			if (!is_member(tag, &child) ||
			    !referred(&child, DW_AT_type, &target))
				continue;

			struct dtype_member *member = vec_add(&members);

			*member = (struct dtype_member){ .type = DTYPE_UNRESOLVED,
							 .ref = ref_of(&target) };
			if (tag == DW_TAG_member)
				member->name = dwarf_name(&child);
			place_member(&child, member);
		} while (members.count < DTYPE_MAX_MEMBERS && dwarf_next(&child));
	type->members = members.data;
	type->member_count = (uint32_t)members.count;

	uint32_t id = dtype_add(file->types, type);

	vec_fini(&members);
	return id;
}

static uint32_t struct_type(struct dwarf_file *file, Dwarf_Die *die, unsigned tag)
{
	const char *name = dwarf_name(die);
	const char *keyword = tag == DW_TAG_union_type	 ? "union"
			      : tag == DW_TAG_class_type ? "class"
							 : "struct";
	char *full = name ? mem_printf("%s %s", keyword, name) : NULL;
	struct dtype type = {
		.kind = tag == DW_TAG_union_type ? DTYPE_UNION : DTYPE_STRUCT,
		.name = full,
		.bytes = dwarf_number(die, DW_AT_byte_size, 0),
		.line = (uint32_t)dwarf_number(die, DW_AT_decl_line, 0),
		.is_untagged = !name,
		.ref = ref_of(die),
	};
	uint32_t id;

	if (type.bytes > DTYPE_MAX_BYTES)
		type.bytes = DTYPE_MAX_BYTES;
	if (dwarf_hasattr(die, DW_AT_declaration)) {
		uint64_t hash = hash_text(full ? full : "", 0);
		const struct definition *found = map_find(file->definitions, &hash);

		type.kind = DTYPE_INCOMPLETE;
		type.target = DTYPE_UNRESOLVED;
		type.ref = (struct dtype_ref){ 0 };
		if (found && full && !found->is_ambiguous)
			type.ref = found->ref;
		id = dtype_add(file->types, &type);
	} else {
		id = add_struct(file, die, &type);
	}
	free(full);
	return id;
}

static uint32_t array_type(struct dwarf_file *file, Dwarf_Die *die, unsigned chain)
{
	uint32_t element = type_at_attribute(file, die, chain);
	uint64_t each = dtype_get(file->types, dtype_whole(file->types, element))->bytes;
	uint64_t count = 1;
	Dwarf_Die child;
	bool is_counted = false;

	if (dwarf_child(die, &child) == 0)
		do {
			if (dwarf_tag(&child) != DW_TAG_subrange_type)
				continue;

			uint64_t upper =
				dwarf_number(&child, DW_AT_upper_bound, UINT64_MAX);
			uint64_t here = dwarf_number(&child, DW_AT_count, upper + 1);

			is_counted = true;
			if (here > DTYPE_MAX_BYTES ||
			    (here && count > DTYPE_MAX_BYTES / here))
				here = 0; /* "upper bound -1" of old compilers, or a lie */
			count *= here;
		} while (dwarf_next(&child));
	if (!is_counted || (each && count > DTYPE_MAX_BYTES / each))
		count = 0;

	struct dtype type = { .kind = DTYPE_ARRAY,
			      .target = element,
			      .count = count,
			      .bytes = count * each };

	return dtype_add(file->types, &type);
}

uint32_t dwarf_function_type(struct dwarf_file *file, Dwarf_Die *die, unsigned chain)
{
	uint32_t params[DWARF_MAX_PARAMS];
	struct dtype type = { .kind = DTYPE_FUNCTION, .params = params };
	Dwarf_Die child;

	type.target = type_at_attribute(file, die, chain);
	if (dwarf_child(die, &child) == 0)
		do {
			int tag = dwarf_tag(&child);

			type.is_variadic |= tag == DW_TAG_unspecified_parameters;
			if (tag == DW_TAG_formal_parameter &&
			    type.member_count < DWARF_MAX_PARAMS)
				params[type.member_count++] =
					type_at_attribute(file, &child, chain);
		} while (dwarf_next(&child));
	return dtype_add(file->types, &type);
}

static uint32_t base_type(struct dwarf_file *file, Dwarf_Die *die, unsigned tag)
{
	struct dtype type = {
		.kind = tag == DW_TAG_enumeration_type ? DTYPE_ENUM : DTYPE_BASE,
		.name = dwarf_name(die),
		.bytes = dwarf_number(die, DW_AT_byte_size, 0),
		.is_float = dwarf_number(die, DW_AT_encoding, 0) == DW_ATE_float,
	};

	if (type.bytes > 64)
		type.bytes = 64;
	return dtype_add(file->types, &type);
}

static uint32_t translate(struct dwarf_file *file, Dwarf_Die *die, unsigned chain)
{
	unsigned tag = (unsigned)dwarf_tag(die);
	struct dtype pointer = { .kind = DTYPE_POINTER, .bytes = 8 };
	Dwarf_Die unit;
	uint32_t id;

	switch (tag) {
	case DW_TAG_const_type:
	case DW_TAG_volatile_type:
	case DW_TAG_restrict_type:
	case DW_TAG_atomic_type:
	case DW_TAG_immutable_type:
	case DW_TAG_packed_type:
		return type_at_attribute(file, die, chain);
	case DW_TAG_typedef:
		id = type_at_attribute(file, die, chain);
		if (dtype_is_aggregate(file->types, id))
			dtype_set_name(file->types, id, dwarf_name(die));
		return id;
	case DW_TAG_structure_type:
	case DW_TAG_union_type:
	case DW_TAG_class_type:
		/* the type itself may be in a type unit */
		if (referred(die, DW_AT_signature, &unit))
			return type_of_die(file, &unit, chain + 1);
		return struct_type(file, die, tag);
	case DW_TAG_pointer_type:
	case DW_TAG_reference_type:
	case DW_TAG_rvalue_reference_type:
		pointer.target = type_at_attribute(file, die, chain);
		return dtype_add(file->types, &pointer);
	case DW_TAG_array_type:
		return array_type(file, die, chain);
	case DW_TAG_subroutine_type:
		return dwarf_function_type(file, die, chain);
	case DW_TAG_base_type:
	case DW_TAG_enumeration_type:
		return base_type(file, die, tag);
	default:
		return 0;
	}
}

static uint32_t type_of_die(struct dwarf_file *file, Dwarf_Die *die, unsigned chain)
{
	uint64_t key = (uint64_t)(uintptr_t)die->addr;
	uint32_t *known = map_find(file->type_of_die, &key);

	if (known)
		return *known;
	if (chain > DWARF_MAX_CHAIN)
		return 0;

	uint32_t id = translate(file, die, chain);

	*(uint32_t *)map_put(file->type_of_die, &key, NULL) = id;
	return id;
}

/* the abstract instance has all parameters, a concrete clone may have lost some */
Dwarf_Die dwarf_proto_die(const struct dtype_ref *ref)
{
	Dwarf_Die at = dwarf_die_of(ref), origin;

	for (unsigned i = 0; i < DWARF_MAX_CHAIN; i++) {
		if (!referred(&at, DW_AT_abstract_origin, &origin) &&
		    !referred(&at, DW_AT_specification, &origin))
			break;
		if (dwarf_tag(&origin) != DW_TAG_subprogram)
			break;
		at = origin;
	}
	return at;
}

struct dwarf_proto dwarf_proto_of(struct dwarf_file *file, Dwarf_Die *die)
{
	struct dwarf_proto proto = { .name = "" };
	struct dtype_ref ref = ref_of(die);
	Dwarf_Die at = dwarf_proto_die(&ref);

	proto.is_noreturn = dwarf_hasattr_integrate(die, DW_AT_noreturn);
	proto.name = dwarf_any_name(&at);

	uint64_t key = (uint64_t)(uintptr_t)at.addr;
	uint32_t *known = map_find(file->type_of_die, &key);

	if (known) {
		proto.type = *known;
		return proto;
	}
	proto.type = dwarf_function_type(file, &at, 0);
	*(uint32_t *)map_put(file->type_of_die, &key, NULL) = proto.type;
	return proto;
}

const char *dwarf_type_name(struct dwarf_file *file, uint32_t id, struct str *scratch)
{
	const struct dtype *type = dtype_get(file->types, id);
	const char *path = NULL, *slash;

	if (type->name)
		return type->name;
	str_clear(scratch);
	if (type->kind != DTYPE_STRUCT && type->kind != DTYPE_UNION)
		return "";
	if (type->ref.die) {
		Dwarf_Die die = dwarf_die_of(&type->ref);

		path = dwarf_decl_file(&die);
	}
	slash = path ? strrchr(path, '/') : NULL;
	str_printf(scratch, "%s <anon:%s:%u>",
		   type->kind == DTYPE_UNION ? "union" : "struct",
		   slash  ? slash + 1
		   : path ? path
			  : "?",
		   type->line);
	return str_text(scratch);
}
