// SPDX-License-Identifier: Apache-2.0
/*
 * Every arrow needs a pointer to a struct or union; every dot stays inside. Members of
 * anonymous members and of base classes are found as the compiler would.
 */
#include "bin/field.h"

#include <ctype.h>
#include <string.h>

struct finder {
	struct dwarf_file *file;
	struct dtypes *types;
};

static bool find_member(const struct finder *finder, uint32_t type, const char *name,
			size_t length, unsigned depth, uint64_t *offset,
			struct dtype_member *ret_member)
{
	const struct dtype *info;

	type = dtype_whole(finder->types, type);
	info = dtype_get(finder->types, type);
	if (depth > DTYPE_MAX_DEPTH || !dtype_is_aggregate(finder->types, type))
		return false;
	for (uint32_t i = 0; i < info->member_count; i++) {
		struct dtype_member member = info->members[i];

		member.type = dtype_member_type(finder->types, type, i);
		if (member.name && strlen(member.name) == length &&
		    !memcmp(member.name, name, length)) {
			*offset += member.offset;
			*ret_member = member;
			return true;
		}
		uint64_t inner = *offset + member.offset;

		if (!member.name && find_member(finder, member.type, name, length,
						depth + 1, &inner, ret_member)) {
			*offset = inner;
			return true;
		}
	}
	return false;
}

static const char *name_of(const struct finder *finder, uint32_t type,
			   struct str *scratch)
{
	return dwarf_type_name(finder->file, type, scratch);
}

/* One arrow: "name.sub" inside @type, which becomes the type of the last name. */
static struct err *walk(const struct finder *finder, const char **path, uint32_t *type,
			uint64_t *ret_offset)
{
	struct dtype_member member = { 0 };
	CLEANUP(str_fini) struct str scratch = { 0 };

	*ret_offset = 0;
	do {
		const char *name = *path;
		size_t length = 0;

		while (isalnum((unsigned char)name[length]) || name[length] == '_')
			length++;
		if (!length)
			return err_new(ERR_FORMAT, "a damaged field path");
		if (!find_member(finder, *type, name, length, 0, ret_offset, &member))
			return err_new(ERR_NOT_FOUND, "%s has no field '%.*s'",
				       name_of(finder, *type, &scratch), (int)length,
				       name);
		if (member.bits)
			return err_new(ERR_INVALID, "'%.*s' is a bit-field", (int)length,
				       name);
		*type = member.type;
		*path += length;
	} while (**path == '.' && *++*path);
	return NULL;
}

static bool is_signed(const struct dtype *type)
{
	return type->kind == DTYPE_BASE && type->name && !type->is_float &&
	       !strstr(type->name, "unsigned") && !strstr(type->name, "ool");
}

struct err *field_find(struct dwarf_file *file, uint32_t type, const char *path,
		       struct field_place *ret_place)
{
	struct finder finder = { file, dwarf_types(file) };
	struct field_place place = { .count = 0 };
	CLEANUP(str_fini) struct str scratch = { 0 };

	while (!strncmp(path, "->", 2)) {
		const struct dtype *pointer = dtype_get(finder.types, type);

		path += 2;
		if (place.count == FIELD_MAX_ARROWS)
			return err_new(ERR_FORMAT, "more than %d arrows",
				       FIELD_MAX_ARROWS);
		if (pointer->kind != DTYPE_POINTER)
			return err_new(ERR_NOT_FOUND, "%s is no pointer",
				       name_of(&finder, type, &scratch));
		type = dtype_target(finder.types, type);
		TRY(walk(&finder, &path, &type, &place.offsets[place.count++]));
	}
	const struct dtype *last = dtype_get(finder.types, type);

	if (*path || !place.count)
		return err_new(ERR_FORMAT, "a damaged field path");
	if (last->kind != DTYPE_BASE && last->kind != DTYPE_ENUM &&
	    last->kind != DTYPE_POINTER)
		return err_new(ERR_INVALID, "%s is no number or pointer",
			       name_of(&finder, type, &scratch));
	if (last->bytes != 1 && last->bytes != 2 && last->bytes != 4 && last->bytes != 8)
		return err_new(ERR_INVALID, "%s has %llu bytes",
			       name_of(&finder, type, &scratch),
			       (unsigned long long)last->bytes);
	place.bytes = (uint8_t)last->bytes;
	place.is_signed = is_signed(last);
	*ret_place = place;
	return NULL;
}

struct err *field_base(struct dwarf_file *file, const struct dwarf_function *function,
		       unsigned arg, uint32_t *ret_type)
{
	struct dtypes *types = dwarf_types(file);
	struct dwarf_proto proto = dwarf_proto(file, function);
	const struct dtype *type = dtype_get(types, proto.type);

	if (type->kind != DTYPE_FUNCTION)
		return err_new(ERR_NOT_FOUND, "the function has no prototype");
	if (arg > type->member_count)
		return err_new(ERR_NOT_FOUND, "the function has %u arguments",
			       type->member_count);
	*ret_type = arg ? type->params[arg - 1] : dtype_target(types, proto.type);
	return NULL;
}
