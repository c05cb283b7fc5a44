-- SPDX-License-Identifier: Apache-2.0
SELECT level, bucket_at_ns, run_id, process_id, module_id, va, source, method_id,
	samples
FROM access
WHERE (level, bucket_at_ns, run_id, process_id, module_id, va, source, method_id)
	> (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8)
ORDER BY level, bucket_at_ns, run_id, process_id, module_id, va, source, method_id
LIMIT :batch;
