// SPDX-License-Identifier: Apache-2.0
/*
 * The bytes of a unit, form by form, with everything resolved that a linker changes:
 * offsets into string sections become the strings, offsets into lists the lists, code
 * addresses whatever the caller makes of them. What comes out is hashed at once. libdw
 * would do, at ten times the cost: this is read for every unit of a module to find the
 * few that changed.
 *
 * Lists keep their offsets from the unit's base address as they are; the caller adds
 * where the functions lie from there.
 */
#include "bin/dwarf_impl.h"

#include <string.h>

#include "bin/cursor.h"
#include "core/intern.h"

struct bytes {
	const uint8_t *data;
	size_t size;
};

enum {
	INFO,
	ABBREV,
	STR,
	LINE_STR,
	STR_OFFSETS,
	ADDR,
	LOCLISTS,
	RNGLISTS,
	LOC,
	RANGES,
	LINE,
	SECTIONS
};

static const char *const section_names[] = {
	[INFO] = ".debug_info",
	[ABBREV] = ".debug_abbrev",
	[STR] = ".debug_str",
	[LINE_STR] = ".debug_line_str",
	[STR_OFFSETS] = ".debug_str_offsets",
	[ADDR] = ".debug_addr",
	[LOCLISTS] = ".debug_loclists",
	[RNGLISTS] = ".debug_rnglists",
	[LOC] = ".debug_loc",
	[RANGES] = ".debug_ranges",
	[LINE] = ".debug_line",
};

struct attribute {
	uint32_t name, form;
	int64_t constant; /* DW_FORM_implicit_const */
};

struct abbrev {
	uint32_t tag, first, count;
	bool has_children;
};

struct digesting {
	struct dwarf_digest *digest;
	dwarf_place_fn place;
	void *ctx;
	struct bytes sections[SECTIONS];
	VEC(uint64_t) out;
	VEC(struct abbrev) abbrevs; /* by code - 1 */
	VEC(struct attribute) attributes;
	uint64_t begin, end; /* of the unit in .debug_info */
	uint64_t str_base, addr_base, loc_base, rng_base;
	uint64_t base; /* of lists; 0: they have addresses */
	unsigned version;
};

/* ---- reading */

static struct cursor at_offset(const struct digesting *d, unsigned section,
			       uint64_t offset)
{
	const struct bytes *bytes = &d->sections[section];

	if (offset > bytes->size)
		return (struct cursor){ .is_bad = true };
	return (struct cursor){ .at = bytes->data + offset,
				.end = bytes->data + bytes->size };
}

static void put(struct digesting *d, uint64_t value)
{
	vec_push(&d->out, value);
}

static void put_bytes(struct digesting *d, struct cursor *in, uint64_t size)
{
	if (size > (size_t)(in->end - in->at)) {
		in->is_bad = true;
		return;
	}
	put(d, hash_bytes(in->at, size, size));
	in->at += size;
}

static void put_string(struct digesting *d, struct cursor *in, unsigned section,
		       uint64_t offset)
{
	struct cursor text = at_offset(d, section, offset);
	size_t room = (size_t)(text.end - text.at);
	const uint8_t *end = text.is_bad || !room ? NULL : memchr(text.at, 0, room);

	if (end)
		put_bytes(d, &text, (uint64_t)(end - text.at));
	else
		in->is_bad = true;
}

static uint64_t indexed_address(struct digesting *d, struct cursor *in, uint64_t index)
{
	struct cursor at = at_offset(d, ADDR, d->addr_base);
	size_t room = at.is_bad ? 0 : (size_t)(at.end - at.at) / 8;

	if (index >= room) {
		in->is_bad = true;
		return 0;
	}
	at.at += index * 8;
	return cursor_fixed(&at, 8);
}

/* ---- addresses, expressions, lists */

static void put_code(struct digesting *d, uint64_t va)
{
	put(d, va ? d->place(d->ctx, va) : 0);
}

/* A DIE of .debug_info by its offset there: only the unit's own. */
static void put_die(struct digesting *d, struct cursor *in, uint64_t offset)
{
	if (offset < d->begin || offset >= d->end)
		in->is_bad = true;
	put(d, offset - d->begin);
}

