/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_CALIBRATE_H
#define PROBE_CALIBRATE_H

/* What one hit of a probe costs on this machine, measured on ourselves; privileged. */

#include <stdint.h>

#include "core/err.h"
#include "probe/loader.h"

/* The slot that measuring uses; slots_put() never gives it away. */
#define CALIBRATE_SLOT ABI_CALIBRATE_SLOT

enum calibrate_kind {
	CALIBRATE_EMULATED, /* on a push, nop, call or jump: no single step */
	CALIBRATE_STEPPED,  /* on any other instruction */
	CALIBRATE_RETURN,   /* by uretprobe: entry and return together */
	CALIBRATE_KINDS,
};

/* ns of CPU per hit, of trap and program together; without the record in the ring. */
struct calibration {
	uint32_t hit_ns[CALIBRATE_KINDS];
};

/**
 * calibrate_run() - about 50 ms. Nothing is sampled or emitted for it.
 * Errors: those of attach_open(); ERR_UNSUPPORTED on machines other than x86-64.
 */
struct err *calibrate_run(const struct loader *loader, struct calibration *ret_cost);

/* calibrate_kind_name() - "emulated", "stepped", "return". */
const char *calibrate_kind_name(enum calibrate_kind kind);

#endif
