/* SPDX-License-Identifier: Apache-2.0 */
#ifndef PROBE_FETCH_H
#define PROBE_FETCH_H

/* Expressions to the bounded plans that the BPF side follows. */

#include "bpf/abi.h"
#include "core/err.h"
#include "job/resolve.h"
#include "probe/expr.h"

/* What the expressions are about. */
struct fetch_place {
	bool is_usdt; /* argN is the Nth of @target->args */
	const struct resolve_target *target;
	const struct resolve_field *fields; /* asked, in the order of @target->fields */
};

/**
 * fetch_compile(), fetch_compile_condition() - EXPR_NONE gives ABI_BASE_NONE.
 * Errors: ERR_INVALID and ERR_LIMIT (what no plan can do), ERR_NOT_FOUND (a field or
 * USDT argument that is not there).
 */
struct err *fetch_compile(const struct expr *expr, const struct fetch_place *place,
			  struct abi_fetch *ret_fetch);
struct err *fetch_compile_condition(const struct expr_condition *condition,
				    const struct fetch_place *place,
				    struct abi_fetch *ret_fetch);

/* fetch_name_id() - of a fixed name, as the BPF side counts it for a fetched one of the
 * same spec. */
uint64_t fetch_name_id(uint32_t spec_id, const char *name);

#endif
