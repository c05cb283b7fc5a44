// SPDX-License-Identifier: Apache-2.0
/*
 * The function table: STT_FUNC and IFUNC of .symtab and .dynsym, untyped labels of
 * hand-written assembly, and the PLT. Aliases share a va; the name kept is the one a
 * person would use: sized before unsized, global before weak before local, fewer
 * leading underscores, then the shorter.
 *
 * A PLT entry is named by what it jumps through: the first `jmp *disp(%rip)` of its 16
 * bytes leads to a GOT slot, and the relocation of that slot names the symbol. That
 * holds for .plt, .plt.got and .plt.sec of every linker, without counting entries.
 */
#include "bin/elf.h"

#include <gelf.h>
#include <string.h>

#include "core/map.h"
#include "core/mem.h"
#include "core/vec.h"

#define PLT_ENTRY_BYTES 16

struct elf_functions {
	VEC(struct elf_function) all;
	VEC(char *) names; /* of PLT entries, owned */
};

struct candidate {
	struct elf_function function;
	int rank; /* lower is better */
};

struct builder {
	const struct elf_file *file; /* has the code */
	VEC(struct candidate) found;
	struct elf_functions *functions;
};

static int symbol_rank(const GElf_Sym *symbol, const char *name)
{
	static const int bind_rank[] = {
		[STB_LOCAL] = 4, [STB_GLOBAL] = 0, [STB_WEAK] = 2
	};
	unsigned bind = GELF_ST_BIND(symbol->st_info);
	int rank = bind < 3 ? bind_rank[bind] * 8 : 0;

	if (symbol->st_size == 0)
		rank += 256;
	if (GELF_ST_TYPE(symbol->st_info) == STT_NOTYPE)
		rank += 1024;
	for (int i = 0; i < 4 && name[i] == '_'; i++)
		rank++;
	return rank;
}

static bool is_function(const struct builder *build, const GElf_Sym *symbol)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return false;
	if (type == STT_NOTYPE) /* assembly labels; compiler's local ones start with . */
		return elf_is_code(build->file, symbol->st_value);
	return type == STT_FUNC || type == STT_GNU_IFUNC;
}

/* ET_REL symbols count from their section. */
static bool symbol_va(const struct elf_file *from, const GElf_Sym *symbol,
		      uint64_t *ret_va)
{
	size_t count;
	const struct elf_section *sections = elf_sections(from, &count);

	*ret_va = symbol->st_value;
	if (!elf_is_relocatable(from))
		return true;
	if (symbol->st_shndx == 0 || symbol->st_shndx > count)
		return false;
	*ret_va += sections[symbol->st_shndx - 1].va;
	return true;
}

static struct err *add_table(struct builder *build, const struct elf_file *from,
			     const struct elf_section *table)
{
	Elf_Scn *scn = elf_getscn(elf_handle(from), table->index);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;

	if (table->bytes / sizeof(Elf64_Sym) > ELF_MAX_SYMBOLS)
		return err_new(ERR_LIMIT, "%s: %llu symbols, the limit is %d",
			       table->name,
			       (unsigned long long)(table->bytes / sizeof(Elf64_Sym)),
			       ELF_MAX_SYMBOLS);
	for (int i = 0; data && i < (int)(data->d_size / sizeof(Elf64_Sym)); i++) {
		GElf_Sym symbol;
		struct elf_function function = { 0 };

		if (!gelf_getsym(data, i, &symbol) || !is_function(build, &symbol) ||
		    !symbol_va(from, &symbol, &function.va))
			continue;
		function.name = elf_strptr(elf_handle(from), table->link, symbol.st_name);
		if (!function.name || !*function.name || function.name[0] == '.' ||
		    function.name[0] == '$')
			continue;
		function.bytes = symbol.st_size;
		function.is_sized = symbol.st_size > 0;
		if (function.va + function.bytes < function.va)
			continue;
		vec_push(&build->found,
			 ((struct candidate){ function,
					      symbol_rank(&symbol, function.name) }));
	}
	return NULL;
}

static struct err *add_symbols(struct builder *build, const struct elf_file *from)
{
	size_t count;
	const struct elf_section *sections = elf_sections(from, &count);

