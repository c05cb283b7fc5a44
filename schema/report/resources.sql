-- SPDX-License-Identifier: Apache-2.0
-- the resources of applications
-- wait_share and hold_share are of the time that was watched, and may exceed 1: many can
-- wait at once. on_share is the share of the time in which the probes were on.
SELECT r.spec, r.name AS resource, r.kind, b.pid, sum(b.waits) AS waits,
	sum(b.wait_ns) AS wait_ns, sum(b.hold_ns) AS hold_ns, sum(b.acquires) AS acquires,
	sum(b.releases) AS releases, sum(b.uses) AS uses, sum(b.refusals) AS refusals,
	max(b.max_balance) AS max_balance, max(b.max_holders) AS max_holders, r.unit,
	sum(b.on_ns) * 1.0 / sum(l.length_ns) AS on_share, r.title
FROM bucket_level AS l
CROSS JOIN resource_bucket AS b ON b.level = l.level
JOIN resource AS r ON r.resource_id = b.resource_id
WHERE b.bucket_at_ns > coalesce(:since_ns, 0) - l.length_ns
	AND (:run_id IS NULL OR b.run_id = :run_id)
	AND (:pid IS NULL OR b.pid = :pid)
GROUP BY r.resource_id, b.pid
ORDER BY sum(b.wait_ns) DESC, sum(b.refusals) DESC, sum(b.hold_ns) DESC, r.name
LIMIT coalesce(:limit, -1);
