// SPDX-License-Identifier: Apache-2.0
/*
 * Opening a module, reading constants out of it, and finding out who is called.
 */
#include "types/answer.h"
#include "types/facts.h"
#include "types/keep.h"
#include "types/tls.h"

#include <elf.h>
#include <string.h>

#include "core/mem.h"

#define MAX_RELOCATED (16u << 20)

static int by_va(const void *a, const void *b)
{
	const struct relocated *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

/* Relative relocations: in a PIE the file itself has zeros where pointers will be. */
static void read_relocations(struct recover *recover)
{
	size_t count, bytes;
	const struct elf_section *sections = elf_sections(recover->main, &count);
	const uint8_t *data;
	bool is_sorted = true;

	for (size_t i = 0; i < count; i++) {
		struct err *err;

		if (sections[i].type != SHT_RELA || !(sections[i].flags & SHF_ALLOC))
			continue;
		err = elf_data(recover->main, &sections[i], &data, &bytes);
		if (err) {
			err_free(err);
			continue;
		}
		for (size_t at = 0; at + sizeof(Elf64_Rela) <= bytes &&
				    recover->relocated.count < MAX_RELOCATED;
		     at += sizeof(Elf64_Rela)) {
			Elf64_Rela rela;

			memcpy(&rela, data + at, sizeof(rela));
			if (ELF64_R_TYPE(rela.r_info) != R_X86_64_RELATIVE)
				continue;
			if (recover->relocated.count &&
			    recover->relocated.data[recover->relocated.count - 1].va >
				    rela.r_offset)
				is_sorted = false;
			vec_push(&recover->relocated,
				 ((struct relocated){ rela.r_offset,
						      (uint64_t)rela.r_addend }));
		}
	}
	if (!is_sorted)
		qsort(recover->relocated.data, recover->relocated.count,
		      sizeof(*recover->relocated.data), by_va);
}

bool module_read(void *ctx, uint64_t va, unsigned bytes, uint64_t *ret_value)
{
	struct recover *recover = ctx;
	const struct relocated key = { .va = va }, *found = NULL;
	size_t room;
	const uint8_t *data;
	uint64_t value = 0;

	if (va - recover->read_last > 8) /* else the next entry of a table */
		dwarf_note(recover->dwarf, va);
	recover->read_last = va;
	if (bytes == 8 && recover->relocated.count)
		found = bsearch(&key, recover->relocated.data, recover->relocated.count,
				sizeof(key), by_va);
	if (found) {
		*ret_value = found->value;
		return true;
	}
	data = elf_bytes_at(recover->main, va, &room);
	if (!data || room < bytes || bytes > sizeof(value))
		return false;
	memcpy(&value, data, bytes);
	*ret_value = value;
	return true;
}

/* Clones that the compiler changed the parameters of bear these in their names. */
bool module_has_own_convention(const char *name)
{
	return strstr(name, ".isra") || strstr(name, ".constprop") ||
	       strstr(name, ".part") || strstr(name, ".cold");
}

bool module_callee(struct recover *recover, const struct insn *insn,
		   struct dwarf_proto *ret_proto)
{
	const struct dwarf_function *function;
	const struct elf_function *symbol;
	char name[256];

	if (!insn->target || !recover->dwarf)
		return false;
	symbol =
		recover->symbols ? elf_function_at(recover->symbols, insn->target) : NULL;
	function = dwarf_function_by_va(recover->dwarf, insn->target);
	if (function) {
		*ret_proto = dwarf_proto(recover->dwarf, function);
		ret_proto->is_clone = symbol && symbol->va == insn->target &&
				      module_has_own_convention(symbol->name);
		return true;
	}
	if (!symbol || symbol->va != insn->target)
		return false;

	size_t length = strcspn(symbol->name, "@");

	if (!length || length >= sizeof(name))
		return false;
	memcpy(name, symbol->name, length);
	name[length] = '\0';
	return dwarf_proto_named(recover->dwarf, name, ret_proto);
}

bool module_is_writable(const struct recover *recover, uint64_t va)
{
	size_t count;
	const struct elf_segment *segments = elf_segments(recover->main, &count);

	dwarf_note(recover->dwarf, va);
	for (size_t i = 0; i < count; i++)
		if (segments[i].kind == ELF_LOAD && va >= segments[i].va &&
		    va - segments[i].va < segments[i].mem_bytes)
			return segments[i].can_write;
	return false;
}

struct unit *module_unit(struct recover *recover, uint32_t number)
{
	if (!recover->unit || recover->unit->number != number)
		module_enter(recover, number);
	return recover->unit;
}

void module_enter(struct recover *recover, uint32_t number)
{
	code_clear(&recover->code);
	unit_free(recover->unit);
	map_clear(recover->clobbers);
	recover->unit = unit_new(number);
	recover->types = dwarf_enter(recover->dwarf);
}

void module_leave(struct recover *recover)
{
	if (!recover->unit)
		return;
	code_clear(&recover->code);
	unit_free(recover->unit);
	recover->unit = NULL;
	recover->types = dwarf_enter(recover->dwarf);
}

bool module_is_frame_access(struct recover *recover, uint64_t va)
{
	const struct insn_abi *abi = insn_abi(recover->decoder);
	size_t at = code_find(&recover->code, va), room;
	const struct insn *insn = NULL;
	unsigned cfa_reg;
	int64_t cfa_off;
	struct insn decoded;

	if (at != SIZE_MAX) {
		insn = &recover->code.insns.data[at];
	} else {
		const uint8_t *bytes = elf_bytes_at(recover->main, va, &room);

		if (!bytes || !insn_decode(recover->decoder, bytes, room, va, &decoded))
			return false;
		insn = &decoded;
	}
	if (!insn->mem_count || insn->mems[0].segment != INSN_FLAT)
		return false;
	if (insn->mems[0].base == abi->stack)
		return true;
	return insn->mems[0].base == abi->frame &&
	       frame_cfa_at(recover->frame, va, &cfa_reg, &cfa_off) &&
	       cfa_reg == abi->frame;
}

static struct err *open_files(struct recover *recover, const struct recover_files *files)
{
	TRY(elf_open(files->main_fd, &recover->main));
	if (files->debug_fd >= 0)
		TRY(err_wrap(elf_open(files->debug_fd, &recover->debug), "debug file"));
	if (files->alt_fd >= 0)
		TRY(err_wrap(elf_open(files->alt_fd, &recover->alt), "dwz file"));
	return NULL;
}

/* The block ends at the thread pointer; its size is a multiple of its alignment. */
static uint64_t tls_bytes_of(const struct elf_segment *segment)
{
	uint64_t align = segment->align ? segment->align : 1;

	if (align & (align - 1) || segment->mem_bytes > UINT64_MAX - align)
		return segment->mem_bytes;
	return (segment->mem_bytes + align - 1) & ~(align - 1);
}

static void find_tls(struct recover *recover)
{
	size_t count;
	const struct elf_segment *segments = elf_segments(recover->main, &count);

	for (size_t i = 0; i < count; i++)
		if (segments[i].kind == ELF_TLS)
			recover->tls_bytes = tls_bytes_of(&segments[i]);
}

struct err *recover_open(const struct recover_files *files,
			 const struct recover_options *options,
			 struct recover **ret_recover)
{
	CLEANUP(recover_close) struct recover *recover = mem_alloc(sizeof(*recover));
	struct err *err;

	recover->arena = arena_new();
	recover->fields = map_new(sizeof(uint64_t), sizeof(struct fact_field *));
	recover->clobbers = map_new(sizeof(uint64_t), sizeof(uint64_t));
	recover->results = map_new(sizeof(uint32_t), sizeof(struct unit_result *));
	if (options)
		recover->options = *options;
	TRY(open_files(recover, files));
	TRY(insn_decoder_open(elf_machine(recover->main), &recover->decoder));
	TRY(frame_open(recover->main, recover->debug, &recover->frame));
	TRY(elf_functions_new(recover->main, recover->debug, &recover->symbols));
	recover->kernel =
		kernel_code_new(recover->main, recover->symbols, recover->decoder);
	read_relocations(recover);
	find_tls(recover);
	tls_slots(recover);
	err = dwarf_open(recover->main, recover->debug, recover->alt, &recover->dwarf);
	if (err && err->code != ERR_NOT_FOUND)
		return err;
	err_free(err);
	if (recover->dwarf)
		recover->types = dwarf_types(recover->dwarf);
	*ret_recover = take(recover);
	return NULL;
}

void recover_close(struct recover *recover)
{
	if (!recover)
		return;
	keep_free(recover->keep);
	facts_free(recover->facts);
	unit_free(recover->unit);
	answer_forget_all(recover);
	map_free(recover->results);
	free(recover->by_unit);
	free(recover->ordinals);
	code_fini(&recover->code);
	dwarf_close(recover->dwarf);
	frame_close(recover->frame);
	kernel_code_free(recover->kernel);
	elf_functions_free(recover->symbols);
	insn_decoder_close(recover->decoder);
	elf_close(recover->alt);
	elf_close(recover->debug);
	elf_close(recover->main);
	vec_fini(&recover->relocated);
	vec_fini(&recover->tls_slots);
	map_free(recover->clobbers);
	map_free(recover->fields);
	arena_free(recover->arena);
	str_fini(&recover->path);
	str_fini(&recover->name);
	free(recover);
}
