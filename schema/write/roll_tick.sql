-- SPDX-License-Identifier: Apache-2.0
-- As roll_access.sql.
DELETE FROM temp.roll_tick;
INSERT INTO temp.roll_tick
SELECT * FROM tick
WHERE level = :level AND bucket_at_ns < :cut_at_ns
ORDER BY level, bucket_at_ns, run_id, process_id, stack_id, method_id
LIMIT :batch;
-- Deleted first, so that the sums find the pages: a full file cannot grow.
DELETE FROM tick
WHERE (level, bucket_at_ns, run_id, process_id, stack_id, method_id) IN (
	SELECT level, bucket_at_ns, run_id, process_id, stack_id, method_id
	FROM temp.roll_tick);
INSERT INTO tick (level, bucket_at_ns, run_id, process_id, stack_id, method_id, samples,
	cpu_ns)
SELECT level + 1, bucket_at_ns - bucket_at_ns % :to_length_ns AS up_at_ns, run_id,
	process_id, stack_id, method_id, sum(samples), sum(cpu_ns)
FROM temp.roll_tick
WHERE true
GROUP BY up_at_ns, run_id, process_id, stack_id, method_id
ON CONFLICT DO UPDATE SET
	samples = samples + excluded.samples,
	cpu_ns = cpu_ns + excluded.cpu_ns;
