/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_PLAN_H
#define PROBE_PLAN_H

/*
 * One variant of a spec on one module: which breakpoints, each with its plan for the
 * BPF side; and for every probe what came of it.
 *
 *	TRY(plan_request(variant, arena, &request));
 *	...job_probes(worker, &request, ...)
 *	TRY(plan_build(spec, variant, reply, &plan));
 *
 * Rules. An entry that would be single-stepped is refused unless the probe says that it
 * is cold or for windows. Returns: on all ret instructions and tail calls where the
 * kernel emulates each of them; else by a uretprobe if no exception can cross it (the
 * module has no landing pads, or the spec says 'fails_by: never'); else on the ret
 * instructions, single-stepped, if cold or for windows; else refused.
 */

#include "bpf/abi.h"
#include "core/arena.h"
#include "job/resolve.h"
#include "probe/spec.h"

#define PLAN_EMULATED_NS 1500  /* of one hit, until calibrated on this machine */
#define PLAN_STEPPED_NS	 15000 /* likewise */
#define PLAN_RETURN_NS	 3000  /* of a uretprobe, entry and return together */
#define PLAN_RECORD_NS	 400   /* more, when it makes a record */

enum plan_cost { PLAN_EMULATED, PLAN_STEPPED, PLAN_TRAMPOLINE };

/* One breakpoint. */
struct plan_point {
	uint64_t va, off;	/* off: in the file */
	uint64_t semaphore_off; /* USDT: to be counted up while attached; 0 none */
	uint32_t probe;		/* index in the plan */
	uint8_t insn;		/* enum resolve_insn */
	uint8_t cost;		/* enum plan_cost */
	bool is_uretprobe;	/* at the entry of the function, fires at its return */
	bool in_windows;	/* too costly to be on all the time */
	const char *function;	/* demangled */
	uint64_t function_va, function_bytes; /* 0 bytes: unknown, or a note */
	struct abi_probe abi;
};

struct plan_probe {
	const struct spec_probe *spec;
	size_t first_point, point_count;
	const char *reason; /* why there are no points; "" there are some */
	bool is_spare;	    /* not needed: the probe that it stands in for is there */
};

struct plan {
	const struct spec *spec;
	const struct spec_variant *variant;
	const struct plan_probe *probes; /* as in the variant */
	size_t probe_count;
	const struct plan_point *points; /* by probe */
	size_t point_count;
	const char *refusal; /* why this variant does not do; "" it does */
	bool is_meant;	     /* its needs are there: it is about such a file */
	struct arena *arena;
};

/* plan_request() - @request lives in @arena; the module id is left to the caller. */
struct err *plan_request(const struct spec_variant *variant, struct arena *arena,
			 struct resolve_request *ret_request);

/**
 * plan_build() - @request, @reply: as asked and answered; only read.
 * The plan borrows @spec. A variant that does not do is no error: see @refusal.
 * Errors: ERR_FORMAT for a reply that does not belong to the request.
 */
struct err *plan_build(const struct spec *spec, const struct spec_variant *variant,
		       const struct resolve_request *request,
		       const struct resolve_reply *reply, struct plan **ret_plan);
void plan_free(struct plan *plan); /* NULL is fine */
CLEANUP_DEFINE(plan_free, struct plan *)

/* plan_cost_name(), plan_insn_name() - words for reports. */
const char *plan_cost_name(unsigned cost);
const char *plan_insn_name(unsigned insn);

/* plan_spec_id(), plan_resource_id() - stable hashes. */
uint32_t plan_spec_id(const struct spec *spec);
uint64_t plan_resource_id(const struct spec *spec, const char *resource);

#endif
