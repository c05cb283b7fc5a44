// SPDX-License-Identifier: Apache-2.0
/*
 * Fixed-size headers only, read with pread: nothing of the file is followed further, and
 * nothing of it is trusted to be small.
 */
#include "daemon/segments.h"

#include <elf.h>
#include <stdbool.h>
#include <string.h>
#include <sys/stat.h>
#include <unistd.h>

struct segments {
	Elf64_Phdr list[SEGMENTS_MAX];
	size_t count;
};

static struct err *read_segments(int fd, struct segments *ret_segments)
{
	Elf64_Ehdr head;
	struct stat info;
	struct segments *segments = ret_segments;

	if (fd < 0 || fstat(fd, &info) || !S_ISREG(info.st_mode) ||
	    pread(fd, &head, sizeof(head), 0) != sizeof(head) ||
	    memcmp(head.e_ident, ELFMAG, SELFMAG) ||
	    head.e_ident[EI_CLASS] != ELFCLASS64 || head.e_ident[EI_DATA] != ELFDATA2LSB)
		return err_new(ERR_INVALID, "attach: not a 64-bit ELF file");
	if (head.e_phentsize != sizeof(Elf64_Phdr) || head.e_phnum > SEGMENTS_MAX ||
	    head.e_phoff > (uint64_t)info.st_size)
		return err_new(ERR_INVALID, "attach: %u program headers of %u bytes",
			       head.e_phnum, head.e_phentsize);
	segments->count = head.e_phnum;
	ssize_t bytes = (ssize_t)(segments->count * sizeof(Elf64_Phdr));

	if (pread(fd, segments->list, (size_t)bytes, (off_t)head.e_phoff) != bytes)
		return err_new(ERR_INVALID, "attach: program headers beyond the file");
	return NULL;
}

/* Does a loaded segment with @flag hold @bytes at @off? */
static bool holds(const struct segments *segments, uint32_t flag, uint64_t off,
		  uint64_t bytes)
{
	for (size_t i = 0; i < segments->count; i++) {
		const Elf64_Phdr *at = &segments->list[i];

		if (at->p_type == PT_LOAD && at->p_flags & flag && off >= at->p_offset &&
		    off - at->p_offset < at->p_filesz &&
		    at->p_filesz - (off - at->p_offset) >= bytes)
			return true;
	}
	return false;
}

struct err *segments_check(int fd, const struct attach_point *points, size_t count)
{
	struct segments segments;

	TRY(read_segments(fd, &segments));
	for (size_t i = 0; i < count; i++) {
		uint64_t semaphore = points[i].semaphore_off;

		if (!holds(&segments, PF_X, points[i].offset, 1))
			return err_new(ERR_INVALID, "attach: %#llx is no code",
				       (unsigned long long)points[i].offset);
		if (semaphore && !holds(&segments, PF_W, semaphore, sizeof(uint16_t)))
			return err_new(ERR_INVALID, "attach: %#llx is no semaphore",
				       (unsigned long long)semaphore);
	}
	return NULL;
}
