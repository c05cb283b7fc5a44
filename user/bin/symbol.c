// SPDX-License-Identifier: Apache-2.0
/*
 * Functions come from the symbol tables, lines from the line tables of the units that
 * cover an address. Units are indexed by their own ranges: .debug_aranges is optional
 * and clang does not write it. dwz moves no line table, so its file is not needed here.
 */
#include "bin/symbol.h"

#include <dwarf.h>
#include <elfutils/libdw.h>
#include <errno.h>
#include <libiberty/demangle.h>
#include <string.h>
#include <unistd.h>

#include "core/arena.h"
#include "core/map.h"
#include "core/mem.h"
#include "core/str.h"
#include "core/vec.h"

struct unit_range {
	uint64_t lo, hi;
	uint64_t unit; /* offset of the unit's DIE */
};

struct kernel_symbol {
	uint64_t va;
	size_t name; /* offset in @text */
};

/* A relative file name and its unit's folder, by address: both live as long as dwarf. */
struct relative {
	const char *folder, *file;
};

struct symbols {
	struct elf_functions *functions; /* NULL for the kernel */
	Dwarf *dwarf;			 /* NULL without debug information */
	VEC(struct unit_range) units;	 /* sorted by lo */
	struct map *names;		 /* address of a mangled name -> char * */
	struct map *paths;		 /* struct relative -> char * */
	struct arena *arena;
	char *text; /* kallsyms, lines cut into strings */
	VEC(struct kernel_symbol) kernel;
};

static struct symbols *new_symbols(void)
{
	struct symbols *symbols = mem_alloc(sizeof(*symbols));

	symbols->arena = arena_new();
	symbols->names = map_new(sizeof(uint64_t), sizeof(char *));
	symbols->paths = map_new(sizeof(struct relative), sizeof(char *));
	return symbols;
}

void symbols_free(struct symbols *symbols)
{
	if (!symbols)
		return;
	elf_functions_free(symbols->functions);
	if (symbols->dwarf)
		dwarf_end(symbols->dwarf);
	vec_fini(&symbols->units);
	vec_fini(&symbols->kernel);
	map_free(symbols->names);
	map_free(symbols->paths);
	arena_free(symbols->arena);
	free(symbols->text);
	free(symbols);
}

static int compare_ranges(const void *left, const void *right)
{
	const struct unit_range *a = left, *b = right;

	return a->lo < b->lo ? -1 : a->lo > b->lo;
}

static void index_unit(struct symbols *symbols, Dwarf_Die *unit)
{
	Dwarf_Addr base, lo, hi;
	ptrdiff_t at = 0;

	while (symbols->units.count < SYMBOL_MAX_RANGES &&
	       (at = dwarf_ranges(unit, at, &base, &lo, &hi)) > 0)
		if (lo && lo < hi)
			vec_push(&symbols->units,
				 ((struct unit_range){ lo, hi, dwarf_dieoffset(unit) }));
}

static void index_units(struct symbols *symbols)
{
	Dwarf_CU *cu = NULL;
	Dwarf_Die unit;
	size_t count = 0;

	while (count++ < SYMBOL_MAX_UNITS &&
	       dwarf_get_units(symbols->dwarf, cu, &cu, NULL, NULL, &unit, NULL) == 0)
		if (dwarf_tag(&unit) == DW_TAG_compile_unit ||
		    dwarf_tag(&unit) == DW_TAG_skeleton_unit)
			index_unit(symbols, &unit);
	if (symbols->units.count)
		qsort(symbols->units.data, symbols->units.count,
		      sizeof(symbols->units.data[0]), compare_ranges);
}

struct err *symbols_new(const struct elf_file *file, const struct elf_file *debug,
			struct symbols **ret_symbols)
{
	CLEANUP(symbols_free) struct symbols *symbols = new_symbols();
	const struct elf_file *holder = debug && elf_has_dwarf(debug) ? debug : file;

	TRY(elf_functions_new(file, debug, &symbols->functions));
	struct err *err = elf_check_debug(holder);

	if (!err && elf_has_dwarf(holder) && !elf_is_relocatable(holder))
		symbols->dwarf = dwarf_begin_elf(elf_handle(holder), DWARF_C_READ, NULL);
	err_free(err);
	if (symbols->dwarf)
		index_units(symbols);
	*ret_symbols = take(symbols);
	return NULL;
}