static bool has_no_operands(uint8_t op)
{
	switch (op) {
	case DW_OP_deref:
	case DW_OP_dup ... DW_OP_over:
	case DW_OP_swap ... DW_OP_plus:
	case DW_OP_shl ... DW_OP_xor:
	case DW_OP_eq ... DW_OP_ne:
	case DW_OP_lit0 ... DW_OP_lit31:
	case DW_OP_reg0 ... DW_OP_reg31:
	case DW_OP_nop:
	case DW_OP_push_object_address:
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
	case DW_OP_call_frame_cfa:
	case DW_OP_stack_value:
	case DW_OP_GNU_uninit:
		return true;
	}
	return false;
}

static bool put_number(struct digesting *d, struct cursor *in, uint8_t op)
{
	switch (op) {
	case DW_OP_const1u:
	case DW_OP_const1s:
	case DW_OP_pick:
	case DW_OP_deref_size:
	case DW_OP_xderef_size:
		put(d, cursor_fixed(in, 1));
		return true;
	case DW_OP_const2u:
	case DW_OP_const2s:
	case DW_OP_bra:
	case DW_OP_skip:
	case DW_OP_call2:
		put(d, cursor_fixed(in, 2));
		return true;
	case DW_OP_const4u:
	case DW_OP_const4s:
	case DW_OP_call4:
	case DW_OP_GNU_parameter_ref:
		put(d, cursor_fixed(in, 4));
		return true;
	case DW_OP_const8u:
	case DW_OP_const8s:
		put(d, cursor_fixed(in, 8));
		return true;
	}
	return false;
}

static bool put_operands(struct digesting *d, struct cursor *in, uint8_t op)
{
	switch (op) {
	case DW_OP_addr:
		vec_push(&d->digest->data, cursor_fixed(in, 8));
		return true;
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
	case DW_OP_constx:
	case DW_OP_GNU_const_index:
		vec_push(&d->digest->data, indexed_address(d, in, cursor_uleb(in)));
		return true;
	case DW_OP_implicit_pointer:
	case DW_OP_GNU_implicit_pointer:
		put_die(d, in, cursor_fixed(in, 4));
		put(d, cursor_uleb(in));
		return true;
	case DW_OP_GNU_variable_value:
		put_die(d, in, cursor_fixed(in, 4));
		return true;
	case DW_OP_constu:
	case DW_OP_consts:
	case DW_OP_plus_uconst:
	case DW_OP_regx:
	case DW_OP_fbreg:
	case DW_OP_piece:
	case DW_OP_breg0 ... DW_OP_breg31:
	case DW_OP_convert:
	case DW_OP_GNU_convert:
	case DW_OP_reinterpret:
	case DW_OP_GNU_reinterpret:
		put(d, cursor_uleb(in));
		return true;
	case DW_OP_bregx:
	case DW_OP_bit_piece:
	case DW_OP_regval_type:
	case DW_OP_GNU_regval_type:
		put(d, cursor_uleb(in));
		put(d, cursor_uleb(in));
		return true;
	case DW_OP_deref_type:
	case DW_OP_GNU_deref_type:
		put(d, cursor_fixed(in, 1));
		put(d, cursor_uleb(in));
		return true;
	case DW_OP_const_type:
	case DW_OP_GNU_const_type:
		put(d, cursor_uleb(in));
		put_bytes(d, in, cursor_fixed(in, 1));
		return true;
	case DW_OP_implicit_value:
		put_bytes(d, in, cursor_uleb(in));
		return true;
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		put(d, cursor_uleb(in)); /* its operations follow like others */
		return true;
	}
	return put_number(d, in, op) || has_no_operands(op);
}

static void put_expression(struct digesting *d, struct cursor *in, uint64_t size)
{
	struct cursor ops = *in;

	if (size > (size_t)(in->end - in->at)) {
		in->is_bad = true;
		return;
	}
	in->at += size;
	ops.end = in->at;
	put(d, size);
	while (ops.at < ops.end && !ops.is_bad) {
		uint8_t op = *ops.at++;

		put(d, op);
		if (!put_operands(d, &ops, op))
			ops.is_bad = true;
	}
	in->is_bad |= ops.is_bad;
}

