-- SPDX-License-Identifier: Apache-2.0
-- As roll_access.sql.
DELETE FROM temp.roll_request;
INSERT INTO temp.roll_request
SELECT * FROM request
WHERE level = :level AND bucket_at_ns < :cut_at_ns
ORDER BY level, bucket_at_ns, run_id, process_id, method_id, kind
LIMIT :batch;
INSERT INTO request (level, bucket_at_ns, run_id, process_id, method_id, kind, requests,
	weight, weight2, duration_ns, max_duration_ns, cpu_ns, probe_ns, unfinished)
SELECT level + 1, bucket_at_ns - bucket_at_ns % :to_length_ns AS up_at_ns, run_id,
	process_id, method_id, kind, sum(requests), sum(weight), sum(weight2),
	sum(duration_ns), max(max_duration_ns), sum(cpu_ns), sum(probe_ns), sum(unfinished)
FROM temp.roll_request
WHERE true
GROUP BY up_at_ns, run_id, process_id, method_id, kind
ON CONFLICT DO UPDATE SET
	requests = requests + excluded.requests,
	weight = weight + excluded.weight,
	weight2 = weight2 + excluded.weight2,
	duration_ns = duration_ns + excluded.duration_ns,
	max_duration_ns = max(max_duration_ns, excluded.max_duration_ns),
	cpu_ns = cpu_ns + excluded.cpu_ns,
	probe_ns = probe_ns + excluded.probe_ns,
	unfinished = unfinished + excluded.unfinished;
DELETE FROM request
WHERE (level, bucket_at_ns, run_id, process_id, method_id, kind) IN (
	SELECT level, bucket_at_ns, run_id, process_id, method_id, kind FROM temp.roll_request);
