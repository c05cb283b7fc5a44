-- SPDX-License-Identifier: Apache-2.0
SELECT level, bucket_at_ns, run_id, process_id, stack_id, method_id
FROM tick
WHERE (level, bucket_at_ns, run_id, process_id, stack_id, method_id)
	> (?1, ?2, ?3, ?4, ?5, ?6)
ORDER BY level, bucket_at_ns, run_id, process_id, stack_id, method_id
LIMIT :batch;