/* The entries of .debug_loclists and .debug_rnglists: what they have as first operands. */
enum shape {
	END,
	OFFSETS,
	START_END,
	START_LENGTH,
	INDEX,
	INDEX_INDEX,
	INDEX_LENGTH,
	BASE,
	DEFAULT,
	VIEWS,
	UNKNOWN
};

static enum shape shape_of(uint8_t kind, bool is_location)
{
	static const uint8_t ranges[] = { END,	   INDEX, INDEX_INDEX, INDEX_LENGTH,
					  OFFSETS, BASE,  START_END,   START_LENGTH };
	static const uint8_t places[] = { END,		INDEX,	   INDEX_INDEX,
					  INDEX_LENGTH, OFFSETS,   DEFAULT,
					  BASE,		START_END, START_LENGTH,
					  VIEWS };

	if (is_location)
		return kind < sizeof(places) ? places[kind] : UNKNOWN;
	return kind < sizeof(ranges) ? ranges[kind] : UNKNOWN;
}

static void put_pair(struct digesting *d, uint64_t base, uint64_t lo, uint64_t hi)
{
	if (base) {
		put(d, lo);
		put(d, hi);
	} else {
		put_code(d, lo);
		put_code(d, hi);
	}
}

static void put_list(struct digesting *d, struct cursor *in, bool is_location,
		     uint64_t offset)
{
	struct cursor list = at_offset(d, is_location ? LOCLISTS : RNGLISTS, offset);

	while (!list.is_bad) {
		uint8_t kind = (uint8_t)cursor_fixed(&list, 1);
		enum shape shape = shape_of(kind, is_location);

		put(d, kind);
		switch (shape) {
		case END:
			in->is_bad |= list.is_bad;
			return;
		case OFFSETS:
		case VIEWS:
			put(d, cursor_uleb(&list));
			put(d, cursor_uleb(&list));
			break;
		case START_END:
			put_code(d, cursor_fixed(&list, 8));
			put_code(d, cursor_fixed(&list, 8));
			break;
		case START_LENGTH:
			put_code(d, cursor_fixed(&list, 8));
			put(d, cursor_uleb(&list));
			break;
		case INDEX:
			put_code(d, indexed_address(d, &list, cursor_uleb(&list)));
			break;
		case INDEX_INDEX:
			put_code(d, indexed_address(d, &list, cursor_uleb(&list)));
			put_code(d, indexed_address(d, &list, cursor_uleb(&list)));
			break;
		case INDEX_LENGTH:
			put_code(d, indexed_address(d, &list, cursor_uleb(&list)));
			put(d, cursor_uleb(&list));
			break;
		case BASE:
			put_code(d, cursor_fixed(&list, 8));
			break;
		case DEFAULT:
			break;
		case UNKNOWN:
			list.is_bad = true;
			break;
		}
		if (is_location && shape != INDEX && shape != BASE && shape != VIEWS)
			put_expression(d, &list, cursor_uleb(&list));
	}
	in->is_bad = true;
}

/* DWARF 4: pairs of offsets from the base; ~0 sets another base; 0 0 ends. */
static void put_old_list(struct digesting *d, struct cursor *in, bool is_location,
			 uint64_t offset)
{
	struct cursor list = at_offset(d, is_location ? LOC : RANGES, offset);
	uint64_t base = d->base;

	while (!list.is_bad) {
		uint64_t lo = cursor_fixed(&list, 8), hi = cursor_fixed(&list, 8);

		if (lo == UINT64_MAX) {
			put(d, lo);
			put_code(d, hi);
			base = hi;
			continue;
		}
		put_pair(d, base, lo, hi);
		if (!lo && !hi)
			break;
		if (is_location)
			put_expression(d, &list, cursor_fixed(&list, 2));
	}
	in->is_bad |= list.is_bad;
}

static void put_offset(struct digesting *d, struct cursor *in, uint32_t name,
		       uint64_t offset)
{
	bool is_location = name == DW_AT_location || name == DW_AT_frame_base ||
			   name == DW_AT_data_member_location ||
			   name == DW_AT_static_link || name == DW_AT_return_addr ||
			   name == DW_AT_use_location || name == DW_AT_string_length ||
			   name == DW_AT_vtable_elem_location;

	/* The others lead to lines, macros, views and the bases of indices. */
	if (!is_location && name != DW_AT_ranges && name != DW_AT_start_scope)
		return;
	if (d->version >= 5)
		put_list(d, in, is_location, offset);
	else
		put_old_list(d, in, is_location, offset);
}

