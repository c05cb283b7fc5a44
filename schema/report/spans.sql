-- SPDX-License-Identifier: Apache-2.0
-- Requests that were kept, one by one
SELECT s.span_id, s.trace_id, s.parent_id, v.service, coalesce(m.name, '') AS method,
	coalesce(m.framework, '') AS framework, s.kind AS kind_code, p.pid,
	s.begin_at_ns, s.duration_ns, max(s.cpu_ns - s.probe_ns, 0) AS cpu_ns, s.weight,
	s.flags AS hit_flags, s.off_cpu_ns, s.in_bytes, s.out_bytes, s.page_faults,
	rtrim(iif(s.labels & 1, 'hit ', '') || iif(s.labels & 2, 'miss ', '') ||
		iif(s.labels & 4, 'empty ', '') || iif(s.labels & 8, 'error ', '') ||
		iif(s.labels & 16, 'low ', '') || iif(s.labels & 32, 'high ', '')) AS labels,
	s.labels AS label_bits, s.status, s.status IS NOT NULL AS has_status
FROM span AS s
LEFT JOIN process AS p ON p.process_id = s.process_id
LEFT JOIN (SELECT process_id, coalesce(nullif(service, ''),
		nullif(replace(exe, rtrim(exe, replace(exe, '/', '')), ''), ''),
		comm, '') AS service FROM process) AS v ON v.process_id = s.process_id
LEFT JOIN method AS m ON m.method_id = s.method_id
WHERE s.level = 0 AND s.bucket_at_ns >= coalesce(:since_ns, 0)
	AND (:run_id IS NULL OR s.run_id = :run_id)
	AND (:pid IS NULL OR p.pid = :pid)
	AND (:process IS NULL OR p.comm = :process)
	AND (:method IS NULL OR m.name = :method)
ORDER BY s.begin_at_ns, s.span_id
LIMIT coalesce(:limit, -1);
