// SPDX-License-Identifier: Apache-2.0
/*
 * Thunks are known by name; sites come from the tables that the kernel itself patches
 * by: __bug_table (12 bytes: where, file, line, flags; bit 0 is a warning) and
 * __jump_table (16 bytes: code, target, key). Their places are relative to the field
 * that holds them. Alternatives stay as assembled, but for the jump that
 * static_cpu_has() makes through .altinstr_aux: test, jump to yes, jump to no.
 * Not handled: __jump_table of kernels before 4.19 with absolute addresses.
 */
#include "types/kernel.h"

#include <elf.h>
#include <string.h>

#include "core/mem.h"
#include "core/vec.h"

#define MAX_SITES     (1u << 20)
#define BUG_BYTES     12
#define BUG_FLAGS_AT  10
#define BUG_WARNING   1
#define JUMP_BYTES    16
#define JUMP_TO_AT    4
#define AUX_MAX_INSNS 4
#define INSN_LONGEST  15

enum site_kind { SITE_WARNING, SITE_KEY, SITE_NOTHING, SITE_RETURN, SITE_INDIRECT };

/* A place in the code, or where a thunk begins. */
struct site {
	uint64_t va, target;
	uint8_t kind, reg;
};

struct sites {
	struct site *data;
	size_t count, room;
};

struct kernel {
	const struct elf_file *file;
	struct insn_decoder *decoder;
	uint64_t aux_lo, aux_hi; /* .altinstr_aux */
	struct sites places, thunks;
};

static int by_va(const void *a, const void *b)
{
	const struct site *x = a, *y = b;

	return x->va < y->va ? -1 : x->va > y->va;
}

static const struct site *find(const struct sites *sites, uint64_t va)
{
	const struct site key = { .va = va };

	if (!sites->count)
		return NULL;
	return bsearch(&key, sites->data, sites->count, sizeof(key), by_va);
}

/* ---- thunks */

static uint8_t register_named(const char *name)
{
	static const char *const names[] = { "rax", "rdx", "rcx", "rbx", "rsi", "rdi",
					     "rbp", "rsp", "r8",  "r9",	 "r10", "r11",
					     "r12", "r13", "r14", "r15" };

	/* the thunks of all registers in a row, rax first */
	if (!strcmp(name, "array"))
		return 0;
	for (uint8_t i = 0; i < sizeof(names) / sizeof(*names); i++)
		if (!strcmp(name, names[i]))
			return i;
	return INSN_REG_NONE;
}

static bool ends_with(const char *text, const char *end)
{
	size_t length = strlen(text), tail = strlen(end);

	return length >= tail && !strcmp(text + length - tail, end);
}

static void add_thunk(struct kernel *kernel, const struct elf_function *function)
{
	static const char indirect[] = "__x86_indirect_";
	struct site site = { .va = function->va, .reg = INSN_REG_NONE };

	if (!strcmp(function->name, "__fentry__") || !strcmp(function->name, "mcount")) {
		site.kind = SITE_NOTHING;
	} else if (ends_with(function->name, "_return_thunk")) {
		site.kind = SITE_RETURN;
	} else if (!strncmp(function->name, indirect, sizeof(indirect) - 1)) {
		const char *name = strstr(function->name, "thunk_");

		site.kind = SITE_INDIRECT;
		site.reg = name ? register_named(name + strlen("thunk_")) : INSN_REG_NONE;
		if (site.reg == INSN_REG_NONE)
			return;
	} else {
		return;
	}
	vec_push(&kernel->thunks, site);
}

/* ---- tables */

struct table {
	const char *start, *stop;
	uint64_t lo, hi;
};

/* Tables may lie inside a larger section: symbols of the linker script bound them. */
static void find_tables(const struct elf_file *file, struct table *tables, size_t count)
{
	size_t section_count, bytes, name_bytes;
	const struct elf_section *sections = elf_sections(file, &section_count);
	const struct elf_section *symtab = elf_section(file, ".symtab"), *strings = NULL;
	const uint8_t *data, *names;
	struct err *err;

	for (size_t i = 0; symtab && i < section_count; i++)
		if (sections[i].index == symtab->link)
			strings = &sections[i];
	if (!strings)
		return;
	err = elf_data(file, symtab, &data, &bytes);
	if (!err)
		err = elf_data(file, strings, &names, &name_bytes);
	if (err) {
		err_free(err);
		return;
	}
	for (size_t at = 0; at + sizeof(Elf64_Sym) <= bytes; at += sizeof(Elf64_Sym)) {
		Elf64_Sym symbol;
		const char *name;

		memcpy(&symbol, data + at, sizeof(symbol));
		if (symbol.st_name >= name_bytes ||
		    !memchr(names + symbol.st_name, '\0', name_bytes - symbol.st_name))
			continue;
		name = (const char *)names + symbol.st_name;
		for (size_t i = 0; i < count && !strncmp(name, "__st", 4); i++) {
			if (!strcmp(name, tables[i].start))
				tables[i].lo = symbol.st_value;
			if (!strcmp(name, tables[i].stop))
				tables[i].hi = symbol.st_value;
		}
	}
}

static uint64_t relative(uint64_t field_va, const uint8_t *field)
{
	int32_t distance;

	memcpy(&distance, field, sizeof(distance));
	return field_va + (uint64_t)(int64_t)distance;
}

