// SPDX-License-Identifier: Apache-2.0
#include "core/str.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "core/mem.h"

void str_fini(struct str *str)
{
	free(str->data);
	*str = (struct str){ 0 };
}

static void reserve(struct str *str, size_t more)
{
	size_t need = str->length + more + 1;

	if (need <= str->room)
		return;
	size_t room = str->room ? str->room * 2 : 64;

	str->room = room < need ? need : room;
	str->data = mem_resize(str->data, str->room, 1);
}

void str_add_bytes(struct str *str, const void *bytes, size_t length)
{
	reserve(str, length);
	if (length)
		memcpy(str->data + str->length, bytes, length);
	str->length += length;
	str->data[str->length] = 0;
}

void str_add(struct str *str, const char *text)
{
	str_add_bytes(str, text, strlen(text));
}

void str_add_char(struct str *str, char c)
{
	str_add_bytes(str, &c, 1);
}

void str_printf(struct str *str, const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *text = mem_vprintf(fmt, ap);
	va_end(ap);
	str_add(str, text);
	free(text);
}

char *str_take(struct str *str)
{
	char *text = str->data ? str->data : mem_strdup("");

	*str = (struct str){ 0 };
	return text;
}

const char *str_text(const struct str *str)
{
	return str->data ? str->data : "";
}

void str_clear(struct str *str)
{
	str->length = 0;
	if (str->data)
		str->data[0] = 0;
}

bool str_starts(const char *text, const char *prefix)
{
	return !strncmp(text, prefix, strlen(prefix));
}

bool str_ends(const char *text, const char *suffix)
{
	size_t length = strlen(text), tail = strlen(suffix);

	return length >= tail && !strcmp(text + length - tail, suffix);
}

char *str_hex(const void *bytes, size_t length)
{
	static const char digits[] = "0123456789abcdef";
	const unsigned char *byte = bytes;
	char *text = mem_alloc(length * 2 + 1);

	for (size_t i = 0; i < length; i++) {
		text[2 * i] = digits[byte[i] >> 4];
		text[2 * i + 1] = digits[byte[i] & 15];
	}
	return text;
}

static int digit_of(char c)
{
	if (c >= '0' && c <= '9')
		return c - '0';
	c |= 0x20;
	return c >= 'a' && c <= 'f' ? c - 'a' + 10 : -1;
}

long str_unhex(const char *text, void *ret_bytes, size_t room)
{
	size_t length = strlen(text);
	unsigned char *out = ret_bytes;

	if (length % 2 || length / 2 > room)
		return -1;
	for (size_t i = 0; i < length / 2; i++) {
		int high = digit_of(text[2 * i]), low = digit_of(text[2 * i + 1]);

		if (high < 0 || low < 0)
			return -1;
		out[i] = (unsigned char)(high << 4 | low);
	}
	return (long)(length / 2);
}
