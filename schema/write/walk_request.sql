-- SPDX-License-Identifier: Apache-2.0
SELECT level, bucket_at_ns, run_id, process_id, method_id, kind
FROM request
WHERE (level, bucket_at_ns, run_id, process_id, method_id, kind)
	> (?1, ?2, ?3, ?4, ?5, ?6)
ORDER BY level, bucket_at_ns, run_id, process_id, method_id, kind
LIMIT :batch;
