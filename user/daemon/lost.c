// SPDX-License-Identifier: Apache-2.0
#include "daemon/lost.h"

#include "model/command.h"

void lost_note(struct lost *lost, const struct fact *fact)
{
	if (fact->kind == FACT_LOSS && fact->loss.kind < ABI_KINDS &&
	    fact->loss.reason < LOSS_REASONS)
		lost->total[fact->loss.kind][fact->loss.reason] += fact->loss.lost;
}

void lost_status(const struct lost *lost, const struct abi_count *counts,
		 struct str *reply)
{
	for (uint32_t kind = 0; kind < ABI_KINDS; kind++) {
		for (int reason = 1; reason < LOSS_REASONS; reason++) {
			if (!lost->total[kind][reason])
				continue;
			reply_ok(reply);
			command_add(reply, "what", "loss");
			command_add(reply, "kind", loss_kind_name(kind));
			command_add(reply, "reason",
				    loss_reason_name((enum loss_reason)reason));
			command_add_number(reply, "lost", lost->total[kind][reason]);
			command_add_number(reply, "seen", counts[kind].seen);
			command_end(reply);
		}
	}
}