static void put_indexed_list(struct digesting *d, struct cursor *in, bool is_location,
			     uint64_t index)
{
	uint64_t base = is_location ? d->loc_base : d->rng_base;
	struct cursor at = at_offset(d, is_location ? LOCLISTS : RNGLISTS, base);
	size_t room = at.is_bad ? 0 : (size_t)(at.end - at.at) / 4;

	if (index >= room) {
		in->is_bad = true;
		return;
	}
	at.at += index * 4;
	put_list(d, in, is_location, base + cursor_fixed(&at, 4));
}

static void put_indexed_string(struct digesting *d, struct cursor *in, uint64_t index)
{
	struct cursor at = at_offset(d, STR_OFFSETS, d->str_base);
	size_t room = at.is_bad ? 0 : (size_t)(at.end - at.at) / 4;

	if (index >= room) {
		in->is_bad = true;
		return;
	}
	at.at += index * 4;
	put_string(d, in, STR, cursor_fixed(&at, 4));
}

/* ---- attributes */

static bool put_text(struct digesting *d, struct cursor *in, uint32_t form)
{
	switch (form) {
	case DW_FORM_string: {
		const uint8_t *end = memchr(in->at, 0, (size_t)(in->end - in->at));

		put_bytes(d, in, end ? (uint64_t)(end - in->at) + 1 : UINT64_MAX);
		return true;
	}
	case DW_FORM_strp:
		put_string(d, in, STR, cursor_fixed(in, 4));
		return true;
	case DW_FORM_line_strp:
		put_string(d, in, LINE_STR, cursor_fixed(in, 4));
		return true;
	case DW_FORM_strx:
	case DW_FORM_GNU_str_index:
		put_indexed_string(d, in, cursor_uleb(in));
		return true;
	case DW_FORM_strx1 ... DW_FORM_strx4:
		put_indexed_string(d, in, cursor_fixed(in, form - DW_FORM_strx1 + 1));
		return true;
	}
	return false;
}

static void put_value(struct digesting *d, struct cursor *in,
		      const struct attribute *attribute, uint32_t form)
{
	switch (form) {
	case DW_FORM_addr:
		put_code(d, cursor_fixed(in, 8));
		break;
	case DW_FORM_addrx:
	case DW_FORM_GNU_addr_index:
		put_code(d, indexed_address(d, in, cursor_uleb(in)));
		break;
	case DW_FORM_addrx1 ... DW_FORM_addrx4:
		put_code(d, indexed_address(d, in,
					    cursor_fixed(in, form - DW_FORM_addrx1 + 1)));
		break;
	case DW_FORM_data1:
	case DW_FORM_ref1:
	case DW_FORM_flag:
		put(d, cursor_fixed(in, 1));
		break;
	case DW_FORM_data2:
	case DW_FORM_ref2:
		put(d, cursor_fixed(in, 2));
		break;
	case DW_FORM_data4:
	case DW_FORM_ref4:
		put(d, cursor_fixed(in, 4));
		break;
	case DW_FORM_data8:
	case DW_FORM_ref8:
	case DW_FORM_ref_sig8:
		put(d, cursor_fixed(in, 8));
		break;
	case DW_FORM_data16:
		put(d, cursor_fixed(in, 8));
		put(d, cursor_fixed(in, 8));
		break;
	case DW_FORM_sdata:
	case DW_FORM_udata:
	case DW_FORM_ref_udata:
		put(d, cursor_uleb(in));
		break;
	case DW_FORM_flag_present:
		break;
	case DW_FORM_implicit_const:
		put(d, (uint64_t)attribute->constant);
		break;
	case DW_FORM_sec_offset:
		put_offset(d, in, attribute->name, cursor_fixed(in, 4));
		break;
	case DW_FORM_loclistx:
		put_indexed_list(d, in, true, cursor_uleb(in));
		break;
	case DW_FORM_rnglistx:
		put_indexed_list(d, in, false, cursor_uleb(in));
		break;
	case DW_FORM_exprloc:
		put_expression(d, in, cursor_uleb(in));
		break;
	case DW_FORM_block1:
		put_bytes(d, in, cursor_fixed(in, 1));
		break;
	case DW_FORM_block2:
		put_bytes(d, in, cursor_fixed(in, 2));
		break;
	case DW_FORM_block4:
		put_bytes(d, in, cursor_fixed(in, 4));
		break;
	case DW_FORM_block:
		put_bytes(d, in, cursor_uleb(in));
		break;
	case DW_FORM_ref_addr:
		put_die(d, in, cursor_fixed(in, 4));
		break;
	default: /* a string; or in a dwz file, or one that nobody emits */
		in->is_bad |= !put_text(d, in, form);
	}
}