	for (size_t i = 0; i < count; i++)
		if (sections[i].type == SHT_SYMTAB || sections[i].type == SHT_DYNSYM)
			TRY(add_table(build, from, &sections[i]));
	return NULL;
}

/* GOT slot -> index of the dynamic symbol that its relocation names. */
static struct map *read_slots(const struct elf_file *file,
			      const struct elf_section **ret_dynsym)
{
	size_t count, entries = 0;
	const struct elf_section *sections = elf_sections(file, &count);
	struct map *slots = map_new(sizeof(uint64_t), sizeof(uint32_t));

	*ret_dynsym = NULL;
	for (size_t i = 0; i < count; i++) {
		const uint8_t *data;
		size_t bytes;

		if (sections[i].type == SHT_DYNSYM)
			*ret_dynsym = &sections[i];
		if (sections[i].type != SHT_RELA || !(sections[i].flags & SHF_ALLOC))
			continue;
		struct err *err = elf_data(file, &sections[i], &data, &bytes);

		for (; !err && bytes >= sizeof(Elf64_Rela) && entries < ELF_MAX_PLT;
		     data += sizeof(Elf64_Rela), bytes -= sizeof(Elf64_Rela)) {
			Elf64_Rela rela;

			memcpy(&rela, data, sizeof(rela));
			uint32_t type = ELF64_R_TYPE(rela.r_info);

			if (type != R_X86_64_JUMP_SLOT && type != R_X86_64_GLOB_DAT)
				continue;
			*(uint32_t *)map_put(slots, &rela.r_offset, NULL) =
				(uint32_t)ELF64_R_SYM(rela.r_info);
			entries++;
		}
		err_free(err);
	}
	return slots;
}

/* The operand of `jmp *disp32(%rip)`, with or without a prefix and endbr64. */
static bool entry_slot(const uint8_t *code, uint64_t va, uint64_t *ret_slot)
{
	for (int i = 0; i + 6 <= PLT_ENTRY_BYTES; i++) {
		int32_t displacement;

		if (code[i] != 0xff || code[i + 1] != 0x25)
			continue;
		memcpy(&displacement, code + i + 2, sizeof(displacement));
		*ret_slot = va + (uint64_t)i + 6 + (uint64_t)(int64_t)displacement;
		return true;
	}
	return false;
}

static const char *slot_name(const struct elf_file *file,
			     const struct elf_section *dynsym, uint32_t index)
{
	Elf_Scn *scn = dynsym ? elf_getscn(elf_handle(file), dynsym->index) : NULL;
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	GElf_Sym symbol;

	if (!data || index > ELF_MAX_SYMBOLS || !gelf_getsym(data, (int)index, &symbol))
		return NULL;
	return elf_strptr(elf_handle(file), dynsym->link, symbol.st_name);
}

static void add_plt_section(struct builder *build, const struct elf_section *plt,
			    const struct map *slots, const struct elf_section *dynsym)
{
	size_t step = plt->entry_bytes == 8 ? 8 : PLT_ENTRY_BYTES, room;
	const uint8_t *code = elf_bytes_at(build->file, plt->va, &room);
	uint64_t bytes = plt->bytes < room ? plt->bytes : room;

	/* Entries of 8 bytes are .plt.got's: the jump and two bytes of padding. */
	for (uint64_t pos = 0; code && pos + step <= bytes && pos / step < ELF_MAX_PLT;
	     pos += step) {
		uint8_t entry[PLT_ENTRY_BYTES] = { 0 };
		uint64_t slot;

		memcpy(entry, code + pos, step);
		if (!entry_slot(entry, plt->va + pos, &slot))
			continue;
		const uint32_t *index = map_find(slots, &slot);
		const char *name = index ? slot_name(build->file, dynsym, *index) : NULL;

		if (!name || !*name)
			continue;
		char *named = mem_printf("%.*s@plt", ELF_MAX_NAME, name);

		vec_push(&build->functions->names, named);
		vec_push(&build->found, ((struct candidate){ { .va = plt->va + pos,
							       .bytes = step,
							       .name = named,
							       .is_plt = true,
							       .is_sized = true },
							     -1 }));
	}
}

