// SPDX-License-Identifier: Apache-2.0
/*
 * Demangling all of a large C++ library takes a while, so a pattern is first reduced to
 * its longest word: an identifier stands literally in the mangled name, at least where
 * it occurs first. Words of the standard library have abbreviations there and do not
 * count.
 */
#include "bin/names.h"

#include <ctype.h>
#include <fnmatch.h>
#include <gelf.h>
#include <libiberty/demangle.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

#define MAX_MANGLED 4096

struct query {
	enum names_by by;
	const char *text;
	char word[NAMES_MAX_PATTERN + 1]; /* that every match contains; "" none */
	size_t length;
	names_fn each;
	void *ctx;
	bool is_done;
};

char *names_demangle(const char *mangled)
{
	if (mangled[0] != '_' || strnlen(mangled, MAX_MANGLED) == MAX_MANGLED)
		return NULL;
	return cplus_demangle(mangled, DMGL_PARAMS | DMGL_ANSI | DMGL_AUTO);
}

static bool is_abbreviated(const char *word, size_t length)
{
	static const char *const words[] = {
		"std",		 "allocator",	   "basic_string", "string",
		"char_traits",	 "istream",	   "ostream",	   "iostream",
		"operator",	 "const",	   "unsigned",	   "char",
		"bool",		 "void",	   "short",	   "long",
		"double",	 "float",	   "wchar_t",	   "anonymous",
		"namespace",	 "virtual",	   "thunk",	   "basic_istream",
		"basic_ostream", "basic_iostream",
	};

	for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++)
		if (strlen(words[i]) == length && !memcmp(words[i], word, length))
			return true;
	return false;
}

/* Words next to a wildcard are parts of identifiers, which is as good. */
static void longest_word(const char *pattern, char *ret_word)
{
	size_t best = 0;

	ret_word[0] = '\0';
	while (*pattern) {
		size_t length = 0;

		while (isalnum((unsigned char)pattern[length]) || pattern[length] == '_')
			length++;
		if (length > best && !isdigit((unsigned char)pattern[0]) &&
		    !is_abbreviated(pattern, length)) {
			best = length;
			memcpy(ret_word, pattern, length);
			ret_word[length] = '\0';
		}
		if (pattern[length] == '[') /* a set, no word */
			length += strcspn(pattern + length, "]");
		pattern += length + (pattern[length] != '\0');
	}
}

static bool matches(const struct query *query, const char *name)
{
	switch (query->by) {
	case NAMES_EXACT:
		return !strcmp(name, query->text);
	case NAMES_PREFIX:
		return !strncmp(name, query->text, query->length);
	case NAMES_GLOB:
		return !fnmatch(query->text, name, FNM_NOESCAPE);
	case NAMES_DEMANGLED:
		break;
	}
	if (!strstr(name, query->word))
		return false;
	char *plain = names_demangle(name);
	bool match = plain && !fnmatch(query->text, plain, FNM_NOESCAPE);

	free(plain);
	return match;
}

static bool is_function(const struct elf_file *file, const GElf_Sym *symbol)
{
	unsigned type = GELF_ST_TYPE(symbol->st_info);

	if (symbol->st_shndx == SHN_UNDEF || symbol->st_shndx == SHN_ABS)
		return false;
	return (type == STT_FUNC || type == STT_NOTYPE) &&
	       elf_is_code(file, symbol->st_value);
}

static struct err *search_table(const struct elf_file *file, const struct elf_file *from,
				const struct elf_section *table, struct query *query)
{
	Elf_Scn *scn = elf_getscn(elf_handle(from), table->index);
	Elf_Data *data = scn ? elf_getdata(scn, NULL) : NULL;
	size_t count = data ? data->d_size / sizeof(Elf64_Sym) : 0;

	if (count > ELF_MAX_SYMBOLS)
		return err_new(ERR_LIMIT, "%s: %zu symbols, the limit is %d", table->name,
			       count, ELF_MAX_SYMBOLS);
	for (size_t i = 0; i < count && !query->is_done; i++) {
		GElf_Sym symbol;
		const char *name;

		if (!gelf_getsym(data, (int)i, &symbol) || !is_function(file, &symbol))
			continue;
		name = elf_strptr(elf_handle(from), table->link, symbol.st_name);
		if (!name || !*name || !matches(query, name))
			continue;
		query->is_done = !query->each(
			query->ctx,
			&(struct names_found){ symbol.st_value, symbol.st_size, name });
	}
	return NULL;
}

static struct err *search_file(const struct elf_file *file, const struct elf_file *from,
			       struct query *query)
{
	size_t count;
	const struct elf_section *sections = elf_sections(from, &count);

	for (size_t i = 0; i < count && !query->is_done; i++)
		if (sections[i].type == SHT_SYMTAB || sections[i].type == SHT_DYNSYM)
			TRY(search_table(file, from, &sections[i], query));
	return NULL;
}

struct err *names_find(const struct elf_file *file, const struct elf_file *debug,
		       enum names_by by, const char *text, names_fn each, void *ctx)
{
	struct query query = { .by = by, .text = text, .each = each, .ctx = ctx };

	query.length = strnlen(text, NAMES_MAX_PATTERN + 1);
	if (query.length > NAMES_MAX_PATTERN)
		return err_new(ERR_LIMIT, "a pattern of more than %d bytes",
			       NAMES_MAX_PATTERN);
	if (by == NAMES_DEMANGLED)
		longest_word(text, query.word);
	TRY(search_file(file, file, &query));
	return debug && !query.is_done ? search_file(file, debug, &query) : NULL;
}