static void put_dies(struct digesting *d, struct cursor *in)
{
	while (in->at < in->end && !in->is_bad) {
		uint64_t code = cursor_uleb(in);

		put(d, code);
		if (!code)
			continue;
		if (code > d->abbrevs.count || !d->abbrevs.data[code - 1].tag) {
			in->is_bad = true;
			return;
		}

		const struct abbrev *abbrev = &d->abbrevs.data[code - 1];

		for (uint32_t i = 0; i < abbrev->count && !in->is_bad; i++) {
			const struct attribute *attribute =
				&d->attributes.data[abbrev->first + i];

			put_value(d, in, attribute, attribute->form);
		}
	}
}

/* ---- abbreviations, headers */

#define MAX_ABBREVS (1u << 20)

static bool read_abbrevs(struct digesting *d, uint64_t offset)
{
	struct cursor in = at_offset(d, ABBREV, offset);
	const uint8_t *begin = in.at;

	while (!in.is_bad) {
		uint64_t code = cursor_uleb(&in);
		struct abbrev abbrev = { .first = (uint32_t)d->attributes.count };

		if (!code)
			break;
		if (code > MAX_ABBREVS || d->attributes.count > MAX_ABBREVS)
			return false;
		abbrev.tag = (uint32_t)cursor_uleb(&in);
		abbrev.has_children = cursor_fixed(&in, 1);
		while (!in.is_bad) {
			struct attribute attribute = { .name = (uint32_t)cursor_uleb(&in),
						       .form = (uint32_t)cursor_uleb(
							       &in) };

			if (attribute.form == DW_FORM_implicit_const)
				attribute.constant = (int64_t)cursor_uleb(&in);
			if (!attribute.name && !attribute.form)
				break;
			vec_push(&d->attributes, attribute);
			abbrev.count++;
		}
		while (d->abbrevs.count < code)
			vec_push(&d->abbrevs, ((struct abbrev){ .tag = 0 }));
		d->abbrevs.data[code - 1] = abbrev;
	}
	if (in.is_bad)
		return false;
	put(d, hash_bytes(begin, (size_t)(in.at - begin), 0));
	return true;
}

/* Version 5: tables of directories and files, each with a list of its columns. */
static void put_line_table(struct digesting *d, struct cursor *in)
{
	struct attribute columns[16];
	uint64_t count = cursor_fixed(in, 1), entries;

	if (count > 16) {
		in->is_bad = true;
		return;
	}
	for (uint64_t i = 0; i < count; i++)
		columns[i] = (struct attribute){ (uint32_t)cursor_uleb(in),
						 (uint32_t)cursor_uleb(in), 0 };
	entries = cursor_uleb(in);
	put(d, entries);
	for (uint64_t e = 0; count && e < entries && !in->is_bad; e++)
		for (uint64_t i = 0; i < count; i++)
			put_value(d, in, &columns[i], columns[i].form);
}

static bool put_line_files(struct digesting *d, uint64_t offset)
{
	struct cursor in = at_offset(d, LINE, offset);
	uint64_t length = cursor_fixed(&in, 4), header;
	unsigned version = (unsigned)cursor_fixed(&in, 2), opcodes;

	if (in.is_bad || length >= 0xfffffff0 || version < 2 || version > 5)
		return false;
	if (version >= 5)
		cursor_fixed(&in, 2);
	header = cursor_fixed(&in, 4);
	if (header > (size_t)(in.end - in.at))
		return false;
	in.end = in.at + header;
	cursor_fixed(&in, version >= 4 ? 5 : 4);
	opcodes = (unsigned)cursor_fixed(&in, 1);
	for (unsigned i = 1; i < opcodes; i++)
		cursor_fixed(&in, 1);
	if (version < 5) {
		put_bytes(d, &in, (uint64_t)(in.end - in.at));
	} else {
		put_line_table(d, &in);
		put_line_table(d, &in);
	}
	return !in.is_bad;
}

