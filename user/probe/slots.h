/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_SLOTS_H
#define PROBE_SLOTS_H

/*
 * The unprivileged half of the probes: plans into the kernel's table, counters out of
 * it. Needs no capability.
 */

#include <stddef.h>
#include <stdint.h>

#include "bpf/abi.h"
#include "core/cleanup.h"
#include "core/err.h"
#include "probe/loader.h"

struct slots;

/* slots_open() - @fds stay the caller's and must outlive it. */
struct err *slots_open(const struct probe_fds *fds, struct slots **ret_slots);
void slots_free(struct slots *slots); /* NULL is fine */
CLEANUP_DEFINE(slots_free, struct slots *)

/* slots_put() - write a plan to a free slot; ERR_LIMIT when all are taken. */
struct err *slots_put(struct slots *slots, const struct abi_probe *probe,
		      uint32_t *ret_slot);
/* slots_set() - replace the plan of a slot in use: a new cost or weight. */
struct err *slots_set(struct slots *slots, uint32_t slot, const struct abi_probe *probe);
/* slots_del() - detach first. */
void slots_del(struct slots *slots, uint32_t slot);

/* slots_count() - since the slot was put, over all CPUs. */
struct abi_probe_count slots_count(const struct slots *slots, uint32_t slot);

#endif
