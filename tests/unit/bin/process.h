/* SPDX-License-Identifier: Apache-2.0 */
#ifndef TESTS_BIN_PROCESS_H
#define TESTS_BIN_PROCESS_H

/*
 * The executable mappings of a live process, opened for the unwinder: what the daemon
 * and the worker do between them, in one place and without either.
 */

#include <fcntl.h>
#include <inttypes.h>
#include <pthread.h>
#include <stdio.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/uio.h>
#include <ucontext.h>
#include <unistd.h>

#include "bin/elf.h"
#include "bin/frame.h"
#include "bin/symbol.h"
#include "core/mem.h"
#include "core/vec.h"

struct process_module {
	char path[512];
	int fd;
	struct elf_file *file;
	struct frame_table *frames;
	struct symbols *symbols;
};

struct process {
	pid_t pid;
	VEC(struct process_module *) modules;
	VEC(struct frame_range) ranges; /* id: index in modules + 1 */
};

/* The vDSO has no file: its pages are copied into one. */
static inline int process_vdso(pid_t pid, uint64_t start, uint64_t end)
{
	int fd = memfd_create("vdso", MFD_CLOEXEC);
	char *copy = mem_alloc(end - start);
	struct iovec local = { copy, end - start };
	struct iovec remote = { (void *)start, end - start };

	if (process_vm_readv(pid, &local, 1, &remote, 1, 0) != (ssize_t)(end - start) ||
	    write(fd, copy, end - start) != (ssize_t)(end - start))
		fprintf(stderr, "the vDSO cannot be read\n");
	free(copy);
	return fd;
}

static inline size_t process_module(struct process *process, const char *path, int fd)
{
	for (size_t i = 0; i < process->modules.count; i++)
		if (strcmp(process->modules.data[i]->path, path) == 0) {
			close(fd);
			return i;
		}
	struct process_module *module = mem_alloc(sizeof(*module));

	snprintf(module->path, sizeof(module->path), "%s", path);
	module->fd = fd;
	struct err *err = elf_open(fd, &module->file);

	if (!err)
		err = frame_open(module->file, NULL, &module->frames);
	if (!err)
		err = symbols_new(module->file, NULL, &module->symbols);
	if (err)
		fprintf(stderr, "%s: %s\n", path, err->text);
	err_free(err);
	vec_push(&process->modules, module);
	return process->modules.count - 1;
}

static inline void process_mapping(struct process *process, const char *line)
{
	uint64_t start, end, off;
	char rights[8], path[512] = "";
	int fd;

	if (sscanf(line, "%" SCNx64 "-%" SCNx64 " %7s %" SCNx64 " %*s %*s %511s", &start,
		   &end, rights, &off, path) < 4 ||
	    rights[2] != 'x')
		return;
	if (strcmp(path, "[vdso]") == 0)
		fd = process_vdso(process->pid, start, end);
	else if (path[0] == '/')
		fd = open(path, O_RDONLY | O_CLOEXEC);
	else
		return;
	if (fd < 0)
		return;
	size_t index = process_module(process, path, fd), count;
	struct process_module *module = process->modules.data[index];

	if (!module->file)
		return;
	const struct elf_segment *segments = elf_segments(module->file, &count);

	for (size_t i = 0; i < count; i++)
		if (segments[i].kind == ELF_LOAD &&
		    off - segments[i].off + 4095 < segments[i].file_bytes + 4095)
			vec_push(&process->ranges,
				 ((struct frame_range){ start, end,
							start - off + segments[i].off -
								segments[i].va,
							index + 1, module->frames }));
}

static inline void process_open(pid_t pid, struct process *process)
{
	char path[64], line[1024];

	*process = (struct process){ .pid = pid };
	snprintf(path, sizeof(path), "/proc/%d/maps", pid);
	FILE *maps = fopen(path, "re");

	while (maps && fgets(line, sizeof(line), maps))
		process_mapping(process, line);
	if (maps)
		fclose(maps);
}

static inline void process_close(struct process *process)
{
	vec_each(&process->modules, slot) {
		struct process_module *module = *slot;

		symbols_free(module->symbols);
		frame_close(module->frames);
		elf_close(module->file);
		close(module->fd);
		free(module);
	}
	vec_fini(&process->modules);
	vec_fini(&process->ranges);
}

static inline const char *process_name(struct process *process, const struct frame_at *at)
{
	if (!at->id || !process->modules.data[at->id - 1]->symbols)
		return "";
	return symbols_at(process->modules.data[at->id - 1]->symbols, at->va).function;
}

/* ucontext order -> DWARF order. */
static inline void registers_of(const ucontext_t *context, uint64_t *regs)
{
	static const int order[FRAME_REGS] = { REG_RAX, REG_RDX, REG_RCX, REG_RBX,
					       REG_RSI, REG_RDI, REG_RBP, REG_RSP,
					       REG_R8,	REG_R9,	 REG_R10, REG_R11,
					       REG_R12, REG_R13, REG_R14, REG_R15,
					       REG_RIP };

	for (int i = 0; i < FRAME_REGS; i++)
		regs[i] = (uint64_t)context->uc_mcontext.gregs[order[i]];
}

/* By the kernel: a sanitizer would object to reading across its red zones. */
static inline void copy_stack(uint64_t rsp, void *bytes, size_t count)
{
	struct iovec local = { bytes, count }, remote = { (void *)rsp, count };

	if (process_vm_readv(getpid(), &local, 1, &remote, 1, 0) != (ssize_t)count)
		fprintf(stderr, "the own stack cannot be read\n");
}

static inline size_t stack_bytes_from(uint64_t rsp, size_t most)
{
	pthread_attr_t attr;
	void *base;
	size_t size;

	pthread_getattr_np(pthread_self(), &attr);
	pthread_attr_getstack(&attr, &base, &size);
	pthread_attr_destroy(&attr);
	size_t left = (uint64_t)base + size - rsp;

	return left < most ? left : most;
}

#endif