static void add_plt(struct builder *build)
{
	static const char *const names[] = { ".plt", ".plt.sec", ".plt.got" };
	const struct elf_section *dynsym;

	if (elf_machine(build->file) != ELF_X86_64)
		return;
	CLEANUP(map_free) struct map *slots = read_slots(build->file, &dynsym);

	for (size_t i = 0; i < sizeof(names) / sizeof(names[0]); i++) {
		const struct elf_section *plt = elf_section(build->file, names[i]);

		if (plt && plt->type == SHT_PROGBITS)
			add_plt_section(build, plt, slots, dynsym);
	}
}

static int compare(const void *left, const void *right)
{
	const struct candidate *a = left, *b = right;

	if (a->function.va != b->function.va)
		return a->function.va < b->function.va ? -1 : 1;
	if (a->rank != b->rank)
		return a->rank < b->rank ? -1 : 1;
	size_t a_length = strlen(a->function.name), b_length = strlen(b->function.name);

	if (a_length != b_length)
		return a_length < b_length ? -1 : 1;
	return strcmp(a->function.name, b->function.name);
}

/* An untyped label inside a sized function is a jump target, not a function. */
static bool is_label(const struct candidate *candidate, uint64_t covered_to)
{
	return candidate->rank >= 256 && candidate->function.va < covered_to;
}

static void keep_best(struct builder *build)
{
	struct elf_functions *functions = build->functions;
	uint64_t covered_to = 0;

	vec_each(&build->found, candidate) {
		struct elf_function *last =
			functions->all.count
				? &functions->all.data[functions->all.count - 1]
				: NULL;

		if (last && last->va == candidate->function.va)
			continue;
		if (is_label(candidate, covered_to))
			continue;
		vec_push(&functions->all, candidate->function);
		if (candidate->function.va + candidate->function.bytes > covered_to)
			covered_to = candidate->function.va + candidate->function.bytes;
	}
}

/* Symbols without a size reach to the next function or the end of their section. */
static void set_sizes(struct builder *build)
{
	size_t count = build->functions->all.count, kept = 0;
	struct elf_function *all = build->functions->all.data;

	for (size_t i = 0; i < count; i++) {
		const struct elf_section *section;

		if (all[i].bytes == 0) {
			section = elf_section_at(build->file, all[i].va);
			if (section)
				all[i].bytes = section->va + section->bytes - all[i].va;
			if (i + 1 < count && all[i + 1].va - all[i].va < all[i].bytes)
				all[i].bytes = all[i + 1].va - all[i].va;
		}
		if (all[i].bytes)
			all[kept++] = all[i];
	}
	build->functions->all.count = kept;
}

struct err *elf_functions_new(const struct elf_file *file, const struct elf_file *debug,
			      struct elf_functions **ret_functions)
{
	CLEANUP(elf_functions_free)
	struct elf_functions *functions = mem_alloc(sizeof(*functions));
	struct builder build = { .file = file, .functions = functions };
	struct err *err = add_symbols(&build, file);

	if (!err && debug)
		err = add_symbols(&build, debug);
	if (!err) {
		add_plt(&build);
		if (build.found.count)
			qsort(build.found.data, build.found.count,
			      sizeof(build.found.data[0]), compare);
		keep_best(&build);
		set_sizes(&build);
	}
	vec_fini(&build.found);
	if (!err)
		*ret_functions = take(functions);
	return err;
}

void elf_functions_free(struct elf_functions *functions)
{
	if (!functions)
		return;
	vec_each(&functions->names, name)
		free(*name);
	vec_fini(&functions->names);
	vec_fini(&functions->all);
	free(functions);
}

const struct elf_function *elf_functions_all(const struct elf_functions *functions,
					     size_t *ret_count)
{
	*ret_count = functions->all.count;
	return functions->all.data;
}

/* Functions may nest (a local alias inside a larger symbol): look a few back. */
const struct elf_function *elf_function_at(const struct elf_functions *functions,
					   uint64_t va)
{
	size_t low = 0, high = functions->all.count;
	const struct elf_function *all = functions->all.data;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (all[middle].va <= va)
			low = middle + 1;
		else
			high = middle;
	}
	for (size_t back = 0; back < 8 && low > back; back++) {
		const struct elf_function *function = &all[low - 1 - back];

		if (va - function->va < function->bytes)
			return function;
	}
	return NULL;
}