static uint64_t offset_attribute(Dwarf_Die *die, unsigned name, uint64_t otherwise)
{
	Dwarf_Attribute attr;
	Dwarf_Word value;

	if (!dwarf_attr(die, name, &attr) || dwarf_formudata(&attr, &value))
		return otherwise;
	return value;
}

static bool open_sections(struct digesting *d, const struct elf_file *holder)
{
	for (unsigned i = 0; i < SECTIONS; i++) {
		const struct elf_section *section = elf_section(holder, section_names[i]);
		struct err *err;

		if (!section)
			continue;
		err = elf_data(holder, section, &d->sections[i].data,
			       &d->sections[i].size);
		if (err) {
			err_free(err);
			return false;
		}
	}
	return d->sections[INFO].data && d->sections[ABBREV].data;
}

static bool digest_unit(struct digesting *d, Dwarf_Die *top)
{
	uint64_t offset = dwarf_dieoffset(top) - dwarf_cuoffset(top), length, abbrevs;
	struct cursor in = at_offset(d, INFO, offset);
	uint64_t lines = offset_attribute(top, DW_AT_stmt_list, UINT64_MAX);
	Dwarf_Addr base;

	length = cursor_fixed(&in, 4);
	if (in.is_bad || length >= 0xfffffff0 || length > (size_t)(in.end - in.at))
		return false;
	in.end = in.at + length;
	d->begin = offset;
	d->end = offset + 4 + length;
	d->version = (unsigned)cursor_fixed(&in, 2);
	if (d->version == 4) {
		abbrevs = cursor_fixed(&in, 4);
		cursor_fixed(&in, 1);
	} else if (d->version == 5 && cursor_fixed(&in, 1) == DW_UT_compile) {
		cursor_fixed(&in, 1);
		abbrevs = cursor_fixed(&in, 4);
	} else {
		return false;
	}
	if (!dwarf_lowpc(top, &base))
		d->base = base;
	d->str_base = offset_attribute(top, DW_AT_str_offsets_base, 8);
	d->addr_base = offset_attribute(top, DW_AT_addr_base, 8);
	d->loc_base = offset_attribute(top, DW_AT_loclists_base, 12);
	d->rng_base = offset_attribute(top, DW_AT_rnglists_base, 12);
	put(d, d->version);
	if (!read_abbrevs(d, abbrevs) ||
	    (lines != UINT64_MAX && !put_line_files(d, lines)))
		return false;
	put_dies(d, &in);
	return !in.is_bad;
}

bool dwarf_digest(struct dwarf_file *file, uint32_t unit, dwarf_place_fn place, void *ctx,
		  struct dwarf_digest *digest)
{
	struct digesting d = { .digest = digest, .place = place, .ctx = ctx };
	Dwarf_Die top;
	bool is_done;

	if (!unit || unit >= file->units.count)
		return false;
	top = dwarf_die_of(&file->units.data[unit]);
	if (file->alt && dwarf_cu_getdwarf(top.cu) == file->alt)
		return false;
	is_done = open_sections(&d, file->holder) && digest_unit(&d, &top);
	if (is_done)
		digest->hash =
			hash_bytes(d.out.data, d.out.count * sizeof(*d.out.data), 0);
	vec_fini(&d.out);
	vec_fini(&d.abbrevs);
	vec_fini(&d.attributes);
	return is_done;
}

uint64_t dwarf_unit_base(struct dwarf_file *file, uint32_t unit)
{
	Dwarf_Die top;
	Dwarf_Addr base;

	if (!unit || unit >= file->units.count)
		return 0;
	top = dwarf_die_of(&file->units.data[unit]);
	return dwarf_lowpc(&top, &base) ? 0 : base;
}
