// SPDX-License-Identifier: Apache-2.0
/*
 * A note: name "stapsdt", type 3, then three addresses (nop, link-time address of
 * .stapsdt.base, semaphore) and three strings. Prelinking moves code but not notes, so
 * both addresses are corrected by how far .stapsdt.base has moved.
 */
#include "bin/usdt.h"

#include <stdlib.h>
#include <string.h>

#define NOTE_TYPE 3

struct header {
	uint32_t name_bytes, desc_bytes, type;
};

static const char *take_string(const uint8_t **at, const uint8_t *end)
{
	const char *text = (const char *)*at;
	const uint8_t *nul = memchr(*at, 0, (size_t)(end - *at));

	if (!nul)
		return NULL;
	*at = nul + 1;
	return text;
}

static bool read_note(const struct elf_file *file, const uint8_t *desc, size_t bytes,
		      struct usdt_note *note)
{
	const struct elf_section *base = elf_section(file, ".stapsdt.base");
	const uint8_t *at = desc + 24, *end = desc + bytes;
	uint64_t words[3], moved;

	if (bytes < 24)
		return false;
	memcpy(words, desc, sizeof(words));
	moved = base && words[1] ? base->va - words[1] : 0;
	note->va = words[0] + moved;
	note->semaphore_va = words[2] ? words[2] + moved : 0;
	note->provider = take_string(&at, end);
	note->name = note->provider ? take_string(&at, end) : NULL;
	note->args = note->name ? take_string(&at, end) : NULL;
	return note->args;
}

struct err *usdt_each(const struct elf_file *file, usdt_fn each, void *ctx)
{
	const struct elf_section *section = elf_section(file, ".note.stapsdt");
	const uint8_t *data;
	size_t bytes, count = 0;

	if (!section)
		return NULL;
	TRY(elf_data(file, section, &data, &bytes));
	while (bytes >= sizeof(struct header)) {
		struct header header;
		struct usdt_note note;

		memcpy(&header, data, sizeof(header));
		uint64_t name = ((uint64_t)header.name_bytes + 3) & ~3ull;
		uint64_t desc = ((uint64_t)header.desc_bytes + 3) & ~3ull;

		if (sizeof(header) + name + header.desc_bytes > bytes)
			return err_new(ERR_FORMAT, "a USDT note is cut off");
		if (++count > USDT_MAX_NOTES)
			return err_new(ERR_LIMIT, "more than %d USDT notes",
				       USDT_MAX_NOTES);
		const uint8_t *name_at = data + sizeof(header);

		if (header.type == NOTE_TYPE && header.name_bytes == 8 &&
		    !memcmp(name_at, "stapsdt", 8) &&
		    read_note(file, name_at + name, header.desc_bytes, &note) &&
		    !each(ctx, &note))
			return NULL;
		uint64_t whole = sizeof(header) + name + desc;

		if (whole > bytes)
			return NULL;
		data += whole;
		bytes -= whole;
	}
	return NULL;
}

/* Every name a register goes by, with its DWARF number. */
static int find_register(const char *name, size_t length)
{
	static const struct {
		const char *names[4];
	} table[16] = {
		{ { "rax", "eax", "ax", "al" } },
		{ { "rdx", "edx", "dx", "dl" } },
		{ { "rcx", "ecx", "cx", "cl" } },
		{ { "rbx", "ebx", "bx", "bl" } },
		{ { "rsi", "esi", "si", "sil" } },
		{ { "rdi", "edi", "di", "dil" } },
		{ { "rbp", "ebp", "bp", "bpl" } },
		{ { "rsp", "esp", "sp", "spl" } },
		{ { "r8", "r8d", "r8w", "r8b" } },
		{ { "r9", "r9d", "r9w", "r9b" } },
		{ { "r10", "r10d", "r10w", "r10b" } },
		{ { "r11", "r11d", "r11w", "r11b" } },
		{ { "r12", "r12d", "r12w", "r12b" } },
		{ { "r13", "r13d", "r13w", "r13b" } },
		{ { "r14", "r14d", "r14w", "r14b" } },
		{ { "r15", "r15d", "r15w", "r15b" } },
	};

	for (int i = 0; i < 16; i++)
		for (int j = 0; j < 4; j++)
			if (strlen(table[i].names[j]) == length &&
			    !memcmp(table[i].names[j], name, length))
				return i;
	return -1;
}

static void read_place(const char *text, size_t length, struct usdt_arg *arg)
{
	char *end;
	int reg;

	if (!length)
		return;
	if (text[0] == '$') {
		arg->offset = strtoll(text + 1, &end, 0);
		if (end == text + length)
			arg->where = USDT_CONSTANT;
		return;
	}
	if (text[0] == '%') {
		reg = find_register(text + 1, length - 1);
		if (reg >= 0) {
			arg->where = USDT_REGISTER;
			arg->reg = (uint8_t)reg;
		}
		return;
	}
	arg->offset = strtoll(text, &end, 0);
	if (end[0] != '(' || end[1] != '%' || text[length - 1] != ')')
		return;
	reg = find_register(end + 2, (size_t)(text + length - 1 - (end + 2)));
	if (reg >= 0) {
		arg->where = USDT_MEMORY;
		arg->reg = (uint8_t)reg;
	}
}

size_t usdt_args(const char *text, struct usdt_arg *ret_args)
{
	size_t count = 0;

	while (count < USDT_MAX_ARGS) {
		text += strspn(text, " ");
		size_t length = strcspn(text, " ");
		const char *place = memchr(text, '@', length);
		struct usdt_arg *arg = &ret_args[count];

		if (!length)
			break;
		*arg = (struct usdt_arg){ .bytes = 8 };
		if (place) {
			long bytes = strtol(text, NULL, 10);

			arg->is_signed = bytes < 0;
			bytes = labs(bytes);
			if (bytes == 1 || bytes == 2 || bytes == 4 || bytes == 8) {
				arg->bytes = (uint8_t)bytes;
				read_place(place + 1, length - (size_t)(place + 1 - text),
					   arg);
			}
		}
		text += length;
		count++;
	}
	return count;
}
