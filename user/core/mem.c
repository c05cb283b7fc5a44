// SPDX-License-Identifier: Apache-2.0
#include "core/mem.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void *or_abort(void *block)
{
	if (!block) {
		static const char text[] = "out of memory, aborting\n";

		fwrite(text, 1, sizeof(text) - 1, stderr);
		abort();
	}
	return block;
}

void *mem_alloc(size_t bytes)
{
	return or_abort(calloc(1, bytes ? bytes : 1));
}

void *mem_array(size_t count, size_t size)
{
	return or_abort(calloc(count ? count : 1, size ? size : 1));
}

void *mem_resize(void *block, size_t count, size_t size)
{
	size_t bytes;

	if (__builtin_mul_overflow(count, size, &bytes))
		or_abort(NULL);
	return or_abort(realloc(block, bytes ? bytes : 1));
}

void *mem_copy(const void *block, size_t bytes)
{
	void *copy = mem_alloc(bytes);

	if (bytes)
		memcpy(copy, block, bytes);
	return copy;
}

char *mem_strdup(const char *text)
{
	return text ? or_abort(strdup(text)) : NULL;
}

char *mem_vprintf(const char *fmt, va_list ap)
{
	char *text;

	if (vasprintf(&text, fmt, ap) < 0)
		or_abort(NULL);
	return text;
}

char *mem_printf(const char *fmt, ...)
{
	va_list ap;

	va_start(ap, fmt);
	char *text = mem_vprintf(fmt, ap);
	va_end(ap);
	return text;
}
