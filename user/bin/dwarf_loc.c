// SPDX-License-Identifier: Apache-2.0
/*
 * Location expressions. Only the forms that a compiler emits for variables in
 * registers, in memory and in pieces of both are understood; anything else makes that
 * piece unknown, never wrong.
 */
#include "bin/dwarf_impl.h"

#include "bin/insn.h"

#define MAX_OPS	   256
#define MAX_OFFSET (1ll << 32) /* from a register or the frame */

enum state { NOTHING, PLACE, CONSTANT, UNKNOWN };

struct machine {
	enum state state;
	struct dwarf_place place;
	uint64_t constant;
	uint32_t done; /* bytes of the pieces so far */
	size_t count;
	struct dwarf_place *places;
};

static void set(struct machine *m, uint8_t where, uint64_t reg, int64_t offset)
{
	if (m->state != NOTHING || reg >= INSN_REGS) {
		m->state = UNKNOWN;
		return;
	}
	m->state = PLACE;
	m->place = (struct dwarf_place){ .where = where,
					 .reg = (uint8_t)reg,
					 .offset = offset };
}

static void emit(struct machine *m, uint32_t bytes)
{
	bool is_address = m->place.where == DWARF_AT_ADDRESS ||
			  m->place.where == DWARF_IS_ADDRESS ||
			  m->place.where == DWARF_IN_TLS;
	bool is_sane = is_address ||
		       (m->place.offset < MAX_OFFSET && m->place.offset > -MAX_OFFSET);

	if (m->state == PLACE && is_sane && m->count < DWARF_MAX_PIECES) {
		m->place.piece_offset = m->done;
		m->place.piece_bytes = bytes;
		m->places[m->count++] = m->place;
	}
	m->done = m->done > UINT32_MAX / 2 ? m->done : m->done + bytes;
	m->state = NOTHING;
}

static void make_value(struct machine *m)
{
	static const uint8_t values[] = {
		[DWARF_AT_REGISTER] = DWARF_IS_SUM,
		[DWARF_AT_CFA] = DWARF_IS_CFA,
		[DWARF_AT_ADDRESS] = DWARF_IS_ADDRESS,
		[DWARF_IS_ENTRY] = DWARF_IS_ENTRY,
	};

	if (m->state == PLACE && m->place.where < sizeof(values) &&
	    values[m->place.where])
		m->place.where = values[m->place.where];
	else
		m->state = UNKNOWN;
}

static void add(struct machine *m, uint64_t constant)
{
	bool is_sum =
		m->place.where == DWARF_AT_REGISTER || m->place.where == DWARF_AT_CFA ||
		m->place.where == DWARF_AT_ADDRESS || m->place.where == DWARF_IS_ENTRY;

	if (m->state == PLACE && is_sum)
		m->place.offset = (int64_t)((uint64_t)m->place.offset + constant);
	else
		m->state = UNKNOWN;
}

/* DW_OP_entry_value: only of a plain register. */
static void set_entry(struct machine *m, Dwarf_Attribute *attr, const Dwarf_Op *op)
{
	Dwarf_Attribute inner;
	Dwarf_Op *ops;
	size_t count;

	if (dwarf_getlocation_attr(attr, op, &inner) ||
	    dwarf_getlocation(&inner, &ops, &count) || count != 1 ||
	    ops[0].atom < DW_OP_reg0 || ops[0].atom > DW_OP_reg31) {
		m->state = UNKNOWN;
		return;
	}
	set(m, DWARF_IS_ENTRY, ops[0].atom - DW_OP_reg0, 0);
}

static void set_indexed(struct machine *m, Dwarf_Attribute *attr, const Dwarf_Op *op)
{
	Dwarf_Attribute inner;
	Dwarf_Addr va;

	if (dwarf_getlocation_attr(attr, op, &inner) || dwarf_formaddr(&inner, &va)) {
		m->state = UNKNOWN;
		return;
	}
	m->constant = va;
	if (op->atom == DW_OP_addrx || op->atom == DW_OP_GNU_addr_index)
		set(m, DWARF_AT_ADDRESS, 0, (int64_t)va);
	else
		m->state = CONSTANT;
}

static void set_frame(struct machine *m, const struct dwarf_place *frame, int64_t offset)
{
	if (!frame || (frame->where != DWARF_AT_CFA && frame->where != DWARF_AT_REGISTER))
		m->state = UNKNOWN;
	else
		set(m, frame->where, frame->reg,
		    (int64_t)((uint64_t)frame->offset + (uint64_t)offset));
}

static void set_constant(struct machine *m, uint64_t constant)
{
	m->state = m->state == NOTHING ? CONSTANT : UNKNOWN;
	m->constant = constant;
}

static void step(struct machine *m, Dwarf_Attribute *attr, const Dwarf_Op *op,
		 const struct dwarf_place *frame)
{
	switch (op->atom) {
	case DW_OP_reg0 ... DW_OP_reg31:
		set(m, DWARF_IN_REGISTER, op->atom - DW_OP_reg0, 0);
		break;
	case DW_OP_regx:
		set(m, DWARF_IN_REGISTER, op->number, 0);
		break;
	case DW_OP_breg0 ... DW_OP_breg31:
		set(m, DWARF_AT_REGISTER, op->atom - DW_OP_breg0, (int64_t)op->number);
		break;
	case DW_OP_bregx:
		set(m, DWARF_AT_REGISTER, op->number, (int64_t)op->number2);
		break;
	case DW_OP_fbreg:
		set_frame(m, frame, (int64_t)op->number);
		break;
	case DW_OP_call_frame_cfa:
		set(m, DWARF_AT_CFA, 0, 0);
		break;
	case DW_OP_addr:
		set(m, DWARF_AT_ADDRESS, 0, (int64_t)op->number);
		m->constant = op->number;
		break;
	case DW_OP_addrx:
	case DW_OP_GNU_addr_index:
	case DW_OP_constx:
	case DW_OP_GNU_const_index:
		set_indexed(m, attr, op);
		break;
	case DW_OP_entry_value:
	case DW_OP_GNU_entry_value:
		set_entry(m, attr, op);
		break;
	case DW_OP_plus_uconst:
		add(m, op->number);
		break;
	case DW_OP_stack_value:
		make_value(m);
		break;
	case DW_OP_const1u ... DW_OP_consts:
		set_constant(m, op->number);
		break;
	case DW_OP_form_tls_address:
	case DW_OP_GNU_push_tls_address:
		if (m->state != CONSTANT &&
		    !(m->state == PLACE && m->place.where == DWARF_AT_ADDRESS)) {
			m->state = UNKNOWN;
			break;
		}
		m->state = NOTHING;
		set(m, DWARF_IN_TLS, 0, (int64_t)m->constant);
		break;
	case DW_OP_piece:
		emit(m, op->number > UINT32_MAX / 2 ? 0 : (uint32_t)op->number);
		break;
	default:
		m->state = UNKNOWN;
	}
}

size_t dwarf_places(Dwarf_Attribute *attr, const Dwarf_Op *ops, size_t count,
		    const struct dwarf_place *frame, struct dwarf_place *places)
{
	struct machine m = { .places = places };

	if (count > MAX_OPS)
		return 0;
	for (size_t i = 0; i < count; i++)
		step(&m, attr, &ops[i], frame);
	if (m.state == PLACE && !m.done)
		emit(&m, 0);
	return m.count;
}