static const char *demangle(struct symbols *symbols, const char *mangled)
{
	uint64_t key = (uintptr_t)mangled;
	bool is_new;
	const char **slot = map_put(symbols->names, &key, &is_new);

	if (!is_new)
		return *slot;
	*slot = mangled;
	if (mangled[0] != '_' ||
	    strnlen(mangled, SYMBOL_MAX_MANGLED) == SYMBOL_MAX_MANGLED)
		return mangled;
	char *plain = cplus_demangle(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);

	if (plain && strnlen(plain, SYMBOL_MAX_NAME) < SYMBOL_MAX_NAME)
		*slot = arena_strdup(symbols->arena, plain);
	free(plain);
	return *slot;
}

/* The last range that starts at or before @va; nested units do not occur. */
static bool unit_at(struct symbols *symbols, uint64_t va, Dwarf_Die *ret_unit)
{
	size_t low = 0, high = symbols->units.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->units.data[middle].lo <= va)
			low = middle + 1;
		else
			high = middle;
	}
	return low && va < symbols->units.data[low - 1].hi &&
	       dwarf_offdie(symbols->dwarf, symbols->units.data[low - 1].unit, ret_unit);
}

/*
 * The row for @va: the last one at or before it. Of several at the very entry of a
 * function (@at_entry) the first tells its own line, the others its first statement's.
 */
static Dwarf_Line *line_at(Dwarf_Die *unit, uint64_t va, bool at_entry)
{
	Dwarf_Lines *lines;
	size_t count, low = 0;
	Dwarf_Addr address = 0;
	bool is_end = true;

	if (dwarf_getsrclines(unit, &lines, &count))
		return NULL;
	for (size_t high = count; low < high;) {
		size_t middle = low + (high - low) / 2;

		if (dwarf_lineaddr(dwarf_onesrcline(lines, middle), &address))
			return NULL;
		if (at_entry ? address < va : address <= va)
			low = middle + 1;
		else
			high = middle;
	}
	if (!at_entry && low == 0)
		return NULL;
	/* An end of sequence may share the address of the next one's beginning. */
	for (size_t i = at_entry ? low : low - 1; i < count; i++) {
		Dwarf_Line *line = dwarf_onesrcline(lines, i);

		if (dwarf_lineaddr(line, &address) ||
		    dwarf_lineendsequence(line, &is_end))
			return NULL;
		if (!at_entry || address != va || !is_end)
			return is_end || (at_entry && address != va) ? NULL : line;
	}
	return NULL;
}

/* Relative names are so to the folder in which the unit was compiled. */
static const char *join(struct symbols *symbols, Dwarf_Die *unit, const char *file)
{
	Dwarf_Attribute attribute;
	bool is_new;

	if (*file == '/' || !dwarf_attr(unit, DW_AT_comp_dir, &attribute))
		return file;
	struct relative key = { dwarf_formstring(&attribute), file };

	if (!key.folder || *key.folder != '/')
		return file;
	const char **slot = map_put(symbols->paths, &key, &is_new);

	if (!is_new)
		return *slot;
	*slot = file;
	size_t length = strlen(key.folder);
	const char *slash = key.folder[length - 1] == '/' ? "" : "/";

	if (length + strlen(file) < SYMBOL_MAX_PATH)
		*slot = arena_printf(symbols->arena, "%s%s%s", key.folder, slash, file);
	return *slot;
}

static void find_line(struct symbols *symbols, uint64_t va, bool at_entry,
		      const char **ret_file, uint32_t *ret_line)
{
	Dwarf_Die unit;
	int line = 0;

	if (!symbols->dwarf || !unit_at(symbols, va, &unit))
		return;
	Dwarf_Line *entry = line_at(&unit, va, at_entry);
	const char *file = entry ? dwarf_linesrc(entry, NULL, NULL) : NULL;

	if (!file || dwarf_lineno(entry, &line) || line <= 0)
		return;
	*ret_file = join(symbols, &unit, file);
	*ret_line = (uint32_t)line;
}

