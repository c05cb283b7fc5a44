-- SPDX-License-Identifier: Apache-2.0
-- one resource over time
SELECT b.bucket_at_ns, l.length_ns, b.pid, b.waits, b.wait_ns, b.hold_ns, b.acquires,
	b.releases, b.uses, b.refusals, b.max_balance, b.max_holders, b.on_ns
FROM bucket_level AS l
CROSS JOIN resource_bucket AS b ON b.level = l.level
JOIN resource AS r ON r.resource_id = b.resource_id
WHERE b.bucket_at_ns > coalesce(:since_ns, 0) - l.length_ns
	AND r.name = :type
	AND (:run_id IS NULL OR b.run_id = :run_id)
	AND (:pid IS NULL OR b.pid = :pid)
ORDER BY b.bucket_at_ns, b.pid
LIMIT coalesce(:limit, -1);
