/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_CALIBRATE_H
#define PROBE_CALIBRATE_H

/* What one hit of a probe costs on this machine, measured on ourselves; privileged. */

#include <stdint.h>

#include "bpf/abi.h"
#include "core/err.h"
#include "probe/loader.h"

/* The slot that measuring uses; slots_put() never gives it away. */
#define CALIBRATE_SLOT ABI_CALIBRATE_SLOT

enum calibrate_kind {
	CALIBRATE_EMULATED, /* on a push, nop, call or jump: no single step */
	CALIBRATE_STEPPED,  /* on any other instruction */
	CALIBRATE_RETURN,   /* by uretprobe: entry and return together */
	CALIBRATE_RECORD,   /* what a record into the ring adds to any of these */
	CALIBRATE_KINDS,
};

/* ns of CPU per hit, of trap and program together; the record apart. */
struct calibration {
	uint32_t hit_ns[CALIBRATE_KINDS];
};

/**
 * calibrate_run() - about 60 ms. Some thousand records of CALIBRATE_SLOT come out of the
 * ring, to be ignored.
 * Errors: those of attach_open(); ERR_UNSUPPORTED on machines other than x86-64.
 */
struct err *calibrate_run(const struct loader *loader, struct calibration *ret_cost);

/* calibration_hit_ns() - of one hit of @plan; @cost: enum plan_cost of its place. */
uint32_t calibration_hit_ns(const struct calibration *calibration, unsigned cost,
			    const struct abi_probe *plan);

/* calibrate_kind_name() - "emulated", "stepped", "return", "record". */
const char *calibrate_kind_name(enum calibrate_kind kind);

#endif
