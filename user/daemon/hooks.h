/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_HOOKS_H
#define DAEMON_HOOKS_H

/*
 * How busy the targets are, by the ticks that they had; and what the hooks cost that are
 * never switched: ticks, access samples, and the interrupts of the clock itself, which
 * come on every busy CPU, whoever runs there. What the agent itself uses is told apart.
 */

#include <stdint.h>

#include "bpf/abi.h"

struct hooks {
	uint64_t ticks, accesses, own_ns, since_ns; /* at the last step */
	uint64_t cpus;
};

struct hooks_step {
	uint64_t target_ns; /* CPU of the targets since the last step */
	uint64_t fixed_ns;  /* cost of the hooks in that time */
	uint64_t own_ns;    /* CPU of this process */
};

/* hooks_step() - @counts: as ring_counts() has them, [ABI_KINDS]; zero @hooks first. */
struct hooks_step hooks_step(struct hooks *hooks, const struct abi_count *counts,
			     uint64_t tick_hz, uint64_t access_hz);

#endif
