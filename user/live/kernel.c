// SPDX-License-Identifier: Apache-2.0
/*
 * One list of ranges, few and rarely changed. KASLR and the modules' load addresses are
 * in @base; va is what the build's own files count in.
 */
#include "live/kernel.h"

#include "core/vec.h"

#define UPPER_HALF     0xffff800000000000ull
#define VSYSCALL_START 0xffffffffff600000ull
#define VSYSCALL_BYTES 4096

struct text {
	uint64_t start, end, base_va, module_id;
};

struct kernel {
	VEC(struct text) texts; /* sorted by start */
};

struct kernel *kernel_new(void)
{
	return mem_alloc(sizeof(struct kernel));
}

void kernel_free(struct kernel *kernel)
{
	if (!kernel)
		return;
	vec_fini(&kernel->texts);
	free(kernel);
}

bool kernel_add(struct kernel *kernel, const struct event *event)
{
	const struct abi_module *module = &event->module;
	struct text text = { module->base, module->base + module->length, module->base_va,
			     module->module_id };
	size_t kept = 0;

	if (text.end <= text.start)
		return false;
	vec_each(&kernel->texts, old)
		if (old->end <= text.start || old->start >= text.end)
			kernel->texts.data[kept++] = *old;
	kernel->texts.count = kept;
	if (kept >= KERNEL_MAX_RANGES)
		return false;
	vec_push(&kernel->texts, text);
	size_t i = kernel->texts.count - 1;

	for (; i > 0 && kernel->texts.data[i - 1].start > text.start; i--)
		kernel->texts.data[i] = kernel->texts.data[i - 1];
	kernel->texts.data[i] = text;
	return true;
}

bool kernel_find(const struct kernel *kernel, uint64_t ip, uint64_t *ret_module_id,
		 uint64_t *ret_va)
{
	size_t low = 0, high = kernel->texts.count;

	while (low < high) {
		size_t middle = low + (high - low) / 2;
		const struct text *text = &kernel->texts.data[middle];

		if (ip < text->start) {
			high = middle;
		} else if (ip >= text->end) {
			low = middle + 1;
		} else {
			*ret_module_id = text->module_id;
			*ret_va = ip - text->start + text->base_va;
			return true;
		}
	}
	return false;
}

bool ip_is_kernel(uint64_t ip)
{
	return ip >= UPPER_HALF &&
	       (ip < VSYSCALL_START || ip >= VSYSCALL_START + VSYSCALL_BYTES);
}
