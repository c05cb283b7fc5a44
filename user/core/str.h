/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_STR_H
#define CORE_STR_H

/* A string builder: { 0 } is empty, data is NULL or NUL-terminated. */

#include <stdarg.h>
#include <stdbool.h>
#include <stddef.h>

struct str {
	char *data;
	size_t length, room;
};

void str_fini(struct str *str);
void str_add(struct str *str, const char *text);
void str_add_bytes(struct str *str, const void *bytes, size_t length);
void str_add_char(struct str *str, char c);
void str_printf(struct str *str, const char *fmt, ...)
	__attribute__((format(printf, 2, 3)));
char *str_take(struct str *str); /* "" rather than NULL; @str is empty afterwards */
const char *str_text(const struct str *str); /* "" rather than NULL; borrowed */
void str_clear(struct str *str);

static inline void cleanup_str_fini(struct str *str)
{
	str_fini(str);
}

bool str_starts(const char *text, const char *prefix);
bool str_ends(const char *text, const char *suffix);

/* str_hex() - lower-case hexadecimal of @bytes, allocated. */
char *str_hex(const void *bytes, size_t length);

/* str_unhex() - Return: bytes written, or -1 on an odd length, a non-digit or no room. */
long str_unhex(const char *text, void *ret_bytes, size_t room);

#endif
