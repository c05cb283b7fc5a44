/* SPDX-License-Identifier: Apache-2.0 */
#ifndef LIVE_KERNEL_H
#define LIVE_KERNEL_H

/* The running kernel and its modules: runtime ranges of text, given as MODULE events. */

#include <stdbool.h>
#include <stdint.h>

#include "event/event.h"

#define KERNEL_MAX_RANGES 4096

struct kernel;

struct kernel *kernel_new(void);
void kernel_free(struct kernel *kernel);

/* kernel_add() - replaces what it overlaps: a module was unloaded. False: no room. */
bool kernel_add(struct kernel *kernel, const struct event *module);

/* kernel_find() - false when nothing covers @ip. */
bool kernel_find(const struct kernel *kernel, uint64_t ip, uint64_t *ret_module_id,
		 uint64_t *ret_va);

/* ip_is_kernel() - the upper half, without the vsyscall page that user code runs in. */
bool ip_is_kernel(uint64_t ip);

#endif
