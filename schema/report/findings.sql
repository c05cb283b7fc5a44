-- SPDX-License-Identifier: Apache-2.0
-- what is wrong with which resource, worst first
SELECT finding_id, pid, class, resource, object, score, since_at_ns, until_at_ns,
	seen_at_ns, text
FROM finding
WHERE (:run_id IS NULL OR run_id = :run_id)
	AND (:pid IS NULL OR pid = :pid OR pid IN (
		WITH RECURSIVE up(id, pid) AS (
			SELECT parent_id, pid FROM process WHERE process.pid = :pid
			UNION SELECT process.parent_id, process.pid FROM process, up
				WHERE process.process_id = up.id
		) SELECT pid FROM up))
	AND (:process IS NULL OR pid IN (SELECT pid FROM process
		WHERE comm = :process OR service = :process))
	AND text <> ''
	AND seen_at_ns >= coalesce(:since_ns, 0)
ORDER BY score DESC
LIMIT coalesce(:limit, -1);
