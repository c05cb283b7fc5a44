// SPDX-License-Identifier: Apache-2.0
/*
 * The initial-exec model: mov x@gottpoff(%rip),%rax; mov %fs:(%rax),... or the sum of that
 * slot and fs:0. The local-exec one: fs:0 plus a constant below zero, which counts from the
 * end of the module's block.
 */
#include "types/tls.h"

#include <elf.h>
#include <string.h>

#define MAX_SLOTS (1u << 20)

static int by_va(const void *a, const void *b)
{
	const struct relocated *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

static void add_slot(struct recover *recover, const Elf64_Rela *rela,
		     const uint8_t *symbols, size_t bytes)
{
	uint64_t number = ELF64_R_SYM(rela->r_info), value = (uint64_t)rela->r_addend;
	Elf64_Sym symbol;

	if (ELF64_R_TYPE(rela->r_info) != R_X86_64_TPOFF64 ||
	    recover->tls_slots.count >= MAX_SLOTS)
		return;
	if (number) {
		if (!symbols || number >= bytes / sizeof(symbol))
			return;
		memcpy(&symbol, symbols + number * sizeof(symbol), sizeof(symbol));
		if (symbol.st_shndx == SHN_UNDEF)
			return; /* another module's */
		value += symbol.st_value;
	}
	vec_push(&recover->tls_slots, ((struct relocated){ rela->r_offset, value }));
}

static const uint8_t *data_of(struct recover *recover, const struct elf_section *section,
			      size_t *ret_bytes)
{
	const uint8_t *data = NULL;
	struct err *err = elf_data(recover->main, section, &data, ret_bytes);

	if (!err)
		return data;
	err_free(err);
	return NULL;
}

void tls_slots(struct recover *recover)
{
	size_t count, bytes = 0, symbol_bytes = 0;
	const struct elf_section *sections = elf_sections(recover->main, &count);

	if (!recover->tls_bytes)
		return;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *data, *symbols = NULL;
		Elf64_Rela rela;

		if (sections[i].type != SHT_RELA || !(sections[i].flags & SHF_ALLOC))
			continue;
		data = data_of(recover, &sections[i], &bytes);
		for (size_t k = 0; k < count && sections[i].link; k++)
			if (sections[k].index == sections[i].link)
				symbols = data_of(recover, &sections[k], &symbol_bytes);
		for (size_t at = 0; data && at + sizeof(rela) <= bytes;
		     at += sizeof(rela)) {
			memcpy(&rela, data + at, sizeof(rela));
			add_slot(recover, &rela, symbols, symbol_bytes);
		}
	}
	if (recover->tls_slots.count)
		qsort(recover->tls_slots.data, recover->tls_slots.count,
		      sizeof(*recover->tls_slots.data), by_va);
}

static const struct flow_access *load_of(const struct facts *facts, uint32_t node)
{
	const struct flow *flow = facts->flow;

	if (node == FLOW_NONE || flow->nodes.data[node].kind != FLOW_LOAD)
		return NULL;
	return &flow->accesses.data[flow->nodes.data[node].link];
}

static bool is_thread_pointer(const struct facts *facts, uint32_t node)
{
	const struct flow_access *load = load_of(facts, node);

	return load && load->segment == INSN_FS && load->base.node == FLOW_NONE &&
	       load->index.node == FLOW_NONE && !load->disp;
}

/* What the GOT says, as an offset in the block. */
static bool slot_value(const struct facts *facts, uint32_t node, uint64_t *ret_offset)
{
	const struct flow_access *load = load_of(facts, node);
	struct recover *recover = facts->recover;
	struct relocated key = { 0 }, *found = NULL;

	if (!load || load->segment != INSN_FLAT || load->base.node != 0 ||
	    load->index.node != FLOW_NONE)
		return false;
	key.va = (uint64_t)load->base.delta + (uint64_t)load->disp;
	if (recover->tls_slots.count)
		found = bsearch(&key, recover->tls_slots.data, recover->tls_slots.count,
				sizeof(key), by_va);
	if (found)
		*ret_offset = found->value;
	return found != NULL;
}

bool tls_address(const struct facts *facts, struct flow_ref ref, bool has_segment,
		 uint64_t *ret_offset)
{
	const struct flow *flow = facts->flow;
	const struct flow_node *node;
	uint64_t offset;

	if (ref.node == FLOW_NONE || ref.node < 2 || !facts->recover->tls_bytes)
		return false;
	node = &flow->nodes.data[ref.node];
	if (has_segment) {
		if (!slot_value(facts, ref.node, &offset))
			return false;
	} else if (is_thread_pointer(facts, ref.node)) {
		if (ref.delta >= 0)
			return false; /* the thread's own block */
		offset = facts->recover->tls_bytes;
	} else if (node->kind == FLOW_SUM && node->term_count == 2) {
		uint32_t a = flow->terms.data[node->term].ref.node;
		uint32_t b = flow->terms.data[node->term + 1].ref.node;
		bool is_first = is_thread_pointer(facts, a);

		if ((!is_first && !is_thread_pointer(facts, b)) ||
		    !slot_value(facts, is_first ? b : a, &offset))
			return false;
	} else {
		return false;
	}
	*ret_offset = offset + (uint64_t)ref.delta;
	return true;
}
