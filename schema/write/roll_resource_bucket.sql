-- SPDX-License-Identifier: Apache-2.0
-- As roll_access.sql.
DELETE FROM temp.roll_resource_bucket;
INSERT INTO temp.roll_resource_bucket
SELECT * FROM resource_bucket
WHERE level = :level AND bucket_at_ns < :cut_at_ns
ORDER BY level, bucket_at_ns, run_id, pid, resource_id
LIMIT :batch;
INSERT INTO resource_bucket (level, bucket_at_ns, run_id, pid, resource_id, wait_ns,
	hold_ns, waits, acquires, releases, uses, refusals, max_balance, max_holders, on_ns)
SELECT level + 1, bucket_at_ns - bucket_at_ns % :to_length_ns AS up_at_ns, run_id, pid,
	resource_id, sum(wait_ns), sum(hold_ns), sum(waits), sum(acquires), sum(releases),
	sum(uses), sum(refusals), max(max_balance), max(max_holders), sum(on_ns)
FROM temp.roll_resource_bucket
WHERE true
GROUP BY up_at_ns, run_id, pid, resource_id
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
DELETE FROM resource_bucket
WHERE (level, bucket_at_ns, run_id, pid, resource_id) IN (
	SELECT level, bucket_at_ns, run_id, pid, resource_id FROM temp.roll_resource_bucket);
