-- SPDX-License-Identifier: Apache-2.0
-- what is missing, and why
-- share_of_kind is of the records of that kind in the same time, the lost ones included;
-- empty when these are not counted. lost is estimated after a crash, and then lost_ns is
-- the time not covered. reorder means late, not lost: these records are in the figures.
WITH gone AS MATERIALIZED (
	SELECT loss.kind, loss.reason, sum(loss.lost) AS lost, sum(loss.seen) AS seen,
		sum(loss.lost_ns) AS lost_ns
	FROM bucket_level AS l
	CROSS JOIN loss ON loss.level = l.level
	WHERE loss.bucket_at_ns > coalesce(:since_ns, 0) - l.length_ns
		AND (:run_id IS NULL OR loss.run_id = :run_id)
	GROUP BY loss.kind, loss.reason
), kept AS MATERIALIZED (
	SELECT 'access' AS name, sum(a.samples) AS samples
	FROM bucket_level AS l CROSS JOIN access AS a ON a.level = l.level
	WHERE a.bucket_at_ns > coalesce(:since_ns, 0) - l.length_ns
		AND (:run_id IS NULL OR a.run_id = :run_id)
	UNION ALL
	SELECT 'tick', sum(t.samples)
	FROM bucket_level AS l CROSS JOIN tick AS t ON t.level = l.level
	WHERE t.bucket_at_ns > coalesce(:since_ns, 0) - l.length_ns
		AND (:run_id IS NULL OR t.run_id = :run_id)
), per_kind AS MATERIALIZED (
	SELECT gone.kind, loss_kind.name,
		max(max(gone.seen), coalesce(max(kept.samples), 0)
			+ coalesce(sum(gone.lost) FILTER (WHERE reason.name <> 'reorder'), 0))
			AS records
	FROM gone
	LEFT JOIN loss_kind USING (kind)
	LEFT JOIN loss_reason AS reason USING (reason)
	LEFT JOIN kept ON kept.name = loss_kind.name
	GROUP BY gone.kind
)
SELECT per_kind.name AS kind, loss_reason.name AS reason, gone.lost, per_kind.records,
	gone.lost * 1.0 / nullif(per_kind.records, 0) AS share_of_kind, gone.lost_ns
FROM gone
JOIN per_kind USING (kind)
LEFT JOIN loss_reason USING (reason)
WHERE gone.lost > 0 OR gone.lost_ns > 0
ORDER BY gone.lost DESC, gone.kind, gone.reason
LIMIT coalesce(:limit, -1);
