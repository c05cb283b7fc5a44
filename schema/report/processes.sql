-- SPDX-License-Identifier: Apache-2.0
-- the processes that were sampled
-- share_of_all is of all access samples selected; share_typed of the selected samples in
-- the same process; share_of_cpu of the CPU time of all ticks selected.
WITH hit AS MATERIALIZED (
	SELECT process_id, sum(samples) AS samples,
		coalesce(sum(samples) FILTER (WHERE is_typed), 0) AS typed_samples
	FROM v_access
	WHERE bucket_at_ns > coalesce(:since_ns, 0) - length_ns
		AND (:run_id IS NULL OR run_id = :run_id)
		AND (:pid IS NULL OR pid = :pid)
		AND (:process IS NULL OR process = :process)
		AND (:method IS NULL OR method = :method)
	GROUP BY process_id
), ticks AS MATERIALIZED (
	SELECT t.process_id, sum(t.cpu_ns) AS cpu_ns
	FROM bucket_level AS l
	CROSS JOIN tick AS t ON t.level = l.level
	LEFT JOIN process AS p ON p.process_id = t.process_id
	LEFT JOIN method AS m ON m.method_id = t.method_id
	WHERE t.bucket_at_ns > coalesce(:since_ns, 0) - l.length_ns
		AND (:run_id IS NULL OR t.run_id = :run_id)
		AND (:pid IS NULL OR p.pid = :pid)
		AND (:process IS NULL OR p.comm = :process)
		AND (:method IS NULL OR m.name = :method)
	GROUP BY t.process_id
), both AS (
	SELECT process_id FROM hit UNION SELECT process_id FROM ticks
)
SELECT p.pid, coalesce(p.comm, '?') AS process, coalesce(hit.samples, 0) AS samples,
	coalesce(hit.samples, 0) * 1.0 / (SELECT sum(samples) FROM hit) AS share_of_all,
	coalesce(hit.typed_samples, 0) AS typed_samples,
	hit.typed_samples * 1.0 / hit.samples AS share_typed,
	coalesce(ticks.cpu_ns, 0) AS cpu_ns,
	coalesce(ticks.cpu_ns, 0) * 1.0
		/ (SELECT nullif(sum(cpu_ns), 0) FROM ticks) AS share_of_cpu,
	p.end_boot_ns IS NOT NULL AS is_gone, p.service, p.exe, both.process_id
FROM both
LEFT JOIN hit USING (process_id)
LEFT JOIN ticks USING (process_id)
LEFT JOIN process AS p USING (process_id)
ORDER BY samples DESC, cpu_ns DESC, process, p.pid
LIMIT coalesce(:limit, -1);
