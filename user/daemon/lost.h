/* SPDX-License-Identifier: Apache-2.0 */
#ifndef DAEMON_LOST_H
#define DAEMON_LOST_H

/* What a run has lost so far, by kind and reason, for the status. */

#include "bpf/abi.h"
#include "core/str.h"
#include "model/fact.h"

struct lost {
	uint64_t total[ABI_KINDS][LOSS_REASONS];
};

/* lost_note() - a fact passes: LOSS is what counts. */
void lost_note(struct lost *lost, const struct fact *fact);

/* lost_status() - a row for each that is not 0; @counts: [ABI_KINDS], what was emitted. */
void lost_status(const struct lost *lost, const struct abi_count *counts,
		 struct str *reply);

#endif
