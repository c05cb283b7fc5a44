-- SPDX-License-Identifier: Apache-2.0
DELETE FROM tick
WHERE (level, bucket_at_ns, run_id, process_id, stack_id, method_id) IN (
	SELECT level, bucket_at_ns, run_id, process_id, stack_id, method_id
	FROM tick
	WHERE level = :level AND bucket_at_ns < :cut_at_ns
	ORDER BY level, bucket_at_ns, run_id, process_id, stack_id, method_id
	LIMIT :batch);