static void find_kernel(const struct symbols *symbols, uint64_t va, struct symbol *symbol)
{
	size_t low = 0, high = symbols->kernel.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;

		if (symbols->kernel.data[middle].va <= va)
			low = middle + 1;
		else
			high = middle;
	}
	/* Past the last symbol nothing says where the text ends. */
	if (low == 0 || low == symbols->kernel.count)
		return;
	const struct kernel_symbol *found = &symbols->kernel.data[low - 1];

	symbol->function = symbols->text + found->name;
	symbol->function_va = found->va;
	symbol->function_bytes = found[1].va - found->va;
}

struct symbol symbols_at(struct symbols *symbols, uint64_t va)
{
	struct symbol symbol = { .function = "", .function_file = "", .file = "" };

	if (!symbols->functions) {
		find_kernel(symbols, va, &symbol);
		return symbol;
	}
	const struct elf_function *function = elf_function_at(symbols->functions, va);

	if (function) {
		symbol.function = demangle(symbols, function->name);
		symbol.function_va = function->va;
		symbol.function_bytes = function->bytes;
		find_line(symbols, function->va, true, &symbol.function_file,
			  &symbol.function_line);
	}
	find_line(symbols, va, false, &symbol.file, &symbol.line);
	return symbol;
}

static struct err *read_all(int fd, struct str *out)
{
	char block[65536];

	while (true) {
		ssize_t got = pread(fd, block, sizeof(block), (off_t)out->length);

		if (got < 0 && errno == EINTR)
			continue;
		if (got < 0)
			return err_errno(errno, "read kallsyms");
		if (got == 0)
			return NULL;
		if (out->length + (size_t)got > SYMBOL_MAX_KALLSYMS_BYTES)
			return err_new(ERR_LIMIT, "kallsyms is longer than %d bytes",
				       SYMBOL_MAX_KALLSYMS_BYTES);
		str_add_bytes(out, block, (size_t)got);
	}
}

/* One line; cut at the name's end. Return false for what is no text symbol. */
static bool parse_line(char *line, uint64_t *ret_address, char **ret_name)
{
	char *end;
	uint64_t address = strtoull(line, &end, 16);

	if (end == line || end[0] != ' ' || !end[1] || end[2] != ' ' ||
	    !strchr("tTwW", end[1]))
		return false;
	char *name = end + 3;
	size_t length = strcspn(name, " \t");

	name[length] = '\0';
	*ret_address = address;
	*ret_name = name;
	return length > 0;
}

static int compare_kernel(const void *left, const void *right)
{
	const struct kernel_symbol *a = left, *b = right;

	if (a->va != b->va)
		return a->va < b->va ? -1 : 1;
	return a->name < b->name ? -1 : 1;
}

static struct err *parse_kallsyms(struct symbols *symbols, uint64_t slide)
{
	uint64_t seen = 0;
	char *rest = symbols->text, *line;

	while ((line = strsep(&rest, "\n"))) {
		uint64_t address;
		char *name;

		if (!parse_line(line, &address, &name))
			continue;
		seen++;
		if (!address)
			continue;
		if (symbols->kernel.count >= SYMBOL_MAX_KALLSYMS)
			return err_new(ERR_LIMIT, "kallsyms has more than %d symbols",
				       SYMBOL_MAX_KALLSYMS);
		vec_push(&symbols->kernel,
			 ((struct kernel_symbol){ address - slide,
						  (size_t)(name - symbols->text) }));
	}
	if (seen && !symbols->kernel.count)
		return err_new(ERR_PERMISSION, "kallsyms hides its addresses");
	return NULL;
}

struct err *symbols_kernel(int fd, uint64_t slide, struct symbols **ret_symbols)
{
	CLEANUP(symbols_free) struct symbols *symbols = new_symbols();
	CLEANUP(str_fini) struct str text = { 0 };

	TRY(read_all(fd, &text));
	symbols->text = str_take(&text);
	TRY(parse_kallsyms(symbols, slide));
	if (symbols->kernel.count)
		qsort(symbols->kernel.data, symbols->kernel.count,
		      sizeof(symbols->kernel.data[0]), compare_kernel);
	/* Of aliases the first listed stays, so that sizes are never zero. */
	size_t kept = 0;

	for (size_t i = 0; i < symbols->kernel.count; i++)
		if (!kept ||
		    symbols->kernel.data[kept - 1].va != symbols->kernel.data[i].va)
			symbols->kernel.data[kept++] = symbols->kernel.data[i];
	symbols->kernel.count = kept;
	*ret_symbols = take(symbols);
	return NULL;
}