static void read_table(struct kernel *kernel, const struct table *table,
		       enum site_kind kind)
{
	size_t room, entry = kind == SITE_WARNING ? BUG_BYTES : JUMP_BYTES;
	const uint8_t *at = table->lo && table->lo < table->hi
				    ? elf_bytes_at(kernel->file, table->lo, &room)
				    : NULL;

	if (!at || table->hi - table->lo > room || (table->hi - table->lo) % entry)
		return;
	for (uint64_t va = table->lo; va < table->hi && kernel->places.count < MAX_SITES;
	     va += entry, at += entry) {
		struct site site = { .va = relative(va, at), .kind = (uint8_t)kind };

		if (kind == SITE_KEY)
			site.target = relative(va + JUMP_TO_AT, at + JUMP_TO_AT);
		else if (!(at[BUG_FLAGS_AT] & BUG_WARNING))
			continue;
		if (elf_is_code(kernel->file, site.va))
			vec_push(&kernel->places, site);
	}
}

static void sort(struct sites *sites)
{
	if (sites->count)
		qsort(sites->data, sites->count, sizeof(*sites->data), by_va);
}

struct kernel *kernel_code_new(const struct elf_file *file,
			       const struct elf_functions *functions,
			       struct insn_decoder *decoder)
{
	struct kernel *kernel = mem_alloc(sizeof(*kernel));
	const struct elf_section *aux = elf_section(file, ".altinstr_aux");
	size_t count;
	const struct elf_function *all = elf_functions_all(functions, &count);
	struct table tables[] = {
		[SITE_WARNING] = { .start = "__start___bug_table",
				   .stop = "__stop___bug_table" },
		[SITE_KEY] = { .start = "__start___jump_table",
			       .stop = "__stop___jump_table" },
	};

	kernel->file = file;
	kernel->decoder = decoder;
	for (size_t i = 0; i < count; i++)
		add_thunk(kernel, &all[i]);
	sort(&kernel->thunks);
	if (aux) {
		kernel->aux_lo = aux->va;
		kernel->aux_hi = aux->va + aux->bytes;
	}
	find_tables(file, tables, sizeof(tables) / sizeof(*tables));
	read_table(kernel, &tables[SITE_WARNING], SITE_WARNING);
	read_table(kernel, &tables[SITE_KEY], SITE_KEY);
	sort(&kernel->places);
	return kernel;
}

bool kernel_code_is_plain(const struct kernel *kernel)
{
	return !kernel->thunks.count && !kernel->places.count &&
	       kernel->aux_lo == kernel->aux_hi;
}

void kernel_code_free(struct kernel *kernel)
{
	if (!kernel)
		return;
	vec_fini(&kernel->places);
	vec_fini(&kernel->thunks);
	free(kernel);
}

/* ---- rewriting */

static void become(struct insn *insn, enum insn_op op, uint64_t target)
{
	*insn = (struct insn){
		.va = insn->va, .bytes = insn->bytes, .op = (uint8_t)op, .target = target
	};
}

static void become_indirect(struct insn *insn, uint8_t reg)
{
	insn->target = 0;
	insn->arg_count = 1;
	insn->args[0] = (struct insn_arg){ .kind = INSN_REG, .reg = reg, .bytes = 8 };
}

/* Into .altinstr_aux: a branch to whichever of both ends is not the next instruction. */
static void follow_aux(const struct kernel *kernel, struct insn *insn)
{
	uint64_t at = insn->target, yes = 0;

	for (unsigned i = 0; i < AUX_MAX_INSNS && at < kernel->aux_hi; i++) {
		size_t room;
		const uint8_t *code = elf_bytes_at(kernel->file, at, &room);
		struct insn aux;

		if (!code ||
		    !insn_decode(kernel->decoder, code,
				 room < INSN_LONGEST ? room : INSN_LONGEST, at, &aux))
			return;
		if (aux.op == INSN_BRANCH)
			yes = aux.target;
		if (aux.op == INSN_JUMP) {
			become(insn, INSN_BRANCH,
			       !yes || yes == insn->va + insn->bytes ? aux.target : yes);
			return;
		}
		at += aux.bytes;
	}
}

void kernel_rewrite(const struct kernel *kernel, struct insn *insn)
{
	bool goes = (insn->op == INSN_CALL || insn->op == INSN_JUMP) && insn->target;
	const struct site *site = NULL;

	if (goes && insn->target >= kernel->aux_lo && insn->target < kernel->aux_hi) {
		follow_aux(kernel, insn);
		return;
	}
	if (goes)
		site = find(&kernel->thunks, insn->target);
	if (!site &&
	    (insn->op == INSN_NOP || insn->op == INSN_JUMP || insn->op == INSN_TRAP))
		site = find(&kernel->places, insn->va);
	if (!site)
		return;
	switch (site->kind) {
	case SITE_WARNING:
		if (insn->op == INSN_TRAP)
			become(insn, INSN_NOP, 0);
		break;
	case SITE_KEY:
		if (insn->op != INSN_TRAP)
			become(insn, INSN_BRANCH, site->target);
		break;
	case SITE_NOTHING:
		if (insn->op == INSN_CALL)
			become(insn, INSN_NOP, 0);
		break;
	case SITE_RETURN:
		if (insn->op == INSN_JUMP)
			become(insn, INSN_RETURN, 0);
		break;
	case SITE_INDIRECT:
		become_indirect(insn, site->reg);
		break;
	}
}
