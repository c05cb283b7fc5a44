-- SPDX-License-Identifier: Apache-2.0
INSERT INTO resource_bucket (level, bucket_at_ns, run_id, pid, resource_id, wait_ns,
	hold_ns, waits, acquires, releases, uses, refusals, max_balance, max_holders, on_ns)
VALUES (0, :bucket_at_ns, :run_id, :pid, :resource_id, :wait_ns, :hold_ns, :waits,
	:acquires, :releases, :uses, :refusals, :max_balance, :max_holders, :on_ns)
ON CONFLICT DO UPDATE SET
	wait_ns = wait_ns + excluded.wait_ns,
	hold_ns = hold_ns + excluded.hold_ns,
	waits = waits + excluded.waits,
	acquires = acquires + excluded.acquires,
	releases = releases + excluded.releases,
	uses = uses + excluded.uses,
	refusals = refusals + excluded.refusals,
	max_balance = max(max_balance, excluded.max_balance),
	max_holders = max(max_holders, excluded.max_holders),
	on_ns = on_ns + excluded.on_ns;
