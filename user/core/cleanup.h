/* SPDX-License-Identifier: Apache-2.0 */
#ifndef CORE_CLEANUP_H
#define CORE_CLEANUP_H

/*
 * One owner, freed when its scope ends; take() hands it over.
 *
 *	CLEANUP(elf_close) struct elf_file *file = NULL;
 *	TRY(elf_open(fd, &file));
 *	*ret_file = take(file);
 *
 * CLEANUP(f) needs CLEANUP_DEFINE(f, type) once, after the prototype of f.
 */

#include <stdlib.h>
#include <unistd.h>

#define CLEANUP(func) __attribute__((cleanup(cleanup_##func)))

#define CLEANUP_DEFINE(func, type)                                            \
	static inline __attribute__((unused)) void cleanup_##func(type *slot) \
	{                                                                     \
		func(*slot);                                                  \
	}

static inline void cleanup_free(void *slot)
{
	free(*(void **)slot);
}

static inline void cleanup_close(int *fd)
{
	if (*fd >= 0)
		close(*fd);
}

#define take(pointer)                                  \
	({                                             \
		__typeof__(pointer) take_ = (pointer); \
		(pointer) = NULL;                      \
		take_;                                 \
	})

static inline int take_fd(int *fd)
{
	int taken = *fd;

	*fd = -1;
	return taken;
}

#endif
