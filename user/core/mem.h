/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_MEM_H
#define CORE_MEM_H

/*
 * Allocation that aborts when memory runs out: the unit restarts us and the store is
 * transactional, so nothing is gained by carrying NULL through every caller. Any size
 * that comes from a file or an event is checked against a named limit *before* it
 * gets here.
 */

#include <stdarg.h>
#include <stddef.h>

void *mem_alloc(size_t bytes);				  /* zeroed; never NULL */
void *mem_array(size_t count, size_t size);		  /* zeroed; aborts on overflow */
void *mem_resize(void *block, size_t count, size_t size); /* grown part not zeroed */
void *mem_copy(const void *block, size_t bytes);
char *mem_strdup(const char *text); /* NULL stays NULL */
char *mem_printf(const char *fmt, ...) __attribute__((format(printf, 1, 2)));
char *mem_vprintf(const char *fmt, va_list ap) __attribute__((format(printf, 1, 0)));

#endif
