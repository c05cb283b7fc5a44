-- SPDX-License-Identifier: Apache-2.0
DELETE FROM access
WHERE (level, bucket_at_ns, run_id, process_id, module_id, va, source, method_id) IN (
	SELECT level, bucket_at_ns, run_id, process_id, module_id, va, source, method_id
	FROM access
	WHERE level = :level AND bucket_at_ns < :cut_at_ns
	ORDER BY level, bucket_at_ns, run_id, process_id, module_id, va, source, method_id
	LIMIT :batch);
